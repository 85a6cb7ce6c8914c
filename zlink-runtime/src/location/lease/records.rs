//! What a host keeps in the store beside its lease: what it wants there, what is there, and what the next batch changes.
//! Pure. It must not know what a record says.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use bytes::Bytes;

use crate::limit::{BATCH_BYTES, BATCH_KEYS};
use crate::location::name::ListName;
use crate::location::{Condition, Key, Mutation, Revision, Stored};

/// A record of this host in a list that others read.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) list: ListName,
    pub(crate) key: Key,
    pub(crate) value: Bytes,
}

/// What is wanted, numbered: a greater version was wanted later.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) version: u64,
    pub(super) records: BTreeMap<Key, Record>,
}

/// A change of one record.
#[derive(Clone, Debug)]
pub(super) struct Change {
    stamp: Key,
    record: Record,
    /// Of what is there.
    revision: Option<Revision>,
}

/// What is in the store, as far as this host knows.
#[derive(Debug, Default)]
pub(super) struct Records(BTreeMap<Key, Held>);

#[derive(Debug)]
struct Held {
    record: Record,
    revision: Revision,
    /// The [marks](mark) of what stood there before, the latest last: a store that has gone back shows one of them.
    former: VecDeque<u64>,
}

/// Of how many earlier values a mark is kept.
const FORMER: usize = 64;

/// Tells values of one record apart.
fn mark(value: &[u8]) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}

/// A record under one of this host's keys that is not this host's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Foreign(pub(super) Key);

/// Half of what a batch may hold: the lease, stamps and conditions need room, too, and a writer should not be held long.
const CHANGE_BYTES: usize = BATCH_BYTES / 2;
const CHANGES: usize = BATCH_KEYS / 4;

impl Records {
    /// What one batch changes so that the store comes nearer to what is wanted, and whether it gets there.
    pub(super) fn changes(&self, wanted: &Wanted) -> (Vec<Change>, bool) {
        let (mut changes, mut bytes) = (Vec::new(), 0);
        for (key, record) in &wanted.records {
            let held = self.0.get(key);
            if held.is_some_and(|held| held.record.value == record.value) {
                continue;
            }
            bytes += record.value.len();
            if !changes.is_empty() && (bytes > CHANGE_BYTES || changes.len() >= CHANGES) {
                return (changes, false);
            }
            changes.push(Change {
                stamp: record.list.stamp(),
                record: record.clone(),
                revision: held.map(|held| held.revision),
            });
        }
        (changes, true)
    }

    pub(super) fn keys(&self) -> Vec<Key> {
        self.0.keys().cloned().collect()
    }

    /// That change was applied.
    pub(super) fn applied(&mut self, change: Change, revision: Revision) {
        self.hold(change.record, revision);
    }

    fn hold(&mut self, record: Record, revision: Revision) {
        let mut former = VecDeque::new();
        if let Some(before) = self.0.remove(&record.key) {
            former = before.former;
            if before.record.value != record.value {
                former.push_back(mark(&before.record.value));
                former.drain(..former.len().saturating_sub(FORMER));
            }
        }
        let key = record.key.clone();
        self.0.insert(
            key,
            Held {
                record,
                revision,
                former,
            },
        );
    }

    /// Takes what is under the keys of this host. `changes` may have been applied, each.
    ///
    /// # Errors
    /// Where a value is neither what is or was there nor what a change puts there.
    pub(super) fn found(
        &mut self,
        found: impl IntoIterator<Item = (Key, Option<Stored>)>,
        changes: &[Change],
    ) -> Result<(), Foreign> {
        for (key, stored) in found {
            let Some(stored) = stored else {
                self.0.remove(&key);
                continue;
            };
            let changed = changes.iter().find(|change| change.record.key == key);
            let ours = changed
                .map(|change| &change.record)
                .into_iter()
                .chain(self.0.get(&key).map(|held| &held.record))
                .find(|record| record.value == stored.value)
                .cloned();
            let earlier = || {
                let held = self.0.get(&key)?;
                let record = || Record {
                    value: stored.value.clone(),
                    ..held.record.clone()
                };
                held.former.contains(&mark(&stored.value)).then(record)
            };
            match ours.or_else(earlier) {
                Some(record) => self.hold(record, stored.revision),
                None => return Err(Foreign(key)),
            }
        }
        Ok(())
    }

    /// The mutations that take everything away.
    pub(super) fn removal(&self, nonce: u64) -> Vec<Mutation> {
        let stamps: BTreeSet<_> = self.0.values().map(|held| held.record.list.stamp()).collect();
        self.0
            .keys()
            .cloned()
            .map(Mutation::Delete)
            .chain(stamps.into_iter().map(|stamp| stamped(stamp, nonce)))
            .collect()
    }
}

/// What a batch needs and does for these changes.
pub(super) fn batched(changes: &[Change], nonce: u64) -> (Vec<Condition>, Vec<Mutation>) {
    let conditions = changes.iter().map(|change| {
        let key = change.record.key.clone();
        match change.revision {
            Some(revision) => Condition::Version(key, revision),
            None => Condition::Missing(key),
        }
    });
    let stamps: BTreeSet<_> = changes.iter().map(|change| change.stamp.clone()).collect();
    let mutations = changes
        .iter()
        .map(|change| Mutation::put(change.record.key.clone(), change.record.value.clone()))
        .chain(stamps.into_iter().map(|stamp| stamped(stamp, nonce)));
    (conditions.collect(), mutations.collect())
}

/// The keys of these changes.
pub(super) fn keys_of(changes: &[Change]) -> Vec<Key> {
    changes.iter().map(|change| change.record.key.clone()).collect()
}

/// A new revision for a stamp. Its value says nothing.
pub(super) fn stamped(stamp: Key, nonce: u64) -> Mutation {
    Mutation::put(stamp, nonce.to_le_bytes().to_vec())
}
