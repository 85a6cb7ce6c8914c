//! The state machine of the permits: a word for the counts, a short lock for waiters and for what follows a change of flow.
//!
//! While nobody waits, grant and return are one compare-and-swap. It knows no runtime: wakers and a clock are given.

use std::collections::{BTreeMap, BTreeSet};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use slab::Slab;

use super::limits::PermitLimits;
use super::word::Word;
use super::{Closed, Flow, HostPermits, PermitStatus};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, lock};

/// A place in the queue of waiting sources; a smaller one waits longer.
pub(super) type Ticket = u64;

pub(super) struct Core {
    limits: PermitLimits,
    word: AtomicU64,
    /// Whether a job has started since all permits were last in use.
    started: AtomicBool,
    slow: Mutex<Slow>,
    clock: fn() -> Instant,
    /// Who may keep a permit from one job of a restored backlog to the next; `None` in these permits themselves.
    keepers: Option<HostPermits>,
}

/// Under the lock. The word is `slow` exactly while somebody waits, some of the reserve is lent, or `closed` is set.
struct Slow {
    closed: bool,
    next: Ticket,
    waiting: BTreeMap<Ticket, Waiter>,
    /// Those of them that may have of the reserve.
    turns: BTreeSet<Ticket>,
    /// Granted to a source that has not come for it yet.
    granted: BTreeMap<Ticket, Granted>,
    /// How many of the reserve are in use.
    lent: u32,
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

/// What somebody asks for.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// At most so many, at least one.
    pub(super) count: u32,
    /// Whether it may be of the reserve.
    pub(super) for_turn: bool,
}

/// Permits that were granted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Granted {
    pub(super) count: u32,
    /// Whether they are of the reserve.
    pub(super) lent: bool,
}

/// Wakes when dropped: outside the lock.
#[derive(Default)]
struct Wakes(Vec<Waker>);

impl Drop for Wakes {
    #[inline]
    fn drop(&mut self) {
        if !self.0.is_empty() {
            std::mem::take(&mut self.0).into_iter().for_each(Waker::wake);
        }
    }
}

impl Core {
    pub(super) fn new(limits: PermitLimits, keepers: Option<HostPermits>, clock: fn() -> Instant) -> Self {
        let slow = Slow {
            closed: false,
            next: 0,
            waiting: BTreeMap::new(),
            turns: BTreeSet::new(),
            granted: BTreeMap::new(),
            lent: 0,
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
            keepers,
        }
    }

    pub(super) fn keepers(&self) -> Option<&HostPermits> {
        self.keepers.as_ref()
    }

    pub(super) fn word(&self) -> Word {
        Word(self.word.load(Ordering::Acquire))
    }

    /// How many may be in use before those wait that may not have of the reserve.
    const fn cap(&self, lent: u32) -> u32 {
        self.limits.max() - self.limits.reserve() + lent
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

    /// Grants if any is free and nobody waits; of the reserve, if nobody waits for that.
    pub(super) fn try_acquire(&self, wanted: Wanted) -> Option<Granted> {
        let cap = self.cap(0);
        let step = |word: Word| {
            if word.slow() {
                None
            } else {
                word.grant(wanted.count, cap, &self.limits)
            }
        };
        let Some((old, new, count)) = self.step(step) else {
            return self.try_slowly(wanted);
        };
        self.follow(old, new, cap);
        Some(Granted { count, lent: false })
    }

    /// One that counts as queued at once: what it is for goes straight into an owner's queue.
    pub(super) fn try_queued(&self, for_turn: bool) -> Option<Granted> {
        let cap = self.cap(0);
        let step = |word: Word| {
            let grant = if word.slow() {
                None
            } else {
                word.grant(1, cap, &self.limits)
            };
            grant.map(|(next, _)| (next.queue(), ()))
        };
        let Some((old, new, ())) = self.step(step) else {
            let granted = self.try_slowly(Wanted { count: 1, for_turn })?;
            self.queue();
            return Some(granted);
        };
        self.follow(old, new, cap);
        Some(Granted { count: 1, lent: false })
    }

    /// What follows from a grant without a lock.
    #[inline]
    fn follow(&self, old: Word, new: Word, cap: u32) {
        if old.paused() != new.paused() || new.in_use() == cap {
            let mut wakes = Wakes::default();
            self.settle(&mut lock(&self.slow), &mut wakes);
        }
    }

    fn try_slowly(&self, wanted: Wanted) -> Option<Granted> {
        // Without a reserve, whoever is not served at once finds a closed host, or others that wait.
        if self.limits.reserve() == 0 || !(wanted.for_turn || self.word().slow()) {
            return None;
        }
        let mut wakes = Wakes::default();
        let mut slow = lock(&self.slow);
        if slow.closed {
            return None;
        }
        self.grant(&mut slow, wanted, &mut wakes)
    }

    /// Grants under the lock what nobody waits for.
    fn grant(&self, slow: &mut Slow, wanted: Wanted, wakes: &mut Wakes) -> Option<Granted> {
        let (cap, mut granted) = (self.cap(slow.lent), None);
        if slow.waiting.is_empty() {
            let grant = |word: Word| word.grant(wanted.count, cap, &self.limits);
            granted = self.step(grant).map(|(.., count)| Granted { count, lent: false });
        }
        if granted.is_none() && wanted.for_turn && slow.turns.is_empty() {
            granted = self.lend(slow, wanted.count);
        }
        self.settle(slow, wakes);
        granted
    }

    /// Grants of the reserve.
    fn lend(&self, slow: &mut Slow, want: u32) -> Option<Granted> {
        let want = want.min(self.limits.reserve() - slow.lent);
        let lend = |word: Word| {
            let (next, count) = word.grant(want, self.limits.max(), &self.limits)?;
            Some((next.with_slow(true), count))
        };
        let (.., count) = self.step(lend)?;
        slow.lent += count;
        Some(Granted { count, lent: true })
    }

    pub(super) fn poll_acquire(
        &self,
        ticket: &mut Option<Ticket>,
        wanted: Wanted,
        waker: &Waker,
    ) -> Poll<Result<Granted, Closed>> {
        if ticket.is_none()
            && let Some(granted) = self.try_acquire(wanted)
        {
            return Poll::Ready(Ok(granted));
        }
        let want = wanted.count;
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
            if let Some(Granted { count, lent }) = slow.granted.remove(&place) {
                drop(slow);
                if let Some(count) = count.checked_sub(want).filter(|extra| *extra > 0) {
                    self.give_back(Granted { count, lent }, 0);
                }
                let count = count.min(want);
                return Poll::Ready(Ok(Granted { count, lent }));
            }
        }
        if slow.closed {
            return Poll::Ready(Err(Closed));
        }
        // Either a permit was returned meanwhile, or the word says from here on that somebody waits, and whoever
        // returns one looks here.
        self.step(|word| (!word.slow()).then(|| (word.with_slow(true), ())));
        if let Some(granted) = self.grant(&mut slow, wanted, &mut wakes) {
            self.mark(&slow);
            return Poll::Ready(Ok(granted));
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
        if wanted.for_turn {
            slow.turns.insert(place);
        }
        *ticket = Some(place);
        Poll::Pending
    }

    pub(super) fn cancel(&self, place: Ticket) {
        let mut slow = lock(&self.slow);
        let waiter = slow.waiting.remove(&place);
        slow.turns.remove(&place);
        let granted = slow.granted.remove(&place);
        self.mark(&slow);
        drop(slow);
        drop(waiter);
        if let Some(granted) = granted {
            self.give_back(granted, 0);
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

    /// A job is about to start, and its permit stays in use.
    pub(super) fn passed_on(&self) {
        self.started();
        let mut wakes = Wakes::default();
        self.settle(&mut lock(&self.slow), &mut wakes);
    }

    #[inline]
    pub(super) fn give_back(&self, granted: Granted, queued: u32) {
        let Granted { count, lent } = granted;
        if lent {
            return self.give_back_lent(count, queued);
        }
        let Some((old, new, ())) = self.step(|word| Some((word.give_back(count, queued, &self.limits), ()))) else {
            return;
        };
        if new.slow() || old.paused() != new.paused() {
            self.given_back(lock(&self.slow));
        }
    }

    #[cold]
    fn give_back_lent(&self, count: u32, queued: u32) {
        // The word is slow while it is lent, so that nobody takes it for one of the others in between.
        let mut slow = lock(&self.slow);
        slow.lent -= count;
        self.step(|word| Some((word.give_back(count, queued, &self.limits), ())));
        self.given_back(slow);
    }

    /// What follows from it, where somebody waits or the flow changes.
    #[inline(never)]
    fn given_back(&self, slow: MutexGuard<'_, Slow>) {
        let (mut wakes, mut slow) = (Wakes::default(), slow);
        self.hand_on(&mut slow, &mut wakes);
        self.settle(&mut slow, &mut wakes);
        // Wakes outside the lock.
        drop(slow);
    }

    /// Grants what is free to those that wait, the oldest first; of the reserve, the oldest of those that may have it.
    fn hand_on(&self, slow: &mut Slow, wakes: &mut Wakes) {
        while let Some((place, waiter)) = slow.waiting.first_key_value() {
            let (place, want, cap) = (*place, waiter.want, self.cap(slow.lent));
            let Some((.., count)) = self.step(|word| word.grant(want, cap, &self.limits)) else {
                break;
            };
            slow.serve(place, Granted { count, lent: false }, wakes);
        }
        while let Some(place) = slow.turns.first().copied() {
            let want = slow.waiting.get(&place).map_or(1, |waiter| waiter.want);
            let Some(granted) = self.lend(slow, want) else { break };
            slow.serve(place, granted, wakes);
        }
        self.mark(slow);
    }

    /// Takes the mark off the word once nobody waits and nothing is lent.
    fn mark(&self, slow: &Slow) {
        if slow.waiting.is_empty() && slow.lent == 0 && !slow.closed {
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
        if word.in_use() >= self.cap(slow.lent) && self.started.swap(false, Ordering::Relaxed) {
            slow.full_since = (self.clock)();
        }
    }

    pub(super) fn close(&self) {
        let mut wakes = Wakes::default();
        let mut slow = lock(&self.slow);
        slow.closed = true;
        self.step(|word| Some((word.with_slow(true), ())));
        slow.turns.clear();
        wakes.0.extend(
            std::mem::take(&mut slow.waiting)
                .into_values()
                .map(|waiter| waiter.waker),
        );
        wakes
            .0
            .extend(slow.watchers.iter_mut().filter_map(|(_, waker)| waker.take()));
        drop(slow);
        if let Some(keepers) = &self.keepers {
            keepers.close();
        }
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
        let old = slow.set_watcher(key, waker);
        drop(slow);
        drop(old);
        Poll::Pending
    }

    /// Asks what was published: the word may be `paused` for a moment that nobody hears of.
    pub(super) fn poll_running(&self, key: usize, waker: &Waker) -> Poll<()> {
        let mut slow = lock(&self.slow);
        if slow.closed || !slow.flow.paused {
            return Poll::Ready(());
        }
        let old = slow.set_watcher(key, waker);
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
        let full = word.in_use() >= self.cap(slow.lent);
        PermitStatus {
            limits: self.limits,
            reserved: word.in_use() - word.queued(),
            queued: word.queued(),
            lent: slow.lent,
            waiting: slow.waiting.len(),
            flow: slow.flow,
            paused_time: slow.paused_before + paused_now,
            stalled: full.then(|| now.saturating_duration_since(slow.full_since)),
        }
    }
}

#[cfg(test)]
impl Core {
    /// What was granted to the one that waited there and has not come for it yet.
    pub(super) fn granted(&self, place: Ticket) -> Option<Granted> {
        lock(&self.slow).granted.get(&place).copied()
    }
}

impl Slow {
    /// Whom to wake when the flow changes; the one before, to drop outside the lock.
    fn set_watcher(&mut self, key: usize, waker: &Waker) -> Option<Waker> {
        self.watchers.get_mut(key)?.replace(waker.clone())
    }

    /// Gives what was granted to the one that waits at `place`.
    fn serve(&mut self, place: Ticket, granted: Granted, wakes: &mut Wakes) {
        let Some(waiter) = self.waiting.remove(&place) else {
            return;
        };
        self.turns.remove(&place);
        self.granted.insert(place, granted);
        wakes.0.push(waiter.waker);
    }
}
