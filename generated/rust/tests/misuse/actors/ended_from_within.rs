//! An Actor is ended by who destroys it, from outside; no message makes one, and none ends one.

use zlink_generated::depot::{Ask, CourierTurn, courier_actors};
use zlink_runtime::prelude::*;

fn from_within(turn: &mut CourierTurn<'_>) {
    turn.close();
}

fn by_a_message(host: &Host) {
    let _made = courier_actors(host).of("c-1").status(Ask::default()).activating();
}

fn main() {}
