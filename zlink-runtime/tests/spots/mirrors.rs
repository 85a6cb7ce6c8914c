//! What a Spot does to itself, and what of it goes on elsewhere: its own end, its own beginning, its drops.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use zlink_runtime::prelude::*;
use zlink_runtime::rt::{self, CloseReason, Instant};

use crate::arena::*;
use crate::carts::as_a_cart;
use crate::kit::*;

const SECOND: Duration = Duration::from_secs(1);

/// A room that closes itself by its manager.
struct Plain;

async fn plain(_: RoomContext, request: Line) -> Result<rt::Created<Plain, Line>, HandlerError> {
    Ok(rt::Created::Accepted(Plain, request))
}

async fn close_itself(_: &mut Plain, turn: &mut RoomTurn<'_>, request: Line) -> Result<Line, HandlerError> {
    if request.text != "close" {
        return Ok(text("well"));
    }
    let own = turn.reference().clone();
    Ok(match room_spots(turn).close(&own).await {
        Ok(closed) => text(&format!("{closed}")),
        Err(error) => text(&format!("{:?} {:?}", error.kind().unwrap(), error.execution())),
    })
}

/// A turn that waits for the end of its own Spot waits for itself.
///
/// REQ: SP-045, SP-090, EX-72
#[tokio::test(start_paused = true)]
async fn a_room_cannot_wait_for_its_own_end() -> Tested {
    for place in EVERYWHERE {
        let (cluster, _, host) = placed_with(place, 320, |cluster, world| {
            serves_with(cluster, world, "owner", |objects| {
                let rooms = rt::SpotFactory::user(ROOM, plain).request("arena.room.look", close_itself);
                objects.spot(rooms.relocation(rt::Relocation::Disabled).build())
            });
        })
        .await?;
        let (one, _) = room(&host, "one", "x").await?;
        let began = Instant::now();
        let told = one.look(text("close")).timeout(100 * SECOND).await?;
        assert_eq!(told.text, "InvalidOperation NotExecuted", "{place:?}");
        assert!(began.elapsed() < SECOND, "{:?}", began.elapsed());
        assert_eq!(look(&one, "still").await?, "well");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A cart that closes as it begins.
struct Brief(Cart);

impl CartSpot for Brief {
    async fn activate(context: CartContext) -> Result<Self, HandlerError> {
        Ok(Self(Cart::activate(context).await?))
    }

    async fn on_initialize(&mut self, turn: &mut CartTurn<'_>) -> Result<(), HandlerError> {
        turn.close();
        Ok(())
    }

    async fn on_closing(
        &mut self,
        turn: &mut CartTurn<'_>,
        reason: CloseReason,
        deadline: Instant,
    ) -> Result<(), HandlerError> {
        self.0.on_closing(turn, reason, deadline).await
    }

    as_a_cart!();
}

/// What closes as it begins takes what it was made by, and ends.
///
/// REQ: SP-027, SP-091
#[tokio::test(start_paused = true)]
async fn a_cart_that_closes_as_it_begins_does() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed_with(place, 321, |cluster, world| {
            serves_with(cluster, world, "owner", |objects| objects.spot(cart_spot::<Brief>()));
        })
        .await?;
        let cart = cart_spots(&host).of("cart");
        assert_eq!(cart.view(text("a")).activating().await?.text, "a");
        cluster.advance(SECOND).await;
        assert_eq!(world.count("closing cart ExplicitClose"), 1, "{:?}", world.log());
        assert_eq!(cart_spots(&host).find("cart").await?, None);
        assert_eq!(cart.view(text("b")).activating().await?.text, "b");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A host, for what lives in it; taken out at the end, as it would keep itself.
#[derive(Clone, Default)]
struct Probe(Arc<Mutex<Option<Host>>>);

impl Probe {
    fn admits(&self) -> bool {
        let location = self.0.lock().unwrap().as_ref().and_then(|host| host.status().location);
        location.is_some_and(|location| location.admits_owned_work)
    }
}

/// What a handler has while it waits.
struct Guard(Probe, World);

impl Drop for Guard {
    fn drop(&mut self) {
        self.1.note(format!("guard dropped, admits {}", self.0.admits()));
    }
}

struct Guarded;

async fn guarded(_: RoomContext, request: Line) -> Result<rt::Created<Guarded, Line>, HandlerError> {
    Ok(rt::Created::Accepted(Guarded, request))
}

async fn wait(_: &mut Guarded, turn: &mut RoomTurn<'_>, _: Line) -> Result<(), HandlerError> {
    let (probe, world) = (turn.shared::<Probe>(), turn.shared::<World>());
    let world = world.cloned().unwrap();
    let _guard = Guard(probe.cloned().unwrap(), world.clone());
    world.note("waits");
    world.gate().await;
    Ok(())
}

/// The end of a turn whose Spot was taken is the user's, and may take its time: that is not the lease's.
///
/// REQ: LS-031, LS-033
#[tokio::test(start_paused = true)]
async fn what_was_taken_does_not_keep_its_host_from_its_lease() -> Tested {
    for place in REMOTE {
        let probe = Probe::default();
        let given = probe.clone();
        let (cluster, world, host) = placed_with(place, 323, move |cluster, world| {
            serves_on(
                cluster,
                world,
                "owner",
                move |host| host.shared(given.clone()),
                |objects| {
                    let rooms = rt::SpotFactory::user(ROOM, guarded).send("arena.room.say", wait);
                    objects.spot(rooms.relocation(rt::Relocation::Disabled).build())
                },
            );
        })
        .await?;
        *probe.0.lock().unwrap() = Some(cluster.host("owner"));
        let (one, spot) = room(&host, "one", "x").await?;
        one.say(text("wait")).await?;
        world.until("waits").await;
        cluster.store_faults("owner").cut();
        cluster.advance(20 * SECOND).await;
        assert!(room_spots(&host).release(&spot).timeout(60 * SECOND).await?);
        cluster.store_faults("owner").heal();
        world.until("guard dropped").await;
        assert_eq!(world.count("guard dropped, admits true"), 1, "{:?}", world.log());
        drop(probe.0.lock().unwrap().take());
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A cart that calls itself as it ends.
struct Nostalgic(Cart, World);

impl CartSpot for Nostalgic {
    async fn activate(context: CartContext) -> Result<Self, HandlerError> {
        let world = context.shared::<World>().cloned().unwrap();
        Ok(Self(Cart::activate(context).await?, world))
    }

    async fn on_closing(&mut self, turn: &mut CartTurn<'_>, _: CloseReason, _: Instant) -> Result<(), HandlerError> {
        let own = cart_spots(turn).of(turn.id());
        let began = Instant::now();
        let told = own.view(text("again")).activating().await;
        let kind = told.map_err(|error| error.kind().unwrap());
        self.1
            .note(format!("told {kind:?} after {}", began.elapsed().as_secs()));
        Ok(())
    }

    as_a_cart!();
}

/// What ends waits for no call of its own that waits for its end.
///
/// REQ: SP-045
#[tokio::test(start_paused = true)]
async fn a_cart_that_ends_does_not_wait_for_itself() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed_with(place, 324, |cluster, world| {
            serves_with(cluster, world, "owner", |objects| {
                objects.spot(cart_spot::<Nostalgic>())
            });
        })
        .await?;
        cart_spots(&host).of("cart").add(text("close")).activating().await?;
        cluster.advance(60 * SECOND).await;
        assert_eq!(
            world.count("told Err(InvalidOperation) after 0"),
            1,
            "{place:?} {:?}",
            world.log()
        );
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A room that asks for itself before it is there.
struct Early;

async fn asks_for_itself(_: &mut Early, turn: &mut RoomTurn<'_>) -> Result<(), HandlerError> {
    let began = Instant::now();
    let told = room_spots(turn).get_or_create(turn.id(), text("again")).await;
    let kind = told.map(drop).map_err(|error| error.kind().unwrap());
    let world = turn.shared::<World>().unwrap();
    world.note(format!("told {kind:?} after {}", began.elapsed().as_secs()));
    Ok(())
}

/// What begins does not wait until it is there.
///
/// REQ: SP-045
#[tokio::test(start_paused = true)]
async fn a_room_that_begins_does_not_wait_for_itself() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed_with(place, 325, |cluster, world| {
            serves_with(cluster, world, "owner", |objects| {
                let create = async |_: RoomContext, request: Line| Ok(rt::Created::Accepted(Early, request));
                let rooms = rt::SpotFactory::user(ROOM, create).initialize(asks_for_itself);
                objects.spot(rooms.relocation(rt::Relocation::Disabled).build())
            });
        })
        .await?;
        room(&host, "one", "x").await?;
        assert_eq!(
            world.count("told Err(InvalidOperation) after 0"),
            1,
            "{place:?} {:?}",
            world.log()
        );
        cluster.shutdown().await?;
    }
    Ok(())
}
