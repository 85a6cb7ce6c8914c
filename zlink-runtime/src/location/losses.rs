//! A store that counts how often it was found to have lost records: whoever remembers something of it asks for that.
//!
//! It must not know what is remembered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Batch, BoxFuture, Key, LocationStore, Read, ReadMany, Scan, Scanned, StoreError, Written};

/// All operations of a host go through one of these, whoever begins them.
#[derive(Debug)]
pub(super) struct Counting {
    store: Arc<dyn LocationStore>,
    losses: Arc<AtomicU64>,
}

impl Counting {
    /// That store, and its count.
    pub(super) fn new(store: Arc<dyn LocationStore>) -> (Self, Arc<AtomicU64>) {
        let losses = Arc::<AtomicU64>::default();
        let counting = Self {
            store,
            losses: losses.clone(),
        };
        (counting, losses)
    }

    fn run<'a, T: 'a>(
        &'a self,
        operation: BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move {
            let ended = operation.await;
            if let Err(StoreError::Lost(_)) = &ended {
                self.losses.fetch_add(1, Ordering::Release);
            }
            ended
        })
    }
}

impl LocationStore for Counting {
    fn read_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<ReadMany, StoreError>> {
        self.run(self.store.read_many(keys))
    }

    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Read, StoreError>> {
        self.run(self.store.read(key))
    }

    fn write<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Written, StoreError>> {
        self.run(self.store.write(batch))
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Scanned, StoreError>> {
        self.run(self.store.scan(scan))
    }
}
