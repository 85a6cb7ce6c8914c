//! Compiles zlink schemas into typed clients, handler traits and FlatBuffers codecs.

#![forbid(unsafe_code)]

pub mod backend;
#[cfg(feature = "cli")]
pub mod cli;
mod compile;
pub mod diagnostic;
mod evolution;
pub mod ir;
mod lint;
mod load;
pub mod name;
pub mod output;
mod resolve;
pub mod source;
mod syntax;

#[doc(hidden)]
pub use compile::fuzz_load;
pub use compile::{compile, load};
