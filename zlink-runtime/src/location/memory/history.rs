//! The last batches of a table, backwards, so that a read can be shown an older state. Kept only where a test asks.

use std::collections::VecDeque;

use crate::location::{Key, Revision, Stored};

/// Batches that are remembered.
const BATCHES: usize = 64;

/// What a batch replaced.
type Replaced = Vec<(Key, Option<Stored>)>;

#[derive(Clone, Default)]
pub(super) struct History {
    /// Newest last: what each batch replaced, and the revision before it.
    undo: VecDeque<(Option<Revision>, Replaced)>,
}

impl History {
    pub(super) fn remember(&mut self, before: Option<Revision>, replaced: Replaced) {
        if self.undo.len() == BATCHES {
            self.undo.pop_front();
        }
        self.undo.push_back((before, replaced));
    }

    /// The states that can be shown and hold at least what `seen` holds, the newest first, without the present one.
    pub(super) fn states(&self, seen: Option<Revision>) -> impl Iterator<Item = Option<Revision>> + '_ {
        self.undo
            .iter()
            .rev()
            .map(|(before, _)| *before)
            .take_while(move |state| *state >= seen)
    }

    /// What has to be put back, in this order, to show `state`.
    pub(super) fn back_to(&self, state: Option<Revision>) -> impl Iterator<Item = &(Key, Option<Stored>)> {
        let newer = self.undo.iter().rev().take_while(move |(before, _)| *before >= state);
        newer.flat_map(|(_, replaced)| replaced)
    }
}
