//! What is told of a call on its way to its Spot, to whoever traces. Nothing is decided by it.

use crate::channel::{CorrelationId, Flow};
use crate::id::Rid;

/// A call, as far as it is told of.
#[derive(Clone, Copy)]
pub(super) struct Told<'a> {
    /// Whether it is for a Spot or an Actor.
    pub(super) surface: &'static str,
    pub(super) mesh: &'a str,
    pub(super) packet: &'a str,
    /// Of a request.
    pub(super) correlation: Option<u64>,
    pub(super) flow: Flow,
}

impl Told<'_> {
    /// It has come here.
    pub(super) fn received(&self, source: &Rid) {
        let flow = self.flow;
        tracing::debug!(
            target: "zlink::flow", phase = "received", surface = self.surface, mesh_name = self.mesh, packet_name = self.packet,
            source_rid = %source, flow_id = %flow.id, flow_origin = %flow.origin,
            correlation_id = self.correlation.map(CorrelationId::shown)
        );
    }

    /// It stands in the queue of its Spot.
    pub(super) fn admitted(&self) {
        tracing::debug!(
            target: "zlink::flow", phase = "admitted", surface = self.surface, mesh_name = self.mesh,
            packet_name = self.packet, flow_id = %self.flow.id,
            correlation_id = self.correlation.map(CorrelationId::shown)
        );
    }
}
