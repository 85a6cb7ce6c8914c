//! For those who test what they build on zlink: whole clusters within one test, on paused time. Cargo feature `testing`.

mod cluster;
mod explore;

pub use cluster::{Cluster, selections};
pub use explore::explore;

pub use crate::channel::Selection;

/// The network that a [`Cluster`] runs on.
pub mod network {
    pub use crate::transport::simulated::{Conditions, Happened, Network, SimulatedTransport, TraceEvent};
}
