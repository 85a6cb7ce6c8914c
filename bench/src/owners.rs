//! Owners with a state, within one process: what an idle one takes, and how fast many of them are.

use std::time::Instant;

use tokio::runtime::{Builder, Runtime};
use zlink_runtime::bench::Objects;

use crate::Failure;
use crate::memory::{Memory, Running};
use crate::sample::{Effort, emit};

/// Permits that a sender takes at once.
const BATCH: u32 = 64;

/// One round of a part; each is a process, as what a million of them leave in the heap is not for the other.
pub fn measure(part: &str, effort: Effort) -> Result<(), Failure> {
    let alone = Builder::new_current_thread().build()?;
    match part {
        "idle" => alone.block_on(idle(1_000_000)),
        "told" => told(&alone, effort),
        _ => Err(format!("no part {part:?} of owners").into()),
    }
}

fn told(alone: &Runtime, effort: Effort) -> Result<(), Failure> {
    let several = Builder::new_multi_thread().worker_threads(2).build()?;
    for (to, messages) in [(1, effort.pick(10_000_000, 2_000_000)), (1_000, 10_000_000)] {
        let rate = alone.block_on(through(to, 1, 1, messages))?;
        emit(&format!("owners, 1 → {to}"), "zlink, one thread", "M/s", rate);
    }
    let rate = several.block_on(through(1, 4, 2, effort.pick(10_000_000, 2_000_000)))?;
    emit("owners, 4 → 1", "zlink, two threads", "M/s", rate);
    Ok(())
}

/// Owners that have each handled a message and wait.
async fn idle(count: usize) -> Result<(), Failure> {
    let (before, running) = (Memory::now()?, Running::now()?);
    let objects = Objects::new(count, 1, 10_000);
    let mut sender = objects.sender();
    for to in 0..count {
        objects.send(&mut sender, to, 1, BATCH).await?;
        if to % 64 == 63 {
            tokio::task::yield_now().await;
        }
    }
    drained(&objects, count as u64).await?;
    let bytes = before.grown()?.resident / count as f64;
    emit("owners, idle", "zlink, state of 16 bytes included", "bytes each", bytes);
    // The one that runs them.
    running.and_tasks(1).is_all(count)
}

/// Millions of messages a second, from `from` senders to `to` owners.
async fn through(to: usize, from: u64, workers: usize, messages: u64) -> Result<f64, Failure> {
    let objects = std::sync::Arc::new(Objects::new(to, workers, 4_096));
    let begin = Instant::now();
    let senders = (0..from).map(|part| {
        let objects = objects.clone();
        tokio::spawn(async move {
            let mut sender = objects.sender();
            for number in 0..messages / from {
                let owner = number as usize % to;
                // Several to one cannot number without a gap; only their count is looked at.
                let of_owner = number / to as u64 + 1;
                objects.send(&mut sender, owner, of_owner + part * messages, BATCH).await?;
            }
            Ok::<_, &'static str>(())
        })
    });
    for sender in senders.collect::<Vec<_>>() {
        sender.await??;
    }
    let sent = messages / from * from;
    drained(&objects, sent).await?;
    let (_, disordered) = objects.counts();
    if from == 1 && disordered > 0 {
        return Err(format!("{disordered} of {sent} messages out of order").into());
    }
    Ok(sent as f64 / begin.elapsed().as_secs_f64() / 1e6)
}

async fn drained(objects: &Objects, count: u64) -> Result<(), Failure> {
    let begin = Instant::now();
    while objects.counts().0 < count {
        if begin.elapsed().as_secs() > 60 {
            return Err(format!("{} of {count} messages were handled", objects.counts().0).into());
        }
        tokio::task::yield_now().await;
    }
    Ok(())
}
