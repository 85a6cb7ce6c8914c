//! The timers of a host: one scheduler for all of them, one task, one source of permits.
//!
//! A timer that is due waits here until it has a permit, and only then becomes a job. It must not know what a tick does.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::owner::OwnerKey;
use crate::clock;
use crate::error::ArgumentError;
use crate::permit::{HostPermits, Permit};

mod schedule;

use schedule::Schedule;
pub use schedule::{Overrun, Tick};

/// The timers of one host. Clones are the same timers.
#[derive(Clone)]
pub(crate) struct Timers(Arc<Inner>);

struct Inner {
    table: Mutex<Table>,
    /// Told when something is due earlier than before.
    earlier: Notify,
}

#[derive(Default)]
struct Table {
    timers: HashMap<(OwnerKey, Arc<str>), Timer>,
    /// Those that wait for their time.
    waiting: BTreeSet<(Instant, u64)>,
    /// Those that are due and wait for a permit, in order.
    due: VecDeque<u64>,
    keys: HashMap<u64, (OwnerKey, Arc<str>)>,
    /// The generation of the last registration, of any key.
    last: u64,
}

struct Timer {
    generation: u64,
    schedule: Schedule,
    /// When it is looked at next.
    at: Instant,
    registered: Registered,
    alive: Arc<AtomicBool>,
}

/// What makes a job of a tick and admits it.
type Deliver = Arc<dyn Fn(Tick, Pulse, Permit) + Send + Sync>;
/// Whether its owner may still run at this time.
type MayRun = Arc<dyn Fn(Instant) -> bool + Send + Sync>;

#[derive(Clone)]
struct Registered {
    deliver: Deliver,
    may_run: MayRun,
}

/// A tick under way, from its admission to its end. The next tick of its timer waits until it is dropped.
pub(crate) struct Pulse {
    timers: Timers,
    key: (OwnerKey, Arc<str>),
    generation: u64,
    alive: Arc<AtomicBool>,
    may_run: MayRun,
}

impl Pulse {
    /// Whether the tick may start: its timer is neither cancelled nor registered anew, and its owner not stale.
    pub(crate) fn may_start(&self, now: Instant) -> bool {
        self.alive.load(Ordering::Acquire) && (self.may_run)(now)
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.timers.ended(&self.key, self.generation);
    }
}

impl Timers {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner {
            table: Mutex::new(Table::default()),
            earlier: Notify::new(),
        }))
    }

    /// Registers a timer of `owner` under `name`, in place of the one of that name. Every tick is given to `deliver`,
    /// while `may_run` says that the owner's lease holds.
    ///
    /// # Errors
    /// A period outside 1 ms to `i32::MAX` ms; a bound of ticks to make up for outside 1 to `i32::MAX`.
    pub(crate) fn register(
        &self,
        owner: OwnerKey,
        name: &str,
        period: Duration,
        overrun: Overrun,
        may_run: impl Fn(Instant) -> bool + Send + Sync + 'static,
        deliver: impl Fn(Tick, Pulse, Permit) + Send + Sync + 'static,
    ) -> Result<u64, ArgumentError> {
        let period = clock::timeout("period", period)?;
        if let Overrun::CatchUpBounded(ticks) = overrun
            && !(1..=i32::MAX.unsigned_abs()).contains(&ticks)
        {
            return Err(ArgumentError::new("max_catch_up_ticks", "is outside 1..=2147483647"));
        }
        let key = (owner, Arc::<str>::from(name));
        let schedule = Schedule::new(clock::now(), period, overrun);
        let registered = Registered {
            deliver: Arc::new(deliver),
            may_run: Arc::new(may_run),
        };
        let mut table = self.0.table.lock();
        table.last += 1;
        let generation = table.last;
        let old = table.remove(&key);
        let timer = Timer {
            generation,
            schedule,
            at: schedule.due(),
            registered,
            alive: Arc::new(AtomicBool::new(true)),
        };
        table.waiting.insert((schedule.due(), generation));
        table.keys.insert(generation, key.clone());
        table.timers.insert(key, timer);
        drop(table);
        drop(old);
        self.0.earlier.notify_one();
        Ok(generation)
    }

    /// Ends a timer, unless it was registered anew since: no tick starts any more. One that has started goes on. Whether
    /// there was one.
    pub(crate) fn cancel_generation(&self, owner: OwnerKey, name: &str, generation: u64) -> bool {
        let key = (owner, Arc::from(name));
        let mut table = self.0.table.lock();
        let same = table
            .timers
            .get(&key)
            .is_some_and(|timer| timer.generation == generation);
        let removed = if same { table.remove(&key) } else { None };
        drop(table);
        removed.is_some()
    }

    /// Ends all timers of an owner.
    pub(crate) fn cancel_all(&self, owner: OwnerKey) {
        let mut table = self.0.table.lock();
        let keys: Vec<_> = table.timers.keys().filter(|key| key.0 == owner).cloned().collect();
        let removed: Vec<_> = keys.iter().map(|key| table.remove(key)).collect();
        drop(table);
        drop(removed);
    }

    /// Drives all of them until the permits are closed.
    pub(crate) async fn run(self, permits: HostPermits) {
        let mut source = permits.source();
        loop {
            let earlier = self.0.earlier.notified();
            let (due, next) = self.look();
            if due {
                let Ok(mut grant) = source.acquire(1).await else { return };
                if let Some(permit) = grant.take() {
                    self.deliver(permit);
                }
                continue;
            }
            match next {
                None => earlier.await,
                Some(next) => drop(tokio::time::timeout_at(next, earlier).await),
            }
        }
    }

    /// Moves what is due to those that wait for a permit: whether any does, and when the next one is due.
    fn look(&self) -> (bool, Option<Instant>) {
        let now = clock::now();
        let mut table = self.0.table.lock();
        while let Some((at, generation)) = table.waiting.first().copied().filter(|(at, _)| *at <= now) {
            table.waiting.remove(&(at, generation));
            table.due.push_back(generation);
        }
        (!table.due.is_empty(), table.waiting.first().map(|(at, _)| *at))
    }

    /// Delivers the tick that has waited longest. What was due several times is one tick here.
    fn deliver(&self, permit: Permit) {
        let now = clock::now();
        let mut table = self.0.table.lock();
        let Some(generation) = table.due.pop_front() else {
            return;
        };
        let Some((_, timer)) = table.timer(generation) else {
            return;
        };
        let may_run = timer.registered.may_run.clone();
        drop(table);
        let may_run = may_run(now);
        let mut table = self.0.table.lock();
        let Some((key, timer)) = table.timer(generation) else {
            return;
        };
        if !may_run {
            // An owner whose lease has run out has no ticks.
            timer.at = now + timer.schedule.period();
            let at = timer.at;
            table.waiting.insert((at, generation));
            return;
        }
        let Registered { deliver, may_run } = timer.registered.clone();
        let pulse = Pulse {
            timers: self.clone(),
            key,
            generation,
            alive: timer.alive.clone(),
            may_run,
        };
        let tick = timer.schedule.deliver(now);
        drop(table);
        deliver(tick, pulse, permit);
    }

    fn ended(&self, key: &(OwnerKey, Arc<str>), generation: u64) {
        let mut table = self.0.table.lock();
        let Some(timer) = table.timers.get_mut(key).filter(|timer| timer.generation == generation) else {
            return;
        };
        timer.schedule.ended(clock::now());
        timer.at = timer.schedule.due();
        let at = timer.at;
        table.waiting.insert((at, generation));
        drop(table);
        self.0.earlier.notify_one();
    }
}

impl Table {
    fn timer(&mut self, generation: u64) -> Option<((OwnerKey, Arc<str>), &mut Timer)> {
        let key = self.keys.get(&generation)?.clone();
        let timer = self.timers.get_mut(&key)?;
        Some((key, timer))
    }

    fn remove(&mut self, key: &(OwnerKey, Arc<str>)) -> Option<Timer> {
        let timer = self.timers.remove(key)?;
        timer.alive.store(false, Ordering::Release);
        self.waiting.remove(&(timer.at, timer.generation));
        self.keys.remove(&timer.generation);
        Some(timer)
    }
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers")
            .field("registered", &self.0.table.lock().timers.len())
            .finish()
    }
}
