//! How long it takes to say where a Spot is that was found before. Where that is makes no difference to the look-up.

use std::collections::HashMap;
use std::hint::black_box;

use parking_lot::Mutex;
use zlink_runtime::bench::Lookup;
use zlink_runtime::location::MemoryStore;

use super::cold::id;
use crate::Failure;
use crate::codec::nanoseconds;
use crate::sample::{Effort, emit};
use crate::schema::{self, Nothing};

/// Spots that are looked for, in turn.
const SPOTS: usize = 1_000;

pub fn measure(effort: Effort) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let host = super::host(MemoryStore::new()).start().await?;
        let cells = schema::cell_spots(&host);
        let mut lookups = Vec::new();
        for number in 0..SPOTS {
            let id = id("cell", number);
            cells.get_or_create(&id, Nothing::default()).await?;
            cells.of(&id).ask(super::message()).await?;
            lookups.push(Lookup::new(&host, &id).ok_or("the host has no Spots")?);
        }
        if let Some(unknown) = lookups.iter().position(|lookup| !lookup.is_known()) {
            return Err(format!("the route of Spot {unknown} is not known").into());
        }
        let (table, mut at) = ("micro cached route", 0);
        let mut next = || {
            at = (at + 1) % SPOTS;
            at
        };
        let known = nanoseconds(effort, || {
            black_box(lookups[next()].is_known());
        });
        emit(table, "zlink route", "ns", known);
        let ids: Vec<_> = (0..SPOTS).map(|number| std::sync::Arc::<str>::from(id("cell", number))).collect();
        let map: Mutex<HashMap<_, _>> = Mutex::new(ids.iter().cloned().zip(0_u64..).collect());
        let looked_up = nanoseconds(effort, || {
            black_box(map.lock().get(&ids[next()]).copied());
        });
        emit(table, "HashMap of std behind a lock", "ns", looked_up);
        host.shutdown().await?;
        Ok(())
    })
}
