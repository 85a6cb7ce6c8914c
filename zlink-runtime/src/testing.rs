//! For those who test what they build on zlink, or build a part of it anew: whole clusters within one test, on paused
//! time, and the conformance suites of stores and transports. Cargo feature `testing`.

pub mod authority;
mod cluster;
mod explore;
mod faulty;
pub mod store;
pub mod transport;

pub use cluster::{Cluster, selections};
pub use explore::explore;
pub use faulty::Faulty;

pub use crate::channel::Selection;

/// The network that a [`Cluster`] runs on.
pub mod network {
    pub use crate::transport::simulated::{Conditions, Happened, Network, SimulatedTransport, TraceEvent};
}
