//! Chapter 01, section 7: the links of ClientServer channels.

use zlink_generated::contract::{ORDERS, STOCK, orders_client, orders_server, stock_client};
use zlink_generated::zlink_wire::{ChannelServer, Hello, ObjectRole, RecordKind, Topology};
use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::{Host, PeerState};

use crate::kit::{
    ANY, Desk, Events, Raw, address_of, doomed, failure, free_port, hello_of, is_free, node, note, record, settle,
    soon, spawn, until,
};

/// REQ: NET-604, NET-603, NET-507
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
    let end = failure(stock_client(&c).ask(note("", 0)).await);
    assert_eq!(end, (ErrorKind::NotFound, Execution::NotExecuted));
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

/// REQ: NET-707, NET-110, NET-607
#[tokio::test]
async fn a_server_that_starts_again_serves_the_first_request_after_it_is_ready() {
    let port = free_port();
    let at = format!("tcp://127.0.0.1:{port}");
    let start = |desk: &Desk| {
        let server = orders_server(desk.clone());
        Host::builder().client_server(|c| c.serve(server).listen(&at)).start()
    };
    let (before, after) = (Desk::new("before"), Desk::new("after"));
    let first = start(&before);
    let (first, kill) = doomed(async move { first.await.unwrap() }).await;
    let c = Host::builder()
        .client_server(|c| c.client(ORDERS).connect(&at))
        .start()
        .await
        .unwrap();
    let held = spawn(orders_client(&c).ask(note("hold", 1)));
    before.reached(1).await;
    kill.now();
    assert_eq!(failure(soon("its end", held).await.unwrap()).0, ErrorKind::Unavailable);
    drop(first);
    until("the port to be free", || is_free(port)).await;
    let _second = start(&after).await.unwrap();
    assert_eq!(orders_client(&c).ask(note("", 2)).await.unwrap().text, "after");
    assert_eq!(after.numbers(), [2]);
    let status = c.client_server("orders").unwrap().status();
    assert_eq!(status.channels[0].1.len(), 1, "the run that ended is no target");
}

/// REQ: NET-208, NET-203
#[tokio::test]
async fn each_instance_has_an_address_of_its_own() {
    let port = free_port();
    let (one, two) = (Desk::new("one"), Desk::new("two"));
    let mut hosts = Vec::new();
    for (desk, address) in [(&one, "127.0.0.1"), (&two, "127.0.0.2")] {
        let server = orders_server(desk.clone());
        let at = format!("tcp://{address}:{port}");
        hosts.push(
            Host::builder()
                .client_server(|c| c.serve(server).listen(&at))
                .start()
                .await
                .unwrap(),
        );
        assert_eq!(address_of(&hosts[hosts.len() - 1], "orders"), at);
    }
    let c = Host::builder()
        .client_server(|c| {
            c.client(ORDERS)
                .connect(address_of(&hosts[0], "orders"))
                .connect(address_of(&hosts[1], "orders"))
        })
        .start()
        .await
        .unwrap();
    let control = c.client_server("orders").unwrap();
    until("both", || control.status().channels[0].1.len() == 2).await;
    for number in 0..2 {
        orders_client(&c).ask(note("", number)).await.unwrap();
    }
    assert_eq!((one.runs(), two.runs()), (1, 1));
}
