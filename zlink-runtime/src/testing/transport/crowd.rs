//! Many peers, and some that are slow, stopped or dead: each link stands by itself.

use std::time::{Duration, Instant};

use crate::id::Generation;
use crate::permit::HostPermits;
use crate::transport::{Endpoint, Lane, Link, Offer};

use super::Rig;
use super::kit::*;
use super::process::{Child, limit_descriptors, raise_descriptors, resident};

pub(super) async fn slow_stopped_and_killed_peers_leave_sixteen_others_served(rig: Rig) {
    let server = Echo::bind(&rig, "tcp://127.0.0.1:0").await;
    let mut children = Vec::new();
    for role in ["hold-everything", "echo", "echo"] {
        children.push(Child::start(&rig, role, server.endpoint().as_str()).await);
        assert_eq!(children.last_mut().unwrap().line().await, "linked");
    }
    until("three accepted", || server.accepted() == 3).await;
    let bad = server.links();
    children[1].signal("STOP");
    let others = many(&server, 16).await;

    let flood = |link: std::sync::Arc<dyn Link>| {
        tokio::spawn(async move {
            for n in 0.. {
                if link.send(Lane::Data, record(ORDINARY, n, 10_000)).await.is_err() {
                    return;
                }
            }
        })
    };
    let floods: Vec<_> = bad.iter().cloned().map(flood).collect();
    until("two stand still", || {
        bad.iter().filter(|link| link.stats().waiting_senders > 0).count() >= 2
    })
    .await;
    let kill = Instant::now();
    children[2].signal("KILL");
    let round = async { futures_all(others.iter().map(|other| other.round_trips(300))).await };
    tokio::time::timeout(Duration::from_secs(20), round)
        .await
        .expect("the others are served");
    until("the dead one is gone", || server.closed() == 1).await;
    assert!(kill.elapsed() < Duration::from_secs(10));
    let held: usize = bad.iter().map(|link| link.stats().queued_bytes).sum();
    assert!(
        held <= 2 * (4 << 20),
        "{held} bytes are held for two peers that do not read"
    );
    children[1].signal("CONT");
    drop(others);
    floods.iter().for_each(tokio::task::JoinHandle::abort);
}

async fn many(server: &Echo, count: usize) -> Vec<End> {
    let mut ends = Vec::new();
    for n in 0..count {
        ends.push(server.client(&format!("peer-{n}")).await);
    }
    ends
}

pub(super) async fn two_hundred_peers(rig: Rig) {
    let (server, peers) = two_hundred(&rig).await;
    assert_eq!((server.accepted(), server.permits.in_use()), (200, 0));
    drop(peers);
    until("all are gone", || server.closed() == 200).await;
}

/// Old and new links of one identity come and go at once; the end of one is the end of no other.
async fn reconnects(rig: &Rig, count: usize) {
    raise_descriptors();
    let server = Echo::bind(rig, "tcp://127.0.0.1:0").await;
    let peers = (0..8).map(|peer| {
        let server = &server;
        async move {
            let mut old = None;
            for n in 0..count / 8 {
                let new = server.client(&format!("peer-{peer}")).await;
                new.round_trips(1).await;
                // With and without a moment of two links, with and without a backlog.
                drop(old.take());
                new.round_trips(1).await;
                if n % 3 == 0 {
                    for n in 0..100 {
                        new.link.send(Lane::Data, record(ORDINARY, n, 1000)).await.unwrap();
                    }
                }
                if n % 2 == 0 {
                    old = Some(new);
                }
            }
        }
    });
    futures_all(peers).await;
    assert_eq!(server.accepted(), count);
    until("all are gone", || server.closed() == count).await;
    assert_eq!(server.permits.in_use(), 0);
}

pub(super) async fn two_thousand_reconnects_with_fixed_identities(rig: Rig) {
    reconnects(&rig, 2000).await;
}

pub(super) async fn each_link_tells_the_run_of_its_peer_and_ends_alone(rig: Rig) {
    let permits = HostPermits::new(100);
    let mut server = Server::bind(&rig, "tcp://127.0.0.1:0", offer("server", &permits)).await;
    let mut ends = Vec::new();
    for token in [5, 6] {
        let generation = Generation::from_wire(token).unwrap();
        let dialled = rig
            .transport()
            .dial(
                server.endpoint(),
                Offer {
                    generation,
                    ..offer("same", &permits)
                },
            )
            .await
            .unwrap();
        let accepted = server.accept().await;
        assert_eq!(accepted.peer().generation, Some(generation));
        ends.push((End::new(dialled, &permits, 1000), End::new(accepted, &permits, 1000)));
    }
    assert_ne!(ends[0].1.link.id(), ends[1].1.link.id());
    let (old, _) = ends.remove(0);
    old.link
        .close(crate::transport::CloseReason::Local("replaced"), Duration::ZERO);
    until("the old one ends", || old.heard.reason().is_some()).await;
    let (new, accepted) = &ends[0];
    new.link.send(Lane::Data, record(ORDINARY, 1, 0)).await.unwrap();
    until("the new one serves", || accepted.heard.len() == 1).await;
    assert_eq!(accepted.heard.reason(), None);
}

pub(super) async fn frames_of_sixteen_mebibytes(rig: Rig) {
    let size = 16 << 20;
    for lanes in [crate::transport::Lanes::One, crate::transport::Lanes::Two] {
        let (client, server, _bound) = linked(&rig, "tcp://127.0.0.1:0", |offer| {
            (offer.max_record, offer.lanes) = (size, lanes);
        })
        .await;
        for n in 0..6 {
            client
                .link
                .send(Lane::Data, record(ORDINARY, 2 * n, size - 6))
                .await
                .unwrap();
            client
                .link
                .send(Lane::Data, record(ORDINARY, 2 * n + 1, 6))
                .await
                .unwrap();
        }
        until("all of them", || server.heard.len() == 12).await;
        assert_eq!(server.heard.numbers(Lane::Data), (0..12).collect::<Vec<_>>());
    }
}

/// Reconnects and crowds for so long; memory must not grow.
pub async fn soak(rig: &Rig, time: Duration) {
    let end = Instant::now() + time;
    reconnects(rig, 2000).await;
    let settled = resident();
    while Instant::now() < end {
        reconnects(rig, 2000).await;
        two_hundred(rig).await;
        let now = resident();
        println!("{} MiB resident", now >> 20);
        assert!(
            now < 2 * settled + (64 << 20),
            "memory grows: {settled} bytes at first, {now} now"
        );
    }
}

async fn two_hundred(rig: &Rig) -> (Echo, Vec<End>) {
    raise_descriptors();
    let server = Echo::bind(rig, "tcp://127.0.0.1:0").await;
    let peers = many(&server, 200).await;
    futures_all(peers.iter().map(|peer| peer.round_trips(20))).await;
    (server, peers)
}

/// What a child process does: see [`Child`].
pub(super) async fn child(rig: &Rig, role: &str, endpoint: &str) {
    let permits = HostPermits::new(if role == "hold-everything" { 1 } else { 1000 });
    if role == "serve-with-64-descriptors" {
        limit_descriptors(64);
        let server = Echo::bind(rig, "tcp://127.0.0.1:0").await;
        Child::say(server.endpoint());
        std::future::pending::<()>().await;
    }
    let endpoint: Endpoint = endpoint.parse().unwrap();
    let link = rig
        .transport()
        .dial(&endpoint, offer(&format!("{role}-{}", std::process::id()), &permits))
        .await
        .unwrap();
    let _end = if role == "echo" {
        let server = EchoSink::new(link.clone());
        link.start(server);
        link.admit(1 << 20);
        None
    } else {
        Some(End::new(link.clone(), &permits, 1 << 20))
    };
    Child::say("linked");
    std::future::pending::<()>().await;
}
