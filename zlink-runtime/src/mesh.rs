//! Who this host is linked with: admission, the peer table, liveness, and the intents that make links.
//!
//! A [`Links`] is all links of one MeshNode, of one ClientServer server, or of one ClientServer client. It must not
//! know handlers or calls: what is not its own business goes up through [`Upcall`].

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use crate::id::{ChannelName, Generation, LinkId, Rid};
use crate::permit::Permit;
use crate::transport::CloseReason;

mod admission;
mod backoff;
mod descriptor;
mod discovered;
mod discovery;
mod flow;
mod info;
mod intent;
mod links;
mod liveness;
mod objects;
mod peer;
mod plan;
mod sink;
mod table;
mod upkeep;

pub(crate) use backoff::Backoff;
pub(crate) use descriptor::{Announced, Publishes, claim, record as published};
pub(crate) use discovery::{Discovery, Searches};
pub(crate) use flow::ReceiveFlow;
pub use info::ObjectRole;
pub(crate) use info::{Hashed, NodeInfo, OperationId, Operations, Scope};
pub(crate) use links::{Links, LinksConfig, Lookup, WeakLinks};
pub(crate) use objects::ObjectServer;
pub(crate) use peer::PeerLink;
pub(crate) use plan::{Need, plan};

/// What the floor above hears. Called on link tasks: it must not block or run handlers.
pub(crate) trait Upcall: Send + Sync {
    /// A record of an admitted link that is not the mesh's own business, read at about `at`.
    fn record(&self, peer: &Arc<PeerLink>, record: Bytes, permit: Option<Permit>, at: Instant);

    /// The peers as they are now. A call with a lower `version` than one seen already is late and means nothing.
    /// `elsewhere` is there where every endpoint that is dialled has answered that what is wanted is not there, and says
    /// what they are instead.
    fn peers_changed(&self, version: u64, peers: &[PeerView], elsewhere: Option<&str>);

    /// A link that was ready has ended.
    fn link_closed(&self, peer: &Arc<PeerLink>, reason: &CloseReason);

    /// Whether a request of this host still waits for a reply on that link.
    fn waits_on(&self, link: LinkId) -> bool;
}

/// One peer, as selection sees it.
#[derive(Clone, Debug)]
pub(crate) struct PeerView {
    pub(crate) rid: Rid,
    /// Its Server memberships and their weights.
    pub(crate) channels: Vec<(ChannelName, u16)>,
    pub(crate) draining: bool,
    /// The link to use, while one is ready.
    pub(crate) link: Option<Arc<PeerLink>>,
}

/// A node that can have Spots, and is linked.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    pub(crate) rid: Rid,
    pub(crate) generation: Generation,
    pub(crate) objects: ObjectServer,
}

/// How a peer stands, as status tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PeerState {
    /// A link is being made.
    Connecting,
    /// Its link is admitted.
    Ready,
    /// Its link is admitted, and it takes no new channel work.
    Draining,
    /// A link is needed and missing.
    NotConnected,
    /// No link is needed between the two.
    NotRequired,
}
