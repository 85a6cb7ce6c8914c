//! How fast Spots are reserved, committed, resolved and deleted on each store of this machine, by one task and by 64:
//! `cargo run --release --example authority_speed --features testing,sqlite,redis [-- redis://127.0.0.1:6379]`.
//!
//! It knows what the feature `testing` shows. The server, where one is given, gets a namespace of its own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a measurement that fails is none")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use zlink_runtime::id::SpotId;
use zlink_runtime::location::{BootClock, LocationStore, LocationTiming, MemoryStore, RedisStore, SqliteStore};
use zlink_runtime::testing::authority::{Ask, Owner, Seen};

/// How long one row is measured.
const SPAN: Duration = Duration::from_secs(3);

/// What each step took in all, of one task.
type Times = [Duration; 4];
const STEPS: [&str; 4] = ["reserve", "commit", "resolve", "delete"];

async fn lives(owner: Arc<Owner>, task: usize, begun: Instant) -> (u32, Times) {
    let (mut rounds, mut times) = (0, Times::default());
    while begun.elapsed() < SPAN {
        let id = SpotId::new(format!("{task}/{rounds}")).unwrap();
        let mut last = Instant::now();
        let mut took = |step: usize| {
            times[step] += last.elapsed();
            last = Instant::now();
        };
        let operation = task as u128 * 1_000_000_000 + u128::from(rounds);
        let Seen::Reserved(reservation) = owner.reserve(Ask::new(&id, operation)).await else {
            panic!("nobody else has it");
        };
        took(0);
        let Seen::Ready(spot) = owner.commit(reservation, b"").await else {
            panic!("it was reserved");
        };
        took(1);
        assert!(matches!(owner.resolve(&id).await, Seen::Ready(_)));
        took(2);
        assert!(matches!(owner.delete(&spot).await, Seen::Removed));
        took(3);
        rounds += 1;
    }
    (rounds, times)
}

#[tokio::main]
async fn main() {
    let folder = std::env::temp_dir().join(format!("zlink-authority-speed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut stores: Vec<(&str, Arc<dyn LocationStore>)> = vec![
        ("memory", Arc::new(MemoryStore::new())),
        (
            "sqlite",
            Arc::new(SqliteStore::open(folder.join("records")).await.unwrap()),
        ),
    ];
    if let Some(address) = std::env::args().nth(1) {
        let namespace = format!("speed-{}", std::process::id());
        stores.push(("redis", Arc::new(RedisStore::open(&address, &namespace).await.unwrap())));
    }
    for (name, store) in stores {
        for tasks in [1, 64] {
            let node = format!("{name}-{tasks}");
            let timing = LocationTiming::default();
            let owner = Owner::start(store.clone(), timing, BootClock::system(), &node, tasks as u64).await;
            let owner = Arc::new(owner.unwrap());
            let begun = Instant::now();
            let mut running = JoinSet::new();
            for task in 0..tasks {
                running.spawn(lives(owner.clone(), tasks * 1000 + task, begun));
            }
            let ended = running.join_all().await;
            let rounds: u32 = ended.iter().map(|(rounds, _)| rounds).sum();
            let rate = f64::from(rounds) / begun.elapsed().as_secs_f64();
            print!("{name:>7}, {tasks:>2} at once: {rate:>7.0} whole lives/s; a step takes on average");
            for (at, step) in STEPS.iter().enumerate() {
                let all: Duration = ended.iter().map(|(_, times)| times[at]).sum();
                print!(" {step} {:?}", all / rounds.max(1));
            }
            println!();
            owner.stop().await;
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}
