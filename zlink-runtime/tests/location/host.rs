//! What a host does with the store it is given: addresses, the probe, and when it lets go.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use zlink_runtime::Host;
use zlink_runtime::location::{
    Batch, BoxFuture, Faults, Key, LocationStore, MemoryStore, Mutation, ReadMany, Scan, Scanned, SqliteStore,
    StoreError, StoreSource, Written,
};

use crate::conformance::{Flaw, Flawed};

async fn mistakes(stores: Vec<StoreSource>) -> Vec<String> {
    let host = stores
        .into_iter()
        .fold(Host::builder(), |host, store| host.location_store(store));
    let error = host.workers(0).start().await.unwrap_err();
    // One mistake is ours; all come at once.
    let mistakes: Vec<_> = error.mistakes().iter().map(ToString::to_string).collect();
    assert!(
        mistakes.iter().any(|mistake| mistake.contains("workers")),
        "{mistakes:?}"
    );
    mistakes
        .into_iter()
        .filter(|mistake| mistake.starts_with("location_store: "))
        .collect()
}

/// REQ: LS-003
#[tokio::test]
async fn a_wrong_address_is_one_of_the_mistakes_of_a_start() {
    for (address, part) in [
        ("sqlite://", "names no file"),
        ("rediss://localhost:6379", "TLS"),
        ("etcd://localhost:2379", "not built yet"),
        ("shop.db", "sqlite://path"),
    ] {
        let mistakes = mistakes(vec![address.into()]).await;
        assert!(mistakes.len() == 1 && mistakes[0].contains(part), "{mistakes:?}");
    }
    let twice = mistakes(vec!["memory://".into(), MemoryStore::new().into()]).await;
    assert!(twice.len() == 1 && twice[0].contains("given twice"), "{twice:?}");
    assert!(mistakes(vec!["memory://".into()]).await.is_empty());
}

#[tokio::test]
async fn a_store_that_cannot_be_used_fails_the_start() {
    let folder = TempDir::new().unwrap();
    let absent = format!("sqlite://{}/none/s.db", folder.path().display());
    let cut = Faults::new(0);
    cut.cut();
    for (store, part) in [
        (StoreSource::from(absent), "does not exist"),
        (Flawed(MemoryStore::new(), Flaw::Torn).into(), "breaks its contract"),
        (MemoryStore::new().with_faults(cut).into(), "unavailable"),
    ] {
        let error = Host::builder()
            .location_store(store)
            .start()
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("location_store: ") && error.contains(part), "{error}");
    }
}

/// A store that says when it is dropped, and whether what changes a lease was urgent each time.
#[derive(Debug)]
struct Watched {
    store: MemoryStore,
    drops: Arc<AtomicUsize>,
    renewals: Arc<Mutex<Vec<bool>>>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::SeqCst);
    }
}

impl LocationStore for Watched {
    fn read_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<ReadMany, StoreError>> {
        self.store.read_many(keys)
    }
    fn write<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Written, StoreError>> {
        let is_of_lease = |mutation: &Mutation| mutation.key().as_str().starts_with("lease/");
        if batch.mutations().iter().any(is_of_lease) {
            self.renewals.lock().unwrap().push(batch.is_urgent());
        }
        self.store.write(batch)
    }
    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Scanned, StoreError>> {
        self.store.scan(scan)
    }
}

/// REQ: LS-003, LS-031
#[tokio::test]
async fn a_host_renews_with_urgency_and_lets_its_store_go_once_and_last() {
    let (drops, renewals) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::default()));
    let store = Watched {
        store: MemoryStore::new(),
        drops: Arc::clone(&drops),
        renewals: Arc::clone(&renewals),
    };
    let host = Host::builder().location_store(store).start().await.unwrap();
    host.shutdown().await.unwrap();
    drop(host);
    // The thread that renewed the host's lease ends by itself.
    let gone = async {
        while drops.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone)
        .await
        .expect("the store is let go");
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    let renewals = renewals.lock().unwrap();
    assert!(
        renewals.len() >= 2 && renewals.iter().all(|urgent| *urgent),
        "{renewals:?}"
    );
}

#[tokio::test]
async fn an_address_opens_the_file_it_names() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("s.db");
    let host = Host::builder()
        .location_store(format!("sqlite://{}", path.display()))
        .start()
        .await
        .unwrap();
    let store = SqliteStore::open(&path).await.unwrap();
    let Scanned::Page(page) = store.scan(&Scan::new("", 10).unwrap()).await.unwrap() else {
        panic!("expired");
    };
    let keys: Vec<_> = page.entries.iter().map(|(key, _)| key.as_str()).collect();
    assert!(
        keys.len() == 1 && keys[0].starts_with("lease/"),
        "the host has probed it, and holds its lease: {keys:?}"
    );
    host.shutdown().await.unwrap();
}
