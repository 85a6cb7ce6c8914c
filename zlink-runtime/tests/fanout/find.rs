//! Publishers that are found through a Location Store: who is linked, when, and what is told of it.

use std::time::Duration;

use zlink_generated::contract::STOCK;
use zlink_runtime::location::MemoryStore;
use zlink_runtime::prelude::*;
use zlink_runtime::testing::Cluster;
use zlink_runtime::{ListenerKind, PeerState, TopologyPhase, TopologyReason};

use crate::kit::{AT_ONCE, BEAT, NEWS, Reader, at, failure, news_publisher, news_subscriber, note, refused, until};

/// Longer than a look at the store takes.
const LOOK: Duration = Duration::from_secs(2);

/// Adds a publisher of `channel` that is found.
fn publisher(cluster: &Cluster, name: &'static str, channel: ChannelName) {
    let store = cluster.store(name);
    cluster.node(name, move |host| {
        host.location_store(store.clone())
            .fanout(|fanout| fanout.publisher(channel.clone()).listen(at(name)))
    });
}

/// Adds a subscriber of `news` that finds its publishers.
fn subscriber(cluster: &Cluster, name: &'static str, reader: &Reader) {
    let (store, reader) = (cluster.store(name), reader.clone());
    cluster.node(name, move |host| {
        let subscriber = news_subscriber(reader.clone());
        host.location_store(store.clone())
            .fanout(|fanout| fanout.subscriber(subscriber))
    });
}

/// The states of the publishers that `host` has found.
fn found(host: &Host) -> Vec<PeerState> {
    let status = host.fanout("news").unwrap().status().unwrap();
    let ready = status
        .publishers
        .iter()
        .filter(|one| one.state == PeerState::Ready)
        .count();
    assert_eq!(status.ready_publishers(), ready);
    status.publishers.iter().map(|one| one.state).collect()
}

fn reason(host: &Host) -> (TopologyPhase, Option<TopologyReason>) {
    let status = host.fanout("news").unwrap().status().unwrap();
    (status.phase, status.reason)
}

/// REQ: NET-804, NET-205, NET-801, OB-15
#[tokio::test(start_paused = true)]
async fn a_subscriber_finds_every_publisher_of_its_channel_and_nobody_else() {
    let cluster = Cluster::new(1);
    let reader = Reader::new();
    publisher(&cluster, "p", NEWS);
    publisher(&cluster, "audit", ChannelName::from_static("audit"));
    subscriber(&cluster, "s", &reader);
    // A node and a server of the same host and name-giving are none of its business.
    let store = cluster.store("m");
    cluster.node("m", move |host| {
        host.location_store(store.clone())
            .mesh("news", |mesh| mesh.listen(at("m")).client(STOCK))
    });
    cluster.start_all().await.unwrap();
    let s = cluster.host("s");
    cluster.advance(LOOK).await;
    assert_eq!(
        found(&s),
        [PeerState::Connecting],
        "it is linked, and has proved nothing"
    );
    assert_eq!(reason(&s), (TopologyPhase::Degraded, Some(TopologyReason::NoReadyPeer)));
    cluster.advance(BEAT).await;
    assert_eq!(found(&s), [PeerState::Ready]);
    assert_eq!(reason(&s), (TopologyPhase::Ready, None));
    assert_eq!(cluster.host("audit").fanout("audit").unwrap().subscribers(), 0);

    publisher(&cluster, "q", NEWS);
    cluster.start("q").await.unwrap();
    cluster.advance(LOOK).await;
    for (name, number) in [("p", 1), ("q", 2)] {
        news_publisher(&cluster.host(name)).flash(note(number)).await.unwrap();
        cluster.advance(AT_ONCE).await;
    }
    assert_eq!(reader.numbers(), [1, 2]);
    assert_eq!(found(&s), [PeerState::Ready; 2]);
    cluster.stop("p").await.unwrap();
    cluster.advance(LOOK).await;
    assert_eq!(found(&s), [PeerState::Ready], "one that has ended is no more");
}

/// REQ: NET-804
#[tokio::test(start_paused = true)]
async fn a_publisher_that_drains_is_left() {
    let cluster = Cluster::new(2);
    let (reader, own) = (Reader::new(), Reader::new());
    own.open(false);
    let (store, held) = (cluster.store("p"), own.clone());
    // It finds itself as others do.
    cluster.node("p", move |host| {
        let subscriber = news_subscriber(held.clone());
        host.location_store(store.clone())
            .fanout(|fanout| fanout.publisher(NEWS).listen(at("p")).subscriber(subscriber))
    });
    subscriber(&cluster, "s", &reader);
    cluster.start_all().await.unwrap();
    let (p, s) = (cluster.host("p"), cluster.host("s"));
    cluster.advance(LOOK).await;
    assert_eq!(p.fanout("news").unwrap().subscribers(), 2);
    news_publisher(&p).flash(note(1)).await.unwrap();
    cluster.advance(AT_ONCE).await;
    assert_eq!((own.count(), reader.count()), (1, 1));
    let stopping = tokio::spawn(cluster.stop("p"));
    cluster.advance(LOOK).await;
    assert!(!stopping.is_finished(), "a handler of its own runs");
    assert_eq!(found(&s), [PeerState::Draining]);
    assert_eq!(p.fanout("news").unwrap().subscribers(), 0);
    assert_eq!(reason(&p), (TopologyPhase::Stopping, Some(TopologyReason::Draining)));
    assert_eq!(
        failure(news_publisher(&p).flash(note(2)).await),
        ErrorKind::ShuttingDown
    );
    own.open(true);
    stopping.await.unwrap().unwrap();
    cluster.advance(LOOK).await;
    assert!(found(&s).is_empty());
}

/// REQ: NET-804, NET-905, OB-17
#[tokio::test(start_paused = true)]
async fn a_publisher_that_dies_or_comes_back_is_followed() {
    let cluster = Cluster::new(3);
    let reader = Reader::new();
    publisher(&cluster, "p", NEWS);
    publisher(&cluster, "q", NEWS);
    subscriber(&cluster, "s", &reader);
    cluster.start_all().await.unwrap();
    let s = cluster.host("s");
    cluster.advance(BEAT).await;
    assert_eq!(found(&s), [PeerState::Ready; 2]);
    cluster.kill("q");
    cluster.advance(AT_ONCE).await;
    let mut states = found(&s);
    states.sort_by_key(|state| *state == PeerState::Ready);
    assert_eq!(states, [PeerState::NotConnected, PeerState::Ready]);
    cluster.advance(Duration::from_secs(2)).await;
    let publishers = s.fanout("news").unwrap().status().unwrap().publishers;
    let failures: Vec<_> = publishers.into_iter().filter_map(|one| one.failure).collect();
    assert!(
        failures.len() == 1 && failures[0].starts_with("cannot be reached: ") && !failures[0].contains("tcp://"),
        "it names no endpoint: {failures:?}"
    );
    // What it has left holds as long as its lease may.
    cluster.advance(Duration::from_secs(25)).await;
    assert_eq!(found(&s), [PeerState::Ready]);
    cluster.restart("p").await.unwrap();
    cluster.advance(BEAT).await;
    assert_eq!(found(&s), [PeerState::Ready], "of two runs at one place, the later");
    news_publisher(&cluster.host("p")).flash(note(1)).await.unwrap();
    cluster.advance(AT_ONCE).await;
    assert_eq!(reader.numbers(), [1], "over one connection");
}

/// REQ: LS-054, NET-912
#[tokio::test(start_paused = true)]
async fn an_outage_of_the_store_harms_no_connection_and_makes_none() {
    let cluster = Cluster::new(4);
    let reader = Reader::new();
    publisher(&cluster, "p", NEWS);
    subscriber(&cluster, "s", &reader);
    cluster.start_all().await.unwrap();
    let s = cluster.host("s");
    cluster.advance(BEAT).await;
    cluster.store_faults("s").cut();
    cluster.advance(Duration::from_secs(20)).await;
    assert_eq!(found(&s), [PeerState::Ready]);
    assert_eq!(
        reason(&s),
        (TopologyPhase::Degraded, Some(TopologyReason::LocationUnavailable))
    );
    news_publisher(&cluster.host("p")).flash(note(1)).await.unwrap();
    cluster.advance(AT_ONCE).await;
    assert_eq!(reader.count(), 1);
    cluster.network().break_connections("p", "s", false);
    cluster.advance(Duration::from_secs(20)).await;
    assert_eq!(found(&s), [PeerState::NotConnected]);
    assert_eq!(cluster.host("p").fanout("news").unwrap().subscribers(), 0);
    cluster.store_faults("s").heal();
    cluster.advance(2 * BEAT).await;
    assert_eq!(found(&s), [PeerState::Ready]);
}

/// REQ: NET-207, NET-803, NET-805, OB-10, OB-11
#[tokio::test]
async fn a_store_gives_a_publisher_a_port_and_its_name_away() {
    let (store, reader) = (MemoryStore::new(), Reader::new());
    let host = || Host::builder().location_store(store.clone());
    let p = host().fanout(|fanout| fanout.publisher(NEWS)).start().await.unwrap();
    let listener = p.listener(ListenerKind::Fanout, "news").unwrap();
    assert_eq!(Some(&listener.endpoint), p.fanout("news").unwrap().endpoint().as_ref());
    assert!(listener.endpoint.port().is_some_and(|port| port > 0));
    assert!(p.listener(ListenerKind::Fanout, "other").is_err());

    let subscriber = news_subscriber(reader.clone());
    let s = host()
        .fanout(|fanout| fanout.subscriber(subscriber))
        .start()
        .await
        .unwrap();
    assert!(s.listener(ListenerKind::Fanout, "news").is_err());
    let seen = p.clone();
    until("a subscriber", move || seen.fanout("news").unwrap().subscribers() == 1).await;
    let one = s.fanout("news").unwrap().status().unwrap();
    let next = s.fanout("news").unwrap().status().unwrap();
    assert!(next.sequence > one.sequence && next.observed >= one.observed);
    assert_eq!(
        (one.name.as_str(), one.subscribers, one.publishers.len()),
        ("news", None, 1)
    );
    assert_eq!(p.fanout("news").unwrap().status().unwrap().subscribers, Some(1));
    assert!(
        s.fanout("news").unwrap().connect("tcp://127.0.0.1:9").is_err(),
        "its publishers are found"
    );
    assert!(s.fanout("news").unwrap().intents().is_empty());

    // One that is kept out is not found, and finds nobody.
    let subscriber = news_subscriber(reader.clone());
    let manual = host()
        .fanout(|fanout| fanout.subscriber(subscriber).manual())
        .start()
        .await
        .unwrap();
    assert!(manual.fanout("news").unwrap().status().is_err());
    manual
        .fanout("news")
        .unwrap()
        .connect(listener.endpoint.as_str())
        .unwrap();
    let seen = p.clone();
    until("another subscriber", move || {
        seen.fanout("news").unwrap().subscribers() == 2
    })
    .await;
    let hidden = host().fanout(|fanout| fanout.publisher(NEWS).manual());
    assert!(refused(hidden).await.to_string().contains("no listen endpoint"));
    for host in [p, s, manual] {
        host.shutdown().await.unwrap();
    }
}
