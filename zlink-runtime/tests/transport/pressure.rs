//! What holds a link back: permits, the peer's receive flow, the byte budget; and what none of them may hold.

use std::time::Duration;

use zlink_runtime::permit::HostPermits;
use zlink_runtime::transport::{
    CloseReason, Flow, HANDSHAKE_RECORDS, Lane, Lanes, Offer, Record, Refused, SocketType, Transport,
};

use crate::kit::*;

fn rec(bytes: &[u8]) -> Record<'_> {
    Record {
        head: bytes,
        payload: &[],
    }
}

/// A link whose listener has `max` permits.
async fn with_permits(max: u32, lanes: Lanes) -> (End, End, Server) {
    let transport = transport();
    let (ours, theirs) = (HostPermits::new(1000), HostPermits::new(max));
    let mut server = Server::bind(&transport, "tcp://127.0.0.1:0", offer("server", &theirs)).await;
    let socket = if lanes == Lanes::One {
        SocketType::Dealer
    } else {
        SocketType::Router
    };
    let link = transport
        .dial(
            server.endpoint(),
            Offer {
                lanes,
                socket,
                ..offer("client", &ours)
            },
        )
        .await
        .unwrap();
    let accepted = server.accept().await;
    (
        End::new(link, &ours, 1 << 20),
        End::new(accepted, &theirs, 1 << 20),
        server,
    )
}

/// REQ: PM-30, PM-36, PM-91, PM-20
#[tokio::test]
async fn without_a_permit_nothing_is_received() {
    for lanes in [Lanes::One, Lanes::Two] {
        let (client, server, _bound) = with_permits(10, lanes).await;
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

/// REQ: PM-40, PM-41, NET-914
#[tokio::test]
async fn completions_pass_while_data_stands_still() {
    let (client, server, _bound) = with_permits(1, Lanes::Two).await;
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

/// REQ: PM-42
#[tokio::test]
async fn on_one_lane_a_completion_waits_behind_data_only() {
    let (client, server, _bound) = with_permits(1, Lanes::One).await;
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

/// REQ: PM-83, PM-86, PM-90, PM-05
#[tokio::test]
async fn a_paused_peer_is_one_reason_to_wait_and_a_full_budget_another() {
    for lanes in [Lanes::One, Lanes::Two] {
        let (client, server, _bound) = with_permits(1, lanes).await;
        let flow = |version, paused| server.link.announce(Flow { version, paused });
        flow(1, true);
        until("the pause is told", || client.link.held().by_peer).await;
        assert!(server.link.held().by_us && !client.link.held().by_us);
        assert_eq!(
            client.link.try_send(Lane::Data, rec(&record(ORDINARY, 0, 0))),
            Err(Refused::Full)
        );
        let mut first = client.link.send(Lane::Data, record(ORDINARY, 0, 0));
        assert!(futures_poll(&mut first).is_pending());

        flow(3, false);
        flow(2, true);
        first.await.unwrap();
        assert!(
            !client.link.held().by_peer,
            "an older value than the last changes nothing"
        );

        // Now the budget: nothing is received for lack of permits, so it fills, once the kernel's buffers are full.
        let (mut sent, mut still) = (1, 0);
        until("every buffer is full", || {
            still += 1;
            while client
                .link
                .try_send(Lane::Data, rec(&record(ORDINARY, sent, 500_000)))
                .is_ok()
            {
                (sent, still) = (sent + 1, 0);
            }
            still == 50
        })
        .await;
        let mut waits = client.link.send(Lane::Data, record(ORDINARY, sent, 500_000));
        assert!(futures_poll(&mut waits).is_pending());
        flow(4, true);
        until("paused again", || client.link.held().by_peer).await;
        flow(5, false);
        until("running again", || !client.link.held().by_peer).await;
        assert!(futures_poll(&mut waits).is_pending(), "running clears the pause only");
        assert!(client.link.stats().queued_bytes <= 4 << 20);
        server.heard.release();
        let release = async {
            loop {
                server.heard.release();
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            sent = waits => sent.unwrap(),
            () = release => unreachable!(),
        }
        assert_eq!(client.link.stats().pauses, 2);
    }
}

/// REQ: PM-82, PM-87, NET-913
#[tokio::test]
async fn a_new_link_is_told_at_once_and_a_dealer_tells_nobody() {
    let (transport, permits) = (transport(), HostPermits::new(10));
    let paused = Flow {
        version: 7,
        paused: true,
    };
    let mut server = Server::bind(
        &transport,
        "tcp://127.0.0.1:0",
        Offer {
            flow: paused,
            ..offer("server", &permits)
        },
    )
    .await;
    let dealer = Offer {
        flow: paused,
        socket: SocketType::Dealer,
        lanes: Lanes::One,
        ..offer("client", &permits)
    };
    for dialled in [dealer, offer("node", &permits)] {
        let dialler = End::new(
            transport.dial(server.endpoint(), dialled).await.unwrap(),
            &permits,
            1000,
        );
        let accepted = End::new(server.accept().await, &permits, 1000);
        until("the dialler is paused", || dialler.link.held().by_peer).await;
        dialler.link.announce(Flow {
            version: 8,
            paused: dialler.link.peer().lanes == Lanes::One,
        });
        accepted.link.send(Lane::Data, record(COMPLETION, 1, 0)).await.unwrap();
        until("something travelled after it", || dialler.heard.len() == 1).await;
        assert!(!accepted.link.held().by_peer);
    }
}

/// REQ: PM-101, PM-100
#[tokio::test]
async fn waiting_senders_go_in_their_order_and_the_budget_holds() {
    let (client, server, _bound) = with_permits(1, Lanes::Two).await;
    let budget = 4 << 20;
    let mut waiting = Vec::new();
    for n in 0..200 {
        let mut send = client.link.send(Lane::Data, record(ORDINARY, n, 300_000));
        if futures_poll(&mut send).is_pending() {
            waiting.push(send);
        }
        assert!(client.link.stats().queued_bytes <= budget);
        tokio::task::yield_now().await;
    }
    assert!(waiting.len() > 100, "{} wait", waiting.len());
    let mut all = tokio::spawn(async move {
        for send in waiting {
            send.await.unwrap();
        }
    });
    while server.heard.len() < 200 {
        server.heard.release();
        assert!(client.link.stats().queued_bytes <= budget);
        tokio::task::yield_now().await;
    }
    (&mut all).await.unwrap();
    assert_eq!(server.heard.numbers(Lane::Data), (0..200).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_record_larger_than_the_budget_goes_alone() {
    let (client, server, _bound) = linked("tcp://127.0.0.1:0", |offer| offer.budget = 10_000).await;
    client
        .link
        .try_send(Lane::Data, rec(&record(ORDINARY, 0, 5000)))
        .unwrap();
    let large = record(ORDINARY, 1, 1 << 19);
    assert_eq!(client.link.try_send(Lane::Data, rec(&large)), Err(Refused::Full));
    client.link.send(Lane::Data, large).await.unwrap();
    assert_eq!(
        client.link.try_send(Lane::Data, rec(&record(ORDINARY, 2, 0))),
        Err(Refused::Full)
    );
    client.link.send(Lane::Data, record(ORDINARY, 2, 0)).await.unwrap();
    until("all three", || server.heard.numbers(Lane::Data) == [0, 1, 2]).await;
}

/// REQ: MSG-803, MSG-804, MSG-904
#[tokio::test]
async fn the_greatest_record_passes_and_one_more_byte_does_not() {
    for max in [6usize, 1000, 20_000, 300_000] {
        let (client, server, _bound) = linked("tcp://127.0.0.1:0", |offer| offer.max_record = max).await;
        let (fits, more) = (record(ORDINARY, 0, max - 6), record(ORDINARY, 1, max - 5));
        assert_eq!(client.link.try_send(Lane::Data, rec(&more)), Err(Refused::TooLarge));
        assert_eq!(client.link.send(Lane::Data, more.clone()).await, Err(Refused::TooLarge));
        client.link.send(Lane::Data, fits.clone()).await.unwrap();
        client.link.send(Lane::Data, fits).await.unwrap();
        until("both", || server.heard.len() == 2).await;
        // A peer that does not keep the bound ends its own link, and no part of the record is handed on.
        client.link.admit(max + 1);
        client.link.send(Lane::Data, more).await.unwrap();
        until("the link ends", || server.heard.reason().is_some()).await;
        assert!(
            matches!(server.heard.reason(), Some(CloseReason::Protocol(_))),
            "{:?}",
            server.heard.reason()
        );
        assert_eq!(server.heard.len(), 2);
    }
}

/// REQ: PM-71, PM-73, NET-909
#[tokio::test]
async fn a_flood_leaves_others_their_turn() {
    let (transport, permits) = (transport(), HostPermits::new(100_000));
    let mut server = Server::bind(&transport, "tcp://127.0.0.1:0", offer("server", &permits)).await;
    let mut ends = Vec::new();
    for name in ["flood", "trickle"] {
        let dialled = End::new(
            transport.dial(server.endpoint(), offer(name, &permits)).await.unwrap(),
            &permits,
            1000,
        );
        ends.push((dialled, End::new(server.accept().await, &permits, 1000)));
    }
    let flood = ends[0].0.link.clone();
    for n in 0..20_000 {
        flood.try_send(Lane::Data, rec(&record(ORDINARY, n, 100))).unwrap();
    }
    ends[1]
        .0
        .link
        .try_send(Lane::Data, rec(&record(ORDINARY, 0, 0)))
        .unwrap();
    until("the trickle", || ends[1].1.heard.len() == 1).await;
    let before = ends[0].1.heard.len();
    assert!(before < 20_000, "the flood was served whole first");
    until("the flood", || ends[0].1.heard.len() == 20_000).await;
}

#[tokio::test]
async fn before_admission_four_records_are_read_and_no_permit_is_taken() {
    let (transport, permits) = (transport(), HostPermits::new(10));
    let mut server = Server::bind(&transport, "tcp://127.0.0.1:0", offer("server", &permits)).await;
    let client = End::new(
        transport
            .dial(server.endpoint(), offer("client", &permits))
            .await
            .unwrap(),
        &permits,
        1000,
    );
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

#[tokio::test]
async fn a_link_that_nobody_admits_ends_after_two_seconds() {
    let (transport, permits) = (transport(), HostPermits::new(10));
    let mut server = Server::bind(&transport, "tcp://127.0.0.1:0", offer("server", &permits)).await;
    let client = End::new(
        transport
            .dial(server.endpoint(), offer("client", &permits))
            .await
            .unwrap(),
        &permits,
        1000,
    );
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

/// REQ: NET-911
#[tokio::test]
async fn the_end_of_a_peer_is_noticed_without_reading_and_its_backlog_is_kept() {
    for lanes in [Lanes::One, Lanes::Two] {
        let (client, server, _bound) = with_permits(2, lanes).await;
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
///
/// REQ: PM-61, PM-100
#[tokio::test]
async fn who_does_not_read_answers_is_not_read_from() {
    for lanes in [Lanes::One, Lanes::Two] {
        let transport = transport();
        let (ours, theirs) = (HostPermits::new(10), HostPermits::new(10));
        let mut server = Server::bind(&transport, "tcp://127.0.0.1:0", offer("server", &theirs)).await;
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
        let deaf = transport.dial(server.endpoint(), offered).await.unwrap();
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
///
/// REQ: PM-35, PM-60
#[tokio::test]
async fn who_does_not_read_answers_keeps_no_permit() {
    let transport = transport();
    let (ours, theirs) = (HostPermits::new(10), HostPermits::new(1));
    let mut server = Server::bind(&transport, "tcp://127.0.0.1:0", offer("server", &theirs)).await;
    let deaf = transport.dial(server.endpoint(), offer("client", &ours)).await.unwrap();
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
