//! What a node registers of Actors, and what is wrong with that before anything starts.

use crate::kit::*;
use crate::players::*;
use zlink_runtime::rt;

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
