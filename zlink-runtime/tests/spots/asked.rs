//! Whoever asks for a Spot that others make, and what the store knows of what one is made by.

use std::time::Duration;

use zlink_runtime::error::{CallError, ErrorKind, Execution};
use zlink_runtime::id::SpotId;
use zlink_runtime::location::{BootClock, Fault, LocationTiming, Operation};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::SpotCreated;
use zlink_runtime::testing::authority::{Owner, Seen};

use crate::arena::*;
use crate::carts::as_a_cart;
use crate::far;
use crate::kit::*;

const SECOND: Duration = Duration::from_secs(1);

/// REQ: SP-083, SP-084
#[tokio::test(start_paused = true)]
async fn who_waits_for_a_room_that_is_rejected_asks_with_its_own_request() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 160).await?;
        world.holds("create");
        let rooms = room_spots(&host);
        let asks = |motd| tokio::spawn(rooms.get_or_create("room", text(motd)).into_future());
        let first = asks("reject");
        world.until("held in create").await;
        let second = asks("second");
        let late = rooms.get_or_create("room", text("late")).timeout(SECOND);
        let late = late.await.unwrap_err();
        assert_eq!(
            (late.kind(), late.execution()),
            (Some(ErrorKind::DeadlineExceeded), Execution::NotExecuted),
            "{late}"
        );
        assert_eq!(world.count("create "), 1, "they wait: {:?}", world.log());
        world.open_build(2);
        assert_eq!(first.await??, SpotCreated::Rejected(text("no")));
        let SpotCreated::Created(spot, reply) = second.await?? else {
            panic!("nobody else has made it");
        };
        assert_eq!(reply.text, "created with second");
        assert_eq!(
            rooms.get_or_create("room", text("third")).await?,
            SpotCreated::Existing(spot)
        );
        assert_eq!(world.count("create "), 2);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-082, SP-083
#[tokio::test(start_paused = true)]
async fn what_is_being_made_as_something_else_is_not_waited_for() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 161).await?;
        world.holds("activate");
        cart_spots(&host).of("thing").add(text("tea")).activating().await?;
        world.until("held in activate").await;
        let began = tokio::time::Instant::now();
        let other = room_spots(&host).get_or_create("thing", text("x")).await.unwrap_err();
        assert_eq!(
            (other.kind(), other.execution()),
            (Some(ErrorKind::TypeMismatch), Execution::NotExecuted),
            "{other}"
        );
        assert!(began.elapsed() < SECOND, "{:?}", began.elapsed());
        world.open_build(1);
        world.until("thing has tea").await;
        assert_eq!(world.count("create "), 0);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// The node is linked still, and may be listed; but who asks has just proved that its host does not live.
///
/// REQ: SP-062, LS-044, LS-052
#[tokio::test(start_paused = true)]
async fn nothing_is_made_on_a_node_whose_host_was_just_proved_dead() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 162);
        for (name, weight) in [("owner", 10_000), ("other", 1)] {
            serves_with(&cluster, &world, name, move |objects| {
                all(objects).placement_weight(weight)
            });
        }
        for name in ["caller", "stranger"] {
            calls(&cluster, name);
        }
        start(&cluster).await?;
        world.holds("activate");
        let carts = cart_spots(&cluster.host("caller"));
        let ids: Vec<_> = (0..4).map(|number| format!("cart-{number}")).collect();
        for id in &ids {
            carts.of(id).add(text("lost")).activating().await?;
        }
        cluster.advance(SECOND).await;
        assert_eq!(world.count("held in activate"), ids.len());
        let strange = cart_spots(&cluster.host("stranger"));
        for id in &ids {
            assert!(cluster.host("stranger").find_spot(&SpotId::new(id)?).await?.is_some());
        }
        cluster.store_faults("owner").cut();
        world.open_build(100);
        cluster.advance(12 * SECOND).await;
        for id in &ids {
            let viewed = strange.of(id).view(text("item")).activating().timeout(60 * SECOND);
            assert_eq!(viewed.await?.text, "item");
            let place = strange.of(id).view(text("where")).await?.text;
            assert!(place.starts_with("other"), "{id}: {place}");
        }
        cluster.store_faults("owner").heal();
        cluster.shutdown().await?;
    }
    Ok(())
}

/// What a cart is made by stands in the store before it is made, and until it has been handled.
///
/// REQ: SP-031, LS-014
#[tokio::test(start_paused = true)]
async fn the_first_message_is_in_the_store_until_it_is_handled() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 163).await?;
        let (store, _) = far::observer(&cluster);
        let observer = Owner::start(store, LocationTiming::default(), BootClock::of_tokio(), "observer", 1).await?;
        let inbox = async || match observer.resolve(&SpotId::from_static("cart")).await {
            Seen::Creating(spot) => ("creating", spot.inbox()),
            Seen::Ready(spot) => ("ready", spot.inbox()),
            other => panic!("{other:?}"),
        };
        let holds = |inbox: &[u8]| inbox.windows(11).any(|bytes| bytes == b"gate needle");
        world.holds("activate");
        let cart = cart_spots(&host).of("cart");
        cart.add(text("gate needle")).activating().await?;
        world.until("held in activate").await;
        let (state, bytes) = inbox().await;
        assert_eq!((state, holds(&bytes)), ("creating", true));
        world.open_build(1);
        cluster.advance(SECOND).await;
        let (state, bytes) = inbox().await;
        assert_eq!((state, holds(&bytes)), ("ready", true), "it is being handled");
        world.open(1);
        world.until("cart has gate needle").await;
        cluster.advance(SECOND).await;
        let (state, bytes) = inbox().await;
        assert_eq!((state, bytes.len()), ("ready", 0));
        observer.stop().await;
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-062
#[tokio::test(start_paused = true)]
async fn a_node_makes_no_more_carts_than_it_may() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed_with(place, 164, |cluster, world| {
            serves_with(cluster, world, "owner", |objects| all(objects).capacity(CART, 2));
        })
        .await?;
        let carts = cart_spots(&host);
        for id in ["one", "two"] {
            carts.of(id).view(text("tea")).activating().await?;
        }
        for _ in 0..2 {
            let full = carts.of("three").view(text("tea")).activating().await.unwrap_err();
            assert_eq!(
                (full.kind(), full.execution()),
                (Some(ErrorKind::CapacityExceeded), Execution::NotExecuted),
                "{full}"
            );
        }
        assert_eq!(world.count("activate "), 2);
        carts.of("one").add(text("close")).await?;
        cluster.advance(SECOND).await;
        assert_eq!(carts.of("three").view(text("tea")).activating().await?.text, "tea");
        // Where no node takes any, nobody is asked.
        cluster.host("owner").mesh("world")?.set_placement_weight(0)?;
        cluster.advance(SECOND).await;
        let none = carts.of("four").view(text("tea")).activating().await.unwrap_err();
        assert_eq!(
            (none.kind(), none.execution()),
            (Some(ErrorKind::CapacityExceeded), Execution::NotExecuted),
            "{none}"
        );
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-069
#[tokio::test(start_paused = true)]
async fn what_its_dead_host_had_made_is_not_made_anew_by_a_call() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = placed(place, 165).await?;
        let cart = cart_spots(&host).of("cart");
        cart.view(text("tea")).activating().await?;
        let spot = cart_spots(&host).find("cart").await?.unwrap();
        serves(&cluster, &world, "other");
        cluster.start("other").await?;
        cluster.advance(40 * SECOND).await;
        cluster.kill("owner");
        for second in 0..40 {
            let began = tokio::time::Instant::now();
            let viewed = cart.view(text("milk")).activating().into_future();
            let added = cart.add(text("milk")).activating().into_future();
            for lost in [
                tokio::time::timeout(5 * SECOND, viewed).await?.unwrap_err(),
                tokio::time::timeout(5 * SECOND, added).await?.unwrap_err(),
            ] {
                assert_eq!(lost.kind(), Some(ErrorKind::Unavailable), "after {second} s: {lost}");
            }
            assert!(began.elapsed() < 5 * SECOND, "after {second} s: {:?}", began.elapsed());
            cluster.advance(SECOND).await;
        }
        assert_eq!(world.count("activate"), 1, "{:?}", world.log());
        assert!(cart_spots(&host).release(&spot).await?);
        assert_eq!(cart.view(text("anew")).activating().await?.text, "anew");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// What its caller has given up is not begun, however much of its time the look for the room has taken.
///
/// REQ: SP-055, MSG-107
#[tokio::test(start_paused = true)]
async fn a_request_that_is_late_does_not_run() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 166).await?;
        let (one, _) = room(&host, "one", "x").await?;
        one.say(text("gate")).await?;
        world.until("say waits").await;
        // So that it is looked for again.
        cluster.advance(16 * SECOND).await;
        let faults = cluster.store_faults(place.caller());
        faults.every(Operation::Read, Fault::DelayAnswer(Duration::from_millis(700)));
        let began = tokio::time::Instant::now();
        let late = one.look(text("gate")).timeout(2 * SECOND).await.unwrap_err();
        assert_eq!(
            (late.kind(), late.execution(), began.elapsed()),
            (Some(ErrorKind::DeadlineExceeded), Execution::Unknown, 2 * SECOND),
            "{late}"
        );
        faults.heal();
        cluster.advance(Duration::from_millis(300)).await;
        assert_eq!(cluster.host("owner").status().jobs.queued, 1, "it is in the queue");
        world.open(1);
        cluster.advance(SECOND).await;
        assert_eq!((world.count("one heard gate"), world.count("look waits")), (1, 0));
        assert_eq!(look(&one, "lines").await?, "x,gate");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A cart that notes that it is initialised.
struct Noting(Cart, World);

impl CartSpot for Noting {
    async fn activate(context: CartContext) -> Result<Self, HandlerError> {
        let world = context.shared::<World>().cloned();
        let world = world.ok_or_else(|| HandlerError::new("no world was shared"))?;
        Ok(Self(Cart::activate(context).await?, world))
    }

    async fn on_initialize(&mut self, turn: &mut CartTurn<'_>) -> Result<(), HandlerError> {
        self.1.note(format!("initialize {} as {:?}", turn.id(), turn.kind()));
        Ok(())
    }

    as_a_cart!();
}

/// REQ: SP-030, SP-031
#[tokio::test(start_paused = true)]
async fn what_is_new_is_made_initialised_and_then_messaged() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed_with(place, 167, |cluster, world| {
            serves_with(cluster, world, "owner", |objects| {
                objects.spot(room_spot::<Room>()).spot(cart_spot::<Noting>())
            });
        })
        .await?;
        room(&host, "room", "x").await?.0.say(text("hello")).await?;
        world.until("room heard hello").await;
        cart_spots(&host).of("cart").add(text("tea")).activating().await?;
        world.until("cart has tea").await;
        assert_eq!(
            world.log(),
            [
                "create room on owner",
                "initialize room",
                "room heard hello",
                "activate cart",
                "initialize cart as Send",
                "cart has tea"
            ]
        );
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-081
#[tokio::test(start_paused = true)]
async fn a_request_that_is_too_large_is_refused_before_the_store_is_asked() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 168).await?;
        let rooms = room_spots(&host);
        let asked = || ["owner", "caller"].map(|name| cluster.store_faults(name).begun(Operation::Read));
        let before = asked();
        let long = text(&"x".repeat(1 << 20));
        for refused in [
            rooms.create(long.clone()).await.unwrap_err(),
            rooms.get_or_create("one", long).await.unwrap_err(),
        ] {
            assert!(matches!(refused, CallError::Argument(_)), "{refused}");
            assert!(refused.to_string().contains("at most 1048576"), "{refused}");
        }
        assert_eq!(asked(), before);
        assert_eq!(world.log().len(), 0);
        // What fits is a request as any other.
        room(&host, "one", &"x".repeat((1 << 20) - 64)).await?;
        cluster.shutdown().await?;
    }
    Ok(())
}
