//! Removes what is left in the store of a dead host that owns nothing any more: what was taken from it, its counters, and the
//! key that names its last batch. A part at a time, so that nobody's writer is held long.
//!
//! Should that host come back after all, it learns from that key that all it had was taken. Until all is removed it says
//! so, and afterwards it is missing.

use std::collections::BTreeSet;

use super::capacity::{Counters, Named, Tally};
use super::change::Change;
use super::query::scan;
use super::reader::read;
use super::record::SpotRecord;
use super::writer::SWEPT;
use super::{Authority, AuthorityError};
use crate::limit::SWEPT_AT_ONCE;
use crate::location::name::OwnerId;
use crate::location::{Batch, Condition, Mutation, Revision, StoreError, Written, within};

/// How much is left of an owner.
pub(super) enum Remains {
    /// Something is, and this is the revision of the key that names its last batch.
    Some(Revision),
    /// Nothing that is known.
    None,
    /// What is not to be removed here.
    Others,
}

/// Removes the next part of what a dead owner has left, if it owns nothing, is still dead, and has written nothing since its
/// batch of revision `last`.
///
/// # Errors
/// The store failed, or this host's lease does not admit it.
pub(super) async fn remove(authority: &Authority, owner: OwnerId, last: Revision) -> Result<Remains, AuthorityError> {
    let shared = authority.shared();
    // In this order: nothing is taken from whoever owns nothing.
    let owned = scan(&shared.lease, &owner.index_prefix(), 1, None).await?;
    if !owned.entries.is_empty() {
        return Ok(Remains::Others);
    }
    let taken = scan(&shared.lease, &owner.taken_prefix(), SWEPT_AT_ONCE, None).await?;
    let own = shared.lease.condition().ok_or(AuthorityError::Closed)?;
    let mut conditions = vec![
        own,
        Condition::Missing(owner.lease_key()),
        Condition::Version(owner.writer_key(), last),
    ];
    let mut mutations = vec![match taken.next {
        Some(_) => Mutation::put(owner.writer_key(), SWEPT),
        None => Mutation::Delete(owner.writer_key()),
    }];
    // Each is counted out as its owner would count it out, so that the counters are right whenever it comes back.
    let (mut named, mut counted) = (Named::default(), Vec::new());
    for (key, stored) in taken.entries {
        let Ok(record) = SpotRecord::read(&stored) else {
            tracing::warn!(target: "zlink::runtime", %key, "what was taken from a dead host cannot be read, and stays");
            return Ok(Remains::Others);
        };
        let change = Change::Acknowledge(Box::new(record), stored.revision);
        counted.extend(change.counted(&mut named).map_err(StoreError::from)?);
        conditions.push(Condition::Version(key.clone(), stored.revision));
        mutations.push(Mutation::Delete(key));
    }
    let keys: BTreeSet<_> = counted.iter().flat_map(|(keys, _)| keys).cloned().collect();
    let keys: Vec<_> = keys.into_iter().collect();
    let (mut counters, mut tally) = (Counters::default(), Tally::default());
    let found = read(&shared.lease, &keys).await?;
    keys.into_iter()
        .zip(&found)
        .for_each(|(key, stored)| counters.found(key, stored.as_ref()));
    for (keys, step) in counted {
        // Who goes needs no room.
        tally.take(&counters, keys, step);
    }
    let batch = tally
        .batched(&counters, shared.nonce(), &mut conditions, &mut mutations)
        .and_then(|()| Batch::new(conditions, mutations))
        .map_err(StoreError::from)?;
    let written = within(shared.timeout(), shared.lease.config().store.write(&batch)).await?;
    Ok(match (written, taken.next) {
        (Written::Applied { revision, .. }, Some(_)) => Remains::Some(revision),
        // A conflict means that the next look finds something else.
        _ => Remains::None,
    })
}
