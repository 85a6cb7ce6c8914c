//! A gate: the owners that share it, their turns, and the one section in which it is decided what runs next.
//!
//! It knows no runtime, so that it can be model-checked: workers call [`Run::run`], wakers call back. What an owner may
//! be asked is in `owner`; how turns are polled, in `run`.

use std::sync::Arc;
use std::task::Waker;

use tokio::time::Instant;

use super::Job;
use super::place::Hand;
use super::queue::Phase;
use super::run::{Held, Last, Next};
use crate::permit::Permit;
use crate::sync::{Mutex, lock};

mod state;

pub(super) use state::State;

/// Something with work, for a worker to run.
pub(super) trait Run: Send + Sync {
    /// Runs what is there, within the budget. What has work beyond it is back in the ready set.
    fn run(self: Arc<Self>, budget: &mut super::worker::Budget<'_>);
}

/// The ready set of a host.
pub(super) type Ready = super::ready::ReadySet<Arc<dyn Run>>;

pub(super) struct Inner<J: Job> {
    ready: Arc<Ready>,
    /// Turns that may hold it at once. With 1, a turn that waits keeps all others out, unless it yields.
    turns: u32,
    /// Whether idle queues keep their buffers: right for a few owners, wrong for a million.
    roomy: bool,
    pub(super) state: Mutex<State<J>>,
}

impl<J: Job> Inner<J> {
    pub(super) fn new(ready: Arc<Ready>, turns: u32, roomy: bool, claims: bool, phase: Phase) -> Arc<Self> {
        Arc::new(Self {
            ready,
            turns: turns.max(1),
            roomy,
            state: Mutex::new(State::new(claims, phase)),
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
        if !waits.is_empty() {
            waits.into_iter().for_each(Waker::wake);
        }
    }

    /// The turn at `place` was woken.
    pub(super) fn woken(self: &Arc<Self>, place: u32) {
        let mut state = lock(&self.state);
        state.wake(place);
        self.leave(state, Vec::new());
    }

    /// Settles what became of the last turn and picks the next, in one section. `entered` is the first call of a run,
    /// `spent` asks to leave, `permit` is what the last turn has to give on. The job of a start is then among what is `held`.
    pub(super) fn next(
        self: &Arc<Self>,
        last: Last,
        permit: Option<Permit>,
        spent: bool,
        entered: bool,
        now: Instant,
        held: &mut Held<J>,
    ) -> Next<J> {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        if entered {
            state.ready = false;
        }
        let waits = Self::settle(state, last, &mut held.hand);
        let unused = match (permit, last) {
            (Some(permit), Last::Ended { owner, .. } | Last::Parked { owner, .. }) => state.hand_on(owner, permit),
            (permit, _) => (permit, None),
        };
        let next = if spent {
            Next::Leave
        } else {
            self.pick(state, held, now)
        };
        if let Next::Leave = next {
            if let Some(hand) = held.hand.take() {
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

    #[inline(always)]
    fn pick(self: &Arc<Self>, state: &mut State<J>, held: &mut Held<J>, now: Instant) -> Next<J> {
        // In turns, so that turns that wake themselves and jobs that flood in cannot starve each other.
        let woken_first = state.woken_first;
        state.woken_first = !woken_first;
        if woken_first && let Some(place) = state.next_woken() {
            return state.go_on(place, &mut held.hand);
        }
        if state.holders < self.turns {
            if let Some(place) = state.next_doomed() {
                state.holders += 1;
                return state.go_on(place, &mut held.hand);
            }
            let next = state.start(held, now, self);
            if !matches!(next, Next::Leave) {
                return next;
            }
        }
        match state.next_woken() {
            Some(place) => state.go_on(place, &mut held.hand),
            None => Next::Leave,
        }
    }
}
