//! An Entry Spot lives as long as its host.

use zlink_generated::arena::{LobbyTurn, lobby_spots};
use zlink_runtime::prelude::*;

fn from_within(turn: &mut LobbyTurn<'_>) {
    turn.close();
}

fn from_without(host: &Host, lobby: &zlink_runtime::rt::SpotRef) {
    let _closed = lobby_spots(host).close(lobby);
}

fn main() {}
