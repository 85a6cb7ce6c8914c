//! Where a mesh keeps what its nodes agree on: the contract of store providers, the providers, and the leases of hosts.
//!
//! A provider keeps opaque values under keys. It must not know what a value means: leases are the business of `lease`,
//! descriptors and authority that of the floors above, and applications never call a provider.
//!
//! Two traits, each object-safe: [`LocationStore`] for small records that change together or not at all, and
//! [`BlobStore`] for the bytes of objects on the move. [`MemoryStore`] is both, within one process.
//!
//! What a provider must keep to, beyond the signatures:
//!
//! - **Batches are atomic.** No other client ever sees a part of one, and each applied batch has a [`Revision`]
//!   greater than that of every batch applied before it in the namespace. A revision never recurs.
//! - **Conditions decide, reads inform.** A condition is judged by the present state. A read or a page shows one state
//!   of the namespace at one moment, which may lie in the past; but never before what the same store value has already
//!   answered: a read that begins after a batch was answered (applied or in conflict), or after another read, shows at
//!   least the state they saw.
//! - **Expired is missing**, for reads, pages and conditions alike, from the moment the provider's clock reaches the
//!   expiry. Nothing else depends on that clock.
//! - **Futures are lazy.** One that is dropped before its first poll did nothing. One that is dropped later leaves a
//!   write that was applied, will be, or never will; the store is whole in each case.
//! - **Bounds are checked before any I/O.** Keys, batches and scans are valid once made, so a provider checks only
//!   what no type can: [`LocationStore::read_many`]'s number of keys, and cursors.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

#[cfg_attr(
    not(feature = "testing"),
    allow(
        dead_code,
        reason = "what resumes a creation, and answers one that is asked for again, is not built yet"
    )
)]
mod authority;
mod batch;
mod blob;
mod blobs;
mod boot;
mod error;
mod guarded;
mod key;
mod lease;
mod losses;
mod memory;
mod name;
mod probe;
mod read;
#[cfg(feature = "redis")]
mod redis;
mod snapshot;
mod source;
#[cfg(feature = "sqlite")]
mod sqlite;
mod timing;

pub use batch::{Batch, Condition, Mutation, Written};
pub use blob::{BlobPut, BlobRef, BlobRenewed, BlobStore, StoredBlob, check_blob, check_retention};
pub use boot::BootClock;
pub use error::{OpenError, StoreError};
pub use key::{Key, Revision, StoreTime};
pub use memory::{Fault, Faults, MemoryStore, Operation};
pub use probe::{ProbeError, probe};
pub use read::{Cursor, Page, Read, ReadMany, Scan, Scanned, Stored, check_read_many};
#[cfg(feature = "redis")]
pub use redis::{RedisBlobStore, RedisStore};
pub use source::{BlobSource, StoreSource};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteBlobStore, SqliteStore};
pub use timing::LocationTiming;

pub(crate) use authority::{
    Admission, Authority, AuthorityError, CreationOutcome, Ended, Filter, Limits, Listed, OperationId, Orphans, Reader,
    Removal, Reservation, Reserve, Reserving, Resolved, SpotRecord, SpotState, Taken, Terminal,
};
pub(crate) use blobs::{Blobs, Pointer};
pub(crate) use boot::{BootTime, nanos};
pub(crate) use guarded::Guarded;
pub(crate) use lease::{HostLease, LeaseConfig, LeasePhase, LeaseSeen, LeaseWatch, Record, Standing};
#[cfg(feature = "testing")]
pub(crate) use name::object_key;
pub(crate) use name::{LEASES, ListName, OwnerId};
pub(crate) use snapshot::{read as read_list, within};

/// A boxed future, as object-safe traits need it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Keeps small records for a whole namespace. See the [module](self) for what every provider must keep to; the
/// conformance suite of the cargo feature `testing` checks it.
///
/// A provider is dropped once, after its last use.
pub trait LocationStore: Send + Sync + fmt::Debug + 'static {
    /// Reads the values of `keys`, all from one state of the namespace. A key may be there twice.
    ///
    /// # Errors
    /// [`StoreError::Argument`] where there are more than 1,000 keys; otherwise the store failed, which never means
    /// that a value is missing.
    fn read_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<ReadMany, StoreError>>;

    /// Reads the value of `key`.
    ///
    /// # Errors
    /// The store failed, which never means that the value is missing.
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Read, StoreError>> {
        Box::pin(async move {
            let ReadMany { now, mut found } = self.read_many(std::slice::from_ref(key)).await?;
            let found = found.pop().flatten();
            Ok(Read { now, found })
        })
    }

    /// Applies all mutations of `batch` if all its conditions hold, else none.
    ///
    /// # Errors
    /// After [`StoreError::Unknown`] the batch was applied, is applied later, or never; reading does not tell which,
    /// since it may still come. Repeat the identical batch until it is applied or in conflict, then read: a batch
    /// that is meant to be repeated carries something unique in its values. After every other error it was not
    /// applied and never will be.
    fn write<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Written, StoreError>>;

    /// Reads the next page of the keys that begin with a prefix, in byte order, all from one state of the namespace.
    /// Different pages may come from different states.
    ///
    /// # Errors
    /// [`StoreError::Argument`] where the cursor is not of this store and prefix; otherwise the store failed.
    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Scanned, StoreError>>;
}

/// A handle shared by several users is a store, as what it leads to.
impl<S: LocationStore + ?Sized> LocationStore for Arc<S> {
    fn read_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<ReadMany, StoreError>> {
        (**self).read_many(keys)
    }

    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Read, StoreError>> {
        (**self).read(key)
    }

    fn write<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Written, StoreError>> {
        (**self).write(batch)
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Scanned, StoreError>> {
        (**self).scan(scan)
    }
}
