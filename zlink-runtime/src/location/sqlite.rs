//! The provider in one file: for the processes of one machine. It needs a disk of that machine, and no server.
//!
//! It owns the handles and what they ask of the threads behind them: one that writes and one that reads, each with a
//! connection, so that a write that waits for another process holds up no read. What a file must be is in `file`.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;

use self::blobs::BlobJob;
use self::file::{File, Kind};
use self::thread::{Queue, Ticket};
use self::writer::WriteJob;
use super::{
    Batch, BlobPut, BlobRef, BlobRenewed, BlobStore, BoxFuture, Key, LocationStore, OpenError, ReadMany, Scan, Scanned,
    StoreError, StoreTime, StoredBlob, Written, check_blob, check_read_many, check_retention,
};
use crate::limit::STORE_TIMEOUT;

mod blobs;
mod file;
mod reader;
mod thread;
mod writer;

/// Records in an SQLite file, for any number of processes on one machine. Clones share its two threads, which end
/// with the last of them.
///
/// The file is in WAL mode with `synchronous=NORMAL`: a process that is killed at any moment loses nothing that was
/// answered; a machine that loses its power may lose the last moments before, as a whole, for all its processes alike.
/// Writes that wait together share a transaction, which takes no further batch after 5 ms; urgent ones go before all
/// others that wait in this process.
///
/// An operation that has waited two seconds for other writers ends with [`StoreError::DeadlineExceeded`], and was not
/// done. A disk that does not answer at all holds an operation as long as it does.
#[derive(Clone)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

struct Shared {
    file: String,
    writer: Queue<WriteJob>,
    reader: Queue<reader::Job>,
    timeout: Duration,
}

impl SqliteStore {
    /// Opens the file, and makes it where there is none.
    ///
    /// # Errors
    /// Where the file cannot be made or opened, is not on a disk of this machine, is damaged, is something else than a
    /// location store, or was made by a newer version.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_with_timeout(path, STORE_TIMEOUT).await
    }

    /// The same with another time that operations wait for other writers, instead of two seconds. Keep it below the
    /// three seconds after which a host gives the renewal of its lease up.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub async fn open_with_timeout(path: impl AsRef<Path>, timeout: Duration) -> Result<Self, OpenError> {
        Self::open_as(path.as_ref(), timeout, Clock::default()).await
    }

    /// The same with another clock than the system's, too, for tests. Where it goes back, the store's time stands.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    #[cfg(feature = "testing")]
    pub async fn open_with_clock(
        path: impl AsRef<Path>,
        timeout: Duration,
        clock: impl Fn() -> StoreTime + Send + Sync + 'static,
    ) -> Result<Self, OpenError> {
        Self::open_as(path.as_ref(), timeout, Clock::new(clock)).await
    }

    async fn open_as(path: &Path, timeout: Duration, clock: Clock) -> Result<Self, OpenError> {
        let writing = clock.clone();
        // The writer makes the file, so it comes first.
        let writer = thread::spawn("zlink-store-write", path, Kind::Records, move |file, jobs| {
            writer::run(&file, jobs, &writing);
        });
        let writer = writer.await?;
        let reader = thread::spawn("zlink-store-read", path, Kind::Records, move |file, jobs| {
            reader::run(&file, jobs, &clock);
        });
        let reader = reader.await?;
        Ok(Self {
            shared: Arc::new(Shared {
                file: path.display().to_string(),
                writer,
                reader,
                timeout,
            }),
        })
    }

    async fn view<T: Send + 'static>(
        &self,
        act: impl FnOnce(&File, StoreTime) -> Result<T, reader::Failed> + Send + 'static,
    ) -> Result<T, StoreError> {
        let job = |ticket: Ticket<T>| reader::job(ticket, act);
        let answer = self.shared.reader.ask(self.shared.timeout, job).await;
        answer.unwrap_or_else(|| Err(StoreError::Unavailable("the thread that reads has ended".to_owned())))
    }
}

impl LocationStore for SqliteStore {
    fn read_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<ReadMany, StoreError>> {
        Box::pin(async move {
            check_read_many(keys)?;
            let keys = keys.to_vec();
            self.view(move |file, now| reader::read_many(file, &keys, now)).await
        })
    }

    fn write<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Written, StoreError>> {
        Box::pin(async move {
            let (urgent, batch) = (batch.is_urgent(), batch.clone());
            let (writer, timeout) = (&self.shared.writer, self.shared.timeout);
            let job = |ticket| WriteJob { ticket, batch };
            let answer = match urgent {
                true => writer.ask_first(timeout, job).await,
                false => writer.ask(timeout, job).await,
            };
            answer.unwrap_or_else(|| Err(StoreError::Unknown("the thread that writes has ended".to_owned())))
        })
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Scanned, StoreError>> {
        Box::pin(async move {
            scan.key_cursor()?;
            let scan = scan.clone();
            self.view(move |file, now| reader::scan(file, &scan, now)).await
        })
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqliteStore({:?})", self.shared.file)
    }
}

/// Blobs in an SQLite file of their own, so that a large one holds up no record. Otherwise as [`SqliteStore`]; its one
/// thread does one operation after the other, and the greatest blobs take a good part of a second.
#[derive(Clone)]
pub struct SqliteBlobStore {
    queue: Arc<Queue<BlobJob>>,
    file: Arc<str>,
    timeout: Duration,
}

impl SqliteBlobStore {
    /// Opens the file, and makes it where there is none.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_as(path.as_ref(), STORE_TIMEOUT, Clock::default()).await
    }

    /// The same as [`SqliteStore::open_with_clock`].
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    #[cfg(feature = "testing")]
    pub async fn open_with_clock(
        path: impl AsRef<Path>,
        timeout: Duration,
        clock: impl Fn() -> StoreTime + Send + Sync + 'static,
    ) -> Result<Self, OpenError> {
        Self::open_as(path.as_ref(), timeout, Clock::new(clock)).await
    }

    async fn open_as(path: &Path, timeout: Duration, clock: Clock) -> Result<Self, OpenError> {
        let queue = thread::spawn("zlink-store-blobs", path, Kind::Blobs, move |file, jobs| {
            blobs::run(&file, jobs, &clock);
        });
        Ok(Self {
            queue: Arc::new(queue.await?),
            file: path.display().to_string().into(),
            timeout,
        })
    }

    async fn ask<T>(&self, job: impl FnOnce(Ticket<T>) -> BlobJob) -> Result<T, StoreError> {
        let answer = self.queue.ask(self.timeout, job).await;
        answer.unwrap_or_else(|| Err(StoreError::Unknown("the thread of the blobs has ended".to_owned())))
    }
}

impl BlobStore for SqliteBlobStore {
    fn put<'a>(
        &'a self,
        reference: &'a BlobRef,
        bytes: Bytes,
        retention: Duration,
    ) -> BoxFuture<'a, Result<BlobPut, StoreError>> {
        Box::pin(async move {
            check_blob(&bytes, retention)?;
            self.ask(|ticket| BlobJob::Put(ticket, reference.clone(), bytes, retention))
                .await
        })
    }

    fn get<'a>(&'a self, reference: &'a BlobRef) -> BoxFuture<'a, Result<Option<StoredBlob>, StoreError>> {
        Box::pin(self.ask(|ticket| BlobJob::Get(ticket, reference.clone())))
    }

    fn renew<'a>(
        &'a self,
        reference: &'a BlobRef,
        retention: Duration,
    ) -> BoxFuture<'a, Result<BlobRenewed, StoreError>> {
        Box::pin(async move {
            check_retention(retention)?;
            self.ask(|ticket| BlobJob::Renew(ticket, reference.clone(), retention))
                .await
        })
    }

    fn delete<'a>(&'a self, reference: &'a BlobRef) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.ask(|ticket| BlobJob::Delete(ticket, reference.clone())))
    }
}

impl fmt::Debug for SqliteBlobStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqliteBlobStore({:?})", self.file)
    }
}

/// A clock, the system's in use, shown to both threads so that it never goes back.
#[derive(Clone)]
struct Clock {
    ask: Arc<dyn Fn() -> StoreTime + Send + Sync>,
    shown: Arc<AtomicU64>,
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(StoreTime::of_system)
    }
}

impl Clock {
    fn new(ask: impl Fn() -> StoreTime + Send + Sync + 'static) -> Self {
        Self {
            ask: Arc::new(ask),
            shown: Arc::default(),
        }
    }

    fn now(&self) -> StoreTime {
        let now = (self.ask)().as_millis();
        StoreTime::from_millis(self.shown.fetch_max(now, Ordering::AcqRel).max(now))
    }
}
