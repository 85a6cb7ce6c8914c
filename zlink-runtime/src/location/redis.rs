//! The provider on a Redis server: for any number of machines.
//!
//! It owns the handles, and what address and namespace they take. Each operation is one script, which the server runs as
//! one, in `redis/*.lua`; all keys of a namespace are of one hash slot. The server's clock is the store's.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;

use self::blobs::Blobs;
use self::link::Link;
use self::records::Records;
use super::source::shown;
use super::{
    Batch, BlobPut, BlobRef, BlobRenewed, BlobStore, BoxFuture, Key, LocationStore, OpenError, ReadMany, Scan, Scanned,
    StoreError, StoredBlob, Written, check_blob, check_read_many, check_retention,
};
use crate::limit::STORE_TIMEOUT;

mod blobs;
mod link;
mod records;

/// Records on a Redis server, 6.2 or later, in a namespace of their own. Clones share a connection and the thread that
/// drives it, which end with the last of them. A connection that is lost is made again by the next operation.
///
/// The server must have `maxmemory-policy noeviction` and `appendonly yes`, since what it answered must still be there
/// when it is short of memory or starts again. What it is told within the last second it may still lose with its
/// machine (`appendfsync everysec`), and an asynchronous failover loses what the replica had not got. Where a server has lost something,
/// the next operation of each clone ends with [`StoreError::Lost`], whoever has written to it since, up to 4,096 batches.
///
/// An operation takes two seconds at most, the wait for a connection included. One that changes something and was sent
/// then ends with [`StoreError::Unknown`].
pub struct RedisStore {
    shared: Arc<Shared>,
    /// How many losses whoever has this clone was told of: one is found by a single operation, which may be nobody's any more by
    /// then, or another clone's.
    told: AtomicU64,
}

struct Shared {
    link: Link,
    records: Arc<Records>,
    namespace: String,
}

impl RedisStore {
    /// Connects to the server at `address`, such as `redis://user:password@host:6379/0`, where all but the host may be
    /// left out, and opens the namespace: 1 to 64 letters, digits, `-`, `_` and `.`. It is made where there is none.
    ///
    /// # Errors
    /// Where the address or the namespace is none, the server cannot be reached, or is not set as it must be.
    pub async fn open(address: &str, namespace: &str) -> Result<Self, OpenError> {
        Self::open_with_timeout(address, namespace, STORE_TIMEOUT).await
    }

    /// The same with another time for each operation, instead of two seconds. Keep it below the three seconds after
    /// which a host gives the renewal of its lease up.
    ///
    /// # Errors
    /// As [`RedisStore::open`].
    pub async fn open_with_timeout(address: &str, namespace: &str, timeout: Duration) -> Result<Self, OpenError> {
        check(address, namespace)?;
        let link = Link::open(address, timeout).await?;
        let records = Arc::new(Records::new(namespace));
        let opening = Arc::clone(&records);
        link.run(|server| async move { opening.open(&server).await })
            .await
            .map_err(|error| OpenError::new(&shown(address), error.to_string()))?;
        Ok(Self {
            shared: Arc::new(Shared {
                link,
                records,
                namespace: namespace.to_owned(),
            }),
            told: AtomicU64::new(0),
        })
    }

    /// Runs an operation, unless there is a loss to be told of first.
    async fn run<T, F>(&self, act: impl FnOnce(Arc<link::Server>, Arc<Records>) -> F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let records = &self.shared.records;
        let losses = records.losses();
        if self.told.swap(losses, Ordering::AcqRel) != losses {
            return Err(records::lost());
        }
        let run = self.shared.link.run(|server| act(server, Arc::clone(records)));
        let ended = run.await;
        if let Err(StoreError::Lost(_)) = ended {
            self.told.fetch_max(records.losses(), Ordering::AcqRel);
        }
        ended
    }
}

impl Clone for RedisStore {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            told: AtomicU64::new(self.told.load(Ordering::Acquire)),
        }
    }
}

impl LocationStore for RedisStore {
    fn read_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<ReadMany, StoreError>> {
        Box::pin(async move {
            check_read_many(keys)?;
            let keys = keys.to_vec();
            self.run(|server, records| async move { records.read_many(&server, &keys).await })
                .await
        })
    }

    fn write<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Written, StoreError>> {
        Box::pin(async move {
            let batch = batch.clone();
            self.run(|server, records| async move { records.write(&server, &batch).await })
                .await
        })
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Scanned, StoreError>> {
        Box::pin(async move {
            let scan = scan.clone();
            self.run(|server, records| async move { records.scan(&server, &scan).await })
                .await
        })
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisStore({:?}, {:?})", self.shared.link, self.shared.namespace)
    }
}

/// Blobs on a Redis server, over a connection of their own, so that a large one holds up no record. A put or a get may
/// take 16 seconds longer than other operations. Otherwise as [`RedisStore`], whose server and namespace it may share.
#[derive(Clone)]
pub struct RedisBlobStore {
    link: Arc<Link>,
    blobs: Arc<Blobs>,
}

impl RedisBlobStore {
    /// Connects as [`RedisStore::open`] does.
    ///
    /// # Errors
    /// As there.
    pub async fn open(address: &str, namespace: &str) -> Result<Self, OpenError> {
        Self::open_with_timeout(address, namespace, STORE_TIMEOUT).await
    }

    /// The same with another time for each operation, instead of two seconds.
    ///
    /// # Errors
    /// As [`RedisStore::open`].
    pub async fn open_with_timeout(address: &str, namespace: &str, timeout: Duration) -> Result<Self, OpenError> {
        check(address, namespace)?;
        Ok(Self {
            link: Arc::new(Link::open(address, timeout).await?),
            blobs: Arc::new(Blobs::new(namespace)),
        })
    }
}

impl BlobStore for RedisBlobStore {
    fn put<'a>(
        &'a self,
        reference: &'a BlobRef,
        bytes: Bytes,
        retention: Duration,
    ) -> BoxFuture<'a, Result<BlobPut, StoreError>> {
        Box::pin(async move {
            check_blob(&bytes, retention)?;
            let (blobs, reference) = (Arc::clone(&self.blobs), reference.clone());
            let act =
                |server: Arc<link::Server>| async move { blobs.put(&server, &reference, &bytes, retention).await };
            self.link.run(act).await
        })
    }

    fn get<'a>(&'a self, reference: &'a BlobRef) -> BoxFuture<'a, Result<Option<StoredBlob>, StoreError>> {
        Box::pin(async move {
            let (blobs, reference) = (Arc::clone(&self.blobs), reference.clone());
            let act = |server: Arc<link::Server>| async move { blobs.get(&server, &reference).await };
            self.link.run(act).await
        })
    }

    fn renew<'a>(
        &'a self,
        reference: &'a BlobRef,
        retention: Duration,
    ) -> BoxFuture<'a, Result<BlobRenewed, StoreError>> {
        Box::pin(async move {
            check_retention(retention)?;
            let (blobs, reference) = (Arc::clone(&self.blobs), reference.clone());
            let act = |server: Arc<link::Server>| async move { blobs.renew(&server, &reference, retention).await };
            self.link.run(act).await
        })
    }

    fn delete<'a>(&'a self, reference: &'a BlobRef) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let (blobs, reference) = (Arc::clone(&self.blobs), reference.clone());
            let act = |server: Arc<link::Server>| async move { blobs.delete(&server, &reference).await };
            self.link.run(act).await
        })
    }
}

impl fmt::Debug for RedisBlobStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisBlobStore({:?}, {:?})", self.link, self.blobs)
    }
}

fn check(address: &str, namespace: &str) -> Result<(), OpenError> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if (1..=64).contains(&namespace.len()) && namespace.bytes().all(legal) {
        return Ok(());
    }
    let problem = format!("the namespace {namespace:?} is none; take 1 to 64 letters, digits, '-', '_' and '.'");
    Err(OpenError::new(&shown(address), problem))
}
