//! What is wrong with a registration is told before any store is opened, so the store plays no part here.

use zlink_runtime::error::ErrorKind;
use zlink_runtime::testing::Cluster;

use crate::arena::*;
use crate::kit::*;

/// REQ: SP-008
#[tokio::test(start_paused = true)]
async fn without_an_object_role_there_are_no_spots() -> Tested {
    let cluster = Cluster::new(13);
    cluster.node("plain", |host| host.mesh("world", |mesh| mesh.listen("tcp://plain:1")));
    cluster.node("storeless", |host| {
        host.mesh("world", |mesh| mesh.listen("tcp://storeless:1").object_server(all))
    });
    let host = cluster.start("plain").await?;
    let none = room_spots(&host).create(text("x")).await.unwrap_err();
    assert_eq!(none.kind(), Some(ErrorKind::NotConfigured), "{none}");
    let none = look(&room_spots(&host).of("room"), "lines").await.unwrap_err();
    assert_eq!(none.kind(), Some(ErrorKind::NotConfigured), "{none}");
    let failed = cluster.start("storeless").await.unwrap_err();
    assert!(failed.to_string().contains("needs a Location Store"), "{failed}");
    cluster.shutdown().await?;
    Ok(())
}

/// REQ: SP-004, SP-111
#[tokio::test(start_paused = true)]
async fn every_mistake_of_a_registration_is_told_at_once() -> Tested {
    let (cluster, world) = (Cluster::new(14), World::new());
    serves_with(&cluster, &world, "owner", |objects| {
        objects
            .spot(room_spot::<Room>())
            .spot(hearing_room_spot::<Room>())
            .spot(lobby_spot::<Lobby>())
            .entry(cart_spot::<Cart>())
            .entry(lobby_spot::<Lobby>())
            .capacity(CART, 3)
            .placement_weight(20_000)
    });
    let failed = cluster.start("owner").await.unwrap_err();
    let text = failed.to_string();
    for part in [
        "two factories for the type arena.room",
        "has two Entry Spots",
        "arena.lobby is an Entry Spot",
        "arena.cart is no Entry Spot",
        "a capacity for the type arena.cart, and no factory",
        "placement weight 20000",
        "the Spot arena.room subscribes to channel \"room-events\", in which this node takes no part; add take_part(\"room-events\")",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    Ok(())
}

/// REQ: SP-028, SP-112
#[tokio::test(start_paused = true)]
async fn what_no_schema_gives_is_refused_too() -> Tested {
    let problems = [
        "the Spot arena.room has no relocation policy",
        "the Spot arena.room has two relocation policies, Recreate and Disabled",
        "the Spot arena.room subscribes twice to \"arena.room.news\" about \"news\" in channel \"room-events\"",
    ];
    for (at, problem) in problems.into_iter().enumerate() {
        let (cluster, world) = (Cluster::new(15), World::new());
        serves_with(&cluster, &world, "owner", move |objects| {
            let [one, two, three] = wrong_room_spots::<Room>();
            objects.spot([one, two, three].into_iter().nth(at).unwrap())
        });
        let failed = cluster.start("owner").await.unwrap_err();
        assert!(failed.to_string().contains(problem), "{failed}");
    }
    Ok(())
}
