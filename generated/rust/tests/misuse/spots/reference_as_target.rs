//! A reference is of one incarnation; messages go to an ID.

use zlink_generated::arena::{Look, room_spots};
use zlink_runtime::prelude::*;

fn look(host: &Host, room: &zlink_runtime::rt::SpotRef) {
    let _call = room_spots(host).of(room).look(Look::default());
}

fn main() {}
