//! Chapter 01, section 7: the links of ClientServer channels.

use std::time::Duration;

use zlink_generated::contract::{ORDERS, STOCK, orders_client, orders_server, stock_client};
use zlink_generated::zlink_wire::{ChannelServer, Hello, ObjectRole, RecordKind, Topology};
use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::{Host, PeerState};

use crate::kit::{ANY, Desk, Events, Raw, failure, hello_of, node, note, record, settle, spawn, until};

/// REQ: NET-604, NET-603
#[tokio::test]
async fn the_client_of_one_channel_is_no_client_of_another() {
    let desk = Desk::new("s");
    let s = Host::builder().client_server(|c| c.serve(orders_server(desk.clone())).listen(ANY));
    let s = s.start().await.unwrap();
    let to = s
        .listener(zlink_runtime::ListenerKind::ClientServer, "orders")
        .unwrap()
        .endpoint
        .to_string();
    let c = Host::builder()
        .client_server(|c| c.client(STOCK).connect(&to))
        .start()
        .await
        .unwrap();
    let control = c.client_server("stock").unwrap();
    until("the refusal", || {
        control.intents()[0]
            .failure
            .as_ref()
            .is_some_and(|text| text.contains("Channel"))
    })
    .await;
    let end = failure(
        stock_client(&c)
            .ask(note("", 0))
            .timeout(Duration::from_millis(100))
            .await,
    );
    assert_eq!(end, (ErrorKind::DeadlineExceeded, Execution::NotExecuted));
    // Nor does a MeshNode get in, though it speaks the same protocol.
    let mesh = node("m", |mesh| mesh.connect(&to)).start().await.unwrap();
    let intent = || mesh.mesh("shop").unwrap().intents().remove(0).failure;
    until("the refusal", || intent().is_some_and(|text| text.contains("Topology"))).await;
    assert_eq!(desk.runs(), 0);
}

/// REQ: NET-701, NET-705, NET-606, CH-1003, ERR-706
#[tokio::test]
async fn a_server_cannot_call_its_clients() {
    let mut listener = Raw::listen("server").await;
    let c = Host::builder().client_server(|c| c.client(ORDERS).connect(listener.endpoint()));
    let c = c.start().await.unwrap();
    let hello = Hello {
        topology: Topology::ClientServer,
        scope: "orders".into(),
        role: ObjectRole::Unspecified,
        channels: vec![ChannelServer {
            name: "orders".into(),
            weight: 100,
        }],
        ..hello_of("server")
    };
    let events = Events::collect();
    let link = listener.accept().await;
    link.admit(&hello).await;
    let pending = spawn(orders_client(&c).ask(note("", 1)));
    let request = link.heard(RecordKind::ChannelRequest).await;
    // A reply to nothing, with and without a failure in it.
    let mut stray = record(RecordKind::Reply, &[0, 0, 0, 0]);
    stray.extend_from_slice(&0xdead_beef_u64.to_le_bytes());
    link.say(&stray);
    events.heard(&["unexpected_reply", "ProtocolError", "drop"]).await;
    assert!(link.is_open(), "it may be late, which is no fault");
    assert!(!pending.is_finished());
    // A request of its own: nobody answers, and the link ends.
    link.say(&request);
    link.ended().await;
    assert_eq!(events.count(&["zlink.dispatch_error", "invalid_frame"]), 1);
    assert_eq!(
        link.count(RecordKind::Reply),
        0,
        "nothing was handled, nothing was answered"
    );
    assert_eq!(
        failure(pending.await.unwrap()),
        (ErrorKind::Unavailable, Execution::Unknown)
    );
}

/// REQ: NET-703, ERR-204, ERR-603
#[tokio::test]
async fn a_process_that_only_serves_a_channel_cannot_call_it() {
    let desk = Desk::new("s");
    let s = Host::builder().client_server(|c| c.serve(orders_server(desk.clone())).listen(ANY));
    let s = s.start().await.unwrap();
    let nobody = (ErrorKind::NotConfigured, Execution::NotExecuted);
    assert_eq!(failure(orders_client(&s).ask(note("", 0)).await), nobody);
    assert_eq!(failure(orders_client(&s).tell(note("", 0)).await), nobody);
    settle().await;
    assert_eq!(desk.runs(), 0);
}

/// REQ: NET-704, NET-110
#[tokio::test]
async fn two_ways_to_one_server_are_one_candidate() {
    let desk = Desk::new("s");
    let s = Host::builder().client_server(|c| c.serve(orders_server(desk.clone())).listen(ANY));
    let s = s.start().await.unwrap();
    let port = s
        .listener(zlink_runtime::ListenerKind::ClientServer, "orders")
        .unwrap()
        .endpoint
        .port()
        .unwrap();
    let c = Host::builder().client_server(|c| {
        c.client(ORDERS)
            .connect(format!("tcp://127.0.0.1:{port}"))
            .connect(format!("tcp://localhost:{port}"))
    });
    let c = c.start().await.unwrap();
    let control = c.client_server("orders").unwrap();
    until("both intents", || {
        control.intents().iter().all(|intent| intent.state == PeerState::Ready)
    })
    .await;
    let status = control.status();
    assert_eq!(status.channels[0].1.len(), 1);
    assert_eq!(status.peers.len(), 1);
    for number in 0..4 {
        orders_client(&c).ask(note("", number)).await.unwrap();
    }
    assert_eq!(desk.numbers(), [0, 1, 2, 3]);
}
