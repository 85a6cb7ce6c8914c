//! Two sides of the channel `orders`, over a mesh or over ClientServer, alike for tests that do both.

use zlink_generated::contract::ORDERS;
use zlink_generated::zlink_wire::{ChannelServer as Membership, Hello, ObjectRole, Topology};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::ChannelServer;
use zlink_runtime::{HostBuilder, ListenerKind};

use super::{ANY, Raw, hello_of, node, until};

/// How the two sides are linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Mesh,
    ClientServer,
}

/// Both ways.
pub(crate) const WAYS: [Way; 2] = [Way::Mesh, Way::ClientServer];

/// A host that serves a channel that way.
pub(crate) async fn serving(
    way: Way,
    server: ChannelServer,
    configure: impl FnOnce(HostBuilder) -> HostBuilder,
) -> Host {
    let builder = match way {
        Way::Mesh => node("server", |mesh| mesh.serve(server)),
        Way::ClientServer => Host::builder().client_server(|channel| channel.serve(server).listen(ANY)),
    };
    configure(builder).start().await.unwrap()
}

/// Where a host listens, for calls to `orders`.
pub(crate) fn address(host: &Host) -> String {
    let name = if host.client_server("orders").is_ok() {
        "orders"
    } else {
        "shop"
    };
    address_of(host, name)
}

/// Where a host listens for the mesh or the ClientServer channel of that name.
pub(crate) fn address_of(host: &Host, name: &str) -> String {
    let listener = host
        .listener(ListenerKind::ClientServer, name)
        .or_else(|_| host.listener(ListenerKind::RouteMesh, name));
    listener.unwrap().endpoint.to_string()
}

/// How many servers of `orders` the host may select.
pub(crate) fn candidates(host: &Host) -> usize {
    let status = match host.client_server("orders") {
        Ok(channel) => channel.status(),
        Err(_) => host.mesh("shop").unwrap().status(),
    };
    let orders = status.channels.into_iter().find(|(name, _)| *name == ORDERS);
    orders.map_or(0, |(_, targets)| targets.len())
}

/// A host that calls `orders` at `server`, with the link ready.
pub(crate) async fn calling(
    way: Way,
    rid: &str,
    server: &Host,
    configure: impl FnOnce(HostBuilder) -> HostBuilder,
) -> Host {
    let to = address(server);
    let builder = match way {
        Way::Mesh => node(rid, |mesh| mesh.client(ORDERS).connect(to)),
        Way::ClientServer => Host::builder().client_server(|channel| channel.client(ORDERS).connect(to)),
    };
    let host = configure(builder).start().await.unwrap();
    until("a server to call", || candidates(&host) == 1).await;
    host
}

/// What a peer says of itself that serves `orders`.
pub(crate) fn hello_that_serves(way: Way) -> Hello {
    let channels = vec![Membership {
        name: "orders".into(),
        weight: 100,
    }];
    match way {
        Way::Mesh => Hello {
            channels,
            ..hello_of("raw")
        },
        Way::ClientServer => Hello {
            topology: Topology::ClientServer,
            scope: "orders".into(),
            role: ObjectRole::Unspecified,
            channels,
            ..hello_of("raw")
        },
    }
}

/// A peer that calls `orders` of `server` and says what it likes.
pub(crate) async fn raw_client(way: Way, rid: &str, server: &Host) -> Raw {
    let hello = match way {
        Way::Mesh => hello_of(rid),
        Way::ClientServer => Hello {
            topology: Topology::ClientServer,
            scope: "orders".into(),
            ..hello_of(rid)
        },
    };
    Raw::join(&address(server), &hello).await
}

/// A host that calls `orders`, and the only server it has: a peer that says what it likes.
pub(crate) async fn raw_server(way: Way, configure: impl FnOnce(HostBuilder) -> HostBuilder) -> (Host, Raw) {
    let hello = hello_that_serves(way);
    let (host, raw) = match way {
        Way::Mesh => {
            let host = configure(node("client", |mesh| mesh.client(ORDERS)))
                .start()
                .await
                .unwrap();
            let raw = Raw::join(&address(&host), &hello).await;
            (host, raw)
        }
        Way::ClientServer => {
            let mut listener = Raw::listen("raw").await;
            let builder = Host::builder().client_server(|channel| channel.client(ORDERS).connect(listener.endpoint()));
            let host = configure(builder).start().await.unwrap();
            let raw = listener.accept().await;
            raw.admit(&hello).await;
            (host, raw)
        }
    };
    until("the server to be known", || candidates(&host) == 1).await;
    (host, raw)
}

/// Waits until no host holds a permit or waits for a reply.
#[track_caller]
pub(crate) fn at_rest(hosts: &[&Host]) -> impl Future<Output = ()> + use<> {
    let hosts: Vec<Host> = hosts.iter().map(|host| (*host).clone()).collect();
    until("every permit to return", move || {
        hosts.iter().all(|host| {
            let status = host.status();
            status.jobs.in_use() == 0 && status.waiting_requests == 0
        })
    })
}
