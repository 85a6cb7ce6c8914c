//! Looks for what nobody will end any more: creations that dead hosts have left, their Entry Spots, and reservations of
//! this host that nobody here holds. A page of the store at a time; when the next one is due, its user says.
//!
//! What is Ready stays as it is: only whoever is asked to may release that.

use std::collections::{BTreeSet, VecDeque};

use super::change::Change;
use super::query::scan;
use super::reader::read;
use super::record::SpotState;
use super::writer::Done;
use super::{Authority, AuthorityError};
use crate::id::{ObjectId, ObjectKind};
use crate::limit::READ_KEYS;
use crate::location::name::{OwnerId, WRITERS};
use crate::location::{Batch, Condition, Cursor, Mutation, Revision, StoreError, within};

/// How far the looking has come.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    /// Where the list of all who ever wrote goes on; `None` at its beginning.
    after: Option<Cursor>,
    /// Whose Spots are looked through next, and the revision of the key that names its last batch.
    owners: VecDeque<(OwnerId, Revision)>,
    /// Where those of the first of them go on.
    place: Option<Cursor>,
    /// Dead owners, as of their last batch, that have only what is not to be ended here.
    done: BTreeSet<(OwnerId, Revision)>,
    /// Those of the round before, which need not be looked through again.
    before: BTreeSet<(OwnerId, Revision)>,
}

impl Orphans {
    /// Looks at the next page, and ends what is to be ended; `holds` says which IDs this host makes a Spot of. Returns
    /// whether all was looked through once. Dropping the future leaves what was begun to the next look.
    ///
    /// # Errors
    /// The store failed, or this host's lease does not admit changes: the same page is next.
    pub(crate) async fn step(
        &mut self,
        authority: &Authority,
        holds: impl Fn(&ObjectId) -> bool,
    ) -> Result<bool, AuthorityError> {
        match self.owners.front().copied() {
            None => self.list(authority).await,
            Some((owner, last)) => self.look_through(authority, owner, last, holds).await,
        }
    }

    /// The next page of those who ever wrote: whoever of them has no lease is dead, and whoever returns makes it anew.
    async fn list(&mut self, authority: &Authority) -> Result<bool, AuthorityError> {
        let lease = &authority.reader().lease;
        let own = lease.config().owner;
        let page = scan(lease, WRITERS, READ_KEYS, self.after.clone()).await?;
        let owners: Vec<_> = page
            .entries
            .iter()
            .filter_map(|(key, last)| Some((OwnerId::of_writer(key)?, last.revision)))
            .collect();
        let keys: Vec<_> = owners.iter().map(|(owner, _)| owner.lease_key()).collect();
        let leases = read(lease, &keys).await?;
        let owners = owners.into_iter().zip(leases);
        let ours_or_dead = owners.filter(|((owner, _), lease)| lease.is_none() || *owner == own);
        self.owners.extend(ours_or_dead.map(|(owner, _)| owner));
        if self.after.is_none() {
            self.before = std::mem::take(&mut self.done);
        }
        self.after = page.next;
        Ok(self.after.is_none() && self.owners.is_empty())
    }

    async fn look_through(
        &mut self,
        authority: &Authority,
        owner: OwnerId,
        last: Revision,
        holds: impl Fn(&ObjectId) -> bool,
    ) -> Result<bool, AuthorityError> {
        let reader = authority.reader();
        let own = reader.lease.config().owner;
        let mut is_dead = owner != own;
        let (records, next) = if is_dead && self.before.contains(&(owner, last)) {
            (Vec::new(), None)
        } else {
            reader.owned_by(owner, self.place.clone()).await?
        };
        for record in records {
            let is_creating = record.state == SpotState::Creating;
            let change = match owner == own {
                true if is_creating && !holds(&record.id) => Change::Abort(Box::new(record.clone()), None),
                false if is_creating || record.kind == ObjectKind::Entry => {
                    Change::Release(Box::new(record.clone()), None)
                }
                _ => continue,
            };
            match authority.shared().submit(change).await? {
                Done::Removed => tracing::info!(
                    target: "zlink::spot", event_id = "zlink.spot.orphan_removed", spot = %record.id, %owner,
                    "what nobody would have ended is taken back"
                ),
                // It has come back.
                Done::Alive => is_dead = false,
                // Somebody else was first.
                _ => {}
            }
        }
        self.place = next;
        if self.place.is_none() {
            if is_dead && has_left(authority, owner, last).await? {
                self.done.insert((owner, last));
            }
            self.owners.pop_front();
        }
        Ok(self.owners.is_empty() && self.after.is_none())
    }
}

/// Whether a dead owner has left anything. One that has not is listed no more: the key goes that names its last batch, if it is still
/// dead and has written nothing since. Should it come back, its next batch writes that key anew.
async fn has_left(authority: &Authority, owner: OwnerId, last: Revision) -> Result<bool, AuthorityError> {
    let shared = authority.shared();
    let left = scan(&shared.lease, &owner.index_prefix(), 1, None).await?;
    if !left.entries.is_empty() {
        return Ok(true);
    }
    let own = shared.lease.condition().ok_or(AuthorityError::Closed)?;
    let key = owner.writer_key();
    let conditions = [
        own,
        Condition::Missing(owner.lease_key()),
        Condition::Version(key.clone(), last),
    ];
    let batch = Batch::new(conditions, [Mutation::Delete(key)]).map_err(StoreError::from)?;
    // A conflict means that the next look finds something else.
    let _ = within(shared.timeout(), shared.lease.config().store.write(&batch)).await?;
    Ok(false)
}
