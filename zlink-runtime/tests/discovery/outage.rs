//! The store is gone: what goes on, what waits, and how soon all is as before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use zlink_generated::contract::stock_server;
use zlink_runtime::LocationState;
use zlink_runtime::location::{LocationTiming, MemoryStore};
use zlink_runtime::prelude::*;

use crate::kit::line::Mode;
use crate::kit::{
    Clerk, Line, Stopwatch, admits, ask, caller, node, peers, selects, server, state, targets, until, until_within,
};

/// As it is by default, but for a short grace, and a lease that ends within the outage.
const TIMING: LocationTiming = LocationTiming {
    renew_interval: Duration::from_millis(500),
    lease_ttl: Duration::from_secs(4),
    renew_timeout: Duration::from_millis(500),
    fencing_margin: Duration::from_secs(1),
    poll_interval: Duration::from_secs(1),
    store_failure_grace: Duration::from_secs(2),
};

/// The store is gone for twice the grace, under traffic, and longer than the lease holds.
///
/// REQ: LS-101, LS-105, NET-508, LS-032
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_twice_the_grace_harms_no_traffic_and_ends_by_itself() {
    let store = MemoryStore::new();
    let line = Line::new(&store);
    let c = caller(line.clone(), "a").location_timing(TIMING).start().await.unwrap();
    let s = server(line.clone(), "s").location_timing(TIMING).start().await.unwrap();
    selects(&c, &["s"]).await;
    let at = c.clone();
    until("a complete list", move || state(&at) == LocationState::Ready).await;

    let (stop, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let traffic = tokio::spawn({
        let (c, stop, calls) = (c.clone(), stop.clone(), calls.clone());
        async move {
            while !stop.load(Ordering::Relaxed) {
                ask(&c).await?;
                calls.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<_, CallError>(())
        }
    });
    let gone = Instant::now();
    line.set(Mode::Cut);
    let at = c.clone();
    until("the outage to be seen", move || state(&at) == LocationState::Degraded).await;
    // It has its own way to the store and is published there; who is cut off must not see it, let alone dial it.
    let clerk = Clerk::new("new");
    let new = node(store.clone(), "z", |mesh| mesh.serve(stock_server(clerk)))
        .start()
        .await
        .unwrap();
    let at = c.clone();
    until("the grace to pass", move || state(&at) == LocationState::Unavailable).await;
    let (one, other) = (c.clone(), s.clone());
    until("owned work to stop", move || !admits(&one) && !admits(&other)).await;
    let at = calls.clone();
    until("twice the grace, and the lease", move || {
        gone.elapsed() > 2 * TIMING.store_failure_grace && at.load(Ordering::Relaxed) > 100
    })
    .await;
    assert_eq!(peers(&c).len(), 1);
    assert_eq!(targets(&c), ["s"]);
    assert!(c.status().is_ready(), "the host serves all the while");

    let (back, watch) = (Instant::now(), Stopwatch::start());
    line.set(Mode::Whole);
    let at = c.clone();
    until_within(3 * TIMING.poll_interval, "all to be as before", move || {
        state(&at) == LocationState::Ready && admits(&at) && targets(&at) == ["s", "z"]
    })
    .await;
    let took = back.elapsed();
    println!("recovered in {took:?}, after {} calls", calls.load(Ordering::Relaxed));
    assert!(!watch.is_past(2 * TIMING.poll_interval), "{took:?}");
    stop.store(true, Ordering::Relaxed);
    traffic.await.unwrap().unwrap();
    drop((s, new));
}

/// REQ: NET-508, LS-101, LS-103
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_is_lost_in_an_outage_is_made_again_only_after_it() {
    let store = MemoryStore::new();
    let line = Line::new(&store);
    let timing = LocationTiming {
        poll_interval: Duration::from_millis(50),
        renew_timeout: Duration::from_millis(200),
        ..TIMING
    };
    let c = caller(line.clone(), "a").location_timing(timing).start().await.unwrap();
    let s = server(store.clone(), "s").start().await.unwrap();
    selects(&c, &["s"]).await;
    line.set(Mode::Hangs);
    let at = c.clone();
    until("the outage to be seen", move || state(&at) == LocationState::Degraded).await;
    assert_eq!(ask(&c).await.unwrap(), "s", "an operation that hangs holds no call up");
    let port = s.mesh("shop").unwrap().endpoint().port().unwrap();
    s.shutdown().await.unwrap();
    selects(&c, &[]).await;
    // Whoever listens there now is not dialled, however long that takes.
    let listener = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let (at, reads) = (line.clone(), line.counts().reads);
    until("many looks in vain", move || at.counts().reads > reads + 12).await;
    let dialled = listener.accept().map(|(_, from)| from).map_err(|none| none.kind());
    assert_eq!(dialled, Err(std::io::ErrorKind::WouldBlock));
    drop(listener);
    let clerk = Clerk::new("again");
    let again = node(store.clone(), "z", |mesh| {
        mesh.listen(format!("tcp://127.0.0.1:{port}"))
            .serve(stock_server(clerk))
    });
    let again = again.start().await.unwrap();
    // The other side finds this one in the store, but waits to be dialled.
    let at = again.clone();
    until("the caller to be missed", move || peers(&at).len() == 1).await;
    crate::kit::settle(&again).await;
    assert_eq!(targets(&c), [""; 0]);
    line.set(Mode::Whole);
    selects(&c, &["z"]).await;
    assert_eq!(ask(&c).await.unwrap(), "again");
}
