//! The one answer a request gets, whatever becomes of its handler.

use std::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::id::Rid;
use crate::mesh::PeerLink;
use crate::message::codec::{self, EncodeError, Inline, Message};
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

impl ReplyRoute {
    /// The node there.
    pub(super) fn rid(&self) -> &Rid {
        match self {
            ReplyRoute::Link(peer) => peer.rid(),
            ReplyRoute::Local(own) => own.rid(),
        }
    }

    fn answer<R: Message>(&self, correlation: u64, reply: R) -> Result<Result<(), Refused>, EncodeError> {
        match self {
            ReplyRoute::Local(own) => own.answer(correlation, reply),
            ReplyRoute::Link(_) => codec::encode(&reply, |payload| self.answer_bytes(correlation, payload)),
        }
    }

    fn answer_bytes(&self, correlation: u64, payload: &[u8]) -> Result<(), Refused> {
        match self {
            ReplyRoute::Local(own) => own.reply(correlation, payload),
            ReplyRoute::Link(peer) => {
                let head = wire::reply_head(correlation).to_bytes();
                let head = head.as_slice();
                post(peer, Record { head, payload })
            }
        }
    }

    fn tell(&self, correlation: u64, error: &Error) {
        match self {
            ReplyRoute::Local(own) => own.fail(correlation, error.clone()),
            ReplyRoute::Link(peer) => {
                let record = wire::reply_failed(correlation, error);
                let whole = Record {
                    head: &record,
                    payload: &[],
                };
                if let Err(refused) = post(peer, whole) {
                    tracing::debug!(
                        target: "zlink::dispatch", event_id = "zlink.dispatch_error", %refused, peer = %peer.rid(),
                        reason = "reply_path_missing", outcome = "failed", action = "drop"
                    );
                }
            }
        }
    }
}

/// A request that must be answered. Dropped without an answer it answers by itself, so that a panic or a forced stop
/// leaves no caller waiting.
#[derive(Debug)]
pub(crate) struct ReplyTo {
    /// `None` once it is answered.
    route: Option<ReplyRoute>,
    correlation: u64,
}

impl ReplyTo {
    pub(super) fn new(route: ReplyRoute, correlation: u64) -> Self {
        Self {
            route: Some(route),
            correlation,
        }
    }

    /// The request's correlation.
    pub(crate) fn correlation(&self) -> u64 {
        self.correlation
    }

    /// The node that asked, while it is not answered.
    pub(super) fn source(&self) -> Option<&Rid> {
        self.route.as_ref().map(ReplyRoute::rid)
    }

    /// Answers with a reply. One that cannot be encoded, or is too large for the link, becomes an error, whole.
    pub(crate) fn answer<R: Message>(mut self, reply: R) -> Result<(), Error> {
        let Some(route) = self.route.take() else { return Ok(()) };
        let failed = match route.answer(self.correlation, reply) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(refused)) => {
                Error::unknown(ErrorKind::InternalFailure, format!("the reply was not sent: {refused}"))
            }
            Err(error) => Error::unknown(
                ErrorKind::InternalFailure,
                format!("the reply cannot be encoded: {error}"),
            ),
        };
        route.tell(self.correlation, &failed);
        Err(failed)
    }

    /// Answers with what another host answered.
    pub(crate) fn relay(mut self, payload: &[u8]) {
        let Some(route) = self.route.take() else { return };
        if let Err(refused) = route.answer_bytes(self.correlation, payload) {
            let text = format!("the reply was not sent: {refused}");
            route.tell(self.correlation, &Error::unknown(ErrorKind::InternalFailure, text));
        }
    }

    /// Answers with an error.
    pub(crate) fn fail(mut self, error: &Error) {
        if let Some(route) = self.route.take() {
            route.tell(self.correlation, error);
        }
    }

    /// Its request was not taken, and goes another way: nothing is owed here.
    pub(super) fn withdraw(mut self) {
        self.route = None;
    }

    /// Says that its deadline passed before it could start.
    pub(crate) fn too_late(self) {
        let text = "the deadline passed before it could start";
        self.fail(&Error::not_executed(ErrorKind::DeadlineExceeded, text));
    }
}

fn post(peer: &Arc<PeerLink>, record: Record<'_>) -> Result<(), Refused> {
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

impl Drop for ReplyTo {
    fn drop(&mut self) {
        let Some(route) = self.route.take() else { return };
        let error = if std::thread::panicking() {
            Error::unknown(ErrorKind::InternalFailure, "the handler panicked")
        } else {
            Error::unknown(ErrorKind::ShuttingDown, "the host stopped before the handler ended")
        };
        route.tell(self.correlation, &error);
    }
}
