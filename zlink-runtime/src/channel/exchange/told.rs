//! What an exchange tells of itself to whoever traces. Nothing here is done where nobody does, and nothing is decided by it.

use tokio::time::Instant;

use crate::call::Waiting;
use crate::clock;
use crate::error::CallError;
use crate::id::{ChannelName, Rid};

use super::super::context::CorrelationId;
use super::super::flow::{self, Flow};
use super::super::way::Target;
use super::{Exchange, Route};

/// What is told of an exchange to whoever traces.
pub(super) struct Traced {
    pub(super) flow: Flow,
    /// Since when it waits for room.
    crowded: Option<Instant>,
}

impl Exchange {
    /// From here on it belongs to a flow.
    pub(super) fn note_flow(&mut self) {
        if self.traced.is_none() && flow::is_traced() {
            let flow = Flow::of_call();
            self.traced = Some(Box::new(Traced { flow, crowded: None }));
        }
    }

    /// The link has taken it.
    pub(super) fn note_submitted(&self) {
        if let Some(Traced { flow, crowded }) = self.traced.as_deref() {
            tracing::debug!(
                target: "zlink::flow", phase = "submitted", packet_name = self.method.packet(),
                channel_name = self.channel().map(ChannelName::as_str), kind = self.kind(),
                correlation_id = self.correlation(), flow_id = %flow.id, flow_origin = %flow.origin,
                waited_seconds = crowded.map(|since| (clock::now() - since).as_secs_f64())
            );
        }
    }

    fn kind(&self) -> &'static str {
        if self.timeout.is_some() { "request" } else { "send" }
    }

    fn correlation(&self) -> Option<tracing::field::DisplayValue<CorrelationId>> {
        let key = self.waiting.as_ref().map(Waiting::key);
        key.map(|key| CorrelationId::shown(key.to_wire()))
    }

    /// It has come to this end. A call that never got as far as to a route has no flow.
    pub(in crate::channel) fn ended(&self, error: Option<&CallError>) {
        tracing::debug!(
            target: "zlink::flow", phase = "completed", packet_name = self.method.packet(), kind = self.kind(),
            channel_name = self.channel().map(ChannelName::as_str),
            flow_id = self.traced.as_ref().map(|traced| tracing::field::display(traced.flow.id)),
            error = error.map(|error| error.kind().map_or("Argument".to_owned(), |kind| kind.to_string()))
        );
    }

    /// Who was selected, for whoever looks: the caller is never told.
    pub(super) fn note_target(&self, route: &Route) {
        if self.traced.is_none() {
            return;
        }
        let mesh = match &self.way.target {
            Target::Spot(_) => self.found.as_ref().map(|found| found.place.mesh.as_str()),
            Target::Node(mesh, _) | Target::Control(mesh, ..) => Some(mesh.path.name.as_str()),
            Target::Channel(path) => path.mesh_name(),
            Target::Nowhere(_) | Target::Bad(_) => None,
        };
        self.note_selected(route.rid(), mesh);
    }

    /// The same of a node that was found otherwise.
    pub(super) fn note_selected(&self, rid: &Rid, mesh: Option<&str>) {
        if self.traced.is_none() {
            return;
        }
        let path = match &self.way.target {
            Target::Channel(path) => Some(path),
            _ => None,
        };
        let surface = match &self.way.target {
            Target::Channel(_) => "channel",
            Target::Spot(_) => "spot",
            Target::Node(..) | Target::Control(..) | Target::Nowhere(_) | Target::Bad(_) => "node",
        };
        tracing::debug!(
            target: "zlink::flow", phase = "selected", surface,
            channel_name = path.map(|path| path.name.as_str()), mesh_name = mesh,
            channel_route_kind = path.map(|path| path.route_kind()), target_rid = %rid,
            packet_name = self.method.packet(), correlation_id = self.correlation(),
            flow_id = self.traced.as_ref().map(|traced| tracing::field::display(traced.flow.id))
        );
    }

    /// There is no room for it: the peer asks for a pause, or what it was sent before is still here.
    pub(super) fn note_crowd(&mut self) {
        if let Some(traced) = self.traced.as_deref_mut() {
            traced.crowded.get_or_insert_with(clock::now);
            let flow_id = traced.flow.id;
            tracing::debug!(
                target: "zlink::flow", phase = "backpressured", reason = "backpressure", packet_name = self.method.packet(),
                channel_name = self.channel().map(ChannelName::as_str), %flow_id
            );
        }
    }
}
