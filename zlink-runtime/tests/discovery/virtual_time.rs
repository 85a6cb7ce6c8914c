//! Clusters in virtual time: how long things take, to the second, and that no clock but a host's own has a say in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};
use zlink_generated::contract::{STOCK, stock_server};
use zlink_runtime::location::{
    Batch, BootClock, BoxFuture, Fault, Faults, Key, LocationStore, MemoryStore, Mutation, Operation, ReadMany, Scan,
    Scanned, StoreError, StoreTime, Written,
};
use zlink_runtime::testing::Cluster;

use crate::kit::{Clerk, OF_HOSTS, admits, ask, keys, peers, targets};

/// A boot clock that shows another time than others do.
fn shifted(by: Duration) -> BootClock {
    let start = Instant::now();
    BootClock::new(move || by + start.elapsed())
}

/// A server `s` and a caller `c` that share `store`, with the default times.
fn cluster(store: &MemoryStore, of_server: Duration, of_caller: Duration) -> Cluster {
    let cluster = Cluster::new(7);
    let shared = store.clone();
    cluster.node("s", move |host| {
        host.location_store(shared.clone())
            .boot_clock(shifted(of_server))
            .mesh("shop", |mesh| {
                mesh.rid_prefix("s")
                    .listen("tcp://s:1")
                    .serve(stock_server(Clerk::new("s")))
            })
    });
    let shared = store.clone();
    cluster.node("c", move |host| {
        host.location_store(shared.clone())
            .boot_clock(shifted(of_caller))
            .mesh("shop", |mesh| mesh.rid_prefix("c").listen("tcp://c:1").client(STOCK))
    });
    cluster
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) -> Duration {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < Duration::from_secs(120), "not in time: {what}");
        sleep(Duration::from_millis(10)).await;
    }
    begin.elapsed()
}

/// A way to a store on which a batch that ends the lease of a host stands still, until it may go on.
#[derive(Debug)]
struct Late(MemoryStore, Arc<Semaphore>, Arc<AtomicBool>);

impl LocationStore for Late {
    fn read_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<ReadMany, StoreError>> {
        self.0.read_many(keys)
    }

    fn write<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Written, StoreError>> {
        Box::pin(async move {
            let ends = |mutation: &Mutation| {
                matches!(mutation, Mutation::Delete(_)) && mutation.key().as_str().starts_with("lease/")
            };
            if batch.mutations().iter().any(ends) {
                self.2.store(true, Ordering::Relaxed);
                drop(self.1.acquire().await);
            }
            self.0.write(batch).await
        })
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Scanned, StoreError>> {
        self.0.scan(scan)
    }
}

/// A server `s` and a caller `c`, each by a way of its own to a store.
fn cluster_by(
    of_server: impl Fn() -> Arc<dyn LocationStore> + Send + Sync + 'static,
    of_caller: impl Fn() -> Arc<dyn LocationStore> + Send + Sync + 'static,
) -> Cluster {
    let cluster = Cluster::new(8);
    cluster.node("s", move |host| {
        host.location_store(of_server()).mesh("shop", |mesh| {
            let mesh = mesh.rid_prefix("s").listen("tcp://s:1");
            mesh.serve(stock_server(Clerk::new("s")))
        })
    });
    cluster.node("c", move |host| {
        host.location_store(of_caller())
            .mesh("shop", |mesh| mesh.rid_prefix("c").listen("tcp://c:1").client(STOCK))
    });
    cluster
}

/// A host that renews its lease just before the batch comes that sweeps it out stays, and all that it has published.
///
/// REQ: LS-057, LS-034
#[tokio::test(start_paused = true)]
async fn who_renews_while_it_is_swept_out_stays() {
    let (store, faults) = (MemoryStore::new(), Faults::new(1));
    let (may, waits) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicBool::new(false)));
    let late = (store.clone(), may.clone(), waits.clone());
    let of_server = (store.clone(), faults.clone());
    let cluster = cluster_by(
        move || Arc::new(of_server.0.with_faults(of_server.1.clone())),
        move || Arc::new(Late(late.0.clone(), late.1.clone(), late.2.clone())),
    );
    cluster.start_all().await.unwrap();
    let server = cluster.host("s");
    let there = keys(&store, OF_HOSTS).await;
    assert_eq!(there.len(), 4);
    faults.cut();
    until("it is to be swept out", async || waits.load(Ordering::Relaxed)).await;
    faults.heal();
    until("it has renewed its lease", async || admits(&server)).await;
    may.add_permits(1);
    for _ in 0..100 {
        assert_eq!(keys(&store, OF_HOSTS).await, there);
        sleep(Duration::from_millis(10)).await;
    }
    may.add_permits(1);
    cluster.shutdown().await.unwrap();
}

/// Whose lease is dead is listed no more, also where nobody can take its descriptor out of the store.
///
/// REQ: LS-053, LS-057
#[tokio::test(start_paused = true)]
async fn a_dead_host_is_listed_no_more_although_its_descriptor_stays() {
    let (store, faults) = (MemoryStore::new(), Faults::new(1));
    let (of_server, of_caller) = (store.clone(), (store.clone(), faults.clone()));
    let cluster = cluster_by(
        move || Arc::new(of_server.clone()),
        move || Arc::new(of_caller.0.with_faults(of_caller.1.clone())),
    );
    cluster.start_all().await.unwrap();
    let c = cluster.host("c");
    until("a server", async || targets(&c) == ["s"]).await;
    faults.every(Operation::Write, Fault::Error);
    cluster.kill("s");
    let took = until("nobody is listed", async || peers(&c).is_empty()).await;
    assert!((15..=22).contains(&took.as_secs()), "{took:?}");
    let left = keys(&store, &["node/"]).await;
    assert_eq!(left.len(), 2, "both are there still: {left:?}");
    faults.heal();
    cluster.shutdown().await.unwrap();
}

/// REQ: LS-036, LS-057, LS-031
#[tokio::test(start_paused = true)]
async fn a_killed_host_is_counted_out_after_its_ttl_and_the_margin_whatever_other_clocks_show() {
    const HOUR: Duration = Duration::from_secs(60 * 60);
    for (of_server, of_caller, of_store) in [
        (Duration::ZERO, Duration::ZERO, 0),
        (HOUR, Duration::ZERO, 3_600_000),
        (Duration::ZERO, HOUR, 7_200_000),
    ] {
        let store = MemoryStore::with_clock(move || StoreTime::from_millis(of_store));
        let cluster = cluster(&store, of_server, of_caller);
        cluster.start_all().await.unwrap();
        let c = cluster.host("c");
        until("a server", async || targets(&c) == ["s"]).await;
        // Long enough for many renewals, which must keep both in.
        sleep(Duration::from_secs(300)).await;
        assert_eq!(ask(&c).await.unwrap(), "s");
        assert_eq!(keys(&store, OF_HOSTS).await.len(), 4);
        cluster.kill("s");
        let took = until("the dead host to be removed", async || {
            keys(&store, OF_HOSTS).await.len() == 2
        })
        .await;
        // The last renewal was 0 to 5 s ago, was seen within a second, and is looked at once a second.
        assert!((15..=22).contains(&took.as_secs()), "{took:?}");
        cluster.shutdown().await.unwrap();
        assert!(keys(&store, OF_HOSTS).await.is_empty());
    }
}

/// REQ: LS-054, NET-206
#[tokio::test(start_paused = true)]
async fn a_node_that_is_killed_and_started_again_is_found_at_the_next_look() {
    let store = MemoryStore::new();
    let cluster = cluster(&store, Duration::ZERO, Duration::ZERO);
    cluster.start_all().await.unwrap();
    let c = cluster.host("c");
    until("a server", async || targets(&c) == ["s"]).await;
    for _ in 0..50 {
        let again = cluster.restart("s").await.unwrap();
        let rid = again.mesh("shop").unwrap().rid();
        let took = until("the new run", async || {
            let status = c.mesh("shop").unwrap().status();
            status.channels[0].1.iter().any(|target| target.rid == rid)
        })
        .await;
        assert!(took <= Duration::from_millis(1500), "{took:?}");
        assert_eq!(targets(&c).len(), 1);
        assert_eq!(ask(&c).await.unwrap(), "s");
    }
    // Fifty runs have left something; their leases end, and so does that.
    until("the dead runs to be removed", async || {
        keys(&store, OF_HOSTS).await.len() == 4
    })
    .await;
    assert_eq!(ask(&c).await.unwrap(), "s");
    cluster.shutdown().await.unwrap();
}
