//! What an ID names, in all meshes and for all kinds, and what each kind of Spot is to whoever would make or end one.

use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::id::SpotId;
use zlink_runtime::location::{BootClock, LocationTiming, Operation};
use zlink_runtime::rt::{self, SpotCreated};
use zlink_runtime::testing::authority::{Ask, Owner, Seen};

use crate::arena::*;
use crate::events::Events;
use crate::far;
use crate::kit::*;

/// REQ: SP-002, SP-082
#[tokio::test(start_paused = true)]
async fn an_id_is_one_in_all_meshes() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 150);
        let (with_store, shared) = (far::with_store(&cluster, "both"), world.clone());
        cluster.node("both", move |host| {
            let host = with_store(host).shared(shared.clone());
            let host = host.mesh("world", |mesh| mesh.listen("tcp://both:1").object_server(all));
            host.mesh("other", |mesh| mesh.listen("tcp://both:2").object_server(all))
        });
        start(&cluster).await?;
        let host = cluster.host("both");
        let rooms = room_spots(&host);
        let SpotCreated::Created(spot, _) = rooms.get_or_create("one", text("x")).in_mesh("world").await? else {
            panic!("it is new");
        };
        let again = rooms.get_or_create("one", text("y")).in_mesh("other").await?;
        assert_eq!(again, SpotCreated::Existing(spot));
        let cart = cart_spots(&host).of("two");
        cart.view(text("tea")).activating().in_mesh("world").await?;
        let other = rooms
            .get_or_create("two", text("x"))
            .in_mesh("other")
            .await
            .unwrap_err();
        assert_eq!(other.kind(), Some(ErrorKind::TypeMismatch), "{other}");
        let again = cart.view(text("milk")).activating().in_mesh("other").await?;
        assert_eq!(again.text, "tea,milk");
        assert_eq!(look(&rooms.of("one"), "lines").await?, "x");
        assert_eq!((world.count("create "), world.count("activate ")), (1, 1));
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-006
#[tokio::test(start_paused = true)]
async fn the_form_of_an_entry_spot_is_refused_before_the_store_is_asked() -> Tested {
    let entry = "owner-entry-8f14e45f-ceea-467f-9b1d-3c5b4a1d2e3f";
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 151).await?;
        let (rooms, cart) = (room_spots(&host), cart_spots(&host).of(entry));
        let asked = || {
            ["owner", "caller"].map(|name| {
                let faults = cluster.store_faults(name);
                [Operation::Read, Operation::Write].map(|operation| faults.begun(operation))
            })
        };
        let before = asked();
        let refused = [
            rooms.get_or_create(entry, text("x")).await.unwrap_err(),
            cart.view(text("x")).activating().await.unwrap_err(),
            cart.add(text("x")).activating().await.unwrap_err(),
        ];
        for refused in refused {
            assert_eq!(
                (refused.kind(), refused.execution()),
                (Some(ErrorKind::InvalidOperation), Execution::NotExecuted),
                "{refused}"
            );
        }
        assert_eq!(asked(), before, "{place:?}");
        assert_eq!(world.log().len(), 0);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Chance would have to give an ID twice; here the same seed does.
///
/// REQ: SP-005
#[tokio::test(start_paused = true)]
async fn a_node_whose_entry_spot_would_have_the_id_of_another_does_not_start() -> Tested {
    for provider in PROVIDERS {
        let mut drawn: Option<String> = None;
        for _ in 0..2 {
            let (cluster, world) = on(provider, 152);
            serves_with(&cluster, &world, "owner", |objects| {
                objects.entry(lobby_spot::<Lobby>())
            });
            let (store, _) = far::observer(&cluster);
            let other = Owner::start(store, LocationTiming::default(), BootClock::of_tokio(), "other", 1).await?;
            let Some(id) = &drawn else {
                cluster.start("owner").await?;
                drawn = world.log()[0].strip_prefix("start ").map(str::to_owned);
                other.stop().await;
                cluster.shutdown().await?;
                continue;
            };
            let reserved = other.reserve(Ask::new(&SpotId::new(id)?, 1)).await;
            let Seen::Reserved(reservation) = reserved else {
                panic!("{reserved:?}");
            };
            assert!(matches!(other.commit(reservation, b"").await, Seen::Ready(_)));
            let failed = cluster.start("owner").await.unwrap_err();
            assert!(failed.to_string().contains("its ID is taken"), "{failed}");
            assert_eq!(world.log().len(), 0, "nor does it draw another: {:?}", world.log());
            other.stop().await;
        }
    }
    Ok(())
}

/// What the table of kinds (SP-020) says of who makes and who ends them.
///
/// REQ: SP-022, SP-023, SP-033, SP-034
#[tokio::test(start_paused = true)]
async fn each_kind_is_made_and_ended_as_it_is_and_by_nobody_else() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed_with(place, 153, |cluster, world| {
            serves_with(cluster, world, "owner", |objects| {
                all(objects).entry(lobby_spot::<Lobby>())
            });
        })
        .await?;
        let entry = world.log()[0].strip_prefix("start ").unwrap().to_owned();
        let (_, room) = room(&host, "room", "x").await?;
        cart_spots(&host).of("cart").view(text("tea")).activating().await?;
        let found = async |id: &str| {
            let found = host.find_spot(&SpotId::new(id)?).await?;
            Ok::<_, Failure>(found.ok_or("it is not there")?.reference)
        };
        let (lobby, cart) = (found(&entry).await?, found("cart").await?);
        let routes = [ROOM, CART, LOBBY].map(|of| rt::SpotRoute::new(&host, of));
        for (route, others) in [
            (&routes[0], [&lobby, &cart]),
            (&routes[1], [&lobby, &room]),
            (&routes[2], [&cart, &room]),
        ] {
            for other in others {
                let refused = route.close(other).await.unwrap_err();
                assert_eq!(refused.kind(), Some(ErrorKind::TypeMismatch), "{refused}");
            }
        }
        for (route, own) in [(&routes[1], &cart), (&routes[2], &lobby)] {
            let refused = route.close(own).await.unwrap_err();
            assert_eq!(refused.kind(), Some(ErrorKind::TypeMismatch), "{refused}");
            let refused = route.create::<(), ()>(()).await.unwrap_err();
            assert_eq!(refused.kind(), Some(ErrorKind::NotFound), "{refused}");
        }
        assert_eq!(world.count("closing"), 0);
        let greeted = lobby_spots(&host).of(&entry).greet(text("you")).await?;
        assert_eq!(greeted.text, format!("{entry} greets you"));
        assert_eq!(cart_spots(&host).of("cart").view(text("")).await?.text, "tea");
        cluster.stop("owner").await?;
        for id in ["room", "cart", &entry] {
            assert_eq!(
                world.count(&format!("closing {id} HostShutdown")),
                1,
                "{:?}",
                world.log()
            );
        }
        cluster.shutdown().await?;
    }
    Ok(())
}

/// What is there is what a call finds, whatever it would have made.
///
/// REQ: SP-068, SP-057
#[tokio::test(start_paused = true)]
async fn an_intent_changes_nothing_of_what_is_there() -> Tested {
    for place in EVERYWHERE {
        let events = Events::collect();
        let (cluster, world, host) = placed(place, 154).await?;
        let (one, _) = room(&host, "one", "x").await?;
        let cart = cart_spots(&host).of("one");
        let refused = cart.view(text("tea")).activating().await.unwrap_err();
        assert_eq!(
            (refused.kind(), refused.execution()),
            (Some(ErrorKind::NotFound), Execution::NotExecuted),
            "{refused}"
        );
        cart.add(text("tea")).activating().await?;
        cluster.advance(std::time::Duration::from_secs(1)).await;
        let both = [
            "zlink.dispatch_error",
            "of the type arena.room",
            "of the type arena.cart",
        ];
        assert_eq!(events.count(&both), 2, "{place:?}: a warning names both types");
        assert_eq!(cluster.host("owner").status().spot_drops.no_handler, 1);
        // And where it is not known yet that there is one.
        cluster.advance(std::time::Duration::from_secs(16)).await;
        let refused = cart.view(text("tea")).activating().await.unwrap_err();
        assert_eq!(refused.kind(), Some(ErrorKind::NotFound), "{refused}");
        assert_eq!(look(&one, "lines").await?, "x");
        assert_eq!(world.count("activate"), 0);
        cluster.shutdown().await?;
    }
    Ok(())
}
