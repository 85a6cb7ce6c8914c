//! A turn ends with its callback: what goes on after it is no part of the Actor.

use zlink_generated::depot::{Ask, CourierTurn, courier_actors};

async fn carry(turn: &mut CourierTurn<'_>) {
    tokio::spawn(async move {
        let _status = courier_actors(turn).of("c-2").status(Ask::default()).await;
    });
}

fn main() {}
