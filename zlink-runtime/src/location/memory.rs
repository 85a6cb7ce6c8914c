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
use self::trouble::Trouble;
use super::{
    Batch, BlobPut, BlobRef, BlobRenewed, BlobStore, BoxFuture, Key, LocationStore, ReadMany, Revision, Scan, Scanned,
    StoreError, StoreTime, StoredBlob, Written, check_blob, check_read_many, check_retention,
};

mod blobs;
mod faults;
mod history;
mod table;
#[cfg(test)]
mod tests;
mod trouble;

pub use self::faults::{Fault, Faults, Operation};

/// A namespace in this process's memory, for records and blobs. Clones are handles on the same namespace; it is gone
/// with the last of them.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
    /// `None` for a handle with which nothing goes wrong.
    trouble: Option<Arc<Trouble>>,
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
    /// Writes whose answer was lost before they were done, and when they shall be.
    late: Vec<(Instant, Batch)>,
}

impl Data {
    /// Does the late writes that are due.
    fn land(&mut self, now: StoreTime) {
        let moment = Instant::now();
        let mut due: Vec<_> = self.late.extract_if(.., |(due, _)| *due <= moment).collect();
        due.sort_by_key(|(due, _)| *due);
        for (_, batch) in due {
            // Nobody waits for the answer any more.
            let _ = self.table.write(&batch, now);
        }
    }
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
            trouble: None,
        }
    }

    /// Another handle on the same namespace, with which goes wrong what `faults` say: as the one host's way to a store
    /// that others reach well.
    #[must_use]
    pub fn with_faults(&self, faults: Faults) -> Self {
        let mut data = self.shared.data.lock();
        data.table.keep_history();
        let trouble = Trouble::new(faults, &data.table);
        drop(data);
        Self {
            shared: Arc::clone(&self.shared),
            trouble: Some(Arc::new(trouble)),
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
        data.land(now);
        act(&mut data, now)
    }

    /// Does `act`, and what goes wrong around it. What goes wrong inside is told to it.
    async fn perform<T>(
        &self,
        operation: Operation,
        act: impl FnOnce(&mut Data, StoreTime, Option<Fault>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let Some(trouble) = &self.trouble else {
            return self.at(|data, now| act(data, now, None));
        };
        let fault = trouble.faults().before(operation).await?;
        let answer = self.at(|data, now| act(data, now, fault))?;
        trouble.faults().after(operation, fault).await?;
        Ok(answer)
    }

    /// Does `act` on the present state, or an older one.
    async fn view<T>(
        &self,
        operation: Operation,
        act: impl FnOnce(&Table, StoreTime) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let show = |data: &mut Data, now: StoreTime, fault: Option<Fault>| {
            let trouble = self.trouble.as_ref();
            match trouble.and_then(|trouble| trouble.state_to_show(&data.table, fault)) {
                Some(older) => act(&data.table.back_to(older), now),
                None => act(&data.table, now),
            }
        };
        self.perform(operation, show).await
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
            let read = |table: &Table, now| {
                let found = keys.iter().map(|key| table.get(key, now).cloned()).collect();
                Ok(ReadMany { now, found })
            };
            self.view(Operation::Read, read).await
        })
    }

    fn write<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Written, StoreError>> {
        Box::pin(self.perform(Operation::Write, |data, now, fault| {
            if let Some(Fault::LateWrite(span)) = fault {
                let due = Instant::now().checked_add(span);
                data.late.extend(due.map(|due| (due, batch.clone())));
                return Err(Operation::Write.lost());
            }
            let written = data.table.write(batch, now);
            if let Some(trouble) = &self.trouble {
                trouble.saw(&data.table);
            }
            written
        }))
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Scanned, StoreError>> {
        Box::pin(self.view(Operation::Scan, |table, now| table.scan(scan, now).map(Scanned::Page)))
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
            let put = |data: &mut Data, now, _| Ok(data.blobs.put(reference, bytes, now, retention));
            self.perform(Operation::BlobWrite, put).await
        })
    }

    fn get<'a>(&'a self, reference: &'a BlobRef) -> BoxFuture<'a, Result<Option<StoredBlob>, StoreError>> {
        Box::pin(self.perform(Operation::BlobRead, |data, now, _| Ok(data.blobs.get(reference, now))))
    }

    fn renew<'a>(
        &'a self,
        reference: &'a BlobRef,
        retention: Duration,
    ) -> BoxFuture<'a, Result<BlobRenewed, StoreError>> {
        Box::pin(async move {
            check_retention(retention)?;
            let renew = |data: &mut Data, now, _| Ok(data.blobs.renew(reference, now, retention));
            self.perform(Operation::BlobWrite, renew).await
        })
    }

    fn delete<'a>(&'a self, reference: &'a BlobRef) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.perform(Operation::BlobWrite, |data, _, _| {
            data.blobs.delete(reference);
            Ok(())
        }))
    }
}
