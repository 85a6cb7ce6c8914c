//! Chapter 02, section 9: which events a subscriber gets, and what becomes of those that it cannot use.

use std::time::Duration;

use zlink_generated::contract::Note;
use zlink_runtime::FanoutBuilder;
use zlink_runtime::prelude::*;
use zlink_runtime::testing::Cluster;

use crate::kit::{
    AT_ONCE, BEAT, Events, NEWS, Reader, at, connected, is_ready, news_publisher, note, publisher, read, refused, slow,
    subscriber,
};

/// What a subscriber of those topics gets of some.
async fn received(seed: u64, topics: &'static [&'static str]) -> Vec<String> {
    let cluster = Cluster::new(seed);
    let reader = Reader::new();
    publisher(&cluster, "p", |fanout| fanout);
    subscriber(&cluster, "s", &["p"], &reader, move |fanout| {
        topics.iter().fold(fanout, |fanout, topic| fanout.subscribe(*topic))
    });
    cluster.start_all().await.unwrap();
    connected(&cluster, 1).await;
    let publish = news_publisher(&cluster.host("p"));
    for topic in ["order", "order.created", "orders", "payment", "pay", ""] {
        publish.flash(note(0)).topic(topic).await.unwrap();
    }
    cluster.advance(AT_ONCE).await;
    reader.got().into_iter().map(|got| got.topic).collect()
}

/// REQ: CH-901, CH-902, CH-904, MSG-705
#[tokio::test(start_paused = true)]
async fn a_subscriber_gets_what_begins_with_a_topic_of_its_own_once() {
    let all = ["order", "order.created", "orders", "payment", "pay", ""];
    assert_eq!(received(1, &[]).await, all);
    assert_eq!(received(2, &[""]).await, all);
    assert_eq!(received(3, &["order"]).await, all[..3]);
    assert_eq!(received(4, &["order."]).await, all[1..2]);
    assert_eq!(received(5, &["order", "pay"]).await, all[..5], "the union");
    assert_eq!(received(6, &["order", "order", "order.c"]).await, all[..3], "each once");
}

/// REQ: CH-901, CH-906, CH-903
#[tokio::test]
async fn a_topic_that_is_none_fails_the_start() {
    let with = |topics: &[&str]| {
        let fanout = |fanout: FanoutBuilder| {
            let fanout = fanout
                .subscriber(crate::kit::news_subscriber(Reader::new()))
                .connect("tcp://127.0.0.1:1");
            topics.iter().fold(fanout, |fanout, topic| fanout.subscribe(*topic))
        };
        Host::builder().fanout(fanout)
    };
    for topic in ["\u{1}ZLF1", "\u{1}ZLF1.", &"x".repeat(256)] {
        let error = refused(with(&["a", topic])).await.to_string();
        assert!(error.contains("fanout \"news\"") && error.contains("topic"), "{error}");
    }
    let many: Vec<_> = (0..2000).map(|number| number.to_string()).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    let error = refused(with(&many)).await.to_string();
    assert!(error.contains("more than 1023 topics"), "{error}");
    let host = with(&["\u{1}ZLF", "\u{1}ZLF2", &"x".repeat(255)])
        .start()
        .await
        .unwrap();
    host.shutdown().await.unwrap();
}

/// REQ: CH-908, OB-65
#[tokio::test(start_paused = true)]
async fn an_event_without_a_handler_is_dropped_with_one_record() {
    let events = Events::collect();
    let cluster = Cluster::new(7);
    let reader = Reader::new();
    publisher(&cluster, "p", |fanout| fanout);
    let handler = reader.clone();
    cluster.node("s", move |host| {
        let subscriber = zlink_runtime::rt::FanoutSubscriber::builder(NEWS, handler.clone())
            .event("test.news.order", <Reader as crate::kit::NewsHandler>::order)
            .build();
        host.fanout(|fanout| fanout.subscriber(subscriber).connect(at("p")))
    });
    cluster.start_all().await.unwrap();
    connected(&cluster, 1).await;
    let publish = news_publisher(&cluster.host("p"));
    publish.flash(note(1)).await.unwrap();
    publish.order(note(2)).await.unwrap();
    cluster.advance(AT_ONCE).await;
    assert_eq!(reader.numbers(), [2], "later ones go on");
    let record = [
        "zlink.dispatch_error",
        "classic_fanout",
        "kind=send",
        "no_handler",
        "action=drop",
    ];
    assert_eq!(events.count(&record), 1);
    assert!(is_ready(&cluster.host("s"), "p"));
}

/// REQ: CH-908
#[tokio::test(start_paused = true)]
async fn what_fails_is_recorded_and_the_next_goes_on() {
    let events = Events::collect();
    let cluster = Cluster::new(8);
    let reader = Reader::new();
    publisher(&cluster, "p", |fanout| fanout);
    subscriber(&cluster, "s", &["p"], &reader, |fanout| fanout);
    cluster.start_all().await.unwrap();
    connected(&cluster, 1).await;
    let publish = news_publisher(&cluster.host("p"));
    for (number, text) in ["panic", "fail", ""].into_iter().enumerate() {
        let event = Note {
            text: text.into(),
            ..note(number as u64)
        };
        publish.flash(event).await.unwrap();
    }
    cluster.advance(AT_ONCE).await;
    assert_eq!(reader.numbers(), [0, 1, 2]);
    assert_eq!(
        events.count(&["zlink.dispatch_error", "handler_exception", "action=drop"]),
        2
    );
    cluster.at_rest(AT_ONCE).await;
}

/// Events wait for permits as requests do: outside, at the publisher.
///
/// REQ: PM-70, NET-913
#[tokio::test(start_paused = true)]
async fn nothing_is_read_without_a_permit() {
    let cluster = Cluster::new(9);
    let reader = Reader::new();
    reader.open(false);
    publisher(&cluster, "p", |fanout| fanout);
    slow(&cluster, "slow", "", &reader);
    cluster.start_all().await.unwrap();
    connected(&cluster, 1).await;
    let publish = news_publisher(&cluster.host("p"));
    for number in 0..500 {
        publish.flash(note(number)).await.unwrap();
        assert!(cluster.host("slow").status().jobs.in_use() <= 1);
    }
    cluster.advance(AT_ONCE).await;
    assert_eq!(reader.count(), 1);
    reader.open(true);
    read(&cluster, &reader, 500).await;
    assert_eq!(reader.numbers(), (0..500).collect::<Vec<_>>());
    cluster.at_rest(AT_ONCE).await;
}

/// REQ: NET-805, NET-802
#[tokio::test(start_paused = true)]
async fn endpoints_of_a_manual_subscriber_change_while_it_runs() {
    let cluster = Cluster::new(10);
    let reader = Reader::new();
    for name in ["p", "q"] {
        publisher(&cluster, name, |fanout| fanout);
    }
    subscriber(&cluster, "s", &["p"], &reader, FanoutBuilder::manual);
    cluster.start_all().await.unwrap();
    let s = cluster.host("s");
    let listed = || {
        let publishers = s.fanout("news").unwrap().intents();
        publishers
            .iter()
            .map(|one| one.endpoint.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(), [at("p")]);
    s.fanout("news").unwrap().connect(&at("q")).unwrap();
    s.fanout("news").unwrap().connect(&at("q")).unwrap();
    assert_eq!(listed(), [at("p"), at("q")]);
    cluster.advance(BEAT).await;
    assert!(is_ready(&s, "p") && is_ready(&s, "q"));
    let publish = |name: &str| news_publisher(&cluster.host(name));
    publish("q").flash(note(1)).await.unwrap();
    cluster.advance(AT_ONCE).await;
    assert!(s.fanout("news").unwrap().disconnect(&at("q")).unwrap());
    assert!(!s.fanout("news").unwrap().disconnect(&at("q")).unwrap());
    assert_eq!(listed(), [at("p")]);
    cluster.advance(AT_ONCE).await;
    publish("q").flash(note(2)).await.unwrap();
    publish("p").flash(note(3)).await.unwrap();
    cluster.advance(Duration::from_secs(1)).await;
    assert_eq!(reader.numbers(), [1, 3]);
    let p = cluster.host("p");
    assert!(
        p.fanout("news").unwrap().connect(&at("q")).is_err(),
        "it does not subscribe"
    );
    assert!(p.fanout("none").is_err());
    assert!(s.fanout("news").unwrap().connect("tcp://q:0").is_err());
    cluster.stop("s").await.unwrap();
    let late = s.fanout("news").unwrap().connect(&at("q")).unwrap_err();
    assert!(late.to_string().contains("this host has stopped"), "{late}");
    assert!(listed().is_empty());
}
