//! How many Instance Spots a second begin with their first message, which is answered; and what their store carries alone.

use std::time::Instant;

use futures::{StreamExt, TryStreamExt, stream};
use tempfile::TempDir;
use tokio::runtime::Builder;
use zlink_runtime::location::{Batch, Condition, Key, LocationStore, MemoryStore, Mutation, StoreSource, Written};

use super::redis::Server;
use crate::Failure;
use crate::process::CpuClock;
use crate::sample::{Effort, emit};
use crate::schema::{self, ItemSpots};

/// Spots that begin at once.
pub const AT_ONCE: usize = 256;

/// A store of this process's own, and where it is.
enum Kept {
    Memory,
    Sqlite(TempDir),
    Redis(Server),
}

impl Kept {
    /// What is kept there under that name, empty at first.
    fn named(&self, name: &str) -> StoreSource {
        match self {
            Kept::Memory => MemoryStore::new().into(),
            Kept::Sqlite(folder) => format!("sqlite://{}", folder.path().join(name).display()).into(),
            Kept::Redis(server) => format!("{}?namespace={name}", server.address()).into(),
        }
    }
}

pub fn measure(store: &str, threads: &str, effort: Effort) -> Result<(), Failure> {
    let (name, kept, count) = match store {
        "memory" => ("memory", Some(Kept::Memory), effort.pick(100_000, 20_000)),
        "sqlite" => ("SQLite", Some(Kept::Sqlite(TempDir::new()?)), effort.pick(20_000, 4_000)),
        "redis" => ("Redis", Server::start()?.map(Kept::Redis), effort.pick(20_000, 4_000)),
        _ => return Err(format!("no store {store:?}").into()),
    };
    let (mut builder, on) = match threads {
        "1" => (Builder::new_current_thread(), "one thread"),
        "2" => (Builder::new_multi_thread(), "two threads"),
        _ => return Err(format!("not on {threads} threads").into()),
    };
    let (table, row) = (format!("cold activation, {name}, {on}"), "zlink");
    let Some(kept) = kept else {
        emit(&table, row, "k/s", f64::NAN);
        return Ok(());
    };
    let runtime = builder.worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let alone = alone(&*kept.named("alone").open().await?, count).await?;
        emit(&table, "the store alone", "k/s", alone / 1e3);
        let host = super::host(kept.named("spots")).start().await?;
        let items = schema::item_spots(&host);
        begin(&items, "warm", 200).await?;
        let (begun, cpu) = (Instant::now(), CpuClock::own().now()?);
        begin(&items, "item", count).await?;
        let (took, cpu) = (begun.elapsed(), CpuClock::own().now()? - cpu);
        emit(&table, row, "k/s", count as f64 / 1e3 / took.as_secs_f64());
        emit(&table, row, "CPU µs each", cpu.as_secs_f64() * 1e6 / count as f64);
        drop(host);
        Ok(())
    })
}

/// The ID of one.
pub fn id(of: &str, number: usize) -> String {
    format!("{of}-{number}")
}

/// Asks so many Spots that are not there; each is made by that, and answers.
pub async fn begin(items: &ItemSpots, of: &str, count: usize) -> Result<(), Failure> {
    let begun = stream::iter(0..count).map(async |number| {
        let answer = items.of(id(of, number)).ask(super::message()).activating().await?;
        match answer.value {
            1 => Ok::<_, Failure>(()),
            other => Err(format!("the first message is number {other}").into()),
        }
    });
    begun.buffer_unordered(AT_ONCE).try_collect().await
}

/// Batches a second that a store writes, of one small record each that was not there, so many at once.
async fn alone(store: &dyn LocationStore, count: usize) -> Result<f64, Failure> {
    let begun = Instant::now();
    let written = stream::iter(0..count).map(async |number| {
        let key = Key::new(id("alone", number))?;
        let batch = Batch::new(vec![Condition::Missing(key.clone())], vec![Mutation::put(key, vec![0x5a; 200])])?;
        match store.write(&batch).await? {
            Written::Applied { .. } => Ok::<_, Failure>(()),
            Written::Conflict => Err("the record was there".into()),
        }
    });
    written.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    Ok(count as f64 / begun.elapsed().as_secs_f64())
}
