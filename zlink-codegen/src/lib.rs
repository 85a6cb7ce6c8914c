//! Compiles zlink schemas into typed clients, handler traits and FlatBuffers codecs.

pub mod ir;
