//! What so many Spots take while they are idle, and what a call costs among them.

use std::sync::atomic::Ordering;
use std::time::Instant;

use tokio::runtime::Builder;
use zlink_runtime::JobProfile;
use zlink_runtime::location::{Batch, Key, LocationStore, MemoryStore, Mutation, Scan, Scanned, Written};

use super::cold::{begin, id};
use super::{Item, TOLD};
use crate::Failure;
use crate::memory::{Memory, Running};
use crate::sample::{Effort, emit};
use crate::schema::{self, ItemSpots};

pub fn measure(count: usize, effort: Effort) -> Result<(), Failure> {
    Builder::new_current_thread().enable_all().build()?.block_on(many(count, effort))
}

async fn many(count: usize, effort: Effort) -> Result<(), Failure> {
    let store = MemoryStore::new();
    let host = super::host(store.clone()).job_profile(JobProfile::Throughput).start().await?;
    let items = schema::item_spots(&host);
    begin(&items, "warm", 1_000).await?;
    let (before, running, begun) = (Memory::now()?, Running::now()?, Instant::now());
    begin(&items, "item", count).await?;
    let took = begun.elapsed();
    let grown = before.grown()?;
    // Some of what made the last of them is still ending: far from one for each.
    running.and_tasks(count / 100).is_all(count)?;
    let kept = records(&store).await?;
    let (row, each) = (format!("zlink, {} Spots", grouped(count)), 1.0 / count as f64);
    let beyond = |bytes: f64, kept: f64| bytes * each - kept - size_of::<Item>() as f64;
    let table = "spots, idle and called";
    emit(table, &row, "bytes each", beyond(grown.resident, kept.resident / (count + 1_000) as f64));
    emit(table, &row, "allocated each", beyond(grown.allocated, kept.allocated / (count + 1_000) as f64));
    emit(table, &row, "made k/s", count as f64 / 1e3 / took.as_secs_f64());
    tells(&items, count, effort.pick(400_000, 10_000)).await?;
    let rate = tells(&items, count, effort.pick(2_000_000, 80_000)).await?;
    emit(table, &row, "send M/s", rate / 1e6);
    emit(table, &row, "request p50 ns", asks(&items, count, effort.pick(400_000, 30_000)).await?);
    // To close each of them first would take as long as to make them.
    drop(host);
    Ok(())
}

/// A number as it is read best.
fn grouped(number: usize) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1_000), number % 1_000),
    }
}

/// The Spot that call number `number` goes to: all of them, in no order.
fn drawn(number: usize, count: usize) -> usize {
    let mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 17) as usize % count
}

/// Messages a second that are sent to all of them and handled.
async fn tells(items: &ItemSpots, count: usize, messages: usize) -> Result<f64, Failure> {
    let (begun, before) = (Instant::now(), TOLD.load(Ordering::Relaxed));
    for number in 0..messages {
        items.of(id("item", drawn(number, count))).tell(super::message()).await?;
        if number % 256 == 255 {
            tokio::task::yield_now().await;
        }
    }
    while TOLD.load(Ordering::Relaxed) < before + messages as u64 {
        if begun.elapsed().as_secs() > 300 {
            return Err("messages were sent and not handled".into());
        }
        tokio::task::yield_now().await;
    }
    Ok(messages as f64 / begun.elapsed().as_secs_f64())
}

/// Nanoseconds that half of the requests to all of them take at most, one at a time.
async fn asks(items: &ItemSpots, count: usize, requests: usize) -> Result<f64, Failure> {
    let mut nanoseconds = Vec::with_capacity(requests);
    for number in 0..requests {
        let item = items.of(id("item", drawn(number, count)));
        let begun = Instant::now();
        item.ask(super::message()).await?;
        nanoseconds.push(begun.elapsed().as_nanos() as f64);
    }
    nanoseconds.sort_unstable_by(f64::total_cmp);
    nanoseconds.get(requests / 2).copied().ok_or_else(|| "no request was made".into())
}

/// What the records of a store take: as much as another one grows that is given the same.
async fn records(store: &MemoryStore) -> Result<Memory, Failure> {
    let copy = MemoryStore::new();
    let before = Memory::now()?;
    let mut scan = Scan::new("", 500)?;
    loop {
        let Scanned::Page(page) = store.scan(&scan).await? else { return Err("the scan has no page".into()) };
        for (key, stored) in page.entries {
            // What is alike in memory must not be the same memory.
            let key = Key::new(key.as_str())?;
            let put =
                Mutation::Put { key, value: stored.value.to_vec().into(), retention: stored.expiry.map(|_| HOUR) };
            let Written::Applied { .. } = copy.write(&Batch::new(Vec::new(), vec![put])?).await? else {
                return Err("a copy depends on nothing".into());
            };
        }
        match page.next {
            Some(next) => scan = Scan::new("", 500)?.after(next),
            None => break,
        }
    }
    let grown = before.grown();
    drop(copy);
    grown
}

const HOUR: std::time::Duration = std::time::Duration::from_secs(3_600);
