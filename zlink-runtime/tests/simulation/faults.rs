//! What befalls a cluster: paths worsen and are cut, connections break, nodes crash, stop and come back, weights change.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use zlink_generated::contract::ORDERS;
use zlink_runtime::testing::network::Conditions;

use crate::dice::Dice;
use crate::world::{NODES, World};

/// Lets faults happen for that long. Whatever it cut or stopped may be so at its end.
pub(crate) async fn storm(world: &Arc<World>, time: Duration) {
    let (network, dice) = (world.cluster.network().clone(), world.dice.clone());
    network.set_usual(Conditions {
        latency: dice.millis(1, 15),
        jitter: dice.millis(0, 20),
        breaks: dice.one_of(&[0.0, 0.0005, 0.003]),
        refusals: dice.one_of(&[0.0, 0.1, 0.3]),
        bytes_per_second: None,
    });
    let end = Instant::now() + time;
    while Instant::now() < end {
        tokio::time::sleep(dice.millis(10, 200)).await;
        let (one, other) = pair(&dice);
        match dice.below(12) {
            0 | 1 => drop(network.break_connections(one, other, true)),
            2 => drop(network.break_connections(one, other, false)),
            3 => network.cut(one, other),
            4 => network.partition(&[one], &[other]),
            5 => network.isolate(one),
            6 => network.heal(),
            7 => network.set_path(
                one,
                other,
                Conditions {
                    latency: dice.millis(1, 120),
                    bytes_per_second: Some(20_000),
                    ..Conditions::default()
                },
            ),
            8 => weight(world, one),
            9 | 10 => crash(world, one, dice.millis(0, 800)),
            _ => retire(world, one, dice.millis(0, 500)),
        }
    }
}

fn pair(dice: &Dice) -> (&'static str, &'static str) {
    let one = dice.below(NODES.len());
    let other = (one + 1 + dice.below(NODES.len() - 1)) % NODES.len();
    (NODES[one], NODES[other])
}

fn weight(world: &World, name: &'static str) {
    if world.serves(name) && world.cluster.is_running(name) {
        let weight = world.dice.one_of(&[0, 1, 40, 100, 700]);
        let host = world.cluster.host(name);
        host.mesh("shop").unwrap().set_weight(ORDERS, weight).unwrap();
        world.weights.lock().insert(name, weight);
    }
}

/// Kills a node; it comes back later, unless somebody else was quicker.
fn crash(world: &Arc<World>, name: &'static str, pause: Duration) {
    if world.cluster.is_running(name) {
        world.cluster.kill(name);
        come_back(world, name, pause);
    }
}

/// Stops a node in order; it comes back later.
fn retire(world: &Arc<World>, name: &'static str, pause: Duration) {
    if world.cluster.is_running(name) {
        let stopping = world.cluster.stop(name);
        let world = world.clone();
        tokio::spawn(async move {
            // Work that does not end within its drain time is ended by force; that is no fault here.
            let _ = stopping.await;
            come_back(&world, name, pause);
        });
    }
}

fn come_back(world: &Arc<World>, name: &'static str, pause: Duration) {
    let world = world.clone();
    tokio::spawn(async move {
        tokio::time::sleep(pause).await;
        world.start_node(name).await;
    });
}
