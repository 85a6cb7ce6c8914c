//! What the contract tests share: hosts, a handler that does as its message says, waits with a deadline, the events
//! that a host leaves, and a peer that says whatever a test wants. It must not judge anything.

mod craft;
mod desk;
#[path = "../shared/events.rs"]
mod events;
mod pair;
mod raw;
#[path = "../shared/wait.rs"]
mod wait;

use std::collections::HashMap;
use std::future::Future;
use std::panic::Location;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use zlink_generated::contract::{Note, desk_client, orders_client, orders_server};
use zlink_runtime::error::{CallError, ErrorKind, Execution, StartError};
use zlink_runtime::id::{MeshName, Rid};
use zlink_runtime::prelude::*;
use zlink_runtime::{HostBuilder, MeshBuilder, PeerState};

pub(crate) use craft::{Craft, answer, correlation_of, encoded, metadata_block, reply_to, sized, timeout_of};
pub(crate) use desk::{Desk, Gate, Seen};
pub(crate) use events::Events;
pub(crate) use pair::{
    WAYS, Way, address, address_of, at_rest, calling, candidates, hello_that_serves, raw_client, raw_server, serving,
};
pub(crate) use raw::{Raw, hello, hello_of, record, send};
pub(crate) use wait::{SOON, Stopwatch, until, until_within, within};

/// A mesh to be in.
pub(crate) const SHOP: MeshName = MeshName::from_static("shop");
/// Where a free port of this machine is.
pub(crate) const ANY: &str = "tcp://127.0.0.1:0";

/// A note that says `text`.
pub(crate) fn note(text: &str, number: u64) -> Note {
    Note {
        text: text.into(),
        number,
        body: Vec::new(),
    }
}

/// A note of about `bytes` bytes.
pub(crate) fn heavy(number: u64, bytes: usize) -> Note {
    Note {
        text: String::new(),
        number,
        body: vec![0x5a; bytes],
    }
}

/// The output of `future`, which must come in time.
#[track_caller]
pub(crate) fn soon<F: IntoFuture>(what: &str, future: F) -> impl Future<Output = F::Output> + use<F> {
    let at = Location::caller();
    let (what, future) = (what.to_owned(), future.into_future());
    async move {
        match within(SOON, future).await {
            Some(output) => output,
            None => panic!("{at}: not in time: {what}"),
        }
    }
}

/// Lets everything happen that is on its way: for what must *not* happen there is no event to wait for.
///
/// A byte goes to and fro between two tasks, through sockets of this machine. Tests run on one thread, and it looks at all
/// its sockets together: with each step, whatever hosts had sent to each other before has come and was acted upon.
pub(crate) async fn settle() {
    let (mut near, mut far) = tokio::net::UnixStream::pair().unwrap();
    let echo = tokio::spawn(async move {
        while let Ok(byte) = far.read_u8().await {
            far.write_u8(byte).await.unwrap();
        }
    });
    for step in 0..32 {
        near.write_u8(step).await.unwrap();
        assert_eq!(near.read_u8().await.unwrap(), step);
    }
    drop(near);
    echo.await.unwrap();
}

/// The mistakes of a start that fails.
pub(crate) async fn refused(builder: HostBuilder) -> StartError {
    match builder.start().await {
        Ok(host) => panic!("{host:?} started"),
        Err(error) => error,
    }
}

/// The kind of a failure, and whether the handler may have run.
#[track_caller]
pub(crate) fn failure<T: std::fmt::Debug>(result: Result<T, CallError>) -> (ErrorKind, Execution) {
    match result {
        Err(CallError::Failed(error)) => (error.kind(), error.execution()),
        other => panic!("no failure of the call: {other:?}"),
    }
}

/// A node of the mesh `shop` on a free port.
pub(crate) fn node(rid: &str, configure: impl FnOnce(MeshBuilder) -> MeshBuilder) -> HostBuilder {
    Host::builder().mesh("shop", |mesh| configure(mesh.listen(ANY).rid(rid)))
}

/// A node that serves `orders` with `weight` and handles Node direct calls.
pub(crate) async fn server(rid: &'static str, weight: u32, desk: &Desk) -> Host {
    let (orders, direct) = (orders_server(desk.clone()).weight(weight), desk.node());
    node(rid, |mesh| mesh.serve(orders).serve_node(direct))
        .start()
        .await
        .unwrap()
}

/// A node that calls `orders`, linked with `servers`.
pub(crate) async fn client(rid: &str, servers: &[&Host]) -> Host {
    client_with(rid, servers, |host| host).await
}

/// The same with further settings of the host.
pub(crate) async fn client_with(
    rid: &str,
    servers: &[&Host],
    configure: impl FnOnce(HostBuilder) -> HostBuilder,
) -> Host {
    let builder = node(rid, |mesh| {
        let mesh = mesh.client(zlink_generated::contract::ORDERS);
        servers.iter().fold(mesh, |mesh, server| mesh.connect(endpoint(server)))
    });
    let host = configure(builder).start().await.unwrap();
    for server in servers {
        linked(&host, &rid_of(server)).await;
    }
    host
}

/// Where the node of `host` in the mesh `shop` listens.
pub(crate) fn endpoint(host: &Host) -> String {
    host.mesh("shop").unwrap().endpoint().to_string()
}

/// The RID of the node of `host` in the mesh `shop`.
pub(crate) fn rid_of(host: &Host) -> Rid {
    host.mesh("shop").unwrap().rid()
}

/// How `host` sees the peer `rid` of the mesh `shop`; `None` where it is not listed.
pub(crate) fn peer_state(host: &Host, rid: &Rid) -> Option<PeerState> {
    let status = host.mesh("shop").unwrap().status();
    let peer = status.peers.iter().find(|peer| peer.rid.as_ref() == Some(rid));
    peer.map(|peer| peer.state)
}

/// Waits until `host` has a ready link to `rid`.
#[track_caller]
pub(crate) fn linked(host: &Host, rid: &Rid) -> impl Future<Output = ()> + use<> {
    let (host, rid) = (host.clone(), rid.clone());
    until("a ready link", move || {
        peer_state(&host, &rid) == Some(PeerState::Ready)
    })
}

/// Asks `orders`, and returns who answered.
pub(crate) async fn who(host: &Host) -> String {
    orders_client(host).ask(note("", 0)).await.unwrap().text
}

/// Asks the node `rid` of the mesh `shop` directly, and returns who answered.
pub(crate) async fn who_at(host: &Host, rid: &Rid) -> Result<String, CallError> {
    desk_client(host, &SHOP, rid.clone())
        .ask(note("", 0))
        .await
        .map(|note| note.text)
}

/// Nanoseconds this thread has been on a processor.
pub(crate) fn on_cpu() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split_whitespace().next().unwrap().parse().unwrap()
}

/// A TCP port that nobody uses now.
pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// Whether that port can be bound.
pub(crate) fn is_free(port: u16) -> bool {
    std::net::TcpListener::bind(("127.0.0.1", port)).is_ok()
}

/// How many TCP connections others hold to the listener of that node's mesh `shop`.
pub(crate) fn connections(host: &Host) -> usize {
    established().get(&port_of(host)).copied().unwrap_or_default()
}

/// The port of that node's mesh `shop`.
pub(crate) fn port_of(host: &Host) -> u16 {
    host.mesh("shop").unwrap().endpoint().port().unwrap()
}

/// The TCP connections of this machine, counted by local port.
pub(crate) fn established() -> HashMap<u16, usize> {
    let mut counts = HashMap::new();
    for line in std::fs::read_to_string("/proc/net/tcp").unwrap().lines().skip(1) {
        let mut columns = line.split_whitespace().skip(1);
        let port = columns.next().and_then(|local| local.split_once(':')).unwrap().1;
        if columns.nth(1) == Some("01") {
            *counts.entry(u16::from_str_radix(port, 16).unwrap()).or_default() += 1;
        }
    }
    counts
}

/// A host on a thread of its own, whose sockets close when it is killed, and which says nothing then.
pub(crate) struct Kill(
    Option<tokio::sync::oneshot::Sender<()>>,
    Option<std::thread::JoinHandle<()>>,
);

impl Kill {
    /// Ends every task of the host where it stands.
    pub(crate) fn now(mut self) {
        drop(self.0.take());
        self.1.take().map(std::thread::JoinHandle::join);
    }
}

/// Starts a host that can be killed, as far as one can be within a process.
pub(crate) async fn doomed(start: impl Future<Output = Host> + Send + 'static) -> (Host, Kill) {
    let (started, host) = tokio::sync::oneshot::channel();
    let (kill, killed) = tokio::sync::oneshot::channel::<()>();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let _ = started.send(start.await);
            let _ = killed.await;
        });
    });
    (soon("the start", host).await.unwrap(), Kill(Some(kill), Some(thread)))
}

/// Starts `call` in a task of its own.
pub(crate) fn spawn<T: Send + 'static>(
    call: impl IntoFuture<Output = T, IntoFuture: Send + 'static>,
) -> tokio::task::JoinHandle<T> {
    tokio::spawn(call.into_future())
}
