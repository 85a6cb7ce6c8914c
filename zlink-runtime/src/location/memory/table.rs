//! The records of one namespace, and what a batch does to them: a pure machine over the moment it is given.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::limit::PAGE_BYTES;
use crate::location::{
    Batch, Condition, Cursor, Key, Mutation, Page, Revision, Scan, StoreError, StoreTime, Stored, Written,
};

/// Expired records that one write sweeps out.
const SWEEP: usize = 16;

#[derive(Default)]
pub(super) struct Table {
    records: BTreeMap<Key, Stored>,
    /// Of the records that expire, when; for the sweep.
    expiries: BTreeSet<(StoreTime, Key)>,
    last: Option<Revision>,
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
        self.last = Some(revision);
        for mutation in batch.mutations() {
            self.remove(mutation.key());
            if let Mutation::Put { key, value, retention } = mutation {
                let expiry = retention.map(|span| now.after(span));
                self.expiries.extend(expiry.map(|expiry| (expiry, key.clone())));
                let value = value.clone();
                let stored = Stored {
                    value,
                    revision,
                    expiry,
                };
                self.records.insert(key.clone(), stored);
            }
        }
        self.sweep(now);
        Ok(Written::Applied { revision, now })
    }

    pub(super) fn scan(&self, scan: &Scan, now: StoreTime) -> Result<Page, StoreError> {
        let after = match scan.cursor().map(|cursor| std::str::from_utf8(cursor.as_bytes())) {
            None => None,
            Some(Ok(key)) if key.starts_with(scan.prefix()) => Some(key),
            Some(_) => return Err(StoreError::argument("cursor", "is not of this store and prefix")),
        };
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

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    fn remove(&mut self, key: &Key) {
        if let Some((key, stored)) = self.records.remove_entry(key)
            && let Some(expiry) = stored.expiry
        {
            self.expiries.remove(&(expiry, key));
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
