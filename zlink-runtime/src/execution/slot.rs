//! A place for one turn of an owner: where it waits, and the waker that finds it again.
//!
//! Places are used again, so that a turn in steady state allocates nothing. A waker that outlived its turn may wake
//! the next one for nothing, which every future allows.

use std::sync::Weak;
use std::task::Wake;

use super::Job;
use super::owner::Inner;
use crate::sync::atomic::{AtomicU8, Ordering};
use crate::sync::{Mutex, lock};

/// Nobody's, or being polled and not woken since.
const RUNNING: u8 = 0;
/// Woken while it was polled.
const NOTIFIED: u8 = 1;
/// Waiting to be woken.
const PARKED: u8 = 2;
/// In its owner's queue of woken turns, or about to be.
const WOKEN: u8 = 3;

pub(super) struct Slot<J: Job> {
    owner: Weak<Inner<J>>,
    index: usize,
    state: AtomicU8,
    turn: Mutex<Place<J::Turn>>,
}

enum Place<T> {
    Empty,
    Parked(T),
    /// The owner was stopped; nothing is parked here again.
    Stopped,
}

/// What became of a turn that was to be parked.
pub(super) enum Parked<T> {
    /// It waits for its waker.
    Waits,
    /// It was woken already: queue it again.
    Woken,
    /// It cannot wait: its owner was stopped.
    Stopped(T),
}

impl<J: Job> Slot<J> {
    pub(super) fn new(owner: Weak<Inner<J>>, index: usize) -> Self {
        Self {
            owner,
            index,
            state: AtomicU8::new(RUNNING),
            turn: Mutex::new(Place::Empty),
        }
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// Takes the turn out to poll it; `None` where a stop came first. What wakes it from here on is noticed.
    pub(super) fn take(&self) -> Option<J::Turn> {
        self.state.swap(RUNNING, Ordering::AcqRel);
        let mut place = lock(&self.turn);
        match std::mem::replace(&mut *place, Place::Empty) {
            Place::Parked(turn) => Some(turn),
            Place::Empty => None,
            Place::Stopped => {
                *place = Place::Stopped;
                None
            }
        }
    }

    /// Lets a turn wait here after a poll that was pending.
    pub(super) fn park(&self, turn: J::Turn) -> Parked<J::Turn> {
        let mut place = lock(&self.turn);
        if let Place::Stopped = *place {
            return Parked::Stopped(turn);
        }
        *place = Place::Parked(turn);
        drop(place);
        match self
            .state
            .compare_exchange(RUNNING, PARKED, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => Parked::Waits,
            Err(_) => {
                self.state.swap(WOKEN, Ordering::AcqRel);
                Parked::Woken
            }
        }
    }

    /// Closes the place and returns the turn that waited in it, once.
    pub(super) fn stop(&self) -> Option<J::Turn> {
        match std::mem::replace(&mut *lock(&self.turn), Place::Stopped) {
            Place::Parked(turn) => Some(turn),
            Place::Empty | Place::Stopped => None,
        }
    }
}

impl<J: Job> Wake for Slot<J> {
    fn wake(self: std::sync::Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &std::sync::Arc<Self>) {
        let mut state = self.state.load(Ordering::Acquire);
        loop {
            // Written even where nothing changes: the poll that follows must see what came before this wake-up, and
            // it does where its own change of state reads this one.
            let next = match state {
                RUNNING | NOTIFIED => NOTIFIED,
                _ => WOKEN,
            };
            match self
                .state
                .compare_exchange(state, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(PARKED) => {
                    if let Some(owner) = self.owner.upgrade() {
                        owner.woken(self.index);
                    }
                    return;
                }
                Ok(_) => return,
                Err(now) => state = now,
            }
        }
    }
}
