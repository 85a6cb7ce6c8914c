//! An owner: its queue, the one section in which jobs are admitted, its gate, and the run of its turns.
//!
//! It knows no runtime, so that it can be model-checked: workers call [`Run::run`], wakers call back.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use super::slot::{Parked, Slot};
use super::worker::Budget;
use super::{Abandoned, Job, Turn, guarded};
use crate::error::ErrorKind;
use crate::permit::Permit;
use crate::sync::{Mutex, lock};

/// Something with work, for a worker to run.
pub(super) trait Run: Send + Sync {
    /// Runs what is there, within the budget. An owner that has work beyond it is back in the ready set.
    fn run(self: Arc<Self>, budget: &mut Budget<'_>);
}

/// The ready set of a host.
pub(super) type Ready = super::ready::ReadySet<Arc<dyn Run>>;

/// An owner. Clones are the same owner; with the last one, turns that wait are dropped.
pub(crate) struct Owner<J: Job>(Arc<Inner<J>>);

impl<J: Job> Clone for Owner<J> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<J: Job> fmt::Debug for Owner<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Owner").field(&self.status()).finish()
    }
}

/// A job that was not admitted, and all that came with it.
pub(crate) struct Rejected<J> {
    /// Why.
    pub(crate) kind: ErrorKind,
    /// The job.
    pub(crate) job: J,
    /// Its permit, still reserved.
    pub(crate) permit: Permit,
}

/// An owner at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnerStatus {
    /// Jobs admitted since it was made.
    pub(crate) admitted: u64,
    /// Jobs that have not started.
    pub(crate) queued: usize,
    /// Turns that have started and not ended.
    pub(crate) active: usize,
    /// Turns that ended in a panic.
    pub(crate) panicked: u64,
}

pub(super) struct Inner<J: Job> {
    this: Weak<Inner<J>>,
    ready: Arc<Ready>,
    gate: Gate,
    state: Mutex<State<J>>,
}

/// When a job may become a turn.
#[derive(Clone, Copy, Debug)]
struct Gate {
    /// Turns that may be under way at once. With 1, a turn that waits keeps the gate.
    turns: usize,
}

struct State<J: Job> {
    /// Why nothing is admitted, or `None`.
    closed: Option<ErrorKind>,
    /// Turns were dropped; none starts.
    stopped: bool,
    /// In the ready set, or about to be.
    ready: bool,
    status: OwnerStatus,
    jobs: VecDeque<(J, Permit)>,
    /// Places of turns that were woken.
    woken: VecDeque<usize>,
    /// Whether a woken turn comes before a new job.
    woken_first: bool,
    slots: Vec<Arc<Slot<J>>>,
    free: Vec<usize>,
    /// Who waits for the end.
    drains: Vec<Waker>,
}

impl<J: Job> State<J> {
    fn may_start(&self, gate: Gate) -> bool {
        !self.jobs.is_empty() && self.status.active < gate.turns
    }

    fn has_work(&self, gate: Gate) -> bool {
        !self.stopped && (!self.woken.is_empty() || self.may_start(gate))
    }

    /// Whether the owner must be put into the ready set, by whoever asks.
    fn becomes_ready(&mut self, gate: Gate) -> bool {
        let becomes = !self.ready && self.has_work(gate);
        self.ready |= becomes;
        becomes
    }

    fn is_drained(&self) -> bool {
        self.closed.is_some() && self.jobs.is_empty() && self.status.active == 0
    }

    /// Those to wake because everything has ended.
    fn drained(&mut self) -> Vec<Waker> {
        if self.is_drained() {
            std::mem::take(&mut self.drains)
        } else {
            Vec::new()
        }
    }
}

/// What a worker does next for an owner.
enum Next<J: Job> {
    Start(J, Permit),
    Resume(Arc<Slot<J>>),
    Leave,
}

/// What became of the turn that a worker polled last.
enum Last {
    Nothing,
    Ended,
    Panicked,
    Again(usize),
}

/// A free place and its waker, in a worker's hand from one turn to the next.
struct Hand<J: Job> {
    slot: Arc<Slot<J>>,
    waker: Waker,
}

impl<J: Job> Hand<J> {
    fn new(slot: Arc<Slot<J>>) -> Self {
        Self {
            waker: Waker::from(slot.clone()),
            slot,
        }
    }
}

impl<J: Job> Owner<J> {
    pub(super) fn with_ready(ready: &Arc<Ready>, turns: usize) -> Self {
        Self(Inner::new(ready.clone(), turns))
    }

    /// Admits a job, or says why not. Verdict, place in the order and queue are one section; where it fails nothing
    /// has changed. The number is the job's place in the order of acceptance, from 1.
    ///
    /// # Errors
    /// The kind that [`Owner::close`] was given.
    pub(crate) fn admit(&self, job: J, permit: Permit) -> Result<u64, Rejected<J>> {
        self.0.admit(job, permit)
    }

    /// Admits nothing from here on. What was admitted goes on.
    pub(crate) fn close(&self, kind: ErrorKind) {
        let mut state = lock(&self.0.state);
        state.closed.get_or_insert(kind);
        let drains = state.drained();
        drop(state);
        drains.into_iter().for_each(Waker::wake);
    }

    /// Waits until the owner is closed and every job and turn of it has ended.
    pub(crate) async fn drained(&self) {
        poll_fn(|cx| {
            let mut state = lock(&self.0.state);
            if state.is_drained() {
                return Poll::Ready(());
            }
            if !state.drains.iter().any(|waker| waker.will_wake(cx.waker())) {
                state.drains.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// Closes it and abandons, once each, the jobs that have not started and the turns that have not ended: those
    /// that wait here and now, one that is being polled as soon as its poll returns.
    pub(crate) fn stop(&self, kind: ErrorKind) {
        self.0.stop(kind);
    }

    /// Its figures.
    pub(crate) fn status(&self) -> OwnerStatus {
        let state = lock(&self.0.state);
        OwnerStatus {
            queued: state.jobs.len(),
            ..state.status
        }
    }
}

impl<J: Job> Inner<J> {
    fn new(ready: Arc<Ready>, turns: usize) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            ready,
            gate: Gate { turns: turns.max(1) },
            state: Mutex::new(State {
                closed: None,
                stopped: false,
                ready: false,
                status: OwnerStatus::default(),
                jobs: VecDeque::new(),
                woken: VecDeque::new(),
                woken_first: true,
                slots: Vec::new(),
                free: Vec::new(),
                drains: Vec::new(),
            }),
        })
    }

    fn admit(self: &Arc<Self>, job: J, mut permit: Permit) -> Result<u64, Rejected<J>> {
        let mut state = lock(&self.state);
        if let Some(kind) = state.closed {
            drop(state);
            return Err(Rejected { kind, job, permit });
        }
        permit.queue();
        state.jobs.push_back((job, permit));
        state.status.admitted += 1;
        let place = state.status.admitted;
        let ready = state.becomes_ready(self.gate);
        drop(state);
        if ready {
            self.ready.push(self.clone());
        }
        Ok(place)
    }

    /// A turn that waits at `place` was woken.
    pub(super) fn woken(self: &Arc<Self>, place: usize) {
        let mut state = lock(&self.state);
        state.woken.push_back(place);
        let ready = state.becomes_ready(self.gate);
        drop(state);
        if ready {
            self.ready.push(self.clone());
        }
    }

    fn stop(&self, kind: ErrorKind) {
        let mut state = lock(&self.state);
        state.closed.get_or_insert(kind);
        state.stopped = true;
        state.woken.clear();
        let jobs = std::mem::take(&mut state.jobs);
        let turns: Vec<J::Turn> = state.slots.iter().filter_map(|slot| slot.stop()).collect();
        state.status.active -= turns.len();
        let drains = state.drained();
        drop(state);
        for (job, permit) in jobs {
            drop(permit);
            drop(guarded(|| job.abandon()));
        }
        for turn in turns {
            drop(guarded(|| turn.abandon(Abandoned::Stopped)));
        }
        drains.into_iter().for_each(Waker::wake);
    }

    /// Settles what became of the last turn and picks the next, in one section.
    fn next(self: &Arc<Self>, last: Last, spent: bool, entered: bool, hand: &mut Option<Hand<J>>) -> Next<J> {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        if entered {
            state.ready = false;
        }
        match last {
            Last::Nothing => {}
            Last::Ended => state.status.active -= 1,
            Last::Panicked => {
                state.status.active -= 1;
                state.status.panicked += 1;
            }
            Last::Again(place) if !state.stopped => state.woken.push_back(place),
            Last::Again(_) => {}
        }
        let next = if spent { Next::Leave } else { self.pick(state, hand) };
        if let Next::Leave = next
            && let Some(hand) = hand.take()
        {
            state.free.push(hand.slot.index());
        }
        // Work that is left is for another worker, or for this one after the others' owners.
        let ready = state.becomes_ready(self.gate);
        let drains = state.drained();
        drop(guard);
        if ready {
            self.ready.push(self.clone());
        }
        drains.into_iter().for_each(Waker::wake);
        next
    }

    fn pick(self: &Arc<Self>, state: &mut State<J>, hand: &mut Option<Hand<J>>) -> Next<J> {
        if state.stopped {
            return Next::Leave;
        }
        let may_start = state.may_start(self.gate);
        // In turns, so that turns that wake themselves and jobs that flood in cannot starve each other.
        let woken_first = state.woken_first;
        state.woken_first = !woken_first;
        if (woken_first || !may_start)
            && let Some(slot) = state.woken.pop_front().and_then(|place| state.slots.get(place))
        {
            return Next::Resume(slot.clone());
        }
        if may_start && let Some((job, permit)) = state.jobs.pop_front() {
            state.status.active += 1;
            if hand.is_none() {
                let slot = match state.free.pop().and_then(|place| state.slots.get(place)) {
                    Some(slot) => slot.clone(),
                    None => {
                        let slot = Arc::new(Slot::new(self.this.clone(), state.slots.len()));
                        state.slots.push(slot.clone());
                        slot
                    }
                };
                *hand = Some(Hand::new(slot));
            }
            return Next::Start(job, permit);
        }
        Next::Leave
    }

    /// Polls a turn in the place at hand. A turn that waits keeps the place.
    fn poll(mut turn: J::Turn, hand: &mut Option<Hand<J>>) -> Last {
        let Some(place) = hand else { return Last::Nothing };
        let poll = guarded(|| turn.poll(&mut Context::from_waker(&place.waker)));
        match poll {
            Ok(Poll::Ready(())) => match guarded(|| drop(turn)) {
                Ok(()) => Last::Ended,
                Err(_) => Last::Panicked,
            },
            Ok(Poll::Pending) => match place.slot.park(turn) {
                Parked::Waits => {
                    *hand = None;
                    Last::Nothing
                }
                Parked::Woken => {
                    let index = place.slot.index();
                    *hand = None;
                    Last::Again(index)
                }
                Parked::Stopped(turn) => {
                    drop(guarded(|| turn.abandon(Abandoned::Stopped)));
                    Last::Ended
                }
            },
            Err(text) => {
                drop(guarded(|| turn.abandon(Abandoned::Panicked(text))));
                Last::Panicked
            }
        }
    }
}

impl<J: Job> Run for Inner<J> {
    fn run(self: Arc<Self>, budget: &mut Budget<'_>) {
        let mut hand = None;
        let mut last = Last::Nothing;
        let mut entered = true;
        loop {
            let spent = !entered && budget.is_spent();
            match self.next(last, spent, std::mem::take(&mut entered), &mut hand) {
                Next::Leave => return,
                Next::Start(job, permit) => {
                    budget.begin(|| job.name());
                    let now = budget.now();
                    let turn = guarded(|| job.start(now));
                    permit.start();
                    last = match turn {
                        Ok(Some(turn)) => Self::poll(turn, &mut hand),
                        Ok(None) => Last::Ended,
                        Err(_) => Last::Panicked,
                    };
                }
                Next::Resume(slot) => {
                    last = match slot.take() {
                        None => Last::Nothing,
                        Some(turn) => {
                            budget.begin(|| turn.name());
                            let mut own = Some(Hand::new(slot));
                            let last = Self::poll(turn, &mut own);
                            if let Some(free) = own {
                                self.keep(&mut hand, free);
                            }
                            last
                        }
                    };
                }
            }
        }
    }
}

impl<J: Job> Inner<J> {
    /// Keeps a place that became free in the hand, or gives it back where the hand is full.
    fn keep(&self, hand: &mut Option<Hand<J>>, free: Hand<J>) {
        match hand {
            None => *hand = Some(free),
            Some(_) => lock(&self.state).free.push(free.slot.index()),
        }
    }
}
