//! Compiles zlink schemas into typed clients, handler traits and FlatBuffers codecs.

#![forbid(unsafe_code)]

pub mod backend;
mod compile;
pub mod diagnostic;
pub mod ir;
mod load;
pub mod name;
pub mod output;
mod resolve;
pub mod source;
mod syntax;

pub use compile::load;
