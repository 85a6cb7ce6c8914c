//! A Spot has every callback that its schema names; those of its lifecycle may be left out.

use zlink_generated::arena::{HallContext, HallSpot, Open};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::Created;

struct Hall;

impl HallSpot for Hall {
    async fn create(_: HallContext, _: Open) -> Result<Created<Self>, HandlerError> {
        Ok(Created::Accepted(Hall, ()))
    }
}

fn main() {}
