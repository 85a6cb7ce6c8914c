//! A reference is of one incarnation, to destroy it; messages go to an ID, wherever the Actor is.

use zlink_generated::depot::{Ask, InspectorActors, Visit, courier_actors, tour_spots};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{ActorRef, Rid, SpotRef};

fn to_a_reference(host: &Host, courier: &ActorRef) {
    let _call = courier_actors(host).of(courier).status(Ask::default());
}

fn by_its_place(inspectors: &InspectorActors, tour: SpotRef, node: Rid) {
    let _in_a_spot = inspectors.of("i-1").look(Ask::default()).in_spot(tour);
    let _at_a_node = inspectors.of("i-1").look(Ask::default()).at(node);
}

fn by_its_spot(host: &Host) {
    let _carried = tour_spots(host).of("tour-1").carry(Visit::default());
}

fn an_id_is_destroyed(host: &Host) {
    let _gone = courier_actors(host).destroy("c-1");
}

fn main() {}
