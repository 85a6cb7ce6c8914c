//! What encoding and decoding refuse, and at which field.
//!
//! It must not know records, links or error kinds: whoever decodes for a caller maps these.

use std::fmt;

/// One step from a message towards a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(&'static str),
    Item(usize),
}

/// The steps from the message down to the fault, innermost first: it grows while the error travels up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Path(Vec<Step>);

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, step) in self.0.iter().rev().enumerate() {
            match step {
                Step::Field(name) if depth == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Item(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

macro_rules! codec_error {
    ($(#[$doc:meta])* $name:ident, $problem:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq)]
        pub struct $name(Box<Inner<$problem>>);

        impl $name {
            /// The path of the field at fault, `order.lines[3].name`; empty where it is the message as a whole.
            #[must_use]
            pub fn field(&self) -> String {
                self.0.path.to_string()
            }

            /// What is wrong with it.
            #[must_use]
            pub fn problem(&self) -> &$problem {
                &self.0.problem
            }

            #[cold]
            pub(super) fn new(problem: $problem) -> Self {
                Self(Box::new(Inner { problem, path: Path::default() }))
            }

            /// The same error, one field further out.
            #[cold]
            pub(super) fn inside(mut self, field: &'static str) -> Self {
                self.0.path.0.push(Step::Field(field));
                self
            }

            /// The same error, one list further out.
            #[cold]
            pub(super) fn at_item(mut self, index: usize) -> Self {
                self.0.path.0.push(Step::Item(index));
                self
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0.path.0.is_empty() {
                    true => write!(f, "the message {}", self.0.problem),
                    false => write!(f, "{} {}", self.0.path, self.0.problem),
                }
            }
        }

        impl std::error::Error for $name {}

        $crate::error::shown!($name);
    };
}

#[derive(Clone, PartialEq, Eq)]
struct Inner<P> {
    problem: P,
    path: Path,
}

codec_error! {
    /// A value that cannot be encoded as its schema demands.
    EncodeError, EncodeProblem
}

codec_error! {
    /// Bytes that are not the message they are read as.
    DecodeError, DecodeProblem
}

/// Why a value cannot be encoded.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeProblem {
    /// More bytes or items than the schema's `max`.
    #[error("has {actual}, more than its maximum of {max}")]
    TooLong {
        /// UTF-8 bytes, bytes or items.
        actual: usize,
        /// The schema's `max`.
        max: u32,
    },
    /// A union member that this program does not know: its content was not kept, so it cannot be sent on.
    #[error("is a union member with the unknown tag {tag}, which cannot be encoded again")]
    UnknownTag {
        /// The number that was received.
        tag: u8,
    },
    /// Tables nested more than [`MAX_DEPTH`](super::MAX_DEPTH) deep.
    #[error("is nested more than {max} deep", max = super::MAX_DEPTH)]
    TooDeep,
    /// More than [`MAX_TABLES`](super::MAX_TABLES) tables.
    #[error("has more than {max} tables", max = super::MAX_TABLES)]
    TooManyTables,
    /// More bytes than a message can have.
    #[error("is larger than {max} bytes", max = crate::limit::PAYLOAD_BYTES)]
    TooLarge,
}

crate::error::shown!(EncodeProblem);

/// Why bytes are not the message they are read as.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeProblem {
    /// Something lies outside the bytes, or outside its table.
    #[error("lies outside the message")]
    OutOfBounds,
    /// A vtable that cannot be one.
    #[error("has a damaged vtable")]
    Vtable,
    /// A required field is absent.
    #[error("is required and absent")]
    Missing,
    /// A string is not UTF-8.
    #[error("is not UTF-8")]
    Utf8,
    /// More bytes or items than the schema's `max`.
    #[error("has {actual}, more than its maximum of {max}")]
    TooLong {
        /// UTF-8 bytes, bytes or items.
        actual: usize,
        /// The schema's `max`.
        max: u32,
    },
    /// A text or byte string that is no identity.
    #[error(transparent)]
    Identity(#[from] crate::id::InvalidId),
    /// An object generation outside 1..=2^63-1.
    #[error("is no object generation: {0} is not in 1..=9223372036854775807")]
    Generation(u64),
    /// A union that says which member it has, without the member; or an item of a list that is no member.
    #[error("is a union without its member")]
    NoMember,
    /// Two entries of a map have the same key.
    #[error("has the key {0:?} twice")]
    DuplicateKey(String),
    /// Tables nested more than [`MAX_DEPTH`](super::MAX_DEPTH) deep.
    #[error("is nested more than {max} deep", max = super::MAX_DEPTH)]
    TooDeep,
    /// More than [`MAX_TABLES`](super::MAX_TABLES) tables.
    #[error("has more than {max} tables", max = super::MAX_TABLES)]
    TooManyTables,
    /// The same bytes are used again and again, so that the value would be far larger than the message.
    #[error("uses its bytes more than {factor} times over", factor = super::reader::VISITS_PER_BYTE)]
    Inflated,
}

crate::error::shown!(DecodeProblem);
