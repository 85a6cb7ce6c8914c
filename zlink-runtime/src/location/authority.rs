//! Who owns which Spot and Actor: the one machine above all store providers that reserves IDs, makes objects Ready, and takes
//! them away.
//!
//! Every change is one batch, conditioned on the record, on the lease of this host and on the counters that it changes; so
//! it happens as a whole, or not at all. `record` is what the store says, `capacity` how many there are, `change` what a
//! batch must hold and what a conflict tells, all pure; `writer` does the I/O, for one host one batch at a time;
//! `reader` and `query` ask; `standing` knows which owners live; `orphans` ends what nobody else will, and `remains`
//! removes what is left then. It must not know what a Spot or an Actor does.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::{HostLease, Revision, Standing, StoreError};
use crate::error::ErrorKind;
use crate::id::{ObjectGeneration, ObjectId, ObjectRef};
use crate::random::Random;

mod capacity;
mod change;
mod orphans;
mod query;
mod reader;
mod record;
mod remains;
mod standing;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use capacity::Limits;
pub(crate) use orphans::Orphans;
pub(crate) use query::{Filter, Listed};
pub(crate) use reader::Reader;
pub(crate) use record::{CreationOutcome, Ended, OperationId, Reserve, SpotRecord, SpotState, Terminal};
pub(crate) use standing::Admission;

use change::Change;
use writer::{Done, Shared, Writer};

/// Why nothing is known of a change, or it cannot be made. A store that fails is never an absent record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AuthorityError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// This host's lease does not admit owned work, or the host ends.
    #[error("this host's lease does not admit work of Spots now")]
    Closed,
    /// The record is not what the caller holds any more, or the same operation was reserved with other content.
    #[error("another change of this Spot came first")]
    Conflict,
    #[error("the record cannot be used: {0}")]
    Unreadable(String),
    #[error("the Location Store has lost records; nothing is created until who had what is lost has ended it")]
    Lost,
}

impl AuthorityError {
    /// What a call that fails for this reason ends with.
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            AuthorityError::Store(error) => error.kind(),
            AuthorityError::Closed | AuthorityError::Lost => ErrorKind::Unavailable,
            AuthorityError::Conflict => ErrorKind::InvalidOperation,
            AuthorityError::Unreadable(_) => ErrorKind::InternalFailure,
        }
    }
}

/// What an ID leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resolved {
    Ready(SpotRecord),
    /// Somebody makes it.
    Creating(SpotRecord),
    Missing,
    /// There is one, and its owner is dead, or does not know whether it lives.
    Unavailable(SpotRecord),
    /// Nobody knows.
    Failed(AuthorityError),
}

/// How an attempt to reserve an ID ended.
#[derive(Debug)]
pub(crate) enum Reserving {
    Won(Reservation),
    /// The same operation holds it already, with the same content.
    Issued(SpotRecord),
    /// The same operation has ended, not long ago.
    Over(Ended),
    /// It is somebody else's.
    Lost(SpotRecord),
    NoCapacity,
}

/// How an attempt to take a Spot away ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    Removed,
    /// There is none.
    Missing,
    /// There is another one, or it has changed.
    Other(Box<SpotRecord>),
    /// Only of [`Authority::release`]: its owner lives.
    OwnerAlive,
}

/// What other hosts have taken from this one while it could not prove that it lives.
#[derive(Clone, Debug)]
pub(crate) enum Taken {
    /// That incarnation.
    One(Box<SpotRecord>),
    /// All whose generations are less.
    All(ObjectGeneration),
}

/// An ID that this host has reserved. Dropped without commit or abort, it is aborted by and by.
pub(crate) struct Reservation {
    shared: Arc<Shared>,
    /// `None` once somebody else has it to do.
    record: Option<Box<SpotRecord>>,
}

impl Reservation {
    fn new(shared: Arc<Shared>, record: Box<SpotRecord>) -> Self {
        Self {
            shared,
            record: Some(record),
        }
    }

    /// What is reserved; `None` only inside commit and abort.
    pub(crate) fn record(&self) -> Option<&SpotRecord> {
        self.record.as_deref()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            self.shared.leave(Change::Abort(record, None));
        }
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reservation").field(&self.record).finish()
    }
}

/// What has become Ready, on the way to whoever made it. Where that has gone meanwhile nobody has it, and it is removed.
struct Committed {
    shared: Arc<Shared>,
    record: Option<Box<SpotRecord>>,
}

impl Committed {
    fn new(shared: Arc<Shared>, record: Box<SpotRecord>) -> Self {
        let record = Some(record);
        Self { shared, record }
    }
}

impl fmt::Debug for Committed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Committed").field(&self.record).finish()
    }
}

impl Drop for Committed {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            self.shared.leave(Change::Delete(record));
        }
    }
}

/// Reads and changes who owns which Spot, under this host's lease. Clones share one writer, which ends with the last of
/// them.
#[derive(Clone)]
pub(crate) struct Authority(Arc<Handle>);

struct Handle {
    shared: Arc<Shared>,
    reader: Reader,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.end();
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Authority({})", self.0.shared.lease.config().owner)
    }
}

impl Authority {
    /// The authority of the host that holds `lease`, one per host. Its tasks run where the lease was told to.
    ///
    /// `taken` is told what other hosts released while this one could not renew its lease, before the lease admits owned
    /// work again; maybe twice. It must not wait.
    pub(crate) fn new(lease: Arc<HostLease>, random: Random, taken: impl Fn(Taken) + Send + Sync + 'static) -> Self {
        let runtime = lease.config().runtime.clone();
        let reader = Reader::new(lease.clone());
        let shared = Arc::new(Shared::new(lease, random));
        // The lease holds the hook, so the hook does not hold the lease.
        let weak = Arc::downgrade(&shared);
        shared.lease.when_taken(move |returned| {
            let shared = weak.upgrade();
            if shared
                .as_ref()
                .is_some_and(|shared| shared.is_swept(returned.last.as_ref()))
            {
                taken(Taken::All(record::generation_of(returned.lease)));
            }
            for (key, stored) in returned.taken {
                match SpotRecord::read(&stored) {
                    Ok(record) => {
                        let record = Box::new(record);
                        if let Some(shared) = &shared {
                            shared.leave(Change::Acknowledge(record.clone(), stored.revision));
                        }
                        taken(Taken::One(record));
                    }
                    Err(error) => {
                        tracing::error!(target: "zlink::runtime", %key, %error, "what was taken is not known")
                    }
                }
            }
        });
        runtime.spawn(Writer::new(shared.clone()).run());
        Self(Arc::new(Handle { shared, reader }))
    }

    fn shared(&self) -> &Shared {
        &self.0.shared
    }

    /// What only reads.
    pub(crate) fn reader(&self) -> &Reader {
        &self.0.reader
    }

    /// What `id` leads to, as the store says now.
    pub(crate) async fn resolve(&self, id: &ObjectId) -> Resolved {
        self.reader().resolve(id).await
    }

    /// Takes the ID, the capacity and the request into the store, if nobody has the ID. Dropping the future leaves the
    /// reservation made or not; it is aborted where it was.
    ///
    /// # Errors
    /// Where the store fails, or was found to have lost records ([`AuthorityError::Lost`], for the lease's TTL and the margin),
    /// the host's lease does not admit it, the same operation reserved other content ([`AuthorityError::Conflict`]), or
    /// the inbox has more than 64 KiB.
    pub(crate) async fn reserve(&self, reserve: Reserve) -> Result<Reserving, AuthorityError> {
        reserve.check().map_err(StoreError::from)?;
        if self.shared().lease.has_lost_lately() {
            return Err(AuthorityError::Lost);
        }
        let id = reserve.id.clone();
        match self.shared().submit(Change::Reserve(Box::new(reserve))).await? {
            Done::Reserved(reservation) => Ok(Reserving::Won(reservation)),
            Done::Issued(record) => Ok(Reserving::Issued(*record)),
            Done::Over(ended) => Ok(Reserving::Over(*ended)),
            Done::Found(Some(record)) => Ok(Reserving::Lost(*record)),
            // Nothing was asked of the store; who needs no room must not be told that there is none.
            Done::NoCapacity => Ok(match self.reader().find(&id).await? {
                Some(record) => Reserving::Lost(record),
                None => Reserving::NoCapacity,
            }),
            Done::Committed(_) | Done::Written(_) | Done::Removed | Done::Found(None) | Done::Alive => {
                Err(AuthorityError::Conflict)
            }
        }
    }

    /// Makes what was reserved Ready, and tells its caller's operation so. While the store fails it is tried again; dropping
    /// the future aborts the reservation, or removes the Spot.
    ///
    /// # Errors
    /// Where the reservation is gone or the host ends; it is not Ready then.
    pub(crate) async fn commit(
        &self,
        mut reservation: Reservation,
        terminal: Option<Terminal>,
    ) -> Result<Box<SpotRecord>, AuthorityError> {
        let Some(record) = reservation.record.take() else {
            return Err(AuthorityError::Conflict);
        };
        match self.shared().submit(Change::commit(record, terminal)).await? {
            Done::Committed(mut committed) => committed.record.take().ok_or(AuthorityError::Conflict),
            _ => Err(AuthorityError::Conflict),
        }
    }

    /// Takes the reservation back, and tells its caller's operation why. It is done sooner or later, even where the future
    /// is dropped.
    ///
    /// # Errors
    /// Where the reservation is gone or the host ends.
    pub(crate) async fn abort(
        &self,
        mut reservation: Reservation,
        terminal: Option<Terminal>,
    ) -> Result<(), AuthorityError> {
        let Some(record) = reservation.record.take() else {
            return Err(AuthorityError::Conflict);
        };
        match self
            .shared()
            .submit(Change::Abort(record, terminal.map(Box::new)))
            .await?
        {
            Done::Removed => Ok(()),
            _ => Err(AuthorityError::Conflict),
        }
    }

    /// Gives a Ready Spot of this host another inbox, which points at nothing, and nothing else.
    ///
    /// # Errors
    /// Where the store fails, the lease does not admit it, or the record is not `record` any more.
    pub(crate) async fn preserve(&self, record: &SpotRecord, inbox: Bytes) -> Result<Box<SpotRecord>, AuthorityError> {
        if record.state != SpotState::Ready {
            return Err(AuthorityError::Conflict);
        }
        let mut record = Box::new(record.clone());
        (record.inbox, record.blob) = (inbox, None);
        self.written(Change::Preserve(record)).await
    }

    async fn written(&self, change: Change) -> Result<Box<SpotRecord>, AuthorityError> {
        match self.shared().submit(change).await? {
            Done::Written(record) => Ok(record),
            _ => Err(AuthorityError::Conflict),
        }
    }

    /// Takes a Ready Spot of this host away. While the store fails it is tried again, even where the future is dropped.
    ///
    /// # Errors
    /// Where it is not Ready or the host ends.
    pub(crate) async fn delete(&self, record: &SpotRecord) -> Result<Removal, AuthorityError> {
        if record.state != SpotState::Ready {
            return Err(AuthorityError::Conflict);
        }
        match self.shared().submit(Change::Delete(Box::new(record.clone()))).await? {
            Done::Removed => Ok(Removal::Removed),
            Done::Found(None) => Ok(Removal::Missing),
            Done::Found(Some(other)) => Ok(Removal::Other(other)),
            _ => Err(AuthorityError::Conflict),
        }
    }

    /// Takes away what a dead host owns: that incarnation, however far it had come. Waits until the owner is proved dead, its
    /// lease's TTL and the margin by this host's clock, or seen alive. Dropping the future keeps what was seen so far.
    ///
    /// # Errors
    /// Where the store fails, or this host's lease does not admit it.
    pub(crate) async fn release(&self, reference: &ObjectRef) -> Result<Removal, AuthorityError> {
        let mut seen = None;
        loop {
            let record = match self.reader().find(&reference.id()).await? {
                None => return Ok(Removal::Missing),
                Some(record) if record.generation != reference.generation() => {
                    return Ok(Removal::Other(Box::new(record)));
                }
                Some(record) => record,
            };
            if record.owner == self.shared().lease.config().owner {
                return Ok(Removal::OwnerAlive);
            }
            let proof: Option<Revision> = match self.reader().owners.look(record.owner).await? {
                Standing::Gone => None,
                Standing::Dead(revision) => Some(revision),
                Standing::Alive { revision, .. } if seen.is_none_or(|seen| seen == revision) => {
                    seen = Some(revision);
                    tokio::time::sleep(self.shared().lease.config().timing.poll_interval).await;
                    continue;
                }
                Standing::Alive { .. } => return Ok(Removal::OwnerAlive),
            };
            return match self.shared().submit(Change::Release(Box::new(record), proof)).await? {
                Done::Removed => Ok(Removal::Removed),
                Done::Found(None) => Ok(Removal::Missing),
                // It, or the proof, is another than it was: looks again.
                Done::Found(Some(_)) | Done::Alive => continue,
                _ => Err(AuthorityError::Conflict),
            };
        }
    }

    /// How that creation ended, if it did not long ago.
    ///
    /// # Errors
    /// The store failed, or holds something else there.
    pub(crate) async fn ended(&self, operation: &OperationId) -> Result<Option<Ended>, AuthorityError> {
        self.reader().ended(operation).await
    }
}
