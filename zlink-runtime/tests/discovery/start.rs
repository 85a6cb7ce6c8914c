//! What a host checks before it starts, and what it leaves where it cannot.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use zlink_generated::contract::{STOCK, stock_server};
use zlink_runtime::error::StartError;
use zlink_runtime::location::{
    Batch, BoxFuture, Key, LocationStore, LocationTiming, MemoryStore, Mutation, ReadMany, Scan, Scanned, StoreError,
    StoreTime, Written,
};
use zlink_runtime::prelude::*;
use zlink_runtime::{HostBuilder, HostPhase, ObjectRole};

use crate::kit::line::Mode;
use crate::kit::{Clerk, Line, OF_HOSTS, SHORT, ask, caller, free_port, keys, node, quick, selects, server};

async fn refused(builder: HostBuilder) -> StartError {
    match builder.start().await {
        Ok(host) => panic!("{host:?} started"),
        Err(error) => error,
    }
}

/// The texts of everything that is wrong.
async fn mistakes(builder: HostBuilder) -> Vec<String> {
    refused(builder)
        .await
        .mistakes()
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// REQ: LS-003, LS-030, NET-104, NET-1005, LS-059
#[tokio::test]
async fn every_mistake_is_told_at_once() {
    let store = MemoryStore::new();
    let wrong = LocationTiming {
        renew_interval: Duration::from_secs(10),
        ..quick()
    };
    let found = mistakes(
        Host::builder()
            .location_store(store.clone())
            .location_store("memory://")
            .location_store("nothing")
            .location_timing(wrong)
            .mesh("fixed", |mesh| mesh.rid("me"))
            .mesh("manual", |mesh| {
                mesh.manual().role(ObjectRole::Server).listen("tcp://127.0.0.1:0")
            })
            .mesh("nowhere", |mesh| mesh.manual())
            .mesh("prefix", |mesh| mesh.rid_prefix("a b"))
            .client_server(|channel| channel.manual().client(STOCK)),
    )
    .await;
    let expected = [
        "given twice",
        "no address of a store",
        "renew_interval 10s",
        "fixed RID",
        "is manual; objects",
        "no listen endpoint",
        "has a prefix",
        "no endpoint to connect to",
    ];
    for part in expected {
        let here = found.iter().filter(|mistake| mistake.contains(part)).count();
        assert_eq!(here, 1, "{part:?} in {found:#?}");
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    assert!(keys(&store, &[""]).await.is_empty(), "nothing was written");
}

/// REQ: LS-002, NET-302, NET-704
#[tokio::test]
async fn what_needs_a_store_does_not_start_without_one() {
    for role in [ObjectRole::Client, ObjectRole::Server] {
        let port = free_port();
        let listen = format!("tcp://127.0.0.1:{port}");
        let found = mistakes(Host::builder().mesh("shop", |mesh| mesh.role(role).listen(listen))).await;
        assert!(
            found.iter().any(|mistake| mistake.contains("needs a Location Store")),
            "{found:?}"
        );
        assert!(std::net::TcpListener::bind(("127.0.0.1", port)).is_ok());
        let host = node(MemoryStore::new(), "n", |mesh| mesh.role(role))
            .start()
            .await
            .unwrap();
        assert!(host.status().is_ready());
    }
    let nobody = mistakes(Host::builder().client_server(|channel| channel.client(STOCK))).await;
    assert_eq!(nobody.len(), 1);
}

/// Nothing is hidden behind a store that is down: the start fails within the renew timeout.
///
/// REQ: LS-002, LS-102, NET-1003
#[tokio::test]
async fn a_store_that_is_down_fails_the_start_in_time() {
    for mode in [Mode::Cut, Mode::Hangs] {
        let store = MemoryStore::new();
        let line = Line::new(&store);
        line.set(mode);
        let port = free_port();
        let began = Instant::now();
        let builder = node(line, "s", |mesh| mesh.listen(format!("tcp://127.0.0.1:{port}"))).location_timing(SHORT);
        let found = mistakes(builder).await;
        assert!(
            found[0].starts_with("location_store") && found[0].contains("unavailable"),
            "{found:?}"
        );
        assert!(began.elapsed() >= SHORT.renew_timeout, "it was tried again for a while");
        assert!(std::net::TcpListener::bind(("127.0.0.1", port)).is_ok());
    }
}

/// REQ: NET-1003, NET-1001
#[tokio::test]
async fn a_start_that_fails_at_its_socket_leaves_nothing_in_the_store() {
    let store = MemoryStore::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("tcp://{}", taken.local_addr().unwrap());
    let found = mistakes(node(store.clone(), "s", |mesh| mesh.listen(listen))).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(keys(&store, OF_HOSTS).await.is_empty());
}

/// A seed makes two hosts the same, which chance never does.
///
/// REQ: NET-105, LS-034
#[tokio::test]
async fn an_identity_that_is_taken_fails_the_start_and_harms_nobody() {
    let store = MemoryStore::new();
    let s = server(store.clone(), "s").random_seed(7).start().await.unwrap();
    let c = caller(store.clone(), "a").start().await.unwrap();
    selects(&c, &["s"]).await;
    let before = keys(&store, OF_HOSTS).await;
    let found = mistakes(server(store.clone(), "s").random_seed(7)).await;
    assert!(found[0].contains("another host holds"), "{found:?}");
    assert_eq!(keys(&store, OF_HOSTS).await, before);
    assert_eq!(ask(&c).await.unwrap(), "s");
    assert_eq!(s.status().phase, HostPhase::Serving);
}

/// The same node of another owner: what differs is what is drawn after it.
///
/// REQ: LS-051, LS-034
#[tokio::test]
async fn a_node_that_is_claimed_fails_the_start_of_another_host() {
    let store = MemoryStore::new();
    let s = server(store.clone(), "s").random_seed(7).start().await.unwrap();
    let before = keys(&store, OF_HOSTS).await;
    let port = free_port();
    let second = server(store.clone(), "s").mesh("other", |mesh| mesh.listen(format!("tcp://127.0.0.1:{port}")));
    let found = mistakes(second.random_seed(7)).await;
    assert!(
        found[0].contains("another host holds") && found[0].contains("node/shop/s-"),
        "{found:?}"
    );
    assert_eq!(keys(&store, OF_HOSTS).await, before);
    assert!(std::net::TcpListener::bind(("127.0.0.1", port)).is_ok());
    s.shutdown().await.unwrap();
}

/// REQ: LS-036
#[tokio::test]
async fn the_clock_of_the_store_changes_nothing() {
    const HOUR: u64 = 60 * 60 * 1000;
    let clock = Arc::new(AtomicU64::new(10 * HOUR));
    let reads = clock.clone();
    let store = MemoryStore::with_clock(move || StoreTime::from_millis(reads.load(Ordering::Relaxed)));
    let s = server(store.clone(), "s").location_timing(SHORT).start().await.unwrap();
    let c = caller(store.clone(), "a").location_timing(SHORT).start().await.unwrap();
    selects(&c, &["s"]).await;
    let there = keys(&store, OF_HOSTS).await;
    for time in [11 * HOUR, 9 * HOUR, 10 * HOUR] {
        clock.store(time, Ordering::Relaxed);
        crate::kit::settle(&c).await;
        assert_eq!(keys(&store, OF_HOSTS).await, there);
        assert_eq!(ask(&c).await.unwrap(), "s");
    }
    assert!(crate::kit::admits(&s) && crate::kit::admits(&c));
}

/// REQ: LS-050
#[tokio::test]
async fn what_is_too_large_to_be_published_does_not_start() {
    // Too many with the shortest names, and as many as may be with the longest.
    for (count, digits, told) in [(4097, 4, "at most 4096"), (4096, 255, "bytes to tell peers")] {
        let line = Line::new(&MemoryStore::new());
        let builder = node(line.clone(), "s", |mut mesh| {
            for at in 0..count {
                let name = format!("{at:0>digits$}");
                mesh = mesh.serve(stock_server(Clerk::new("s")).on(ChannelName::new(name).unwrap()));
            }
            mesh
        });
        let found = mistakes(builder.location_timing(quick())).await;
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(told), "{found:?}");
        assert_eq!(line.counts().writes, 0, "nothing was published");
    }
}

/// A store that connects to whatever is published, at the moment it is.
#[derive(Debug)]
struct Caller(MemoryStore, u16, Arc<AtomicU64>);

impl LocationStore for Caller {
    fn read_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<ReadMany, StoreError>> {
        self.0.read_many(keys)
    }
    fn write<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Written, StoreError>> {
        let publishes = |mutation: &Mutation| match mutation {
            Mutation::Put { key, .. } => key.as_str().starts_with("node/"),
            Mutation::Delete(_) => false,
        };
        if batch.mutations().iter().any(publishes) {
            // With the first it only claims its place.
            let is_claim = self.2.fetch_add(1, Ordering::Relaxed) == 0;
            let reached = std::net::TcpStream::connect(("127.0.0.1", self.1));
            assert_eq!(reached.is_err(), is_claim, "{batch:?}");
        }
        self.0.write(batch)
    }
    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Scanned, StoreError>> {
        self.0.scan(scan)
    }
}

/// Whether a record names that port.
fn names(value: &[u8], port: u16) -> bool {
    let port = format!(":{port}");
    value.windows(port.len()).any(|part| part == port.as_bytes())
}

/// REQ: LS-051
#[tokio::test]
async fn who_is_published_can_be_reached_already() {
    let (port, published) = (free_port(), Arc::new(AtomicU64::new(0)));
    let store = Caller(MemoryStore::new(), port, published.clone());
    let host = node(store, "s", |mesh| mesh.listen(format!("tcp://127.0.0.1:{port}")));
    let host = host.start().await.unwrap();
    assert!(
        published.load(Ordering::Relaxed) > 1,
        "a start that has ended has published"
    );
    host.shutdown().await.unwrap();
}

/// REQ: NET-205
#[tokio::test]
async fn an_endpoint_stands_in_the_descriptor_of_its_kind_and_nowhere_else() {
    let (store, mesh, server) = (MemoryStore::new(), free_port(), free_port());
    let host = node(store.clone(), "s", |node| {
        node.listen(format!("tcp://127.0.0.1:{mesh}"))
    });
    let host = host.client_server(|channel| {
        let channel = channel.serve(stock_server(Clerk::new("s")));
        channel.listen(format!("tcp://127.0.0.1:{server}"))
    });
    let host = host.start().await.unwrap();
    let mut found = 0;
    for key in keys(&store, &[""]).await {
        let value = store.read(&Key::new(&key).unwrap()).await.unwrap().found.unwrap().value;
        let kind = key.split('/').next().unwrap_or_default();
        assert_eq!(names(&value, mesh), kind == "node", "{key}");
        assert_eq!(names(&value, server), kind == "server", "{key}");
        found += usize::from(names(&value, mesh)) + usize::from(names(&value, server));
    }
    assert_eq!(found, 2);
    host.shutdown().await.unwrap();
}

/// A start is a future: who gives it up has started nothing.
///
/// REQ: NET-1003
#[tokio::test]
async fn a_start_that_is_given_up_leaves_nothing() {
    let store = MemoryStore::new();
    for begun in 1..8 {
        let line = Line::new(&store);
        let port = free_port();
        let listen = format!("tcp://127.0.0.1:{port}");
        let start = server(line.clone(), "s")
            .mesh("other", |mesh| mesh.listen(listen))
            .start();
        // It is given up with the write that it waits for then.
        let given_up = async {
            while line.counts().writes < begun {
                tokio::task::yield_now().await;
            }
            line.set(Mode::Hangs);
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        };
        let started = tokio::select! {
            end = start => Some(end.unwrap()),
            () = given_up => None,
        };
        line.set(Mode::Whole);
        let was_started = started.is_some();
        if let Some(host) = started {
            host.shutdown().await.unwrap();
        }
        let free = crate::kit::within(std::time::Duration::from_secs(3), async {
            while std::net::TcpListener::bind(("127.0.0.1", port)).is_err() {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        });
        assert!(
            free.await.is_some(),
            "given up at write {begun}, its port is bound still"
        );
        if was_started {
            break;
        }
    }
}

/// A store of somebody else, which has a mistake: it panics once.
#[derive(Debug)]
struct Panics(MemoryStore, Arc<AtomicU64>);

const WRITE: u64 = 1;
const READ: u64 = 2;

impl Panics {
    fn pass(&self, operation: u64) {
        let armed = self
            .1
            .compare_exchange(operation, 0, Ordering::AcqRel, Ordering::Acquire);
        assert!(armed.is_err(), "a mistake of the provider");
    }
}

impl LocationStore for Panics {
    fn read_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<ReadMany, StoreError>> {
        Box::pin(async move {
            self.pass(READ);
            self.0.read_many(keys).await
        })
    }
    fn write<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Written, StoreError>> {
        Box::pin(async move {
            self.pass(WRITE);
            self.0.write(batch).await
        })
    }
    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Scanned, StoreError>> {
        self.0.scan(scan)
    }
}

/// A provider that panics has failed like one that answers an error: the host goes on with it, renews its lease and reads
/// its lists.
///
/// REQ: LS-102, LS-105
#[tokio::test]
async fn a_provider_that_panics_once_is_used_again() {
    for operation in [WRITE, READ] {
        let (store, armed) = (MemoryStore::new(), Arc::new(AtomicU64::new(0)));
        let host = caller(Panics(store.clone(), armed.clone()), "a").location_timing(SHORT);
        let host = host.start().await.unwrap();
        crate::kit::settle(&host).await;
        armed.store(operation, Ordering::Release);
        crate::kit::until("the panic", || armed.load(Ordering::Acquire) == 0).await;
        tokio::time::sleep(SHORT.lease_ttl + SHORT.fencing_margin).await;
        crate::kit::until("it goes on", || {
            let status = host.status().location.unwrap();
            let current = status.list_age.is_some_and(|age| age < Duration::from_secs(2));
            current && crate::kit::admits(&host) && status.state == zlink_runtime::LocationState::Ready
        })
        .await;
        host.shutdown().await.unwrap();
    }
}
