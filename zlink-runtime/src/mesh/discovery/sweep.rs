//! Removes what dead hosts have left. Each batch proves that its writer is alive and that the host is not.

use std::collections::{BTreeMap, BTreeSet};

use crate::location::{Batch, Condition, Mutation, OwnerId, Revision, Standing, Written, within};

use super::Searching;

/// Dead hosts that one look sweeps out.
const HOSTS: usize = 16;
/// Descriptors of one host that one batch removes.
const DESCRIPTORS: usize = 256;

impl Searching {
    /// Best effort: whoever looks next tries again, and a host that lives after all finds its lease gone and makes it anew.
    pub(super) async fn sweep(&self) {
        let Some(writer) = self.lease.condition() else { return };
        for (owner, lease) in self.dead().into_iter().take(HOSTS) {
            let Some(batch) = self.removal(owner, lease, writer.clone()) else {
                continue;
            };
            match within(self.timeout(), self.store().write(&batch)).await {
                Ok(Written::Applied { .. }) => tracing::info!(
                    target: "zlink::runtime", event_id = "zlink.runtime.location.host_removed", %owner,
                    "a dead host was removed from the Location Store"
                ),
                // Another host was first, or it lives.
                Ok(Written::Conflict) => {}
                Err(error) => {
                    tracing::debug!(target: "zlink::runtime", %owner, %error, "a dead host could not be removed");
                    return;
                }
            }
        }
    }

    /// Hosts that have left something and have no life, and the revisions of the leases that prove it.
    fn dead(&self) -> BTreeMap<OwnerId, Option<Revision>> {
        let found = self.searches.iter().flat_map(|search| &search.found);
        let with_descriptors =
            found
                .map(|found| found.descriptor.owner)
                .filter_map(|owner| match self.watch.standing(&owner)? {
                    Standing::Dead(revision) => Some((owner, Some(revision))),
                    Standing::Gone => Some((owner, None)),
                    Standing::Alive { .. } => None,
                });
        let strays = self
            .strays
            .suspects()
            .filter_map(|owner| match self.watch.standing(&owner)? {
                Standing::Dead(revision) => Some((owner, Some(revision))),
                // Nothing else of it is known here.
                Standing::Gone | Standing::Alive { .. } => None,
            });
        strays.chain(with_descriptors).collect()
    }

    fn removal(&self, owner: OwnerId, lease: Option<Revision>, writer: Condition) -> Option<Batch> {
        let mut conditions = vec![writer];
        let mut mutations = Vec::new();
        let key = owner.lease_key();
        match lease {
            Some(revision) => {
                conditions.push(Condition::Version(key.clone(), revision));
                mutations.push(Mutation::Delete(key));
            }
            None => conditions.push(Condition::Missing(key)),
        }
        let mut stamps = BTreeSet::new();
        let of_owner = self.searches.iter().flat_map(|search| {
            let found = search.found.iter().filter(|found| found.descriptor.owner == owner);
            found.map(move |found| (search.list.stamp(), found))
        });
        for (stamp, found) in of_owner.take(DESCRIPTORS) {
            conditions.push(Condition::Version(found.key.clone(), found.revision));
            mutations.push(Mutation::Delete(found.key.clone()));
            stamps.insert(stamp);
        }
        // The value of a stamp says nothing; its revision does.
        mutations.extend(stamps.into_iter().map(|stamp| Mutation::put(stamp, owner.to_wire())));
        match Batch::new(conditions, mutations) {
            Ok(batch) => Some(batch),
            Err(error) => {
                tracing::error!(target: "zlink::runtime", %owner, %error, "a dead host cannot be removed");
                None
            }
        }
    }
}
