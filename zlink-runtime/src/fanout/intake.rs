//! The subscriber of one channel: what a received message is, and the queue of those that its handlers get. It must not know
//! how publishers are found.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::time::Instant;

use crate::channel::{Entered, Filters, Flow, Handler, Outbound, is_traced, problem};
use crate::error::ErrorKind;
use crate::execution::{self, Abandoned, Job, Owner, Rejected};
use crate::id::{ChannelName, MAX_ID_BYTES};
use crate::permit::{HostPermits, Permit};
use crate::transport::{BoxFuture, Received};
use crate::wire::{self, OperationName, Span};

use super::context::FanoutTurn;
use super::topic::{BEACON, BEACON_TOPIC, Subscribed, is_reserved};

/// What an [`Intake`] is made of.
pub(crate) struct IntakeConfig {
    pub(crate) channel: ChannelName,
    pub(crate) handlers: Vec<Handler<FanoutTurn>>,
    pub(crate) subscribed: Subscribed,
    pub(crate) queue: Owner<EventJob>,
    pub(crate) outbound: Outbound,
    pub(crate) filters: Filters,
    pub(crate) permits: HostPermits,
    /// The greatest record, in bytes.
    pub(crate) max_record: usize,
}

/// The subscriber of one channel.
pub(crate) struct Intake {
    pub(super) channel: ChannelName,
    handlers: Vec<Handler<FanoutTurn>>,
    pub(super) subscribed: Subscribed,
    pub(super) queue: Owner<EventJob>,
    pub(super) outbound: Outbound,
    pub(super) filters: Filters,
    pub(super) permits: HostPermits,
    pub(super) max_record: usize,
}

impl fmt::Debug for Intake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Intake({})", self.channel)
    }
}

/// What came from a publisher.
pub(super) enum Heard {
    Beacon,
    /// Something for a handler: it needs a permit.
    Event(Event),
    /// An event that nobody here asked for.
    Unwanted,
    /// An event that cannot be used, of which there is a record now.
    Dropped,
    /// It speaks another language.
    Broken(&'static str),
}

/// An event whose handler is known.
pub(super) struct Event {
    handler: usize,
    topic: String,
    record: Bytes,
    payload: Span,
    flow: Option<Box<Flow>>,
}

impl Intake {
    pub(crate) fn new(config: IntakeConfig) -> Arc<Self> {
        Arc::new(Self {
            channel: config.channel,
            handlers: config.handlers,
            subscribed: config.subscribed,
            queue: config.queue,
            outbound: config.outbound,
            filters: config.filters,
            permits: config.permits,
            max_record: config.max_record,
        })
    }

    /// What a message is. Nothing of its payload is looked at.
    pub(super) fn hear(&self, received: Received) -> Heard {
        let Received { topic, record, frames } = received;
        if is_reserved(&topic) {
            return if topic == BEACON_TOPIC && record == BEACON && frames == 2 {
                Heard::Beacon
            } else {
                Heard::Broken("a malformed beacon")
            };
        }
        match self.event(&topic, record, frames) {
            Ok(Some(event)) if self.subscribed.wants(&topic) => Heard::Event(event),
            Ok(_) => Heard::Unwanted,
            Err((reason, why)) => {
                self.dropped(reason, &why);
                Heard::Dropped
            }
        }
    }

    /// `None` where it is right and has no handler.
    fn event(&self, topic: &[u8], record: Bytes, frames: usize) -> Result<Option<Event>, (&'static str, String)> {
        let invalid = |why: &str| ("invalid_frame", why.to_owned());
        if frames != 2 {
            return Err(invalid("an event has other than two frames"));
        }
        let topic = std::str::from_utf8(topic)
            .ok()
            .filter(|topic| topic.len() <= MAX_ID_BYTES);
        let topic = topic.ok_or_else(|| invalid("a topic is not UTF-8 of at most 255 bytes"))?;
        let call = wire::parse_event(&record).map_err(|malformed| invalid(malformed.what))?;
        let OperationName::Named { channel, packet } = call.operation else {
            return Err(invalid("an event names its packet by number"));
        };
        if channel.of(&record) != self.channel.as_str().as_bytes() {
            return Err(invalid("an event of another channel"));
        }
        if let Some(problem) = problem(call.metadata.of(&record), call.content_type.of(&record)) {
            return Err(("decode_error", problem));
        }
        let name = packet.of(&record);
        let found = self
            .handlers
            .iter()
            .position(|handler| handler.packet.as_str().as_bytes() == name);
        let Some(handler) = found else {
            if self.subscribed.wants(topic.as_bytes()) {
                self.dropped("no_handler", &format!("nothing handles {}", name.escape_ascii()));
            }
            return Ok(None);
        };
        Ok(Some(Event {
            handler,
            topic: topic.to_owned(),
            payload: call.payload,
            flow: is_traced().then(|| Box::new(Flow::of_record(call.flow.of(&record)))),
            record,
        }))
    }

    /// Puts an event into the queue.
    pub(super) fn admit(self: &Arc<Self>, event: Event, permit: Permit) {
        let job = EventJob {
            intake: self.clone(),
            event,
        };
        if let Err(Rejected { kind, permit, .. }) = self.queue.admit(job, permit) {
            drop(permit);
            self.dropped("shutdown", &format!("this host takes no new work: {kind}"));
        }
    }

    fn dropped(&self, reason: &'static str, error: &dyn fmt::Display) {
        tracing::warn!(
            target: "zlink::dispatch", event_id = "zlink.dispatch_error", surface = "classic_fanout", kind = "send",
            outcome = "failed", reason, action = "drop", channel_name = self.channel.as_str(), %error
        );
    }

    /// Takes no more events.
    pub(super) fn seal(&self) {
        self.queue.close(ErrorKind::ShuttingDown);
    }
}

/// An event that waits for its handler.
pub(crate) struct EventJob {
    intake: Arc<Intake>,
    event: Event,
}

impl EventJob {
    fn handler(&self) -> Option<&Handler<FanoutTurn>> {
        self.intake.handlers.get(self.event.handler)
    }

    fn shown(intake: &Intake, packet: &str) -> String {
        format!("event {packet} of fanout {}", intake.channel)
    }
}

impl Job for EventJob {
    type Turn = EventTurn;

    fn start(self, _: Instant) -> Option<EventTurn> {
        let handler = self.handler()?.clone();
        let Self { intake, event } = self;
        let turn = FanoutTurn {
            intake: intake.clone(),
            packet: handler.packet.clone(),
            topic: event.topic,
            scope: OnceLock::new(),
            running: OnceLock::new(),
        };
        match handler.begin(turn, event.payload.of(&event.record)) {
            Ok(running) => Some(EventTurn {
                running,
                intake,
                packet: handler.packet,
                flow: event.flow,
            }),
            Err(error) => {
                intake.dropped("decode_error", &error);
                None
            }
        }
    }

    fn name(&self) -> String {
        let packet = self.handler().map(|handler| handler.packet.as_str());
        Self::shown(&self.intake, packet.unwrap_or_default())
    }

    fn abandon(self) {
        self.intake
            .dropped("shutdown", &"the host stopped before the event could be handled");
    }
}

/// An event whose handler has begun.
pub(crate) struct EventTurn {
    running: BoxFuture<'static, ()>,
    intake: Arc<Intake>,
    packet: crate::id::PacketName,
    /// Where somebody traces: what the handler calls belongs to it.
    flow: Option<Box<Flow>>,
}

impl execution::Turn for EventTurn {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let _entered = self.flow.as_ref().map(|flow| Entered::new(Some(**flow)));
        self.running.as_mut().poll(cx)
    }

    fn name(&self) -> String {
        EventJob::shown(&self.intake, self.packet.as_str())
    }

    fn abandon(self, why: Abandoned) {
        let (reason, text) = match &why {
            Abandoned::Panicked(text) => ("handler_exception", text.as_str()),
            Abandoned::Stopped => ("shutdown", "the host stopped before the handler ended"),
        };
        self.intake.dropped(reason, &text);
    }
}
