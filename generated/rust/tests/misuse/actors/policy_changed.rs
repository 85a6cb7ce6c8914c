//! What becomes of Actors that move is what their schema says, once.

use zlink_generated::depot::{CourierActor, courier_actor};
use zlink_runtime::rt::Relocation;

fn other_policy<A: CourierActor>() {
    let _ = courier_actor::<A>().relocation(Relocation::Recreate);
}

fn main() {}
