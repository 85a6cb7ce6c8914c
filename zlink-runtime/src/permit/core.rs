//! The state machine of the permits: a word for the counts, a short lock for waiters and for what follows a change of flow.
//!
//! While nobody waits, grant and return are one compare-and-swap. It knows no runtime: wakers and a clock are given.

use std::collections::BTreeMap;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use slab::Slab;

use super::limits::PermitLimits;
use super::word::Word;
use super::{Closed, Flow, PermitStatus};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, lock};

/// A place in the queue of waiting sources; a smaller one waits longer.
pub(super) type Ticket = u64;

pub(super) struct Core {
    limits: PermitLimits,
    word: AtomicU64,
    /// Whether a job has started since all permits were last in use.
    started: AtomicBool,
    slow: Mutex<Slow>,
    clock: fn() -> Instant,
}

/// Under the lock. The word is `slow` exactly while somebody waits or `closed` is set.
struct Slow {
    closed: bool,
    next: Ticket,
    waiting: BTreeMap<Ticket, Waiter>,
    /// Granted to a source that has not come for it yet.
    granted: BTreeMap<Ticket, u32>,
    flow: Flow,
    watchers: Slab<Option<Waker>>,
    paused_since: Option<Instant>,
    paused_before: Duration,
    full_since: Instant,
}

struct Waiter {
    want: u32,
    waker: Waker,
}

/// Wakes when dropped: outside the lock.
#[derive(Default)]
struct Wakes(Vec<Waker>);

impl Drop for Wakes {
    fn drop(&mut self) {
        self.0.drain(..).for_each(Waker::wake);
    }
}

impl Core {
    pub(super) fn new(limits: PermitLimits, clock: fn() -> Instant) -> Self {
        let slow = Slow {
            closed: false,
            next: 0,
            waiting: BTreeMap::new(),
            granted: BTreeMap::new(),
            flow: Flow::default(),
            watchers: Slab::new(),
            paused_since: None,
            paused_before: Duration::ZERO,
            full_since: clock(),
        };
        Self {
            limits,
            word: AtomicU64::new(0),
            started: AtomicBool::new(true),
            slow: Mutex::new(slow),
            clock,
        }
    }

    pub(super) fn word(&self) -> Word {
        Word(self.word.load(Ordering::Acquire))
    }

    /// Moves the word on by `step`, unless that says no.
    fn step<T>(&self, step: impl Fn(Word) -> Option<(Word, T)>) -> Option<(Word, Word, T)> {
        let mut old = self.word();
        loop {
            let (new, result) = step(old)?;
            match self
                .word
                .compare_exchange_weak(old.0, new.0, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Some((old, new, result)),
                Err(now) => old = Word(now),
            }
        }
    }

    /// Grants if any is free and nobody waits.
    pub(super) fn try_acquire(&self, want: u32) -> Option<u32> {
        let step = |word: Word| {
            if word.slow() {
                None
            } else {
                word.grant(want, &self.limits)
            }
        };
        let (old, new, count) = self.step(step)?;
        if old.paused() != new.paused() || new.in_use() == self.limits.max() {
            let mut wakes = Wakes::default();
            self.settle(&mut lock(&self.slow), &mut wakes);
        }
        Some(count)
    }

    pub(super) fn poll_acquire(
        &self,
        ticket: &mut Option<Ticket>,
        want: u32,
        waker: &Waker,
    ) -> Poll<Result<u32, Closed>> {
        if ticket.is_none()
            && let Some(count) = self.try_acquire(want)
        {
            return Poll::Ready(Ok(count));
        }
        let mut wakes = Wakes::default();
        let mut slow = lock(&self.slow);
        if let Some(place) = *ticket {
            if let Some(waiter) = slow.waiting.get_mut(&place) {
                waiter.want = want;
                let old = std::mem::replace(&mut waiter.waker, waker.clone());
                // A waker's drop may run anything, this type's methods too.
                drop(slow);
                drop(old);
                return Poll::Pending;
            }
            *ticket = None;
            if let Some(count) = slow.granted.remove(&place) {
                drop(slow);
                if let Some(extra) = count.checked_sub(want).filter(|extra| *extra > 0) {
                    self.give_back(extra, 0);
                }
                return Poll::Ready(Ok(count.min(want)));
            }
        }
        if slow.closed {
            return Poll::Ready(Err(Closed));
        }
        // Either a permit was returned meanwhile, or the word says from here on that somebody waits, and whoever
        // returns one looks here.
        let grant = |word: Word| match word.grant(want, &self.limits) {
            Some((next, count)) => Some((next, Some(count))),
            None => Some((word.with_slow(true), None)),
        };
        if slow.waiting.is_empty()
            && let Some((_, _, Some(count))) = self.step(grant)
        {
            self.settle(&mut slow, &mut wakes);
            return Poll::Ready(Ok(count));
        }
        let place = slow.next;
        slow.next += 1;
        slow.waiting.insert(
            place,
            Waiter {
                want,
                waker: waker.clone(),
            },
        );
        *ticket = Some(place);
        Poll::Pending
    }

    pub(super) fn cancel(&self, place: Ticket) {
        let mut slow = lock(&self.slow);
        let waiter = slow.waiting.remove(&place);
        let count = slow.granted.remove(&place);
        self.mark(&slow);
        drop(slow);
        drop(waiter);
        if let Some(count) = count {
            self.give_back(count, 0);
        }
    }

    /// Counts one permit in use as queued.
    pub(super) fn queue(&self) {
        self.word.fetch_add(Word::ONE_QUEUED, Ordering::AcqRel);
    }

    /// A job is about to start; its permit returns next.
    pub(super) fn started(&self) {
        self.started.store(true, Ordering::Relaxed);
    }

    pub(super) fn give_back(&self, count: u32, queued: u32) {
        let step = |word: Word| Some((word.give_back(count, queued, &self.limits), ()));
        let Some((old, new, ())) = self.step(step) else { return };
        if new.slow() || old.paused() != new.paused() {
            let mut wakes = Wakes::default();
            let mut slow = lock(&self.slow);
            self.hand_on(&mut slow, &mut wakes);
            self.settle(&mut slow, &mut wakes);
        }
    }

    /// Grants what is free to those that wait, the oldest first.
    fn hand_on(&self, slow: &mut Slow, wakes: &mut Wakes) {
        while let Some(oldest) = slow.waiting.first_entry() {
            let want = oldest.get().want;
            let Some((_, _, count)) = self.step(|word| word.grant(want, &self.limits)) else {
                break;
            };
            let (place, waiter) = oldest.remove_entry();
            slow.granted.insert(place, count);
            wakes.0.push(waiter.waker);
        }
        self.mark(slow);
    }

    /// Takes the mark of waiters off the word once there are none.
    fn mark(&self, slow: &Slow) {
        if slow.waiting.is_empty() && !slow.closed {
            self.step(|word| word.slow().then(|| (word.with_slow(false), ())));
        }
    }

    /// Draws from the word as it is now what follows from it: the flow to publish, and since when all is in use.
    /// Whoever changed the word comes here after it, so the last one publishes the last state.
    fn settle(&self, slow: &mut Slow, wakes: &mut Wakes) {
        let word = self.word();
        if word.paused() != slow.flow.paused {
            let now = (self.clock)();
            slow.flow = Flow {
                version: slow.flow.version + 1,
                paused: word.paused(),
            };
            match slow.paused_since.take() {
                None => slow.paused_since = Some(now),
                Some(since) => slow.paused_before += now.saturating_duration_since(since),
            }
            wakes
                .0
                .extend(slow.watchers.iter_mut().filter_map(|(_, waker)| waker.take()));
        }
        if word.in_use() == self.limits.max() && self.started.swap(false, Ordering::Relaxed) {
            slow.full_since = (self.clock)();
        }
    }

    pub(super) fn close(&self) {
        let mut wakes = Wakes::default();
        let mut slow = lock(&self.slow);
        slow.closed = true;
        self.step(|word| Some((word.with_slow(true), ())));
        wakes.0.extend(
            std::mem::take(&mut slow.waiting)
                .into_values()
                .map(|waiter| waiter.waker),
        );
        wakes
            .0
            .extend(slow.watchers.iter_mut().filter_map(|(_, waker)| waker.take()));
    }

    pub(super) fn flow(&self) -> Flow {
        lock(&self.slow).flow
    }

    pub(super) fn watch(&self) -> (usize, u64) {
        let mut slow = lock(&self.slow);
        (slow.watchers.insert(None), slow.flow.version)
    }

    pub(super) fn poll_changed(&self, key: usize, seen: &mut u64, waker: &Waker) -> Poll<Option<Flow>> {
        let mut slow = lock(&self.slow);
        if slow.flow.version != *seen {
            *seen = slow.flow.version;
            return Poll::Ready(Some(slow.flow));
        }
        if slow.closed {
            return Poll::Ready(None);
        }
        let old = slow
            .watchers
            .get_mut(key)
            .and_then(|watcher| watcher.replace(waker.clone()));
        drop(slow);
        drop(old);
        Poll::Pending
    }

    pub(super) fn unwatch(&self, key: usize) {
        let waker = lock(&self.slow).watchers.try_remove(key);
        drop(waker);
    }

    pub(super) fn status(&self) -> PermitStatus {
        let slow = lock(&self.slow);
        let (word, now) = (self.word(), (self.clock)());
        let paused_now = slow
            .paused_since
            .map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let full = word.in_use() == self.limits.max();
        PermitStatus {
            limits: self.limits,
            reserved: word.in_use() - word.queued(),
            queued: word.queued(),
            waiting: slow.waiting.len(),
            flow: slow.flow,
            paused_time: slow.paused_before + paused_now,
            stalled: full.then(|| now.saturating_duration_since(slow.full_since)),
        }
    }
}
