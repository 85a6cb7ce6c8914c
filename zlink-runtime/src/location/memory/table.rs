//! The records of one namespace, and what a batch does to them: a pure machine over the moment it is given.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::history::History;
use crate::limit::PAGE_BYTES;
use crate::location::{
    Batch, Condition, Cursor, Key, Mutation, Page, Revision, Scan, StoreError, StoreTime, Stored, Written,
};

/// Expired records that one write sweeps out.
const SWEEP: usize = 16;

#[derive(Clone, Default)]
pub(super) struct Table {
    records: BTreeMap<Key, Stored>,
    /// Of the records that expire, when; for the sweep.
    expiries: BTreeSet<(StoreTime, Key)>,
    last: Option<Revision>,
    history: Option<History>,
}

impl Table {
    /// The value of `key`, unless it has expired.
    pub(super) fn get(&self, key: &Key, now: StoreTime) -> Option<&Stored> {
        self.records.get(key).filter(|stored| alive(stored, now))
    }

    pub(super) fn write(&mut self, batch: &Batch, now: StoreTime) -> Result<Written, StoreError> {
        let holds = |condition: &Condition| match condition {
            Condition::Missing(key) => self.get(key, now).is_none(),
            Condition::Version(key, revision) => self.get(key, now).is_some_and(|found| found.revision == *revision),
        };
        if !batch.conditions().iter().all(holds) {
            return Ok(Written::Conflict);
        }
        let issued = self.last.map_or(0, Revision::get);
        let revision = Revision::new(issued + 1).ok_or(StoreError::Exhausted)?;
        if let Some(history) = &mut self.history {
            let keys = batch.mutations().iter().map(|mutation| mutation.key());
            let replaced = keys.map(|key| (key.clone(), self.records.get(key).cloned()));
            history.remember(self.last, replaced.collect());
        }
        self.last = Some(revision);
        for mutation in batch.mutations() {
            match mutation {
                Mutation::Put { key, value, retention } => {
                    let stored = Stored {
                        value: value.clone(),
                        revision,
                        expiry: retention.map(|span| now.after(span)),
                    };
                    self.insert(key.clone(), stored);
                }
                Mutation::Delete(key) => self.remove(key),
            }
        }
        self.sweep(now);
        Ok(Written::Applied { revision, now })
    }

    pub(super) fn scan(&self, scan: &Scan, now: StoreTime) -> Result<Page, StoreError> {
        let after = scan.key_cursor()?;
        let from = after.map_or(Bound::Included(scan.prefix()), Bound::Excluded);
        let mut rest = self
            .records
            .range::<str, _>((from, Bound::Unbounded))
            .take_while(|(key, _)| key.as_str().starts_with(scan.prefix()))
            .filter(|(_, stored)| alive(stored, now))
            .peekable();
        let mut entries: Vec<(Key, Stored)> = Vec::new();
        let mut bytes = 0;
        while let Some((key, stored)) = rest.peek().filter(|_| entries.len() < scan.limit()) {
            bytes += key.as_str().len() + stored.value.len();
            // One record always fits: it is a quarter of a page at most.
            if bytes > PAGE_BYTES {
                break;
            }
            entries.push(((*key).clone(), (*stored).clone()));
            rest.next();
        }
        let next = match entries.last().filter(|_| rest.peek().is_some()) {
            Some((key, _)) => Some(Cursor::new(key.as_str().to_owned())?),
            None => None,
        };
        Ok(Page {
            entries,
            next,
            revision: self.last,
            now,
        })
    }

    /// Counts all revisions up to `revision` as issued.
    pub(super) fn skip(&mut self, revision: Revision) {
        self.last = self.last.max(Some(revision));
    }

    /// Remembers the last batches from now on.
    pub(super) fn keep_history(&mut self) {
        self.history.get_or_insert_default();
    }

    /// The older states that can be shown and hold at least what `seen` holds.
    pub(super) fn states(&self, seen: Option<Revision>) -> impl Iterator<Item = Option<Revision>> {
        self.history.iter().flat_map(move |history| history.states(seen))
    }

    /// All of it as it was at `state`.
    pub(super) fn back_to(&self, state: Option<Revision>) -> Table {
        let mut table = self.clone();
        for (key, stored) in self.history.iter().flat_map(|history| history.back_to(state)) {
            table.remove(key);
            if let Some(stored) = stored {
                table.insert(key.clone(), stored.clone());
            }
        }
        table.last = state;
        table
    }

    /// The last batch that was applied.
    pub(super) const fn last(&self) -> Option<Revision> {
        self.last
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    fn insert(&mut self, key: Key, stored: Stored) {
        let expiry = stored.expiry;
        let before = self.records.insert(key.clone(), stored);
        self.no_longer(&key, before);
        self.expiries.extend(expiry.map(|expiry| (expiry, key)));
    }

    fn remove(&mut self, key: &Key) {
        let before = self.records.remove(key);
        self.no_longer(key, before);
    }

    fn no_longer(&mut self, key: &Key, before: Option<Stored>) {
        if let Some(expiry) = before.and_then(|before| before.expiry) {
            self.expiries.remove(&(expiry, key.clone()));
        }
    }

    fn sweep(&mut self, now: StoreTime) {
        for _ in 0..SWEEP {
            let Some((_, key)) = self.expiries.first().filter(|(expiry, _)| *expiry <= now).cloned() else {
                return;
            };
            self.remove(&key);
        }
    }
}

fn alive(stored: &Stored, now: StoreTime) -> bool {
    stored.expiry.is_none_or(|expiry| now < expiry)
}
