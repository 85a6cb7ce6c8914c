//! What is not received: records without a permit, before admission, from who takes no answers; and what follows an end.

use std::time::Duration;

use crate::permit::HostPermits;
use crate::transport::{CloseReason, HANDSHAKE_RECORDS, Lane, Lanes, Offer, Refused, SocketType};

use super::Rig;
use super::kit::*;

pub(super) async fn without_a_permit_nothing_is_received(rig: Rig) {
    for lanes in [Lanes::One, Lanes::Two] {
        let (client, server, _bound) = with_permits(&rig, 10, lanes).await;
        for n in 0..1000 {
            client.link.send(Lane::Data, record(ORDINARY, n, 50)).await.unwrap();
        }
        until("ten jobs", || server.heard.len() == 10 && server.link.held().for_permit).await;
        assert_eq!(server.permits.in_use(), 10);
        server.heard.with(|heard| heard.records[3].2.take());
        until("one more", || server.heard.len() == 11).await;
        assert_eq!((server.permits.in_use(), server.link.stats().received), (10, 11));
        until("it waits again", || server.link.held().for_permit).await;
        while server.heard.len() < 1000 {
            server.heard.release();
            tokio::task::yield_now().await;
        }
        assert_eq!(server.heard.numbers(Lane::Data), (0..1000).collect::<Vec<_>>());
        server.heard.release();
        assert_eq!(server.permits.in_use(), 0);
    }
}

pub(super) async fn completions_pass_while_data_stands_still(rig: Rig) {
    let (client, server, _bound) = with_permits(&rig, 1, Lanes::Two).await;
    for n in 0..100 {
        client.link.send(Lane::Data, record(ORDINARY, n, 1000)).await.unwrap();
    }
    until("no permit is left", || server.link.held().for_permit).await;
    for n in 0..500 {
        client
            .link
            .send(Lane::Completion, record(COMPLETION, n, 1000))
            .await
            .unwrap();
    }
    until("all completions", || {
        server.heard.numbers(Lane::Completion).len() == 500
    })
    .await;
    assert_eq!(server.heard.numbers(Lane::Data), [0]);
    assert_eq!(server.permits.in_use(), 1);
}

/// Nobody calls who dialled a link with one lane: what its other end says of itself is not held back there.
pub(super) async fn who_dialled_one_lane_hears_the_links_own_records_without_a_permit(rig: Rig) {
    const UPDATE: u8 = 6;
    let (ours, theirs) = (HostPermits::new(1), HostPermits::new(10));
    let mut bound = Server::bind(&rig, "tcp://127.0.0.1:0", offer("server", &theirs)).await;
    let offered = Offer {
        lanes: Lanes::One,
        socket: SocketType::Dealer,
        ..offer("client", &ours)
    };
    let link = rig.transport().dial(bound.endpoint(), offered).await.unwrap();
    let server = End::new(bound.accept().await, &theirs, 1 << 20);
    let client = End::new(link, &ours, 1 << 20);
    for (n, kind) in [ORDINARY, UPDATE, COMPLETION, UPDATE, ORDINARY, UPDATE]
        .into_iter()
        .enumerate()
    {
        server
            .link
            .try_send(Lane::Data, rec(&record(kind, n as u32, 0)))
            .unwrap();
    }
    until("what would take a permit stops it", || {
        client.heard.len() == 4 && client.link.held().for_permit
    })
    .await;
    assert_eq!((client.heard.numbers(Lane::Data), ours.in_use()), (vec![0, 1, 2, 3], 1));
    client.heard.release();
    until("the rest", || client.heard.len() == 6).await;
    assert_eq!(client.heard.numbers(Lane::Data), [0, 1, 2, 3, 4, 5]);
}

pub(super) async fn on_one_lane_a_completion_waits_behind_data_only(rig: Rig) {
    let (client, server, _bound) = with_permits(&rig, 1, Lanes::One).await;
    for (n, kind) in [COMPLETION, COMPLETION, ORDINARY, COMPLETION, ORDINARY, COMPLETION]
        .into_iter()
        .enumerate()
    {
        client
            .link
            .try_send(Lane::Data, rec(&record(kind, n as u32, 0)))
            .unwrap();
    }
    until("data without a permit stops it", || {
        server.heard.len() == 4 && server.link.held().for_permit
    })
    .await;
    assert_eq!(
        (server.heard.numbers(Lane::Data), server.permits.in_use()),
        (vec![0, 1, 2, 3], 1)
    );
    server.heard.release();
    until("the rest", || server.heard.len() == 6).await;
    assert_eq!(server.heard.numbers(Lane::Data), [0, 1, 2, 3, 4, 5]);
}

pub(super) async fn a_flood_leaves_others_their_turn(rig: Rig) {
    const TRICKLE: u32 = 1 << 20;
    let permits = HostPermits::new(100_000);
    let mut server = Server::bind(&rig, "tcp://127.0.0.1:0", offer("server", &permits)).await;
    let (mut callers, heard) = (Vec::new(), Collector::default());
    for name in ["flood", "trickle"] {
        let caller = server.dialled(&rig, offer(name, &permits)).await;
        let accepted = server.accept().await;
        accepted.start(std::sync::Arc::new(heard.clone()));
        accepted.admit(1000);
        callers.push((caller, accepted));
    }
    let send = |from: usize, number, bytes| {
        let link = &callers[from].0.link;
        link.try_send(Lane::Data, rec(&record(ORDINARY, number, bytes)))
            .unwrap();
    };
    // It comes amid the flood, wherever this thread is held up.
    for n in 0..20_000 {
        send(0, n, 100);
        if n == 10_000 {
            send(1, TRICKLE, 0);
        }
    }
    until("both", || heard.len() == 20_001).await;
    let place = heard.numbers(Lane::Data).iter().position(|number| *number == TRICKLE);
    assert!(place < Some(20_000), "the flood was served whole first");
}

pub(super) async fn before_admission_four_records_are_read_and_no_permit_is_taken(rig: Rig) {
    let permits = HostPermits::new(10);
    let mut server = Server::bind(&rig, "tcp://127.0.0.1:0", offer("server", &permits)).await;
    let client = server.dialled(&rig, offer("client", &permits)).await;
    let accepted = server.accept().await;
    let heard = Collector::default();
    accepted.start(std::sync::Arc::new(heard.clone()));
    for n in 0..8 {
        client.link.try_send(Lane::Data, rec(&record(ORDINARY, n, 0))).unwrap();
        client
            .link
            .try_send(Lane::Completion, rec(&record(COMPLETION, n, 0)))
            .unwrap();
    }
    until("the handshake's records", || heard.len() == HANDSHAKE_RECORDS).await;
    assert_eq!(permits.in_use(), 0);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(heard.len(), HANDSHAKE_RECORDS);
    accepted.admit(1000);
    until("the rest", || heard.len() == 16).await;
    assert_eq!(permits.in_use(), 4);
}

pub(super) async fn a_link_that_nobody_admits_ends_after_two_seconds(rig: Rig) {
    let permits = HostPermits::new(10);
    let mut server = Server::bind(&rig, "tcp://127.0.0.1:0", offer("server", &permits)).await;
    let client = server.dialled(&rig, offer("client", &permits)).await;
    let (accepted, heard) = (server.accept().await, Collector::default());
    accepted.start(std::sync::Arc::new(heard.clone()));
    let start = std::time::Instant::now();
    until("both ends", || {
        heard.reason().is_some() && client.heard.reason().is_some()
    })
    .await;
    assert!(
        matches!(heard.reason(), Some(CloseReason::Timeout(_))),
        "{:?}",
        heard.reason()
    );
    assert!(start.elapsed() > Duration::from_millis(1500), "it had its two seconds");
    assert_eq!(accepted.try_send(Lane::Data, rec(b"\x01\x10")), Err(Refused::Closed));
}

pub(super) async fn the_end_of_a_peer_is_noticed_without_reading_and_its_backlog_is_kept(rig: Rig) {
    for lanes in [Lanes::One, Lanes::Two] {
        let (client, server, _bound) = with_permits(&rig, 2, lanes).await;
        for n in 0..50 {
            client.link.send(Lane::Data, record(ORDINARY, n, 100)).await.unwrap();
        }
        until("it reads no more", || server.link.held().for_permit).await;
        client.link.close(CloseReason::Local("done"), Duration::from_secs(10));
        until("the end is noticed", || server.heard.with(|heard| heard.endings) == 1).await;
        assert_eq!(server.link.try_send(Lane::Data, rec(b"\x01\x10")), Err(Refused::Closed));
        assert_eq!((server.heard.len(), server.heard.reason()), (2, None));
        until("its backlog, then its end", || {
            server.heard.release();
            server.heard.reason().is_some()
        })
        .await;
        assert_eq!(server.heard.numbers(Lane::Data), (0..50).collect::<Vec<_>>());
        assert_eq!(server.heard.reason(), Some(CloseReason::PeerClosed));
        until("the other side too", || client.heard.reason().is_some()).await;
        server.heard.release();
        assert_eq!(server.permits.in_use(), 0);
    }
}

/// A peer that asks and does not read its answers makes this side keep no more of them: it is not asked any further.
pub(super) async fn who_does_not_read_answers_is_not_read_from(rig: Rig) {
    for lanes in [Lanes::One, Lanes::Two] {
        let (ours, theirs) = (HostPermits::new(10), HostPermits::new(10));
        let mut server = Server::bind(&rig, "tcp://127.0.0.1:0", offer("server", &theirs)).await;
        let socket = if lanes == Lanes::One {
            SocketType::Dealer
        } else {
            SocketType::Router
        };
        let offered = Offer {
            lanes,
            socket,
            ..offer("client", &ours)
        };
        let deaf = rig.transport().dial(server.endpoint(), offered).await.unwrap();
        let server = End::new(server.accept().await, &theirs, 1 << 20);
        let answer = record(COMPLETION, 0, 60_000);
        while server.link.try_send(Lane::Completion, rec(&answer)) != Err(Refused::Full) {
            tokio::task::yield_now().await;
        }
        let mut waits = server.link.send(Lane::Completion, answer.clone());
        assert!(futures_poll(&mut waits).is_pending());
        deaf.try_send(Lane::Data, rec(&record(ORDINARY, 7, 50))).unwrap();
        until("it is not read", || server.link.held().for_permit).await;
        assert_eq!((server.heard.len(), theirs.in_use()), (0, 0));

        let _hears = End::new(deaf, &ours, 1 << 20);
        waits.await.unwrap();
        until("it is read again", || server.heard.len() == 1).await;
        assert_eq!(server.heard.numbers(Lane::Data), [7]);
    }
}

/// A reader that stands in line for a permit when its peer stops taking answers does not keep what is granted to it.
pub(super) async fn who_does_not_read_answers_keeps_no_permit(rig: Rig) {
    let (ours, theirs) = (HostPermits::new(10), HostPermits::new(1));
    let mut server = Server::bind(&rig, "tcp://127.0.0.1:0", offer("server", &theirs)).await;
    let deaf = rig
        .transport()
        .dial(server.endpoint(), offer("client", &ours))
        .await
        .unwrap();
    let server = End::new(server.accept().await, &theirs, 1 << 20);
    let only = theirs.source().try_acquire(1).unwrap();
    deaf.try_send(Lane::Data, rec(&record(ORDINARY, 7, 50))).unwrap();
    until("it stands in line", || theirs.status().waiting == 1).await;
    let answer = record(COMPLETION, 0, 60_000);
    while server.link.try_send(Lane::Completion, rec(&answer)) != Err(Refused::Full) {
        tokio::task::yield_now().await;
    }
    let mut waits = server.link.send(Lane::Completion, answer.clone());
    assert!(futures_poll(&mut waits).is_pending());
    drop(only);
    until("the permit is free for others", || theirs.in_use() == 0).await;

    let _hears = End::new(deaf, &ours, 1 << 20);
    waits.await.unwrap();
    until("it is read again", || server.heard.len() == 1).await;
}
