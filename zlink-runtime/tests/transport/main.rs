//! The transport's contract, on the default implementation: what travels, what is held back, what is refused.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test's own helpers may fail it, and its numbers are small"
)]

mod basics;
mod kit;
mod pressure;
