//! What the schema does not call `yields: true` keeps its turn.

use zlink_generated::depot::{Ask, CourierTurn, courier_actors};

async fn carry(turn: &mut CourierTurn<'_>) {
    let status = courier_actors(turn).of("c-2").status(Ask::default());
    let _status = turn.yield_for(status).await;
}

fn main() {}
