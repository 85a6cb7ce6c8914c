//! Where a link is in its life, and who is to be told when that changes. It must not know what its tasks do.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::transport::CloseReason;

/// Lets every task that is ready now run first. Unlike tokio's own, it does not ask the system for events each time.
pub(in crate::transport) async fn yield_once() {
    let mut yielded = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Who waits for changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watcher {
    DataReader = 0,
    CompletionReader = 1,
    Keeper = 2,
}

/// A link's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Both sides send.
    Open,
    /// The peer has ended; what it sent before is still read.
    Ending,
    /// This side has ended; what it took is still sent, until then.
    Lingering(Instant),
    /// Everything stops.
    Closed,
}

/// What is true of a link now.
#[derive(Clone, Debug)]
pub(super) struct Now {
    pub(super) phase: Phase,
    pub(super) admitted: bool,
    /// Lanes whose peer has sent its last byte.
    pub(super) ended_lanes: usize,
    /// Lanes whose last byte was written.
    pub(super) written_lanes: usize,
    /// How long the peer may be silent, by its own word.
    pub(super) ttl: Option<Duration>,
}

#[derive(Debug)]
struct Inner {
    now: Now,
    reason: Option<CloseReason>,
    version: u64,
    wakers: [Option<Waker>; 3],
}

/// The state of one link.
#[derive(Debug)]
pub(super) struct State(Mutex<Inner>);

impl State {
    pub(super) fn new() -> Self {
        let now = Now {
            phase: Phase::Open,
            admitted: false,
            ended_lanes: 0,
            written_lanes: 0,
            ttl: None,
        };
        Self(Mutex::new(Inner {
            now,
            reason: None,
            version: 0,
            wakers: [None, None, None],
        }))
    }

    pub(super) fn now(&self) -> Now {
        self.0.lock().now.clone()
    }

    /// Waits for a change that `seen` does not know.
    pub(super) fn poll_change(&self, watcher: Watcher, seen: &mut u64, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.0.lock();
        if inner.version != *seen {
            *seen = inner.version;
            return Poll::Ready(());
        }
        let waker = &mut inner.wakers[watcher as usize];
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Changes it, and wakes everybody where `change` says that it did.
    pub(super) fn change(&self, change: impl FnOnce(&mut Now) -> bool) {
        self.with(|inner| change(&mut inner.now));
    }

    fn with(&self, change: impl FnOnce(&mut Inner) -> bool) {
        let mut inner = self.0.lock();
        if !change(&mut inner) {
            return;
        }
        inner.version += 1;
        let wakers = inner.wakers.each_mut().map(Option::take);
        drop(inner);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    /// Ends it in order: sends what was taken until `deadline`. The first reason stays.
    pub(super) fn linger(&self, reason: CloseReason, deadline: Instant) {
        self.with(|inner| {
            let open = matches!(inner.now.phase, Phase::Open | Phase::Ending);
            if open {
                inner.reason.get_or_insert(reason);
                inner.now.phase = Phase::Lingering(deadline);
            }
            open
        });
    }

    /// Ends it at once. The first reason stays.
    pub(super) fn close(&self, reason: CloseReason) {
        self.with(|inner| {
            let open = inner.now.phase != Phase::Closed;
            inner.reason.get_or_insert(reason);
            inner.now.phase = Phase::Closed;
            open
        });
    }

    /// Why it ended, once it has.
    pub(super) fn reason(&self) -> CloseReason {
        self.0.lock().reason.clone().unwrap_or(CloseReason::PeerClosed)
    }
}
