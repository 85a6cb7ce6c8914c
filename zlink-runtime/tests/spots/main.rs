//! Spots, through the public surface only: real hosts that share a store, in virtual time; and in real time over sockets,
//! on every store.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail"
)]

mod arena;
#[path = "../shared/events.rs"]
#[allow(dead_code, reason = "other tests look for more")]
mod events;
mod far;
mod kit;
#[path = "../shared/redis.rs"]
#[allow(dead_code, reason = "other tests kill and restart it")]
mod server;
#[path = "../shared/far.rs"]
#[allow(dead_code, reason = "other tests come to the end of its revisions")]
mod shared_far;
#[path = "../shared/store.rs"]
mod store;
#[path = "../shared/wait.rs"]
#[allow(dead_code, reason = "other tests wait more briefly")]
mod wait;

// For `events`.
use wait::until;

mod around;
mod asked;
mod bridges;
mod carts;
mod clocks;
mod closers;
mod direct;
mod ends;
mod execution;
mod eyes;
mod heard;
mod ids;
mod instance;
mod large;
mod life;
mod meshes;
mod mirrors;
mod modes;
mod multicast;
mod named;
mod orphans;
mod others;
mod outward;
mod own;
mod placement;
mod pressure;
mod races;
mod registration;
mod resent;
mod routes;
mod stores;
mod ticks;
mod timers;
