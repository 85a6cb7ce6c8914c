//! What is not sent: beyond the byte budget, the peer's receive flow, the greatest record.

use crate::permit::HostPermits;
use crate::transport::{CloseReason, Flow, Lane, Lanes, Offer, Refused, SocketType};

use super::Rig;
use super::kit::*;

pub(super) async fn a_paused_peer_is_one_reason_to_wait_and_a_full_budget_another(rig: Rig) {
    for lanes in [Lanes::One, Lanes::Two] {
        let (client, server, _bound) = with_permits(&rig, 1, lanes).await;
        let flow = |version, paused| server.link.announce(Flow { version, paused }).unwrap();
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
            biased;
            sent = waits => sent.unwrap(),
            () = release => unreachable!(),
        }
        assert_eq!(client.link.stats().pauses, 2);
    }
}

pub(super) async fn a_new_link_is_told_at_once_and_a_dealer_tells_nobody(rig: Rig) {
    let permits = HostPermits::new(10);
    let paused = Flow {
        version: 7,
        paused: true,
    };
    let mut server = Server::bind(
        &rig,
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
        let dialler = server.dialled(&rig, dialled).await;
        let accepted = End::new(server.accept().await, &permits, 1000);
        until("the dialler is paused", || dialler.link.held().by_peer).await;
        let told = dialler.link.announce(Flow {
            version: 8,
            paused: dialler.link.peer().lanes == Lanes::One,
        });
        told.unwrap();
        accepted.link.send(Lane::Data, record(COMPLETION, 1, 0)).await.unwrap();
        until("something travelled after it", || dialler.heard.len() == 1).await;
        assert!(!accepted.link.held().by_peer);
    }
}

pub(super) async fn waiting_senders_go_in_their_order_and_the_budget_holds(rig: Rig) {
    let (client, server, _bound) = with_permits(&rig, 1, Lanes::Two).await;
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

pub(super) async fn a_record_larger_than_the_budget_goes_alone(rig: Rig) {
    let (client, server, _bound) = linked(&rig, "tcp://127.0.0.1:0", |offer| offer.budget = 10_000).await;
    // A transport with threads of its own may have sent one before the next is tried; another need not have.
    for (n, size) in [(0, 5000), (1, 1 << 19), (2, 0)] {
        let next = record(ORDINARY, n, size);
        match client.link.try_send(Lane::Data, rec(&next)) {
            Ok(()) => {}
            refused => {
                assert_eq!(refused, Err(Refused::Full), "{n}");
                client.link.send(Lane::Data, next).await.unwrap();
            }
        }
    }
    until("all three", || server.heard.numbers(Lane::Data) == [0, 1, 2]).await;
}

pub(super) async fn the_greatest_record_passes_and_one_more_byte_does_not(rig: Rig) {
    for max in [6usize, 1000, 20_000, 300_000] {
        let (client, server, _bound) = linked(&rig, "tcp://127.0.0.1:0", |offer| offer.max_record = max).await;
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
