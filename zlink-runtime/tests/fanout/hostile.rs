//! Peers that speak ZMTP by hand, and do as they like: what travels, and what a host makes of what it does not expect. What they
//! can make it hold, do or say is bounded.

use std::time::Duration;

use tokio::net::TcpListener;
use zlink_runtime::PeerState;
use zlink_runtime::prelude::*;

use crate::kit::{
    Came, Events, NEWS, Raw, Reader, event, message, news_publisher, news_subscriber, note, until, within,
};

const BEACON: [&[u8]; 2] = [b"\x01ZLF1", b"ZF\x01\x01"];
const PING: &[u8] = b"\x04\x07\x04PING\0\0";

async fn publishing() -> Host {
    let host = Host::builder().fanout(|fanout| fanout.publisher(NEWS).listen("tcp://127.0.0.1:0"));
    host.start().await.unwrap()
}

/// A subscriber of whatever listens there.
async fn subscribing(reader: &Reader, listener: &TcpListener) -> Host {
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    let subscriber = news_subscriber(reader.clone());
    let host = Host::builder().fanout(|fanout| {
        fanout
            .subscriber(subscriber)
            .subscribe("a")
            .subscribe("b")
            .connect(endpoint)
    });
    host.start().await.unwrap()
}

async fn listening() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

fn is_ready(host: &Host) -> bool {
    host.fanout("news").unwrap().intents()[0].state == PeerState::Ready
}

fn subscribers(host: &Host) -> usize {
    host.fanout("news").unwrap().subscribers()
}

/// The two frames of an event, byte for byte, and the beacon's.
///
/// REQ: MSG-705, NET-903, CH-907
#[tokio::test]
async fn an_event_is_its_topic_and_its_record() {
    let host = publishing().await;
    let mut raw = Raw::subscriber(&host, "SUB").await;
    raw.subscribe(true, b"").await;
    let seen = host.clone();
    until("it is there", move || subscribers(&seen) == 1).await;
    let publish = news_publisher(&host);
    let got = loop {
        // What it subscribes to may be on its way still.
        publish.order(note(7)).await.unwrap();
        if let Some(came) = within(Duration::from_millis(20), raw.next()).await {
            break came;
        }
    };
    let record = event("news", "test.news.order", &note(7));
    assert_eq!(&record[..8], [1, 25, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(got, Came::Message(vec![b"order.".to_vec(), record]));
    // From here on, time passes by itself where nothing else happens.
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let beacon = loop {
        match raw.next().await {
            Came::Message(frames) if frames[0] == BEACON[0] => break frames,
            Came::End => panic!("it ended"),
            _ => {}
        }
    };
    assert_eq!(beacon, BEACON);
    assert!(begun.elapsed() <= Duration::from_secs(5));
    let begun = tokio::time::Instant::now();
    assert_eq!(raw.next().await, Came::Message(BEACON.map(<[u8]>::to_vec).to_vec()));
    let beat = begun.elapsed().as_millis();
    assert!((4900..=5100).contains(&beat), "{beat}");
}

/// A SUBSCRIBE of ZMTP 3.1, a message of 3.0, and what takes them back; over those that may be it is closed, and one that can
/// match nothing is not kept.
///
/// REQ: CH-902, CH-904
#[tokio::test]
async fn a_subscriber_says_what_it_wants_in_both_ways_and_within_bounds() {
    let host = publishing().await;
    let publish = news_publisher(&host);
    let mut raw = Raw::subscriber(&host, "SUB").await;
    let mut marker = Raw::subscriber(&host, "XSUB").await;
    marker.subscribe(true, b"").await;
    // What was said before a PING was heard once its PONG is there.
    async fn heard(raw: &mut Raw) {
        raw.write(PING).await;
        while raw.soon().await != Came::Command(b"\x04PONG".to_vec()) {}
    }
    let topics = async |raw: &mut Raw| {
        heard(raw).await;
        for topic in ["one", "two"] {
            publish.flash(note(0)).topic(topic).await.unwrap();
        }
        raw.write(PING).await;
        let mut topics = Vec::new();
        loop {
            match raw.soon().await {
                Came::Message(frames) => topics.push(String::from_utf8(frames[0].clone()).unwrap()),
                Came::Command(_) => break,
                Came::End => panic!("it ended"),
            }
        }
        // A PONG goes before events that wait: what comes next, comes now.
        while let Some(Came::Message(frames)) = within(Duration::from_millis(20), raw.next()).await {
            topics.push(String::from_utf8(frames[0].clone()).unwrap());
        }
        topics
    };
    assert!(topics(&mut raw).await.is_empty());
    raw.subscribe(true, b"on").await;
    assert_eq!(topics(&mut raw).await, ["one"]);
    raw.send(&[b"\x01tw"]).await;
    raw.send(&[b"\x01on"]).await;
    assert_eq!(topics(&mut raw).await, ["one", "two"], "each once");
    raw.send(&[b"\x00on"]).await;
    assert_eq!(topics(&mut raw).await, ["two"]);
    raw.subscribe(false, b"tw").await;
    raw.send(&[b"\x01on", b"more"]).await;
    raw.send(&[b"", b""]).await;
    raw.send(&[b"on"]).await;
    assert!(
        topics(&mut raw).await.is_empty(),
        "a message of other frames says nothing"
    );

    for number in 0..2000_u32 {
        raw.subscribe(true, &[&number.to_be_bytes()[..], &[b'x'; 1000]].concat())
            .await;
    }
    heard(&mut raw).await;
    assert_eq!(subscribers(&host), 2, "what matches nothing is not kept");
    for number in 0..1025_u32 {
        raw.subscribe(true, &number.to_be_bytes()).await;
    }
    while raw.soon().await != Came::End {}
    let seen = host.clone();
    until("it to be closed", move || subscribers(&seen) == 1).await;
    heard(&mut marker).await;
    host.shutdown().await.unwrap();
}

/// REQ: NET-912
#[tokio::test]
async fn a_connection_that_is_no_subscriber_ends_and_no_other() {
    let host = publishing().await;
    let mut good = Raw::subscriber(&host, "SUB").await;
    let seen = host.clone();
    until("the good one", move || subscribers(&seen) == 1).await;
    let mut dealer = Raw::subscriber(&host, "DEALER").await;
    assert_eq!(dealer.soon().await, Came::End);
    let long = |flags: u8, size: u64| [&[flags][..], &size.to_be_bytes()].concat();
    for bytes in [
        long(6, 1 << 62),
        long(2, 1 << 40),
        long(3, 4097),
        vec![0xff; 1000],
        [1, 0].repeat(100),
        b"\x04\x01\x09".to_vec(),
    ] {
        let mut raw = Raw::subscriber(&host, "SUB").await;
        raw.write(&bytes).await;
        assert_eq!(raw.soon().await, Came::End, "{bytes:?}");
    }
    let seen = host.clone();
    until("all others to be gone", move || subscribers(&seen) == 1).await;
    good.write(PING).await;
    assert_eq!(good.soon().await, Came::Command(b"\x04PONG".to_vec()));
    host.shutdown().await.unwrap();
}

/// REQ: NET-904, MSG-705
#[tokio::test]
async fn a_subscriber_asks_for_its_topics_and_the_beacon_in_the_publishers_way() {
    let listener = listening().await;
    let host = subscribing(&Reader::new(), &listener).await;
    let wanted: [&[u8]; 3] = [b"\x01ZLF1", b"a", b"b"];
    let mut raw = Raw::publisher(&listener, "PUB", 1).await;
    for topic in wanted {
        assert_eq!(raw.soon().await, Came::Command([b"\x09SUBSCRIBE", topic].concat()));
    }
    drop(raw);
    let mut raw = Raw::publisher(&listener, "XPUB", 0).await;
    for topic in wanted {
        assert_eq!(raw.soon().await, Came::Message(vec![[b"\x01", topic].concat()]));
    }
    raw.write(b"\x04\x09\x04PING\0\0ab").await;
    assert_eq!(raw.soon().await, Came::Command(b"\x04PONGab".to_vec()));
    drop(raw);
    let mut raw = Raw::publisher(&listener, "ROUTER", 1).await;
    assert_eq!(raw.soon().await, Came::End);
    host.shutdown().await.unwrap();
}

/// REQ: NET-906, NET-905
#[tokio::test]
async fn a_malformed_beacon_ends_that_publishers_connection() {
    let listener = listening().await;
    let reader = Reader::new();
    let host = subscribing(&reader, &listener).await;
    let [topic, beacon] = BEACON;
    let good = event("news", "test.news.flash", &note(1));
    let wrong: [&[&[u8]]; 6] = [
        &[topic],
        &[topic, b""],
        &[topic, b"ZF\x01\x02"],
        &[topic, beacon, b""],
        &[b"\x01ZLF1x", beacon],
        &[topic, &good],
    ];
    for frames in wrong {
        let mut raw = Raw::publisher(&listener, "PUB", 1).await;
        raw.send(&BEACON).await;
        let seen = host.clone();
        until("it is ready", move || is_ready(&seen)).await;
        raw.write(&[message(frames), message(&[b"a", &good])].concat()).await;
        loop {
            match raw.soon().await {
                Came::End => break,
                Came::Command(_) => {}
                Came::Message(frames) => panic!("{frames:?}"),
            }
        }
        let seen = host.clone();
        until("it is not", move || !is_ready(&seen)).await;
    }
    assert_eq!(reader.count(), 0, "nothing behind it was delivered");
    host.shutdown().await.unwrap();
}

/// REQ: CH-908, CH-902, NET-910
#[tokio::test]
async fn what_is_no_event_is_dropped_and_proves_nothing() {
    let events = Events::collect();
    let listener = listening().await;
    let reader = Reader::new();
    let host = subscribing(&reader, &listener).await;
    let mut raw = Raw::publisher(&listener, "PUB", 1).await;
    let good = |number| event("news", "test.news.flash", &note(number));
    let mut flagged = good(0);
    flagged[2] = 0x80;
    let mut other_kind = good(0);
    other_kind[1] = 18;
    let frames: [&[&[u8]]; 9] = [
        &[b"a"],
        &[b"a", &good(0), b""],
        &[b"a\xff", &good(0)],
        &[&[b'a'; 256], &good(0)],
        &[b"a", b""],
        &[b"a", &flagged],
        &[b"a", &other_kind],
        &[b"a", &event("other", "test.news.flash", &note(0))],
        &[&[b'a'; 100_000], b""],
    ];
    for frames in frames {
        raw.send(frames).await;
    }
    raw.write(PING).await;
    while raw.soon().await != Came::Command(b"\x04PONG".to_vec()) {}
    assert_eq!(
        events.count(&["classic_fanout", "invalid_frame", "action=drop"]),
        frames.len()
    );
    assert!(!is_ready(&host), "none of them is a sign of life");
    let mut undecodable = good(0);
    undecodable.truncate(undecodable.len() - 4);
    raw.send(&[b"a", &undecodable]).await;
    raw.send(&[b"c", &good(1)]).await;
    raw.send(&[b"a", &good(2)]).await;
    let seen = reader.clone();
    until("the good one", move || seen.count() == 1).await;
    assert_eq!(reader.numbers(), [2], "what was not asked for is not handled");
    assert_eq!(events.count(&["classic_fanout", "decode_error", "action=drop"]), 1);
    assert!(is_ready(&host));
    host.shutdown().await.unwrap();
}

/// REQ: NET-905, NET-912
#[tokio::test]
async fn a_publisher_that_breaks_zmtp_is_dialled_anew() {
    let listener = listening().await;
    let reader = Reader::new();
    let host = subscribing(&reader, &listener).await;
    let long = |flags: u8, size: u64| [&[flags][..], &size.to_be_bytes()].concat();
    for bytes in [
        long(2, 1 << 62),
        long(2, (16 << 20) + 256),
        long(6, 5000),
        vec![0xff; 100],
        [1, 0].repeat(65),
        // A PING after part of a message is held with it.
        [&[1, 0][..], &PING.repeat(65)].concat(),
    ] {
        let mut raw = Raw::publisher(&listener, "PUB", 1).await;
        raw.write(&bytes).await;
        while raw.soon().await != Came::End {}
    }
    let mut raw = Raw::publisher(&listener, "PUB", 1).await;
    let good = message(&[b"a", &event("news", "test.news.flash", &note(1))]);
    let (topic, record) = good.split_at(3);
    for _ in 0..2 {
        raw.write(&[topic, &PING.repeat(64), record].concat()).await;
    }
    let seen = reader.clone();
    until("its events", move || seen.count() == 2).await;
    host.shutdown().await.unwrap();
}

/// It is never silent, and yet it says nothing.
///
/// REQ: NET-905
#[tokio::test]
async fn a_flood_that_proves_nothing_keeps_no_publisher_ready() {
    // What is told of each message takes this host longer than it takes the publisher to send the next.
    let _events = Events::collect();
    let listener = listening().await;
    let host = subscribing(&Reader::new(), &listener).await;
    let mut raw = Raw::publisher(&listener, "PUB", 1).await;
    raw.send(&BEACON).await;
    let seen = host.clone();
    until("it is ready", move || is_ready(&seen)).await;
    raw.flood(message(&[b"a", b"no event"]).repeat(10_000));
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    while is_ready(&host) {
        assert!(begun.elapsed() < Duration::from_secs(30), "it is ready still");
        std::thread::sleep(Duration::from_millis(1));
        tokio::time::advance(Duration::from_millis(500)).await;
    }
    assert!(begun.elapsed() > Duration::from_secs(14), "{:?}", begun.elapsed());
    host.shutdown().await.unwrap();
}
