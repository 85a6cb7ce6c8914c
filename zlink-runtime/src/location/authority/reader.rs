//! What the store says of one Spot, and whether its owner lives. It must not change anything.

use std::sync::Arc;

use tokio::task::AbortHandle;

use super::record::{Ended, OperationId, SpotRecord, SpotState};
use super::standing::{Admission, Owners};
use super::{AuthorityError, Resolved};
use crate::id::ObjectId;
use crate::location::boot::BootTime;
use crate::location::name::{self, OwnerId};
use crate::location::{HostLease, Key, Revision, Standing, StoreError, Stored, within};

/// Reads through the store of the host that holds a lease. Clones share what they have seen of other hosts' leases, which
/// are watched until the last of them is gone.
#[derive(Clone)]
pub(crate) struct Reader {
    pub(super) lease: Arc<HostLease>,
    pub(super) owners: Arc<Owners>,
    _polling: Arc<Polling>,
}

struct Polling(AbortHandle);

impl Drop for Polling {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reader({})", self.lease.config().owner)
    }
}

impl Reader {
    /// Its task runs where the lease was told to.
    pub(crate) fn new(lease: Arc<HostLease>) -> Self {
        let owners = Arc::new(Owners::new(lease.clone()));
        let polled = owners.clone();
        let polling = lease.config().runtime.spawn(async move { polled.poll().await });
        Self {
            lease,
            owners,
            _polling: Arc::new(Polling(polling.abort_handle())),
        }
    }

    /// What `id` leads to, as the store says now.
    pub(crate) async fn resolve(&self, id: &ObjectId) -> Resolved {
        match self.find(id).await {
            Ok(None) => Resolved::Missing,
            Ok(Some(record)) => match self.stands(&record).await {
                Ok(false) => Resolved::Unavailable(record),
                Ok(true) => match record.state {
                    SpotState::Ready => Resolved::Ready(record),
                    SpotState::Creating => Resolved::Creating(record),
                },
                Err(error) => Resolved::Failed(error.into()),
            },
            Err(error) => Resolved::Failed(error),
        }
    }

    /// The record of `id`, whoever owns it.
    ///
    /// # Errors
    /// The store failed, or holds something else there.
    pub(super) async fn find(&self, id: &ObjectId) -> Result<Option<SpotRecord>, AuthorityError> {
        let stored = self.one(name::object_key(id)).await?;
        let record = stored.map(|stored| SpotRecord::read_as(id, &stored)).transpose();
        record.map_err(|error| AuthorityError::Unreadable(error.to_string()))
    }

    /// Whether the owner of `record` may be alive, as the run that wrote it.
    pub(super) async fn stands(&self, record: &SpotRecord) -> Result<bool, StoreError> {
        if record.owner == self.lease.config().owner {
            return Ok(self.lease.admits() && self.lease.generation() == Some(record.lease));
        }
        let standing = self.owners.standing(record.owner).await?;
        Ok(matches!(standing, Standing::Alive { generation, .. } if generation == record.lease))
    }

    /// Whether what that run of a host owned may be sent to, by what is known without asking.
    pub(crate) fn may_be_routed_to(&self, owner: OwnerId, lease: Revision) -> bool {
        if owner == self.lease.config().owner {
            return self.lease.admits() && self.lease.generation() == Some(lease);
        }
        self.owners.may_own(owner, lease)
    }

    /// The same for as long as anybody wants to know, of a run of another host; of this host's own there is none.
    pub(crate) fn admission(&self, owner: OwnerId, lease: Revision) -> Option<Arc<Admission>> {
        (owner != self.lease.config().owner).then(|| self.owners.admission(owner, lease))
    }

    /// The present, on the clock that leases are judged by.
    pub(crate) fn now(&self) -> BootTime {
        self.lease.config().clock.now()
    }

    /// How often the store was found to have lost records.
    pub(crate) fn losses(&self) -> u64 {
        self.lease.losses()
    }

    /// How that creation ended, if it did not long ago.
    ///
    /// # Errors
    /// The store failed, or holds something else there.
    pub(crate) async fn ended(&self, operation: &OperationId) -> Result<Option<Ended>, AuthorityError> {
        let stored = self.one(operation.terminal_key()).await?;
        let ended = stored.map(|stored| Ended::read(&stored)).transpose();
        ended.map_err(|error| AuthorityError::Unreadable(error.to_string()))
    }

    pub(super) async fn one(&self, key: Key) -> Result<Option<Stored>, StoreError> {
        Ok(read(&self.lease, &[key]).await?.into_iter().next().flatten())
    }
}

/// Reads through the store of that lease, at most for one renew timeout.
pub(super) async fn read(lease: &HostLease, keys: &[Key]) -> Result<Vec<Option<Stored>>, StoreError> {
    let config = lease.config();
    let read = within(config.timing.renew_timeout, config.store.read_many(keys)).await?;
    Ok(read.found)
}
