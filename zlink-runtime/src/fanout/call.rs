//! Publishing: a value whose `.await` hands an event to this host's publisher. It must not know who subscribes.

use std::fmt;
use std::future::IntoFuture;
use std::sync::Weak;

use tokio::task::coop::consume_budget;

use crate::channel::{Caller, Flow, Outbound, is_running, is_traced};
use crate::error::{ArgumentError, CallError, Error, ErrorKind};
use crate::id::{ChannelName, PacketName};
use crate::message::codec::{self, Message};
use crate::transport::{self, BoxFuture};
use crate::wire::{self, CallHead, OperationRef, To};

use super::channel::Outlets;
use super::topic;

/// An event of a schema, as generated publishers name it. Made in a constant, it costs a call nothing.
#[derive(Clone, Copy, Debug)]
pub struct FanoutEvent {
    packet: &'static str,
    topic: &'static str,
}

impl FanoutEvent {
    /// The event named `packet`, published under the schema's `topic`, or else under its name.
    ///
    /// # Panics
    /// Where one of them cannot be what it is to be: in a constant, that is a compile error.
    #[must_use]
    #[allow(clippy::panic, reason = "a constant that is wrong must not compile")]
    pub const fn new(packet: &'static str, topic: Option<&'static str>) -> Self {
        // Only to check it: a constant cannot be dropped.
        std::mem::forget(PacketName::from_static(packet));
        let topic = match topic {
            Some(topic) => topic,
            None => packet,
        };
        if !topic::is_topic(topic) {
            panic!("a topic needs 0 to 255 bytes that do not begin with the reserved ones");
        }
        Self { packet, topic }
    }
}

/// The way to a channel's subscribers, from one caller. Clones are cheap.
#[derive(Clone, Debug)]
pub struct FanoutRoute {
    outbound: Outbound,
    /// Alive as long as the turn of the caller, where that is a handler.
    turn: Option<Weak<()>>,
    channel: ChannelName,
}

impl FanoutRoute {
    /// The route of `channel` in the caller's process. Where that publishes nothing there, each call says so.
    #[must_use]
    pub fn new(caller: &impl Caller, channel: ChannelName) -> Self {
        Self {
            outbound: caller.outbound().clone(),
            turn: caller.running(),
            channel,
        }
    }

    /// The same for another name than the schema's.
    #[must_use]
    pub fn on(self, channel: ChannelName) -> Self {
        Self { channel, ..self }
    }

    /// An event, not published yet.
    pub fn publish<M: Message>(&self, event: FanoutEvent, message: M) -> FanoutCall<M> {
        FanoutCall {
            route: self.clone(),
            event,
            topic: None,
            message,
        }
    }
}

/// An event that is not published yet. `.await` publishes it.
///
/// It completes when this host's publisher has taken the event, which says nothing about who receives it: with no subscriber,
/// too. What a subscriber has no room for it does without; with
/// [`no_drop`](crate::FanoutBuilder::no_drop) the call waits until all that want the event have room.
///
/// # Errors
/// [`CallError::Argument`] where the topic or the event is refused. [`CallError::Failed`] with `NotFound` or
/// `NotConfigured` where this host does not publish on that channel, `ShuttingDown`, or `DeadlineExceeded` where
/// somebody had no room in time: then it went to nobody.
#[must_use = "a call does nothing until it is awaited"]
pub struct FanoutCall<M> {
    route: FanoutRoute,
    event: FanoutEvent,
    topic: Option<String>,
    message: M,
}

impl<M: Message> FanoutCall<M> {
    /// Publishes it under another topic than the schema's: at most 255 bytes, not reserved, maybe empty. Who subscribes to
    /// what it begins with receives it.
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.topic = Some(topic.into());
        self
    }

    async fn publish(self) -> Result<(), CallError> {
        let Self {
            route,
            event,
            topic,
            message,
        } = self;
        let topic = topic.as_deref().unwrap_or(event.topic);
        topic::check(topic)?;
        let in_turn = || is_running(route.turn.as_ref());
        route.outbound.takes(in_turn())?;
        let outlets = route.outbound.fanouts_as::<Outlets>();
        let outlet = outlets.and_then(|outlets| outlets.of(&route.channel));
        let Some(outlet) = outlet else {
            let text = format!("fanout {:?} is not registered in this process", route.channel);
            return Err(Error::not_executed(ErrorKind::NotFound, text).into());
        };
        let Some(outlet) = outlet else {
            let text = format!("this process only subscribes to fanout {:?}", route.channel);
            return Err(Error::not_executed(ErrorKind::NotConfigured, text).into());
        };
        let mut head = Vec::new();
        let call = CallHead {
            to: To::Subscribers,
            request: None,
            operation: OperationRef::Named {
                channel: route.channel.as_str(),
                packet: event.packet,
            },
            metadata: &[],
            content_type: "",
            flow: is_traced().then(|| Flow::of_call().to_wire()),
        };
        wire::call(&mut head, &call);
        let made = codec::encode(&message, |payload| match head.len() + payload.len() {
            bytes if bytes > outlet.max_record() => {
                let most = outlet.max_record();
                Err(format!("needs {bytes} bytes; the publisher takes at most {most}"))
            }
            _ => Ok(transport::Message::new(topic.as_bytes(), &head, payload)),
        });
        let made = made.map_err(|error| error.to_string()).and_then(|made| made);
        let made = made.map_err(|problem| ArgumentError::new("message", problem))?;
        // Who publishes in a loop lets those run who write it out.
        consume_budget().await;
        Ok(outlet.publish(made, &route.outbound, in_turn()).await?)
    }
}

impl<M: Message> IntoFuture for FanoutCall<M> {
    type Output = Result<(), CallError>;
    type IntoFuture = BoxFuture<'static, Result<(), CallError>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.publish())
    }
}

impl<M> fmt::Debug for FanoutCall<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FanoutCall({} {})", self.route.channel, self.event.packet)
    }
}
