//! What the schema does not call `yields: true` keeps its turn.

use zlink_generated::arena::{Look, RoomTurn, room_spots};

async fn say(turn: &mut RoomTurn<'_>) {
    let view = room_spots(turn).of("hall").look(Look::default());
    let _view = turn.yield_for(view).await;
}

fn main() {}
