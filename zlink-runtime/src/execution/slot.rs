//! The inside of a place: where a turn waits, and the waker that finds it again.
//!
//! It is used again, so that a turn in steady state allocates nothing, by turns that leave no waker behind.

use std::sync::Weak;
use std::task::Wake;

use super::Job;
use super::gate::Inner;
use crate::sync::atomic::{AtomicU8, Ordering};
use crate::sync::{Mutex, lock};

/// Nobody's, or being polled and not woken since.
const RUNNING: u8 = 0;
/// Woken while it was polled.
const NOTIFIED: u8 = 1;
/// Waiting to be woken.
const PARKED: u8 = 2;
/// Among its gate's woken turns, or about to be.
const WOKEN: u8 = 3;

pub(super) struct Slot<J: Job> {
    gate: Weak<Inner<J>>,
    index: u32,
    state: AtomicU8,
    turn: Mutex<Option<J::Turn>>,
}

impl<J: Job> Slot<J> {
    pub(super) fn new(gate: Weak<Inner<J>>, index: u32) -> Self {
        Self {
            gate,
            index,
            state: AtomicU8::new(RUNNING),
            turn: Mutex::new(None),
        }
    }

    pub(super) fn index(&self) -> u32 {
        self.index
    }

    pub(super) fn gate(&self) -> &Weak<Inner<J>> {
        &self.gate
    }

    /// Forgets a wake-up of the turn that has ended.
    pub(super) fn reset(&self) {
        if self.state.load(Ordering::Relaxed) != RUNNING {
            self.state.store(RUNNING, Ordering::Relaxed);
        }
    }

    /// Takes the turn out to poll it. What wakes it from here on is noticed.
    pub(super) fn take(&self) -> Option<J::Turn> {
        self.state.swap(RUNNING, Ordering::AcqRel);
        lock(&self.turn).take()
    }

    /// Lets a turn wait here after a poll that was pending; whether it was woken already.
    pub(super) fn park(&self, turn: J::Turn) -> bool {
        *lock(&self.turn) = Some(turn);
        match self
            .state
            .compare_exchange(RUNNING, PARKED, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => false,
            Err(_) => {
                self.state.swap(WOKEN, Ordering::AcqRel);
                true
            }
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
                    if let Some(gate) = self.gate.upgrade() {
                        gate.woken(self.index);
                    }
                    return;
                }
                Ok(_) => return,
                Err(now) => state = now,
            }
        }
    }
}
