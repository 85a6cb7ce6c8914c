//! Faults around a store of any kind, as [`MemoryStore`](crate::location::MemoryStore) has them within. It must not know
//! what the store holds, nor who uses it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::location::{
    Batch, BlobPut, BlobRef, BlobRenewed, BlobStore, BoxFuture, Fault, Faults, Key, LocationStore, Operation, ReadMany,
    Scan, Scanned, StoreError, StoredBlob, Written,
};

/// A way to a store, with which goes wrong what its [`Faults`] say; others may reach the same store well.
///
/// A [`Fault::Stale`] goes well here: only a store knows its past. What a [`Fault::LateWrite`] leaves for later is done by a
/// task of its own.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use zlink_runtime::location::{Faults, Key, LocationStore, SqliteStore, StoreError};
/// use zlink_runtime::testing::Faulty;
///
/// # async fn test() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let faults = Faults::new(7);
/// let store = SqliteStore::open(folder.path().join("records.db")).await?;
/// let store = Faulty::new(Arc::new(store), faults.clone());
/// faults.cut();
/// let refused = store.read(&Key::new("a")?).await;
/// assert!(matches!(refused, Err(StoreError::Unavailable(_))));
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(test()).unwrap();
/// ```
#[derive(Debug)]
pub struct Faulty<S: ?Sized> {
    store: Arc<S>,
    faults: Faults,
}

impl<S: ?Sized> Faulty<S> {
    /// The way to `store`.
    #[must_use]
    pub fn new(store: Arc<S>, faults: Faults) -> Self {
        Self { store, faults }
    }

    /// Does `work`, and what goes wrong around it.
    async fn perform<T>(
        &self,
        operation: Operation,
        work: BoxFuture<'_, Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let fault = self.faults.before(operation).await?;
        let answer = work.await?;
        self.faults.after(operation, fault).await?;
        Ok(answer)
    }
}

impl<S: ?Sized> Clone for Faulty<S> {
    fn clone(&self) -> Self {
        Self::new(self.store.clone(), self.faults.clone())
    }
}

impl<S: LocationStore + ?Sized> LocationStore for Faulty<S> {
    fn read_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<ReadMany, StoreError>> {
        Box::pin(self.perform(Operation::Read, self.store.read_many(keys)))
    }

    fn write<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Written, StoreError>> {
        Box::pin(async move {
            let fault = self.faults.before(Operation::Write).await?;
            if let Some(Fault::LateWrite(span)) = fault {
                let (store, batch) = (self.store.clone(), batch.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(span).await;
                    // Nobody waits for the answer any more.
                    let _ = store.write(&batch).await;
                });
                return Err(Operation::Write.lost());
            }
            let written = self.store.write(batch).await?;
            self.faults.after(Operation::Write, fault).await?;
            Ok(written)
        })
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Scanned, StoreError>> {
        Box::pin(self.perform(Operation::Scan, self.store.scan(scan)))
    }
}

impl<S: BlobStore + ?Sized> BlobStore for Faulty<S> {
    fn put<'a>(
        &'a self,
        reference: &'a BlobRef,
        bytes: Bytes,
        retention: Duration,
    ) -> BoxFuture<'a, Result<BlobPut, StoreError>> {
        Box::pin(self.perform(Operation::BlobWrite, self.store.put(reference, bytes, retention)))
    }

    fn get<'a>(&'a self, reference: &'a BlobRef) -> BoxFuture<'a, Result<Option<StoredBlob>, StoreError>> {
        Box::pin(self.perform(Operation::BlobRead, self.store.get(reference)))
    }

    fn renew<'a>(
        &'a self,
        reference: &'a BlobRef,
        retention: Duration,
    ) -> BoxFuture<'a, Result<BlobRenewed, StoreError>> {
        Box::pin(self.perform(Operation::BlobWrite, self.store.renew(reference, retention)))
    }

    fn delete<'a>(&'a self, reference: &'a BlobRef) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.perform(Operation::BlobWrite, self.store.delete(reference)))
    }
}
