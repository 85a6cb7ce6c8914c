//! This host's own node as its callers see it: a peer that takes records like any other, without a link. It must not know
//! what the records ask for.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;

use crate::call::{Key, Pending};
use crate::clock;
use crate::error::Error;
use crate::id::{LinkId, Rid};
use crate::limit::PAYLOAD_BYTES;
use crate::message::codec::{self, EncodeError, Inline, Kept, Message};
use crate::permit::Permit;
use crate::transport::{BoxFuture, Record, Refused};
use crate::wire::{self, Incoming};

use super::inbound::Inbound;
use super::objects::Arrived;

mod lines;

pub(crate) use lines::OwnLines;
pub(super) use lines::{Claim, Kind};

/// The link number that stands for this host itself.
pub(super) const LOCAL: LinkId = LinkId(0);

/// What stands before a reply in its record, at most.
const REPLY_HEAD: usize = 16;

/// The own node of one mesh.
pub(crate) struct OwnPeer {
    rid: Rid,
    inbound: Weak<Inbound>,
    pending: Pending,
    /// The greatest record, as the mesh agrees on with others.
    max_record: usize,
    lines: Arc<OwnLines>,
}

impl OwnPeer {
    pub(crate) fn new(rid: Rid, inbound: &Arc<Inbound>, max_record: usize, lines: Arc<OwnLines>) -> Self {
        Self {
            rid,
            inbound: Arc::downgrade(inbound),
            pending: inbound.pending().clone(),
            max_record,
            lines,
        }
    }

    pub(super) fn rid(&self) -> &Rid {
        &self.rid
    }

    pub(super) fn max_record(&self) -> usize {
        self.max_record
    }

    /// Whether all permits but those of the reserve have been in use for so long and no job has started.
    pub(super) fn is_stalled(&self, limit: Duration) -> bool {
        self.lines
            .permits()
            .status()
            .stalled
            .is_some_and(|since| since >= limit)
    }

    /// Takes a record where a permit is free and nobody waits.
    pub(super) fn try_send(self: &Arc<Self>, kind: Kind, record: Record<'_>) -> Result<(), Refused> {
        if record.len() > self.max_record {
            return Err(Refused::TooLarge);
        }
        let permit = self.lines.try_take(kind).ok_or(Refused::Full)?;
        let mut whole = Vec::with_capacity(record.len());
        whole.extend_from_slice(record.head);
        whole.extend_from_slice(record.payload);
        self.deliver(whole.into(), permit)
    }

    /// Waits for a permit, behind those that wait already. Dropping the future withdraws the record for good, unless the
    /// claim says that it is taken.
    pub(super) fn send(
        self: &Arc<Self>,
        kind: Kind,
        record: Vec<u8>,
    ) -> (BoxFuture<'static, Result<(), Refused>>, Claim) {
        let (delivery, claim) = self.lines.send(kind, self.clone(), record.into());
        (Box::pin(delivery), claim)
    }

    fn deliver(self: &Arc<Self>, record: Bytes, permit: Permit) -> Result<(), Refused> {
        let inbound = self.inbound.upgrade().ok_or(Refused::Closed)?;
        match wire::parse(&record) {
            Ok(Incoming::Call(call)) => inbound.own_call(self, record, call, permit, clock::now()),
            Ok(incoming) => match Arrived::of(&incoming) {
                Some(what) => inbound.own_objects(self, record, what, permit, clock::now()),
                // Nothing else is sent here.
                None => return Err(Refused::Closed),
            },
            Err(_) => return Err(Refused::Closed),
        }
        Ok(())
    }

    /// At most this many bytes can a payload have here, beside which stands that much.
    pub(super) fn most_beside(&self, head: usize) -> usize {
        self.max_record.saturating_sub(head).min(PAYLOAD_BYTES)
    }

    /// A permit for what goes into an owner's queue next, where one is free and nobody waits.
    pub(super) fn try_queued(&self, kind: Kind) -> Option<Permit> {
        self.lines.try_queued(kind)
    }

    /// Ends a request of this host with its reply, as the value that it is.
    pub(super) fn answer<R: Message>(&self, correlation: u64, reply: R) -> Result<Result<(), Refused>, EncodeError> {
        match codec::measure(&reply) {
            Some(bytes) if bytes <= self.most_beside(REPLY_HEAD) => {
                self.pending
                    .reply(Key::from_wire(correlation), LOCAL, Kept::value(reply));
                Ok(Ok(()))
            }
            // By its bytes it is decided, and said, what is wrong with it.
            _ => codec::encode(&reply, |payload| self.reply(correlation, payload)),
        }
    }

    /// Ends a request of this host with its reply, unless that is larger than any other node could send it.
    pub(super) fn reply(&self, correlation: u64, payload: &[u8]) -> Result<(), Refused> {
        let head = wire::reply_head(correlation).to_bytes();
        if head.as_slice().len() + payload.len() > self.max_record {
            return Err(Refused::TooLarge);
        }
        self.pending
            .reply(Key::from_wire(correlation), LOCAL, Bytes::copy_from_slice(payload));
        Ok(())
    }

    /// The same with an error.
    pub(super) fn fail(&self, correlation: u64, error: Error) {
        self.pending.fail(Key::from_wire(correlation), LOCAL, error);
    }
}

impl fmt::Debug for OwnPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnPeer({})", self.rid)
    }
}
