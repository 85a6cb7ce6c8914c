//! Chapter 01, section 9: how a subscriber knows that a publisher is there.

use std::time::Duration;

use zlink_generated::contract::Note;
use zlink_runtime::testing::Cluster;

use crate::kit::{
    AT_ONCE, BEAT, Events, Reader, connected, is_ready, news_publisher, note, publisher, slow, subscriber,
};

/// REQ: NET-903, NET-904, NET-905, NET-907, CH-907
#[tokio::test(start_paused = true)]
async fn an_idle_publisher_is_ready_by_its_beacon_alone() {
    let events = Events::collect();
    let cluster = Cluster::new(1);
    let (all, few) = (Reader::new(), Reader::new());
    publisher(&cluster, "p", |fanout| fanout);
    subscriber(&cluster, "all", &["p"], &all, |fanout| fanout);
    subscriber(&cluster, "few", &["p"], &few, |fanout| fanout.subscribe("b"));
    cluster.start_all().await.unwrap();
    let (p, s, f) = (cluster.host("p"), cluster.host("all"), cluster.host("few"));
    connected(&cluster, 2).await;
    assert!(!is_ready(&s, "p"), "nothing has come yet");
    cluster.advance(BEAT).await;
    // For longer than it may be silent, with nothing for one of them but beacons.
    for second in 0..40 {
        news_publisher(&p).flash(note(second)).topic("a").await.unwrap();
        cluster.advance(Duration::from_secs(1)).await;
        assert!(is_ready(&s, "p") && is_ready(&f, "p"));
    }
    cluster.advance(Duration::from_secs(40)).await;
    assert!(is_ready(&s, "p") && is_ready(&f, "p"));
    assert_eq!((all.count(), few.count()), (40, 0), "a beacon runs no handler");
    assert_eq!(events.count(&["zlink.dispatch_error"]), 0);
    assert_eq!(events.count(&["zlink::flow"]), 0, "nor is it told of");
    assert_eq!(
        events.count(&["publisher_changed"]),
        2,
        "each once ready, and that is all"
    );
}

/// REQ: NET-905
#[tokio::test(start_paused = true)]
async fn an_event_makes_a_publisher_ready_too() {
    let cluster = Cluster::new(2);
    let reader = Reader::new();
    publisher(&cluster, "p", |fanout| fanout);
    subscriber(&cluster, "s", &["p"], &reader, |fanout| fanout);
    cluster.start_all().await.unwrap();
    connected(&cluster, 1).await;
    assert!(!is_ready(&cluster.host("s"), "p"));
    news_publisher(&cluster.host("p")).flash(note(1)).await.unwrap();
    cluster.advance(AT_ONCE).await;
    assert!(is_ready(&cluster.host("s"), "p"));
}

/// REQ: NET-905, NET-802, NET-912
#[tokio::test(start_paused = true)]
async fn a_silent_publisher_is_dialled_anew_and_alone() {
    let cluster = Cluster::new(3);
    let reader = Reader::new();
    for name in ["p", "q"] {
        publisher(&cluster, name, |fanout| fanout);
    }
    subscriber(&cluster, "s", &["p", "q"], &reader, |fanout| fanout);
    cluster.start_all().await.unwrap();
    let s = cluster.host("s");
    cluster.advance(BEAT).await;
    assert!(is_ready(&s, "p") && is_ready(&s, "q"));
    cluster.network().cut("p", "s");
    cluster.advance(Duration::from_millis(9500)).await;
    assert!(is_ready(&s, "p"), "10 s are within the limit");
    cluster.advance(BEAT).await;
    assert!(!is_ready(&s, "p"));
    assert!(is_ready(&s, "q"));
    assert_eq!(s.status().phase, zlink_runtime::HostPhase::Serving);
    cluster.network().heal();
    cluster.advance(Duration::from_secs(12)).await;
    assert!(is_ready(&s, "p"));
    news_publisher(&cluster.host("p")).flash(note(1)).await.unwrap();
    cluster.advance(AT_ONCE).await;
    assert_eq!(reader.numbers(), [1], "over the new one alone");
}

/// REQ: NET-911, NET-905
#[tokio::test(start_paused = true)]
async fn a_publisher_that_stops_is_lost_at_once_and_found_again() {
    let cluster = Cluster::new(4);
    let reader = Reader::new();
    publisher(&cluster, "p", |fanout| fanout);
    subscriber(&cluster, "s", &["p"], &reader, |fanout| fanout);
    cluster.start_all().await.unwrap();
    let s = cluster.host("s");
    cluster.advance(BEAT).await;
    assert!(is_ready(&s, "p"));
    cluster.stop("p").await.unwrap();
    cluster.advance(AT_ONCE).await;
    assert!(!is_ready(&s, "p"));
    cluster.start("p").await.unwrap();
    cluster.advance(2 * BEAT).await;
    assert!(is_ready(&s, "p"));
    cluster.kill("s");
    cluster.advance(AT_ONCE).await;
    assert_eq!(cluster.host("p").fanout("news").unwrap().subscribers(), 0);
}

/// What is too large for a subscriber ends the connection, and as it begins with a sign of life, each is ready at first.
#[tokio::test(start_paused = true)]
async fn one_that_is_lost_as_soon_as_it_is_ready_is_dialled_ever_more_seldom() {
    let events = Events::collect();
    let cluster = Cluster::new(6);
    let reader = Reader::new();
    publisher(&cluster, "p", |fanout| fanout);
    subscriber(&cluster, "s", &["p"], &reader, |fanout| fanout.max_message(4096));
    cluster.start_all().await.unwrap();
    connected(&cluster, 1).await;
    let publish = news_publisher(&cluster.host("p"));
    let ready = || events.count(&["publisher_changed", "state=ready"]);
    let large = Note {
        body: vec![0; 5000],
        ..note(0)
    };
    for _ in 0..1000 {
        publish.flash(note(0)).await.unwrap();
        publish.flash(large.clone()).await.unwrap();
        cluster.advance(Duration::from_millis(30)).await;
    }
    assert!((5..60).contains(&ready()), "{} times within 30 s", ready());
    cluster.advance(2 * BEAT).await;
    assert!(is_ready(&cluster.host("s"), "p"), "and comes back");
}

/// Not even a beacon is read without a permit: who has none for 15 s does not know whether anybody publishes.
///
/// REQ: NET-908, NET-912
#[tokio::test(start_paused = true)]
async fn a_saturated_subscriber_loses_its_publisher_and_has_it_back() {
    let cluster = Cluster::new(5);
    let reader = Reader::new();
    reader.open(false);
    publisher(&cluster, "p", |fanout| fanout);
    slow(&cluster, "slow", "", &reader);
    cluster.start_all().await.unwrap();
    connected(&cluster, 1).await;
    let (p, s) = (cluster.host("p"), cluster.host("slow"));
    // One runs, and one holds the only permit there is.
    for number in 0..2 {
        news_publisher(&p).flash(note(number)).await.unwrap();
        cluster.advance(AT_ONCE).await;
    }
    assert!(is_ready(&s, "p"));
    cluster.advance(Duration::from_secs(16)).await;
    assert!(!is_ready(&s, "p"));
    assert_eq!(s.status().phase, zlink_runtime::HostPhase::Serving);
    reader.open(true);
    cluster.advance(2 * BEAT).await;
    assert!(is_ready(&s, "p"));
    assert_eq!(reader.numbers(), [0, 1]);
}
