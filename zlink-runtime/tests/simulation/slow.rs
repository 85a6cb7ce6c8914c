//! Links over a slow network that are busy all the time: slow is not dead.

use std::time::Duration;

use tokio::time::Instant;
use zlink_generated::contract::{self, Brief, Note, OrdersHandler, orders_client, orders_server};
use zlink_runtime::PeerState;
use zlink_runtime::error::HandlerError;
use zlink_runtime::prelude::*;
use zlink_runtime::testing::Cluster;
use zlink_runtime::testing::network::{Conditions, Happened, TraceEvent};

/// Bytes per second and direction.
const SPEED: u64 = 1_000_000;

/// Answers with as many bytes as it is asked for.
struct Weigher;

impl OrdersHandler for Weigher {
    async fn ask(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        Ok(Note {
            body: vec![7; usize::try_from(request.number).unwrap()],
            ..Note::default()
        })
    }
    async fn hurry(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        Ok(request)
    }
    async fn brief(&self, _: &ChannelContext<'_>, request: Brief) -> Result<Brief, HandlerError> {
        Ok(request)
    }
    async fn tell(&self, _: &ChannelContext<'_>, _: Note) -> Result<(), HandlerError> {
        Ok(())
    }
}

async fn two() -> Cluster {
    let cluster = Cluster::new(1);
    cluster.node("server", |host| {
        host.mesh("shop", |mesh| {
            let mesh = mesh.rid("server").listen("tcp://server:1").link_budget(100_000);
            mesh.serve(orders_server(Weigher))
        })
    });
    cluster.node("client", |host| {
        host.mesh("shop", |mesh| {
            let mesh = mesh.rid("client").listen("tcp://client:1").link_budget(100_000);
            mesh.connect("tcp://server:1").client(contract::ORDERS)
        })
    });
    cluster.network().set_usual(Conditions {
        bytes_per_second: Some(SPEED),
        ..Conditions::default()
    });
    cluster.start_all().await.unwrap();
    cluster.ready(Duration::from_secs(10)).await;
    cluster
}

/// Looks once a second whether both sides take the link as ready, until all of `work` is done.
async fn ready_until_done(cluster: &Cluster, work: Vec<tokio::task::JoinHandle<()>>) -> Duration {
    let begin = Instant::now();
    while !work.iter().all(tokio::task::JoinHandle::is_finished) {
        for name in ["client", "server"] {
            let status = cluster.host(name).mesh("shop").unwrap().status();
            let ready = status.peers.iter().all(|peer| peer.state == PeerState::Ready);
            assert!(ready, "{name} after {:?}", begin.elapsed());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    for done in work {
        done.await.unwrap();
    }
    begin.elapsed()
}

/// A link that is full of this side's own records is no dead link: its probes go to the head of the line.
///
/// REQ: NET-902, PM-84
#[tokio::test(start_paused = true)]
async fn a_link_under_a_flood_of_own_sends_stays_ready() {
    let cluster = two().await;
    let end = Instant::now() + Duration::from_secs(30);
    let senders = (0..1000).map(|number| {
        let orders = orders_client(&cluster.host("client"));
        tokio::spawn(async move {
            while Instant::now() < end {
                let note = Note {
                    number,
                    body: vec![7; 30_000],
                    ..Note::default()
                };
                // Its own time limit may end it: only the link is looked at.
                let _ = orders.tell(note).await;
            }
        })
    });
    ready_until_done(&cluster, senders.collect()).await;
    cluster.shutdown().await.unwrap();
}

/// Replies that each take long on the way keep nobody from being alive, whoever waits to hear of whom.
///
/// REQ: NET-902, PM-84
#[tokio::test(start_paused = true)]
async fn large_replies_over_a_slow_network_do_not_end_the_link() {
    let cluster = two().await;
    let calls = (0..40).map(|_| {
        let orders = orders_client(&cluster.host("client"));
        tokio::spawn(async move {
            let note = Note {
                number: 1_000_000,
                ..Note::default()
            };
            let reply = orders.ask(note).timeout(Duration::from_secs(100)).await.unwrap();
            assert_eq!(reply.body.len(), 1_000_000);
        })
    });
    let taken = ready_until_done(&cluster, calls.collect()).await;
    assert!(taken > Duration::from_secs(35), "it was not slow: {taken:?}");
    cluster.shutdown().await.unwrap();
}

/// Answers to a paused client of a ClientServer channel go the way that its probes go: however many wait there, and
/// however often the server pauses it meanwhile, the link stays. What may wait has to get through in the limit of a
/// probe: a slower network needs a smaller budget.
///
/// REQ: NET-913, NET-902, PM-84
#[tokio::test(start_paused = true)]
async fn a_client_that_is_paused_beside_many_small_replies_keeps_its_link() {
    for (speed, budget) in [(SPEED, 4 << 20), (SPEED / 10, 400_000)] {
        let cluster = Cluster::new(1);
        cluster.node("server", move |host| {
            host.max_queued_jobs(64).client_server(|channel| {
                let channel = channel.listen("tcp://server:1").link_budget(budget);
                channel.serve(orders_server(Weigher))
            })
        });
        cluster.node("client", move |host| {
            host.client_server(|channel| {
                let channel = channel.connect("tcp://server:1").link_budget(budget);
                channel.client(contract::ORDERS)
            })
        });
        cluster.network().set_usual(Conditions {
            bytes_per_second: Some(speed),
            ..Conditions::default()
        });
        cluster.start_all().await.unwrap();
        cluster.ready(Duration::from_secs(10)).await;
        let end = Instant::now() + Duration::from_secs(40);
        let calls: Vec<_> = (0..budget / 1000)
            .map(|_| {
                let orders = orders_client(&cluster.host("client"));
                tokio::spawn(async move {
                    while Instant::now() < end {
                        let note = Note {
                            number: 1500,
                            ..Note::default()
                        };
                        orders.ask(note).timeout(Duration::from_secs(300)).await.unwrap();
                    }
                })
            })
            .collect();
        let mut pauses = 0;
        while !calls.iter().all(tokio::task::JoinHandle::is_finished) {
            let status = cluster.host("client").client_server(contract::ORDERS).unwrap().status();
            let [peer] = &status.peers[..] else {
                panic!("{status:?}")
            };
            assert_eq!(peer.state, PeerState::Ready, "{peer:?}");
            assert!(peer.pauses >= pauses, "the link is another one");
            pauses = peer.pauses;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        for call in calls {
            call.await.unwrap();
        }
        assert!(pauses > 0, "at {speed}");
        cluster.shutdown().await.unwrap();
    }
}

/// Half a second there and back, in which a link has to be made, admitted and used: all of it within the two seconds
/// that a handshake and an admission have.
#[tokio::test(start_paused = true)]
async fn a_link_over_half_a_second_stands_within_its_limits() {
    let cluster = Cluster::new(1);
    for (name, other) in [("client", "server"), ("server", "client")] {
        cluster.node(name, move |host| {
            host.mesh("shop", |mesh| {
                let mesh = mesh.rid(name).listen(format!("tcp://{name}:1"));
                match name {
                    "server" => mesh.serve(orders_server(Weigher)),
                    _ => mesh.connect(format!("tcp://{other}:1")).client(contract::ORDERS),
                }
            })
        });
    }
    cluster.network().set_usual(Conditions {
        latency: Duration::from_millis(250),
        ..Conditions::default()
    });
    cluster.start_all().await.unwrap();
    let begun = Instant::now();
    cluster.ready(Duration::from_secs(20)).await;
    let taken = begun.elapsed();
    println!("ready after {taken:?}");
    assert!(
        taken < Duration::from_millis(2_500),
        "not at the first attempt: {taken:?}"
    );
    let dialled = |event: &TraceEvent| matches!(event.happened, Happened::Dialled { .. });
    assert_eq!(
        cluster.network().trace().iter().filter(|event| dialled(event)).count(),
        2
    );
    // It stays, and calls come back.
    ready_until_done(
        &cluster,
        vec![tokio::spawn(tokio::time::sleep(Duration::from_secs(60)))],
    )
    .await;
    let asked = orders_client(&cluster.host("client")).ask(Note::default());
    assert!(asked.timeout(Duration::from_secs(2)).await.is_ok());
    cluster.shutdown().await.unwrap();
}
