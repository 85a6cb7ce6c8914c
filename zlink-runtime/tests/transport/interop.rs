//! Plain ZeroMQ peers, libzmq's by way of pyzmq: DEALER, REQ and ROUTER over links, SUB and XPUB over the protocol
//! layer, from either side, with heartbeats.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use zlink_runtime::transport::zmtp::{
    Command as Zmtp, Decoder, FrameLimits, Handshake, Head, Properties, Role, Security, encode_pong,
    encode_subscription, frame_head,
};
use zlink_runtime::transport::{Lanes, Offer, SocketType};

use zlink_runtime::testing::transport::kit::*;

use crate::link::rig;
use crate::peer::Peer;

async fn peer(role: &str, how: &str, endpoint: &str) -> Peer {
    Peer::start("tests/transport/peer.py", &[role, how, endpoint]).await
}

impl Peer {
    async fn done(mut self) {
        assert_eq!(self.line().await, "done");
        self.tell("bye").await;
        self.ends().await;
    }
}

/// The peer's whole exchange with an echo. For a while no permit is there, nothing is read, and the peer's heartbeats
/// are left unanswered: it must not think us dead.
async fn exchange(mut peer: Peer, server: &Echo) {
    assert_eq!(peer.line().await, "hold");
    let grant = server.permits.source().try_acquire(1000).unwrap();
    assert_eq!(grant.len(), 1000);
    peer.tell("held").await;
    assert_eq!(peer.line().await, "sent");
    until("its link waits for a permit", || {
        server.links().iter().any(|link| link.held().for_permit)
    })
    .await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    drop(grant);
    peer.done().await;
}

async fn against_us(role: &str, socket: SocketType) {
    let server = Echo::bind(&rig(), "tcp://127.0.0.1:0").await;
    let peer = peer(role, "connect", server.endpoint().as_str()).await;
    exchange(peer, &server).await;
    assert_eq!(server.accepted(), 1, "it reconnected");
    until("its end is noticed", || server.closed() == 1).await;
    let seen = server.peer().unwrap();
    assert_eq!((seen.socket, seen.lanes, seen.generation), (socket, Lanes::One, None));
    assert_eq!(seen.identity.unwrap().as_bytes(), format!("py-{role}").as_bytes());
}

async fn and_back(role: &str, socket: SocketType) {
    let server = Echo::bind(&rig(), "tcp://127.0.0.1:0").await;
    let mut peer = peer(role, "bind", "tcp://127.0.0.1:*").await;
    let endpoint = peer.line().await.parse().unwrap();
    if role == "ROUTER" {
        // The others would give their first message to it.
        let two = rig()
            .transport()
            .dial(&endpoint, offer("two-lanes", &server.permits))
            .await;
        assert!(two.is_err(), "a plain peer has no second lane: {two:?}");
    }
    let offer = Offer {
        socket,
        lanes: Lanes::One,
        ..offer("echo", &server.permits)
    };
    server
        .acceptor()
        .accepted(rig().transport().dial(&endpoint, offer).await.unwrap());
    exchange(peer, &server).await;
}

#[tokio::test]
async fn a_dealer() {
    against_us("DEALER", SocketType::Dealer).await;
}

#[tokio::test]
async fn a_dealer_that_listens() {
    and_back("DEALER", SocketType::Router).await;
}

#[tokio::test]
async fn a_req() {
    against_us("REQ", SocketType::Req).await;
}

#[tokio::test]
async fn a_req_that_listens() {
    and_back("REQ", SocketType::Router).await;
}

#[tokio::test]
async fn a_router() {
    against_us("ROUTER", SocketType::Router).await;
}

#[tokio::test]
async fn a_router_that_listens() {
    and_back("ROUTER", SocketType::Router).await;
    and_back("ROUTER", SocketType::Dealer).await;
}

/// A connection that speaks through the protocol layer alone.
struct Spoken {
    stream: TcpStream,
    input: Vec<u8>,
    decoder: Decoder,
}

#[derive(Debug, PartialEq, Eq)]
enum Said {
    Frame(Vec<u8>),
    Subscription(bool, Vec<u8>),
}

impl Spoken {
    async fn greet(mut stream: TcpStream, role: Role, socket: &'static str) -> Self {
        let mut handshake = Handshake::new(role, Security::Null, &Properties::new().with("Socket-Type", socket));
        let mut input = Vec::new();
        while handshake.take_ready().is_none() {
            stream.write_all(&handshake.take_output()).await.unwrap();
            stream.read_buf(&mut input).await.unwrap();
            let taken = handshake.feed(&input).unwrap();
            input.drain(..taken);
        }
        stream.write_all(&handshake.take_output()).await.unwrap();
        Self {
            stream,
            input,
            decoder: Decoder::new(),
        }
    }

    /// The next message frame or subscription. PINGs are answered on the way.
    async fn next(&mut self) -> Said {
        loop {
            let mut ahead = self.decoder.clone();
            if let Some((head, what)) = ahead.head(&self.input, FrameLimits::new(1000)).unwrap() {
                let (Head::Frame { len, .. } | Head::Command { len }) = what;
                if self.input.len() >= head + len {
                    let body: Vec<u8> = self.input.drain(..head + len).skip(head).collect();
                    self.decoder = ahead;
                    if let Some(said) = self.said(what, body).await {
                        return said;
                    }
                    continue;
                }
            }
            let read = tokio::time::timeout(Duration::from_secs(20), self.stream.read_buf(&mut self.input));
            assert_ne!(read.await.expect("something in time").unwrap(), 0, "the peer closed it");
        }
    }

    async fn said(&mut self, what: Head, body: Vec<u8>) -> Option<Said> {
        if let Head::Frame { .. } = what {
            return Some(Said::Frame(body));
        }
        match Zmtp::decode(&body).unwrap() {
            Zmtp::Ping { context, .. } => {
                let mut pong = Vec::new();
                encode_pong(&mut pong, context);
                self.stream.write_all(&pong).await.unwrap();
                None
            }
            Zmtp::Subscribe(topic) => Some(Said::Subscription(true, topic.to_vec())),
            Zmtp::Cancel(topic) => Some(Said::Subscription(false, topic.to_vec())),
            other => panic!("unexpected {other:?}"),
        }
    }

    async fn send(&mut self, frames: &[&[u8]]) {
        for (at, frame) in frames.iter().enumerate() {
            let (head, from) = frame_head(frame.len(), at + 1 < frames.len(), false);
            self.stream.write_all(&[&head[from..], frame].concat()).await.unwrap();
        }
    }
}

/// A subscription, whether it comes as the command of ZMTP 3.1 or as the message of 3.0.
fn subscription(said: Said) -> (bool, Vec<u8>) {
    match said {
        Said::Subscription(on, topic) => (on, topic),
        Said::Frame(body) => (body[0] == 1, body[1..].to_vec()),
    }
}

#[tokio::test]
async fn a_sub() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    let mut peer = peer("SUB", "connect", &endpoint).await;
    let mut publisher = Spoken::greet(listener.accept().await.unwrap().0, Role::Server, "PUB").await;
    assert_eq!(subscription(publisher.next().await), (true, b"b".to_vec()));
    for n in 0..3 {
        publisher.send(&[b"b-topic", format!("news {n}").as_bytes()]).await;
    }
    assert_eq!(subscription(publisher.next().await), (false, b"b".to_vec()));
    peer.tell("cancelled").await;
    peer.done().await;
}

#[tokio::test]
async fn an_xpub() {
    let mut peer = peer("XPUB", "bind", "tcp://127.0.0.1:*").await;
    let endpoint = peer.line().await;
    let stream = TcpStream::connect(endpoint.strip_prefix("tcp://").unwrap())
        .await
        .unwrap();
    let mut subscriber = Spoken::greet(stream, Role::Client, "SUB").await;
    let mut command = Vec::new();
    encode_subscription(&mut command, true, b"t");
    subscriber.stream.write_all(&command).await.unwrap();
    for n in 0..3 {
        assert_eq!(subscriber.next().await, Said::Frame(b"t-topic".to_vec()));
        assert_eq!(subscriber.next().await, Said::Frame(format!("news {n}").into_bytes()));
    }
    command.clear();
    encode_subscription(&mut command, false, b"t");
    subscriber.stream.write_all(&command).await.unwrap();
    peer.done().await;
}
