//! What a Spot does to itself, and what of it goes on elsewhere: its own end, its ID after a lost race, its drops.

use std::time::Duration;

use zlink_runtime::location::{Fault, Operation};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{self, CloseReason, Instant, SpotCreated};

use crate::arena::*;
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

    async fn add(&mut self, turn: &mut CartTurn<'_>, message: Line) -> Result<(), HandlerError> {
        self.0.add(turn, message).await
    }

    async fn view(&mut self, turn: &mut CartTurn<'_>, request: Line) -> Result<Line, HandlerError> {
        self.0.view(turn, request).await
    }
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

/// Who lost a race sends on to the winner what it is sent. Once the cart is gone, its ID is free there for a room, too.
///
/// REQ: SP-083, SP-002, LS-041
#[tokio::test(start_paused = true)]
async fn who_lost_a_race_can_make_another_kind_once_the_winners_is_gone() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 322);
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
        won.add(text("close")).await?;
        world.until("closing cart").await;
        cluster.advance(SECOND).await;
        assert_eq!(carts.find("cart").await?, None);
        let began = Instant::now();
        let made = room_spots(&cluster.host("caller"))
            .get_or_create("cart", text("x"))
            .timeout(10 * SECOND);
        let made = made.await?;
        assert!(matches!(made, SpotCreated::Created(..)), "{made:?}");
        assert!(began.elapsed() < SECOND, "{:?}", began.elapsed());
        let room = room_spots(&cluster.host("caller")).of("cart");
        assert!(look(&room, "where").await?.starts_with("loser"));
        cluster.shutdown().await?;
    }
    Ok(())
}
