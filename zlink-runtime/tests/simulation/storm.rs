//! A thousand storms over five nodes, and after each all that must hold.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use zlink_runtime::testing::{Cluster, explore};

use crate::work::{Load, Outcome};
use crate::world::World;
use crate::{faults, liveness, once, order, rest, terminal};

/// What a run has done, so that a test cannot pass by doing nothing.
#[derive(Default)]
struct Figures {
    replies: AtomicUsize,
    failures: AtomicUsize,
    picks: AtomicUsize,
    /// The longest until all links were back, in milliseconds.
    back: AtomicUsize,
}

async fn weather(cluster: Cluster, figures: &Figures) {
    let seed = cluster.seed();
    let world = World::start(cluster, seed).await;
    let load = Load::start(&world);
    world.cluster.advance(world.dice.millis(100, 800)).await;
    for _ in 0..4 {
        faults::storm(&world, Duration::from_millis(500)).await;
        rest::bounded(&world);
    }
    if world.dice.percent(20) {
        // Whoever is cut off now stays so for longer than a silent peer is waited for.
        load.slow_down();
        world.cluster.advance(world.dice.millis(5_000, 40_000)).await;
    }
    world.cluster.network().calm();
    load.stop().await;
    let before = world.ledger.entries().len();
    let back = liveness::check(&world).await;
    rest::check(&world).await;
    // What had to be ended by force is no fault here.
    let _ = world.cluster.shutdown().await;
    rest::check(&world).await;

    let entries = world.ledger.entries();
    terminal::check(&entries);
    once::check(&entries);
    for (_, entry) in &entries[before..] {
        // With nothing to hinder it, what is accepted does run.
        assert_eq!(entry.ran.len(), 1, "{entry:?}");
    }
    let picks: usize = world
        .runs
        .lock()
        .iter()
        .map(|(name, host)| order::check(name, host))
        .sum();
    let ended = |which: fn(&Outcome) -> bool| {
        let ends = entries.iter().flat_map(|(_, entry)| &entry.ended);
        ends.filter(|(_, outcome)| which(outcome)).count()
    };
    let replies = ended(|outcome| matches!(outcome, Outcome::Reply(..)));
    let failures = ended(|outcome| matches!(outcome, Outcome::Failed(..)));
    figures
        .back
        .fetch_max(usize::try_from(back.as_millis()).unwrap(), Ordering::Relaxed);
    figures.picks.fetch_add(picks, Ordering::Relaxed);
    figures.replies.fetch_add(replies, Ordering::Relaxed);
    figures.failures.fetch_add(failures, Ordering::Relaxed);
}

/// A failing seed is worth nothing if it cannot be repeated.
#[test]
fn a_storm_repeats_itself_event_for_event() {
    let runs = [(); 2].map(|()| {
        let fingerprints = Mutex::new(BTreeMap::new());
        explore(10, async |cluster| {
            weather(cluster.clone(), &Figures::default()).await;
            let network = cluster.network();
            fingerprints
                .lock()
                .insert(cluster.seed(), (network.fingerprint(), network.trace().len()));
        });
        fingerprints.into_inner()
    });
    assert_eq!(runs[0], runs[1]);
}

#[test]
fn a_thousand_storms() {
    let figures = Figures::default();
    explore(1_000, async |cluster| weather(cluster, &figures).await);
    println!(
        "{:?} replies, {:?} failures, {:?} picks, all links back after at most {:?} ms",
        figures.replies, figures.failures, figures.picks, figures.back
    );
    assert!(figures.replies.into_inner() > figures.failures.into_inner());
}
