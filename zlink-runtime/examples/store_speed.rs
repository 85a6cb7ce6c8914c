//! How fast the stores are on this machine: `cargo run --release --example store_speed --features sqlite`.
//!
//! It knows the public surface of stores only, as a provider of somebody else would be measured.

#![allow(clippy::unwrap_used, reason = "a measurement that fails is none")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use zlink_runtime::location::{Batch, Condition, Key, LocationStore, MemoryStore, Mutation, SqliteStore, Written};

/// How long one row is measured.
const SPAN: Duration = Duration::from_secs(2);

/// What an activation asks of a store, more or less: read what is there, reserve it on the condition that nobody has
/// it, and confirm it on the condition of the reservation; each batch writes two records of 200 bytes.
async fn activate(store: &dyn LocationStore, task: usize, round: usize) {
    let [object, count] = ["object", "count"].map(|kind| Key::new(format!("{kind}/{task}/{round}")).unwrap());
    let value = vec![7; 200];
    let puts = || {
        [
            Mutation::put(object.clone(), value.clone()),
            Mutation::put(count.clone(), value.clone()),
        ]
    };
    assert!(store.read(&object).await.unwrap().found.is_none());
    let reserve = Batch::new([Condition::Missing(object.clone())], puts()).unwrap();
    let Written::Applied { revision, .. } = store.write(&reserve).await.unwrap() else {
        return;
    };
    let commit = Batch::new([Condition::Version(object.clone(), revision)], puts()).unwrap();
    assert!(matches!(store.write(&commit).await.unwrap(), Written::Applied { .. }));
}

async fn read(store: &dyn LocationStore, task: usize, round: usize) {
    let key = Key::new(format!("object/{task}/{}", round % 100)).unwrap();
    let _ = store.read(&key).await.unwrap();
}

/// Operations per second with so many tasks at it.
async fn measure<F>(tasks: usize, operate: impl Fn(usize, usize) -> F + Send + Sync + 'static) -> f64
where
    F: Future<Output = ()> + Send,
{
    let operate = Arc::new(operate);
    let begun = Instant::now();
    let mut running = tokio::task::JoinSet::new();
    for task in 0..tasks {
        let operate = Arc::clone(&operate);
        running.spawn(async move {
            let mut rounds = 0_u32;
            while begun.elapsed() < SPAN {
                operate(task, usize::try_from(rounds).unwrap()).await;
                rounds += 1;
            }
            rounds
        });
    }
    let rounds: u32 = running.join_all().await.into_iter().sum();
    f64::from(rounds) / begun.elapsed().as_secs_f64()
}

#[tokio::main]
async fn main() {
    let folder = std::env::args()
        .nth(1)
        .unwrap_or_else(|| std::env::temp_dir().display().to_string());
    let file = format!("{folder}/zlink-store-speed-{}.db", std::process::id());
    let stores: [(&str, Arc<dyn LocationStore>); 2] = [
        ("memory", Arc::new(MemoryStore::new())),
        ("sqlite", Arc::new(SqliteStore::open(&file).await.unwrap())),
    ];
    for (name, store) in stores {
        for tasks in [1, 64] {
            // Each row's keys are its own.
            let own = tasks * 1000;
            let (one, two) = (store.clone(), store.clone());
            let activations = measure(tasks, move |task, round| {
                let store = one.clone();
                async move { activate(&*store, own + task, round).await }
            });
            println!(
                "{name}, {tasks} tasks: {:.0} activations/s (a read and two batches each)",
                activations.await
            );
            let reads = measure(tasks, move |task, round| {
                let store = two.clone();
                async move { read(&*store, own + task, round).await }
            });
            println!("{name}, {tasks} tasks: {:.0} reads/s", reads.await);
        }
    }
    for end in ["", "-wal", "-shm"] {
        // The last connection takes the others with it.
        let _ = std::fs::remove_file(format!("{file}{end}"));
    }
}
