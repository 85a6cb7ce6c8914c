//! The one answer a request gets, whatever becomes of its handler.

use std::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::mesh::PeerLink;
use crate::message::codec::{self, Inline, Message};
use crate::transport::{Lane, Record, Refused};
use crate::wire;

use super::own::OwnPeer;

/// Where an answer goes.
#[derive(Clone, Debug)]
pub(super) enum ReplyRoute {
    Link(Arc<PeerLink>),
    /// The caller is in this process.
    Local(Arc<OwnPeer>),
}

/// A request that must be answered. Dropped without an answer it answers by itself, so that a panic or a forced stop
/// leaves no caller waiting.
#[derive(Debug)]
pub(crate) struct ReplyTo {
    route: ReplyRoute,
    correlation: u64,
    answered: bool,
}

impl ReplyTo {
    pub(super) fn new(route: ReplyRoute, correlation: u64) -> Self {
        Self {
            route,
            correlation,
            answered: false,
        }
    }

    /// The request's correlation.
    pub(crate) fn correlation(&self) -> u64 {
        self.correlation
    }

    /// Answers with a reply. One that cannot be encoded, or is too large for the link, becomes an error, whole.
    pub(crate) fn answer<R: Message>(mut self, reply: &R) -> Result<(), Error> {
        self.answered = true;
        let sent = codec::encode(reply, |payload| match &self.route {
            ReplyRoute::Local(own) => own.reply(self.correlation, payload),
            ReplyRoute::Link(peer) => {
                let head = wire::reply_head(self.correlation).to_bytes();
                self.post(
                    peer,
                    Record {
                        head: head.as_slice(),
                        payload,
                    },
                )
            }
        });
        let failed = match sent {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(refused)) => {
                Error::unknown(ErrorKind::InternalFailure, format!("the reply was not sent: {refused}"))
            }
            Err(error) => Error::unknown(
                ErrorKind::InternalFailure,
                format!("the reply cannot be encoded: {error}"),
            ),
        };
        self.tell(&failed);
        Err(failed)
    }

    /// Answers with what another host answered.
    pub(crate) fn relay(self, payload: &[u8]) {
        let mut this = self;
        this.answered = true;
        let sent = match &this.route {
            ReplyRoute::Local(own) => own.reply(this.correlation, payload),
            ReplyRoute::Link(peer) => {
                let head = wire::reply_head(this.correlation).to_bytes();
                let head = head.as_slice();
                this.post(peer, Record { head, payload })
            }
        };
        if let Err(refused) = sent {
            let text = format!("the reply was not sent: {refused}");
            this.tell(&Error::unknown(ErrorKind::InternalFailure, text));
        }
    }

    /// Answers with an error.
    pub(crate) fn fail(mut self, error: &Error) {
        self.answered = true;
        self.tell(error);
    }

    /// Says that its deadline passed before it could start.
    pub(crate) fn too_late(self) {
        let text = "the deadline passed before it could start";
        self.fail(&Error::not_executed(ErrorKind::DeadlineExceeded, text));
    }

    fn tell(&self, error: &Error) {
        match &self.route {
            ReplyRoute::Local(own) => own.fail(self.correlation, error.clone()),
            ReplyRoute::Link(peer) => {
                let record = wire::reply_failed(self.correlation, error);
                if let Err(refused) = self.post(
                    peer,
                    Record {
                        head: &record,
                        payload: &[],
                    },
                ) {
                    tracing::debug!(
                        target: "zlink::dispatch", event_id = "zlink.dispatch_error", %refused, peer = %peer.rid(),
                        reason = "reply_path_missing", outcome = "failed", action = "drop"
                    );
                }
            }
        }
    }

    fn post(&self, peer: &Arc<PeerLink>, record: Record<'_>) -> Result<(), Refused> {
        match peer.try_send(Lane::Completion, record) {
            Err(Refused::Full) => {
                // The turn does not hold its place in the queue for a slow reader. The link reads no further requests
                // while replies to it wait, so these are bounded by what it has sent.
                let mut whole = Vec::with_capacity(record.len());
                whole.extend_from_slice(record.head);
                whole.extend_from_slice(record.payload);
                let sending = peer.send(Lane::Completion, whole);
                peer.runtime().spawn(async move {
                    // A link that ends has no caller any more.
                    let _ = sending.await;
                });
                Ok(())
            }
            other => other,
        }
    }
}

impl Drop for ReplyTo {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let error = if std::thread::panicking() {
            Error::unknown(ErrorKind::InternalFailure, "the handler panicked")
        } else {
            Error::unknown(ErrorKind::ShuttingDown, "the host stopped before the handler ended")
        };
        self.tell(&error);
    }
}
