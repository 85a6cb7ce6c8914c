//! An Entry Spot decides about what its schema says is a member, and that is an Actor.

use zlink_generated::depot::{Hire, YardSpot, YardTurn};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::Admission;

struct Truck;

struct Yard;

impl YardSpot for Yard {
    type Courier = Truck;
    type Inspector = Truck;

    async fn on_create_courier(
        &mut self,
        _: &mut YardTurn<'_>,
        _: &mut Truck,
        _: Hire,
    ) -> Result<Admission<()>, HandlerError> {
        Ok(Admission::Accepted(()))
    }
}

fn main() {}
