//! What a handler borrowed of its state before a yield may be gone after it; it borrows again.

use zlink_generated::contract::{Note, OrdersClient};
use zlink_runtime::error::CallError;
use zlink_runtime::rt::YieldTurn;

struct Room {
    seats: Vec<u32>,
}

async fn settle(turn: &mut YieldTurn<'_, Room>, orders: &OrdersClient) -> Result<(), CallError> {
    let seats = &mut turn.state().seats;
    let _reply = turn.yield_for(orders.ask(Note::default())).await?;
    seats.push(1);
    Ok(())
}

fn main() {}
