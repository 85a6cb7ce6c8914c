//! A turn is given back for one wait at a time.

use zlink_generated::contract::{Note, OrdersClient};
use zlink_runtime::rt::YieldTurn;

struct Room;

async fn settle(turn: &mut YieldTurn<'_, Room>, orders: &OrdersClient) {
    let first = turn.yield_for(orders.ask(Note::default()));
    let second = turn.yield_for(orders.ask(Note::default()));
    drop((first.await, second.await));
}

fn main() {}
