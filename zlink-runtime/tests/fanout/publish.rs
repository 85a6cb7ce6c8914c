//! Chapter 02, section 8: what a publish promises, with subscribers that take it and others that do not.

use std::time::Duration;

use tokio::time::Instant;
use zlink_generated::contract::Note;
use zlink_runtime::FanoutBuilder;
use zlink_runtime::prelude::*;
use zlink_runtime::testing::Cluster;

use crate::kit::{
    AT_ONCE, BEAT, NEWS, Reader, argument, at, connected, failure, heavy, is_ready, news_publisher, news_subscriber,
    note, publisher, read, slow, subscriber,
};

/// More than a stalled subscriber's pipe holds, and all that lies before it.
const MANY: u64 = 3000;

/// A publisher `p`, a subscriber `slow` whose gate is closed, and one that takes everything.
async fn beside(cluster: &Cluster, configure: fn(FanoutBuilder) -> FanoutBuilder) -> (Host, Reader, Reader) {
    let (stalled, quick) = (Reader::new(), Reader::new());
    stalled.open(false);
    publisher(cluster, "p", configure);
    slow(cluster, "slow", "", &stalled);
    subscriber(cluster, "quick", &["p"], &quick, |fanout| fanout);
    cluster.start_all().await.unwrap();
    connected(cluster, 2).await;
    (cluster.host("p"), stalled, quick)
}

/// REQ: EX-95, CH-807, CH-803, ERR-305, MSG-114
#[tokio::test(start_paused = true)]
async fn a_subscriber_without_room_does_without_and_holds_nobody_up() {
    let cluster = Cluster::new(1);
    let (p, stalled, quick) = beside(&cluster, |fanout| fanout).await;
    for number in 0..MANY {
        let begun = Instant::now();
        news_publisher(&p).flash(heavy(number)).await.unwrap();
        assert_eq!(begun.elapsed(), Duration::ZERO, "it does not wait");
        if number % 50 == 49 {
            cluster.advance(Duration::from_millis(10)).await;
        }
    }
    read(&cluster, &quick, 3000).await;
    assert_eq!(quick.numbers(), (0..MANY).collect::<Vec<_>>(), "in order, each once");
    assert_eq!(stalled.count(), 1);
    stalled.open(true);
    cluster.advance(BEAT).await;
    let late = stalled.numbers();
    assert!(late.len() >= 1000 && late.len() < 3000, "{}", late.len());
    assert!(
        late.is_sorted() && late.last() < Some(&(MANY - 1)),
        "the newest were left out"
    );
    news_publisher(&p).flash(note(MANY)).await.unwrap();
    cluster.advance(AT_ONCE).await;
    assert_eq!(stalled.numbers().last(), Some(&MANY), "and it goes on");
}

/// Publishes until one ends in time's up; how many went.
async fn fill(cluster: &Cluster, p: &Host) -> u64 {
    for number in 0..MANY {
        let begun = Instant::now();
        match news_publisher(p).flash(heavy(number)).await {
            Ok(()) => assert_eq!(begun.elapsed(), Duration::ZERO),
            ended => {
                assert_eq!(failure(ended), ErrorKind::DeadlineExceeded);
                return number;
            }
        }
        if number % 50 == 49 {
            cluster.advance(Duration::from_millis(10)).await;
        }
    }
    panic!("nothing was full")
}

/// REQ: EX-95, CH-808, CH-809, CH-804, ERR-305
#[tokio::test(start_paused = true)]
async fn without_drops_it_goes_to_all_or_to_none() {
    let cluster = Cluster::new(2);
    let (p, stalled, quick) = beside(&cluster, |fanout| fanout.no_drop(true)).await;
    let begun = Instant::now();
    let went = fill(&cluster, &p).await;
    assert!(
        begun.elapsed() >= Duration::from_secs(1),
        "the default of the send timeout"
    );
    cluster.advance(AT_ONCE).await;
    assert!(went >= 1000);
    assert_eq!(quick.count() as u64, went, "what ended in time's up went to none");

    let waiting = tokio::spawn(news_publisher(&p).flash(heavy(went)).into_future());
    cluster.advance(Duration::from_millis(500)).await;
    assert!(!waiting.is_finished());
    assert_eq!(quick.count() as u64, went, "none before all");
    stalled.open(true);
    waiting.await.unwrap().unwrap();
    cluster.advance(BEAT).await;
    let all: Vec<_> = (0..=went).collect();
    assert_eq!(quick.numbers(), all);
    assert_eq!(stalled.numbers(), all, "each of them, once");
}

/// REQ: CH-808
#[tokio::test(start_paused = true)]
async fn who_does_not_want_it_does_not_count() {
    let cluster = Cluster::new(3);
    let (stalled, quick) = (Reader::new(), Reader::new());
    stalled.open(false);
    publisher(&cluster, "p", |fanout| fanout.no_drop(true));
    slow(&cluster, "slow", "test.news", &stalled);
    subscriber(&cluster, "quick", &["p"], &quick, |fanout| fanout.subscribe("order."));
    cluster.start_all().await.unwrap();
    connected(&cluster, 2).await;
    let p = cluster.host("p");
    fill(&cluster, &p).await;
    let held = tokio::spawn(news_publisher(&p).flash(heavy(0)).into_future());
    cluster.advance(AT_ONCE).await;
    let begun = Instant::now();
    news_publisher(&p).order(note(7)).await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
    cluster.advance(AT_ONCE).await;
    assert_eq!(quick.numbers(), [7]);
    assert!(!held.is_finished());
    assert_eq!(failure(held.await.unwrap()), ErrorKind::DeadlineExceeded);
}

/// REQ: CH-809, EX-84
#[tokio::test(start_paused = true)]
async fn a_send_timeout_is_kept_to_and_a_withdrawn_publish_goes_to_nobody() {
    let cluster = Cluster::new(4);
    let configure = |fanout: FanoutBuilder| fanout.no_drop(true).send_timeout(Duration::from_millis(2500));
    let (p, stalled, quick) = beside(&cluster, configure).await;
    let went = fill(&cluster, &p).await;
    let begun = Instant::now();
    let ended = news_publisher(&p).flash(heavy(went)).await;
    assert_eq!(failure(ended), ErrorKind::DeadlineExceeded);
    assert_eq!(begun.elapsed(), Duration::from_millis(2500));
    let given_up = tokio::time::timeout(AT_ONCE, news_publisher(&p).flash(heavy(went)).into_future());
    assert!(given_up.await.is_err());
    stalled.open(true);
    cluster.advance(BEAT).await;
    assert_eq!((quick.count() as u64, stalled.count() as u64), (went, went));
}

/// REQ: CH-810
#[tokio::test(start_paused = true)]
async fn without_drops_who_is_gone_holds_nobody_up_and_gets_nothing() {
    let cluster = Cluster::new(5);
    let (p, _, quick) = beside(&cluster, |fanout| fanout.no_drop(true)).await;
    let went = fill(&cluster, &p).await;
    let waiting = tokio::spawn(news_publisher(&p).flash(heavy(went)).into_future());
    cluster.advance(AT_ONCE).await;
    cluster.kill("slow");
    waiting.await.unwrap().unwrap();
    cluster.advance(AT_ONCE).await;
    assert_eq!(quick.count() as u64, went + 1);
}

/// REQ: CH-811, NET-908
#[tokio::test(start_paused = true)]
async fn without_drops_one_that_is_full_holds_the_beacon_from_all() {
    for (no_drop, stays) in [(true, false), (false, true)] {
        let cluster = Cluster::new(6);
        let (stalled, quick) = (Reader::new(), Reader::new());
        stalled.open(false);
        publisher(&cluster, "p", move |fanout| fanout.no_drop(no_drop));
        slow(&cluster, "slow", "order.", &stalled);
        subscriber(&cluster, "quick", &["p"], &quick, |fanout| fanout.subscribe("other"));
        cluster.start_all().await.unwrap();
        connected(&cluster, 2).await;
        cluster.advance(BEAT).await;
        let (p, quick) = (cluster.host("p"), cluster.host("quick"));
        assert!(is_ready(&quick, "p"));
        // The one that is full is dialled anew after 15 s, and so fills again.
        let filling = tokio::spawn(async move {
            for number in 0.. {
                let _ = news_publisher(&p).order(heavy(number)).await;
                if number % 50 == 49 {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        });
        // Its last beacon was a second ago, and a bit.
        cluster.advance(Duration::from_secs(13)).await;
        assert!(is_ready(&quick, "p"));
        let mut was_lost = false;
        for _ in 0..60 {
            cluster.advance(Duration::from_millis(50)).await;
            was_lost |= !is_ready(&quick, "p");
        }
        assert_eq!(was_lost, !stays, "no_drop {no_drop}");
        assert_eq!(quick.status().phase, zlink_runtime::HostPhase::Serving);
        filling.abort();
        cluster.kill("slow");
        cluster.advance(Duration::from_secs(12)).await;
        assert!(is_ready(&quick, "p"), "and comes back");
    }
}

/// Whoever waits for a subscriber that is slow, and no more than that, does not hide the publisher from the others.
///
/// REQ: NET-908, CH-811
#[tokio::test(start_paused = true)]
async fn without_drops_a_beacon_has_its_turn_among_those_that_wait() {
    let cluster = Cluster::new(11);
    let (busy, quick) = (Reader::new(), Reader::new());
    publisher(&cluster, "p", |fanout| {
        fanout.no_drop(true).send_timeout(Duration::from_secs(60))
    });
    slow(&cluster, "slow", "order.", &busy);
    subscriber(&cluster, "quick", &["p"], &quick, |fanout| fanout.subscribe("other"));
    cluster.start_all().await.unwrap();
    connected(&cluster, 2).await;
    cluster.advance(BEAT).await;
    let (p, quick) = (cluster.host("p"), cluster.host("quick"));
    // There are always some that wait.
    let filling: Vec<_> = (0..8)
        .map(|number| {
            let publish = news_publisher(&p);
            tokio::spawn(async move {
                loop {
                    publish.order(heavy(number)).await.unwrap();
                }
            })
        })
        .collect();
    busy.pause(Duration::from_millis(10));
    let mut before = busy.count();
    for _ in 0..40 {
        cluster.advance(Duration::from_secs(1)).await;
        assert!(busy.count() > before, "it goes on");
        before = busy.count();
        assert!(is_ready(&quick, "p"));
    }
    filling.iter().for_each(tokio::task::JoinHandle::abort);
}

/// REQ: CH-807
#[tokio::test(start_paused = true)]
async fn who_publishes_in_a_loop_lets_others_run() {
    let cluster = Cluster::new(12);
    publisher(&cluster, "p", |fanout| fanout);
    let publish = news_publisher(&cluster.start("p").await.unwrap());
    let other = tokio::spawn(async {});
    for number in 0..1000 {
        publish.flash(note(number)).await.unwrap();
    }
    assert!(other.is_finished());
}

/// REQ: CH-806, CH-810, NET-1007
#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_what_is_held() {
    let cluster = Cluster::new(7);
    let (p, _, _) = beside(&cluster, |fanout| {
        fanout.no_drop(true).send_timeout(Duration::from_secs(3600))
    })
    .await;
    let waiting = {
        let filling = p.clone();
        tokio::spawn(async move {
            loop {
                news_publisher(&filling).flash(heavy(0)).await?;
                tokio::time::sleep(Duration::from_micros(100)).await;
            }
        })
    };
    cluster.advance(Duration::from_secs(10)).await;
    assert!(!waiting.is_finished());
    let begun = Instant::now();
    cluster.stop("p").await.unwrap();
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    let ended: Result<(), _> = waiting.await.unwrap();
    assert_eq!(failure(ended), ErrorKind::ShuttingDown);
    let ended = news_publisher(&p).flash(note(0)).await;
    assert_eq!(failure(ended), ErrorKind::ShuttingDown);
}

/// However long the host still drains.
///
/// REQ: NET-1007
#[tokio::test(start_paused = true)]
async fn a_publish_that_waits_ends_as_the_drain_begins() {
    let cluster = Cluster::new(13);
    let (stalled, own) = (Reader::new(), Reader::new());
    stalled.open(false);
    own.open(false);
    let held = own.clone();
    cluster.node("p", move |host| {
        host.fanout(|fanout| {
            fanout
                .publisher(NEWS)
                .listen(at("p"))
                .no_drop(true)
                .send_timeout(Duration::from_secs(3600))
                .subscriber(news_subscriber(held.clone()))
                .subscribe("own")
                .connect(at("p"))
        })
    });
    slow(&cluster, "slow", "order.", &stalled);
    cluster.start_all().await.unwrap();
    connected(&cluster, 2).await;
    let publish = news_publisher(&cluster.host("p"));
    publish.flash(note(0)).topic("own").await.unwrap();
    let waiting = {
        let publish = publish.clone();
        tokio::spawn(async move {
            loop {
                publish.order(heavy(0)).await?;
            }
        })
    };
    cluster.advance(AT_ONCE).await;
    assert!(own.count() == 1 && !waiting.is_finished());
    let stopping = tokio::spawn(cluster.stop("p"));
    cluster.advance(AT_ONCE).await;
    let ended: Result<(), _> = tokio::time::timeout(Duration::ZERO, waiting).await.unwrap().unwrap();
    assert_eq!(failure(ended), ErrorKind::ShuttingDown);
    assert!(!stopping.is_finished(), "a handler of its own runs");
    own.open(true);
    stopping.await.unwrap().unwrap();
}

/// REQ: CH-802, CH-905, CH-803
#[tokio::test(start_paused = true)]
async fn the_topic_is_the_packet_name_or_the_schemas_or_the_calls() {
    let cluster = Cluster::new(8);
    let reader = Reader::new();
    publisher(&cluster, "p", |fanout| fanout);
    subscriber(&cluster, "s", &["p"], &reader, |fanout| fanout);
    cluster.start("p").await.unwrap();
    let p = cluster.host("p");
    news_publisher(&p).flash(note(0)).await.unwrap();
    cluster.start("s").await.unwrap();
    connected(&cluster, 1).await;
    let publish = news_publisher(&p);
    publish.flash(note(1)).await.unwrap();
    publish.order(note(2)).await.unwrap();
    publish.flash(note(3)).topic("any.thing \u{e9}").await.unwrap();
    publish.order(note(4)).topic("").await.unwrap();
    cluster.advance(AT_ONCE).await;
    let got = reader.got();
    let got: Vec<_> = got.iter().map(|got| (got.number, &*got.topic, &*got.packet)).collect();
    let (flash, order) = ("test.news.flash", "test.news.order");
    let expected = [
        (1, flash, flash),
        (2, "order.", order),
        (3, "any.thing \u{e9}", flash),
        (4, "", order),
    ];
    assert_eq!(got, expected, "who comes later gets nothing of what was before");
    assert!(reader.got().iter().all(|got| got.channel == "news"));
}

/// REQ: CH-906, CH-903, ERR-305
#[tokio::test(start_paused = true)]
async fn a_topic_that_is_none_is_refused_before_anything() {
    let cluster = Cluster::new(9);
    let reader = Reader::new();
    publisher(&cluster, "p", |fanout| fanout.max_message(4096));
    subscriber(&cluster, "s", &["p"], &reader, |fanout| fanout);
    cluster.start_all().await.unwrap();
    connected(&cluster, 1).await;
    let publish = news_publisher(&cluster.host("p"));
    for topic in ["\u{1}ZLF1", "\u{1}ZLF1x", &"x".repeat(256)] {
        assert_eq!(
            argument(publish.flash(note(0)).topic(topic).await),
            "topic",
            "{topic:?}"
        );
    }
    let large = Note {
        body: vec![0; 5000],
        ..note(0)
    };
    assert_eq!(argument(publish.flash(large).await), "message");
    for (number, topic) in ["\u{1}ZLF", "\u{1}ZLF2", &"x".repeat(255)].into_iter().enumerate() {
        publish.flash(note(number as u64)).topic(topic).await.unwrap();
    }
    cluster.advance(AT_ONCE).await;
    assert_eq!(reader.numbers(), [0, 1, 2]);
}

/// REQ: CH-802, CH-803
#[tokio::test(start_paused = true)]
async fn without_subscribers_it_succeeds_and_without_a_publisher_it_fails() {
    let cluster = Cluster::new(10);
    publisher(&cluster, "p", |fanout| fanout.no_drop(true));
    subscriber(&cluster, "s", &["p"], &Reader::new(), |fanout| fanout);
    let p = cluster.start("p").await.unwrap();
    news_publisher(&p).flash(note(0)).await.unwrap();
    let other = news_publisher(&p).on(ChannelName::from_static("other"));
    assert_eq!(failure(other.flash(note(0)).await), ErrorKind::NotFound);
    let s = cluster.start("s").await.unwrap();
    assert_eq!(
        failure(news_publisher(&s).flash(note(0)).await),
        ErrorKind::NotConfigured
    );
}
