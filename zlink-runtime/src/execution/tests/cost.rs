//! What a job costs from its permit to its end, the handler's own work left out.
//!
//! `cargo test --release -p zlink-runtime execution::tests::cost -- --ignored --nocapture`

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;

use super::super::{Abandoned, Job, Owner, Turn, Workers};
use super::Handler;
use crate::permit::HostPermits;

/// About as large as a received record with its reply route.
struct Record(#[allow(dead_code, reason = "its size counts")] [usize; 12]);

impl Job for Record {
    type Turn = Boxed;

    fn start(self, _: tokio::time::Instant) -> Option<Boxed> {
        let record = std::hint::black_box(self);
        Some(Boxed(Box::pin(async move {
            std::hint::black_box(&record);
        })))
    }

    fn abandon(self) {}
}

struct Boxed(Handler);

impl Turn for Boxed {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }

    fn abandon(self, _: Abandoned) {}
}

async fn run(batch: u32, owners: usize) -> f64 {
    const JOBS: u32 = 4_000_000;
    let permits = HostPermits::new(4_096);
    let workers = Workers::spawn(&Handle::current(), 1);
    let owners: Vec<Owner<Record>> = (0..owners).map(|_| Owner::new(&workers, 256)).collect();
    let mut source = permits.source();
    let start = std::time::Instant::now();
    let mut owner = owners.iter().cycle();
    for _ in 0..JOBS / batch {
        let mut grant = source.acquire(batch).await.unwrap();
        while let Some(permit) = grant.take() {
            assert!(owner.next().unwrap().admit(Record([7; 12]), permit).is_ok());
        }
        tokio::task::yield_now().await;
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(JOBS)
}

/// Rounds of `batch` jobs, each round after the end of the one before, as a peer with so many calls in flight causes.
async fn rounds(batch: u32, workers: usize) -> f64 {
    const JOBS: u32 = 2_000_000;
    let permits = HostPermits::new(4_096);
    let workers = Workers::spawn(&Handle::current(), workers);
    let owner: Owner<Counted> = Owner::new(&workers, 256);
    let round = Arc::new(Round::default());
    let mut source = permits.source();
    let start = std::time::Instant::now();
    for _ in 0..JOBS / batch {
        round.left.store(batch, Ordering::Relaxed);
        let mut grant = source.acquire(batch).await.unwrap();
        while let Some(permit) = grant.take() {
            assert!(owner.admit(Counted(round.clone()), permit).is_ok());
        }
        round.end.notified().await;
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(JOBS)
}

#[derive(Default)]
struct Round {
    left: AtomicU32,
    end: Notify,
}

struct Counted(Arc<Round>);

impl Job for Counted {
    type Turn = Boxed;

    fn start(self, _: tokio::time::Instant) -> Option<Boxed> {
        Some(Boxed(Box::pin(async move {
            if self.0.left.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.0.end.notify_one();
            }
        })))
    }

    fn abandon(self) {}
}

/// User and system time of this process so far, in seconds.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> = stat
        .rsplit(')')
        .next()
        .unwrap_or("")
        .split(' ')
        .filter_map(|it| it.parse().ok())
        .collect();
    (fields[10] + fields[11]) / 100.0
}

#[test]
#[ignore = "a measurement"]
fn several_workers() {
    let runtime = Builder::new_multi_thread().worker_threads(2).build().unwrap();
    for (batch, workers) in [(64, 1), (64, 2), (16, 1), (16, 2), (1, 1), (1, 2)] {
        let before = processor_time();
        let nanos = runtime
            .block_on(async move { tokio::spawn(rounds(batch, workers)).await })
            .unwrap();
        let spent = (processor_time() - before) / 2.0;
        println!("rounds of {batch}, {workers} workers: {nanos:.0} ns a job, {spent:.2} processor seconds a million");
    }
}

#[test]
#[ignore = "a measurement"]
fn cost() {
    let runtime = Builder::new_current_thread().build().unwrap();
    for (batch, owners) in [(64, 1), (8, 1), (1, 1), (64, 64)] {
        let nanos = runtime.block_on(run(batch, owners));
        println!("permit, admit, dispatch, end; {batch} to a batch, {owners} owners: {nanos:.1} ns a job");
    }
    let mut sum = 0;
    let start = std::time::Instant::now();
    for _ in 0..10_000_000 {
        let handler: Handler = Box::pin({
            let record = std::hint::black_box([7_usize; 12]);
            async move {
                std::hint::black_box(&record);
            }
        });
        sum += std::mem::size_of_val(&*std::hint::black_box(handler));
    }
    println!(
        "of these, the handler's box: {:.1} ns ({sum})",
        start.elapsed().as_secs_f64() * 100.0
    );
}
