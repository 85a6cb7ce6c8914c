//! The sockets on which requests come, and the receive flow that each of them is told.
//!
//! It must not know what a socket is, or how it tells its peers.

use std::collections::BTreeMap;

use super::Flow;
use crate::sync::{Mutex, lock};

/// A socket that takes requests.
pub(crate) trait Receiver: Clone {
    /// Tells its peers, unless it was told a newer flow before. It must not block; it is called under no lock.
    fn apply(&self, flow: Flow);
}

/// The receivers of one host, by number. Whatever order things happen in, each of them is told the newest flow.
#[derive(Debug)]
pub(crate) struct Receivers<R>(Mutex<State<R>>);

#[derive(Debug)]
struct State<R> {
    flow: Flow,
    receivers: BTreeMap<u64, R>,
}

impl<R: Receiver> Receivers<R> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State {
            flow: Flow::default(),
            receivers: BTreeMap::new(),
        }))
    }

    /// What was applied last.
    pub(crate) fn flow(&self) -> Flow {
        lock(&self.0).flow
    }

    /// Applies a change to all; an older one than the last changes nothing.
    pub(crate) fn apply(&self, flow: Flow) {
        let mut state = lock(&self.0);
        if flow.version <= state.flow.version {
            return;
        }
        state.flow = flow;
        let receivers: Vec<R> = state.receivers.values().cloned().collect();
        drop(state);
        for receiver in receivers {
            receiver.apply(flow);
        }
    }

    /// A new receiver: it is told the flow, is entered, and is told again where the flow has changed in between.
    pub(crate) fn enter(&self, number: u64, receiver: R) {
        let told = self.flow();
        receiver.apply(told);
        let mut state = lock(&self.0);
        let replaced = state.receivers.insert(number, receiver.clone());
        let now = state.flow;
        drop(state);
        drop(replaced);
        if now.version != told.version {
            receiver.apply(now);
        }
    }

    /// A receiver closes: from here on it is told nothing new.
    pub(crate) fn leave(&self, number: u64) {
        let left = lock(&self.0).receivers.remove(&number);
        drop(left);
    }
}
