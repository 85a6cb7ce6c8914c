//! How User Spots begin, are found, called and closed: the same for a Spot on the caller's host and on another.

use zlink_runtime::rt::SpotCreated;

use crate::arena::*;
use crate::kit::*;

/// REQ: SP-030, SP-050, SP-080, SP-082
#[tokio::test(start_paused = true)]
async fn a_room_is_created_found_called_and_closed() -> Tested {
    for placement in PLACEMENTS {
        let (cluster, world, host) = placed(placement, 1).await?;
        let rooms = room_spots(&host);
        let SpotCreated::Created(spot, reply) = rooms.create(text("hello")).await? else {
            panic!("it is new");
        };
        assert_eq!(reply.text, "created with hello");
        let room = rooms.of(&spot.id);
        room.say(text("one")).await?;
        assert_eq!(look(&room, "lines").await?, "hello,one");
        assert_eq!(rooms.find(&spot.id).await?, Some(spot.clone()));
        let again = rooms.get_or_create(&spot.id, text("another")).await?;
        assert_eq!(again, SpotCreated::Existing(spot.clone()));
        assert_eq!(
            (world.count("create"), world.count("initialize")),
            (1, 1),
            "{:?}",
            world.log()
        );
        assert!(rooms.close(&spot).await?);
        assert_eq!(world.count(&format!("closing {} ExplicitClose", spot.id)), 1);
        assert_eq!(rooms.find(&spot.id).await?, None);
        assert!(!rooms.close(&spot).await?, "it is gone already");
        cluster.shutdown().await?;
    }
    Ok(())
}
