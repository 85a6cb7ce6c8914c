//! Who creates an Actor names its ID, what it asks for, a mesh and a time; never a node, and never twice.

use zlink_generated::depot::{Hire, courier_actors};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::Rid;

fn at_a_node(host: &Host, node: Rid) {
    let _placed = courier_actors(host).create("c-1", Hire::default()).at(node);
}

fn without_an_id(host: &Host) {
    let _made = courier_actors(host).create(Hire::default());
}

async fn twice(host: &Host) -> Result<(), CallError> {
    let call = courier_actors(host).create("c-1", Hire::default());
    call.await?;
    call.await?;
    Ok(())
}

fn main() {}
