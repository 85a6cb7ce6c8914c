//! The filters of a node around the callbacks of its Spots, and what they see of a turn. It must not know what a callback does.

use std::sync::{Arc, Weak};

use crate::channel::{AnyFilter, CorrelationId, FilterContext, HandlerScope, Outbound, Stop, Told, filtered};
use crate::execution::YieldTurn;
use crate::id::{ActorId, MeshName, PacketName, SpotId};
use crate::message::codec::Message;
use crate::message::metadata::MetadataView;

use super::dispatch::Invoke;
use super::turn::{Cause, TurnCore};

/// Runs a callback, within the filters of its node where it has any.
pub(super) async fn run<S, M, I>(
    invoke: I,
    turn: &mut YieldTurn<'_, S>,
    core: &TurnCore,
    message: M,
) -> Result<I::Reply, Stop>
where
    S: Send + 'static,
    M: Message,
    I: Invoke<S, M, Reply: Send>,
{
    let running = invoke.invoke(turn, core, message);
    if core.object.home.filters.is_empty() {
        return running.await.map_err(Stop::Failed);
    }
    let Cause::Packet(packet) = core.cause else {
        return running.await.map_err(Stop::Failed);
    };
    let seen = Seen {
        core,
        packet: PacketName::from_static(packet),
    };
    // Apart, so that turns without filters are no larger for it.
    Box::pin(filtered(FilterContext::new(&seen), running)).await
}

/// A turn, as filters see it.
#[derive(Debug)]
struct Seen<'a> {
    core: &'a TurnCore,
    packet: PacketName,
}

impl Told for Seen<'_> {
    fn mesh(&self) -> Option<&MeshName> {
        Some(&self.core.object.home.mesh)
    }

    fn spot(&self) -> Option<&SpotId> {
        self.core.object.id.spot()
    }

    fn actor(&self) -> Option<&ActorId> {
        self.core.object.id.actor()
    }

    fn packet_name(&self) -> &PacketName {
        &self.packet
    }

    fn metadata(&self) -> MetadataView<'_> {
        self.core.metadata()
    }

    fn correlation(&self) -> Option<CorrelationId> {
        self.core.correlation.map(CorrelationId::of)
    }

    fn scope(&self) -> &HandlerScope {
        self.core.scope()
    }

    fn filters(&self) -> &[Arc<dyn AnyFilter>] {
        &self.core.object.home.filters
    }

    fn outbound(&self) -> &Outbound {
        self.core.object.outbound()
    }

    fn running(&self) -> Weak<()> {
        self.core.running()
    }
}
