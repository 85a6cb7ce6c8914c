//! Who has Actors as members from their beginning decides about each; there is no default.

use zlink_generated::depot::{Ask, Status, YardContext, YardSpot, YardTurn};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::Tick;

struct Yard;

impl YardSpot for Yard {
    async fn start(_: YardContext) -> Result<Self, HandlerError> {
        Ok(Yard)
    }

    async fn on_create_courier_2(&mut self, _: &mut YardTurn<'_>, _: Ask) -> Result<Status, HandlerError> {
        Ok(Status::default())
    }

    async fn on_close(&mut self, _: &mut YardTurn<'_>, _: Tick) -> Result<(), HandlerError> {
        Ok(())
    }
}

fn main() {}
