//! Only an Entry Spot admits new Actors: a User Spot is joined, and an Instance Spot has no Actors at all.

use zlink_generated::depot::{Hire, ShelfSpot, ShelfTurn, TourSpot, TourTurn};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::Admission;

fn registers<F>(user: zlink_runtime::rt::SpotFactoryBuilder<(), zlink_runtime::rt::UserSpot>, admits: F) {
    user.creates(zlink_generated::depot::COURIER, admits);
}

struct Shelf;

impl ShelfSpot for Shelf {
    async fn on_create_courier(
        &mut self,
        _: &mut ShelfTurn<'_>,
        _: &mut (),
        _: Hire,
    ) -> Result<Admission<()>, HandlerError> {
        Ok(Admission::Accepted(()))
    }
}

struct Tour;

impl TourSpot for Tour {
    async fn on_create_courier(
        &mut self,
        _: &mut TourTurn<'_>,
        _: &mut (),
        _: Hire,
    ) -> Result<Admission<()>, HandlerError> {
        Ok(Admission::Accepted(()))
    }
}

fn main() {}
