//! What hosts and topologies say of themselves, through a life: linked, cut off, stopped, counted out.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;
use zlink_generated::contract::{Note, STOCK, StockHandler, stock_client, stock_server};
use zlink_runtime::location::{Batch, Faults, Key, LocationStore, LocationTiming, MemoryStore, Mutation, Written};
use zlink_runtime::prelude::*;
use zlink_runtime::testing::Cluster;
use zlink_runtime::{
    HostPhase, HostStatus, JobQueueStatus, LinksStatus, LocationState, LocationStatus, PeerState, PeerStatus,
    TargetStatus, TopologyKind, TopologyPhase, TopologyReason, TopologyStatus,
};

use crate::kit::{Clerk, keys, targets};

const SECOND: Duration = Duration::from_secs(1);

/// How the mesh `shop` stands at a host, and how many of its peers are ready.
fn shop(host: &Host) -> (TopologyPhase, Option<TopologyReason>, usize) {
    let status = host.mesh("shop").unwrap().status();
    (status.phase, status.reason, status.ready_peers())
}

const fn degraded(reason: TopologyReason, ready: usize) -> (TopologyPhase, Option<TopologyReason>, usize) {
    (TopologyPhase::Degraded, Some(reason), ready)
}

const READY: (TopologyPhase, Option<TopologyReason>, usize) = (TopologyPhase::Ready, None, 1);

/// Adds a node that serves `stock` with `clerk`, or calls it, and is found through `store`.
fn add(cluster: &Cluster, name: &'static str, store: MemoryStore, clerk: Option<impl StockHandler + Clone>) {
    cluster.node(name, move |host| {
        host.location_store(store.clone()).mesh("shop", |mesh| {
            let mesh = mesh.rid_prefix(name).listen(format!("tcp://{name}:1"));
            match clerk.clone() {
                Some(clerk) => mesh.serve(stock_server(clerk)),
                None => mesh.client(STOCK),
            }
        })
    });
}

/// A caller `c` whose way to the store can fail, and a server `s`, both started.
async fn caller_and_server(clerk: impl StockHandler + Clone) -> (Cluster, MemoryStore, Faults) {
    let (cluster, store, faults) = (Cluster::new(3), MemoryStore::new(), Faults::new(3));
    add(&cluster, "s", store.clone(), Some(clerk));
    add(&cluster, "c", store.with_faults(faults.clone()), None::<Clerk>);
    cluster.start("c").await.unwrap();
    assert_eq!(
        shop(&cluster.host("c")),
        degraded(TopologyReason::LocationUnavailable, 0),
        "nothing has been read yet"
    );
    cluster.advance(2 * SECOND).await;
    assert_eq!(shop(&cluster.host("c")), degraded(TopologyReason::NoReadyTarget, 0));
    cluster.start("s").await.unwrap();
    let c = cluster.host("c");
    cluster
        .until("the server", 3 * SECOND, || shop(&c) == READY && targets(&c) == ["s"])
        .await;
    (cluster, store, faults)
}

/// A handler that waits until it is let through.
#[derive(Clone)]
struct Held(Arc<Semaphore>);

impl Held {
    async fn pass(&self) {
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}

impl StockHandler for Held {
    async fn ask(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        self.pass().await;
        Ok(request)
    }

    async fn tell(&self, _: &ChannelContext<'_>, _: Note) -> Result<(), HandlerError> {
        self.pass().await;
        Ok(())
    }
}

/// REQ: OB-13, OB-14, LS-105
#[tokio::test(start_paused = true)]
async fn a_mesh_tells_what_it_lacks_and_its_counts_stay_true() {
    let (cluster, store, faults) = caller_and_server(Clerk::new("s")).await;
    let (c, s) = (cluster.host("c"), cluster.host("s"));
    assert_eq!(shop(&s), READY, "who serves a channel alone lacks nobody");
    assert_eq!(c.mesh("shop").unwrap().status().kind, TopologyKind::RouteMesh);

    faults.cut();
    cluster.advance(3 * SECOND).await;
    assert_eq!(shop(&c), degraded(TopologyReason::LocationUnavailable, 1));
    assert_eq!(targets(&c), ["s"], "what was read last stays");
    assert_eq!(shop(&s), READY, "only one was cut off");
    faults.heal();
    cluster.until("the store", 3 * SECOND, || shop(&c) == READY).await;

    cluster.network().isolate("s");
    let cut_off = degraded(TopologyReason::NoReadyPeer, 0);
    cluster
        .until("the link to be lost", 30 * SECOND, || shop(&c) == cut_off)
        .await;
    cluster.network().heal();
    cluster.until("the link", 30 * SECOND, || shop(&c) == READY).await;
    s.mesh("shop").unwrap().set_weight(STOCK, 0).unwrap();
    let nobody = degraded(TopologyReason::NoReadyTarget, 1);
    cluster.until("the weight", SECOND, || shop(&c) == nobody).await;

    // Whatever has overwritten the lease, it was somebody else.
    let prefix = rid_of_lease(&store, &faults, &c).await;
    let foreign = Batch::new([], [Mutation::put(prefix, "another run")]).unwrap();
    assert!(matches!(store.write(&foreign).await, Ok(Written::Applied { .. })));
    let failed = (TopologyPhase::Failed, Some(TopologyReason::InternalFailure), 1);
    cluster.until("the fence", 10 * SECOND, || shop(&c) == failed).await;
    assert_eq!(c.status().phase, HostPhase::Error);
    assert_eq!(c.status().location.unwrap().state, LocationState::Fenced);
    assert!(!c.status().is_ready());
    cluster.shutdown().await.unwrap();
    let stopped = (TopologyPhase::Stopped, Some(TopologyReason::RuntimeNotReady));
    assert_eq!((shop(&c).0, shop(&c).1), stopped);
}

/// The key of the lease that only that host renews: cut off, its value is the one that stays.
async fn rid_of_lease(store: &MemoryStore, faults: &Faults, host: &Host) -> Key {
    faults.cut();
    let mut still = keys(store, &["lease/"]).await;
    let read = async |names: &[String]| {
        let keys: Vec<_> = names.iter().map(|name| Key::new(name).unwrap()).collect();
        let found = store.read_many(&keys).await.unwrap().found;
        found
            .into_iter()
            .map(|stored| stored.unwrap().revision)
            .collect::<Vec<_>>()
    };
    let before = read(&still).await;
    tokio::time::sleep(LocationTiming::default().renew_interval + SECOND).await;
    let after = read(&still).await;
    let mut at = 0;
    still.retain(|_| {
        at += 1;
        before[at - 1] == after[at - 1]
    });
    faults.heal();
    assert_eq!(still.len(), 1, "{host:?} alone was cut off");
    Key::new(&still[0]).unwrap()
}

/// REQ: OB-10, OB-11, OB-12, OB-13
#[tokio::test(start_paused = true)]
async fn a_host_tells_of_its_life_until_its_end_and_how_that_was() {
    let held = Held(Arc::new(Semaphore::new(0)));
    let (cluster, ..) = caller_and_server(held.clone()).await;
    let (c, s) = (cluster.host("c"), cluster.host("s"));
    for unknown in [c.mesh("depot").unwrap_err(), c.client_server("shop").unwrap_err()] {
        assert!(unknown.to_string().contains("not registered"), "{unknown}");
    }
    let kept = s.status();
    assert!(kept.is_ready() && kept.accepting_work);
    assert_eq!(
        (kept.phase, kept.deadline, kept.stopped.clone()),
        (HostPhase::Serving, None, None)
    );
    let of_mesh = s.mesh("shop").unwrap().status();

    let call = tokio::spawn(stock_client(&c).ask(Note::default()).into_future());
    cluster.advance(SECOND).await;
    let begun = Instant::now();
    let stopping = cluster.stop("s");
    let stopping = tokio::spawn(stopping);
    cluster.advance(SECOND).await;
    let draining = s.status();
    assert_eq!(draining.phase, HostPhase::Draining);
    assert!(!draining.is_ready() && !draining.accepting_work);
    let deadline = draining.deadline.expect("a stop has one");
    assert!(deadline > begun, "{deadline:?}");
    assert_eq!(draining.stopped, None);
    let draining = (TopologyPhase::Stopping, Some(TopologyReason::Draining), 1);
    assert_eq!(shop(&s), draining, "not ready, and yet linked");
    let peers = c.mesh("shop").unwrap().status().peers;
    assert_eq!(peers[0].state, PeerState::Draining);

    // Nobody lets the handler go: the stop is by force, and says so.
    let error = stopping.await.unwrap().unwrap_err();
    assert!(call.await.unwrap().is_err());
    let stopped = s.status();
    assert_eq!((stopped.phase, stopped.stopped), (HostPhase::Stopped, Some(Err(error))));
    assert!(stopped.observed >= deadline && stopped.deadline == Some(deadline));
    assert!(stopped.sequence > kept.sequence);
    assert!(
        kept.observed < stopped.observed && kept.accepting_work,
        "a value stays what it was"
    );
    let later = s.mesh("shop").unwrap().status();
    assert!(later.sequence > of_mesh.sequence && later.observed > of_mesh.observed);
    c.shutdown().await.unwrap();
    assert_eq!(c.status().stopped, Some(Ok(())));
}

/// REQ: OB-15, OB-10
#[tokio::test(start_paused = true)]
async fn a_channel_tells_its_sides_and_its_targets() {
    let (cluster, store) = (Cluster::new(5), MemoryStore::new());
    for (name, serves, calls) in [("both", true, true), ("client", false, true), ("server", true, false)] {
        let store = store.clone();
        cluster.node(name, move |host| {
            host.location_store(store.clone()).client_server(|channel| {
                let channel = match calls {
                    true => channel.client(STOCK),
                    false => channel,
                };
                match serves {
                    true => channel
                        .serve(stock_server(Clerk::new(name)))
                        .listen(format!("tcp://{name}:1")),
                    false => channel,
                }
            })
        });
    }
    cluster.start_all().await.unwrap();
    let stock = |name: &str| cluster.host(name).client_server(STOCK).unwrap().status();
    for name in ["both", "client"] {
        cluster
            .until("two servers", 5 * SECOND, || {
                let status = stock(name);
                status.phase == TopologyPhase::Ready && status.channels[0].1.len() == 2 && status.ready_peers() == 2
            })
            .await;
    }
    let kinds = ["both", "client", "server"].map(|name| stock(name).kind);
    let expected = [
        TopologyKind::ClientAndServer,
        TopologyKind::Client,
        TopologyKind::Server,
    ];
    assert_eq!(kinds, expected);
    assert_eq!(stock("server").reason, None, "who only serves needs nobody");

    let weight = |weight| {
        for name in ["both", "server"] {
            let host = cluster.host(name);
            host.client_server(STOCK).unwrap().set_weight(weight).unwrap();
        }
    };
    weight(0);
    let call = |within| {
        stock_client(&cluster.host("client"))
            .ask(Note::default())
            .timeout(within)
    };
    for name in ["both", "client"] {
        cluster
            .until("no target", SECOND, || {
                stock(name).reason == Some(TopologyReason::NoReadyTarget)
            })
            .await;
        assert_eq!(
            (stock(name).phase, stock(name).ready_peers()),
            (TopologyPhase::Degraded, 2)
        );
    }
    assert!(call(SECOND).await.is_err());
    weight(7);
    let targets = |name| {
        let targets = stock(name).channels.remove(0).1;
        targets.iter().map(|target| target.weight).collect::<Vec<_>>()
    };
    cluster
        .until("both targets", SECOND, || targets("client") == [7, 7])
        .await;
    assert_eq!(stock("client").reason, None);
    call(SECOND).await.unwrap();
}

/// REQ: OB-18
#[tokio::test(start_paused = true)]
async fn a_peer_under_pressure_is_as_ready_as_before() {
    let held = Held(Arc::new(Semaphore::new(0)));
    let cluster = Cluster::new(9);
    let handler = held.clone();
    cluster.node("s", move |host| {
        host.max_queued_jobs(4).workers(1).mesh("shop", |mesh| {
            mesh.rid("s")
                .listen("tcp://s:1")
                .serve(stock_server(handler.clone()).dispatch_limit(1))
        })
    });
    cluster.node("c", |host| {
        host.mesh("shop", |mesh| {
            mesh.rid("c").listen("tcp://c:1").connect("tcp://s:1").client(STOCK)
        })
    });
    cluster.start_all().await.unwrap();
    cluster.ready(5 * SECOND).await;
    let c = cluster.host("c");
    for _ in 0..8 {
        tokio::spawn(stock_client(&c).tell(Note::default()).into_future());
    }
    cluster
        .until("the peer to ask for a pause", 5 * SECOND, || {
            c.mesh("shop").unwrap().status().peers[0].paused
        })
        .await;
    assert_eq!(shop(&c), READY);
    let status = c.mesh("shop").unwrap().status();
    assert_eq!(
        (status.peers[0].state, status.channels[0].1.len()),
        (PeerState::Ready, 1)
    );
    assert!(cluster.host("s").status().is_ready());
    held.0.close();
    cluster.at_rest(10 * SECOND).await;
    cluster.shutdown().await.unwrap();
}

/// Nor do the words of a failure name one: whoever shows a status need not know where others are.
///
/// REQ: OB-17
#[tokio::test(start_paused = true)]
async fn why_a_peer_is_not_linked_names_no_endpoint() {
    let cluster = Cluster::new(4);
    cluster.node("one", |host| {
        host.mesh("shop", |mesh| {
            mesh.listen("tcp://one:1").connect("tcp://secret:7").client(STOCK)
        })
    });
    cluster.node("two", |host| {
        host.client_server(|channel| channel.client(STOCK).connect("tcp://secret:8"))
    });
    cluster.start_all().await.unwrap();
    let (one, two) = (cluster.host("one"), cluster.host("two"));
    let peers = || {
        let peers = [
            one.mesh("shop").unwrap().status(),
            two.client_server(STOCK).unwrap().status(),
        ];
        peers.map(|status| status.peers[0].failure.clone())
    };
    cluster
        .until("both failures", 30 * SECOND, || peers().iter().all(Option::is_some))
        .await;
    for failure in peers().into_iter().flatten() {
        assert!(failure.starts_with("cannot be reached: "), "{failure}");
        assert!(!failure.contains("secret") && !failure.contains("tcp://"), "{failure}");
    }
    cluster.shutdown().await.unwrap();
}

/// What a status tells is listed here, field for field: no endpoint, revision, generation, lease, claim or socket may
/// come in without somebody looking at this.
///
/// REQ: OB-17, OB-20
#[tokio::test(start_paused = true)]
async fn a_status_tells_this_and_no_more() {
    let (cluster, ..) = caller_and_server(Clerk::new("s")).await;
    let c = cluster.host("c");
    let HostStatus {
        sequence: _,
        phase: _,
        accepting_work: _,
        deadline: _,
        stopped: _,
        jobs,
        link_profile: _,
        waiting_requests: _,
        request_timeouts: _,
        spot_drops: _,
        location,
        observed: _,
    } = c.status();
    let JobQueueStatus {
        profile: _,
        limit,
        reserve: _,
        pause_count,
        resume_count,
        reserved,
        queued,
        paused: _,
        paused_total: _,
        transitions: _,
        failed_applies: _,
        stalled: _,
    } = jobs;
    assert!(resume_count < pause_count && pause_count <= limit);
    assert_eq!(jobs.in_use(), reserved + queued);
    let LocationStatus {
        state: _,
        admits_owned_work: _,
        list_age: _,
    } = location.expect("it has a store");
    let TopologyStatus {
        sequence: _,
        name: _,
        kind: _,
        phase: _,
        reason: _,
        peers,
        pauses_peers: _,
        links:
            LinksStatus {
                count: _,
                budget: _,
                queued_bytes: _,
                waiting_bytes: _,
                waiting_senders: _,
            },
        channels,
        selection_failures: _,
        channel_drops: _,
        node_drops: _,
        observed: _,
    } = c.mesh("shop").unwrap().status();
    let PeerStatus {
        rid: _,
        state: _,
        failure: _,
        paused: _,
        pauses: _,
        queued_bytes: _,
        waiting_bytes: _,
    } = &peers[0];
    let TargetStatus { rid: _, weight: _ } = &channels[0].1[0];
}
