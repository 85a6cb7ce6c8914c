//! What a simulated cluster is: links as they are anywhere, on virtual time, from a seed.

use std::time::Duration;

use zlink_generated::contract::{self, Note, OrdersHandler, orders_client, orders_server};
use zlink_runtime::error::HandlerError;
use zlink_runtime::prelude::*;
use zlink_runtime::testing::Cluster;
use zlink_runtime::testing::network::{Conditions, TraceEvent};

struct Echo;

impl OrdersHandler for Echo {
    async fn ask(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        Ok(request)
    }
    async fn hurry(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        Ok(request)
    }
    async fn brief(&self, _: &ChannelContext<'_>, request: contract::Brief) -> Result<contract::Brief, HandlerError> {
        Ok(request)
    }
    async fn tell(&self, _: &ChannelContext<'_>, _: Note) -> Result<(), HandlerError> {
        Ok(())
    }
}

fn two(seed: u64) -> Cluster {
    let cluster = Cluster::new(seed);
    cluster.node("server", |host| {
        host.mesh("shop", |mesh| {
            mesh.rid("server").listen("tcp://server:1").serve(orders_server(Echo))
        })
    });
    cluster.node("client", |host| {
        host.mesh("shop", |mesh| {
            mesh.rid("client")
                .listen("tcp://client:1")
                .connect("tcp://server:1")
                .client(contract::ORDERS)
        })
    });
    cluster
}

#[tokio::test(start_paused = true)]
async fn a_request_takes_the_time_of_its_way_there_and_back() {
    let cluster = two(1);
    cluster.start_all().await.unwrap();
    cluster.network().delay("client", "server", Duration::from_millis(200));
    cluster.ready(Duration::from_secs(10)).await;
    let began = tokio::time::Instant::now();
    let note = Note {
        number: 7,
        ..Note::default()
    };
    let reply = orders_client(&cluster.host("client")).ask(note).await.unwrap();
    assert_eq!(reply.number, 7);
    let taken = began.elapsed();
    assert!((400..=403).contains(&taken.as_millis()), "{taken:?}");
    cluster.shutdown().await.unwrap();
}

/// One run with everything that a network can do, and its trace.
fn eventful(seed: u64) -> (u64, Vec<TraceEvent>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let cluster = two(seed);
        cluster.network().set_usual(Conditions {
            jitter: Duration::from_millis(20),
            breaks: 0.01,
            refusals: 0.1,
            ..Conditions::default()
        });
        cluster.start_all().await.unwrap();
        for round in 0..20 {
            let call = orders_client(&cluster.host("client"))
                .ask(Note::default())
                .timeout(Duration::from_secs(2));
            let outcome = call.await.map_err(|error| error.kind());
            cluster.network().note(format!("{round}: {outcome:?}"));
            match round % 7 {
                3 => cluster.network().cut("server", "client"),
                4 => cluster.network().heal(),
                6 => drop(cluster.restart("server").await.unwrap()),
                _ => {}
            }
            cluster.advance(Duration::from_millis(700)).await;
        }
        cluster.shutdown().await.ok();
        (cluster.network().fingerprint(), cluster.network().trace())
    })
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    for seed in 0..20 {
        let (first, trace) = eventful(seed);
        let (second, again) = eventful(seed);
        for (at, (one, other)) in trace.iter().zip(&again).enumerate() {
            assert_eq!(one, other, "seed {seed}, event {at}");
        }
        assert_eq!((first, trace.len()), (second, again.len()), "seed {seed}");
        assert_ne!(first, eventful(seed + 1000).0);
        assert!(trace.len() > 100, "{} events are no run", trace.len());
    }
}
