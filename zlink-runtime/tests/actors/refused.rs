//! New Actors that nobody comes to decide about.

use std::time::Duration;

use zlink_runtime::rt::ActorCreated;

use crate::events::Events;
use crate::kit::*;
use crate::players::*;

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(120);

/// The Entry Spot of the node that was asked first ends before it is asked: nobody has decided anything, and another does.
///
/// REQ: AC-084, AC-092, ERR-803
#[tokio::test(start_paused = true)]
async fn one_that_nobody_came_to_decide_about_is_made_elsewhere() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 220);
        for name in ["first", "second"] {
            serves_with(&cluster, &world, name, move |objects| {
                players(objects).placement_weight(if name == "first" { 100 } else { 0 })
            });
        }
        calls(&cluster, "caller");
        start(&cluster).await?;
        let events = Events::collect();
        world.holds("create");
        let players = player_actors(&cluster.host("caller"));
        let creating = tokio::spawn(players.create("p", text("x")).timeout(PATIENCE).into_future());
        world.until("held in create").await;
        cluster.host("second").mesh("world")?.set_placement_weight(100)?;
        let stopping = tokio::spawn(cluster.stop("first"));
        cluster.advance(SECOND).await;
        world.open_build(2);
        let ActorCreated::Created(actor, reply) = creating.await?? else {
            panic!("it is created");
        };
        assert!(actor.node.to_string().starts_with("second"), "{actor:?}");
        assert_eq!(reply, text("welcome x"));
        assert_eq!((world.count("make p on first"), world.count("hall decides")), (1, 1));
        assert_eq!(events.count(&["zlink.spot.not_made"]), 0, "no factory has failed");
        stopping.await??;
        cluster.shutdown().await?;
    }
    Ok(())
}
