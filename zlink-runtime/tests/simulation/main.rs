//! Whole clusters on simulated networks: seeds and faults, one invariant per file.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

mod basics;
mod dice;
mod faults;
mod liveness;
mod once;
mod order;
#[path = "../shared/players.rs"]
mod players;
mod rest;
mod slow;
mod spots;
mod stored;
mod storm;
mod terminal;
mod work;
mod world;
