//! Where two things meet that each go well alone: an end within an end, what is left of a race, what users drop.

use std::time::Duration;

use zlink_runtime::error::ErrorKind;
use zlink_runtime::id::SpotId;
use zlink_runtime::location::{
    Batch, BootClock, Fault, Key, LocationStore, LocationTiming, Mutation, Operation, Scan, Scanned, Written,
};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{self, CloseReason, Instant};
use zlink_runtime::testing::authority::{Owner, Seen};

use crate::arena::*;
use crate::far;
use crate::kit::*;

const SECOND: Duration = Duration::from_secs(1);

/// A host that stops does not take a room away from under its `on_closing`, which another close has begun.
///
/// REQ: SP-034, SP-091, LS-001
#[tokio::test(start_paused = true)]
async fn a_host_that_stops_waits_for_a_close_that_was_under_way() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 300).await?;
        serves(&cluster, &world, "other");
        let (_, spot) = room(&host, "one", "x").await?;
        cluster.start("other").await?;
        cluster.advance(3 * SECOND).await;
        world.holds("closing");
        let closing = tokio::spawn(room_spots(&host).close(&spot).into_future());
        world.until("held in closing").await;
        let stopping = tokio::spawn(cluster.stop("owner"));
        cluster.advance(5 * SECOND).await;
        let there = cluster.host("other").find_spot(&SpotId::new("one")?).await?;
        assert_eq!(there.map(|there| there.reference), Some(spot), "it is closed still");
        assert!(!stopping.is_finished());
        world.open_build(1);
        stopping.await??;
        assert_eq!(world.count("room dropped"), 1, "{:?}", world.log());
        assert_eq!(world.count("closing one"), 1);
        drop(closing);
        let (again, _) = room(&cluster.host("other"), "one", "y").await?;
        assert_eq!(look(&again, "lines").await?, "y");
        world.open_build(1);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Nor for longer than its drain lasts.
///
/// REQ: SP-036
#[tokio::test(start_paused = true)]
async fn a_close_under_way_that_does_not_end_ends_with_its_host() -> Tested {
    for place in LOCAL {
        let (cluster, world, host) = placed(place, 301).await?;
        let (_, spot) = room(&host, "one", "x").await?;
        world.holds("closing");
        drop(tokio::spawn(
            room_spots(&host).close(&spot).timeout(600 * SECOND).into_future(),
        ));
        world.until("held in closing").await;
        cluster.advance(SECOND).await;
        let began = Instant::now();
        let stopped = cluster.stop("owner").await;
        assert!(began.elapsed() <= 35 * SECOND, "{:?}", began.elapsed());
        world.open_build(1);
        cluster.advance(5 * SECOND).await;
        assert_eq!(world.count("closing one"), 1, "{stopped:?}");
    }
    Ok(())
}

/// Who lost a race sends on to the winner what it is sent. Once the winner's host is gone, and the cart with it, the loser
/// makes it.
///
/// REQ: SP-142, SP-068
#[tokio::test(start_paused = true)]
async fn who_lost_a_race_can_make_it_once_the_winner_has_gone() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 302);
        for name in ["loser", "winner"] {
            serves_with(&cluster, &world, name, move |objects| {
                all(objects).placement_weight(if name == "winner" { 100 } else { 0 })
            });
        }
        calls(&cluster, "caller");
        start(&cluster).await?;
        let carts = cart_spots(&cluster.host("caller"));
        let faults = cluster.store_faults("caller");
        faults.every(Operation::Read, Fault::DelayAnswer(SECOND / 3));
        let making = tokio::spawn(carts.of("cart").view(text("second")).activating().into_future());
        cluster.advance(SECOND / 9).await;
        let won = cart_spots(&cluster.host("winner")).of("cart");
        won.add(text("first")).activating().await?;
        world.until("cart has first").await;
        for (name, weight) in [("winner", 0), ("loser", 100)] {
            cluster.host(name).mesh("world")?.set_placement_weight(weight)?;
        }
        assert_eq!(making.await??.text, "first,second");
        faults.heal();
        cluster.stop("winner").await?;
        cluster.advance(3 * SECOND).await;
        assert_eq!(world.count("closing cart HostShutdown"), 1);
        // What led to the winner may be wrong for one call.
        let mut told = carts.of("cart").view(text("anew")).activating().await;
        if told.is_err() {
            told = carts.of("cart").view(text("anew")).activating().await;
        }
        assert_eq!(told?.text, "anew", "{:?}", world.log());
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A cart that panics as it is dropped, where its ID says so.
struct Frail(Option<Cart>, bool);

impl Drop for Frail {
    fn drop(&mut self) {
        drop(self.0.take());
        assert!(!self.1, "as told");
    }
}

impl Frail {
    fn cart(&mut self) -> &mut Cart {
        self.0.as_mut().unwrap()
    }
}

impl CartSpot for Frail {
    async fn activate(context: CartContext) -> Result<Self, HandlerError> {
        let frail = context.id().as_str().starts_with("frail");
        Ok(Self(Some(Cart::activate(context).await?), frail))
    }

    async fn on_closing(
        &mut self,
        turn: &mut CartTurn<'_>,
        reason: CloseReason,
        deadline: Instant,
    ) -> Result<(), HandlerError> {
        self.cart().on_closing(turn, reason, deadline).await
    }

    async fn add(&mut self, turn: &mut CartTurn<'_>, message: Line) -> Result<(), HandlerError> {
        self.cart().add(turn, message).await
    }

    async fn view(&mut self, turn: &mut CartTurn<'_>, request: Line) -> Result<Line, HandlerError> {
        self.cart().view(turn, request).await
    }
}

/// What was taken from a host is dropped there, whatever that does; the host goes on with the rest.
///
/// REQ: LS-033, LS-036
#[tokio::test(start_paused = true)]
async fn a_host_outlives_the_drop_of_what_was_taken_from_it() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = placed_with(place, 303, |cluster, world| {
            serves_with(cluster, world, "owner", |objects| objects.spot(cart_spot::<Frail>()));
        })
        .await?;
        let carts = cart_spots(&host);
        for id in ["frail", "kept"] {
            carts.of(id).view(text("a")).activating().await?;
        }
        let frail = carts.find("frail").await?.unwrap();
        cluster.store_faults("owner").cut();
        cluster.advance(20 * SECOND).await;
        assert!(carts.release(&frail).timeout(60 * SECOND).await?);
        cluster.store_faults("owner").heal();
        cluster.advance(30 * SECOND).await;
        assert_eq!(world.count("cart dropped"), 1, "{:?}", world.log());
        assert_eq!(carts.of("kept").view(text("b")).await?.text, "a,b");
        let anew = carts.of("frail").view(text("c")).activating().await?;
        assert_eq!(anew.text, "c");
        cluster.shutdown().await.ok();
    }
    Ok(())
}

/// A first message that its Spot does not handle has had its end, too: the record does not keep it.
///
/// REQ: SP-057, LS-045
#[tokio::test(start_paused = true)]
async fn a_first_message_that_nobody_handles_is_not_kept() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 304).await?;
        let (store, _) = far::observer(&cluster);
        let observer = Owner::start(store, LocationTiming::default(), BootClock::of_tokio(), "observer", 1).await?;
        let cart = rt::SpotRoute::new(&host, CART).of("cart");
        let unknown = const { rt::Method::request("arena.cart.unknown", rt::None) };
        let call = cart.activates(cart.request::<Line, Line>(unknown, text("x")));
        let told = call.activating().await.unwrap_err();
        assert_eq!(told.kind(), Some(ErrorKind::NotFound), "{told}");
        cluster.advance(3 * SECOND).await;
        match observer.resolve(&SpotId::new("cart")?).await {
            Seen::Ready(spot) => assert_eq!(spot.inbox().len(), 0, "{:?}", world.log()),
            other => assert!(matches!(other, Seen::Missing), "{other:?}"),
        }
        cluster.shutdown().await?;
    }
    Ok(())
}

async fn written(store: &dyn LocationStore, mutations: Vec<Mutation>) {
    let written = store.write(&Batch::new([], mutations).unwrap()).await.unwrap();
    assert!(matches!(written, Written::Applied { .. }));
}

async fn keys(store: &dyn LocationStore, prefix: &str) -> Vec<Key> {
    let Scanned::Page(page) = store.scan(&Scan::new(prefix, 1000).unwrap()).await.unwrap() else {
        panic!("a first page is never expired");
    };
    page.entries.into_iter().map(|(key, _)| key).collect()
}

/// However much was taken from a host while it was away: it reads a page in time, and then the next.
///
/// REQ: LS-036, LS-105
#[tokio::test(start_paused = true)]
async fn a_host_comes_back_that_has_lost_more_than_one_read_tells() -> Tested {
    let (cluster, world) = on(Provider::Memory, 305);
    serves(&cluster, &world, "owner");
    start(&cluster).await?;
    let host = cluster.host("owner");
    let (one, _) = room(&host, "one", "x").await?;
    let (store, _) = far::observer(&cluster);
    let owner = keys(&*store, "lease/").await[0].as_str().replace("lease/", "");
    let faults = cluster.store_faults("owner");
    faults.cut();
    cluster.advance(12 * SECOND).await;
    for page in 0..6 {
        let put = |number: u32| {
            let key = Key::new(format!("taken/{owner}/s:5:{page}{number:04}")).unwrap();
            Mutation::put(key, vec![0])
        };
        written(&*store, (0..1000).map(put).collect()).await;
    }
    faults.heal();
    faults.every(Operation::Scan, Fault::DelayAnswer(SECOND));
    cluster.advance(60 * SECOND).await;
    assert_eq!(look(&one, "lines").await?, "x");
    faults.heal();
    cluster.shutdown().await?;
    Ok(())
}

/// What cannot be read of a dead host's Spots does not keep its other creations from being ended.
///
/// REQ: LS-044
#[tokio::test(start_paused = true)]
async fn one_record_that_cannot_be_read_keeps_no_other_creation() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = placed(place, 306).await?;
        world.holds("activate");
        for id in ["bad", "cart"] {
            cart_spots(&host).of(id).add(text("x")).activating().await?;
        }
        cluster.advance(SECOND).await;
        assert_eq!(world.count("held in activate"), 2);
        cluster.kill("owner");
        let (store, _) = far::observer(&cluster);
        let bad = Mutation::put(Key::new("s:3:bad")?, vec![0]);
        written(&*store, vec![bad]).await;
        cluster.advance(60 * SECOND).await;
        assert_eq!(
            host.find_spot(&SpotId::new("cart")?).await?.map(|found| found.state),
            None
        );
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A room whose reply is too long, and that panics as it is dropped for it.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("as told");
    }
}

async fn bomb(_: RoomContext, request: Line) -> Result<rt::Created<Bomb, Line>, HandlerError> {
    match request.text.as_str() {
        "reject" => Ok(rt::Created::Rejected(request)),
        _ => Ok(rt::Created::Accepted(Bomb, text(&"y".repeat(70_000)))),
    }
}

/// However a creation ends, its ID is free then.
///
/// REQ: SP-084
#[tokio::test(start_paused = true)]
async fn a_creation_that_panics_at_its_very_end_leaves_its_id_free() -> Tested {
    for place in EVERYWHERE {
        let (cluster, _, host) = placed_with(place, 307, |cluster, world| {
            serves_with(cluster, world, "owner", |objects| {
                let rooms = rt::SpotFactory::user(ROOM, bomb);
                objects.spot(rooms.relocation(rt::Relocation::Disabled).build())
            });
        })
        .await?;
        let rooms = room_spots(&host);
        let told = rooms.get_or_create("one", text("x")).await.unwrap_err();
        assert_eq!(told.kind(), Some(ErrorKind::InternalFailure), "{told}");
        let again = rooms.get_or_create("one", text("reject")).timeout(5 * SECOND).await?;
        assert_eq!(again, rt::SpotCreated::Rejected(text("reject")));
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A cart that keeps what lives as long as it does.
struct Knowing {
    cart: Cart,
    context: CartContext,
}

impl CartSpot for Knowing {
    async fn activate(context: CartContext) -> Result<Self, HandlerError> {
        let cart = Cart::activate(context.clone()).await?;
        Ok(Self { cart, context })
    }

    async fn add(&mut self, turn: &mut CartTurn<'_>, message: Line) -> Result<(), HandlerError> {
        self.cart.add(turn, message).await
    }

    async fn view(&mut self, turn: &mut CartTurn<'_>, request: Line) -> Result<Line, HandlerError> {
        assert_eq!(turn.id(), self.context.id());
        self.cart.view(turn, request).await
    }
}

/// However a Spot ends, its state does; that it keeps its own context keeps neither.
///
/// REQ: LS-033
#[tokio::test(start_paused = true)]
async fn a_state_that_keeps_its_context_ends_with_its_spot() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = placed_with(place, 308, |cluster, world| {
            serves_with(cluster, world, "owner", |objects| objects.spot(cart_spot::<Knowing>()));
        })
        .await?;
        let carts = cart_spots(&host);
        for id in ["taken", "busy", "kept"] {
            carts.of(id).view(text("a")).activating().await?;
        }
        carts.of("busy").add(text("gate")).await?;
        cluster.advance(SECOND).await;
        cluster.store_faults("owner").cut();
        cluster.advance(20 * SECOND).await;
        for id in ["taken", "busy"] {
            let spot = carts.find(id).await?.unwrap();
            assert!(carts.release(&spot).timeout(60 * SECOND).await?);
        }
        assert_eq!(world.count("cart dropped"), 0);
        cluster.store_faults("owner").heal();
        cluster.advance(30 * SECOND).await;
        assert_eq!(world.count("cart dropped"), 2, "what was taken: {:?}", world.log());
        cluster.kill("owner");
        cluster.advance(SECOND).await;
        assert_eq!(world.count("cart dropped"), 3, "and what was left: {:?}", world.log());
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A cart whose end does not come by itself, and whose drop panics.
///
/// REQ: SP-034, SP-142
#[tokio::test(start_paused = true)]
async fn a_close_that_is_late_outlives_the_drop_of_what_it_gave_up() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed_with(place, 310, |cluster, world| {
            serves_with(cluster, world, "owner", |objects| {
                objects.spot(cart_spot::<Frail>()).instance_idle_timeout(10 * SECOND)
            });
        })
        .await?;
        let frail = cart_spots(&host).of("frail");
        world.holds("closing");
        frail.view(text("a")).activating().await?;
        world.until("held in closing").await;
        cluster.advance(60 * SECOND).await;
        assert_eq!(world.count("cart dropped"), 1, "{:?}", world.log());
        assert_eq!(frail.view(text("b")).activating().await?.text, "b");
        world.open_build(10);
        cluster.shutdown().await.ok();
    }
    Ok(())
}

/// A host that may run nothing as it stops drops its states all the same, also those that keep their context.
///
/// REQ: LS-033, SP-036
#[tokio::test(start_paused = true)]
async fn a_host_that_stops_without_a_lease_drops_its_states() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = placed_with(place, 311, |cluster, world| {
            serves_with(cluster, world, "owner", |objects| objects.spot(cart_spot::<Knowing>()));
        })
        .await?;
        cart_spots(&host).of("cart").view(text("a")).activating().await?;
        cluster.store_faults("owner").cut();
        cluster.advance(20 * SECOND).await;
        let stopped = cluster.stop("owner").await;
        assert_eq!(world.count("closing cart"), 0, "it may run nothing: {stopped:?}");
        assert_eq!(world.count("cart dropped"), 1, "{:?}", world.log());
        cluster.shutdown().await.ok();
    }
    Ok(())
}
