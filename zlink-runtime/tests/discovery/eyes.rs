//! What was not looked at before: unusual times, intents beside a list, a store that has gone back.

use std::time::Duration;

use zlink_generated::contract::{STOCK, stock_server};
use zlink_runtime::id::Rid;
use zlink_runtime::location::{Batch, Faults, Key, LocationStore, LocationTiming, MemoryStore, Mutation, Written};
use zlink_runtime::testing::Cluster;
use zlink_runtime::{HostPhase, LocationState, PeerState};

use crate::kit::{Clerk, OF_HOSTS, keys, peers, targets};

const SECOND: Duration = Duration::from_secs(1);

/// A server `s` and a caller `c` of the mesh `shop` that share `store`.
fn cluster(store: &MemoryStore, timing: LocationTiming) -> Cluster {
    let cluster = Cluster::new(11);
    let shared = store.clone();
    cluster.node("s", move |host| {
        host.location_store(shared.clone())
            .location_timing(timing)
            .mesh("shop", |mesh| {
                mesh.rid_prefix("s")
                    .listen("tcp://s:1")
                    .serve(stock_server(Clerk::new("s")))
            })
    });
    let shared = store.clone();
    cluster.node("c", move |host| {
        host.location_store(shared.clone())
            .location_timing(timing)
            .mesh("shop", |mesh| mesh.rid_prefix("c").listen("tcp://c:1").client(STOCK))
    });
    cluster
}

/// A server `s` and a caller `c`, which has been told where the server is.
async fn manual(seed: u64) -> Cluster {
    let cluster = Cluster::new(seed);
    cluster.node("s", |host| {
        host.mesh("shop", |mesh| {
            mesh.rid("s").listen("tcp://s:1").serve(stock_server(Clerk::new("s")))
        })
    });
    cluster.node("c", |host| {
        host.mesh("shop", |mesh| {
            mesh.rid("c").listen("tcp://c:1").connect("tcp://s:1").client(STOCK)
        })
    });
    cluster.start_all().await.unwrap();
    cluster
}

/// REQ: LS-057
#[tokio::test(start_paused = true)]
async fn who_looks_seldom_sees_the_dead_all_the_same() {
    let looks = |seconds: u32| LocationTiming {
        poll_interval: seconds * SECOND,
        ..LocationTiming::default()
    };
    let store = MemoryStore::new();
    let too_seldom = cluster(&store, looks(10)).start("c").await.unwrap_err().to_string();
    assert!(too_seldom.contains("poll_interval"), "{too_seldom}");
    let cluster = cluster(&store, looks(7));
    cluster.start_all().await.unwrap();
    let c = cluster.host("c");
    cluster.until("the server", 30 * SECOND, || targets(&c) == ["s"]).await;
    cluster.kill("s");
    cluster.advance(60 * SECOND).await;
    assert_eq!(keys(&store, OF_HOSTS).await.len(), 2, "the dead host is removed");
}

/// REQ: NET-502
#[tokio::test(start_paused = true)]
async fn a_peer_that_the_store_names_is_dialled_once_no_manual_intent_leads_there() {
    let store = MemoryStore::new();
    let cluster = cluster(&store, LocationTiming::default());
    cluster.start("c").await.unwrap();
    let c = cluster.host("c");
    c.mesh("shop").unwrap().connect("tcp://s:1", None).unwrap();
    cluster.start("s").await.unwrap();
    cluster.until("the server", 30 * SECOND, || targets(&c) == ["s"]).await;
    cluster.advance(5 * SECOND).await;
    assert!(c.mesh("shop").unwrap().disconnect("tcp://s:1").unwrap());
    cluster.advance(30 * SECOND).await;
    assert_eq!(peers(&c), [("s".to_owned(), PeerState::Ready)]);
}

/// REQ: NET-603
#[tokio::test(start_paused = true)]
async fn a_manual_peer_that_was_lost_says_why_it_cannot_be_reached() {
    let cluster = manual(12).await;
    let c = cluster.host("c");
    cluster.ready(5 * SECOND).await;
    cluster.kill("s");
    let mesh = c.mesh("shop").unwrap();
    cluster
        .until("the failure", 30 * SECOND, || {
            mesh.status().peers.iter().all(|peer| peer.state != PeerState::Ready)
        })
        .await;
    cluster.advance(10 * SECOND).await;
    let peers = mesh.status().peers;
    assert_eq!(peers.len(), 1);
    assert!(mesh.intents()[0].failure.is_some());
    assert_eq!(peers[0].failure, mesh.intents()[0].failure);
}

/// REQ: LS-105
#[tokio::test(start_paused = true)]
async fn a_store_that_takes_no_write_is_unavailable_after_the_grace() {
    for cut_reads in [true, false] {
        let (cluster, store, faults) = (Cluster::new(13), MemoryStore::new(), Faults::new(1));
        let shared = store.with_faults(faults.clone());
        cluster.node("s", move |host| {
            host.location_store(shared.clone())
                .client_server(|channel| channel.listen("tcp://s:1").serve(stock_server(Clerk::new("s"))))
        });
        cluster.start("s").await.unwrap();
        let s = cluster.host("s");
        let state = || s.status().location.unwrap().state;
        cluster
            .until("a list", 10 * SECOND, || state() == LocationState::Ready)
            .await;
        match cut_reads {
            true => faults.cut(),
            false => faults.every(
                zlink_runtime::location::Operation::Write,
                zlink_runtime::location::Fault::Error,
            ),
        }
        cluster.advance(25 * SECOND).await;
        assert_eq!(state(), LocationState::Degraded);
        cluster.advance(60 * SECOND).await;
        assert_eq!(state(), LocationState::Unavailable, "{cut_reads}");
        faults.heal();
        cluster
            .until("the store", 10 * SECOND, || state() == LocationState::Ready)
            .await;
    }
}

/// A store that lost the latest moments, as Redis after a failover.
///
/// REQ: LS-034
#[tokio::test(start_paused = true)]
async fn a_store_that_went_back_fences_nobody() {
    let store = MemoryStore::new();
    let cluster = cluster(&store, LocationTiming::default());
    cluster.start_all().await.unwrap();
    let (c, s) = (cluster.host("c"), cluster.host("s"));
    cluster.until("the server", 30 * SECOND, || targets(&c) == ["s"]).await;
    let all: Vec<_> = keys(&store, &["lease/", "node/"]).await;
    let all: Vec<_> = all.iter().map(|name| Key::new(name).unwrap()).collect();
    let before = store.read_many(&all).await.unwrap().found;
    s.mesh("shop").unwrap().set_weight(STOCK, 300).unwrap();
    cluster.advance(SECOND / 10).await;
    let back = all
        .iter()
        .zip(before)
        .map(|(key, stored)| Mutation::put(key.clone(), stored.unwrap().value));
    let back = Batch::new([], back.collect::<Vec<_>>()).unwrap();
    assert!(matches!(store.write(&back).await, Ok(Written::Applied { .. })));
    cluster.advance(30 * SECOND).await;
    assert_eq!(s.status().phase, HostPhase::Serving);
    assert_eq!(c.status().phase, HostPhase::Serving);
}

/// REQ: NET-603
#[tokio::test(start_paused = true)]
async fn who_waits_for_a_server_hears_what_hinders_the_link_to_one_that_was_found() {
    let store = MemoryStore::new();
    let cluster = cluster(&store, LocationTiming::default());
    cluster.start_all().await.unwrap();
    cluster.network().isolate("s");
    cluster.advance(40 * SECOND).await;
    let c = cluster.host("c");
    let ready = c.mesh("shop").unwrap().ready(STOCK, 1, 5 * SECOND).await;
    let text = ready.unwrap_err().to_string();
    assert!(text.contains("tcp://s:1"), "{text}");
}

/// REQ: NET-503
#[tokio::test(start_paused = true)]
async fn a_link_to_another_than_is_expected_now_does_not_stay() {
    let cluster = manual(22).await;
    cluster.ready(10 * SECOND).await;
    let c = cluster.host("c");
    let mesh = c.mesh("shop").unwrap();
    mesh.connect("tcp://s:1", Some(Rid::new("other").unwrap())).unwrap();
    cluster.advance(120 * SECOND).await;
    assert!(mesh.status().peers.iter().all(|peer| peer.state != PeerState::Ready));
}

/// REQ: LS-057
#[tokio::test(start_paused = true)]
async fn the_lease_of_a_host_that_only_called_leaves_the_store_after_its_death() {
    let (cluster, store) = (Cluster::new(21), MemoryStore::new());
    for name in ["c", "d"] {
        let shared = store.clone();
        cluster.node(name, move |host| {
            host.location_store(shared.clone())
                .client_server(|channel| channel.client(STOCK))
        });
    }
    cluster.start_all().await.unwrap();
    assert_eq!(
        keys(&store, OF_HOSTS).await.len(),
        2,
        "a caller leaves nothing but its lease"
    );
    cluster.kill("c");
    cluster.advance(20 * SECOND).await;
    assert_eq!(
        keys(&store, OF_HOSTS).await.len(),
        2,
        "it may be alive for its TTL and the margin"
    );
    cluster.advance(280 * SECOND).await;
    assert_eq!(keys(&store, OF_HOSTS).await.len(), 1);
    let d = cluster.host("d").status().location.unwrap();
    assert!(d.admits_owned_work && d.state == LocationState::Ready);
}
