//! Clusters in virtual time: how long things take, to the second, and that no clock but a host's own has a say in it.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use zlink_generated::contract::{STOCK, stock_server};
use zlink_runtime::location::{BootClock, MemoryStore, StoreTime};
use zlink_runtime::testing::Cluster;

use crate::kit::{Clerk, OF_HOSTS, ask, keys, targets};

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
