//! Once a network is whole again, so is the cluster: every link is there within a bound, and every call succeeds.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;
use zlink_generated::contract::ORDERS;

use crate::work::{Kind, Outcome, operate, rid};
use crate::world::{NODES, STOCKISTS, World};

/// The longest pause between two attempts to link is 5 s; an attempt on a path that was cut takes at most 2 s; what
/// was cut off at the wrong moment is noticed when the peer is silent for 15 s.
const BACK: Duration = Duration::from_secs(20);
/// A drain, and the longest pause before a return.
const RUNNING: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(1);
/// Two lanes between every two nodes, and one from each client of `stock` to each of its servers.
const CONNECTIONS: usize = NODES.len() * (NODES.len() - 1) + (NODES.len() - STOCKISTS) * STOCKISTS;

/// Returns how long it took until every link was there.
pub(crate) async fn check(world: &World) -> Duration {
    let cluster = &world.cluster;
    cluster
        .until("every node to run again", RUNNING, || {
            NODES.iter().all(|name| cluster.is_running(name))
        })
        .await;
    let calm = Instant::now();
    cluster.ready(BACK).await;
    let back = calm.elapsed();
    cluster
        .until("every candidate to be known", BACK, || {
            world.hosts().iter().all(|(name, host)| {
                let status = host.mesh("shop").unwrap().status();
                let orders = status.channels.iter().find(|(channel, _)| *channel == ORDERS);
                let known = orders.into_iter().flat_map(|(_, targets)| targets);
                let known: BTreeSet<_> = known.map(|target| target.rid.clone()).collect();
                let weights = world.weights.lock();
                let wanted = weights
                    .iter()
                    .filter(|(server, weight)| *server != name && **weight > 0);
                known == wanted.map(|(server, _)| rid(server)).collect()
            })
        })
        .await;
    cluster
        .until("every link that is not used to be gone", BACK, || {
            cluster.network().connections() == CONNECTIONS
        })
        .await;
    for (at, from) in NODES.into_iter().enumerate() {
        let host = cluster.host(from);
        for to in NODES.into_iter().filter(|to| *to != from) {
            let outcome = operate(world, from, &host, Kind::Desk(to), TIMEOUT).await;
            assert!(
                matches!(&outcome, Outcome::Reply(_, by) if by == to),
                "{from} to {to}: {outcome:?}"
            );
            let sent = operate(world, from, &host, Kind::TellDesk(to), TIMEOUT).await;
            assert_eq!(sent, Outcome::Accepted, "{from} to {to}");
        }
        let mut kinds = Vec::new();
        let weights = world.weights.lock().clone();
        if weights.iter().any(|(server, weight)| *server != from && *weight > 0) {
            kinds.push(Kind::Orders);
        }
        if at >= STOCKISTS {
            kinds.push(Kind::Stock);
        }
        for kind in kinds {
            let outcome = operate(world, from, &host, kind, TIMEOUT).await;
            assert!(matches!(outcome, Outcome::Reply(..)), "{from} {kind:?}: {outcome:?}");
        }
    }
    back
}
