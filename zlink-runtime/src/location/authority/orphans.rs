//! Looks for what nobody will end any more: creations that dead hosts have left, their Entry Spots, and reservations of
//! this host that nobody here holds. A page of the store at a time; when the next one is due, its user says.
//!
//! What is Ready stays as it is: only whoever is asked to may release that. Of whoever owns nothing any more nothing stays.

use std::collections::{BTreeSet, VecDeque};

use super::change::Change;
use super::query::scan;
use super::reader::read;
use super::record::SpotState;
use super::remains::{self, Remains};
use super::writer::Done;
use super::{Authority, AuthorityError};
use crate::id::{ObjectId, ObjectKind};
use crate::limit::READ_KEYS;
use crate::location::name::{OwnerId, WRITERS};
use crate::location::{Cursor, Revision};

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
            let remains = match is_dead {
                true => remains::remove(authority, owner, last).await?,
                false => Remains::None,
            };
            match (remains, self.owners.front_mut()) {
                (Remains::Some(revision), Some((_, last))) => {
                    *last = revision;
                    return Ok(false);
                }
                (Remains::Others, _) => drop(self.done.insert((owner, last))),
                _ => {}
            }
            self.owners.pop_front();
        }
        Ok(self.owners.is_empty() && self.after.is_none())
    }
}
