//! The changes that authority can undergo: what a batch must hold for each, and what one in conflict tells of it. Pure.
//!
//! Every change is decided by the version of the record that it changes; a reservation by its being missing.

use bytes::Bytes;
use rustc_hash::FxHashSet;
use tokio::time::Instant;

use super::capacity::{Named, Step};
use super::record::{Ended, Nonce, NotARecord, Reserve, SpotRecord, SpotState, Terminal};
use crate::error::ArgumentError;
use crate::id::ObjectKind;
use crate::limit::{STORE_RETENTION, TERMINAL_TIME};
use crate::location::name::{self, OwnerId};
use crate::location::{Condition, Key, Mutation, Revision, Stored};

/// One run of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) owner: OwnerId,
    pub(super) lease: Revision,
}

/// What all values of one batch share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    pub(super) token: Token,
    pub(super) nonce: Nonce,
    pub(super) now: Instant,
}

/// It is moved often from who asks for it to who makes it, so what is large of it stands behind a pointer.
#[derive(Debug)]
pub(super) enum Change {
    /// Missing to Creating.
    Reserve(Box<Reserve>),
    /// Creating to Ready: to this record.
    Commit(Box<SpotRecord>, Option<Box<Terminal>>),
    /// Creating to Missing.
    Abort(Box<SpotRecord>, Option<Box<Terminal>>),
    /// Ready to Ready: to this record, which has another inbox.
    Preserve(Box<SpotRecord>),
    /// Ready to Missing.
    Delete(Box<SpotRecord>),
    /// To Missing, by somebody else than the owner, who is dead: its lease has stood at that revision, or is gone.
    Release(Box<SpotRecord>, Option<Revision>),
    /// This host has learned that the Spot was taken from it by such a release; the entry that says so had that revision.
    Acknowledge(Box<SpotRecord>, Revision),
}

/// What tells changes apart that cannot be in one batch: what each is decided by.
#[derive(Debug)]
pub(super) struct Keys {
    /// Its record, or what stands for that.
    pub(super) record: Key,
    /// What else it depends on.
    pub(super) other: Option<Key>,
}

impl Keys {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.record).chain(&self.other)
    }

    /// Whether none of them is among those that are taken.
    pub(super) fn are_apart(&self, taken: &FxHashSet<Key>) -> bool {
        !self.iter().any(|key| taken.contains(key))
    }
}

/// What a conflict tells of one change.
#[derive(Debug)]
pub(super) enum Judged {
    /// Nothing stands against it.
    Stands,
    /// The record is another, or none.
    Found(Option<SpotRecord>),
    /// The reservation was made before, with the same content.
    Issued(SpotRecord),
    /// It was made before, with other content.
    Differs,
    /// The operation that it was for has come to its end.
    Over(Box<Ended>),
    /// The owner of what was to be released has renewed its lease.
    Alive,
    Unreadable(NotARecord),
}

impl Change {
    /// What it is decided by, where `owner` makes it.
    pub(super) fn keys(&self, owner: OwnerId) -> Keys {
        let (record, other) = match self {
            Change::Reserve(reserve) => (name::object_key(&reserve.id), once(reserve)),
            Change::Commit(record, _)
            | Change::Abort(record, _)
            | Change::Preserve(record)
            | Change::Delete(record) => (record.key(), None),
            Change::Release(record, _) => (record.key(), Some(record.owner.lease_key())),
            Change::Acknowledge(record, _) => (owner.taken_key(&record.key()), None),
        };
        Keys { record, other }
    }

    /// The counters it changes, and how.
    ///
    /// # Errors
    /// Where the names of node and type are too long for a key.
    pub(super) fn counted(&self, named: &mut Named) -> Result<Option<([Key; 2], Step)>, ArgumentError> {
        let mut counters = |record: &SpotRecord| named.keys(&record.node, record.kind, &record.stable_type);
        let (keys, step) = match self {
            Change::Reserve(reserve) => {
                let keys = named.keys(&reserve.node, reserve.kind, &reserve.stable_type)?;
                (keys, Step::Reserve(reserve.limits))
            }
            Change::Commit(record, _) => (counters(record)?, Step::Commit),
            Change::Abort(record, _) => (counters(record)?, Step::Return),
            Change::Delete(record) => (counters(record)?, Step::Remove),
            Change::Acknowledge(record, _) => match record.state {
                SpotState::Creating => (counters(record)?, Step::Return),
                SpotState::Ready => (counters(record)?, Step::Remove),
            },
            // A dead host's counters are its own to correct, should it come back.
            Change::Preserve(..) | Change::Release(..) => return Ok(None),
        };
        Ok(keys.map(|keys| (keys, step)))
    }

    /// Adds what a batch must hold for it, which is decided by `keys`.
    ///
    /// # Errors
    /// Where a value cannot be encoded.
    pub(super) fn batched(
        &self,
        stamp: Stamp,
        keys: &Keys,
        conditions: &mut Vec<Condition>,
        mutations: &mut Vec<Mutation>,
    ) -> Result<(), ArgumentError> {
        let Stamp { token, nonce, .. } = stamp;
        let key = &keys.record;
        match self {
            Change::Reserve(reserve) => {
                // The revision is issued with the write; the value does without.
                let value = reserve
                    .record(token.owner, token.lease, Revision::MAX)
                    .to_value(false, nonce)?;
                conditions.extend(keys.iter().cloned().map(Condition::Missing));
                mutations.push(Mutation::put(token.owner.index_key(key), Bytes::new()));
                mutations.push(Mutation::put(key.clone(), value));
            }
            Change::Commit(record, terminal) => {
                let value = record.to_value(true, nonce)?;
                conditions.push(Condition::Version(key.clone(), record.version));
                mutations.push(Mutation::put(key.clone(), value));
                mutations.extend(ended(record, terminal.as_deref(), stamp)?);
            }
            Change::Preserve(record) => {
                let value = record.to_value(true, nonce)?;
                conditions.push(Condition::Version(key.clone(), record.version));
                mutations.push(Mutation::put(key.clone(), value));
            }
            Change::Abort(record, terminal) => {
                removed(record, key, conditions, mutations);
                mutations.extend(ended(record, terminal.as_deref(), stamp)?);
            }
            Change::Delete(record) => removed(record, key, conditions, mutations),
            Change::Release(record, lease) => {
                removed(record, key, conditions, mutations);
                let of_owner = record.owner.lease_key();
                match lease {
                    // Its owner finds it gone, and what was taken, before it goes on.
                    Some(revision) => {
                        conditions.push(Condition::Version(of_owner.clone(), *revision));
                        mutations.push(Mutation::Delete(of_owner));
                    }
                    None => conditions.push(Condition::Missing(of_owner)),
                }
                let taken = record.owner.taken_key(key);
                mutations.push(Mutation::put(taken, record.to_value(true, nonce)?));
            }
            Change::Acknowledge(_, revision) => {
                conditions.push(Condition::Version(key.clone(), *revision));
                mutations.push(Mutation::Delete(key.clone()));
            }
        }
        Ok(())
    }

    /// What a batch in conflict tells of it, by what was then found under its [keys](Change::keys).
    pub(super) fn judge(&self, token: Token, found: &[Option<Stored>]) -> Judged {
        let stored = found.first().and_then(Option::as_ref);
        let version = match self {
            Change::Reserve(reserve) => {
                if let Some(ended) = found.get(1).and_then(Option::as_ref) {
                    return match Ended::read(ended) {
                        Ok(ended) => Judged::Over(Box::new(ended)),
                        Err(error) => Judged::Unreadable(error),
                    };
                }
                let Some(stored) = stored else { return Judged::Stands };
                return match SpotRecord::read_as(&reserve.id, stored) {
                    Ok(record) => reserve_judged(reserve, record, token),
                    Err(error) => Judged::Unreadable(error),
                };
            }
            Change::Commit(record, _)
            | Change::Abort(record, _)
            | Change::Preserve(record)
            | Change::Delete(record)
            | Change::Release(record, _) => record.version,
            Change::Acknowledge(_, revision) => *revision,
        };
        let Some(stored) = stored else {
            return Judged::Found(None);
        };
        if stored.revision != version {
            return match SpotRecord::read(stored) {
                Ok(record) => Judged::Found(Some(record)),
                Err(error) => Judged::Unreadable(error),
            };
        }
        if let Change::Release(_, proof) = self {
            let lease = found.get(1).and_then(Option::as_ref).map(|lease| lease.revision);
            // Somebody may have counted the owner out meanwhile, which proves as much; but it is for the next attempt to say.
            if lease != *proof {
                return Judged::Alive;
            }
        }
        Judged::Stands
    }

    /// Makes what was reserved Ready. An Instance Spot keeps its first message until that is done with; others have had theirs.
    pub(super) fn commit(mut record: Box<SpotRecord>, terminal: Option<Terminal>) -> Self {
        record.state = SpotState::Ready;
        if record.kind != ObjectKind::Instance {
            (record.inbox, record.blob) = (Bytes::new(), None);
        }
        Change::Commit(record, terminal.map(Box::new))
    }

    /// The record once it is applied, if there is one.
    pub(super) fn applied(self, token: Token, revision: Revision) -> Option<Box<SpotRecord>> {
        match self {
            Change::Reserve(reserve) => Some(Box::new(reserve.record(token.owner, token.lease, revision))),
            Change::Commit(mut record, _) | Change::Preserve(mut record) => {
                record.version = revision;
                Some(record)
            }
            Change::Abort(..) | Change::Delete(_) | Change::Release(..) | Change::Acknowledge(..) => None,
        }
    }

    /// About how many bytes it brings into a batch.
    pub(super) fn bytes(&self) -> usize {
        // Four keys of an ID, and the other fields.
        const OTHER: usize = 6 * 1024;
        let terminal = |terminal: &Option<Box<Terminal>>| terminal.as_ref().map_or(0, |terminal| terminal.body.len());
        OTHER
            + match self {
                Change::Reserve(reserve) => reserve.inbox.len(),
                Change::Commit(record, ended) => record.inbox.len() + terminal(ended),
                Change::Abort(_, ended) => terminal(ended),
                Change::Preserve(record) | Change::Release(record, _) => record.inbox.len(),
                Change::Delete(_) | Change::Acknowledge(..) => 0,
            }
    }
}

/// Where it stands how an operation ended that is done once at most, however often it is asked for: the creation of a User
/// Spot or an Actor. A message is never asked for again.
fn once(reserve: &Reserve) -> Option<Key> {
    matches!(reserve.kind, ObjectKind::User | ObjectKind::Actor).then(|| reserve.operation.terminal_key())
}

fn reserve_judged(reserve: &Reserve, record: SpotRecord, token: Token) -> Judged {
    let held_here = record.state == SpotState::Creating && (record.owner, record.lease) == (token.owner, token.lease);
    if !held_here || record.operation != reserve.operation {
        Judged::Found(Some(record))
    } else if reserve.made(&record) {
        Judged::Issued(record)
    } else {
        Judged::Differs
    }
}

fn removed(record: &SpotRecord, key: &Key, conditions: &mut Vec<Condition>, mutations: &mut Vec<Mutation>) {
    conditions.push(Condition::Version(key.clone(), record.version));
    mutations.push(Mutation::Delete(record.owner.index_key(key)));
    mutations.push(Mutation::Delete(key.clone()));
}

fn ended(record: &SpotRecord, terminal: Option<&Terminal>, stamp: Stamp) -> Result<Option<Mutation>, ArgumentError> {
    let Some(terminal) = terminal else { return Ok(None) };
    let left = terminal.deadline.saturating_duration_since(stamp.now);
    let retention = left.saturating_add(TERMINAL_TIME).min(STORE_RETENTION);
    Ok(Some(Mutation::Put {
        key: record.operation.terminal_key(),
        value: terminal.to_value(record, stamp.nonce)?,
        retention: Some(retention),
    }))
}
