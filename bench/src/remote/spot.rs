//! A Spot of zlink that another process has, called by its ID: found once in a store that both share, then remembered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use zlink_runtime::location::{BootClock, MemoryStore, StoreSource};
use zlink_runtime::prelude::*;
use zlink_runtime::{HostBuilder, ListenerKind};

use super::{Caller, OneWay, PATIENCE, Peer};
use crate::Failure;
use crate::schema::{self, Blob, CellSpotClient, Nothing};
use crate::spots::{self, MESH};

const ANY_PORT: &str = "tcp://127.0.0.1:0";
const ID: &str = "cell";

pub struct Spot;

impl Peer for Spot {
    const NAME: &'static str = "zlink Spot";
    type Caller = SpotCaller;

    async fn serve(tell: impl FnOnce(String) + Send) -> Result<(), Failure> {
        let folder = TempDir::new()?;
        let store = format!("sqlite://{}", folder.path().join("bench.db").display());
        let host = spots::listening(store.as_str(), ANY_PORT).start().await?;
        schema::cell_spots(&host).get_or_create(ID, Nothing::default()).await?;
        let endpoint = host.listener(ListenerKind::RouteMesh, MESH)?.endpoint.to_string();
        tell(format!("{endpoint} {store}"));
        std::future::pending().await
    }

    async fn connect(address: &str) -> Result<SpotCaller, Failure> {
        let (endpoint, store) = address.split_once(' ').ok_or("the server told no store")?;
        SpotCaller::connected(calling(store, endpoint).start().await?).await
    }
}

/// A host that has no Spots itself.
fn calling(store: impl Into<StoreSource>, endpoint: &str) -> HostBuilder {
    let host = Host::builder().location_store(store);
    host.mesh(MESH, |mesh| mesh.listen(ANY_PORT).object_client().connect(endpoint))
}

/// A host with the Spot and one that calls it, both in this process.
pub async fn pair() -> Result<(Host, SpotCaller), Failure> {
    let store = MemoryStore::new();
    // The system's clock is asked in a way that valgrind does not know.
    let host = spots::listening(store.clone(), ANY_PORT).boot_clock(BootClock::of_tokio()).start().await?;
    schema::cell_spots(&host).get_or_create(ID, Nothing::default()).await?;
    let endpoint = host.listener(ListenerKind::RouteMesh, MESH)?.endpoint.to_string();
    let caller = calling(store, &endpoint).boot_clock(BootClock::of_tokio()).start().await?;
    Ok((host, SpotCaller::connected(caller).await?))
}

#[derive(Clone)]
pub struct SpotCaller {
    cell: CellSpotClient,
    /// The host lives as long as one caller does.
    _host: Arc<Host>,
}

impl SpotCaller {
    /// A caller whose first request has been answered.
    async fn connected(host: Host) -> Result<Self, Failure> {
        let mut caller = Self { cell: schema::cell_spots(&host).of(ID), _host: Arc::new(host) };
        let begin = Instant::now();
        loop {
            match caller.call(b"hello").await {
                Ok(_) => return Ok(caller),
                Err(failure) if begin.elapsed() > PATIENCE => return Err(failure),
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }
}

impl Caller for SpotCaller {
    async fn call(&mut self, payload: &'static [u8]) -> Result<usize, Failure> {
        Ok(self.cell.call(Blob { data: payload.to_vec() }).await?.data.len())
    }
}

impl OneWay for SpotCaller {
    async fn put(&mut self, payload: &'static [u8]) -> Result<(), Failure> {
        Ok(self.cell.put(Blob { data: payload.to_vec() }).await?)
    }

    async fn taken(&mut self) -> Result<u64, Failure> {
        Ok(self.cell.taken(Nothing::default()).await?.value)
    }
}
