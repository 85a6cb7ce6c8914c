//! The contract of the runtime, through its public surface only: real hosts, real links, generated stubs. One module
//! per chapter of the contract; each test names the rules that it would see broken.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test may fail, and its numbers are small"
)]

mod kit;

mod attack;
mod channel;
mod corners;
mod errors;
mod execution;
mod figures;
mod filters;
mod flow;
mod handover;
mod messages;
mod objects;
mod permits;
mod ready;
mod records;
#[cfg(feature = "serde")]
mod references;
mod reroute;
mod sends;
mod shown;
mod sockets;
mod stall;
mod startup;
mod steady;
mod stop;
mod topology;
