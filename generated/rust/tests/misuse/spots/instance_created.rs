//! An Instance Spot is made by its first message, and takes no part in multicast.

use zlink_generated::arena::{Announcement, Open, cart_spots};
use zlink_runtime::prelude::*;

fn make(host: &Host) {
    let _created = cart_spots(host).create(Open::default());
    let _published = cart_spots(host).publish_announced(Announcement::default());
}

fn main() {}
