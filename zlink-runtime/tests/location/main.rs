//! The stores, through their public surface: the conformance suite on every provider, the faults of the one in memory,
//! SQLite files between processes, and Redis servers in trouble; and the authority of Spots above each of them.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may")]

mod authority;
mod conformance;
mod crowd;
mod ends;
mod eyes;
#[path = "../shared/far.rs"]
mod far;
mod faults;
mod files;
mod host;
mod kit;
mod redis_server;
#[path = "../shared/redis.rs"]
mod server;
#[path = "../shared/store.rs"]
#[allow(dead_code, reason = "other tests use blobs by themselves")]
mod store;
mod surface;
