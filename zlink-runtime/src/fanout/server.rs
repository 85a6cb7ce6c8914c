//! What generated code registers: the handlers of a fanout's events, by packet name.

use std::fmt;
use std::sync::Arc;

use crate::channel::{Call, Handler};
use crate::id::ChannelName;
use crate::limit::DISPATCH_LIMIT;
use crate::message::codec::Message;

use super::context::FanoutTurn;

/// The handlers of a fanout's events. A schema's `<fanout>_subscriber(…)` makes one.
#[derive(Clone, Debug)]
#[must_use = "a subscriber does nothing until it is registered with a host"]
pub struct FanoutSubscriber {
    pub(crate) channel: ChannelName,
    pub(crate) dispatch_limit: usize,
    pub(crate) handlers: Vec<Handler<FanoutTurn>>,
}

impl FanoutSubscriber {
    /// Begins a subscriber of `channel` whose events are handled by `handler`.
    pub fn builder<H: Send + Sync + 'static>(channel: ChannelName, handler: H) -> FanoutSubscriberBuilder<H> {
        FanoutSubscriberBuilder {
            handler: Arc::new(handler),
            subscriber: Self {
                channel,
                dispatch_limit: DISPATCH_LIMIT,
                handlers: Vec::new(),
            },
        }
    }

    /// Subscribes to the channel under another name than its schema's.
    pub fn on(mut self, channel: ChannelName) -> Self {
        self.channel = channel;
        self
    }

    /// How many of its handlers may run at once; 256 where it is not set, 1 for one after the other. What exceeds it waits
    /// in order, and holds its permits.
    pub fn dispatch_limit(mut self, limit: usize) -> Self {
        self.dispatch_limit = limit;
        self
    }
}

/// Collects the handlers of a fanout's events. Generated code uses it.
pub struct FanoutSubscriberBuilder<H> {
    handler: Arc<H>,
    subscriber: FanoutSubscriber,
}

impl<H> fmt::Debug for FanoutSubscriberBuilder<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FanoutSubscriberBuilder")
            .field(&self.subscriber)
            .finish()
    }
}

impl<H: Send + Sync + 'static> FanoutSubscriberBuilder<H> {
    /// Handles events named `packet`.
    pub fn event<M, F>(mut self, packet: &'static str, call: F) -> Self
    where
        M: Message,
        F: for<'a> Call<'a, H, FanoutTurn, M, Reply = ()>,
    {
        self.subscriber
            .handlers
            .push(Handler::send(&self.handler, packet, call));
        self
    }

    /// The subscriber.
    pub fn build(self) -> FanoutSubscriber {
        self.subscriber
    }
}
