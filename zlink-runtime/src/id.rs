//! Identities: every name and token that zlink routes by, each its own type, validated once when it is made.
//!
//! It must not know what an identity leads to: no table, no link, no object.

mod object;
mod reference;
#[cfg(feature = "serde")]
mod serial;

pub(crate) use self::object::{ObjectId, ObjectKind, ObjectRef, Space};
pub use self::reference::{ActorRef, ObjectGeneration, SpotRef};

use std::borrow::Borrow;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

use crate::random::Random;

/// The longest text identity, RID or topic, in bytes.
pub const MAX_ID_BYTES: usize = 255;

/// Why a text or byte string is no identity.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {problem}")]
pub struct InvalidId {
    what: &'static str,
    problem: Problem,
}

impl fmt::Debug for InvalidId {
    /// As people read it: a `main` that ends with `?` prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error("is empty; it needs 1 to 255 bytes")]
    Empty,
    #[error("has {0} bytes; at most 255 are allowed")]
    TooLong(usize),
    #[error("contains a NUL character at byte {0}; remove it")]
    Nul(usize),
    #[error("has a prefix that is not 1 to 64 ASCII letters, digits, '.', '_' or '-'")]
    Prefix,
}

const fn is_text_id(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.is_empty() || bytes.len() > MAX_ID_BYTES {
        return false;
    }
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == 0 {
            return false;
        }
        at += 1;
    }
    true
}

/// A hash of a text, the same at compile time and at run time. It chooses places in tables, nothing else.
pub(crate) const fn text_hash(text: &str) -> u64 {
    bytes_hash(text.as_bytes())
}

/// The same of what may be a text: eight bytes at a time, each multiplied and folded, so that every bit of it reaches all bits.
pub(crate) const fn bytes_hash(bytes: &[u8]) -> u64 {
    let (mut rest, mut hash) = (bytes, bytes.len() as u64);
    while let Some((word, after)) = rest.split_first_chunk() {
        hash = mixed(hash, u64::from_le_bytes(*word));
        rest = after;
    }
    // The last eight bytes once more are cheaper than what is left of them, one by one.
    let last = match (bytes.last_chunk(), rest.first_chunk(), rest.last_chunk()) {
        (Some(last), ..) => u64::from_le_bytes(*last),
        (None, Some(first), Some(last)) => (u32::from_le_bytes(*first) as u64) << 32 | u32::from_le_bytes(*last) as u64,
        (None, ..) => match *rest {
            [a, b, c] => u64::from_le_bytes([a, b, c, 0, 0, 0, 0, 0]),
            [a, b] => u64::from_le_bytes([a, b, 0, 0, 0, 0, 0, 0]),
            [a] => a as u64,
            _ => 0,
        },
    };
    mixed(hash, last)
}

const fn mixed(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ hash >> 32
}

fn check_text(what: &'static str, text: &str) -> Result<(), InvalidId> {
    let problem = if text.is_empty() {
        Problem::Empty
    } else if text.len() > MAX_ID_BYTES {
        Problem::TooLong(text.len())
    } else if let Some(at) = text.bytes().position(|byte| byte == 0) {
        Problem::Nul(at)
    } else {
        return Ok(());
    };
    Err(InvalidId { what, problem })
}

#[derive(Clone)]
enum Text {
    Static(&'static str),
    Shared(Arc<str>),
}

impl Text {
    fn as_str(&self) -> &str {
        match self {
            Text::Static(text) => text,
            Text::Shared(text) => text,
        }
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        ///
        /// 1 to 255 bytes of UTF-8 without NUL, compared byte for byte, never normalised. Clones are cheap.
        #[derive(Clone)]
        pub struct $name(Text);

        impl $name {
            /// Checks `text` and makes it an identity.
            ///
            /// # Errors
            /// Where it is empty, longer than 255 bytes, or holds a NUL.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidId> {
                let text = text.as_ref();
                check_text($what, text)?;
                Ok(Self(Text::Shared(text.into())))
            }

            /// The same for a text known at compile time, without an allocation.
            ///
            /// # Panics
            /// Where the text is no identity: in a constant, that is a compile error.
            #[must_use]
            #[allow(clippy::panic, reason = "a constant that is wrong must not compile")]
            pub const fn from_static(text: &'static str) -> Self {
                if !is_text_id(text) {
                    panic!(concat!($what, " needs 1 to 255 bytes without NUL"));
                }
                Self(Text::Static(text))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.as_str() == other.as_str()
            }
        }
        impl Eq for $name {}
        impl std::hash::Hash for $name {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.as_str().hash(state);
            }
        }
        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.as_str().as_bytes().cmp(other.as_str().as_bytes())
            }
        }
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                self.as_str()
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // As messages quote it.
                fmt::Debug::fmt(self.as_str(), f)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
        impl std::str::FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }
        impl TryFrom<&str> for $name {
            type Error = InvalidId;
            fn try_from(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }
        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }
        impl From<&$name> for $name {
            fn from(name: &$name) -> Self {
                name.clone()
            }
        }
    };
}

text_id! {
    /// The name of a RouteMesh: the scope of its links, and of its RIDs.
    MeshName, "a MeshName"
}
text_id! {
    /// A process-local logical name that leads to exactly one send path.
    ChannelName, "a ChannelName"
}
text_id! {
    /// The name of a timer among those of its Spot.
    TimerName, "a timer name"
}
text_id! {
    /// What a publish is about, within its channel. Subscriptions match it byte for byte.
    Topic, "a topic"
}
text_id! {
    /// The stable name on the wire that selects a typed handler.
    PacketName, "a packet name"
}
text_id! {
    /// The identity of a Spot, global to its mesh.
    SpotId, "a Spot ID"
}
text_id! {
    /// What kind of Spots an application has, by a name that outlives deployments: it selects the factory.
    SpotType, "a Spot type"
}
text_id! {
    /// The identity of an Actor, global to its mesh.
    ActorId, "an Actor ID"
}
text_id! {
    /// What kind of Actors an application has, by a name that outlives deployments: it selects the factory.
    ActorType, "an Actor type"
}

impl ActorType {
    /// The name as it is kept for types of all objects.
    pub(crate) fn stable(&self) -> SpotType {
        SpotType(self.0.clone())
    }
}

/// How a Spot comes to be, and what it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SpotKind {
    /// Made by its node at start-up, one per node.
    Entry,
    /// Made when somebody asks for it to be created; may have Actors.
    User,
    /// Made when its first message arrives.
    Instance,
}

/// The opaque bytes that name a node, a ClientServer server or a publisher.
///
/// 1 to 255 bytes, compared as unsigned bytes; a prefix sorts first. Its text never drives routing.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rid(Arc<[u8]>);

impl Rid {
    /// Checks `bytes` and makes them a RID.
    ///
    /// # Errors
    /// Where there are none, or more than 255.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self, InvalidId> {
        let bytes = bytes.as_ref();
        let problem = match bytes.len() {
            0 => Problem::Empty,
            1..=MAX_ID_BYTES => return Ok(Self(bytes.into())),
            more => Problem::TooLong(more),
        };
        Err(InvalidId { what: "a RID", problem })
    }

    /// A new RID, `<prefix>-<UUID v4>`, never the same twice.
    ///
    /// # Errors
    /// Where the prefix is not 1 to 64 ASCII letters, digits, `.`, `_` or `-`.
    pub fn generate(prefix: &str) -> Result<Self, InvalidId> {
        Self::drawn(prefix, &Random::default())
    }

    /// The same, from a source of randomness.
    pub(crate) fn drawn(prefix: &str, random: &Random) -> Result<Self, InvalidId> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if prefix.is_empty() || prefix.len() > 64 || !prefix.bytes().all(legal) {
            return Err(InvalidId {
                what: "a RID",
                problem: Problem::Prefix,
            });
        }
        Self::new(format!("{prefix}-{}", random.uuid().hyphenated()))
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Rid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

impl fmt::Debug for Rid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rid({self})")
    }
}

impl TryFrom<&str> for Rid {
    type Error = InvalidId;
    fn try_from(text: &str) -> Result<Self, InvalidId> {
        Self::new(text)
    }
}

impl From<&Rid> for Rid {
    fn from(rid: &Rid) -> Self {
        rid.clone()
    }
}

/// Tells two runs apart that use the same identity. Compared for equality only.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Generation(NonZeroU64);

impl Generation {
    /// A new token from the system's random source.
    #[must_use]
    pub fn random() -> Self {
        Self::drawn(&Random::default())
    }

    /// A new token from a source of randomness.
    pub(crate) fn drawn(random: &Random) -> Self {
        loop {
            if let Some(token) = NonZeroU64::new(random.bits()) {
                return Self(token);
            }
        }
    }

    /// A token that a peer sent; `None` for 0, which is no generation.
    #[must_use]
    pub const fn from_wire(token: u64) -> Option<Self> {
        match NonZeroU64::new(token) {
            Some(token) => Some(Self(token)),
            None => None,
        }
    }

    /// The number that travels.
    #[must_use]
    pub const fn to_wire(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Debug for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Generation({:016x})", self.0)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// One link, in this process, never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(pub u64);
