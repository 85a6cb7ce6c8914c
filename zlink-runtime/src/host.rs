//! The single runtime of a process: it validates what was registered, starts it, drains it and stops it.
//!
//! It owns lifecycle and nothing that happens in between: messages pass through the floors below without it.

use std::fmt;
use std::sync::Arc;

use crate::channel::{Caller, Inbound, Outbound, Queue, caller};
use crate::error::ErrorKind;
use crate::execution::Workers;
use crate::fanout::Fanout;
use crate::id::{ChannelName, MeshName};
use crate::mesh::{Links, ReceiveFlow};
use crate::permit::HostPermits;
use crate::spot::Spots;
use crate::transport::LinkProfile;

mod builder;
mod channel_builder;
mod control;
mod describe;
mod fanout;
mod fanout_builder;
mod location;
mod mesh_builder;
mod objects_builder;
mod pressure;
mod ready;
mod shutdown;
mod socket;
mod spots;
mod stall;
mod start;
mod status;
mod validate;

pub use builder::{HostBuilder, JobProfile};
pub use channel_builder::ClientServerBuilder;
pub use control::{ChannelControl, IntentStatus, ListenerInfo, ListenerKind, MeshNode};
pub use fanout::FanoutControl;
pub use fanout_builder::FanoutBuilder;
pub use location::{LocationState, LocationStatus};
pub use mesh_builder::MeshBuilder;
pub use objects_builder::ObjectServerBuilder;
pub use shutdown::ShutdownError;
pub use spots::{SpotCursor, SpotEntry, SpotEntryState, SpotPage, SpotQuery};
pub use status::{
    FanoutStatus, HostPhase, HostStatus, JobQueueStatus, LinksStatus, PeerStatus, PublisherStatus, TargetStatus,
    TopologyKind, TopologyPhase, TopologyReason, TopologyStatus,
};

/// A running host. Clones are handles to the same one.
///
/// Calls start from it: `billing::client(&host)`. When its last handle is dropped without [`Host::shutdown`] it stops
/// at once, without finishing what it had accepted.
///
/// # Examples
/// ```
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use zlink_runtime::prelude::*;
///
/// let host = Host::builder().mesh("shop", |mesh| mesh.listen("tcp://127.0.0.1:0")).start().await?;
/// println!("listening on {}", host.mesh("shop")?.endpoint());
/// host.shutdown().await?;
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone)]
pub struct Host(Arc<Inner>);

pub(crate) struct Inner {
    runtime: tokio::runtime::Handle,
    outbound: Outbound,
    permits: HostPermits,
    flow: ReceiveFlow,
    profiles: Profiles,
    workers: parking_lot::Mutex<Option<Workers>>,
    meshes: Vec<Mesh>,
    channels: Vec<Channel>,
    fanouts: Vec<Fanout>,
    queues: Vec<(Queue, ErrorKind)>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
    drain_timeout: std::time::Duration,
    location: Option<location::Location>,
    /// Where a mesh has an object role.
    spots: Option<Spots>,
    stopping: shutdown::Stopping,
    sequence: status::Sequence,
}

/// What was chosen by name, for status.
#[derive(Clone, Copy)]
struct Profiles {
    jobs: Option<JobProfile>,
    links: LinkProfile,
}

/// A MeshNode of this host.
pub(crate) struct Mesh {
    name: MeshName,
    links: Links,
    endpoint: crate::transport::Endpoint,
    /// What comes in over them, and from this host itself.
    inbound: Arc<Inbound>,
    /// Whether it is published, and finds its peers, through the Location Store.
    automatic: bool,
    sequence: status::Sequence,
}

/// A ClientServer channel of this host.
pub(crate) struct Channel {
    name: ChannelName,
    server: Option<(Links, crate::transport::Endpoint)>,
    /// What comes in to the server.
    inbound: Option<Arc<Inbound>>,
    client: Option<Links>,
    /// As in [`Mesh`].
    automatic: bool,
    sequence: status::Sequence,
}

impl Host {
    /// Begins a host. Nothing happens until [`HostBuilder::start`].
    pub fn builder() -> HostBuilder {
        HostBuilder::default()
    }
}

impl caller::Caller for Host {
    fn outbound(&self) -> &Outbound {
        &self.0.outbound
    }

    fn running(&self) -> Option<std::sync::Weak<()>> {
        None
    }
}

impl Caller for Host {}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("state", &self.0.outbound.state())
            .finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.abandon();
    }
}
