//! What a callback borrowed of its Spot before a yield may be gone after it; it borrows again.

use zlink_generated::arena::{Look, RoomSpot, RoomYieldTurn, room_spots};
use zlink_runtime::prelude::*;

async fn settle<S: RoomSpot + AsMut<Vec<u32>>>(turn: &mut RoomYieldTurn<'_, S>) -> Result<(), CallError> {
    let call = room_spots(turn).of("hall").look(Look::default());
    let seats = turn.state().as_mut();
    let _view = turn.yield_for(call).await?;
    seats.push(1);
    Ok(())
}

fn main() {}
