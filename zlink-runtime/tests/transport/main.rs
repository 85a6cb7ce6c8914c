//! The transports' contract: the public suite over each implementation, and what only one of them has.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's own helpers may fail it")]

mod interop;
mod link;
#[path = "../shared/peer.rs"]
mod peer;
mod simulated;
mod suite;
#[cfg(feature = "zeromq")]
mod zeromq;
