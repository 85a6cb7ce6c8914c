//! What a Spot does to itself, and what of it goes on elsewhere: its own end, its ID after a lost race, its drops.

use std::time::Duration;

use zlink_runtime::prelude::*;
use zlink_runtime::rt::{self, Instant};

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
