//! Conditional batches, valid once made.

use std::time::Duration;

use bytes::Bytes;

use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::error::ArgumentError;
use crate::limit::{BATCH_BYTES, BATCH_KEYS, STORE_RETENTION, STORE_VALUE_BYTES};

use super::{Key, Revision, StoreTime};

/// What must hold for a batch to be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The key has no value, or an expired one.
    Missing(Key),
    /// The key has a value that has not expired, with exactly this revision.
    Version(Key, Revision),
}

impl Condition {
    /// The key it is about.
    #[must_use]
    pub const fn key(&self) -> &Key {
        match self {
            Condition::Missing(key) | Condition::Version(key, _) => key,
        }
    }
}

/// What an applied batch does to one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Gives it a value, whether or not it had one.
    Put {
        /// The key.
        key: Key,
        /// At most 1 MiB; may be empty.
        value: Bytes,
        /// After this span, on the store's clock, the value is missing. Without it the value stays until it is
        /// replaced or deleted.
        retention: Option<Duration>,
    },
    /// Takes its value away, if it has one.
    Delete(Key),
}

impl Mutation {
    /// Gives `key` a value that stays until it is replaced or deleted.
    pub fn put(key: Key, value: impl Into<Bytes>) -> Self {
        Mutation::Put {
            key,
            value: value.into(),
            retention: None,
        }
    }

    /// The key it is about.
    #[must_use]
    pub const fn key(&self) -> &Key {
        match self {
            Mutation::Put { key, .. } | Mutation::Delete(key) => key,
        }
    }
}

/// What [`LocationStore::write`](super::LocationStore::write) applies as one. Clones share keys and values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    conditions: Vec<Condition>,
    mutations: Vec<Mutation>,
    urgent: bool,
}

impl Batch {
    /// Checks the bounds and makes a batch.
    ///
    /// # Errors
    /// Where there is no mutation, a key is twice in one of the lists, more than 2,048 distinct keys are in both
    /// together, keys and values have more than 4 MiB, one value has more than 1 MiB, or a retention is zero or longer
    /// than a year.
    pub fn new(
        conditions: impl Into<Vec<Condition>>,
        mutations: impl Into<Vec<Mutation>>,
    ) -> Result<Self, ArgumentError> {
        let batch = Self {
            conditions: conditions.into(),
            mutations: mutations.into(),
            urgent: false,
        };
        match batch.problem() {
            None => Ok(batch),
            Some(problem) => Err(ArgumentError::new("batch", problem)),
        }
    }

    fn problem(&self) -> Option<String> {
        if self.mutations.is_empty() {
            return Some("changes nothing; to compare versions, read".to_owned());
        }
        // Before anything is sized by them: the lists may be of any length.
        if self.conditions.len() > BATCH_KEYS || self.mutations.len() > BATCH_KEYS {
            return Some(format!("has more than {BATCH_KEYS} keys"));
        }
        // Whoever chooses names so that they meet in one place gains nothing: there are few.
        let set = |count| FxHashSet::with_capacity_and_hasher(count, FxBuildHasher);
        let mut keys = set(self.mutations.len() + self.conditions.len());
        if let Some(twice) = self.mutations.iter().find(|mutation| !keys.insert(mutation.key())) {
            return Some(format!("changes the key {:?} twice", twice.key()));
        }
        let mut conditions = set(self.conditions.len());
        if let Some(twice) = self.conditions.iter().find(|one| !conditions.insert(one.key())) {
            return Some(format!("has two conditions on the key {:?}", twice.key()));
        }
        keys.extend(conditions);
        if keys.len() > BATCH_KEYS {
            return Some(format!("has {} keys; at most {BATCH_KEYS}", keys.len()));
        }
        for mutation in &self.mutations {
            let Mutation::Put { key, value, retention } = mutation else {
                continue;
            };
            if value.len() > STORE_VALUE_BYTES {
                let len = value.len();
                return Some(format!("gives {key:?} {len} bytes; at most {STORE_VALUE_BYTES}"));
            }
            if retention.is_some_and(|span| span.is_zero() || span > STORE_RETENTION) {
                return Some(format!("keeps {key:?} for no time or more than a year"));
            }
        }
        let bytes = self.bytes();
        (bytes > BATCH_BYTES).then(|| format!("has {bytes} bytes; at most {BATCH_BYTES}"))
    }

    /// Keys and values of both lists, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let conditions = self.conditions.iter().map(|one| one.key().as_str().len());
        let mutations = self.mutations.iter().map(|one| match one {
            Mutation::Put { key, value, .. } => key.as_str().len() + value.len(),
            Mutation::Delete(key) => key.as_str().len(),
        });
        conditions.chain(mutations).sum()
    }

    /// The same batch, which is late sooner than others: a lease that is not renewed in time stops its host.
    #[must_use]
    pub fn urgent(mut self) -> Self {
        self.urgent = true;
        self
    }

    /// Whether a provider that lets batches wait should take this one first. Nothing else depends on it.
    #[must_use]
    pub const fn is_urgent(&self) -> bool {
        self.urgent
    }

    /// What must hold; each key at most once.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// What is done then; at least one, each key at most once.
    #[must_use]
    pub fn mutations(&self) -> &[Mutation] {
        &self.mutations
    }
}

/// How a batch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a batch in conflict changed nothing"]
pub enum Written {
    /// All of it was applied.
    Applied {
        /// The revision of every value it put.
        revision: Revision,
        /// The store's time when it was applied.
        now: StoreTime,
    },
    /// A condition did not hold; nothing was changed.
    Conflict,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Key {
        Key::new(format!("key {number:04}")).unwrap()
    }

    fn puts(keys: std::ops::Range<usize>, bytes: usize) -> Vec<Mutation> {
        let value = Bytes::from(vec![7; bytes]);
        keys.map(|at| Mutation::put(key(at), value.clone())).collect()
    }

    fn refusal(conditions: Vec<Condition>, mutations: Vec<Mutation>) -> String {
        Batch::new(conditions, mutations).unwrap_err().to_string()
    }

    #[test]
    fn the_bounds_of_a_batch() {
        let missing = |keys: std::ops::Range<usize>| keys.map(|at| Condition::Missing(key(at))).collect::<Vec<_>>();
        // A key may be in both lists, and counts once.
        assert!(Batch::new(missing(0..2048), puts(0..2048, 1)).is_ok());
        assert!(Batch::new(missing(0..1024), puts(1024..2048, 1)).is_ok());
        assert!(refusal(missing(0..1025), puts(1024..2049, 1)).contains("2049 keys"));
        assert!(refusal(vec![], puts(0..2049, 1)).contains("2048"));
        assert!(refusal(missing(0..1), vec![]).contains("changes nothing"));
        assert!(refusal(vec![], [puts(0..1, 1), vec![Mutation::Delete(key(0))]].concat()).contains("twice"));
        let version = Condition::Version(key(0), Revision::MAX);
        assert!(refusal([missing(0..1), vec![version]].concat(), puts(0..1, 1)).contains("two conditions"));
        assert!(Batch::new([], puts(0..1, STORE_VALUE_BYTES)).is_ok());
        assert!(refusal(vec![], puts(0..1, STORE_VALUE_BYTES + 1)).contains("1048577"));
        let full = STORE_VALUE_BYTES - key(0).as_str().len();
        assert!(Batch::new([], puts(0..4, full)).is_ok());
        assert!(refusal(missing(4..5), puts(0..4, full)).contains("4194312 bytes"));
        for retention in [Duration::ZERO, STORE_RETENTION + Duration::from_nanos(1)] {
            let mutation = Mutation::Put {
                key: key(0),
                value: Bytes::new(),
                retention: Some(retention),
            };
            assert!(refusal(vec![], vec![mutation]).contains("year"));
        }
    }
}
