//! Nodes that come back, and nodes that do not.

use std::time::{Duration, Instant};

use zlink_generated::contract::stock_server;
use zlink_runtime::Host;
use zlink_runtime::location::MemoryStore;

use crate::kit::line::Mode;
use crate::kit::{
    Clerk, Line, OF_HOSTS, SHORT, ask, caller, free_port, keys, node, peers, selects, server, targets, until_within,
};

const ROUNDS: usize = 50;
/// Within this a node that was started must be used.
const READY: Duration = Duration::from_secs(5);

/// A node starts and stops 50 times at one address; every other time it has no time to say goodbye, and its descriptor
/// and lease stay.
///
/// REQ: NET-206, NET-107, LS-025, LS-054
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_runs_at_one_address_and_only_the_newest_is_used() {
    let store = MemoryStore::new();
    let port = free_port();
    let c = caller(store.clone(), "m").start().await.unwrap();
    let mut slowest = Duration::ZERO;
    for round in 0..ROUNDS {
        let name = format!("run{round}");
        let line = Line::new(&store);
        // Sometimes it dials, sometimes it is dialled.
        let prefix = if round % 4 < 2 { "a" } else { "z" };
        let clerk = Clerk::new(&name);
        let host = node(line.clone(), prefix, |mesh| {
            mesh.listen(format!("tcp://127.0.0.1:{port}"))
                .serve(stock_server(clerk))
        });
        let host = host.start().await.unwrap();
        let began = Instant::now();
        let rid = host.mesh("shop").unwrap().rid();
        let at = c.clone();
        until_within(READY, "the newest run to be selected", move || {
            let status = at.mesh("shop").unwrap().status();
            status.channels[0].1.iter().any(|target| target.rid == rid)
        })
        .await;
        slowest = slowest.max(began.elapsed());
        assert_eq!(targets(&c), [prefix], "and no other");
        for _ in 0..5 {
            assert_eq!(ask(&c).await.unwrap(), name);
        }
        if round % 2 == 0 {
            host.shutdown().await.unwrap();
        } else {
            line.set(Mode::Cut);
            drop(host);
        }
        selects(&c, &[]).await;
    }
    println!("slowest to be ready: {slowest:?}");
}

/// A caller, and the server that it selects, which can be taken its line to the store.
async fn caller_and_server(store: &MemoryStore) -> (Host, Host, Line) {
    let line = Line::new(store);
    let c = caller(store.clone(), "a").location_timing(SHORT).start().await.unwrap();
    let s = server(line.clone(), "s").location_timing(SHORT).start().await.unwrap();
    selects(&c, &["s"]).await;
    (c, s, line)
}

/// REQ: LS-057, LS-036
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crashed_host_is_removed_when_its_lease_is_dead_and_not_before() {
    let store = MemoryStore::new();
    let (c, s, line) = caller_and_server(&store).await;
    let before = Instant::now();
    line.set(Mode::Cut);
    drop(s);
    selects(&c, &[]).await;
    assert_eq!(peers(&c).len(), 1, "it is still in the list, and missed");
    let watch = crate::kit::Stopwatch::start();
    while keys(&store, OF_HOSTS).await.len() > 2 {
        assert!(
            !watch.is_past(crate::kit::SOON),
            "the dead host stays: {:?}",
            keys(&store, OF_HOSTS).await
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // It had renewed at most a renew interval before it was cut off.
    let limit = SHORT.lease_ttl + SHORT.fencing_margin - SHORT.renew_interval - SHORT.poll_interval;
    assert!(before.elapsed() >= limit, "after {:?}", before.elapsed());
    let at = c.clone();
    until_within(crate::kit::SOON, "nobody to be missed", move || peers(&at).is_empty()).await;
}

/// REQ: LS-105, NET-912, LS-034, LS-101
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_living_host_that_was_counted_out_comes_back_by_itself() {
    let store = MemoryStore::new();
    let (c, s, line) = caller_and_server(&store).await;
    let there = keys(&store, OF_HOSTS).await;
    line.set(Mode::Hangs);
    let watch = crate::kit::Stopwatch::start();
    while keys(&store, OF_HOSTS).await.len() > 2 {
        assert!(!watch.is_past(crate::kit::SOON), "not in time: it is counted out");
        assert_eq!(ask(&c).await.unwrap(), "s", "its link proves that it lives");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(!crate::kit::admits(&s), "it stopped by itself long before");
    line.set(Mode::Whole);
    while keys(&store, OF_HOSTS).await != there {
        assert!(!watch.is_past(2 * crate::kit::SOON), "not in time: it is back");
        assert_eq!(ask(&c).await.unwrap(), "s");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let at = s.clone();
    until_within(crate::kit::SOON, "owned work again", move || crate::kit::admits(&at)).await;
    assert!(s.status().is_ready());
}
