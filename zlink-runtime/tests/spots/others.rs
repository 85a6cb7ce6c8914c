//! Entry Spots, timers, logical multicast, and what a host does that cannot prove that it lives.

use std::time::Duration;

use zlink_runtime::ObjectServerBuilder;
use zlink_runtime::error::ErrorKind;
use zlink_runtime::location::{LocationStore, MemoryStore, Scan, Scanned};
use zlink_runtime::prelude::*;
use zlink_runtime::testing::Cluster;

use crate::arena::*;
use crate::far;
use crate::kit::*;

/// REQ: LS-051, SP-021
#[tokio::test(start_paused = true)]
async fn a_node_is_found_by_nobody_before_its_entry_spot_is_there() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 186);
        calls(&cluster, "caller");
        cluster.start("caller").await?;
        let caller = cluster.host("caller");
        serves_with(&cluster, &world, "owner", |objects| {
            all(objects).entry(lobby_spot::<Lobby>())
        });
        world.holds("initialize");
        let starting = tokio::spawn(cluster.start("owner"));
        world.until("held in initialize").await;
        cluster.advance(Duration::from_secs(5)).await;
        assert!(!starting.is_finished());
        let id = world.log()[0].strip_prefix("start ").unwrap().to_owned();
        let peers = caller.mesh("world")?.status().peers;
        assert!(peers.is_empty(), "{peers:?}");
        let none = lobby_spots(&caller).of(&id).greet(text("you")).await.unwrap_err();
        assert_eq!(none.kind(), Some(ErrorKind::NotFound), "{none}");
        let nowhere = room_spots(&caller).get_or_create("one", text("x")).await.unwrap_err();
        assert_eq!(nowhere.kind(), Some(ErrorKind::NotFound), "{nowhere}");
        // The room that is made below has one, too.
        world.open_build(2);
        starting.await??;
        cluster.advance(Duration::from_secs(3)).await;
        assert_eq!(caller.mesh("world")?.status().peers.len(), 1);
        let greeted = lobby_spots(&caller).of(&id).greet(text("you")).await?;
        assert_eq!(greeted.text, format!("{id} greets you"));
        room_spots(&caller).get_or_create("one", text("x")).await?;
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: LS-050
#[tokio::test(start_paused = true)]
async fn a_node_of_too_many_types_does_not_start() {
    for (types, is_too_many) in [(1024, false), (1025, true)] {
        let store = MemoryStore::new();
        let host = Host::builder().location_store(store.clone()).mesh("world", |mesh| {
            // That they are all the same is another mistake.
            let many = |objects: ObjectServerBuilder| (0..types).fold(objects, |all, _| all.spot(room_spot::<Room>()));
            mesh.object_server(many)
        });
        let wrong = host.start().await.unwrap_err().to_string();
        assert_eq!(wrong.contains("at most 1024"), is_too_many, "{wrong}");
        let Scanned::Page(page) = store.scan(&Scan::new("", 1).unwrap()).await.unwrap() else {
            panic!("a first page is never expired");
        };
        assert_eq!(page.revision, None, "nothing was written");
    }
}

/// REQ: SP-005, SP-021, SP-034, NET-106
#[tokio::test(start_paused = true)]
async fn a_node_has_its_entry_spot_from_its_start_to_its_end() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 60);
        serves_with(&cluster, &world, "owner", |objects| {
            objects.entry(lobby_spot::<Lobby>())
        });
        calls(&cluster, "caller");
        world.holds("initialize");
        let starting = tokio::spawn(cluster.start("owner"));
        world.until("held in initialize").await;
        cluster.advance(Duration::from_secs(5)).await;
        assert!(!starting.is_finished(), "the host does not serve before");
        world.open_build(1);
        starting.await??;
        let id = world.log()[0].strip_prefix("start ").unwrap().to_owned();
        let uuid = id.strip_prefix("owner-entry-").expect(&id);
        let dashes: Vec<_> = uuid.match_indices('-').map(|(at, _)| at).collect();
        assert_eq!((uuid.len(), dashes), (36, vec![8, 13, 18, 23]), "{id}");
        cluster.start("caller").await?;
        cluster.advance(Duration::from_secs(3)).await;
        for name in ["owner", "caller"] {
            let lobby = lobby_spots(&cluster.host(name)).of(&id);
            assert_eq!(lobby.greet(text("you")).await?.text, format!("{id} greets you"));
        }
        cluster.stop("owner").await?;
        assert_eq!(world.count(&format!("closing {id} HostShutdown")), 1);
        world.open_build(1);
        cluster.start("owner").await?;
        cluster.advance(Duration::from_secs(3)).await;
        // What led there is wrong for one call at most.
        let _ = lobby_spots(&cluster.host("caller"))
            .of(&id)
            .greet(text("you"))
            .await
            .unwrap_err();
        let gone = lobby_spots(&cluster.host("caller"))
            .of(&id)
            .greet(text("you"))
            .await
            .unwrap_err();
        assert_eq!(
            gone.kind(),
            Some(ErrorKind::NotFound),
            "a new run has a new one: {gone}"
        );
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-130, SP-131, EX-63
#[tokio::test(start_paused = true)]
async fn a_room_has_its_timers() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 61).await?;
        let (one, spot) = room(&host, "one", "ticks").await?;
        cluster.advance(Duration::from_millis(3_500)).await;
        assert_eq!(look(&one, "ticks").await?, "3");
        one.say(text("gate")).await?;
        cluster.advance(Duration::from_secs(5)).await;
        assert_eq!(world.count("ticks"), 3, "a tick waits for the gate");
        world.open(1);
        cluster.advance(Duration::from_millis(100)).await;
        assert_eq!(
            world.count("ticks"),
            5,
            "one that waited, and those that were late as one"
        );
        assert!(look(&one, "timer nonsense").await?.contains("declares no timer"));
        assert_eq!(
            look(&one, "timer tick").await?,
            "tick true",
            "it was started anew, and cancelled"
        );
        cluster.advance(Duration::from_secs(10)).await;
        assert_eq!(world.count("ticks"), 5);
        let (two, _) = room(&host, "two", "ticks").await?;
        drop(two);
        assert!(room_spots(&host).close(&spot).await?);
        let two = room_spots(&host).find("two").await?.unwrap();
        assert!(room_spots(&host).close(&two).await?);
        let before = world.count("ticks");
        cluster.advance(Duration::from_secs(10)).await;
        assert_eq!(world.count("ticks"), before, "a room that is closed has none");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A timer that has a gate of its own runs as soon as it has the room to itself.
///
/// REQ: SP-041, SP-130
#[tokio::test(start_paused = true)]
async fn the_timer_of_a_wide_room_waits_for_its_state() -> Tested {
    for provider in PROVIDERS {
        for is_wide in [false, true] {
            let (cluster, world) = on(provider, 68);
            serves_with(&cluster, &world, "owner", move |objects| match is_wide {
                true => objects.spot(wide_room_spot::<Room>()),
                false => objects.spot(room_spot::<Room>()),
            });
            start(&cluster).await?;
            let (one, _) = room(&cluster.host("owner"), "one", "ticks").await?;
            for round in 0..3 {
                one.say(text("gate")).await?;
                cluster.advance(Duration::from_secs(3)).await;
                let ticks = world.count("ticks");
                world.open(1);
                one.say(text(&format!("round {round}"))).await?;
                cluster.advance(Duration::from_millis(1_500)).await;
                assert!(world.count("ticks") > ticks, "{:?}", world.log());
                assert_eq!(world.count(&format!("heard round {round}")), 1);
            }
            assert_eq!(
                look(&one, "lines").await?,
                "ticks,gate,round 0,gate,round 1,gate,round 2"
            );
            cluster.shutdown().await?;
        }
    }
    Ok(())
}

/// REQ: SP-132, SP-130
#[tokio::test(start_paused = true)]
async fn late_ticks_are_left_out_made_up_for_or_moved_back() -> Tested {
    for place in EVERYWHERE {
        for (how, expected) in [
            ("skip", "[(1, 1, 0), (2, 2, 0), (3, 6, 3), (4, 7, 0)]"),
            ("catch up", "[(1, 1, 0), (2, 2, 0), (3, 5, 2), (4, 6, 0), (5, 7, 0)]"),
            ("delay", "[(1, 1, 0), (2, 2, 0), (3, 3, 0)]"),
        ] {
            let (cluster, world, host) = placed(place, 67).await?;
            let (one, _) = room(&host, "one", "x").await?;
            look(&one, &format!("overrun {how}")).await?;
            cluster.advance(Duration::from_millis(1_500)).await;
            one.say(text("gate")).await?;
            cluster.advance(Duration::from_secs(5)).await;
            world.open(1);
            cluster.advance(Duration::from_millis(700)).await;
            assert_eq!(look(&one, "indices").await?, expected, "{how}");
            cluster.shutdown().await?;
        }
    }
    Ok(())
}

/// Nodes whose rooms hear the news of the channel `room-events`, which all of them serve.
fn hears(cluster: &Cluster, world: &World, name: &'static str, weight: u32) {
    let (with_store, world) = (far::with_store(cluster, name), world.clone());
    cluster.node(name, move |host| {
        let host = with_store(host).shared(world.clone());
        let served = zlink_runtime::rt::ChannelServer::builder(ChannelName::from_static("room-events"), ()).build();
        host.mesh("world", |mesh| {
            let mesh = mesh
                .rid_prefix(name)
                .listen(format!("tcp://{name}:1"))
                .serve(served.weight(weight));
            mesh.object_server(|objects| objects.spot(hearing_room_spot::<Room>()))
        })
    });
}

/// REQ: SP-100, SP-102, SP-106, SP-113, SP-114
#[tokio::test(start_paused = true)]
async fn what_is_published_reaches_every_room_that_hears_it_once() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 62);
        for (name, weight) in [("one", 100), ("two", 1), ("mute", 0)] {
            hears(&cluster, &world, name, weight);
        }
        let with_store = far::with_store(&cluster, "press");
        cluster.node("press", move |host| {
            let host = with_store(host);
            host.mesh("world", |mesh| {
                mesh.listen("tcp://press:1")
                    .client(ChannelName::from_static("room-events"))
            })
        });
        start(&cluster).await?;
        let mut rooms = std::collections::BTreeMap::new();
        for number in 0..24 {
            let id = format!("room-{number}");
            let (one, spot) = room(&cluster.host("one"), &id, "x").await?;
            let place = look(&one, "where").await?;
            rooms.insert(id, (spot, place));
        }
        let on = |name: &str| rooms.values().filter(|(_, place)| place.starts_with(name)).count();
        assert!(on("one") > 0 && on("two") > 0 && on("mute") > 0, "{rooms:?}");
        let heard = |text: &str| world.count(&format!("read {text}"));

        // From a node without Spots: a node of weight 0 is left out.
        room_spots(&cluster.host("press")).publish_news(text("first")).await?;
        cluster.advance(Duration::from_secs(1)).await;
        assert_eq!(heard("first"), on("one") + on("two"), "{:?}", world.log());
        // From a node with Spots: its own hear it whatever its weight is.
        room_spots(&cluster.host("mute")).publish_news(text("second")).await?;
        cluster.advance(Duration::from_secs(1)).await;
        assert_eq!(heard("second"), 24);
        for id in rooms.keys() {
            assert_eq!(world.count(&format!("{id} read second")), 1);
        }

        // Neither a room that is closed nor one that is not ready.
        let (closed, (spot, _)) = rooms.iter().find(|(_, (_, place))| place.starts_with("one")).unwrap();
        assert!(room_spots(&cluster.host("one")).close(spot).await?);
        world.holds("initialize");
        let creating = tokio::spawn(
            room_spots(&cluster.host("one"))
                .get_or_create("late", text("x"))
                .into_future(),
        );
        world.until("held in initialize").await;
        room_spots(&cluster.host("mute")).publish_news(text("third")).await?;
        cluster.advance(Duration::from_secs(1)).await;
        world.open_build(1);
        creating.await??;
        cluster.advance(Duration::from_secs(1)).await;
        assert_eq!(heard("third"), 23);
        assert_eq!(
            world.count(&format!("{closed} read third")) + world.count("late read"),
            0
        );

        // Done once it has begun, with whatever handlers do; and where the channel leads nowhere it does not begin.
        let one = room_spots(&cluster.host("one")).of("room-1");
        one.say(text("gate")).await?;
        room_spots(&cluster.host("mute")).publish_news(text("fourth")).await?;
        world.open(1);
        let nowhere = room_spots(&cluster.host("one"))
            .publish_news(text("x"))
            .on(ChannelName::from_static("nowhere"));
        assert_eq!(nowhere.await.unwrap_err().kind(), Some(ErrorKind::NotFound));
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: LS-031, LS-032, LS-033, SP-133, EX-66
#[tokio::test(start_paused = true)]
async fn a_host_that_cannot_prove_that_it_lives_runs_nothing_until_it_can() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 63).await?;
        let (one, _) = room(&host, "one", "ticks").await?;
        cluster.advance(Duration::from_secs(2)).await;
        one.say(text("gate")).await?;
        cluster.store_faults("owner").cut();
        // TTL less the margin: ten seconds after the last renewal it stops by itself.
        cluster.advance(Duration::from_secs(16)).await;
        let (ticks, lines) = (world.count("ticks"), world.count("heard"));
        world.open(1);
        cluster.advance(Duration::from_secs(30)).await;
        assert_eq!(
            (world.count("ticks"), world.count("heard")),
            (ticks, lines),
            "{:?}",
            world.log()
        );
        let refused = one
            .look(text("lines"))
            .timeout(Duration::from_secs(5))
            .await
            .unwrap_err();
        assert_eq!(refused.kind(), Some(ErrorKind::Unavailable), "{refused}");
        cluster.store_faults("owner").heal();
        cluster.advance(Duration::from_secs(20)).await;
        assert_eq!(look(&one, "lines").await?, "ticks,gate", "what was parked goes on");
        assert!(world.count("ticks") > ticks);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: LS-033, LS-034, LS-036
#[tokio::test(start_paused = true)]
async fn what_was_taken_from_a_host_never_runs_there_again() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 64).await?;
        serves(&cluster, &world, "other");
        let (one, spot) = room(&host, "one", "x").await?;
        let (kept, _) = room(&host, "kept", "y").await?;
        cluster.start("other").await?;
        cluster.advance(Duration::from_secs(3)).await;
        one.say(text("gate")).await?;
        one.say(text("never")).await?;
        world.until("say waits").await;
        cluster.store_faults("owner").cut();
        cluster.advance(Duration::from_secs(20)).await;
        let other = cluster.host("other");
        assert!(room_spots(&other).release(&spot).await?);
        world.open(1);
        let (again, _) = room(&other, "one", "again").await?;
        assert!(look(&again, "where").await?.starts_with("other"));
        cluster.store_faults("owner").heal();
        cluster.advance(Duration::from_secs(30)).await;
        assert_eq!(look(&again, "lines").await?, "again");
        assert_eq!(world.count("one heard"), 0, "{:?}", world.log());
        assert_eq!(look(&kept, "lines").await?, "y", "what was not taken is there still");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: LS-105
#[tokio::test(start_paused = true)]
async fn a_host_stops_in_time_while_the_store_is_down() -> Tested {
    for place in LOCAL {
        let (cluster, world, host) = placed(place, 65).await?;
        for id in ["one", "two"] {
            room(&host, id, "x").await?;
        }
        cluster.store_faults("owner").cut();
        let began = tokio::time::Instant::now();
        cluster.stop("owner").await?;
        assert!(began.elapsed() <= Duration::from_secs(10), "{:?}", began.elapsed());
        assert_eq!(world.count("closing"), 2);
    }
    Ok(())
}

/// REQ: LS-044
#[tokio::test(start_paused = true)]
async fn a_cart_whose_host_died_while_it_was_made_is_made_elsewhere() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = placed(place, 66).await?;
        world.holds("activate");
        let cart = cart_spots(&host).of("cart");
        cart.add(text("lost")).activating().await?;
        world.until("held in activate").await;
        cluster.kill("owner");
        world.open_build(2);
        serves(&cluster, &world, "other");
        cluster.start("other").await?;
        cluster.advance(Duration::from_secs(40)).await;
        let view = cart
            .view(text("item"))
            .activating()
            .timeout(Duration::from_secs(60))
            .await?;
        assert_eq!(view.text, "item");
        cluster.shutdown().await?;
    }
    Ok(())
}
