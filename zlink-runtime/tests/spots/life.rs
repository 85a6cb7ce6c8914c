//! How User Spots begin, are found and end: the same for a Spot on the caller's host and on another.

use std::time::Duration;

use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::prelude::{ChannelName, Host};
use zlink_runtime::rt::SpotCreated;

use crate::arena::*;
use crate::kit::*;
use crate::stores::on_every_store;
use crate::wait::until_within;

/// REQ: SP-030, SP-033, SP-050, SP-080, SP-082, EX-70
#[tokio::test(start_paused = true)]
async fn a_room_is_created_found_called_and_closed() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 1).await?;
        let rooms = room_spots(&host);
        let SpotCreated::Created(spot, reply) = rooms.create(text("hello")).await? else {
            panic!("it is new");
        };
        assert_eq!(reply.text, "created with hello");
        let room = rooms.of(&spot.id);
        room.say(text("one")).await?;
        assert_eq!(look(&room, "lines").await?, "hello,one");
        assert_eq!(rooms.find(&spot.id).await?, Some(spot.clone()));
        let again = rooms.get_or_create(&spot.id, text("another")).await?;
        assert_eq!(again, SpotCreated::Existing(spot.clone()));
        assert_eq!(
            (world.count("create"), world.count("initialize")),
            (1, 1),
            "{:?}",
            world.log()
        );
        assert!(rooms.close(&spot).await?);
        assert_eq!(
            world.count(&format!("closing {} ExplicitClose within 30", spot.id)),
            1,
            "{:?}",
            world.log()
        );
        assert_eq!(world.count("room dropped"), 1);
        assert_eq!(rooms.find(&spot.id).await?, None);
        assert!(!rooms.close(&spot).await?, "it is gone already");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-080
#[tokio::test(start_paused = true)]
async fn every_create_has_an_id_of_its_own() -> Tested {
    for place in EVERYWHERE {
        let (cluster, _, host) = placed(place, 2).await?;
        let creating: Vec<_> = (0..200)
            .map(|number| tokio::spawn(room_spots(&host).create(text(&number.to_string())).into_future()))
            .collect();
        let mut ids = std::collections::BTreeSet::new();
        for create in creating {
            ids.insert(create.await??.reference().unwrap().id.as_str().to_owned());
        }
        assert_eq!(ids.len(), 200);
        let lower = |id: &String| uuid::Uuid::parse_str(id).is_ok_and(|uuid| uuid.to_string() == *id);
        assert!(ids.iter().all(lower), "{ids:?}");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-083, LS-041
#[tokio::test(start_paused = true)]
async fn whoever_creates_at_once_gets_one_room() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 3);
        for name in ["one", "two", "three"] {
            serves(&cluster, &world, name);
        }
        start(&cluster).await?;
        world.holds("create");
        let creating: Vec<_> = (0..64)
            .map(|number| {
                let host = cluster.host(["one", "two", "three"][number % 3]);
                let call = room_spots(&host).get_or_create("room", text(&number.to_string()));
                tokio::spawn(call.into_future())
            })
            .collect();
        world.until("held in create").await;
        cluster.advance(Duration::from_secs(1)).await;
        world.open_build(1);
        let mut created = 0;
        let mut references = std::collections::BTreeSet::new();
        for create in creating {
            let outcome = create.await??;
            references.insert(outcome.reference().unwrap().clone());
            created += usize::from(matches!(outcome, SpotCreated::Created(..)));
        }
        assert_eq!(
            (world.count("create room"), created, references.len()),
            (1, 1, 1),
            "{:?}",
            world.log()
        );
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-082, SP-084, ERR-107, ERR-604
#[tokio::test(start_paused = true)]
async fn what_was_refused_or_failed_is_not_there_and_takes_no_room() -> Tested {
    for place in EVERYWHERE {
        let (cluster, _, host) = placed_with(place, 4, |cluster, world| {
            serves_with(cluster, world, "owner", |objects| {
                objects.spot(room_spot::<Room>()).capacity(ROOM, 1)
            });
        })
        .await?;
        let rooms = room_spots(&host);
        let rejected = rooms.get_or_create("room", text("reject")).await?;
        assert_eq!(rejected, SpotCreated::Rejected(text("no")));
        for how in ["fail", "panic", "fail late", "answer long"] {
            let failed = rooms.get_or_create("room", text(how)).await.unwrap_err();
            assert_eq!(failed.kind(), Some(ErrorKind::InternalFailure), "{how}: {failed}");
            assert_eq!(rooms.find("room").await?, None, "{how}");
        }
        room(&host, "room", "here").await?;
        let full = rooms.get_or_create("another", text("x")).await.unwrap_err();
        assert_eq!(full.kind(), Some(ErrorKind::CapacityExceeded), "{full}");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Chance would have to give an ID twice; here the same seed does.
///
/// REQ: SP-082, ERR-202
#[tokio::test(start_paused = true)]
async fn a_new_id_that_somebody_has_is_refused_and_not_drawn_again() -> Tested {
    for provider in PROVIDERS {
        let mut drawn = None;
        for _ in 0..2 {
            let (cluster, world) = on(provider, 11);
            serves(&cluster, &world, "owner");
            calls(&cluster, "caller");
            calls(&cluster, "other");
            start(&cluster).await?;
            let rooms = room_spots(&cluster.host("caller"));
            match &drawn {
                None => drawn = rooms.create(text("x")).await?.reference().cloned(),
                Some(spot) => {
                    let (one, _) = room(&cluster.host("other"), spot.id.as_str(), "first").await?;
                    let taken = rooms.create(text("x")).await.unwrap_err();
                    assert_eq!(
                        (taken.kind(), taken.execution()),
                        (Some(ErrorKind::AlreadyExists), Execution::NotExecuted),
                        "{taken}"
                    );
                    assert_eq!(world.count("create "), 1, "{:?}", world.log());
                    assert_eq!(look(&one, "lines").await?, "first");
                }
            }
            cluster.shutdown().await?;
        }
    }
    Ok(())
}

/// REQ: SP-002, SP-006, SP-082, NET-106
#[tokio::test(start_paused = true)]
async fn an_id_is_of_one_type_for_all() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 5).await?;
        let carts = cart_spots(&host);
        carts.of("thing").view(text("")).activating().await?;
        let other = room_spots(&host).get_or_create("thing", text("x")).await.unwrap_err();
        assert_eq!(other.kind(), Some(ErrorKind::TypeMismatch), "{other}");
        let other = room_spots(&host).find("thing").await.unwrap_err();
        assert_eq!(other.kind(), Some(ErrorKind::TypeMismatch), "{other}");
        assert_eq!(
            carts.of("thing").view(text("x")).await?.text,
            "x",
            "the first one still answers"
        );
        let entry = "owner-entry-8f14e45f-ceea-467f-9b1d-3c5b4a1d2e3f";
        let forbidden = room_spots(&host).get_or_create(entry, text("x")).await.unwrap_err();
        assert_eq!(forbidden.kind(), Some(ErrorKind::InvalidOperation), "{forbidden}");
        let forbidden = carts.of(entry).view(text("")).activating().await.unwrap_err();
        assert_eq!(forbidden.kind(), Some(ErrorKind::InvalidOperation), "{forbidden}");
        assert_eq!(world.count("create"), 0);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-001
#[tokio::test(start_paused = true)]
async fn ids_are_told_apart_byte_by_byte() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 6).await?;
        let ids = crate::ids::ids();
        for id in &ids {
            room(&host, id, id).await?;
        }
        for id in &ids {
            assert_eq!(look(&room_spots(&host).of(id), "lines").await?, *id);
        }
        for bad in ["", "a\0b", &"x".repeat(256)] {
            let refused = room_spots(&host).of(bad).look(text("lines")).await.unwrap_err();
            assert_eq!(refused.kind(), None, "an argument error: {refused}");
            let refused = room_spots(&host).get_or_create(bad, text("x")).await.unwrap_err();
            assert_eq!(refused.kind(), None, "an argument error: {refused}");
        }
        assert_eq!(world.count("create"), ids.len());
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-022, SP-052
#[tokio::test(start_paused = true)]
async fn nobody_makes_a_room_by_asking_for_it() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 7).await?;
        let room = room_spots(&host).of("nowhere");
        let unknown = look(&room, "lines").await.unwrap_err();
        assert_eq!(unknown.kind(), Some(ErrorKind::NotFound), "{unknown}");
        let told = unknown.to_string();
        assert!(
            told.contains("there is no Spot \"nowhere\"") && told.contains(".activating()"),
            "{told}"
        );
        let unknown = room.say(text("x")).await.unwrap_err();
        assert_eq!(unknown.kind(), Some(ErrorKind::NotFound), "{unknown}");
        assert_eq!(room_spots(&host).find("nowhere").await?, None);
        let unknown = cart_spots(&host).of("nowhere").add(text("x")).await.unwrap_err();
        assert_eq!(
            unknown.kind(),
            Some(ErrorKind::NotFound),
            "without the intent: {unknown}"
        );
        assert!(world.log().is_empty());
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-084
#[tokio::test(start_paused = true)]
async fn a_room_is_there_once_it_is_initialised() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 8).await?;
        world.holds("initialize");
        let creating = tokio::spawn(room_spots(&host).get_or_create("room", text("x")).into_future());
        world.until("held in initialize").await;
        let room = room_spots(&host).of("room");
        let early = look(&room, "lines").await.unwrap_err();
        assert_eq!(early.kind(), Some(ErrorKind::NotFound));
        assert!(early.to_string().contains("is still being made"), "{early}");
        assert_eq!(room_spots(&host).find("room").await?, None);
        world.open_build(1);
        creating.await??;
        assert_eq!(look(&room, "lines").await?, "x", "what was not there is not remembered");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Nor does whoever remembers the room that was there before reach one that is being made.
///
/// REQ: SP-084, RT-008
#[tokio::test(start_paused = true)]
async fn an_old_route_leads_to_no_room_that_is_being_made() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 12).await?;
        let owner = cluster.host("owner");
        let (one, old) = room(&host, "room", "first").await?;
        look(&one, "lines").await?;
        assert!(room_spots(&owner).close(&old).await?);
        world.holds("initialize");
        let creating = tokio::spawn(room_spots(&owner).get_or_create("room", text("second")).into_future());
        cluster.advance(Duration::from_secs(1)).await;
        assert_eq!(world.count("held in initialize"), 1);
        let early = one
            .look(text("lines"))
            .timeout(Duration::from_secs(1))
            .await
            .unwrap_err();
        assert_eq!(early.kind(), Some(ErrorKind::NotFound), "{early}");
        world.open_build(1);
        creating.await??;
        assert_eq!(look(&one, "lines").await?, "second");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-051, SP-058, SP-094, RT-008
#[tokio::test(start_paused = true)]
async fn an_old_reference_closes_nothing_and_calls_go_to_what_is_there() -> Tested {
    for place in EVERYWHERE {
        let (cluster, _, host) = placed(place, 9).await?;
        let (first, old) = room(&host, "room", "first").await?;
        assert_eq!(look(&first, "lines").await?, "first");
        // From elsewhere, so that the caller still remembers the first one.
        assert!(room_spots(&cluster.host("owner")).close(&old).await?);
        let (_, new) = room(&cluster.host("owner"), "room", "second").await?;
        assert_ne!(old.generation, new.generation);
        assert_eq!(look(&first, "lines").await?, "second");
        let stale = room_spots(&host).close(&old).await.unwrap_err();
        assert_eq!(stale.kind(), Some(ErrorKind::InvalidOperation), "{stale}");
        assert_eq!(look(&first, "lines").await?, "second");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-091, EX-103
#[tokio::test(start_paused = true)]
async fn a_room_that_closes_finishes_what_it_has_accepted_and_takes_no_more() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 10).await?;
        let (room, spot) = room(&host, "room", "x").await?;
        room.say(text("gate")).await?;
        world.until("say waits").await;
        room.say(text("accepted")).await?;
        cluster.advance(Duration::from_secs(1)).await;
        let closing = tokio::spawn(room_spots(&host).close(&spot).into_future());
        cluster.advance(Duration::from_secs(1)).await;
        let refused = look(&room, "lines").await.unwrap_err();
        assert_eq!(refused.kind(), Some(ErrorKind::Unavailable), "{refused}");
        assert_eq!(world.count("closing"), 0);
        world.open(1);
        assert!(closing.await??);
        let log = &world.log()[3..];
        assert_eq!(log[..2], ["room heard gate", "room heard accepted"]);
        assert!(log[2].starts_with("closing room ExplicitClose within 2"), "{log:?}");
        assert_eq!(log[3..], ["room dropped"]);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-091, SP-027, EX-72
#[tokio::test(start_paused = true)]
async fn a_room_closes_itself() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 11).await?;
        let (one, _) = room(&host, "one", "x").await?;
        assert_eq!(
            one.disband(Nothing {}).await?.text,
            "one is no more",
            "its reply was made before"
        );
        world.until("closing one").await;
        let (two, _) = room(&host, "two", "x").await?;
        two.say(text("close")).await?;
        world.until("closing two").await;
        cluster.advance(Duration::from_secs(1)).await;
        for id in ["one", "two"] {
            assert_eq!(room_spots(&host).find(id).await?, None);
            room(&host, id, "again").await?;
        }
        assert_eq!(world.count("room dropped"), 2);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-081
#[tokio::test(start_paused = true)]
async fn options_are_set_once_and_one_deadline_holds_for_all() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 12).await?;
        let rooms = room_spots(&host);
        let second = Duration::from_secs(1);
        let twice = rooms
            .create(text("x"))
            .timeout(second)
            .timeout(second)
            .await
            .unwrap_err();
        assert_eq!(twice.kind(), Some(ErrorKind::InvalidOperation), "{twice}");
        let twice = rooms
            .create(text("x"))
            .in_mesh("world")
            .in_mesh("world")
            .await
            .unwrap_err();
        assert_eq!(twice.kind(), Some(ErrorKind::InvalidOperation), "{twice}");
        let unknown = rooms.create(text("x")).in_mesh("elsewhere").await.unwrap_err();
        assert_eq!(unknown.kind(), Some(ErrorKind::NotFound), "{unknown}");
        let large = rooms.create(text(&"x".repeat(1 << 20))).await.unwrap_err();
        assert_eq!(large.kind(), None, "an argument error: {large}");
        assert_eq!(world.count("create"), 0);
        world.holds("create");
        let began = tokio::time::Instant::now();
        let late = rooms.create(text("x")).timeout(second).await.unwrap_err();
        assert_eq!(late.kind(), Some(ErrorKind::DeadlineExceeded), "{late}");
        assert_eq!(began.elapsed(), second);
        world.open_build(2);
        rooms.create(text("x")).in_mesh("world").timeout(second).await?;
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-023, SP-022
#[tokio::test(start_paused = true)]
async fn a_cart_is_made_by_no_manager() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 16).await?;
        let carts = zlink_runtime::rt::SpotRoute::new(&host, CART);
        let refused = carts.create::<(), ()>(()).await.unwrap_err();
        assert_eq!(
            refused.kind(),
            Some(ErrorKind::NotFound),
            "there is no such factory: {refused}"
        );
        let refused = carts.get_or_create::<(), ()>("cart", ()).await.unwrap_err();
        assert_eq!(refused.kind(), Some(ErrorKind::NotFound), "{refused}");
        assert_eq!(world.count("activate"), 0);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-025, SP-026
#[tokio::test(start_paused = true)]
async fn each_room_has_a_context_and_a_state_of_its_own() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 17).await?;
        let (one, old) = room(&host, "one", "x").await?;
        let (two, _) = room(&host, "two", "y").await?;
        one.say(text("mine")).await?;
        for (room, lines) in [(&one, "x,mine"), (&two, "y")] {
            assert_eq!(look(room, "lines").await?, lines);
            assert_eq!(
                look(room, "same").await?,
                "true",
                "what its factory was told is what its turns are told"
            );
        }
        assert!(room_spots(&host).close(&old).await?);
        let (again, new) = room(&host, "one", "z").await?;
        assert_ne!(old.generation, new.generation);
        assert_eq!(
            (
                look(&again, "lines").await?.as_str(),
                look(&again, "same").await?.as_str()
            ),
            ("z", "true")
        );
        assert_eq!(world.count("create one"), 2);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-092, SP-093
#[tokio::test(start_paused = true)]
async fn of_two_that_close_a_room_one_does() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 18).await?;
        let (one, spot) = room(&host, "one", "x").await?;
        world.holds("closing");
        let first = tokio::spawn(room_spots(&host).close(&spot).into_future());
        world.until("held in closing").await;
        let second = tokio::spawn(room_spots(&cluster.host("owner")).close(&spot).into_future());
        cluster.advance(Duration::from_secs(5)).await;
        assert!(!second.await??, "the other was first");
        assert!(!first.is_finished(), "it is not done before the room is gone");
        assert!(
            room_spots(&host).find("one").await?.is_some(),
            "nor is it there no more"
        );
        assert_eq!(
            look(&one, "lines").await.unwrap_err().kind(),
            Some(ErrorKind::Unavailable)
        );
        world.open_build(1);
        assert!(first.await??);
        assert_eq!(room_spots(&host).find("one").await?, None);
        assert_eq!(world.count("closing one"), 1);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-010
#[tokio::test(start_paused = true)]
async fn spots_need_no_link_of_their_own() -> Tested {
    for place in EVERYWHERE {
        let (cluster, _, host) = placed(place, 19).await?;
        let (connections, peers) = (
            cluster.network().connections(),
            host.mesh("world")?.status().peers.len(),
        );
        for number in 0..10 {
            let (one, _) = room(&host, &number.to_string(), "ticks").await?;
            one.say(text("hello")).await?;
            cart_spots(&host)
                .of(format!("cart-{number}"))
                .add(text("tea"))
                .activating()
                .await?;
        }
        cluster.advance(Duration::from_secs(5)).await;
        assert_eq!(cluster.network().connections(), connections);
        assert_eq!(host.mesh("world")?.status().peers.len(), peers);
        assert!(
            host.listener(zlink_runtime::ListenerKind::ClientServer, "world")
                .is_err()
        );
        cluster.shutdown().await?;
    }
    Ok(())
}

/// With its host, a Spot goes, and all that was shared with it.
///
/// REQ: NET-1007, SP-113
#[tokio::test]
async fn a_host_that_has_ended_lets_its_spots_go() -> Tested {
    on_every_store(async |store| {
        for ends in ["shutdown", "drop"] {
            let (world, held) = (World::new(), std::sync::Arc::new(()));
            let host = Host::builder()
                .location_store(store.open())
                .shared(world.clone())
                .shared(held.clone())
                .mesh("world", |mesh| {
                    // Its rooms hear the news: what subscribes is kept by what it subscribes with.
                    let mesh = mesh.take_part(ChannelName::from_static("room-events"));
                    mesh.object_server(|objects| {
                        let objects = objects.spot(hearing_room_spot::<Room>()).spot(cart_spot::<Cart>());
                        objects.entry(lobby_spot::<Lobby>())
                    })
                })
                .start()
                .await?;
            let (room, cart) = (format!("room {ends}"), format!("cart {ends}"));
            room_spots(&host).get_or_create(&room, text("first")).await?;
            room_spots(&host).of(&room).say(text("hello")).await?;
            cart_spots(&host).of(&cart).add(text("tea")).activating().await?;
            world.until(&format!("{cart} has tea")).await;
            if ends == "shutdown" {
                host.shutdown().await?;
            }
            drop(host);
            until_within(Duration::from_secs(20), "all of it is let go", || {
                std::sync::Arc::strong_count(&held) == 1 && world.count("dropped") == 2
            })
            .await;
        }
        Ok(())
    })
    .await
}
