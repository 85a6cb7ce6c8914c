//! zlink itself, the whole way: typed call, route, permit, turn, typed reply; over ClientServer and over RouteMesh.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use zlink_runtime::ListenerKind;
use zlink_runtime::prelude::*;

use super::{Caller, OneWay, PATIENCE, Peer};
use crate::Failure;
use crate::schema::{self, Blob, Count, ECHO, EchoClient, EchoHandler, Nothing};

#[derive(Default)]
struct Service {
    taken: AtomicU64,
}

impl EchoHandler for Service {
    async fn call(&self, _: &ChannelContext<'_>, blob: Blob) -> Result<Blob, HandlerError> {
        Ok(blob)
    }

    async fn put(&self, _: &ChannelContext<'_>, _: Blob) -> Result<(), HandlerError> {
        self.taken.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn taken(&self, _: &ChannelContext<'_>, _: Nothing) -> Result<Count, HandlerError> {
        Ok(Count { value: self.taken.load(Ordering::Relaxed) })
    }
}

const ANY_PORT: &str = "tcp://127.0.0.1:0";
const MESH: &str = "bench";

async fn client_server_host() -> Result<Host, Failure> {
    let server = schema::echo_server(Service::default());
    Ok(Host::builder().client_server(|channel| channel.listen(ANY_PORT).serve(server)).start().await?)
}

async fn client_server_caller(address: &str) -> Result<ZlinkCaller, Failure> {
    let host = Host::builder().client_server(|channel| channel.client(ECHO).connect(address)).start().await?;
    ZlinkCaller::connected(host).await
}

async fn mesh_host() -> Result<Host, Failure> {
    let server = schema::echo_server(Service::default());
    Ok(Host::builder().mesh(MESH, |mesh| mesh.listen(ANY_PORT).serve(server)).start().await?)
}

/// Over a ClientServer channel: one lane.
pub struct ClientServer;

impl Peer for ClientServer {
    const NAME: &'static str = "zlink ClientServer";
    type Caller = ZlinkCaller;

    async fn serve(tell: impl FnOnce(String) + Send) -> Result<(), Failure> {
        let host = client_server_host().await?;
        tell(host.listener(ListenerKind::ClientServer, ECHO.as_str())?.endpoint.to_string());
        std::future::pending().await
    }

    async fn connect(address: &str) -> Result<ZlinkCaller, Failure> {
        client_server_caller(address).await
    }
}

/// Between two nodes of a mesh: two lanes.
pub struct Mesh;

impl Peer for Mesh {
    const NAME: &'static str = "zlink RouteMesh";
    type Caller = ZlinkCaller;

    async fn serve(tell: impl FnOnce(String) + Send) -> Result<(), Failure> {
        let host = mesh_host().await?;
        tell(host.listener(ListenerKind::RouteMesh, MESH)?.endpoint.to_string());
        std::future::pending().await
    }

    async fn connect(address: &str) -> Result<ZlinkCaller, Failure> {
        let mesh = |mesh: zlink_runtime::MeshBuilder| mesh.listen(ANY_PORT).client(ECHO).connect(address);
        ZlinkCaller::connected(Host::builder().mesh(MESH, mesh).start().await?).await
    }
}

#[derive(Clone)]
pub struct ZlinkCaller {
    client: EchoClient,
    /// The host lives as long as one caller does.
    _host: Arc<Host>,
}

impl ZlinkCaller {
    /// A caller whose first request has been answered: the link is ready.
    async fn connected(host: Host) -> Result<Self, Failure> {
        let mut caller = Self { client: schema::echo_client(&host), _host: Arc::new(host) };
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

impl Caller for ZlinkCaller {
    async fn call(&mut self, payload: &'static [u8]) -> Result<usize, Failure> {
        Ok(self.client.call(Blob { data: payload.to_vec() }).await?.data.len())
    }
}

impl OneWay for ZlinkCaller {
    async fn put(&mut self, payload: &'static [u8]) -> Result<(), Failure> {
        Ok(self.client.put(Blob { data: payload.to_vec() }).await?)
    }

    async fn taken(&mut self) -> Result<u64, Failure> {
        Ok(self.client.taken(Nothing::default()).await?.value)
    }
}

/// Both sides of a ClientServer channel in this process.
pub async fn client_server_pair() -> Result<(Host, ZlinkCaller), Failure> {
    let server = client_server_host().await?;
    let address = server.listener(ListenerKind::ClientServer, ECHO.as_str())?.endpoint.to_string();
    let caller = client_server_caller(&address).await?;
    Ok((server, caller))
}

/// Two nodes of a mesh in this process.
pub async fn mesh_pair() -> Result<(Host, ZlinkCaller), Failure> {
    let server = mesh_host().await?;
    let address = server.listener(ListenerKind::RouteMesh, MESH)?.endpoint.to_string();
    let caller = Mesh::connect(&address).await?;
    Ok((server, caller))
}
