//! Which fanouts start, and what is said of the others.

use std::time::Duration;

use zlink_generated::contract::{STOCK, stock_client};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::FanoutSubscriber;
use zlink_runtime::{FanoutBuilder, HostBuilder};

use crate::kit::{NEWS, NewsHandler, Reader, news_publisher, news_subscriber, note, refused, until};

const ANY: &str = "tcp://127.0.0.1:0";
const PEER: &str = "tcp://127.0.0.1:9";

fn fanout(configure: impl FnOnce(FanoutBuilder) -> FanoutBuilder) -> HostBuilder {
    Host::builder().fanout(configure)
}

async fn says(builder: HostBuilder, what: &str) {
    let error = refused(builder).await.to_string();
    assert!(error.contains(what), "{what:?} is not in: {error}");
}

fn subscriber() -> FanoutSubscriber {
    news_subscriber(Reader::new())
}

/// REQ: CH-804, CH-901, NET-1006, EX-84
#[tokio::test]
async fn what_a_role_needs_fails_the_start_without_it() {
    says(fanout(|it| it), "has no role").await;
    let no_publisher = "has no Publisher role";
    let subscribing = |configure: fn(FanoutBuilder) -> FanoutBuilder| {
        fanout(|it| configure(it.subscriber(subscriber()).connect(PEER)))
    };
    says(subscribing(|it| it.no_drop(false)), no_publisher).await;
    says(subscribing(|it| it.send_timeout(Duration::from_secs(1))), no_publisher).await;
    says(subscribing(|it| it.listen(ANY)), no_publisher).await;
    says(subscribing(|it| it.advertise("me")), no_publisher).await;
    let publishing =
        |configure: fn(FanoutBuilder) -> FanoutBuilder| fanout(|it| configure(it.publisher(NEWS).listen(ANY)));
    says(publishing(|it| it.subscribe("a")), "has no Subscriber role").await;
    says(publishing(|it| it.connect(PEER)), "has no Subscriber role").await;
    for wrong in [Duration::ZERO, Duration::from_millis(1 << 31)] {
        says(
            fanout(|it| it.publisher(NEWS).listen(ANY).send_timeout(wrong)),
            "send_timeout",
        )
        .await;
    }
    says(publishing(|it| it.max_message(100)), "max_message").await;
}

/// REQ: NET-1006, NET-407, CH-602
#[tokio::test]
async fn a_name_or_a_handler_that_is_there_twice_fails_the_start() {
    let twice = fanout(|it| it.publisher(NEWS).listen(ANY)).fanout(|it| it.subscriber(subscriber()).connect(PEER));
    says(twice, "is registered twice").await;
    says(
        fanout(|it| it.publisher(NEWS).publisher(NEWS).listen(ANY)),
        "has a role twice",
    )
    .await;
    let other = ChannelName::from_static("other");
    let two = fanout(|it| it.publisher(other).listen(ANY).subscriber(subscriber()).connect(PEER));
    says(two, "names \"news\", too").await;
    let clash = fanout(|it| it.publisher(STOCK).listen(ANY)).client_server(|it| it.client(STOCK).connect(PEER));
    says(clash, "leads to 2 paths (client_server, fanout)").await;
    let doubled = FanoutSubscriber::builder(NEWS, Reader::new())
        .event("test.news.flash", <Reader as NewsHandler>::flash)
        .event("test.news.flash", <Reader as NewsHandler>::order)
        .build();
    says(fanout(|it| it.subscriber(doubled).connect(PEER)), "has two handlers").await;
    says(
        fanout(|it| it.subscriber(subscriber().dispatch_limit(0)).connect(PEER)),
        "dispatch limit 0",
    )
    .await;
    says(
        fanout(|it| it.subscriber(subscriber()).connect(PEER).connect(PEER)),
        "twice",
    )
    .await;
    says(
        fanout(|it| it.subscriber(subscriber()).connect("tcp://127.0.0.1:0")),
        "port",
    )
    .await;
    says(fanout(|it| it.publisher(NEWS).listen("tcp://0.0.0.0:0")), "advertise").await;
}

/// REQ: NET-803
#[tokio::test]
async fn without_a_store_endpoints_are_named() {
    says(fanout(|it| it.subscriber(subscriber())), "no Location Store").await;
    says(fanout(|it| it.publisher(NEWS)), "no Location Store").await;
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("news.sock");
    for listen in [ANY, "tcp://[::1]:0", &format!("ipc://{}", path.display())] {
        let reader = Reader::new();
        let publisher = fanout(|it| it.publisher(NEWS).listen(listen)).start().await.unwrap();
        let endpoint = publisher.fanout("news").unwrap().endpoint().unwrap();
        assert_ne!(endpoint.port(), Some(0));
        let subscriber = fanout(|it| {
            it.subscriber(news_subscriber(reader.clone()))
                .connect(endpoint.to_string())
        });
        let subscriber = subscriber.start().await.unwrap();
        let seen = publisher.clone();
        until("a subscriber", move || seen.fanout("news").unwrap().subscribers() == 1).await;
        let (seen, publish) = (reader.clone(), news_publisher(&publisher));
        // What it subscribes to may be on its way still.
        while seen.count() == 0 {
            publish.flash(note(1)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        publisher.shutdown().await.unwrap();
        subscriber.shutdown().await.unwrap();
        assert!(!path.exists(), "nothing is left behind");
    }
}

/// REQ: NET-1003
#[tokio::test]
async fn a_start_that_fails_leaves_nothing_bound() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (taken_at, free_at) = (taken.local_addr().unwrap(), free.local_addr().unwrap());
    drop(free);
    let other = ChannelName::from_static("other");
    let two = fanout(|it| it.publisher(other).listen(format!("tcp://{free_at}")))
        .fanout(|it| it.publisher(NEWS).listen(format!("tcp://{taken_at}")));
    says(two, "fanout \"news\": cannot listen on").await;
    std::net::TcpListener::bind(free_at).unwrap();
}

/// A fanout and a channel of a mesh may have one name: nothing of the one reaches the other.
///
/// REQ: NET-801, CH-801
#[tokio::test]
async fn a_mesh_and_a_fanout_of_one_name_have_nothing_in_common() {
    let host = fanout(|it| it.publisher(STOCK).listen(ANY))
        .mesh("shop", |mesh| mesh.listen(ANY).client(STOCK))
        .start()
        .await
        .unwrap();
    let publish = news_publisher(&host).on(STOCK);
    publish.flash(note(1)).await.unwrap();
    let asked = stock_client(&host).ask(note(1)).await;
    assert_eq!(asked.unwrap_err().kind(), Some(ErrorKind::NotFound));
    host.shutdown().await.unwrap();
}
