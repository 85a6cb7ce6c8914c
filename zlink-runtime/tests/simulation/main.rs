//! Whole clusters on simulated networks: seeds and faults, one invariant per file.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

mod basics;
