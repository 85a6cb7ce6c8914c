//! Calls to Spots of the caller's own host, which carry no record: what holds of others holds of them.

use std::time::Duration;

use zlink_runtime::HostBuilder;
use zlink_runtime::error::{CallError, ErrorKind, Execution};
use zlink_runtime::testing::Cluster;

use crate::far;
use crate::kit::*;

const SECOND: Duration = Duration::from_secs(1);
/// The greatest record here.
const MOST: usize = 8192;

/// Makes `name` a node that takes small records only.
fn terse(cluster: &Cluster, world: &World, name: &'static str, serves: bool) {
    let (with_store, world) = (far::with_store(cluster, name), world.clone());
    cluster.node(name, move |host: HostBuilder| {
        let host = with_store(host).shared(world.clone());
        host.mesh("world", |mesh| {
            let mesh = mesh
                .rid_prefix(name)
                .listen(format!("tcp://{name}:1"))
                .max_message(MOST);
            if serves {
                mesh.object_server(all)
            } else {
                mesh.object_client()
            }
        })
    });
}

/// REQ: MSG-804
#[tokio::test(start_paused = true)]
async fn what_is_too_large_for_others_is_too_large_here() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world) = on(place.1, 140);
        terse(&cluster, &world, "owner", true);
        terse(&cluster, &world, "caller", false);
        start(&cluster).await?;
        let host = cluster.host(place.caller());
        let (one, _) = room(&host, "one", "x").await?;
        let long = "y".repeat(MOST - 500);
        one.say(text(&long)).await?;
        let larger = "y".repeat(MOST + 1);
        for refused in [
            one.say(text(&larger)).await.unwrap_err(),
            one.look(text(&larger)).await.unwrap_err(),
        ] {
            assert!(matches!(refused, CallError::Argument(_)), "{place:?}: {refused}");
        }
        one.say(text(&long)).await?;
        let unsent = look(&one, "lines").await.unwrap_err();
        assert_eq!(
            (unsent.kind(), unsent.execution()),
            (Some(ErrorKind::InternalFailure), Execution::Unknown),
            "{place:?}: the reply is too large: {unsent}"
        );
        assert_eq!(world.count("heard"), 2);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: LS-033
#[tokio::test(start_paused = true)]
async fn a_host_that_cannot_prove_that_it_lives_takes_no_call_of_its_own() -> Tested {
    for place in LOCAL {
        let (cluster, world, host) = placed(place, 142).await?;
        let (one, _) = room(&host, "one", "x").await?;
        // So that the route would hold beyond the lease.
        cluster.advance(14 * SECOND).await;
        look(&one, "lines").await?;
        cluster.advance(2 * SECOND).await;
        look(&one, "lines").await?;
        cluster.store_faults("owner").cut();
        cluster.advance(12 * SECOND).await;
        let refused = one.look(text("lines")).timeout(SECOND).await.unwrap_err();
        assert_eq!(refused.execution(), Execution::NotExecuted, "{refused}");
        // A send is taken or not; nothing of it runs.
        let _ = one.say(text("told")).await;
        cluster.advance(SECOND).await;
        assert_eq!(world.count("heard"), 0);
        cluster.store_faults("owner").heal();
        cluster.advance(10 * SECOND).await;
        assert!(look(&one, "lines").await?.starts_with('x'));
        cluster.shutdown().await?;
    }
    Ok(())
}
