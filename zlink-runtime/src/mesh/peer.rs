//! One admitted link and what is known of its other end. It must not know the other links.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::clock;
use crate::id::{ChannelName, Generation, LinkId, Rid};
use crate::transport::{BoxFuture, CloseReason, Lane, Link, Record, Refused};

use super::info::{Hashed, NodeInfo, Operations};
use super::liveness::Liveness;

/// An admitted link.
pub(crate) struct PeerLink {
    link: Arc<dyn Link>,
    rid: Rid,
    generation: Generation,
    operations: Operations,
    /// The greatest record either side takes.
    max_record: usize,
    /// Another link to the same peer is used now; this one only finishes what it carries.
    /// Since when.
    retiring: OnceLock<Instant>,
    /// Nothing new is sent on it: another one is used, or it ends.
    is_over: AtomicBool,
    retire_sent: AtomicBool,
    retire_received: AtomicBool,
    liveness: Mutex<Liveness>,
    owed: Mutex<Owed>,
    runtime: Handle,
}

/// The service records that this side has yet to send on a link.
#[derive(Debug, Default)]
pub(super) struct Owed {
    /// One of them waits for room, on the data lane and on the completion lane.
    waits: [bool; 2],
    /// That this side takes the link as ready.
    pub(super) ready: bool,
    /// The answer to that probe.
    pub(super) answer: Option<u64>,
    /// What waits for room is an answer: until it comes, a peer only repeats what it asked.
    pub(super) answers: bool,
    /// That probe.
    pub(super) probe: Option<u64>,
    /// The revision of this side that the peer was told; a later one is owed.
    pub(super) told: u64,
    /// That this side needs the link no more.
    pub(super) retire: bool,
}

impl Owed {
    /// Whether one of them waits for room on that lane.
    pub(super) fn waits(&mut self, lane: Lane) -> &mut bool {
        let [data, completion] = &mut self.waits;
        match lane {
            Lane::Data => data,
            Lane::Completion => completion,
        }
    }
}

impl PeerLink {
    /// Takes the operations out of `info`: only the link needs them.
    /// The handshake has told the peer revision `told` of this side.
    pub(super) fn new(link: Arc<dyn Link>, info: &mut NodeInfo, max_record: usize, told: u64, ready: Instant) -> Self {
        Self {
            link,
            rid: info.rid.clone(),
            generation: info.generation,
            operations: std::mem::take(&mut info.operations),
            max_record,
            retiring: OnceLock::new(),
            is_over: AtomicBool::new(false),
            retire_sent: AtomicBool::new(false),
            retire_received: AtomicBool::new(false),
            liveness: Mutex::new(Liveness::new(ready)),
            owed: Mutex::new(Owed {
                told,
                ..Owed::default()
            }),
            runtime: Handle::current(),
        }
    }

    pub(crate) fn id(&self) -> LinkId {
        self.link.id()
    }

    pub(crate) fn rid(&self) -> &Rid {
        &self.rid
    }

    pub(crate) fn generation(&self) -> Generation {
        self.generation
    }

    /// The greatest record that this link carries, in bytes.
    pub(crate) fn max_record(&self) -> usize {
        self.max_record
    }

    /// The number under which the peer lists an operation, if it does.
    pub(crate) fn operation(&self, channel: Option<&Hashed<ChannelName>>, packet: &str, hash: u64) -> Option<u32> {
        self.operations.number(channel, packet, hash)
    }

    /// Takes a record where there is room. A link that was given up takes no new ones.
    pub(crate) fn try_send(&self, lane: Lane, record: Record<'_>) -> Result<(), Refused> {
        if lane == Lane::Data && self.retire_sent.load(Ordering::Acquire) {
            return Err(Refused::Closed);
        }
        self.link.try_send(lane, record)
    }

    /// Waits for room and takes the record; dropping the future withdraws it. A link that was given up takes no new ones.
    pub(crate) fn send(&self, lane: Lane, record: Vec<u8>) -> BoxFuture<'static, Result<(), Refused>> {
        if lane == Lane::Data && self.retire_sent.load(Ordering::Acquire) {
            return Box::pin(async { Err(Refused::Closed) });
        }
        self.link.send(lane, record)
    }

    /// Where what this link still has to do runs.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub(crate) fn link(&self) -> &Arc<dyn Link> {
        &self.link
    }

    pub(crate) fn close(&self, reason: CloseReason, linger: Duration) {
        self.link.close(reason, linger);
    }

    pub(super) fn liveness(&self) -> &Mutex<Liveness> {
        &self.liveness
    }

    pub(super) fn owed(&self) -> MutexGuard<'_, Owed> {
        self.owed.lock()
    }

    /// Whether it is still the one to use, once it was found to be.
    pub(crate) fn is_used(&self) -> bool {
        !self.is_over.load(Ordering::Acquire)
    }

    pub(super) fn is_used_no_more(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    pub(super) fn retire(&self) {
        let _ = self.retiring.set(clock::now());
    }

    pub(super) fn is_retiring(&self) -> bool {
        self.retiring.get().is_some()
    }

    /// Whether nothing more can follow on it: a sender that had found it before it retired has long put its record into
    /// the queue, and nobody waits there.
    pub(super) fn is_quiet(&self, now: Instant, patience: Duration) -> bool {
        let long_enough = self.retiring.get().is_some_and(|since| now >= *since + patience);
        long_enough && self.link.stats().waiting_senders == 0
    }

    /// Marks that this side said it needs the link no more. Returns whether that is news.
    pub(super) fn mark_retire_sent(&self) -> bool {
        !self.retire_sent.swap(true, Ordering::AcqRel)
    }

    pub(super) fn mark_retire_received(&self) {
        self.retire_received.store(true, Ordering::Release);
    }

    /// Whether both sides need it no more.
    pub(super) fn is_retired(&self) -> bool {
        self.retire_sent.load(Ordering::Acquire) && self.retire_received.load(Ordering::Acquire)
    }
}

impl fmt::Debug for PeerLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PeerLink({} {} {:?})", self.rid, self.generation, self.id())
    }
}
