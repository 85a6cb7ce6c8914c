//! Peers that mean harm, or know no better: each is closed, and others are served on.

use std::time::{Duration, Instant};

use proptest::strategy::{Strategy, ValueTree};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use zlink_runtime::permit::HostPermits;
use zlink_runtime::transport::zmtp::{Handshake, Properties, Role, Security, frame_head};
use zlink_runtime::transport::{Endpoint, LinkConfig, LinkTransport, Transport, TransportError};

use crate::kit::*;

async fn raw(endpoint: &Endpoint) -> TcpStream {
    TcpStream::connect((endpoint.host().unwrap(), endpoint.port().unwrap()))
        .await
        .unwrap()
}

/// A connection whose handshake is done, with these properties beyond the socket type.
async fn greeted(endpoint: &Endpoint, properties: Properties) -> TcpStream {
    let mut stream = raw(endpoint).await;
    let mut handshake = Handshake::new(
        Role::Client,
        Security::Null,
        &properties.with("Socket-Type", *b"DEALER"),
    );
    while handshake.take_ready().is_none() {
        stream.write_all(&handshake.take_output()).await.unwrap();
        let byte = stream.read_u8().await.unwrap();
        handshake.feed(&[byte]).unwrap();
    }
    stream
}

/// Waits until the peer has closed it, however it says so; nothing else may take longer.
async fn closed(stream: &mut TcpStream) {
    let end = async {
        let mut bytes = [0; 4096];
        while matches!(stream.read(&mut bytes).await, Ok(count) if count > 0) {}
    };
    tokio::time::timeout(Duration::from_secs(5), end)
        .await
        .expect("the hostile connection is closed in time");
}

/// Sends, as far as the peer takes it.
async fn push(stream: &mut TcpStream, bytes: &[u8]) {
    let _ = stream.write_all(bytes).await;
}

fn message(body: &[u8]) -> Vec<u8> {
    let (head, from) = frame_head(body.len(), false, false);
    [&head[from..], body].concat()
}

/// REQ: MSG-903, NET-912
#[tokio::test]
async fn two_thousand_half_open_handshakes() {
    raise_descriptors();
    let server = Echo::bind(&transport(), "tcp://127.0.0.1:0").await;
    let mut half = Vec::new();
    for n in 0..2000 {
        let mut stream = raw(server.endpoint()).await;
        let start = [0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 3, 1];
        stream.write_all(&start[..n % 13]).await.unwrap();
        half.push(stream);
    }
    let begin = Instant::now();
    server.client("honest").await.round_trips(100).await;
    assert!(
        begin.elapsed() < Duration::from_secs(2),
        "an honest peer waited {:?}",
        begin.elapsed()
    );
    for stream in &mut half {
        closed(stream).await;
    }
    server.client("later").await.round_trips(100).await;
}

/// A listener that holds so many connections.
async fn with_places(connections: usize) -> Echo {
    let config = LinkConfig {
        connections,
        ..config()
    };
    Echo::bind(&LinkTransport::new(config), "tcp://127.0.0.1:0").await
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
    for attempt in 0..5 {
        let lane = Properties::new()
            .with("Identity", *b"hasty")
            .with("X-Generation", 7u64.to_be_bytes())
            .with("X-Lane", "data")
            .with("X-Link", [attempt; 16]);
        drop(greeted(server.endpoint(), lane).await);
    }
    greeted(server.endpoint(), Properties::new()).await;
    // Each would have had two seconds for its other lane.
    assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
}

/// REQ: MSG-903, MSG-904
#[tokio::test]
async fn declared_lengths_allocate_nothing() {
    let server = Echo::bind(&transport(), "tcp://127.0.0.1:0").await;
    let neighbour = server.client("neighbour").await;
    let before = resident();
    for power in [31u32, 40, 62, 63] {
        let length = (1u64 << power).to_be_bytes();
        for flags in [2u8, 3, 6] {
            // Before READY, after it, and as the length of a record.
            let mut early = raw(server.endpoint()).await;
            let mut greeting = Handshake::new(Role::Client, Security::Null, &Properties::new()).take_output();
            greeting.push(flags);
            greeting.extend(length);
            push(&mut early, &greeting).await;
            closed(&mut early).await;

            let mut late = greeted(server.endpoint(), Properties::new()).await;
            push(&mut late, &[&[flags][..], &length].concat()).await;
            closed(&mut late).await;
        }
    }
    for length in [0, 5, 1 << 20, (1 << 20) + 1, u32::MAX] {
        let mut late = greeted(server.endpoint(), Properties::new()).await;
        push(
            &mut late,
            &message(&[&u32::to_le_bytes(length)[..], b"\x01\x10ab"].concat()),
        )
        .await;
        closed(&mut late).await;
    }
    // A length that is allowed, of which little comes: what is held is what came.
    let mut slow = Vec::new();
    for _ in 0..300 {
        let mut stream = greeted(server.endpoint(), Properties::new()).await;
        let len = (1u32 << 20) - 6;
        let (head, from) = frame_head(len as usize + 4, false, false);
        push(&mut stream, &[&head[from..], &len.to_le_bytes(), b"\x01\x10"].concat()).await;
        slow.push(stream);
    }
    neighbour.round_trips(100).await;
    let grown = resident().saturating_sub(before);
    assert!(grown < 150 << 20, "memory grew by {grown} bytes");
}

#[tokio::test]
async fn endless_multipart_is_closed() {
    let server = Echo::bind(&transport(), "tcp://127.0.0.1:0").await;
    let neighbour = server.client("neighbour").await;
    for part in [&[1u8, 0][..], &[1, 7, 3, 0, 0, 0, 1, 16, 0]] {
        let mut stream = greeted(server.endpoint(), Properties::new()).await;
        for _ in 0..1000 {
            push(&mut stream, part).await;
        }
        closed(&mut stream).await;
    }
    neighbour.round_trips(100).await;
}

/// REQ: NET-912, MSG-901
#[tokio::test]
async fn random_bytes_are_closed_and_nobody_else_suffers() {
    let server = Echo::bind(&transport(), "tcp://127.0.0.1:0").await;
    let neighbour = server.client("neighbour").await;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let bytes = proptest::collection::vec(proptest::num::u8::ANY, 1..5000);
    let mut streams = Vec::new();
    for n in 0..300 {
        let noise = bytes.new_tree(&mut runner).unwrap().current();
        let mut stream = match n % 3 {
            0 => raw(server.endpoint()).await,
            1 => {
                let mut stream = raw(server.endpoint()).await;
                push(
                    &mut stream,
                    &Handshake::new(Role::Client, Security::Null, &Properties::new()).take_output(),
                )
                .await;
                stream
            }
            _ => {
                greeted(
                    server.endpoint(),
                    Properties::new().with("Identity", noise[..noise.len().min(200)].to_vec()),
                )
                .await
            }
        };
        push(&mut stream, &noise).await;
        stream.shutdown().await.unwrap_or(());
        streams.push(stream);
        if n % 50 == 0 {
            neighbour.round_trips(10).await;
        }
    }
    for stream in &mut streams {
        closed(stream).await;
    }
    neighbour.round_trips(100).await;
    assert_eq!(server.permits.in_use(), 0, "every permit came back");
}

#[tokio::test]
async fn lanes_that_do_not_belong_together_make_no_link() {
    let server = Echo::bind(&transport(), "tcp://127.0.0.1:0").await;
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
        let security = Security::Plain {
            username: "node".into(),
            password: password.into(),
        };
        LinkTransport::new(LinkConfig { security, ..config() })
    };
    let server = Echo::bind(&with("secret"), "tcp://127.0.0.1:0").await;
    server.client_by(&with("secret"), "friend").await.round_trips(10).await;
    for stranger in [with("guess"), transport()] {
        let refused = stranger
            .dial(server.endpoint(), offer("stranger", &HostPermits::new(1)))
            .await;
        assert!(matches!(refused, Err(TransportError::Handshake { .. })), "{refused:?}");
    }
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn what_cannot_be_bound_or_dialled_says_so() {
    let (transport, permits) = (transport(), HostPermits::new(1));
    let server = Echo::bind(&transport, "tcp://127.0.0.1:0").await;
    let bound = transport
        .bind(server.endpoint(), offer("second", &permits), server.acceptor())
        .await;
    assert!(matches!(bound, Err(TransportError::Bind { .. })), "{bound:?}");
    for nobody in [
        "tcp://127.0.0.1:1",
        "tcp://*:5",
        "tcp://127.0.0.1:0",
        "ipc:///nowhere/at/all",
    ] {
        let dialled = transport.dial(&nobody.parse().unwrap(), offer("lost", &permits)).await;
        assert!(matches!(dialled, Err(TransportError::Dial { .. })), "{dialled:?}");
    }
    // Someone listens, but says nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("tcp://{}", silent.local_addr().unwrap()).parse().unwrap();
    let dialled = transport.dial(&endpoint, offer("patient", &permits)).await;
    assert!(matches!(dialled, Err(TransportError::Handshake { .. })), "{dialled:?}");
}

/// The process has few descriptors: it neither ends nor spins, and serves again when some are free.
#[tokio::test]
async fn running_out_of_descriptors() {
    let mut child = Child::start("serve-with-64-descriptors", "-").await;
    let endpoint: Endpoint = child.line().await.parse().unwrap();
    let mut streams = Vec::new();
    for _ in 0..200 {
        streams.push(raw(&endpoint).await);
    }
    // The kernel has accepted them all; the child has descriptors for some. It shall idle now.
    let spent = child.processor_time();
    tokio::time::sleep(Duration::from_millis(1000)).await;
    let spent = child.processor_time() - spent;
    assert!(
        spent < Duration::from_millis(300),
        "it spins: {spent:?} of processor time in one second"
    );
    drop(streams);
    let permits = HostPermits::new(100);
    let deadline = Instant::now() + Duration::from_secs(10);
    let link = loop {
        match transport().dial(&endpoint, offer("after", &permits)).await {
            Ok(link) => break link,
            Err(error) => assert!(Instant::now() < deadline, "not served again: {error}"),
        }
    };
    End::new(link, &permits, 1 << 20).round_trips(10).await;
    assert!(child.is_alive());
}
