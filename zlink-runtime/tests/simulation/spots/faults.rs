//! What befalls nodes that have Spots: crashes, ways to the store that worsen or end, paths that are cut.

use std::sync::Arc;
use std::time::Duration;

use zlink_runtime::location::{Fault, Faults, Operation};
use zlink_runtime::testing::network::Conditions;

use super::world::{Climate, World};
use crate::dice::Dice;
use crate::world::NODES;

/// One thing goes wrong, or well again.
pub(crate) fn strike(world: &Arc<World>) {
    let (cluster, dice) = (&world.cluster, &world.dice);
    let name = dice.one_of(&NODES);
    if world.climate == Climate::Mild {
        return late(&cluster.store_faults(name), dice);
    }
    let other =
        NODES[(NODES.iter().position(|one| *one == name).unwrap() + 1 + dice.below(NODES.len() - 1)) % NODES.len()];
    let (network, strike) = (cluster.network(), dice.below(20));
    network.note(format!("strike {strike} at {name} {other}"));
    match strike {
        0..=2 if cluster.is_running(name) => {
            world.kill(name);
            come_back(world, name);
        }
        3 if cluster.is_running(name) => {
            let (world, stopping) = (world.clone(), world.stop(name));
            tokio::spawn(async move {
                stopping.await;
                come_back(&world, name);
            });
        }
        0..=5 => cluster.store_faults(name).cut(),
        6 => NODES.iter().for_each(|name| cluster.store_faults(name).cut()),
        7..=10 => trouble(&cluster.store_faults(name), dice),
        11 => network.cut(name, other),
        12 => network.partition(&[name], &[other]),
        13 => network.isolate(name),
        14 | 15 => drop(network.break_connections(name, other, dice.percent(50))),
        16 => network.set_path(
            name,
            other,
            Conditions {
                latency: dice.millis(1, 120),
                jitter: dice.millis(0, 30),
                bytes_per_second: Some(20_000),
                ..Conditions::default()
            },
        ),
        17 => network.heal(),
        _ => NODES.iter().for_each(|name| cluster.store_faults(name).heal()),
    }
}

/// What keeps nobody from owning what it owns.
fn late(faults: &Faults, dice: &Dice) {
    let chance = u32::try_from(100 + dice.below(400)).unwrap();
    match dice.below(5) {
        0 => faults.sometimes(Operation::Write, Fault::LostAnswer, chance),
        1 => faults.sometimes(Operation::Write, Fault::Delay(Duration::from_secs(2)), chance),
        2 => faults.sometimes(Operation::Write, Fault::DelayAnswer(Duration::from_secs(2)), chance),
        3 => {
            faults.every(Operation::Read, Fault::Stale);
            faults.every(Operation::Scan, Fault::Stale);
        }
        _ => faults.heal(),
    }
}

fn trouble(faults: &Faults, dice: &Dice) {
    let second = Duration::from_secs(1);
    let chance = u32::try_from(100 + dice.below(500)).unwrap();
    match dice.below(6) {
        0 => faults.every(Operation::Write, Fault::LateWrite(dice.millis(10, 6_000))),
        1 => faults.sometimes(Operation::Write, Fault::Delay(5 * second), chance),
        2 => faults.sometimes(Operation::Write, Fault::LateWrite(5 * second), chance),
        3 => {
            for operation in [Operation::Read, Operation::Scan, Operation::Write] {
                faults.sometimes(operation, Fault::Error, chance);
            }
        }
        _ => late(faults, dice),
    }
}

/// It runs again after a while.
fn come_back(world: &Arc<World>, name: &'static str) {
    let world = world.clone();
    tokio::spawn(async move {
        let most = if world.dice.percent(70) { 2_000 } else { 40_000 };
        world.cluster.advance(world.dice.millis(0, most)).await;
        world.start_node(name).await;
    });
}
