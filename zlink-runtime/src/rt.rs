//! Everything that generated code may name, and nothing else; not meant for people.
//!
//! It owns no behaviour: what stands here is defined in the room it belongs to.

pub use crate::message::codec::*;
pub use crate::message::metadata::MetadataKey;
