//! Storms over nodes that have Spots: the store fails, hosts crash, paths are cut; and after each all that must hold.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use zlink_runtime::testing::{Cluster, explore};

mod calm;
mod checks;
mod faults;
mod history;
mod load;
mod objects;
mod world;

use history::Outcome;
use load::Load;
use world::{Climate, World};

use crate::world::NODES;

/// What all runs have done, so that a test cannot pass by doing nothing.
#[derive(Default, Debug)]
struct Figures {
    well: AtomicUsize,
    failed: AtomicUsize,
    incarnations: AtomicUsize,
    released: AtomicUsize,
    ticks: AtomicUsize,
    /// Those in which what was accepted had to run.
    whole: AtomicUsize,
}

async fn weather(cluster: Cluster, figures: &Figures) {
    let world = World::start(cluster).await;
    let load = Load::start(&world);
    let mut is_fenced = false;
    for _ in 0..3 {
        for _ in 0..=world.dice.below(2) {
            faults::strike(&world);
        }
        let long = world.climate == Climate::Rough && world.dice.percent(25);
        load.pause(if long { 6_000 } else { 600 });
        let span = world.dice.millis(200, if long { 40_000 } else { 2_500 });
        is_fenced |= passes(&world, span).await;
        world.history.check();
    }
    world.cluster.network().heal();
    world.cluster.network().calm();
    NODES.iter().for_each(|name| world.cluster.store_faults(name).heal());
    load.stop().await;
    world.history.check();
    let calm = world.history.count() as u64 + 1;
    calm::check(&world).await;
    at_rest(&world).await;
    // What had to be ended by force is no fault here.
    let _ = world.cluster.shutdown().await;
    at_rest(&world).await;

    world.history.check();
    checks::ends(&world.history);
    checks::order(&world.history, world.climate == Climate::Mild);
    checks::whole(&world.history, if is_fenced { calm } else { 0 });

    let add = |figure: &AtomicUsize, count| figure.fetch_add(count, Ordering::Relaxed);
    let asked = world.history.asked();
    let failures = asked.values().filter(|asked| asked.ended[0].1.is_failure()).count();
    let released = asked
        .values()
        .filter(|asked| asked.kind == history::Kind::Release && asked.ended[0].1 == Outcome::Did(true));
    add(&figures.well, asked.len() - failures);
    add(&figures.failed, failures);
    add(&figures.released, released.count());
    add(&figures.incarnations, world.history.incarnations());
    add(&figures.ticks, world.history.ticks());
    add(&figures.whole, usize::from(!is_fenced));
}

/// Lets that time pass. In a mild climate, returns whether somebody could not prove that it lives.
async fn passes(world: &World, span: Duration) -> bool {
    if world.climate == Climate::Rough {
        world.cluster.advance(span).await;
        return true;
    }
    let (end, mut is_fenced) = (Instant::now() + span, false);
    while Instant::now() < end {
        world.cluster.advance(Duration::from_millis(100)).await;
        is_fenced |= world.running().iter().any(|name| {
            let status = world.cluster.host(name).status();
            !status.location.unwrap().admits_owned_work
        });
    }
    is_fenced
}

/// No host holds a permit or waits for a reply: those that run, those that stopped and those that were killed.
async fn at_rest(world: &World) {
    world.cluster.at_rest(Duration::from_secs(60)).await;
    for (name, host) in world.runs.lock().iter() {
        let status = host.status();
        let held = (status.jobs.in_use(), status.waiting_requests);
        assert_eq!(held, (0, 0), "I-5: {name}, {:?}: permits, replies", status.phase);
    }
}

/// A failing seed is worth nothing if it cannot be repeated.
#[test]
fn a_storm_over_spots_repeats_itself_event_for_event() {
    let runs = [(); 2].map(|()| {
        let fingerprints = Mutex::new(BTreeMap::new());
        explore(8, async |cluster| {
            weather(cluster.clone(), &Figures::default()).await;
            let network = cluster.network();
            let print = (network.fingerprint(), network.trace().len());
            fingerprints.lock().insert(cluster.seed(), print);
        });
        fingerprints.into_inner()
    });
    assert_eq!(runs[0], runs[1]);
}

/// REQ: LS-001, LS-033, LS-041, SP-065, SP-067, LS-100
#[test]
fn a_thousand_storms_over_spots() {
    let figures = Figures::default();
    explore(1_000, async |cluster| weather(cluster, &figures).await);
    println!("{figures:?}");
    let (well, failed) = (figures.well.into_inner(), figures.failed.into_inner());
    assert!(well > failed, "most of it goes well");
}
