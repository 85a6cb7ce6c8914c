//! Classic fanout through the public surface only: publishers and subscribers on a simulated network in virtual time, and
//! peers that say whatever a test wants.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

mod kit;
#[path = "../shared/peer.rs"]
mod peer;

mod alive;
mod around;
mod find;
mod hostile;
mod interop;
mod publish;
mod start;
mod subscribe;
