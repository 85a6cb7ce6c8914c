//! The provider within one process: for tests, simulation, and hosts that need no other process to agree with.
//!
//! It owns the handles on one namespace and their clock. What a batch does is decided in `table`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;

use self::blobs::Blobs;
use self::table::Table;
use super::{
    Batch, BlobPut, BlobRef, BlobRenewed, BlobStore, BoxFuture, Key, LocationStore, Read, ReadMany, Revision, Scan,
    Scanned, StoreError, StoreTime, StoredBlob, Written, check_blob, check_read_many, check_retention,
};

mod blobs;
mod table;
#[cfg(test)]
mod tests;

/// A namespace in this process's memory, for records and blobs. Clones are handles on the same namespace; it is gone
/// with the last of them.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Box<dyn Fn() -> StoreTime + Send + Sync>,
    data: Mutex<Data>,
}

#[derive(Default)]
struct Data {
    /// The latest moment that was answered: the clock may go back, answers never do.
    now: StoreTime,
    table: Table,
    blobs: Blobs,
}

impl MemoryStore {
    /// An empty namespace. Its clock is the system's when it is made, and then follows tokio's, which tests may pause.
    #[must_use]
    pub fn new() -> Self {
        let (origin, start) = (StoreTime::of_system(), Instant::now());
        Self::with_clock(move || origin.after(Instant::now().saturating_duration_since(start)))
    }

    /// An empty namespace with a clock of its own. Where the clock goes back, the store's time stands.
    #[must_use]
    pub fn with_clock(clock: impl Fn() -> StoreTime + Send + Sync + 'static) -> Self {
        Self {
            shared: Arc::new(Shared {
                clock: Box::new(clock),
                data: Mutex::default(),
            }),
        }
    }

    /// Counts all revisions up to `revision` as issued, so that a test can reach the end of them.
    pub fn skip_revisions(&self, revision: Revision) {
        self.shared.data.lock().table.skip(revision);
    }

    fn at<T>(&self, act: impl FnOnce(&mut Data, StoreTime) -> T) -> T {
        let now = (self.shared.clock)();
        let mut data = self.shared.data.lock();
        data.now = data.now.max(now);
        let now = data.now;
        act(&mut data, now)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryStore")
    }
}

impl LocationStore for MemoryStore {
    fn read_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<ReadMany, StoreError>> {
        Box::pin(async move {
            check_read_many(keys)?;
            Ok(self.at(|data, now| ReadMany {
                now,
                found: keys.iter().map(|key| data.table.get(key, now).cloned()).collect(),
            }))
        })
    }

    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Read, StoreError>> {
        Box::pin(async move {
            Ok(self.at(|data, now| Read {
                now,
                found: data.table.get(key, now).cloned(),
            }))
        })
    }

    fn write<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Written, StoreError>> {
        Box::pin(async move { self.at(|data, now| data.table.write(batch, now)) })
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Scanned, StoreError>> {
        Box::pin(async move { self.at(|data, now| data.table.scan(scan, now)).map(Scanned::Page) })
    }
}

impl BlobStore for MemoryStore {
    fn put<'a>(
        &'a self,
        reference: &'a BlobRef,
        bytes: Bytes,
        retention: Duration,
    ) -> BoxFuture<'a, Result<BlobPut, StoreError>> {
        Box::pin(async move {
            check_blob(&bytes, retention)?;
            Ok(self.at(|data, now| data.blobs.put(reference, bytes, now, retention)))
        })
    }

    fn get<'a>(&'a self, reference: &'a BlobRef) -> BoxFuture<'a, Result<Option<StoredBlob>, StoreError>> {
        Box::pin(async move { Ok(self.at(|data, now| data.blobs.get(reference, now))) })
    }

    fn renew<'a>(
        &'a self,
        reference: &'a BlobRef,
        retention: Duration,
    ) -> BoxFuture<'a, Result<BlobRenewed, StoreError>> {
        Box::pin(async move {
            check_retention(retention)?;
            Ok(self.at(|data, now| data.blobs.renew(reference, now, retention)))
        })
    }

    fn delete<'a>(&'a self, reference: &'a BlobRef) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.at(|data, _| data.blobs.delete(reference));
            Ok(())
        })
    }
}
