//! Leases, descriptors and discovery, through the public surface only: real hosts that share a store, which can be taken
//! from them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

mod kit;

mod answers;
mod eyes;
mod find;
mod outage;
mod pause;
mod restart;
mod spoof;
mod start;
mod status;
mod virtual_time;
