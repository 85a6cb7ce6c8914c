//! Every case of the suite on every provider, and the probe on stores that break their promises.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use zlink_runtime::location::{
    Batch, BlobStore, BoxFuture, Key, LocationStore, MemoryStore, OpenError, ProbeError, ReadMany, RedisBlobStore,
    RedisStore, Scan, Scanned, SqliteBlobStore, SqliteStore, StoreError, Written, probe,
};
use zlink_runtime::testing::store::{Provider, case, cases};

use crate::server::Server;

#[derive(Default)]
struct Memory(Mutex<HashMap<String, MemoryStore>>);

impl Memory {
    fn open(&self, namespace: &str) -> MemoryStore {
        self.0.lock().unwrap().entry(namespace.to_owned()).or_default().clone()
    }
}

impl Provider for Memory {
    fn location(&self, namespace: &str) -> BoxFuture<'_, Result<Arc<dyn LocationStore>, StoreError>> {
        let store = self.open(namespace);
        Box::pin(async move { Ok(Arc::new(store) as _) })
    }

    fn blobs(&self, namespace: &str) -> BoxFuture<'_, Result<Option<Arc<dyn BlobStore>>, StoreError>> {
        let store = self.open(namespace);
        Box::pin(async move { Ok(Some(Arc::new(store) as _)) })
    }
}

struct Sqlite(TempDir);

impl Sqlite {
    fn path(&self, namespace: &str, kind: &str) -> PathBuf {
        self.0.path().join(format!("{namespace}.{kind}"))
    }
}

fn unavailable(error: OpenError) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

impl Provider for Sqlite {
    fn location(&self, namespace: &str) -> BoxFuture<'_, Result<Arc<dyn LocationStore>, StoreError>> {
        let path = self.path(namespace, "records");
        Box::pin(async move { Ok(Arc::new(SqliteStore::open(path).await.map_err(unavailable)?) as _) })
    }

    fn blobs(&self, namespace: &str) -> BoxFuture<'_, Result<Option<Arc<dyn BlobStore>>, StoreError>> {
        let path = self.path(namespace, "blobs");
        Box::pin(async move {
            Ok(Some(
                Arc::new(SqliteBlobStore::open(path).await.map_err(unavailable)?) as _
            ))
        })
    }
}

/// Records and blobs share the server and the namespace.
struct Redis(Server);

impl Provider for Redis {
    fn location(&self, namespace: &str) -> BoxFuture<'_, Result<Arc<dyn LocationStore>, StoreError>> {
        let (address, namespace) = (self.0.address(), namespace.to_owned());
        Box::pin(async move {
            let store = RedisStore::open(&address, &namespace).await.map_err(unavailable)?;
            Ok(Arc::new(store) as _)
        })
    }

    fn blobs(&self, namespace: &str) -> BoxFuture<'_, Result<Option<Arc<dyn BlobStore>>, StoreError>> {
        let (address, namespace) = (self.0.address(), namespace.to_owned());
        Box::pin(async move {
            let store = RedisBlobStore::open(&address, &namespace).await.map_err(unavailable)?;
            Ok(Some(Arc::new(store) as _))
        })
    }
}

/// Runs the case that is called like the test, on every provider.
async fn on_all_providers(name: &str) {
    let case = case(name).unwrap_or_else(|| panic!("there is no case {name}"));
    let sqlite = Sqlite(TempDir::new().unwrap());
    let redis = Redis(Server::new());
    let providers: [(&dyn Provider, &str); 3] =
        [(&Memory::default(), "memory"), (&sqlite, "sqlite"), (&redis, "redis")];
    for (provider, what) in providers {
        case.run(provider)
            .await
            .unwrap_or_else(|failure| panic!("{what}: {failure}"));
    }
}

macro_rules! conformance {
    ($($(#[$attribute:meta])* $name:ident;)*) => {
        $($(#[$attribute])*
        async fn $name() {
            on_all_providers(stringify!($name)).await;
        })*

        #[test]
        fn no_case_is_left_out() {
            let run = [$(stringify!($name)),*];
            let all: Vec<_> = cases().iter().map(|case| case.name()).collect();
            assert_eq!(run.as_slice(), all);
        }
    };
}

conformance! {
    /// REQ: LS-060, LS-062
    #[tokio::test]
    conditions_decide;
    /// REQ: LS-060, LS-061
    #[tokio::test]
    a_conflict_changes_nothing;
    /// REQ: LS-060, LS-024
    #[tokio::test]
    revisions_increase_and_are_one_per_batch;
    /// REQ: LS-060, LS-072
    #[tokio::test]
    versions_never_recur;
    /// REQ: LS-060, LS-061
    #[tokio::test]
    readers_see_whole_batches;
    /// REQ: LS-060, LS-061
    #[tokio::test]
    no_update_is_lost;
    /// REQ: LS-060, LS-063
    #[tokio::test]
    a_dropped_future_leaves_all_or_nothing;
    /// REQ: LS-060
    #[tokio::test]
    what_is_written_is_read;
    /// REQ: LS-060
    #[tokio::test]
    keys_are_exact;
    /// REQ: LS-060
    #[tokio::test]
    one_observation_in_the_order_of_the_keys;
    /// REQ: LS-060, LS-064
    #[tokio::test]
    values_are_their_own;
    /// REQ: LS-060, LS-062
    #[tokio::test]
    expired_is_missing;
    /// REQ: LS-060, LS-072
    #[tokio::test]
    time_never_goes_back;
    /// REQ: LS-060
    #[tokio::test]
    pages_are_ordered_and_complete;
    /// REQ: LS-060
    #[tokio::test]
    a_prefix_ends_where_it_ends;
    /// REQ: LS-060
    #[tokio::test]
    pages_are_bounded;
    /// REQ: LS-060, LS-061
    #[tokio::test]
    a_page_shows_whole_batches;
    /// REQ: LS-060
    #[tokio::test]
    a_foreign_cursor_is_refused;
    /// REQ: LS-060
    #[tokio::test]
    the_greatest_of_everything_is_taken;
    /// REQ: LS-060, LS-062
    #[tokio::test]
    too_many_keys_are_refused;
    /// REQ: LS-060
    #[tokio::test]
    the_probe_passes_and_leaves_nothing;
    /// REQ: LS-060, LS-062
    #[tokio::test]
    blobs_are_written_once;
    /// REQ: LS-060
    #[tokio::test]
    blobs_expire_unless_renewed;
    /// REQ: LS-060, LS-062
    #[tokio::test]
    blobs_are_bounded;
}

/// One way to break the contract.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Flaw {
    /// Conditions are not looked at.
    Unconditional,
    /// The mutations of a batch are applied one by one.
    Torn,
    /// Keys that were deleted are read.
    Undead,
    /// The last key of a page is forgotten.
    Short,
    /// A read of several keys gives them in another order.
    Shuffled,
    /// A batch has 128 keys at most, as with etcd where nobody has raised that.
    Narrow,
}

#[derive(Debug)]
pub(crate) struct Flawed(pub(crate) MemoryStore, pub(crate) Flaw);

impl LocationStore for Flawed {
    fn read_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<ReadMany, StoreError>> {
        Box::pin(async move {
            let mut read = self.0.read_many(keys).await?;
            if self.1 == Flaw::Shuffled {
                read.found.reverse();
            }
            Ok(read)
        })
    }

    fn write<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Written, StoreError>> {
        Box::pin(async move {
            match self.1 {
                Flaw::Unconditional => {
                    let batch = Batch::new([], batch.mutations()).unwrap();
                    self.0.write(&batch).await
                }
                Flaw::Torn => {
                    let mut last = Ok(Written::Conflict);
                    for mutation in batch.mutations() {
                        let own = batch.conditions().iter().filter(|one| one.key() == mutation.key());
                        let part = Batch::new(own.cloned().collect::<Vec<_>>(), [mutation.clone()]).unwrap();
                        last = self.0.write(&part).await;
                    }
                    last
                }
                Flaw::Undead => {
                    let puts = batch
                        .mutations()
                        .iter()
                        .filter(|one| matches!(one, zlink_runtime::location::Mutation::Put { .. }));
                    match Batch::new(batch.conditions(), puts.cloned().collect::<Vec<_>>()) {
                        Ok(batch) => self.0.write(&batch).await,
                        Err(_) => {
                            self.0
                                .write(&Batch::new(batch.conditions(), [crate::kit::put("other", "x")]).unwrap())
                                .await
                        }
                    }
                }
                Flaw::Narrow if batch.mutations().len() + batch.conditions().len() > 128 => Err(
                    StoreError::Unavailable("too many operations in a transaction".to_owned()),
                ),
                _ => self.0.write(batch).await,
            }
        })
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Scanned, StoreError>> {
        Box::pin(async move {
            let scanned = self.0.scan(scan).await?;
            Ok(match scanned {
                Scanned::Page(mut page) if self.1 == Flaw::Short => {
                    page.entries.pop();
                    Scanned::Page(page)
                }
                other => other,
            })
        })
    }
}

struct FlawedProvider(Memory, Flaw);

impl Provider for FlawedProvider {
    fn location(&self, namespace: &str) -> BoxFuture<'_, Result<Arc<dyn LocationStore>, StoreError>> {
        let store = Flawed(self.0.open(namespace), self.1);
        Box::pin(async move { Ok(Arc::new(store) as _) })
    }
}

#[tokio::test(start_paused = true)]
async fn the_suite_finds_each_planted_flaw() {
    for flaw in [
        Flaw::Unconditional,
        Flaw::Torn,
        Flaw::Undead,
        Flaw::Short,
        Flaw::Shuffled,
        Flaw::Narrow,
    ] {
        let provider = FlawedProvider(Memory::default(), flaw);
        let mut found = Vec::new();
        for case in cases() {
            // A scan without its last entries may have no end that a case can wait for.
            let run = tokio::time::timeout(std::time::Duration::from_secs(60), case.run(&provider));
            if !matches!(run.await, Ok(Ok(()))) {
                found.push(case.name());
            }
        }
        assert!(!found.is_empty(), "{flaw:?} is not found");
    }
}

#[tokio::test(start_paused = true)]
async fn the_probe_finds_each_planted_flaw() {
    for flaw in [Flaw::Unconditional, Flaw::Torn, Flaw::Undead, Flaw::Short] {
        let answer = probe(&Flawed(MemoryStore::new(), flaw)).await;
        assert!(matches!(answer, Err(ProbeError::Broken(_))), "{flaw:?}: {answer:?}");
    }
}
