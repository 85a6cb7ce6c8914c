//! A network within one test: the link layer as it is, over streams in memory instead of sockets.
//!
//! It owns latency, cuts, broken connections and their seed. It must not know hosts, or what a record says. Links do
//! here all that they do over TCP, since only the streams below them are another kind.
//!
//! What is lost: a stream is reliable, so no single record ever goes missing. A *connection* breaks, with everything
//! that was under way on it, and both ends find that out; or an attempt to connect is refused, or never answered. What
//! a cut path carries is held, as TCP holds it by sending again, and arrives once the cut has healed. Within a
//! connection order holds; between connections, and so between links and between the lanes of one, it does not.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{
    Acceptor, BoxFuture, Connections, Endpoint, Link, LinkConfig, LinkTransport, Listener, Offer, Transport,
    TransportError,
};

mod network;
mod state;
mod stream;
mod trace;

pub use network::Network;
pub use trace::{Happened, TraceEvent};

/// What the way from one node to another does to what travels on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditions {
    /// How long everything takes at least. Time passes in whole milliseconds.
    pub latency: Duration,
    /// Up to how much longer it takes, evenly spread.
    pub jitter: Duration,
    /// How much it carries at most; a small number makes a slow peer. `None` for no bound.
    pub bytes_per_second: Option<u64>,
    /// How probable it is, 0 to 1, that a written piece is lost, and its connection broken with it.
    pub breaks: f64,
    /// How probable it is, 0 to 1, that an attempt to connect is refused.
    pub refusals: f64,
}

impl Default for Conditions {
    /// 1 ms each way, and no failure.
    fn default() -> Self {
        Self {
            latency: Duration::from_millis(1),
            jitter: Duration::ZERO,
            bytes_per_second: None,
            breaks: 0.0,
            refusals: 0.0,
        }
    }
}

/// The transport of one run of one node: links over a [`Network`].
///
/// It must be used within a current-thread tokio runtime, best with its time paused.
#[derive(Clone)]
pub struct SimulatedTransport(LinkTransport);

impl SimulatedTransport {
    fn new(sockets: stream::NodeSockets) -> Self {
        Self(LinkTransport::over(LinkConfig::default(), Arc::new(sockets)))
    }
}

impl Transport for SimulatedTransport {
    fn bind<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        offer: Offer,
        acceptor: Arc<dyn Acceptor>,
    ) -> BoxFuture<'a, Result<Box<dyn Listener>, TransportError>> {
        self.0.bind(endpoint, offer, acceptor)
    }

    fn dial<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        offer: Offer,
    ) -> BoxFuture<'a, Result<Arc<dyn Link>, TransportError>> {
        self.0.dial(endpoint, offer)
    }

    fn connections(&self) -> Option<Connections> {
        self.0.connections()
    }
}

impl fmt::Debug for SimulatedTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimulatedTransport")
    }
}
