//! The Spots that local and remote rows call, and what is measured of Spots alone: how they begin, how many there can be,
//! how one is found.

mod cold;
mod many;
mod redis;
mod route;

use std::sync::atomic::{AtomicU64, Ordering};

use zlink_runtime::location::{BootClock, MemoryStore, StoreSource};
use zlink_runtime::prelude::*;
use zlink_runtime::{Created, HostBuilder, ObjectServerBuilder};

use crate::Failure;
use crate::local::Body;
use crate::sample::Effort;
use crate::schema::{
    self, Blob, CellContext, CellSpot, CellTurn, Count, ItemContext, ItemSpot, ItemTurn, Move, Nothing,
};

/// One that is made before it is called.
#[derive(Default)]
pub struct Cell {
    body: Body,
    taken: u64,
}

impl CellSpot for Cell {
    async fn create(_: CellContext, _: Nothing) -> Result<Created<Self, ()>, HandlerError> {
        Ok(Created::Accepted(Self::default(), ()))
    }

    async fn tell(&mut self, _: &mut CellTurn<'_>, message: Move) -> Result<(), HandlerError> {
        self.body.apply(&message);
        Ok(())
    }

    async fn ask(&mut self, _: &mut CellTurn<'_>, message: Move) -> Result<Count, HandlerError> {
        Ok(Count { value: self.body.apply(&message) })
    }

    async fn call(&mut self, _: &mut CellTurn<'_>, blob: Blob) -> Result<Blob, HandlerError> {
        Ok(blob)
    }

    async fn put(&mut self, _: &mut CellTurn<'_>, _: Blob) -> Result<(), HandlerError> {
        self.taken += 1;
        Ok(())
    }

    async fn taken(&mut self, _: &mut CellTurn<'_>, _: Nothing) -> Result<Count, HandlerError> {
        Ok(Count { value: self.taken })
    }
}

/// Messages that Spots of this process were told, all together.
static TOLD: AtomicU64 = AtomicU64::new(0);

/// One that its first message makes. It counts its messages.
#[derive(Default)]
struct Item(u64);

impl ItemSpot for Item {
    async fn activate(_: ItemContext) -> Result<Self, HandlerError> {
        Ok(Self::default())
    }

    async fn tell(&mut self, _: &mut ItemTurn<'_>, _: Move) -> Result<(), HandlerError> {
        self.0 += 1;
        TOLD.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn ask(&mut self, _: &mut ItemTurn<'_>, _: Move) -> Result<Count, HandlerError> {
        self.0 += 1;
        Ok(Count { value: self.0 })
    }
}

pub const MESH: &str = "bench";

/// A host that has Spots, and that other processes cannot reach.
pub fn host(store: impl Into<StoreSource>) -> HostBuilder {
    Host::builder().location_store(store).mesh(MESH, |mesh| mesh.object_server(cells_and_items))
}

/// The same, and others can.
pub fn listening(store: impl Into<StoreSource>, endpoint: &str) -> HostBuilder {
    let host = Host::builder().location_store(store);
    host.mesh(MESH, |mesh| mesh.listen(endpoint).object_server(cells_and_items))
}

fn cells_and_items(objects: ObjectServerBuilder) -> ObjectServerBuilder {
    objects.spot(schema::cell_spot::<Cell>()).spot(schema::item_spot::<Item>())
}

/// One round of what is named.
pub fn measure(arguments: &[&str], effort: Effort) -> Result<(), Failure> {
    match arguments {
        ["cold", store, threads] => cold::measure(store, threads, effort),
        ["many", count] => many::measure(count.parse()?, effort),
        ["route"] => route::measure(effort),
        _ => Err(format!("nothing of Spots is named {arguments:?}").into()),
    }
}

/// Calls to Spots of one thread, so that a tool can count every instruction of one.
pub fn in_process(part: &str, count: usize, tasks: usize) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // The system's clock is asked in a way that valgrind does not know.
        let host = host(MemoryStore::new()).boot_clock(BootClock::of_tokio()).start().await?;
        if part == "spot-cold" {
            return cold::begin(&schema::item_spots(&host), "item", count).await;
        }
        let cells = schema::cell_spots(&host);
        cells.get_or_create("cell", Nothing::default()).await?;
        let calls = (0..tasks).map(|_| {
            let (cell, request) = (cells.of("cell"), part == "spot-request");
            tokio::spawn(async move {
                for _ in 0..count / tasks {
                    if request {
                        cell.ask(message()).await?;
                    } else {
                        cell.put(Blob::default()).await?;
                    }
                }
                Ok::<_, Failure>(())
            })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await??;
        }
        let taken = cells.of("cell").taken(Nothing::default()).await?.value;
        match part {
            "spot-send" if taken != (count / tasks * tasks) as u64 => Err(format!("{taken} sends were taken").into()),
            "spot-send" | "spot-request" => Ok(()),
            _ => Err(format!("no part {part:?}").into()),
        }
    })
}

fn message() -> Move {
    Move { entity: 7, x: 1.0, y: 2.0, z: 3.0, sender: 0, number: 0 }
}
