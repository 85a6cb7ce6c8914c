//! What a callback borrowed of its Actor before a yield may be gone after it; it borrows again.

use zlink_generated::depot::{Ask, CourierActor, CourierYieldTurn, courier_actors};
use zlink_runtime::prelude::*;

async fn plan<A: CourierActor + AsMut<Vec<u32>>>(turn: &mut CourierYieldTurn<'_, A>) -> Result<(), CallError> {
    let call = courier_actors(turn).of("c-2").status(Ask::default());
    let parcels = turn.state().as_mut();
    let _status = turn.yield_for(call).await?;
    parcels.push(1);
    Ok(())
}

fn main() {}
