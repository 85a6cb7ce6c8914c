//! The changes that authority can undergo: what a batch must hold for each, and what one in conflict tells of it. Pure.
//!
//! Every change is decided by the version of the record that it changes; a reservation by its being missing.

use std::collections::BTreeSet;

use bytes::Bytes;
use tokio::time::Instant;

use super::capacity::{self, Step};
use super::record::{Ended, Nonce, NotARecord, Reserve, SpotRecord, SpotState, Terminal};
use crate::error::ArgumentError;
use crate::id::SpotKind;
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

#[derive(Clone, Debug)]
pub(super) enum Change {
    /// Missing to Creating.
    Reserve(Reserve),
    /// Creating to Ready.
    Commit(SpotRecord, Option<Terminal>),
    /// Creating to Missing.
    Abort(SpotRecord, Option<Terminal>),
    /// Ready to Ready: another inbox.
    Preserve(SpotRecord, Bytes),
    /// Ready to Missing.
    Delete(SpotRecord),
    /// To Missing, by somebody else than the owner, who is dead: its lease has stood at that revision, or is gone.
    Release(SpotRecord, Option<Revision>),
    /// This host has learned that the Spot was taken from it by such a release; the entry that says so had that revision.
    Acknowledge(SpotRecord, Revision),
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
    /// What tells changes apart that cannot be in one batch.
    pub(super) fn keys(&self, token: Token) -> Vec<Key> {
        match self {
            Change::Reserve(reserve) => std::iter::once(name::spot_key(&reserve.id))
                .chain(once(reserve))
                .collect(),
            Change::Commit(record, _) | Change::Abort(record, _) | Change::Preserve(record, _) => vec![record.key()],
            Change::Delete(record) => vec![record.key()],
            Change::Release(record, _) => vec![record.key(), record.owner.lease_key()],
            Change::Acknowledge(record, _) => vec![token.owner.taken_key(&record.key())],
        }
    }

    /// The counters it changes, and how.
    ///
    /// # Errors
    /// Where the names of node and type are too long for a key.
    pub(super) fn counted(&self) -> Result<Option<([Key; 2], Step)>, ArgumentError> {
        let (keys, step) = match self {
            Change::Reserve(reserve) => {
                let keys = capacity::keys(&reserve.node, reserve.kind, &reserve.stable_type)?;
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

    /// Adds what a batch must hold for it.
    ///
    /// # Errors
    /// Where a value cannot be encoded.
    pub(super) fn batched(
        &self,
        stamp: Stamp,
        conditions: &mut Vec<Condition>,
        mutations: &mut Vec<Mutation>,
    ) -> Result<(), ArgumentError> {
        let Stamp { token, nonce, .. } = stamp;
        match self {
            Change::Reserve(reserve) => {
                let key = name::spot_key(&reserve.id);
                // The revision is issued with the write; the value does without.
                let value = reserve
                    .record(token.owner, token.lease, Revision::MAX)
                    .to_value(false, nonce)?;
                conditions.push(Condition::Missing(key.clone()));
                conditions.extend(once(reserve).map(Condition::Missing));
                mutations.push(Mutation::put(token.owner.index_key(&key), Bytes::new()));
                mutations.push(Mutation::put(key, value));
            }
            Change::Commit(record, terminal) => {
                let value = committed(record).to_value(true, nonce)?;
                conditions.push(Condition::Version(record.key(), record.version));
                mutations.push(Mutation::put(record.key(), value));
                mutations.extend(ended(record, terminal.as_ref(), stamp)?);
            }
            Change::Preserve(record, inbox) => {
                let value = preserved(record, inbox).to_value(true, nonce)?;
                conditions.push(Condition::Version(record.key(), record.version));
                mutations.push(Mutation::put(record.key(), value));
            }
            Change::Abort(record, terminal) => {
                removed(record, conditions, mutations);
                mutations.extend(ended(record, terminal.as_ref(), stamp)?);
            }
            Change::Delete(record) => removed(record, conditions, mutations),
            Change::Release(record, lease) => {
                removed(record, conditions, mutations);
                let key = record.owner.lease_key();
                match lease {
                    // Its owner finds it gone, and what was taken, before it goes on.
                    Some(revision) => {
                        conditions.push(Condition::Version(key.clone(), *revision));
                        mutations.push(Mutation::Delete(key));
                    }
                    None => conditions.push(Condition::Missing(key)),
                }
                let taken = record.owner.taken_key(&record.key());
                mutations.push(Mutation::put(taken, record.to_value(true, nonce)?));
            }
            Change::Acknowledge(record, revision) => {
                let key = token.owner.taken_key(&record.key());
                conditions.push(Condition::Version(key.clone(), *revision));
                mutations.push(Mutation::Delete(key));
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
            | Change::Preserve(record, _)
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

    /// The record once it is applied, if there is one.
    pub(super) fn applied(&self, token: Token, revision: Revision) -> Option<SpotRecord> {
        let record = match self {
            Change::Reserve(reserve) => return Some(reserve.record(token.owner, token.lease, revision)),
            Change::Commit(record, _) => committed(record),
            Change::Preserve(record, inbox) => preserved(record, inbox),
            Change::Abort(..) | Change::Delete(_) | Change::Release(..) | Change::Acknowledge(..) => return None,
        };
        Some(SpotRecord {
            version: revision,
            ..record
        })
    }

    /// About how many bytes it brings into a batch.
    pub(super) fn bytes(&self) -> usize {
        // Four keys of an ID, and the other fields.
        const OTHER: usize = 6 * 1024;
        let terminal = |terminal: &Option<Terminal>| terminal.as_ref().map_or(0, |terminal| terminal.body.len());
        OTHER
            + match self {
                Change::Reserve(reserve) => reserve.inbox.len(),
                Change::Commit(record, ended) => record.inbox.len() + terminal(ended),
                Change::Abort(_, ended) => terminal(ended),
                Change::Preserve(_, inbox) => inbox.len(),
                Change::Release(record, _) => record.inbox.len(),
                Change::Delete(_) | Change::Acknowledge(..) => 0,
            }
    }
}

/// Where it stands how an operation ended that is done once at most, however often it is asked for: the creation of a User
/// Spot. A message is never asked for again.
fn once(reserve: &Reserve) -> Option<Key> {
    (reserve.kind == SpotKind::User).then(|| reserve.operation.terminal_key())
}

fn counters(record: &SpotRecord) -> Result<Option<[Key; 2]>, ArgumentError> {
    capacity::keys(&record.node, record.kind, &record.stable_type)
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

/// An Instance Spot keeps its first message until that is done with; others have had theirs.
fn committed(record: &SpotRecord) -> SpotRecord {
    let inbox = match record.kind {
        SpotKind::Instance => record.inbox.clone(),
        SpotKind::Entry | SpotKind::User => Bytes::new(),
    };
    SpotRecord {
        state: SpotState::Ready,
        inbox,
        ..record.clone()
    }
}

fn preserved(record: &SpotRecord, inbox: &Bytes) -> SpotRecord {
    SpotRecord {
        inbox: inbox.clone(),
        ..record.clone()
    }
}

fn removed(record: &SpotRecord, conditions: &mut Vec<Condition>, mutations: &mut Vec<Mutation>) {
    let key = record.key();
    conditions.push(Condition::Version(key.clone(), record.version));
    mutations.push(Mutation::Delete(record.owner.index_key(&key)));
    mutations.push(Mutation::Delete(key));
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

/// Whether two changes can be in one batch.
pub(super) fn apart(taken: &BTreeSet<Key>, keys: &[Key]) -> bool {
    !keys.iter().any(|key| taken.contains(key))
}
