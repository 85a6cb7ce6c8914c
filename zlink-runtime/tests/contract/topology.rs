//! Chapter 01: who is linked with whom, what a peer may say, what ends a link.

mod client_server;
mod crowd;
mod handshake;
mod intents;
mod lifecycle;
mod links;

use zlink_generated::contract::ORDERS;
use zlink_generated::zlink_wire::{ChannelServer, Hello};
use zlink_runtime::Host;
use zlink_runtime::id::Rid;

use crate::kit::{Raw, endpoint, hello_of, linked};

/// Joins as the node `raw`, each time as a new run.
async fn join_at(host: &Host, channels: &[ChannelServer]) -> Raw {
    let hello = Hello {
        channels: channels.to_vec(),
        generation: zlink_runtime::id::Generation::random().to_wire(),
        ..hello_of("raw")
    };
    let raw = Raw::join(&endpoint(host), &hello).await;
    linked(host, &Rid::new("raw").unwrap()).await;
    raw
}

/// The weights of the servers of `orders` that `host` may select.
fn targets(host: &Host) -> Vec<u16> {
    let status = host.mesh("shop").unwrap().status();
    let orders = status.channels.into_iter().find(|(name, _)| *name == ORDERS);
    orders
        .map(|(_, targets)| targets.iter().map(|target| target.weight).collect())
        .unwrap_or_default()
}
