//! What is counted: one-way messages that were not delivered, calls that found no server, requests that took too long.

use std::time::Duration;

use zlink_generated::contract::{Note, ORDERS, desk_client, orders_client, orders_server};
use zlink_generated::zlink_wire::{ChannelServer, Hello, NodeState, RecordKind, Update};
use zlink_runtime::error::{ErrorKind, Execution};

use super::kit::{
    Craft, Desk, Raw, SHOP, client, endpoint, failure, hello, hello_of, node, note, record, send, server, settle,
    spawn, until,
};

/// Every one-way message that does not reach its handler is counted, by where it went and why; a request is answered, and
/// is not.
///
/// REQ: ERR-902, ERR-306, ERR-908, OB-53
#[tokio::test]
async fn a_one_way_message_that_is_not_delivered_is_counted() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let raw = Raw::join(&endpoint(&s), &hello_of("raw")).await;
    let status = || s.mesh("shop").unwrap().status();
    let channel = || {
        let drops = status().channel_drops;
        (drops.no_handler, drops.decode_error, drops.shutdown)
    };
    let node = || {
        let drops = status().node_drops;
        (drops.no_handler, drops.decode_error, drops.shutdown)
    };
    raw.say(&send("orders", "contract.orders.tell", &note("", 1)));
    desk.reached(1).await;
    assert_eq!(
        (channel(), node()),
        ((0, 0, 0), (0, 0, 0)),
        "what is delivered is not dropped"
    );
    raw.say(&send("orders", "nobody.handles", &note("", 1)));
    raw.say(&send("", "nobody.handles", &note("", 1)));
    raw.say(&send("", "nobody.handles", &note("", 1)));
    raw.say(&Craft::send("orders", "contract.orders.tell").bytes(&[1, 2, 3]).record());
    raw.say(
        &Craft::request(7, "orders", "nobody.handles")
            .message(&note("", 1))
            .record(),
    );
    raw.heard(RecordKind::Reply).await;
    // Half a message is recorded, and no more.
    raw.say(&record(RecordKind::ChannelSend, &[0xff, 0xff, 0xff, 0xff, 200]));
    raw.round_trip().await;
    until("all to be counted", || (channel(), node()) == ((1, 1, 0), (2, 0, 0))).await;

    // What is on its way when a stop begins is not admitted any more.
    raw.say(&send("orders", "contract.orders.tell", &note("hold", 2)));
    desk.reached(2).await;
    let stopping = s.clone();
    let stop = spawn(async move { stopping.shutdown().await });
    raw.heard(RecordKind::Update).await;
    raw.say(&send("orders", "contract.orders.tell", &note("", 3)));
    raw.round_trip().await;
    until("it to be counted", || channel() == (1, 1, 1)).await;
    desk.gate().open();
    stop.await.unwrap().unwrap();
    assert_eq!(desk.numbers(), [1, 2]);
}

/// REQ: ERR-903, CH-309, CH-302
#[tokio::test]
async fn calls_without_a_server_and_requests_without_a_reply_are_counted() {
    let c = client("c", &[]).await;
    let failures = || {
        let status = c.mesh("shop").unwrap().status();
        let (name, failures) = status.selection_failures[0].clone();
        assert_eq!(name, ORDERS);
        (failures.no_member, failures.not_ready, failures.draining)
    };
    assert_eq!(failure(orders_client(&c).ask(note("", 0)).await).0, ErrorKind::NotFound);
    assert_eq!(failures(), (1, 0, 0));
    let channels = vec![ChannelServer {
        name: "orders".into(),
        weight: 100,
    }];
    let hello_that_serves = Hello {
        channels: channels.clone(),
        ..hello_of("raw")
    };
    let raw = Raw::join(&endpoint(&c), &hello_that_serves).await;
    c.mesh("shop")
        .unwrap()
        .ready(ORDERS, 1, super::kit::SOON)
        .await
        .unwrap();
    let late = orders_client(&c)
        .ask(note("", 1))
        .timeout(Duration::from_millis(20))
        .await;
    assert_eq!(failure(late).0, ErrorKind::DeadlineExceeded);
    assert_eq!((failures(), c.status().request_timeouts), ((1, 0, 0), 1));
    raw.say(&hello(
        RecordKind::Update,
        &Update {
            revision: 2,
            state: NodeState::Draining,
            channels,
            placement_weight: None,
        },
    ));
    raw.round_trip().await;
    assert_eq!(
        failure(orders_client(&c).tell(note("", 2)).await).0,
        ErrorKind::NotFound
    );
    assert_eq!(failures(), (1, 0, 1));
    let raw = Raw::join(
        &endpoint(&c),
        &Hello {
            generation: 8,
            ..hello_that_serves
        },
    )
    .await;
    c.mesh("shop")
        .unwrap()
        .ready(ORDERS, 1, super::kit::SOON)
        .await
        .unwrap();
    raw.leave();
    until("its loss", || c.mesh("shop").unwrap().status().channels[0].1.is_empty()).await;
    assert_eq!(
        failure(orders_client(&c).ask(note("", 3)).await).0,
        ErrorKind::Unavailable
    );
    assert_eq!((failures(), c.status().request_timeouts), ((1, 1, 1), 1));
}

/// A call is a value with one end: nothing for a send, the reply for a request, and no word of who was chosen.
///
/// REQ: CH-101
#[tokio::test]
async fn a_call_yields_its_reply_and_nothing_of_its_target() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let c = client("c", &[&s]).await;
    let (): () = orders_client(&c).tell(note("", 1)).await.unwrap();
    let reply: Note = orders_client(&c).ask(note("", 2)).await.unwrap();
    assert_eq!((reply.text.as_str(), desk.numbers()), ("s", vec![1, 2]));
}

/// What a MeshNode is told of its sockets holds there, and what it is not told is the host's.
///
/// REQ: NET-410, PM-74, MSG-104
#[tokio::test]
async fn a_mesh_has_a_send_timeout_of_its_own() {
    let brief = Duration::from_millis(20);
    for (own, of_host) in [(Some(brief), super::kit::SOON), (None, brief)] {
        let configure = |mesh: zlink_runtime::MeshBuilder| match own {
            Some(own) => mesh.send_timeout(own),
            None => mesh,
        };
        let c = node("c", configure).send_timeout(of_host).start().await.unwrap();
        let raw = Raw::join(&endpoint(&c), &hello_of("raw")).await;
        let rid = zlink_runtime::id::Rid::new("raw").unwrap();
        super::kit::linked(&c, &rid).await;
        raw.announce(1, true);
        until("the pause", || {
            c.mesh("shop").unwrap().status().peers.iter().any(|peer| peer.paused)
        })
        .await;
        let begin = std::time::Instant::now();
        let late = desk_client(&c, &SHOP, rid.clone()).tell(note("", 1)).await;
        assert_eq!(failure(late), (ErrorKind::DeadlineExceeded, Execution::NotExecuted));
        assert!(begin.elapsed() < super::kit::SOON, "the shorter one counts here");
        raw.announce(2, false);
        raw.round_trip().await;
        assert_eq!(raw.count(RecordKind::NodeSend), 0, "it is not sent later");
    }
}

/// Probes and all else that is no completion wait for a permit in the order of the data, as calls do.
///
/// REQ: PM-44, PM-30, NET-914
#[tokio::test]
async fn a_probe_waits_for_a_permit_behind_the_calls_before_it() {
    let desk = Desk::new("s");
    let limited = orders_server(desk.clone()).dispatch_limit(1);
    let s = node("s", |mesh| mesh.serve(limited))
        .max_queued_jobs(1)
        .start()
        .await
        .unwrap();
    let raw = Raw::join(&endpoint(&s), &hello_of("raw")).await;
    // Said together, before the host can ask for a pause.
    for number in 1..=3 {
        raw.say(&send("orders", "contract.orders.tell", &note("hold", number)));
    }
    let mut probe = vec![0; 4];
    probe.extend_from_slice(&77_u64.to_le_bytes());
    raw.say(&record(RecordKind::Probe, &probe));
    desk.reached(1).await;
    until("the only permit to be taken", || s.status().jobs.in_use() == 1).await;
    settle().await;
    assert_eq!((desk.runs(), raw.count(RecordKind::ProbeAck)), (1, 0));
    desk.gate().open();
    raw.heard(RecordKind::ProbeAck).await;
    desk.reached(3).await;
    assert_eq!(desk.numbers(), [1, 2, 3]);
}
