//! What a path's selection was given and what it picked, in order: for tests that follow it pick by pick.

use parking_lot::Mutex;

use crate::id::Rid;

/// A history ends here: it is for tests, and must not grow without end in those that never look.
const KEPT: usize = 100_000;

/// One step of the selection of a channel's servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// From here on these are picked from, with these weights.
    Candidates(Vec<(Rid, u16)>),
    /// This one was picked for a call, or nobody was there.
    Picked(Option<Rid>),
}

#[derive(Debug, Default)]
pub(super) struct History(Mutex<Vec<Selection>>);

impl History {
    pub(super) fn push(&self, step: Selection) {
        let mut steps = self.0.lock();
        if steps.len() < KEPT {
            steps.push(step);
        }
    }

    pub(super) fn steps(&self) -> Vec<Selection> {
        self.0.lock().clone()
    }
}
