//! A call from the queue to its end: what waits there, what it becomes, and what is said where it cannot. It must not know
//! which link it came over.

use std::num::NonZeroU64;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::time::Instant;

use crate::error::{Error, ErrorKind};
use crate::execution::{self, Abandoned, Job};
use crate::id::Rid;
use crate::message::CONTENT_TYPE;
use crate::message::metadata::MetadataView;
use crate::transport::BoxFuture;
use crate::wire::Span;

use super::super::context::{ChannelTurn, NodeTurn, Turn};
use super::super::dispatch::Refusal;
use super::super::flow::{Entered, Flow};
use super::super::reply::{ReplyRoute, ReplyTo};
use super::{Entry, Handlers, refuse};

/// A call that waits in its queue.
pub(crate) struct CallJob {
    pub(super) entry: Arc<Entry>,
    pub(super) record: Bytes,
    pub(super) metadata: Span,
    pub(super) content_type: Span,
    pub(super) payload: Span,
    pub(super) deadline: Option<Instant>,
    pub(super) caller: CalledBy,
    /// Where somebody traces.
    pub(super) flow: Option<Box<Flow>>,
}

/// A job is moved from hand to hand some ten times, and beyond this each of them is a call of `memcpy`.
#[cfg(not(any(zlink_loom, zlink_shuttle)))]
const _: () = assert!(size_of::<CallJob>() + size_of::<Option<crate::permit::Permit>>() <= 128);

/// Who called, as far as anybody asks.
pub(super) enum CalledBy {
    /// Of a message to a channel nobody asks.
    Anyone,
    /// A node, with a message to this one.
    Node(ReplyRoute),
    /// Somebody who waits for an answer.
    Waiting(ReplyTo),
}

impl CalledBy {
    /// Whom an answer is due.
    pub(super) fn reply(self) -> Option<ReplyTo> {
        match self {
            Self::Waiting(reply) => Some(reply),
            Self::Anyone | Self::Node(_) => None,
        }
    }

    fn waits(&self) -> bool {
        matches!(self, Self::Waiting(_))
    }

    /// Which node it was, where that is known.
    fn source(&self) -> Option<&Rid> {
        match self {
            Self::Anyone => None,
            Self::Node(route) => Some(route.rid()),
            Self::Waiting(reply) => reply.source(),
        }
    }
}

impl Job for CallJob {
    type Turn = CallTurn;

    fn start(self, now: Instant) -> Option<CallTurn> {
        let Self {
            entry,
            record,
            metadata,
            content_type,
            payload,
            deadline,
            caller,
            flow,
        } = self;
        if deadline.is_some_and(|deadline| deadline <= now) {
            // Its caller has ended it; an answer would find nobody.
            if let CalledBy::Waiting(reply) = caller {
                reply.too_late();
            }
            return None;
        }
        let source = match &entry.handlers {
            Handlers::Node(..) => caller.source().cloned(),
            Handlers::Channel(..) => None,
        };
        let reply = caller.reply();
        let is_request = reply.is_some();
        let nothing_beside = metadata.is_empty() && content_type.is_empty();
        let problem = || problem(metadata.of(&record), content_type.of(&record));
        let begun = match if nothing_beside { None } else { problem() } {
            Some(problem) => {
                let error = Error::not_executed(ErrorKind::ProtocolError, problem);
                Some(Err(Box::new(Refusal { error, reply })))
            }
            None => {
                let request = reply.is_some();
                let turn = Turn {
                    entry: entry.clone(),
                    metadata: if metadata.is_empty() {
                        Bytes::new()
                    } else {
                        metadata.share(&record)
                    },
                    correlation: reply.as_ref().and_then(|reply| NonZeroU64::new(reply.correlation())),
                    scope: OnceLock::new(),
                    running: OnceLock::new(),
                };
                let payload = payload.of(&record);
                // Written out: what a closure captures is moved once more.
                match (&entry.handlers, source) {
                    (Handlers::Channel(channel, handlers), _) => match handlers.get(request) {
                        Some(dispatch) => {
                            let channel = channel.clone();
                            Some(dispatch.start(ChannelTurn { turn, channel }, payload, reply))
                        }
                        None => None,
                    },
                    (Handlers::Node(mesh, handlers), Some(source)) => handlers.get(request).map(|dispatch| {
                        let mesh = mesh.clone();
                        dispatch.start(NodeTurn { turn, mesh, source }, payload, reply)
                    }),
                    (Handlers::Node(..), None) => None,
                }
            }
        };
        match begun {
            Some(Ok(running)) => Some(CallTurn {
                traced: flow.map(|flow| Box::new((entry.span(*flow), *flow))),
                running,
                entry,
                is_request,
            }),
            Some(Err(refusal)) => {
                refuse(&entry.drops, "decode_error", entry.handlers.surface(), *refusal);
                None
            }
            None => None,
        }
    }

    fn name(&self) -> String {
        self.entry.name(self.caller.waits())
    }

    fn abandon(self) {
        let error = Error::not_executed(ErrorKind::ShuttingDown, "the host stopped before the call could start");
        refuse(
            &self.entry.drops,
            "shutdown",
            self.entry.handlers.surface(),
            Refusal {
                error,
                reply: self.caller.reply(),
            },
        );
    }
}

/// A call whose handler has begun.
pub(crate) struct CallTurn {
    running: BoxFuture<'static, ()>,
    entry: Arc<Entry>,
    is_request: bool,
    /// Where somebody traces: what handlers log stands inside the span, and what they call belongs to the flow.
    traced: Option<Box<(tracing::Span, Flow)>>,
}

impl execution::Turn for CallTurn {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(traced) = &self.traced else {
            return self.running.as_mut().poll(cx);
        };
        let (span, flow) = traced.as_ref();
        let _entered = Entered::new(Some(*flow));
        let ended = span.in_scope(|| self.running.as_mut().poll(cx));
        if ended.is_ready() {
            tracing::debug!(target: "zlink::flow", parent: span, phase = "handled", flow_id = %flow.id);
        }
        ended
    }

    fn name(&self) -> String {
        self.entry.name(self.is_request)
    }

    fn abandon(self, why: Abandoned) {
        // The reply route inside the future answers when it is dropped.
        let (reason, text) = match &why {
            Abandoned::Panicked(text) => ("handler_exception", text.as_str()),
            Abandoned::Stopped => ("shutdown", "the host stopped before the handler ended"),
        };
        let action = if self.is_request { "reply_error" } else { "drop" };
        tracing::error!(
            target: "zlink::dispatch", event_id = "zlink.dispatch_error", surface = self.entry.handlers.surface(),
            packet_name = %self.entry.packet, outcome = "failed", reason, action, text
        );
    }
}

/// What is wrong with what stands beside a payload.
pub(crate) fn problem(metadata: &[u8], content_type: &[u8]) -> Option<String> {
    if !content_type.is_empty() && content_type != CONTENT_TYPE.as_bytes() {
        return Some("the content type is unknown here".to_owned());
    }
    if metadata.is_empty() {
        return None;
    }
    MetadataView::parse(metadata).err().map(|error| error.to_string())
}
