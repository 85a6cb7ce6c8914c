//! What an event's handler is told beside the event. There is no metadata, and nobody to answer.

use std::sync::{Arc, OnceLock, Weak};

use crate::channel::{
    AnyFilter, Caller, CorrelationId, FilterContext, HandlerScope, LendContext, Outbound, Told, caller,
};
use crate::id::{ChannelName, PacketName};
use crate::message::metadata::MetadataView;

use super::intake::Intake;

/// One dispatch to an event's handler. Generated code owns it for as long as the handler runs.
#[derive(Debug)]
pub struct FanoutTurn {
    pub(super) intake: Arc<Intake>,
    pub(super) packet: PacketName,
    pub(super) topic: String,
    /// Made once somebody asks for it.
    pub(super) scope: OnceLock<Box<HandlerScope>>,
    /// Dies with the turn. Made once somebody calls from it.
    pub(super) running: OnceLock<Arc<()>>,
}

impl FanoutTurn {
    fn shared_scope(&self) -> &HandlerScope {
        self.scope
            .get_or_init(|| Box::new(HandlerScope::new(self.intake.outbound.next_scope())))
    }

    fn alive(&self) -> Weak<()> {
        Arc::downgrade(self.running.get_or_init(Arc::default))
    }
}

impl LendContext for FanoutTurn {
    type Context<'a> = FanoutContext<'a>;

    fn lend(&self) -> FanoutContext<'_> {
        FanoutContext { turn: self }
    }

    fn is_filtered(&self) -> bool {
        !self.intake.filters.is_empty()
    }

    fn seen(&self) -> FilterContext<'_> {
        FilterContext::new(self)
    }
}

impl Told for FanoutTurn {
    fn channel(&self) -> Option<&ChannelName> {
        Some(&self.intake.channel)
    }

    fn topic(&self) -> Option<&str> {
        Some(&self.topic)
    }

    fn packet_name(&self) -> &PacketName {
        &self.packet
    }

    fn metadata(&self) -> MetadataView<'_> {
        MetadataView::default()
    }

    fn correlation(&self) -> Option<CorrelationId> {
        None
    }

    fn scope(&self) -> &HandlerScope {
        self.shared_scope()
    }

    fn filters(&self) -> &[Arc<dyn AnyFilter>] {
        &self.intake.filters
    }

    fn outbound(&self) -> &Outbound {
        &self.intake.outbound
    }

    fn running(&self) -> Weak<()> {
        self.alive()
    }
}

/// What an event's handler is told, and through which it calls others.
#[derive(Clone, Copy, Debug)]
pub struct FanoutContext<'a> {
    turn: &'a FanoutTurn,
}

impl<'a> FanoutContext<'a> {
    /// The channel that was published to.
    #[must_use]
    pub fn channel(&self) -> &'a ChannelName {
        &self.turn.intake.channel
    }

    /// What it was published under.
    #[must_use]
    pub fn topic(&self) -> &'a str {
        &self.turn.topic
    }

    /// The name on the wire that chose this handler.
    #[must_use]
    pub fn packet_name(&self) -> &'a PacketName {
        &self.turn.packet
    }

    /// The encoding the event came in.
    #[must_use]
    pub fn content_type(&self) -> &'a str {
        crate::message::CONTENT_TYPE
    }

    /// What the filters and the handler of this event share.
    #[must_use]
    pub fn scope(&self) -> &'a HandlerScope {
        self.turn.shared_scope()
    }
}

impl caller::Caller for FanoutContext<'_> {
    fn outbound(&self) -> &Outbound {
        &self.turn.intake.outbound
    }

    fn running(&self) -> Option<Weak<()>> {
        Some(self.turn.alive())
    }
}

impl Caller for FanoutContext<'_> {}
