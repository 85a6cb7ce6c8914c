//! Logical multicast in detail: what is sent once, to whom, and what neither delays nor fails it.

use std::time::Duration;

use zlink_runtime::error::ErrorKind;
use zlink_runtime::prelude::*;
use zlink_runtime::rt;
use zlink_runtime::testing::Cluster;
use zlink_runtime::testing::network::Happened;

use crate::arena::*;
use crate::far;
use crate::kit::*;

const SECOND: Duration = Duration::from_secs(1);
const EVENTS: ChannelName = ChannelName::from_static("room-events");

/// Makes `name` a node whose rooms hear the news.
fn hears(cluster: &Cluster, world: &World, name: &'static str) {
    let (with_store, world) = (far::with_store(cluster, name), world.clone());
    cluster.node(name, move |host| {
        let host = with_store(host).shared(world.clone());
        let served = rt::ChannelServer::builder(EVENTS, ()).build();
        host.mesh("world", |mesh| {
            let mesh = mesh.rid_prefix(name).listen(format!("tcp://{name}:1")).serve(served);
            mesh.object_server(|objects| objects.spot(hearing_room_spot::<Room>()))
        })
    });
}

/// Makes `name` a node that has no object role, and can publish.
fn publishes(cluster: &Cluster, name: &'static str) {
    let with_store = far::with_store(cluster, name);
    cluster.node(name, move |host| {
        let host = with_store(host);
        host.mesh("world", |mesh| {
            mesh.rid_prefix(name).listen(format!("tcp://{name}:1")).client(EVENTS)
        })
    });
}

fn arrived(cluster: &Cluster, name: &str) -> usize {
    let node = cluster.network().names().iter().position(|one| one == name).unwrap();
    let events = cluster.network().trace();
    let bytes = events.iter().map(|event| match event.happened {
        Happened::Arrived { at, bytes, .. } if at == node => bytes,
        _ => 0,
    });
    bytes.sum()
}

/// While all of them wait, there is one record for all: what a handler sees of it stands in the same place.
///
/// REQ: SP-103, MSG-503
#[tokio::test(start_paused = true)]
async fn rooms_of_a_node_share_what_they_hear() -> Tested {
    const ROOMS: usize = 20;
    for provider in PROVIDERS {
        for from in ["one", "press"] {
            let (cluster, world) = on(provider, 115);
            hears(&cluster, &world, "one");
            publishes(&cluster, "press");
            start(&cluster).await?;
            for number in 0..ROOMS {
                let (one, _) = room(&cluster.host("one"), &format!("room-{number}"), "x").await?;
                one.say(text("gate")).await?;
            }
            let news = room_spots(&cluster.host(from)).publish_news(text("sun"));
            news.metadata("mark", "here").await?;
            cluster.advance(SECOND).await;
            assert_eq!(world.count("read sun"), 0, "all wait");
            world.open(ROOMS);
            cluster.advance(SECOND).await;
            let log = world.log();
            let marks: Vec<_> = log.iter().filter(|line| line.starts_with("the mark")).collect();
            assert_eq!(marks.len(), ROOMS);
            assert!(marks.iter().all(|mark| *mark == marks[0]), "from {from}: {marks:?}");
            cluster.shutdown().await?;
        }
    }
    Ok(())
}

/// REQ: SP-103, SP-009, NET-303
#[tokio::test(start_paused = true)]
async fn a_node_with_many_rooms_gets_one_record() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 110);
        hears(&cluster, &world, "one");
        publishes(&cluster, "press");
        start(&cluster).await?;
        let host = cluster.host("one");
        for number in 0..100 {
            room(&host, &format!("room-{number}"), "x").await?;
        }
        let long = "n".repeat(100_000);
        let before = arrived(&cluster, "one");
        room_spots(&cluster.host("press")).publish_news(text(&long)).await?;
        cluster.advance(SECOND).await;
        assert_eq!(world.count("read nnn"), 100);
        let bytes = arrived(&cluster, "one") - before;
        assert!((100_000..200_000).contains(&bytes), "{bytes} bytes came");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-009, SP-110
#[tokio::test(start_paused = true)]
async fn the_packet_selects_the_handler_and_a_room_publishes_too() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 111);
        hears(&cluster, &world, "one");
        hears(&cluster, &world, "two");
        start(&cluster).await?;
        let (one, _) = room(&cluster.host("one"), "room", "x").await?;
        let rooms = room_spots(&cluster.host("two"));
        rooms.publish_news(text("sun")).await?;
        rooms.publish_gossip(text("rain")).await?;
        assert_eq!(look(&one, "publish from a turn").await?, "published");
        cluster.advance(SECOND).await;
        for line in ["room read sun", "room was told rain", "room read from a turn"] {
            assert_eq!(world.count(line), 1, "{line}: {:?}", world.log());
        }
        assert_eq!(world.count("read rain") + world.count("was told sun"), 0);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// What a node subscribes to is its own business, at the moment of receipt.
///
/// REQ: SP-109, SP-102
#[tokio::test(start_paused = true)]
async fn a_room_that_comes_before_the_record_reads_it() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 112);
        hears(&cluster, &world, "one");
        publishes(&cluster, "press");
        start(&cluster).await?;
        cluster.network().delay("press", "one", 2 * SECOND);
        room_spots(&cluster.host("press")).publish_news(text("early")).await?;
        room(&cluster.host("one"), "late", "x").await?;
        assert_eq!(world.count("read"), 0);
        cluster.advance(3 * SECOND).await;
        assert_eq!(world.count("late read early"), 1);
        // A node that comes later is not part of what has begun.
        room_spots(&cluster.host("press")).publish_news(text("before")).await?;
        hears(&cluster, &world, "new");
        cluster.start("new").await?;
        room(&cluster.host("new"), "newest", "x").await?;
        cluster.advance(5 * SECOND).await;
        assert_eq!((world.count("late read before"), world.count("newest read")), (1, 0));
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-107, SP-106, SP-108
#[tokio::test(start_paused = true)]
async fn a_node_that_takes_nothing_is_left_out() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 113);
        for name in ["one", "two"] {
            hears(&cluster, &world, name);
        }
        publishes(&cluster, "press");
        start(&cluster).await?;
        let rooms: Vec<_> = (0..16).map(|number| format!("room-{number}")).collect();
        let mut on_two = 0;
        for id in &rooms {
            let (one, _) = room(&cluster.host("two"), id, "x").await?;
            on_two += usize::from(look(&one, "where").await?.starts_with("two"));
        }
        assert!(on_two > 0 && on_two < rooms.len());
        cluster.network().isolate("one");
        let press = room_spots(&cluster.host("press"));
        let began = tokio::time::Instant::now();
        for _ in 0..12 {
            press.publish_news(text(&"n".repeat(1 << 20))).await?;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        press.publish_news(text("last")).await?;
        assert!(began.elapsed() < 2 * SECOND, "none of them waited");
        cluster.advance(SECOND).await;
        assert_eq!(
            (world.count("read nnn"), world.count("read last")),
            (12 * on_two, on_two)
        );
        cluster.network().heal();
        cluster.advance(30 * SECOND).await;
        let most = world.log().iter().filter(|line| line.contains("read last")).count();
        assert!(most <= rooms.len(), "each at most once");
        let read = world.count("read nnn");
        assert!(read < 12 * rooms.len(), "what had no room is not sent later: {read}");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A host that cannot prove that it has its rooms gives them nothing to read, then or later.
///
/// REQ: LS-032, SP-107
#[tokio::test(start_paused = true)]
async fn rooms_of_a_host_without_a_lease_hear_nothing() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 116);
        hears(&cluster, &world, "one");
        publishes(&cluster, "press");
        start(&cluster).await?;
        room(&cluster.host("one"), "room", "x").await?;
        cluster.store_faults("one").cut();
        cluster.advance(12 * SECOND).await;
        for from in ["one", "press"] {
            room_spots(&cluster.host(from)).publish_news(text("never")).await?;
        }
        cluster.advance(SECOND).await;
        cluster.store_faults("one").heal();
        cluster.advance(20 * SECOND).await;
        for from in ["one", "press"] {
            room_spots(&cluster.host(from)).publish_news(text("again")).await?;
        }
        cluster.advance(SECOND).await;
        assert_eq!((world.count("read never"), world.count("read again")), (0, 2));
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-105, ERR-303
#[tokio::test(start_paused = true)]
async fn what_has_not_begun_does_not_begin_and_what_has_goes_on() -> Tested {
    for (provider, from) in PROVIDERS.into_iter().flat_map(|one| [(one, "press"), (one, "one")]) {
        let (cluster, world) = on(provider, 114);
        hears(&cluster, &world, "one");
        publishes(&cluster, "press");
        start(&cluster).await?;
        room(&cluster.host("one"), "room", "x").await?;
        let host = cluster.host(from);
        drop(room_spots(&host).publish_news(text("never")).into_future());
        let mut begun = Box::pin(room_spots(&host).publish_news(text("begun")).into_future());
        let _ = std::future::poll_fn(|cx| std::task::Poll::Ready(begun.as_mut().poll(cx))).await;
        drop(begun);
        let nowhere = room_spots(&host).publish_news(text("never"));
        let nowhere = nowhere.on(ChannelName::from_static("nowhere")).await.unwrap_err();
        assert_eq!(nowhere.kind(), Some(ErrorKind::NotFound), "{nowhere}");
        cluster.advance(SECOND).await;
        assert_eq!((world.count("read never"), world.count("read begun")), (0, 1));
        cluster.stop(from).await?;
        let refused = room_spots(&host).publish_news(text("late")).await.unwrap_err();
        assert_eq!(refused.kind(), Some(ErrorKind::ShuttingDown), "{refused}");
        cluster.shutdown().await?;
    }
    Ok(())
}
