//! A store that notes when it was found to have lost records, and how often: whoever remembers something of it asks for that.
//!
//! It must not know what is remembered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{
    Batch, BootClock, BootTime, BoxFuture, Key, LocationStore, Read, ReadMany, Scan, Scanned, StoreError, Written,
    nanos,
};

/// All operations of a host go through one of these, whoever begins them.
#[derive(Debug)]
pub(super) struct Counting {
    store: Arc<dyn LocationStore>,
    clock: BootClock,
    losses: Arc<Losses>,
}

/// What is known of a store's losses.
#[derive(Debug, Default)]
pub(super) struct Losses {
    count: AtomicU64,
    /// In nanoseconds of the boot clock, and one more; 0 where there was none.
    last: AtomicU64,
}

impl Losses {
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// How long ago the last one was found.
    pub(super) fn since(&self, now: BootTime) -> Option<Duration> {
        let last = self.last.load(Ordering::Acquire).checked_sub(1)?;
        Some(Duration::from_nanos(nanos(now).saturating_sub(last)))
    }

    fn found(&self, now: BootTime) {
        self.last.fetch_max(nanos(now).saturating_add(1), Ordering::AcqRel);
        self.count.fetch_add(1, Ordering::Release);
    }
}

impl Counting {
    /// That store, and its losses, which are timed by `clock`.
    pub(super) fn new(store: Arc<dyn LocationStore>, clock: BootClock) -> (Self, Arc<Losses>) {
        let losses = Arc::<Losses>::default();
        let counting = Self {
            store,
            clock,
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
                self.losses.found(self.clock.now());
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
