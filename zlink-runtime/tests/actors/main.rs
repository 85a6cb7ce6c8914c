//! Actors, through the public surface only: real hosts that share a store, in virtual time, on every store and with the caller
//! here or elsewhere.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail"
)]

#[path = "../spots/arena.rs"]
mod arena;
#[path = "../simulation/dice.rs"]
mod dice;
#[path = "../shared/events.rs"]
#[allow(dead_code, reason = "other tests look for more")]
mod events;
#[path = "../spots/far.rs"]
#[allow(dead_code, reason = "other tests look on")]
mod far;
#[path = "../spots/kit.rs"]
#[allow(dead_code, reason = "what only rooms and carts need")]
mod kit;
#[path = "../shared/redis.rs"]
#[allow(dead_code, reason = "other tests kill and restart it")]
mod server;
#[path = "../shared/far.rs"]
#[allow(dead_code, reason = "other tests come to the end of its revisions")]
mod shared_far;
#[path = "../shared/store.rs"]
#[allow(dead_code, reason = "other tests open it themselves")]
mod store;
#[path = "../shared/wait.rs"]
#[allow(dead_code, reason = "for the server")]
mod wait;

// For `events`.
use wait::until;

mod again;
mod create;
mod ends;
mod entry;
mod life;
mod messages;
mod players;
mod refused;
mod routes;
mod start;
mod storm;
