//! Once store and network are well again, every Spot is, or is brought back by those calls that may.

use std::time::Duration;

use zlink_runtime::HostPhase;

use super::history::{Kind, Outcome};
use super::load::ask;
use super::world::World;
use crate::world::NODES;

/// The longest pause before a return, and a start that is tried again.
const RUNNING: Duration = Duration::from_secs(60);
/// The longest pause between two attempts to dial, a poll, and a renewal that had been given up.
const BACK: Duration = Duration::from_secs(30);
/// Until a dead owner is counted out: TTL and margin, and a late write of its own in between.
const RELEASED: Duration = Duration::from_secs(60);

pub(crate) async fn check(world: &World) {
    let cluster = &world.cluster;
    cluster
        .until("every node to run again", RUNNING, || {
            world.running().len() == NODES.len()
        })
        .await;
    cluster
        .until("owned work to be admitted, and all to be linked", BACK, || {
            NODES.iter().all(|name| {
                let host = cluster.host(name);
                let status = host.status();
                let peers = host.mesh("arena").unwrap().status().peers;
                let ready = peers
                    .iter()
                    .filter(|peer| peer.state == zlink_runtime::PeerState::Ready);
                status.phase == HostPhase::Serving
                    && status.location.unwrap().admits_owned_work
                    && ready.count() == NODES.len() - 1
            })
        })
        .await;
    for room in 0..world.rooms {
        comes_back(world, &format!("room-{room}"), Kind::GetOrCreate, Kind::Say, Kind::Look).await;
    }
    for cart in 0..world.carts {
        comes_back(world, &format!("cart-{cart}"), Kind::Peek, Kind::Add, Kind::View).await;
    }
}

/// Somebody brings it back, and what is sent there then is handled.
async fn comes_back(world: &World, spot: &str, begin: Kind, send: Kind, request: Kind) {
    let name = world.dice.one_of(&NODES);
    let from = || ((world.rid(name), Some(usize::MAX)), world.cluster.host(name));
    let mut tries = 0;
    loop {
        let begun = ask(world, from(), begin, spot, RELEASED, None).await;
        if !begun.is_failure() && !matches!(begun, Outcome::Rejected(_)) {
            // A route that was found before is wrong for one call at most.
            let _ = ask(world, from(), request, spot, RELEASED, None).await;
            if !ask(world, from(), request, spot, RELEASED, None).await.is_failure() {
                break;
            }
        }
        // It may be rejected, its factory may fail, it may be closing, or its owner be dead, and not be known to be.
        tries += 1;
        let report = || world.cluster.report();
        assert!(
            tries < 12,
            "{spot} does not come back from {name}: {begun:?}\n{}",
            report()
        );
        ask(world, from(), Kind::Find, spot, RELEASED, None).await;
        ask(world, from(), Kind::Release, spot, RELEASED, None).await;
        world.cluster.advance(Duration::from_secs(5)).await;
    }
    for kind in [send, send, request] {
        let outcome = ask(world, from(), kind, spot, RELEASED, None).await;
        let report = || world.cluster.report();
        assert!(
            !outcome.is_failure(),
            "{kind:?} to {spot} from {name}: {outcome:?}\n{}",
            report()
        );
    }
}
