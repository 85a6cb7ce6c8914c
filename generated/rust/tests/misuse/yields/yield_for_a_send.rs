//! A one-way message is soon taken; no turn is given back for it.

use zlink_generated::contract::{Note, OrdersClient};
use zlink_runtime::error::CallError;
use zlink_runtime::rt::YieldTurn;

struct Room;

async fn settle(turn: &mut YieldTurn<'_, Room>, orders: &OrdersClient) -> Result<(), CallError> {
    turn.yield_for(orders.tell(Note::default())).await
}

fn main() {}
