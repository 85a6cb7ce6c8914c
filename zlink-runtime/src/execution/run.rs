//! How a worker runs what a gate picks: job by job, poll by poll, each panic contained.

use std::sync::Arc;
use std::task::{Context, Poll};

use super::gate::{Inner, Run};
use super::place::Hand;
use super::slot::Slot;
use super::worker::Budget;
use super::{Abandoned, Job, Turn, guarded};
use crate::permit::Permit;

/// What a worker does next for a gate.
pub(super) enum Next<J: Job> {
    Start {
        job: J,
        permit: Option<Permit>,
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
        let (mut hand, mut last, mut handed) = (None, Last::Nothing, None);
        let mut entered = true;
        loop {
            let spent = !entered && budget.is_spent();
            let now = budget.now();
            match self.next(last, handed.take(), spent, std::mem::take(&mut entered), now, &mut hand) {
                Next::Leave => return,
                Next::Start {
                    job,
                    permit,
                    owner,
                    hands_on,
                } => {
                    budget.begin(|| job.name());
                    let turn = guarded(|| job.start(now));
                    match permit {
                        Some(permit) if hands_on => handed = Some(permit.hand_on()),
                        Some(permit) => permit.start(),
                        None => {}
                    }
                    last = match turn {
                        Ok(Some(turn)) => poll(turn, owner, &mut hand),
                        Ok(None) => Last::Ended { owner, panicked: false },
                        Err(_) => Last::Ended { owner, panicked: true },
                    };
                }
                Next::Resume { slot, owner, stopped } => {
                    last = match slot.take() {
                        None => Last::Nothing,
                        Some(turn) => {
                            hand = Some(Hand::new(slot));
                            budget.begin(|| turn.name());
                            if stopped {
                                drop(guarded(|| turn.abandon(Abandoned::Stopped)));
                                Last::Ended { owner, panicked: false }
                            } else {
                                poll(turn, owner, &mut hand)
                            }
                        }
                    };
                }
            }
        }
    }
}

/// Polls a turn in the place at hand. A turn that waits keeps the place.
fn poll<J: Job>(mut turn: J::Turn, owner: u32, hand: &mut Option<Hand<J>>) -> Last {
    let Some(place) = hand else { return Last::Nothing };
    let poll = guarded(|| turn.poll(&mut Context::from_waker(&place.waker)));
    match poll {
        // What it leaves behind is dropped before the gate is free.
        Ok(Poll::Ready(())) => Last::Ended {
            owner,
            panicked: guarded(|| drop(turn)).is_err(),
        },
        Ok(Poll::Pending) => {
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
        Err(text) => {
            drop(guarded(|| turn.abandon(Abandoned::Panicked(text))));
            Last::Ended { owner, panicked: true }
        }
    }
}
