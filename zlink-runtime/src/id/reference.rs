//! References: one exact incarnation of a Spot or an Actor, at the node that owned it when the reference was made.
//!
//! A reference is a value to keep and compare; it must not be a target, and nothing here resolves it.

use std::fmt;
use std::num::NonZeroU64;

use super::{ActorId, MeshName, Rid, SpotId};

/// Which incarnation of an object it is: 1 for the first, never going back. With the cargo feature `serde` it is read and
/// written as a decimal text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectGeneration(NonZeroU64);

impl ObjectGeneration {
    /// The generation with this number; `None` outside 1..=2^63-1.
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(number) if number.get() <= i64::MAX as u64 => Some(Self(number)),
            _ => None,
        }
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Debug for ObjectGeneration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectGeneration({})", self.0)
    }
}

macro_rules! reference {
    ($(#[$doc:meta])* $name:ident, $id:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub struct $name {
            /// Which object.
            pub id: $id,
            /// Which incarnation of it.
            pub generation: ObjectGeneration,
            /// The mesh of the node that owned it.
            pub mesh: MeshName,
            /// The node that owned it.
            pub node: Rid,
        }
    };
}

reference! {
    /// One exact incarnation of a Spot. With the cargo feature `serde` it is read and written.
    SpotRef, SpotId
}
reference! {
    /// One exact incarnation of an Actor. With the cargo feature `serde` it is read and written.
    ActorRef, ActorId
}
