//! Only what the schema calls `activates: true` makes a Spot.

use zlink_generated::arena::{Look, cart_spots, room_spots};
use zlink_runtime::prelude::*;

fn call(host: &Host) {
    let _view = cart_spots(host).of("cart").view(Look::default()).activating();
    let _room = room_spots(host).of("room").look(Look::default()).activating();
}

fn main() {}
