//! What the generator writes, compiled as strictly as an application may: no `unsafe`, no warning, nothing undocumented.
//!
//! The modules are written by `zlink-codegen/tests/generated.rs`; only this file is by hand.

#![forbid(unsafe_code)]
#![deny(
    warnings,
    missing_docs,
    unused,
    nonstandard_style,
    future_incompatible,
    rust_2018_idioms
)]

pub mod arena;
pub mod billing;
pub mod contract;
pub mod core;
pub mod crate_;
pub mod depot;
pub mod interop;
pub mod interop_next;
pub mod obstacles;
pub mod order;
pub mod test_common;
pub mod test_every_type;
pub mod zlink_wire;
