//! The workers of a host: tasks that take ready owners and run their turns inline.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::gate::Ready;
use super::watchdog::Watchdog;
use crate::clock;
use crate::limit::{OWNER_JOBS, OWNER_TIME, WORKER_JOBS};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, lock};

/// The workers of one host. Dropping it lets them go once nothing is ready.
pub(crate) struct Workers {
    ready: Arc<Ready>,
    beats: Arc<[Beat]>,
    tasks: Vec<JoinHandle<()>>,
    watchdog: Option<Watchdog>,
}

impl Workers {
    /// Starts `count` workers (at least one) on `runtime`.
    pub(crate) fn spawn(runtime: &Handle, count: usize) -> Self {
        let ready = Arc::new(Ready::new());
        let beats: Arc<[Beat]> = (0..count.max(1)).map(|_| Beat::default()).collect();
        let worker = |index| Worker {
            index,
            ready: ready.clone(),
            beats: beats.clone(),
        };
        // Turns poll tokio's own futures; on a budget, most of them would come back pending for no reason.
        let tasks = (0..beats.len())
            .map(|index| runtime.spawn(tokio::task::unconstrained(worker(index))))
            .collect();
        Self {
            ready,
            beats,
            tasks,
            watchdog: None,
        }
    }

    /// From now on, warns of every handler that blocks its worker for longer than `limit`.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub(crate) fn watch(&mut self, limit: Duration) -> std::io::Result<()> {
        for beat in self.beats.iter() {
            beat.watched.store(true, Ordering::Relaxed);
        }
        self.watchdog = Some(Watchdog::spawn(self.beats.clone(), limit)?);
        Ok(())
    }

    pub(super) fn ready(&self) -> &Arc<Ready> {
        &self.ready
    }

    /// What new owners are made with while they run.
    pub(crate) fn handle(&self) -> WorkersHandle {
        WorkersHandle(self.ready.clone())
    }

    /// What a watchdog reads: one beat per worker.
    #[cfg(test)]
    pub(super) fn beats(&self) -> &Arc<[Beat]> {
        &self.beats
    }

    /// Lets the workers go, and waits until they have gone: all that is ready has run.
    pub(crate) async fn join(mut self) {
        self.ready.close();
        for task in std::mem::take(&mut self.tasks) {
            // A worker does not panic; cancelled with its runtime, it is gone just as well.
            drop(task.await);
        }
    }
}

/// Leads to the workers of a host, and keeps none of them there.
#[derive(Clone)]
pub(crate) struct WorkersHandle(pub(super) Arc<Ready>);

impl Drop for Workers {
    fn drop(&mut self) {
        self.ready.close();
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").field("count", &self.beats.len()).finish()
    }
}

/// Shows from outside whether a worker is stuck in a handler that blocks its thread.
#[derive(Debug, Default)]
pub(super) struct Beat {
    beat: AtomicU64,
    /// Whether anybody wants to know what runs.
    watched: AtomicBool,
    operation: Mutex<String>,
}

impl Beat {
    /// The number of the turn it is in: two equal readings some time apart are one and the same poll. `None` while
    /// it is in none.
    pub(super) fn turn(&self) -> Option<u64> {
        let beat = self.beat.load(Ordering::Relaxed);
        (beat % 2 == 1).then_some(beat / 2)
    }

    /// What runs, as people call it.
    pub(super) fn operation(&self) -> String {
        lock(&self.operation).clone()
    }

    fn begin(&self, number: u64, name: impl FnOnce() -> String) {
        if self.watched.load(Ordering::Relaxed) {
            // No turn while the name changes: a name belongs to the turn that is seen before and after it is read.
            self.beat.store(number * 2, Ordering::Relaxed);
            *lock(&self.operation) = name();
        }
        self.beat.store(number * 2 + 1, Ordering::Relaxed);
    }
}

/// What a worker may do before it lets others on: each owner before the next owner, and itself before its runtime.
pub(super) struct Budget<'a> {
    beat: Option<&'a Beat>,
    number: u64,
    started: Instant,
    /// The last look at the clock.
    now: Instant,
    /// Jobs since this worker was last polled.
    jobs: u32,
    /// Jobs of this owner.
    owner: u32,
    spent: bool,
}

impl<'a> Budget<'a> {
    pub(super) fn new(beat: Option<&'a Beat>) -> Self {
        let number = beat.map_or(0, |beat| beat.beat.load(Ordering::Relaxed) / 2);
        let now = clock::now();
        Self {
            beat,
            number,
            started: now,
            now,
            jobs: 0,
            owner: 0,
            spent: false,
        }
    }

    /// The time at the last look at the clock.
    pub(super) fn now(&self) -> Instant {
        self.now
    }

    /// A turn begins.
    pub(super) fn begin(&mut self, name: impl FnOnce() -> String) {
        self.jobs += 1;
        self.owner += 1;
        self.number += 1;
        if let Some(beat) = self.beat {
            beat.begin(self.number, name);
        }
    }

    /// Whether the owner has had its share. The clock is read after 1, 2, 4, 8 jobs and every 16: often enough to
    /// notice slow handlers at once, seldom enough to cost nothing with fast ones.
    pub(super) fn is_spent(&mut self) -> bool {
        if self.owner >= OWNER_JOBS {
            return true;
        }
        // In a model no time passes: it must run the same way twice.
        if cfg!(any(zlink_loom, zlink_shuttle)) {
            return false;
        }
        if self.jobs.is_power_of_two() || self.jobs.is_multiple_of(16) {
            self.now = clock::now();
            self.spent = self.now.duration_since(self.started) >= OWNER_TIME;
        }
        self.spent
    }

    /// The next owner begins; `false` where the runtime's other tasks come first.
    fn next_owner(&mut self) -> bool {
        self.owner = 0;
        !self.spent && self.jobs < WORKER_JOBS
    }

    /// No turn is polled from here on.
    fn rest(&self) {
        if let Some(beat) = self.beat {
            beat.beat.store(self.number * 2, Ordering::Relaxed);
        }
    }
}

struct Worker {
    index: usize,
    ready: Arc<Ready>,
    beats: Arc<[Beat]>,
}

impl Future for Worker {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut budget = Budget::new(self.beats.get(self.index));
        loop {
            let Some(owner) = ready!(self.ready.poll_take(self.index, cx.waker())) else {
                return Poll::Ready(());
            };
            owner.run(&mut budget);
            budget.rest();
            if !budget.next_owner() {
                // This way, not by waking itself: it comes back only after the runtime has looked at its sockets.
                return std::pin::pin!(tokio::task::yield_now()).poll(cx);
            }
        }
    }
}
