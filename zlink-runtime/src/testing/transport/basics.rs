//! Links that work: both lanes, one lane, TCP and Unix sockets, who the peer is, how a link ends.

use std::time::Duration;

use crate::permit::HostPermits;
use crate::transport::{CloseReason, Lane, Lanes, Record, SocketType, TransportError};

use super::Rig;
use super::kit::*;

async fn exchange(rig: &Rig, endpoint: &str, lanes: Lanes) {
    let (client, server, _bound) = linked(rig, endpoint, |offer| {
        offer.lanes = lanes;
        if lanes == Lanes::One {
            offer.socket = SocketType::Dealer;
        }
    })
    .await;
    assert_eq!(server.link.peer().identity.as_ref().unwrap().as_bytes(), b"client");
    assert_eq!(client.link.peer().identity.as_ref().unwrap().as_bytes(), b"server");
    assert_eq!((client.link.peer().lanes, server.link.peer().lanes), (lanes, lanes));
    assert!(client.link.peer().dialled && !server.link.peer().dialled);

    let sizes = [0, 1, 200, 300, 1023, 1024, 5000, 16383, 16384, 70_000, 1 << 19];
    for (n, size) in sizes.into_iter().cycle().take(500).enumerate() {
        let request = record(ORDINARY, n as u32, size);
        client.link.send(Lane::Data, request).await.unwrap();
        let reply = record(COMPLETION, n as u32, size);
        server.link.send(Lane::Completion, reply).await.unwrap();
    }
    until("all records", || client.heard.len() == 500 && server.heard.len() == 500).await;
    assert_eq!(server.heard.numbers(Lane::Data), (0..500).collect::<Vec<_>>());
    let lane = if lanes == Lanes::Two {
        Lane::Completion
    } else {
        Lane::Data
    };
    assert_eq!(client.heard.numbers(lane), (0..500).collect::<Vec<_>>());
    assert_eq!((server.permits.in_use(), client.permits.in_use()), (500, 0));
    assert!(
        client
            .heard
            .with(|heard| heard.records.iter().all(|(.., permit)| permit.is_none()))
    );
    server.heard.release();
    assert_eq!(server.permits.in_use(), 0);
    assert_eq!(client.link.stats().sent, 500);
    assert_eq!(server.link.stats().received, 500);
    assert_eq!(client.link.stats().queued_bytes, 0);

    for n in 500..520 {
        client
            .link
            .try_send(
                Lane::Data,
                Record {
                    head: &record(ORDINARY, n, 0),
                    payload: &[0x5a; 40_000],
                },
            )
            .unwrap();
    }
    client.link.close(CloseReason::Local("done"), Duration::from_secs(5));
    until("both ends closed", || {
        client.heard.reason().is_some() && server.heard.reason().is_some()
    })
    .await;
    assert_eq!(
        server.heard.len(),
        520,
        "what was taken before an orderly close arrives"
    );
    assert_eq!(client.heard.reason(), Some(CloseReason::Local("done")));
    assert_eq!(server.heard.reason(), Some(CloseReason::PeerClosed));
}

pub(super) async fn two_lanes_over_tcp(rig: Rig) {
    exchange(&rig, "tcp://127.0.0.1:0", Lanes::Two).await;
}

pub(super) async fn one_lane_over_tcp(rig: Rig) {
    exchange(&rig, "tcp://[::1]:0", Lanes::One).await;
}

pub(super) async fn two_lanes_over_a_unix_socket(rig: Rig) {
    let path = std::env::temp_dir().join(format!("zlink-basics-{}", std::process::id()));
    // A file that a killed process left behind is in the way of nobody.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    exchange(&rig, &format!("ipc://{}", path.display()), Lanes::Two).await;
    until("the socket's file to go with its listener", || !path.exists()).await;
}

pub(super) async fn what_cannot_be_bound_or_dialled_says_so(rig: Rig) {
    let permits = HostPermits::new(1);
    let server = Echo::bind(&rig, "tcp://127.0.0.1:0").await;
    let bound = rig
        .transport()
        .bind(server.endpoint(), offer("second", &permits), server.acceptor())
        .await;
    assert!(matches!(bound, Err(TransportError::Bind { .. })), "{bound:?}");
    for nobody in [
        "tcp://127.0.0.1:1",
        "tcp://*:5",
        "tcp://127.0.0.1:0",
        "ipc:///nowhere/at/all",
    ] {
        let dialled = rig
            .transport()
            .dial(&nobody.parse().unwrap(), offer("lost", &permits))
            .await;
        assert!(matches!(dialled, Err(TransportError::Dial { .. })), "{dialled:?}");
    }
    // Someone listens, but says nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("tcp://{}", silent.local_addr().unwrap()).parse().unwrap();
    let dialled = rig.transport().dial(&endpoint, offer("patient", &permits)).await;
    assert!(matches!(dialled, Err(TransportError::Handshake { .. })), "{dialled:?}");
}
