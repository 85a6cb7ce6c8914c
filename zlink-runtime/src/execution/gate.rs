//! A gate: the owners that share it, their turns, and the one section in which it is decided what runs next.
//!
//! It knows no runtime, so that it can be model-checked: workers call [`Run::run`], wakers call back. What an owner may
//! be asked is in `owner`; how turns are polled, in `run`.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::task::Waker;

use slab::Slab;
use tokio::time::Instant;

use super::Job;
use super::lane::{Chooser, Lane};
use super::place::{Hand, Places, Stand};
use super::queue::{Phase, Queue, Taken};
use super::run::{Last, Next};
use crate::limit::{OWNER_JOBS, OWNER_TIME};
use crate::permit::Permit;
use crate::sync::{Mutex, lock};

/// Something with work, for a worker to run.
pub(super) trait Run: Send + Sync {
    /// Runs what is there, within the budget. What has work beyond it is back in the ready set.
    fn run(self: Arc<Self>, budget: &mut super::worker::Budget<'_>);
}

/// The ready set of a host.
pub(super) type Ready = super::ready::ReadySet<Arc<dyn Run>>;

pub(super) struct Inner<J: Job> {
    this: Weak<Inner<J>>,
    ready: Arc<Ready>,
    /// Turns that may hold it at once. With 1, a turn that waits keeps all others out, unless it yields.
    turns: u32,
    /// Whether idle queues keep their buffers: right for a few owners, wrong for a million.
    roomy: bool,
    pub(super) state: Mutex<State<J>>,
}

pub(super) struct State<J: Job> {
    /// In the ready set, or about to be.
    ready: bool,
    /// Turns that hold the gate.
    pub(super) holders: u32,
    chooser: Chooser,
    first: Queue<J>,
    others: Slab<Queue<J>>,
    serials: u32,
    /// Owners with work in a lane, each once: application, lifecycle.
    lines: [VecDeque<u32>; 2],
    /// Jobs in a row of the first in the application line, and since when.
    share: u32,
    since: Option<Instant>,
    /// Places of turns that hold the gate and were woken.
    woken: VecDeque<u32>,
    /// Whether a woken turn comes before a new one.
    woken_first: bool,
    /// Places of turns that gave the gate back and were stopped: they end under it.
    pub(super) doomed: VecDeque<u32>,
    pub(super) places: Places<J>,
    /// What is held while this unit moves: records, bytes.
    pub(super) held: (usize, usize),
    /// Who waits for something of an owner: its end, its boundary.
    waits: Vec<Waker>,
}

impl<J: Job> State<J> {
    /// The queue of an owner; `None` where it is gone.
    #[inline]
    pub(super) fn queue(&mut self, at: u32) -> Option<&mut Queue<J>> {
        match at {
            0 => Some(&mut self.first),
            at => self.others.get_mut(at as usize - 1),
        }
    }

    pub(super) fn add(&mut self, claims: bool, phase: Phase) -> (u32, u32) {
        self.serials += 1;
        let queue = Queue::new(self.serials, claims, phase);
        let at = self.others.insert(queue) + 1;
        (u32::try_from(at).unwrap_or(u32::MAX), self.serials)
    }

    pub(super) fn remove(&mut self, at: u32) -> Option<Queue<J>> {
        self.lines.iter_mut().for_each(|line| line.retain(|other| *other != at));
        self.others.try_remove((at as usize).checked_sub(1)?)
    }

    /// Puts an owner into the lines that it has work for, behind the others.
    #[inline]
    pub(super) fn line_up(&mut self, at: u32) {
        for lane in [Lane::Application, Lane::Lifecycle] {
            let Some(queue) = self.queue(at) else { return };
            let stands = &mut queue.in_line[lane as usize];
            if !*stands && queue.is_ready(lane) {
                queue.in_line[lane as usize] = true;
                self.lines[lane as usize].push_back(at);
            }
        }
    }

    /// The first in line that still has work for the lane.
    fn front(&mut self, lane: Lane) -> Option<u32> {
        while let Some(at) = self.lines[lane as usize].front().copied() {
            match self.queue(at) {
                Some(queue) if queue.is_ready(lane) => return Some(at),
                Some(queue) => queue.in_line[lane as usize] = false,
                None => {}
            }
            self.lines[lane as usize].pop_front();
            self.share = 0;
        }
        None
    }

    /// The front has had its share, and others wait.
    fn rotate(&mut self, lane: Lane) {
        self.lines[lane as usize].rotate_left(1);
        self.share = 0;
    }

    fn has_work(&self, turns: u32) -> bool {
        let starts = || !self.doomed.is_empty() || self.lines.iter().any(|line| !line.is_empty());
        !self.woken.is_empty() || self.holders < turns && starts()
    }

    /// Wakes whoever waits for something that may have come true; outside the lock.
    pub(super) fn waits(&mut self, at: u32) -> Vec<Waker> {
        if self.waits.is_empty() || !self.queue(at).is_none_or(|queue| queue.is_at_rest()) {
            return Vec::new();
        }
        std::mem::take(&mut self.waits)
    }

    pub(super) fn wait(&mut self, waker: &Waker) {
        if !self.waits.iter().any(|other| other.will_wake(waker)) {
            self.waits.push(waker.clone());
        }
    }

    /// A turn that waits was woken, or has ended its wait before it began.
    fn wake(&mut self, at: u32) {
        let Some(place) = self.places.get(at) else { return };
        let (owner, stand) = (place.owner, place.stand);
        match stand {
            Stand::Running => place.woken = true,
            Stand::Resuming => {}
            Stand::Holding => self.woken.push_back(at),
            Stand::Yielded => {
                place.stand = Stand::Resuming;
                if let Some(queue) = self.queue(owner).filter(|queue| !queue.stopped) {
                    queue.push_resume(at);
                    self.line_up(owner);
                }
            }
        }
    }

    /// Takes a turn that waits and holds the gate out of its place, which stays its own.
    pub(super) fn take_held(&mut self, at: u32) -> Option<J::Turn> {
        self.woken.retain(|place| *place != at);
        let place = self.places.get(at)?;
        place.stand = Stand::Running;
        place.slot.take()
    }

    /// A turn waits, and has been noticed to.
    fn parked(&mut self, at: u32, woken: bool, yielded: bool) {
        let Some(place) = self.places.get(at) else { return };
        let woken = std::mem::take(&mut place.woken) || woken;
        place.stand = if yielded { Stand::Yielded } else { Stand::Holding };
        let owner = place.owner;
        self.holders -= u32::from(yielded);
        if self.queue(owner).is_none_or(|queue| queue.stopped) {
            // Stopped while it was polled: it ends where it would have gone on.
            if yielded {
                self.doomed.push_back(at);
            } else {
                self.woken.push_back(at);
            }
        } else if woken {
            self.wake(at);
        }
    }
}

impl<J: Job> Inner<J> {
    pub(super) fn new(ready: Arc<Ready>, turns: u32, roomy: bool, claims: bool, phase: Phase) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            ready,
            turns: turns.max(1),
            roomy,
            state: Mutex::new(State {
                ready: false,
                holders: 0,
                chooser: Chooser::default(),
                first: Queue::new(0, claims, phase),
                others: Slab::new(),
                serials: 0,
                lines: [VecDeque::new(), VecDeque::new()],
                share: 0,
                since: None,
                woken: VecDeque::new(),
                woken_first: true,
                doomed: VecDeque::new(),
                places: Places::new(),
                held: (0, 0),
                waits: Vec::new(),
            }),
        })
    }

    pub(super) fn is_exclusive(&self) -> bool {
        self.turns == 1
    }

    pub(super) fn host(&self) -> &Arc<Ready> {
        &self.ready
    }

    /// Ends a section that may have made work: puts the gate into the ready set where it must be, wakes who waits.
    #[inline]
    pub(super) fn leave(self: &Arc<Self>, mut state: crate::sync::MutexGuard<'_, State<J>>, waits: Vec<Waker>) {
        let becomes = !state.ready && state.has_work(self.turns);
        state.ready |= becomes;
        drop(state);
        if becomes {
            self.ready.push(self.clone());
        }
        waits.into_iter().for_each(Waker::wake);
    }

    /// The turn at `place` was woken.
    pub(super) fn woken(self: &Arc<Self>, place: u32) {
        let mut state = lock(&self.state);
        state.wake(place);
        self.leave(state, Vec::new());
    }

    /// Settles what became of the last turn and picks the next, in one section. `entered` is the first call of a run,
    /// `spent` asks to leave, `permit` is what the last turn has to give on.
    pub(super) fn next(
        self: &Arc<Self>,
        last: Last,
        permit: Option<Permit>,
        spent: bool,
        entered: bool,
        now: Instant,
        hand: &mut Option<Hand<J>>,
    ) -> Next<J> {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        if entered {
            state.ready = false;
        }
        let waits = Self::settle(state, last, hand);
        let unused = match (permit, last) {
            (Some(permit), Last::Ended { owner, .. } | Last::Parked { owner, .. }) => state.hand_on(owner, permit),
            (permit, _) => permit,
        };
        let next = if spent {
            Next::Leave
        } else {
            self.pick(state, hand, now)
        };
        if let Next::Leave = next {
            if let Some(hand) = hand.take() {
                state.places.put_back(hand.slot.index());
            }
            if let (false, Last::Ended { owner, .. }) = (self.roomy, last)
                && !state.has_work(self.turns)
            {
                state.shrink(owner);
            }
        }
        // Work that is left is for another worker, or for this one after the others' owners.
        self.leave(guard, waits);
        drop(unused);
        next
    }

    #[inline]
    fn settle(state: &mut State<J>, last: Last, hand: &mut Option<Hand<J>>) -> Vec<Waker> {
        match last {
            Last::Nothing => Vec::new(),
            Last::Parked {
                place, woken, yielded, ..
            } => {
                state.parked(place, woken, yielded);
                Vec::new()
            }
            Last::Ended { owner, panicked } => {
                state.holders -= 1;
                if let Some(queue) = state.queue(owner) {
                    queue.ended(panicked);
                }
                if let Some(hand) = hand {
                    state.places.clear(hand);
                }
                state.line_up(owner);
                state.waits(owner)
            }
        }
    }

    fn pick(self: &Arc<Self>, state: &mut State<J>, hand: &mut Option<Hand<J>>, now: Instant) -> Next<J> {
        // In turns, so that turns that wake themselves and jobs that flood in cannot starve each other.
        let woken_first = state.woken_first;
        state.woken_first = !woken_first;
        if woken_first && let Some(place) = state.woken.pop_front() {
            return state.go_on(place, hand);
        }
        if state.holders < self.turns {
            if let Some(place) = state.doomed.pop_front() {
                state.holders += 1;
                return state.go_on(place, hand);
            }
            let next = state.start(hand, now, &self.this);
            if !matches!(next, Next::Leave) {
                return next;
            }
        }
        match state.woken.pop_front() {
            Some(place) => state.go_on(place, hand),
            None => Next::Leave,
        }
    }
}

impl<J: Job> State<J> {
    fn go_on(&mut self, at: u32, hand: &mut Option<Hand<J>>) -> Next<J> {
        if let Some(hand) = hand.take() {
            self.places.put_back(hand.slot.index());
        }
        let Some(place) = self.places.get(at) else {
            return Next::Leave;
        };
        place.stand = Stand::Running;
        let (slot, owner) = (place.slot.clone(), place.owner);
        let stopped = self.queue(owner).is_none_or(|queue| queue.stopped);
        Next::Resume { slot, owner, stopped }
    }

    /// Begins or continues a turn for which the gate is free.
    #[inline]
    fn start(&mut self, hand: &mut Option<Hand<J>>, now: Instant, gate: &Weak<Inner<J>>) -> Next<J> {
        let fronts = [self.front(Lane::Application), self.front(Lane::Lifecycle)];
        let Some(lane) = self.chooser.pick(fronts[0].is_some(), fronts[1].is_some()) else {
            return Next::Leave;
        };
        let Some(owner) = fronts[lane as usize] else {
            return Next::Leave;
        };
        let Some(queue) = self.queue(owner) else {
            return Next::Leave;
        };
        let Some(taken) = queue.take(lane) else {
            return Next::Leave;
        };
        let (more, hands_on) = (queue.has(lane), queue.wants_permit());
        if !more {
            queue.in_line[lane as usize] = false;
            self.lines[lane as usize].pop_front();
            self.share = 0;
        } else if self.lines[lane as usize].len() > 1 {
            if lane == Lane::Lifecycle || self.has_had_its_share(now) {
                self.rotate(lane);
            }
        }
        self.holders += 1;
        match taken {
            Taken::Resume(place) => self.go_on(place, hand),
            Taken::Job(job, permit) => {
                let hand = hand.get_or_insert_with(|| self.places.take(gate));
                if let Some(place) = self.places.get(hand.slot.index()) {
                    place.used = true;
                    place.owner = owner;
                }
                Next::Start {
                    job,
                    permit,
                    owner,
                    hands_on,
                }
            }
        }
    }

    fn has_had_its_share(&mut self, now: Instant) -> bool {
        if self.share == 0 {
            self.since = Some(now);
        }
        self.share += 1;
        let long = || {
            self.since
                .is_some_and(|since| now.saturating_duration_since(since) >= OWNER_TIME)
        };
        // In a model no time passes: it must run the same way twice.
        self.share >= OWNER_JOBS || !cfg!(any(zlink_loom, zlink_shuttle)) && long()
    }

    /// The permit of a turn that has begun goes to its owner's next job, if that came without one.
    pub(super) fn hand_on(&mut self, owner: u32, permit: Permit) -> Option<Permit> {
        let Some(queue) = self.queue(owner) else {
            return Some(permit);
        };
        let unused = queue.give(permit).err();
        self.line_up(owner);
        unused
    }

    /// Gives the memory back that no idle gate needs.
    fn shrink(&mut self, owner: u32) {
        for line in &mut self.lines {
            *line = VecDeque::new();
        }
        self.woken = VecDeque::new();
        self.doomed = VecDeque::new();
        self.places.shrink();
        if let Some(queue) = self.queue(owner) {
            queue.shrink();
        }
    }
}
