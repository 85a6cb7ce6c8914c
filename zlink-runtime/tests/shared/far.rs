//! Stores as hosts in virtual time use them, out of this process too: SQLite files and Redis servers of a test's own.
//!
//! What a store does takes real time, in which tokio's paused clock would jump to the next timer. It does not while a
//! blocking task runs, so each operation is one: virtual time stands until the store has answered. And the store's clock is
//! virtual: what is to be kept for a day goes after a day of the test's.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::future::Future;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::runtime::{Handle, Runtime};
use tokio::time::Instant;
use zlink_runtime::location::{
    Batch, BlobPut, BlobRef, BlobRenewed, BlobStore, BoxFuture, Faults, Key, LocationStore, MemoryStore, ReadMany,
    RedisBlobStore, RedisStore, Revision, Scan, Scanned, SqliteBlobStore, SqliteStore, StoreError, StoreTime,
    StoredBlob, Written,
};
use zlink_runtime::testing::Faulty;

use crate::server::Server;
use crate::store::{Provider, Shared};

/// How long an operation may take that no fault delays. In virtual time it takes none, so that no answer comes too late
/// because the machine has other work.
const PATIENCE: Duration = Duration::from_secs(60);

/// The clock of a store: it goes as tokio's does, and can be set.
struct Day {
    began: Instant,
    /// By how many milliseconds it was set.
    ahead: AtomicI64,
    /// What the store sees of it.
    shown: Arc<AtomicU64>,
    /// And where that is, for a server.
    file: Option<File>,
}

/// The moment at which a test begins, in milliseconds since 1970.
const FIRST: u64 = 1_800_000_000_000;

impl Day {
    fn new(file: Option<File>) -> Arc<Self> {
        Arc::new(Self {
            began: Instant::now(),
            ahead: AtomicI64::new(0),
            shown: Arc::new(AtomicU64::new(FIRST)),
            file,
        })
    }

    /// Lets the store see what time it is.
    fn show(&self) {
        let now = StoreTime::from_millis(FIRST).after(self.began.elapsed()).as_millis();
        let now = now.saturating_add_signed(self.ahead.load(Ordering::Relaxed));
        self.shown.store(now, Ordering::Relaxed);
        if let Some(file) = &self.file {
            file.write_all_at(&(now * 1000).to_ne_bytes(), 0).unwrap();
        }
    }

    fn clock(&self) -> impl Fn() -> StoreTime + Send + Sync + use<> {
        let shown = self.shown.clone();
        move || StoreTime::from_millis(shown.load(Ordering::Relaxed))
    }
}

/// A store, and the runtime in which it is used.
pub(crate) struct Far {
    at: Shared,
    /// Of SQLite each handle's own: whoever writes has the time. Of others there is one.
    days: Mutex<BTreeMap<String, Arc<Day>>>,
    runtime: Option<Runtime>,
}

impl Drop for Far {
    fn drop(&mut self) {
        // A test ends within a runtime of its own, which must not wait for another.
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

impl Far {
    /// An empty one.
    pub(crate) fn new(provider: Provider) -> Arc<Self> {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        let (at, day) = match provider {
            Provider::Memory => {
                let day = Day::new(None);
                (Shared::Memory(MemoryStore::with_clock(day.clock())), Some(day))
            }
            Provider::Sqlite => (Shared::Sqlite(TempDir::new().unwrap()), None),
            Provider::Redis => {
                let (server, file) = Server::with_clock(FIRST * 1000);
                (Shared::Redis(server), Some(Day::new(Some(file))))
            }
        };
        Arc::new(Self {
            at,
            days: Mutex::new(day.map(|day| (String::new(), day)).into_iter().collect()),
            runtime: Some(runtime),
        })
    }

    fn day(&self, name: &str) -> Arc<Day> {
        let whose = if let Shared::Sqlite(_) = self.at { name } else { "" };
        let mut days = self.days.lock();
        days.entry(whose.to_owned()).or_insert_with(|| Day::new(None)).clone()
    }

    /// Sets the clock of the store by so many milliseconds: where each user brings his own, that of `name`.
    pub(crate) fn jump(&self, name: &str, millis: i64) {
        self.day(name).ahead.fetch_add(millis, Ordering::Relaxed);
    }

    /// Counts all revisions as issued.
    pub(crate) fn skip_revisions(&self) {
        match &self.at {
            Shared::Memory(store) => store.skip_revisions(Revision::MAX),
            Shared::Sqlite(folder) => {
                let file = rusqlite::Connection::open(folder.path().join("records.db")).unwrap();
                file.execute("UPDATE state SET revision = ?1", (i64::MAX,)).unwrap();
            }
            Shared::Redis(server) => {
                // As far as Lua counts without a gap.
                let last = ((1_u64 << 53) - 1).to_string();
                let state = ["HSET", "{zlink:records}:state", "revision", &last];
                self.away(server.command(&state));
            }
        }
    }

    /// On a thread that is in no runtime.
    fn away<T: Send>(&self, work: impl Future<Output = T> + Send) -> T {
        let handle = self.runtime.as_ref().unwrap().handle();
        std::thread::scope(|scope| scope.spawn(|| handle.block_on(work)).join().unwrap())
    }

    /// The way to it of a host called `name`, with what goes wrong on it.
    #[allow(clippy::type_complexity, reason = "the two of them")]
    pub(crate) fn open(
        &self,
        name: &str,
        faults: &Faults,
    ) -> (Faulty<InTime<dyn LocationStore>>, Faulty<InTime<dyn BlobStore>>) {
        let (handle, day) = (self.runtime.as_ref().unwrap().handle().clone(), self.day(name));
        let (records, blobs) = self.away(self.opened(&day));
        (
            Faulty::new(Arc::new(InTime(records, handle.clone(), day.clone())), faults.clone()),
            Faulty::new(Arc::new(InTime(blobs, handle, day)), faults.clone()),
        )
    }

    async fn opened(&self, day: &Day) -> (Arc<dyn LocationStore>, Arc<dyn BlobStore>) {
        match &self.at {
            Shared::Memory(store) => (Arc::new(store.clone()), Arc::new(store.clone())),
            Shared::Sqlite(folder) => {
                let [records, blobs] = ["records.db", "blobs.db"].map(|file| folder.path().join(file));
                let records = SqliteStore::open_with_clock(records, PATIENCE, day.clock())
                    .await
                    .unwrap();
                let blobs = SqliteBlobStore::open_with_clock(blobs, PATIENCE, day.clock())
                    .await
                    .unwrap();
                (Arc::new(records), Arc::new(blobs))
            }
            Shared::Redis(server) => {
                let address = server.address();
                let records = RedisStore::open_with_timeout(&address, "records", PATIENCE)
                    .await
                    .unwrap();
                let blobs = RedisBlobStore::open_with_timeout(&address, "blobs", PATIENCE)
                    .await
                    .unwrap();
                (Arc::new(records), Arc::new(blobs))
            }
        }
    }
}

/// What answers before any virtual time passes.
pub(crate) struct InTime<S: ?Sized>(Arc<S>, Handle, Arc<Day>);

impl<S: ?Sized> Clone for InTime<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), self.1.clone(), self.2.clone())
    }
}

impl<S: ?Sized + fmt::Debug> fmt::Debug for InTime<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<S: ?Sized + Send + Sync + 'static> InTime<S> {
    fn answer<T, F>(&self, operation: impl FnOnce(Arc<S>) -> F + Send + 'static) -> BoxFuture<'static, T>
    where
        T: Send + 'static,
        F: Future<Output = T>,
    {
        let Self(store, handle, day) = self.clone();
        Box::pin(async move {
            day.show();
            let answering = tokio::task::spawn_blocking(move || handle.block_on(operation(store)));
            answering.await.unwrap()
        })
    }
}

impl LocationStore for InTime<dyn LocationStore> {
    fn read_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<ReadMany, StoreError>> {
        let keys = keys.to_vec();
        self.answer(|store| async move { store.read_many(&keys).await })
    }

    fn write<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Written, StoreError>> {
        let batch = batch.clone();
        self.answer(|store| async move { store.write(&batch).await })
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Scanned, StoreError>> {
        let scan = scan.clone();
        self.answer(|store| async move { store.scan(&scan).await })
    }
}

impl BlobStore for InTime<dyn BlobStore> {
    fn put<'a>(
        &'a self,
        reference: &'a BlobRef,
        bytes: Bytes,
        retention: Duration,
    ) -> BoxFuture<'a, Result<BlobPut, StoreError>> {
        let reference = reference.clone();
        self.answer(move |store| async move { store.put(&reference, bytes, retention).await })
    }

    fn get<'a>(&'a self, reference: &'a BlobRef) -> BoxFuture<'a, Result<Option<StoredBlob>, StoreError>> {
        let reference = reference.clone();
        self.answer(|store| async move { store.get(&reference).await })
    }

    fn renew<'a>(
        &'a self,
        reference: &'a BlobRef,
        retention: Duration,
    ) -> BoxFuture<'a, Result<BlobRenewed, StoreError>> {
        let reference = reference.clone();
        self.answer(move |store| async move { store.renew(&reference, retention).await })
    }

    fn delete<'a>(&'a self, reference: &'a BlobRef) -> BoxFuture<'a, Result<(), StoreError>> {
        let reference = reference.clone();
        self.answer(|store| async move { store.delete(&reference).await })
    }
}
