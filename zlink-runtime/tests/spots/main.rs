//! Spots, through the public surface only: real hosts that share a store, in virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail"
)]

mod arena;
mod kit;

mod direct;
mod instance;
mod life;
mod others;
