//! Who waits for a permit to call a node of the own host, and its record with it. One task for each line takes the permits
//! and hands the records on, so that a caller that is not polled keeps neither a permit nor a place before others.
//!
//! It must not know what a record asks for.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::permit::{HostPermits, Permit, Source};
use crate::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use crate::sync::{Mutex, lock};
use crate::transport::Refused;

use super::OwnPeer;

/// Who calls, and so which permits it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::channel) enum Kind {
    /// A handler that awaits a send: of those kept for turns, too. What holds all others may be waiting for it.
    Send,
    /// A handler that awaits a reply.
    Request,
    /// Anybody else. It holds back while the host asks its peers to, or they would wait for as long as it likes to call.
    Outside,
}

/// The lines of one host, whatever the number of its nodes.
pub(crate) struct OwnLines {
    permits: HostPermits,
    lines: [(Source, Line<Waits>); 3],
    runtime: Handle,
}

struct Waits {
    to: Arc<OwnPeer>,
    record: Bytes,
    delivered: oneshot::Sender<Result<(), Refused>>,
}

/// What waits, in the order in which it came.
struct Line<W> {
    /// Whether anything waits, or what waited last is still on its way.
    crowded: AtomicBool,
    state: Mutex<State<W>>,
}

struct State<W> {
    next: u64,
    waiting: BTreeMap<u64, (W, Claim)>,
    /// A task takes permits for them.
    served: bool,
}

impl<W> Line<W> {
    fn new() -> Self {
        Self {
            crowded: AtomicBool::new(false),
            state: Mutex::new(State {
                next: 0,
                waiting: BTreeMap::new(),
                served: false,
            }),
        }
    }

    fn is_crowded(&self) -> bool {
        self.crowded.load(Ordering::Acquire)
    }

    /// The number of what waits from here on, and whether somebody has to serve the line for it.
    fn join(&self, waits: W, claim: Claim) -> (u64, bool) {
        let mut state = lock(&self.state);
        self.crowded.store(true, Ordering::Release);
        let number = state.next;
        state.next += 1;
        state.waiting.insert(number, (waits, claim));
        (number, !std::mem::replace(&mut state.served, true))
    }

    /// What that was, where it waits still.
    fn leave(&self, number: u64) -> Option<W> {
        let left = lock(&self.state).waiting.remove(&number);
        left.map(|(waits, _)| waits)
    }

    /// Hands on what came first, unless it was withdrawn a moment ago.
    fn hand_on(&self, deliver: impl FnOnce(W)) {
        let first = lock(&self.state).waiting.pop_first();
        if let Some((_, (waits, claim))) = first
            && claim.take()
        {
            deliver(waits);
        }
    }

    /// Whether nothing waits any more; then whoever comes next is served by another task.
    fn is_served(&self) -> bool {
        let mut state = lock(&self.state);
        let is_empty = state.waiting.is_empty();
        if is_empty {
            state.served = false;
            self.crowded.store(false, Ordering::Release);
        }
        is_empty
    }

    /// Nobody serves it any more: what waited.
    fn end(&self) -> BTreeMap<u64, (W, Claim)> {
        let mut state = lock(&self.state);
        state.served = false;
        self.crowded.store(false, Ordering::Release);
        std::mem::take(&mut state.waiting)
    }
}

/// How the wait of a record ends, once and for all: it is taken, or it is withdrawn.
#[derive(Clone, Debug, Default)]
pub(in crate::channel) struct Claim(Arc<AtomicU8>);

impl Claim {
    const WAITS: u8 = 0;
    const TAKEN: u8 = 1;
    const WITHDRAWN: u8 = 2;

    fn end(&self, how: u8) -> bool {
        let ended = self
            .0
            .compare_exchange(Self::WAITS, how, Ordering::AcqRel, Ordering::Acquire);
        ended.map_or_else(|before| before == how, |_| true)
    }

    /// Whether nobody gets it from here on. Where not, its node has it, or gets it at this moment.
    pub(in crate::channel) fn withdraw(&self) -> bool {
        self.end(Self::WITHDRAWN)
    }

    fn take(&self) -> bool {
        self.end(Self::TAKEN)
    }
}

/// A place in a line; dropping it withdraws the record.
struct Place {
    lines: Arc<OwnLines>,
    kind: Kind,
    number: u64,
    claim: Claim,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.claim.withdraw();
        let waits = self.lines.line(self.kind).1.leave(self.number);
        drop(waits);
    }
}

impl OwnLines {
    /// Must be called on the host's runtime.
    pub(crate) fn new(permits: HostPermits) -> Arc<Self> {
        let sources = [permits.turn_source(), permits.source(), permits.source()];
        Arc::new(Self {
            lines: sources.map(|source| (source, Line::new())),
            permits,
            runtime: Handle::current(),
        })
    }

    pub(super) fn permits(&self) -> &HostPermits {
        &self.permits
    }

    fn line(&self, kind: Kind) -> &(Source, Line<Waits>) {
        let [send, request, outside] = &self.lines;
        match kind {
            Kind::Send => send,
            Kind::Request => request,
            Kind::Outside => outside,
        }
    }

    /// A permit, where one is free and nobody waits.
    pub(super) fn try_take(&self, kind: Kind) -> Option<Permit> {
        self.free(kind)?.try_one()
    }

    /// The same for what goes into an owner's queue next.
    pub(super) fn try_queued(&self, kind: Kind) -> Option<Permit> {
        self.free(kind)?.try_queued()
    }

    /// What gives permits of that kind, where nobody waits for one.
    fn free(&self, kind: Kind) -> Option<&Source> {
        if kind == Kind::Outside && self.permits.is_paused() {
            return None;
        }
        let (source, line) = self.line(kind);
        (!line.is_crowded()).then_some(source)
    }

    /// Waits for a permit, behind those that wait already; then the record is with the node. Dropping the future withdraws
    /// it for good, unless it is taken by then, which the claim tells.
    pub(super) fn send(
        self: &Arc<Self>,
        kind: Kind,
        to: Arc<OwnPeer>,
        record: Bytes,
    ) -> (impl Future<Output = Result<(), Refused>> + Send + use<>, Claim) {
        let (tell, delivered) = oneshot::channel();
        let claim = Claim::default();
        let waits = Waits {
            to,
            record,
            delivered: tell,
        };
        let (number, is_first) = self.line(kind).1.join(waits, claim.clone());
        let lines = self.clone();
        let place = Place {
            lines,
            kind,
            number,
            claim: claim.clone(),
        };
        if is_first {
            self.runtime.spawn(self.clone().serve(kind));
        }
        let delivery = async move {
            let _place = place;
            delivered.await.unwrap_or(Err(Refused::Closed))
        };
        (delivery, claim)
    }

    /// Takes a permit for each that waits, until nobody does.
    async fn serve(self: Arc<Self>, kind: Kind) {
        let mut source = match kind {
            Kind::Send => self.permits.turn_source(),
            Kind::Request | Kind::Outside => self.permits.source(),
        };
        let mut flow = self.permits.watch();
        let line = &self.line(kind).1;
        loop {
            if line.is_served() {
                return;
            }
            if kind == Kind::Outside && self.permits.is_paused() {
                flow.running().await;
            }
            let granted = source.acquire(1).await;
            let Some(permit) = granted.ok().and_then(|mut grant| grant.take()) else {
                // The host stops; whoever waits hears of it as its record is dropped.
                drop(line.end());
                return;
            };
            line.hand_on(|waits| {
                let delivered = waits.to.deliver(waits.record, permit);
                // Its caller hears of it only now, so that whatever it sends next comes behind.
                let _ = waits.delivered.send(delivered);
            });
        }
    }
}

impl fmt::Debug for OwnLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnLines")
    }
}

#[cfg(test)]
#[cfg(zlink_loom)]
mod model;
