//! Plain ZeroMQ peers, libzmq's by way of pyzmq: a SUB of our publisher, and a PUB for our subscriber, with heartbeats.

use std::time::Duration;

use zlink_runtime::PeerState;
use zlink_runtime::prelude::*;

use crate::kit::{NEWS, Reader, event, news_publisher, news_subscriber, note, until, within};
use crate::peer::Peer;

const BEACON: [&[u8]; 2] = [b"\x01ZLF1", b"ZF\x01\x01"];

async fn peer(arguments: &[&str]) -> Peer {
    Peer::start("tests/fanout/peer.py", arguments).await
}

impl Peer {
    async fn send(&mut self, frames: &[&[u8]]) {
        self.tell(&format!("send {}", said(frames))).await;
    }

    /// It has not lost its connection.
    async fn done(mut self) {
        self.tell("bye").await;
        loop {
            match self.line().await.as_str() {
                "lost 0" => break,
                line => assert!(line.starts_with("got "), "{line}"),
            }
        }
        self.ends().await;
    }
}

fn said(frames: &[&[u8]]) -> String {
    let hex = |frame: &&[u8]| frame.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    frames.iter().map(hex).collect::<Vec<_>>().join(" ")
}

/// REQ: MSG-705, CH-902, NET-903
#[tokio::test]
async fn a_sub_gets_what_it_wants_and_all_that_is_said_to_everybody() {
    let host = Host::builder().fanout(|fanout| fanout.publisher(NEWS).listen("tcp://127.0.0.1:0"));
    let host = host.start().await.unwrap();
    let endpoint = host.fanout("news").unwrap().endpoint().unwrap().to_string();
    let mut few = peer(&["sub", &endpoint, "order.", "order.x"]).await;
    let mut all = peer(&["sub", &endpoint, ""]).await;
    let seen = host.clone();
    until("both", move || seen.fanout("news").unwrap().subscribers() == 2).await;
    let publish = news_publisher(&host);
    let record = event("news", "test.news.order", &note(7));
    for peer in [&mut few, &mut all] {
        // What it subscribes to may be on its way still.
        let first = loop {
            publish.order(note(7)).await.unwrap();
            if let Some(first) = within(Duration::from_millis(50), peer.line()).await {
                break first;
            }
        };
        assert_eq!(first, format!("got {}", said(&[b"order.", &record])));
    }
    publish.flash(note(1)).await.unwrap();
    publish.order(note(9)).topic("order.x").await.unwrap();
    let last = format!(
        "got {}",
        said(&[b"order.x", &event("news", "test.news.order", &note(9))])
    );
    let mut before = Vec::new();
    loop {
        let line = few.line().await;
        if line == last {
            break;
        }
        before.push(line);
    }
    assert!(
        before.iter().all(|line| line.contains(&said(&[b"order."]))),
        "{before:?}"
    );
    while all.line().await != format!("got {}", said(&BEACON)) {}
    few.tell("cancel order.").await;
    // Once it is heard, what it takes back comes no more, and the rest does.
    loop {
        for topic in ["order.y", "order.x"] {
            publish.order(note(9)).topic(topic).await.unwrap();
        }
        if few.line().await == last {
            break;
        }
        assert_eq!(few.line().await, last);
    }
    few.done().await;
    all.done().await;
    host.shutdown().await.unwrap();
}

/// REQ: MSG-705, NET-905
#[tokio::test]
async fn a_pub_is_heard_by_its_events_and_beacons() {
    let mut peer = peer(&["pub", "tcp://127.0.0.1:*"]).await;
    let endpoint = peer.line().await;
    let reader = Reader::new();
    let subscriber = news_subscriber(reader.clone());
    let host = Host::builder().fanout(|fanout| fanout.subscriber(subscriber).subscribe("a").connect(endpoint));
    let host = host.start().await.unwrap();
    let is_ready = || host.fanout("news").unwrap().intents()[0].state == PeerState::Ready;
    while !is_ready() {
        peer.send(&BEACON).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for number in 0..100 {
        let record = event("news", "test.news.flash", &note(number));
        peer.send(&[b"b", &record]).await;
        peer.send(&[b"ab", &record]).await;
    }
    let seen = reader.clone();
    until("all events", move || seen.count() >= 100).await;
    assert_eq!(reader.numbers(), (0..100).collect::<Vec<_>>());
    peer.done().await;
    host.shutdown().await.unwrap();
}
