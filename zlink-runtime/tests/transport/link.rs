//! The default transport: the whole suite, and what it has beyond: places, lanes of its own, credentials.

use std::sync::Arc;
use std::time::{Duration, Instant};

use zlink_runtime::permit::HostPermits;
use zlink_runtime::testing::transport::kit::*;
use zlink_runtime::testing::transport::{Rig, Suite, soak};
use zlink_runtime::transport::zmtp::{Properties, Security};
use zlink_runtime::transport::{Lane, Lanes, LinkConfig, LinkTransport, Refused, TransportError};

mod conformance {
    zlink_runtime::transport_conformance!(super::suite(Default::default()).speaks_zmtp());
}

fn suite(config: LinkConfig) -> Suite {
    Suite::over(move || Arc::new(LinkTransport::new(config.clone())))
}

fn rig_of(config: LinkConfig) -> Rig {
    Rig::new(&suite(config), "")
}

pub(crate) fn rig() -> Rig {
    rig_of(LinkConfig::default())
}

/// Between two calls of one task nothing has been sent yet, so what stands in the way is known exactly.
#[tokio::test]
async fn a_record_larger_than_the_budget_waits_until_its_queue_is_empty() {
    let (client, server, _bound) = linked(&rig(), "tcp://127.0.0.1:0", |offer| offer.budget = 10_000).await;
    let small = client.link.try_send(Lane::Data, rec(&record(ORDINARY, 0, 5000)));
    assert_eq!(small, Ok(()));
    let large = record(ORDINARY, 1, 1 << 19);
    assert_eq!(client.link.try_send(Lane::Data, rec(&large)), Err(Refused::Full));
    client.link.send(Lane::Data, large).await.unwrap();
    let third = record(ORDINARY, 2, 0);
    assert_eq!(client.link.try_send(Lane::Data, rec(&third)), Err(Refused::Full));
    client.link.send(Lane::Data, third).await.unwrap();
    until("all three", || server.heard.numbers(Lane::Data) == [0, 1, 2]).await;
}

/// While no permit is free, what the peer sends stays with the kernel: not a byte of it is read.
///
/// REQ: PM-30
#[tokio::test]
async fn without_a_permit_no_byte_is_read() {
    let (client, server, _bound) = with_permits(&rig(), 1, Lanes::Two).await;
    let all = server.permits.source().acquire(1).await.unwrap();
    client.link.send(Lane::Data, record(ORDINARY, 0, 50)).await.unwrap();
    until("it to wait", || server.link.held().for_permit).await;
    assert_eq!((server.link.stats().waiting_bytes, server.heard.len()), (0, 0));
    drop(all);
    until("it to come", || server.heard.len() == 1).await;
}

/// Under load a reader is woken for many records, and hands on no more than 64 at a time.
///
/// REQ: PM-70, PM-71
#[tokio::test]
async fn one_wake_up_brings_many_records() {
    const RECORDS: u32 = 2_000;
    for lanes in [Lanes::One, Lanes::Two] {
        let (client, server, _bound) = with_permits(&rig(), 4_096, lanes).await;
        for n in 0..RECORDS {
            client.link.send(Lane::Data, record(ORDINARY, n, 20)).await.unwrap();
        }
        until("all of them", || server.heard.len() == RECORDS as usize).await;
        let stats = server.link.stats();
        assert!(stats.received >= RECORDS.into());
        assert!(
            stats.batches >= stats.received / 64 && stats.batches <= stats.received / 4,
            "{stats:?}"
        );
    }
}

/// A listener that holds so many connections.
async fn with_places(connections: usize) -> Echo {
    let config = LinkConfig {
        connections,
        ..LinkConfig::default()
    };
    Echo::bind(&rig_of(config), "tcp://127.0.0.1:0").await
}

#[tokio::test]
async fn a_listener_holds_so_many_connections_and_others_wait() {
    let server = with_places(4).await;
    let (first, second) = (server.client("first").await, server.client("second").await);
    let third = async { greeted(server.endpoint(), Properties::new()).await };
    let mut third = std::pin::pin!(third);
    let early = tokio::time::timeout(Duration::from_millis(500), &mut third).await;
    assert!(early.is_err(), "the cap was not kept");
    second.round_trips(10).await;
    drop(first);
    third.await;
    second.round_trips(10).await;
}

#[tokio::test]
async fn the_place_of_a_half_open_handshake_comes_free_after_two_seconds() {
    let server = with_places(2).await;
    let begin = Instant::now();
    let half = [raw(server.endpoint()).await, raw(server.endpoint()).await];
    greeted(server.endpoint(), Properties::new()).await;
    assert!(begin.elapsed() > Duration::from_secs(1), "{:?}", begin.elapsed());
    drop(half);
}

/// A dialler that gives up between its lanes: what has come of them takes no place from its next attempt, nor from
/// anybody else's.
#[tokio::test]
async fn the_place_of_an_abandoned_lane_comes_free_at_once() {
    let server = with_places(1).await;
    let begin = Instant::now();
    for attempt in 0..30 {
        let lane = Properties::new()
            .with("Identity", *b"hasty")
            .with("X-Generation", 7u64.to_be_bytes())
            .with("X-Lane", "data")
            .with("X-Link", [attempt; 16]);
        drop(greeted(server.endpoint(), lane).await);
    }
    greeted(server.endpoint(), Properties::new()).await;
    // Each would have had two seconds for its other lane.
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn lanes_that_do_not_belong_together_make_no_link() {
    let server = Echo::bind(&rig(), "tcp://127.0.0.1:0").await;
    let lane = |lane: &'static str, link: u8, generation: u64| {
        Properties::new()
            .with("Identity", *b"mallory")
            .with("X-Generation", generation.to_be_bytes())
            .with("X-Lane", lane)
            .with("X-Link", [link; 16])
    };
    for (first, second) in [
        (lane("data", 1, 7), lane("data", 1, 7)),
        (lane("data", 2, 7), lane("completion", 2, 8)),
        (lane("data", 3, 7), lane("completion", 4, 7)),
        (lane("data", 5, 7), lane("sideways", 5, 7)),
        (lane("data", 6, 0), lane("completion", 6, 0)),
        (
            lane("data", 9, 7),
            Properties::new().with("X-Generation", [7]).with("X-Lane", *b"data"),
        ),
    ] {
        let mut first = greeted(server.endpoint(), first).await;
        let mut second = greeted(server.endpoint(), second).await;
        closed(&mut first).await;
        closed(&mut second).await;
    }
    assert_eq!(server.accepted(), 0);
    server.client("honest").await.round_trips(10).await;
}

#[tokio::test]
async fn plain_credentials_let_in_who_knows_them() {
    let with = |password: &str| {
        rig_of(LinkConfig {
            security: Security::Plain {
                username: "node".into(),
                password: password.into(),
            },
            ..LinkConfig::default()
        })
    };
    let server = Echo::bind(&with("secret"), "tcp://127.0.0.1:0").await;
    server.client("friend").await.round_trips(10).await;
    for stranger in [with("guess"), rig()] {
        let refused = stranger
            .transport()
            .dial(server.endpoint(), offer("stranger", &HostPermits::new(1)))
            .await;
        assert!(matches!(refused, Err(TransportError::Handshake { .. })), "{refused:?}");
    }
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
#[ignore = "a soak: `make soak` runs it for ZLINK_SOAK_SECONDS, 60 where that is not set"]
async fn soaked() {
    let seconds = std::env::var("ZLINK_SOAK_SECONDS").map_or(60, |seconds| seconds.parse().unwrap());
    soak(&rig(), Duration::from_secs(seconds)).await;
}
