//! The ready set: which owners have work, kept as state, and which workers sleep.
//!
//! A worker that is woken looks here again; a wake-up carries nothing. It knows no runtime: wakers are given.

use std::collections::VecDeque;
use std::task::{Poll, Waker};

use crate::sync::{Mutex, lock};

/// Owners of any kind. Each owner keeps whether it is in here, so that it is in here once.
#[derive(Debug)]
pub(super) struct ReadySet<T>(Mutex<State<T>>);

#[derive(Debug)]
struct State<T> {
    owners: VecDeque<T>,
    /// Workers that sleep; the last to fall asleep is woken first, its caches are warm.
    asleep: Vec<(usize, Waker)>,
    closed: bool,
}

impl<T> ReadySet<T> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State {
            owners: VecDeque::new(),
            asleep: Vec::new(),
            closed: false,
        }))
    }

    /// Adds an owner at the end and wakes a worker, if one sleeps.
    pub(super) fn push(&self, owner: T) {
        let mut state = lock(&self.0);
        state.owners.push_back(owner);
        let sleeper = state.asleep.pop();
        drop(state);
        if let Some((_, waker)) = sleeper {
            waker.wake();
        }
    }

    /// The next owner for `worker`, or a place among those that sleep; `None` once it is closed and empty.
    pub(super) fn poll_take(&self, worker: usize, waker: &Waker) -> Poll<Option<T>> {
        let mut state = lock(&self.0);
        let place = state.asleep.iter().position(|sleeper| sleeper.0 == worker);
        // Awake for whatever reason: whoever pushes from here on must wake another.
        let old = place.map(|place| state.asleep.swap_remove(place));
        let next = match state.owners.pop_front() {
            None if !state.closed => {
                state.asleep.push((worker, waker.clone()));
                Poll::Pending
            }
            next => Poll::Ready(next),
        };
        drop(state);
        drop(old);
        next
    }

    /// Lets the workers go once nothing is ready.
    pub(super) fn close(&self) {
        let mut state = lock(&self.0);
        state.closed = true;
        let asleep = std::mem::take(&mut state.asleep);
        drop(state);
        asleep.into_iter().for_each(|(_, waker)| waker.wake());
    }
}
