//! What a node registers of Actors, and what is wrong with that before anything starts.

use crate::arena::Line;
use crate::kit::*;
use crate::players::*;
use zlink_runtime::error::ErrorKind;
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{self, Admission};

/// REQ: AC-060, AC-003, AC-015
#[tokio::test(start_paused = true)]
async fn what_is_registered_wrongly_starts_nothing() -> Tested {
    let aimless = mistakes(|objects| objects.entry(hall_spot()).actor(player_builder().build())).await;
    assert!(
        aimless.contains("the Actor arena.player has no relocation policy"),
        "{aimless}"
    );
    let torn = mistakes(|objects| {
        let builder = player_builder().relocation(rt::Relocation::Recreate);
        let factory = builder.relocation(rt::Relocation::Disabled).build();
        objects.entry(hall_spot()).actor(factory)
    })
    .await;
    assert!(torn.contains("has two relocation policies"), "{torn}");
    let twice = mistakes(|objects| players(objects).actor(player_actor())).await;
    assert!(
        twice.contains("two factories for Actors of the type arena.player"),
        "{twice}"
    );
    let handlers = mistakes(|objects| {
        let builder = player_builder().send("arena.player.go", Player::go);
        objects
            .entry(hall_spot())
            .actor(builder.relocation(rt::Relocation::Disabled).build())
    })
    .await;
    assert!(
        handlers.contains("has two handlers for \"arena.player.go\""),
        "{handlers}"
    );
    assert_eq!(mistakes(players).await, "");
    Ok(())
}

/// REQ: AC-065, AC-066
#[tokio::test(start_paused = true)]
async fn actors_need_an_entry_spot_that_decides_about_them() -> Tested {
    let none = mistakes(|objects| objects.actor(player_actor())).await;
    assert!(none.contains("no Entry Spot that decides about them"), "{none}");
    let other = mistakes(|objects| objects.entry(hall_builder().build()).actor(player_actor())).await;
    assert!(other.contains("no Entry Spot that decides about them"), "{other}");
    let strange = mistakes(|objects| {
        // It takes itself for a player.
        let hall = hall_builder().creates(PLAYER, admits_a_hall);
        objects.entry(hall.build()).actor(player_actor())
    })
    .await;
    assert!(strange.contains("another Rust type"), "{strange}");
    let twice = mistakes(|objects| {
        let hall = hall_builder().creates(PLAYER, Hall::on_create_player);
        objects.entry(hall.creates(PLAYER, Hall::on_create_player).build())
    })
    .await;
    assert!(twice.contains("decides twice about Actors"), "{twice}");
    let capacity = mistakes(|objects| {
        let strange = rt::ActorType::from_static("strange");
        players(objects)
            .actor_capacity(strange, 3)
            .total_actor_capacity(u32::MAX)
    })
    .await;
    assert!(
        capacity.contains("capacity for Actors of the type strange, and no factory"),
        "{capacity}"
    );
    assert!(capacity.contains("at most 2147483647"), "{capacity}");
    Ok(())
}

/// An Entry Spot that decides about Actors is there for messages where its node has none of them. Who asks for one is told
/// what is missing.
///
/// REQ: AC-064
#[tokio::test(start_paused = true)]
async fn an_entry_spot_needs_no_actors() -> Tested {
    let (cluster, _, host) = player_world_with(EVERYWHERE[0], 264, |objects| objects.entry(hall_spot())).await?;
    let entry = host.mesh("world")?.entry_spot().unwrap();
    let greeted = hall_spots(&host).of(entry).greet(text("you")).await?;
    assert_eq!(greeted, text("hello you, you are 1"));
    let none = player_actors(&host).create("p", text("x")).await.unwrap_err();
    assert_eq!(none.kind(), Some(ErrorKind::NotFound));
    let missing = "has a factory for Actors of the type arena.player; actor(…) of its object_server registers one";
    assert!(none.to_string().contains(missing), "{none}");
    cluster.shutdown().await?;
    Ok(())
}

async fn admits_a_hall(
    _: &mut Hall,
    _: &mut HallTurn<'_>,
    _: &mut Hall,
    _: Line,
) -> Result<Admission<()>, HandlerError> {
    Ok(Admission::Accepted(()))
}
