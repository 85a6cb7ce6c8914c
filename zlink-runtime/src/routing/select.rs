//! Select-one: the weighted order in which the members of a channel are picked, and the one cursor that walks it.
//!
//! The order is prepared where the list changes; a pick reads the next position. It must not know who is eligible,
//! or why the list changed.

use crate::clock;
use crate::id::Rid;
use crate::limit::SELECT_TIME;
use crate::sync::{Mutex, lock};

mod order;

use order::{Cycle, Weights};

/// A member that may be picked: ready, not draining. Weight 0 takes it out of the list.
#[derive(Clone, Debug)]
pub(crate) struct Candidate<T> {
    /// Who it is: its accumulator is kept, and ties are decided, by this.
    pub(crate) id: Rid,
    /// Its share, in proportion to the sum of all.
    pub(crate) weight: u16,
    /// What a pick returns.
    pub(crate) target: T,
}

/// The one selection path of a channel. Whatever the number of callers, their picks form a single sequence: the
/// smooth weighted round-robin of the list, continued across its changes for members that stay.
#[derive(Debug)]
pub(crate) struct Selector<T> {
    state: Mutex<State<T>>,
    /// Held over a whole update, so that the search can run while calls go on picking.
    updating: Mutex<()>,
}

#[derive(Debug)]
struct State<T> {
    ids: Vec<Rid>,
    targets: Vec<T>,
    weights: Weights,
    /// The accumulators at position 0 of the cycle; where there is none, as they are now.
    accumulators: Vec<i64>,
    cycle: Option<Cycle>,
    /// The next position of the cycle; without one, the picks since the search for it began.
    cursor: usize,
    /// How often one was asked for that a pick would not have named.
    others: usize,
}

impl<T> State<T> {
    /// Moves on by one and names the member at that place. Without a cycle this costs a pass over the list.
    fn advance(&mut self) -> usize {
        match &self.cycle {
            Some(cycle) => {
                let (index, next) = cycle.at(self.cursor);
                self.cursor = next;
                index
            }
            None => {
                self.cursor = self.cursor.saturating_add(1);
                self.weights.step(&mut self.accumulators)
            }
        }
    }
}

impl<T: Clone> Selector<T> {
    /// A path without members.
    pub(crate) fn new() -> Self {
        let state = State {
            ids: Vec::new(),
            targets: Vec::new(),
            weights: Weights::new(Vec::new()),
            accumulators: Vec::new(),
            cycle: None,
            cursor: 0,
            others: 0,
        };
        Self {
            state: Mutex::new(state),
            updating: Mutex::new(()),
        }
    }

    /// The next member, or `None` where the list is empty. Picking again after a target failed takes the next
    /// position like any other call.
    pub(crate) fn pick(&self) -> Option<T> {
        let mut state = lock(&self.state);
        if state.targets.is_empty() {
            return None;
        }
        let index = state.advance();
        state.targets.get(index).cloned()
    }

    /// One of the members that are `good`, each in turn, whatever their weights. The order of picks does not move.
    pub(crate) fn other(&self, good: impl Fn(&T) -> bool) -> Option<T> {
        let mut state = lock(&self.state);
        let count = state.targets.iter().filter(|target| good(target)).count();
        let turn = state.others.checked_rem(count)?;
        state.others = state.others.wrapping_add(1);
        state.targets.iter().filter(|target| good(target)).nth(turn).cloned()
    }

    /// Swaps in a new list. Members that stay keep their accumulators, whatever became of their weight or target;
    /// of two with the same identity the first counts. Calls that pick meanwhile are served by the new list, one
    /// pass per pick, until its cycle has been found, within [`SELECT_TIME`] or not at all.
    pub(crate) fn update(&self, candidates: Vec<Candidate<T>>) {
        let _one_at_a_time = lock(&self.updating);
        let until = clock::now() + SELECT_TIME;
        self.swap(candidates);
        self.prepare(&mut || clock::now() < until);
    }

    /// Makes the new list valid, with the accumulators as the last pick left them.
    fn swap(&self, mut candidates: Vec<Candidate<T>>) {
        candidates.retain(|candidate| candidate.weight > 0);
        candidates.sort_by(|a, b| a.id.cmp(&b.id));
        candidates.dedup_by(|later, first| later.id == first.id);
        let weights = Weights::new(candidates.iter().map(|candidate| candidate.weight).collect());
        let (ids, targets): (Vec<_>, Vec<_>) = candidates.into_iter().map(|it| (it.id, it.target)).unzip();

        // Most of the way to the present is walked without the lock, the rest under it.
        let (old, mut replay, cycle, from) = {
            let state = lock(&self.state);
            (
                state.weights.clone(),
                state.accumulators.clone(),
                state.cycle.clone(),
                state.cursor,
            )
        };
        if cycle.is_some() {
            old.walk(&mut replay, from);
        }
        let mut state = lock(&self.state);
        let current = match &cycle {
            None => &state.accumulators,
            Some(cycle) => {
                old.walk(&mut replay, cycle.distance(from, state.cursor));
                &replay
            }
        };
        let kept = |id: &Rid| {
            let index = state.ids.binary_search(id).ok()?;
            current.get(index).copied()
        };
        let accumulators = ids.iter().map(|id| kept(id).unwrap_or(0)).collect();
        let new = State {
            ids,
            targets,
            weights,
            accumulators,
            cycle: None,
            cursor: 0,
            others: state.others,
        };
        let old = std::mem::replace(&mut *state, new);
        drop(state);
        // A target's own drop may do anything; it must not hold up a pick.
        drop(old);
    }

    /// Looks for the cycle of the present list and installs it at the place that picks have reached meanwhile.
    fn prepare(&self, go_on: &mut dyn FnMut() -> bool) {
        let (weights, start) = {
            let mut state = lock(&self.state);
            state.cursor = 0;
            (state.weights.clone(), state.accumulators.clone())
        };
        let Some(cycle) = Cycle::find(&weights, &start, go_on) else {
            return;
        };
        let mut state = lock(&self.state);
        state.cursor = cycle.after(state.cursor);
        state.accumulators = start;
        state.cycle = Some(cycle);
    }
}

#[cfg(test)]
#[cfg(not(any(zlink_loom, zlink_shuttle)))]
mod tests;
