//! How a worker runs what a gate picks: job by job, poll by poll, each panic contained.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::gate::{Inner, Run};
use super::place::Hand;
use super::queue::{Entry, Work};
use super::slot::Slot;
use super::worker::Budget;
use super::{Abandoned, Job, Turn, finish, guarded};

/// What a worker does next for a gate.
pub(super) enum Next<J: Job> {
    /// The job is with the worker.
    Start {
        owner: u32,
        /// The next job of this owner waits for the permit.
        hands_on: bool,
    },
    Resume {
        slot: Arc<Slot<J>>,
        owner: u32,
        /// Its owner was stopped: it is not polled again.
        stopped: bool,
    },
    Leave,
}

/// What a worker has in its hands from one pick to the next.
pub(super) struct Held<J: Job> {
    /// A place that was used and is free, or one for the job that starts.
    pub(super) hand: Option<Hand<J>>,
    /// The job that starts.
    pub(super) work: Work<J>,
}

/// What became of the turn that a worker had last.
#[derive(Clone, Copy)]
pub(super) enum Last {
    Nothing,
    Ended {
        owner: u32,
        panicked: bool,
    },
    Parked {
        place: u32,
        owner: u32,
        woken: bool,
        yielded: bool,
    },
}

impl<J: Job> Run for Inner<J> {
    fn run(self: Arc<Self>, budget: &mut Budget<'_>) {
        let (mut last, mut handed) = (Last::Nothing, None);
        let mut held = Held { hand: None, work: None };
        let mut entered = true;
        loop {
            let spent = !entered && budget.is_spent();
            let now = budget.now();
            let entered = std::mem::take(&mut entered);
            match self.next(last, handed.take(), spent, entered, now, &mut held) {
                Next::Leave => return,
                Next::Start { owner, hands_on } => {
                    budget.begin(|| name(&held.work));
                    let mut permit = None;
                    let turn = guarded(|| match held.work.take() {
                        Some(Entry::Work(job, with)) => {
                            permit = with;
                            job.start(now)
                        }
                        _ => None,
                    });
                    match permit {
                        Some(permit) if hands_on => handed = Some(permit.hand_on()),
                        Some(permit) => permit.start(),
                        None => {}
                    }
                    last = match turn {
                        Ok(Some(turn)) => poll(turn, owner, &mut held.hand),
                        Ok(None) => Last::Ended { owner, panicked: false },
                        Err(_) => Last::Ended { owner, panicked: true },
                    };
                }
                Next::Resume { slot, owner, stopped } => {
                    last = match slot.take() {
                        None => Last::Nothing,
                        Some(turn) => {
                            held.hand = Some(Hand::new(slot));
                            budget.begin(|| turn.name());
                            if stopped {
                                finish(None, || turn.abandon(Abandoned::Stopped));
                                Last::Ended { owner, panicked: false }
                            } else {
                                poll(turn, owner, &mut held.hand)
                            }
                        }
                    };
                }
            }
        }
    }
}

/// What people call the job that starts.
fn name<J: Job>(work: &Work<J>) -> String {
    match work {
        Some(Entry::Work(job, _)) => job.name(),
        _ => String::new(),
    }
}

/// Polls a turn in the place at hand. A turn that waits keeps the place.
fn poll<J: Job>(turn: J::Turn, owner: u32, hand: &mut Option<Hand<J>>) -> Last {
    let Some(place) = hand else { return Last::Nothing };
    let mut turn = Some(turn);
    let poll = guarded(|| {
        let poll = match &mut turn {
            Some(turn) => turn.poll(&mut Context::from_waker(&place.waker)),
            None => Poll::Ready(()),
        };
        if poll.is_ready() {
            // What it leaves behind is dropped before the gate is free.
            drop(turn.take());
        }
        poll
    });
    match (poll, turn) {
        (Ok(_), None) => Last::Ended { owner, panicked: false },
        (Ok(_), Some(turn)) => {
            let yielded = turn.has_yielded();
            let woken = place.slot.park(turn);
            let place = place.slot.index();
            *hand = None;
            Last::Parked {
                place,
                owner,
                woken,
                yielded,
            }
        }
        (Err(text), turn) => {
            if let Some(turn) = turn {
                finish(None, || turn.abandon(Abandoned::Panicked(text)));
            }
            Last::Ended { owner, panicked: true }
        }
    }
}
