//! Hosts that are in two meshes: what comes over the one is not for what they have in the other.

use std::time::Duration;

use zlink_runtime::error::{CallError, ErrorKind, Execution};
use zlink_runtime::location::{Fault, Operation};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{SpotCreated, SpotRef};
use zlink_runtime::testing::Cluster;

use crate::arena::*;
use crate::far;
use crate::kit::*;

const SECOND: Duration = Duration::from_secs(1);

/// Makes `name` a host with a node in `world` and one in `far`. It has Spots in both, or only calls.
fn is_in_both(cluster: &Cluster, world: &World, name: &'static str, serves: bool) {
    let (with_store, world) = (far::with_store(cluster, name), world.clone());
    cluster.node(name, move |host| {
        let host = with_store(host).shared(world.clone());
        [("world", 1), ("far", 2)].into_iter().fold(host, |host, (of, port)| {
            host.mesh(of, |mesh| {
                let mesh = mesh.rid_prefix(name).listen(format!("tcp://{name}:{port}"));
                match serves {
                    true => mesh.object_server(all),
                    false => mesh.object_client(),
                }
            })
        })
    });
}

async fn room_in(host: &Host, id: &str, motd: &str, mesh: &str) -> Result<SpotRef, Failure> {
    match room_spots(host).get_or_create(id, text(motd)).in_mesh(mesh).await? {
        SpotCreated::Created(spot, _) => Ok(spot),
        other => Err(format!("{other:?}").into()),
    }
}

fn is_refused(error: &CallError) {
    let told = (error.kind(), error.execution());
    assert_eq!(told, (Some(ErrorKind::Unavailable), Execution::NotExecuted), "{error}");
}

/// The room is made anew by the same host, but in another mesh: whoever still goes the old way does not come to it.
///
/// REQ: NET-402, RT-009
#[tokio::test(start_paused = true)]
async fn a_way_through_another_mesh_does_not_lead_to_a_room() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 320);
        is_in_both(&cluster, &world, "owner", true);
        is_in_both(&cluster, &world, "caller", false);
        start(&cluster).await?;
        let owner = cluster.host("owner");
        let old = room_in(&owner, "one", "x", "world").await?;
        let one = room_spots(&cluster.host("caller")).of("one");
        assert_eq!(look(&one, "lines").await?, "x");
        assert!(room_spots(&owner).close(&old).await?);
        room_in(&owner, "one", "y", "far").await?;
        one.say(text("by the old way")).await?;
        is_refused(&look(&one, "lines").await.unwrap_err());
        assert_eq!(look(&one, "lines").await?, "y", "it was not told, and asks anew");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Two make a cart of one ID in two meshes. Who is second hands nothing on to where only the first was asked to make it.
///
/// REQ: NET-402
#[tokio::test(start_paused = true)]
async fn who_lost_a_race_to_another_mesh_sends_nothing_there() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 321);
        is_in_both(&cluster, &world, "loser", true);
        is_in_both(&cluster, &world, "caller", false);
        serves(&cluster, &world, "winner");
        start(&cluster).await?;
        cluster.host("loser").mesh("world")?.set_placement_weight(0)?;
        let faults = cluster.store_faults("loser");
        faults.every(Operation::Write, Fault::Delay(2 * SECOND));
        let cart = cart_spots(&cluster.host("caller")).of("cart");
        let view = |item| cart.view(text(item)).activating().in_mesh("far");
        let making = tokio::spawn(view("lost").into_future());
        cluster.advance(SECOND / 2).await;
        let won = cart_spots(&cluster.host("winner")).of("cart");
        won.add(text("first")).activating().await?;
        is_refused(&making.await?.unwrap_err());
        faults.heal();
        assert_eq!(view("second").await?.text, "first,second", "{:?}", world.log());
        cluster.shutdown().await?;
    }
    Ok(())
}
