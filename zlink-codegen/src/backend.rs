//! Back ends: each turns the IR into files of one language.
//!
//! They see neither syntax nor each other.

pub mod flatbuffers;
pub mod rust;
