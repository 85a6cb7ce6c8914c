//! The FlatBuffers codec: what generated code needs to turn messages into bytes and back.
//!
//! A codec knows values and bytes: no packet name, route or correlation. This is the only path that the code generated
//! for the wire itself names, so it also carries the names of the standard library that a schema may shadow.

mod carried;
mod define;
mod encoder;
mod error;
mod field;
mod inline;
mod measure;
mod reader;
mod value;
mod writer;

#[doc(hidden)]
pub use std::{
    boxed::Box,
    clone::Clone,
    cmp::PartialEq,
    collections::BTreeMap,
    default::Default,
    fmt::Debug,
    option::Option::{self, None, Some},
    result::Result::{self, Err, Ok},
    string::String,
    vec::Vec,
};

pub use uuid::Uuid;

#[doc(hidden)]
pub use crate::{
    __zlink_enumeration as enumeration, __zlink_message as message, __zlink_structure as structure,
    __zlink_union as union,
};

pub(crate) use self::carried::{Carried, Content, Kept, take};
pub use self::encoder::{decode, encode};
pub use self::error::{DecodeError, DecodeProblem, EncodeError, EncodeProblem};
pub use self::field::Field;
pub use self::inline::{ByteArray, Inline, load, store};
pub use self::measure::Measure;
pub(crate) use self::measure::measure;
pub use self::reader::{At, Reader, Table};
pub use self::value::{Message, Value, no_member};
pub use self::writer::{Child, Inlined, Maybe, Offset, Slot, TableWriter, Writer};
pub use super::time::{SignedDuration, Timestamp};
pub use crate::id::{ActorId, ActorRef, SpotId, SpotRef};

/// Tables within tables, in either direction: messages, unions, map entries.
pub const MAX_DEPTH: u32 = 64;
/// Tables of one message, in either direction.
pub const MAX_TABLES: u32 = 1 << 20;

#[cfg(test)]
mod tests;
