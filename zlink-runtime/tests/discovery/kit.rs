//! What the tests of discovery share. It knows the public surface, and no rule.

pub(crate) mod line;
#[path = "../shared/wait.rs"]
mod wait;

use std::future::Future;
use std::time::{Duration, Instant};

use zlink_generated::contract::{DeskHandler, Note, STOCK, StockHandler, stock_client, stock_server};
use zlink_runtime::error::{CallError, ErrorKind, HandlerError};
use zlink_runtime::id::Rid;
use zlink_runtime::location::{LocationStore, LocationTiming, MemoryStore, Scan, Scanned};
use zlink_runtime::prelude::*;
use zlink_runtime::{HostBuilder, LocationState, MeshBuilder, PeerState};

pub(crate) use line::Line;
pub(crate) use wait::{SOON, Stopwatch, until, until_within, within};

/// Looks often; all else as it is by default.
pub(crate) fn quick() -> LocationTiming {
    LocationTiming {
        poll_interval: Duration::from_millis(50),
        ..LocationTiming::default()
    }
}

/// Leases that end soon.
pub(crate) const SHORT: LocationTiming = LocationTiming {
    renew_interval: Duration::from_millis(200),
    lease_ttl: Duration::from_millis(2500),
    renew_timeout: Duration::from_millis(300),
    fencing_margin: Duration::from_millis(500),
    poll_interval: Duration::from_millis(50),
    store_failure_grace: Duration::from_millis(500),
};

/// A handler that says who it is.
#[derive(Clone)]
pub(crate) struct Clerk(pub(crate) String);

impl Clerk {
    pub(crate) fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    fn answer(&self, number: u64) -> Note {
        Note {
            text: self.0.clone(),
            number,
            body: Vec::new(),
        }
    }
}

impl StockHandler for Clerk {
    async fn ask(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        Ok(self.answer(request.number))
    }

    async fn tell(&self, _: &ChannelContext<'_>, _: Note) -> Result<(), HandlerError> {
        Ok(())
    }
}

impl DeskHandler for Clerk {
    async fn ask(&self, _: &NodeContext<'_>, request: Note) -> Result<Note, HandlerError> {
        Ok(self.answer(request.number))
    }

    async fn tell(&self, _: &NodeContext<'_>, _: Note) -> Result<(), HandlerError> {
        Ok(())
    }
}

/// A host of the mesh `shop` that is found through `store`. RIDs begin with `prefix`: the smaller one dials.
pub(crate) fn node(
    store: impl LocationStore,
    prefix: &str,
    configure: impl FnOnce(MeshBuilder) -> MeshBuilder,
) -> HostBuilder {
    Host::builder()
        .location_store(store)
        .location_timing(quick())
        .mesh("shop", |mesh| configure(mesh.rid_prefix(prefix)))
}

/// A host that answers `stock` in the mesh `shop`.
pub(crate) fn server(store: impl LocationStore, name: &str) -> HostBuilder {
    node(store, name, |mesh| mesh.serve(stock_server(Clerk::new(name))))
}

/// A host that calls `stock` in the mesh `shop`.
pub(crate) fn caller(store: impl LocationStore, prefix: &str) -> HostBuilder {
    node(store, prefix, |mesh| mesh.client(STOCK))
}

/// Asks `stock`, and returns who answered.
pub(crate) async fn ask(host: &Host) -> Result<String, CallError> {
    stock_client(host).ask(Note::default()).await.map(|note| note.text)
}

/// The kind with which a call fails.
#[track_caller]
pub(crate) fn kind(result: Result<String, CallError>) -> ErrorKind {
    result.unwrap_err().kind().unwrap()
}

/// Waits until selection at `host` has exactly these servers of `stock`, named by the prefixes of their RIDs.
#[track_caller]
pub(crate) fn selects(host: &Host, prefixes: &[&str]) -> impl Future<Output = ()> + use<> {
    let mut prefixes: Vec<_> = prefixes.iter().map(|prefix| (*prefix).to_owned()).collect();
    prefixes.sort_unstable();
    let host = host.clone();
    until(&format!("servers {prefixes:?}"), move || targets(&host) == prefixes)
}

/// The servers of `stock` that selection at `host` has, by the prefixes of their RIDs.
pub(crate) fn targets(host: &Host) -> Vec<String> {
    let status = host.mesh("shop").unwrap().status();
    let mut targets: Vec<_> = status
        .channels
        .iter()
        .flat_map(|(_, targets)| targets)
        .map(|one| prefix(&one.rid))
        .collect();
    targets.sort_unstable();
    targets
}

fn prefix(rid: &Rid) -> String {
    let text = String::from_utf8(rid.as_bytes().to_vec()).unwrap();
    // A version 4 UUID and its hyphen.
    text[..text.len() - 37].to_owned()
}

/// The peers of `host` in the mesh `shop`: the prefix of each RID, and how it stands.
pub(crate) fn peers(host: &Host) -> Vec<(String, PeerState)> {
    let status = host.mesh("shop").unwrap().status();
    status
        .peers
        .iter()
        .map(|peer| (peer.rid.as_ref().map(prefix).unwrap_or_default(), peer.state))
        .collect()
}

/// The RID of the node of `host` in the mesh `shop`.
pub(crate) fn rid(host: &Host) -> Rid {
    host.mesh("shop").unwrap().rid()
}

pub(crate) fn state(host: &Host) -> LocationState {
    host.status().location.unwrap().state
}

pub(crate) fn admits(host: &Host) -> bool {
    host.status().location.unwrap().admits_owned_work
}

/// The keys of everything in the store that begins with one of these prefixes.
pub(crate) async fn keys(store: &MemoryStore, prefixes: &[&str]) -> Vec<String> {
    let mut keys = Vec::new();
    for prefix in prefixes {
        let Scanned::Page(page) = store.scan(&Scan::new(*prefix, 1000).unwrap()).await.unwrap() else {
            panic!("a first page is never expired");
        };
        keys.extend(page.entries.iter().map(|(key, _)| key.as_str().to_owned()));
    }
    keys
}

/// What hosts leave in a store while they live.
pub(crate) const OF_HOSTS: &[&str] = &["lease/", "node/", "server/"];

/// A TCP port that nobody uses now.
pub(crate) fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Lets everything run that can run now, several times over: for what must *not* happen there is no event to wait for.
pub(crate) async fn settle(host: &Host) {
    // Three complete lists later, whatever the store says has come to pass.
    for _ in 0..3 {
        let before = looked(host);
        let host = host.clone();
        until("a complete list", move || looked(&host) > before).await;
    }
}

fn looked(host: &Host) -> Instant {
    let age = host.status().location.unwrap().list_age;
    Instant::now().checked_sub(age.unwrap_or(SOON)).unwrap()
}
