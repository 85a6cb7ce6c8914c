//! What a busy host owes to everybody else: no peer, no send that nobody looks at, and no start that nobody waits for
//! keeps it from its other work.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use zlink_generated::contract::{ORDERS, orders_client, orders_server, stock_server};
use zlink_generated::zlink_wire::{ChannelServer, Hello, NodeState, RecordKind, Update};
use zlink_runtime::PeerState;
use zlink_runtime::id::Rid;
use zlink_runtime::prelude::*;

use super::kit::*;

/// A peer that has closed its connections is gone, also for a host that has no permit to read what it said last.
///
/// REQ: NET-911, CH-302
#[tokio::test]
async fn a_peer_that_leaves_a_saturated_host_is_not_ready_any_more() {
    let desk = Desk::new("s");
    let stock = stock_server(desk.clone()).dispatch_limit(1);
    let s = node("s", |mesh| mesh.client(ORDERS).serve(stock))
        .max_queued_jobs(1)
        .start()
        .await
        .unwrap();
    let raw = Raw::join(&endpoint(&s), &hello_that_serves(Way::Mesh)).await;
    let rid = Rid::new("raw").unwrap();
    linked(&s, &rid).await;
    let other = server("other", 1, &Desk::new("other")).await;
    s.mesh("shop").unwrap().connect(&endpoint(&other), None).unwrap();
    linked(&s, &rid_of(&other)).await;
    for number in 0..20 {
        let told = Craft::send("stock", "contract.orders.tell").message(&note("hold", number));
        raw.say(&told.record());
    }
    desk.reached(1).await;
    raw.leave();
    until("the one that left not to be ready", || {
        peer_state(&s, &rid) != Some(PeerState::Ready)
    })
    .await;
    assert!(desk.runs() < 20, "what it said last still waits");
    for number in 0..20 {
        let ask = orders_client(&s).ask(note("", number)).timeout(Duration::from_secs(30));
        assert_eq!(ask.await.unwrap().text, "other", "the one that left is not chosen");
    }
}

/// A start that nobody waits for any more leaves nothing bound.
///
/// REQ: NET-1003
#[tokio::test]
async fn a_start_that_is_dropped_leaves_no_socket_behind() {
    // A start on a busy machine may be done at the first look; then the next one is tried.
    let (port, start) = loop {
        let port = free_port();
        let builder = Host::builder()
            .mesh("shop", |mesh| mesh.listen(format!("tcp://127.0.0.1:{port}")))
            .mesh("depot", |mesh| mesh.listen("tcp://localhost:0"));
        let mut start = Box::pin(builder.start());
        match poll_fn(|cx| Poll::Ready(start.as_mut().poll(cx))).await {
            Poll::Pending if !is_free(port) => break (port, start),
            Poll::Pending => {}
            Poll::Ready(host) => host.unwrap().shutdown().await.unwrap(),
        }
    };
    drop(start);
    until("the port to be free again", || is_free(port)).await;
}

/// One peer's changes of weight do not keep this side from everything else: they are taken at once, and selection is
/// made anew for many of them together.
///
/// REQ: PM-71, NET-909
#[tokio::test]
async fn a_flood_of_weights_does_not_hold_a_thread() {
    let c = node("client", |mesh| mesh.client(ORDERS)).start().await.unwrap();
    let raw = Raw::join(&endpoint(&c), &hello_that_serves(Way::Mesh)).await;
    let mut others = Vec::new();
    // Weights without a short period: each selection made anew takes as long as it may.
    for (at, weight) in [9973, 9967, 9949, 9941].into_iter().enumerate() {
        let to = endpoint(&c);
        let orders = orders_server(Desk::new("other")).weight(weight);
        let other = node(&format!("o{at}"), |mesh| mesh.serve(orders).connect(to));
        others.push(other.start().await.unwrap());
    }
    until("all of them", || candidates(&c) == 5).await;
    let weight = || {
        let status = c.mesh("shop").unwrap().status();
        let (_, targets) = status
            .channels
            .into_iter()
            .find(|(channel, _)| *channel == ORDERS)
            .unwrap();
        let raw = targets
            .into_iter()
            .find(|target| target.rid == Rid::new("raw").unwrap());
        raw.map(|target| target.weight)
    };
    // One calm round of some is proof enough.
    let mut gaps = Vec::new();
    for round in 1..=5 {
        let last = u16::try_from(9000 + round).unwrap();
        for at in 0..256 {
            let orders = ChannelServer {
                name: "orders".into(),
                weight: match at {
                    255 => last,
                    _ if at % 2 == 0 => 9931,
                    _ => 9929,
                },
            };
            let update = Update {
                revision: 256 * round + at,
                state: NodeState::Serving,
                channels: vec![orders],
                placement_weight: None,
            };
            raw.say(&hello(RecordKind::Update, &update));
        }
        // What others on this machine take does not count.
        let (mut gap, mut seen) = (0, on_cpu());
        until("the last weight", || {
            gap = gap.max(on_cpu() - seen);
            let known = weight() == Some(last);
            seen = on_cpu();
            known
        })
        .await;
        gaps.push(Duration::from_nanos(gap));
    }
    let least = gaps.iter().min().unwrap();
    assert!(
        *least < Duration::from_millis(60),
        "the runtime's thread was held for {gaps:?}"
    );
}

/// A send that waits for room and is not looked at holds nobody up who has room.
///
/// REQ: PM-60, MSG-104
#[tokio::test]
async fn a_waiting_send_that_is_not_polled_holds_no_other_sender_up() {
    let c = node("client", |mesh| mesh.client(ORDERS).link_budget(100_000))
        .start()
        .await
        .unwrap();
    let raw = Raw::join(&endpoint(&c), &hello_that_serves(Way::Mesh)).await;
    linked(&c, &Rid::new("raw").unwrap()).await;
    raw.announce(1, true);
    let status = || c.mesh("shop").unwrap().status().peers.remove(0);
    until("the pause", || status().paused).await;
    let mut kept: Vec<_> = [200_000, 60_000, 60_000]
        .into_iter()
        .map(|len| Box::pin(orders_client(&c).tell(heavy(1, len)).into_future()))
        .collect();
    for send in &mut kept {
        let first = poll_fn(|cx| Poll::Ready(send.as_mut().poll(cx))).await;
        assert!(first.is_pending());
    }
    raw.announce(2, false);
    until("the end of the pause", || !status().paused).await;
    for number in 0..10 {
        soon("another send", orders_client(&c).tell(note("", number)))
            .await
            .unwrap();
    }
    for send in kept {
        soon("what was kept", send).await.unwrap();
    }
}

/// A client of a ClientServer channel takes no requests: it can hold none back, and not freeze the limit of its probes.
///
/// REQ: NET-913
#[tokio::test]
async fn a_client_that_tells_a_receive_flow_is_refused() {
    let s = serving(Way::ClientServer, orders_server(Desk::new("s")), |host| host).await;
    let hello = Hello {
        channels: Vec::new(),
        ..hello_that_serves(Way::ClientServer)
    };
    let raw = Raw::join(&address(&s), &hello).await;
    raw.round_trip().await;
    let paused_in_version_1 = [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    raw.say(&record(RecordKind::Flow, &paused_in_version_1));
    soon("the end of the link", raw.ended()).await;
}
