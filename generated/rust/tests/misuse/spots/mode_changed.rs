//! How a Spot runs is what its schema says; what generated code registers has no setter for it.

use zlink_generated::arena::{RoomSpot, room_spot};

fn other_mode<R: RoomSpot>() {
    let _ = room_spot::<R>().per_actor();
}

fn main() {}
