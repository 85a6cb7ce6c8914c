//! What applications exchange: messages, their bytes, and the metadata beside them.
//!
//! It must not know how a message travels: no record, link, route or handler.

pub mod codec;
pub mod metadata;
pub mod time;

/// The content type of the generated codec, which every record has that names no other.
pub const CONTENT_TYPE: &str = "application/x-flatbuffers";
