//! Who waits for a permit to call a node of the own host, and its record with it. One task for each line takes the permits
//! and hands the records on, so that a caller that is not polled keeps neither a permit nor a place before others.
//!
//! It must not know what a record asks for.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::permit::{HostPermits, Permit, Source};
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
    lines: [Line; 3],
    /// Held while what was taken from a line goes to its node.
    delivering: Mutex<()>,
    /// Whether it is held.
    delivers: AtomicBool,
    runtime: Handle,
}

struct Line {
    /// Takes what is free at once.
    source: Source,
    /// Whether anybody waits, or what waited last is still on its way.
    crowded: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    /// In the order they came.
    waiting: BTreeMap<u64, Waits>,
    /// A task takes permits for them.
    served: bool,
}

struct Waits {
    to: Arc<OwnPeer>,
    record: Bytes,
    taken: oneshot::Sender<()>,
}

/// A place in a line; dropping it withdraws the record.
struct Place {
    lines: Arc<OwnLines>,
    kind: Kind,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let waits = self.lines.line(self.kind).state.lock().waiting.remove(&self.number);
        drop(waits);
    }
}

impl OwnLines {
    /// Must be called on the host's runtime.
    pub(crate) fn new(permits: HostPermits) -> Arc<Self> {
        let sources = [permits.turn_source(), permits.source(), permits.source()];
        Arc::new(Self {
            lines: sources.map(|source| Line {
                source,
                crowded: AtomicBool::new(false),
                state: Mutex::default(),
            }),
            delivering: Mutex::default(),
            delivers: AtomicBool::new(false),
            permits,
            runtime: Handle::current(),
        })
    }

    pub(super) fn permits(&self) -> &HostPermits {
        &self.permits
    }

    fn line(&self, kind: Kind) -> &Line {
        let [send, request, outside] = &self.lines;
        match kind {
            Kind::Send => send,
            Kind::Request => request,
            Kind::Outside => outside,
        }
    }

    /// A permit, where one is free and nobody waits.
    pub(super) fn try_take(&self, kind: Kind) -> Option<Permit> {
        self.open_line(kind)?.source.try_one()
    }

    /// The same for what goes into an owner's queue next.
    pub(super) fn try_queued(&self, kind: Kind) -> Option<Permit> {
        self.open_line(kind)?.source.try_queued()
    }

    /// The line in which nobody waits.
    fn open_line(&self, kind: Kind) -> Option<&Line> {
        if kind == Kind::Outside && self.permits.is_paused() {
            return None;
        }
        let line = self.line(kind);
        let waits = line.crowded.load(Ordering::Acquire) || self.delivers.load(Ordering::Acquire);
        (!waits).then_some(line)
    }

    /// Waits for a permit, behind those that wait already; then the record is with the node. Dropping the future withdraws
    /// it for good.
    pub(super) fn send(
        self: &Arc<Self>,
        kind: Kind,
        to: Arc<OwnPeer>,
        record: Bytes,
    ) -> impl Future<Output = Result<(), Refused>> + Send + use<> {
        let (tell, taken) = oneshot::channel();
        let at = self.line(kind);
        let mut line = at.state.lock();
        at.crowded.store(true, Ordering::Release);
        let number = line.next;
        line.next += 1;
        let waits = Waits {
            to,
            record,
            taken: tell,
        };
        line.waiting.insert(number, waits);
        let served = std::mem::replace(&mut line.served, true);
        drop(line);
        let lines = self.clone();
        let place = Place { lines, kind, number };
        if !served {
            self.runtime.spawn(self.clone().serve(kind));
        }
        async move {
            let _place = place;
            taken.await.map_err(|_| Refused::Closed)
        }
    }

    /// Takes a permit for each that waits, until nobody does.
    async fn serve(self: Arc<Self>, kind: Kind) {
        let mut source = match kind {
            Kind::Send => self.permits.turn_source(),
            Kind::Request | Kind::Outside => self.permits.source(),
        };
        let mut flow = self.permits.watch();
        loop {
            if self.is_served(kind) {
                return;
            }
            if kind == Kind::Outside && self.permits.is_paused() {
                flow.running().await;
            }
            let granted = source.acquire(1).await;
            let Some(permit) = granted.ok().and_then(|mut grant| grant.take()) else {
                // The host stops; whoever waits hears of it as its record is dropped.
                let at = self.line(kind);
                let mut line = at.state.lock();
                line.served = false;
                at.crowded.store(false, Ordering::Release);
                let waiting = std::mem::take(&mut line.waiting);
                drop(line);
                drop(waiting);
                return;
            };
            let first = self.line(kind).state.lock().waiting.pop_first();
            // Its caller goes on once it hears of it. Whatever line that takes next, it comes behind.
            let order = self.delivering.lock();
            self.delivers.store(true, Ordering::Release);
            // Where nobody hears that it was taken, it was withdrawn a moment ago.
            if let Some((_, Waits { to, record, taken })) = first
                && taken.send(()).is_ok()
                && let Err(refused) = to.deliver(record, permit)
            {
                tracing::debug!(
                    target: "zlink::dispatch", event_id = "zlink.dispatch_error", %refused, reason = "shutdown",
                    outcome = "failed", action = "drop"
                );
            }
            self.delivers.store(false, Ordering::Release);
            drop(order);
        }
    }

    /// Whether nobody waits any more; then whoever comes next is served by another task.
    fn is_served(&self, kind: Kind) -> bool {
        let at = self.line(kind);
        let mut line = at.state.lock();
        let is_empty = line.waiting.is_empty();
        if is_empty {
            line.served = false;
            at.crowded.store(false, Ordering::Release);
        }
        is_empty
    }
}

impl fmt::Debug for OwnLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnLines")
    }
}
