//! What factories, callbacks and managers say: small values without behaviour.

use crate::id::SpotRef;
use crate::message::codec::{self, DecodeError, EncodeError, Message};

/// What a User Spot's factory made of a request: the Spot, or a refusal; with what the creator is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created<S, R = ()> {
    /// The Spot, and the reply to its creator.
    Accepted(S, R),
    /// There is no Spot; the creator is told why.
    Rejected(R),
}

/// What a Spot decides about an Actor that wants to be its member, with what the Actor's creator is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission<R = ()> {
    /// It is.
    Accepted(R),
    /// It is not.
    Rejected(R),
}

/// How a create, or get-or-create, of a User Spot ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpotCreated<R> {
    /// It was there already, and nothing was made.
    Existing(SpotRef),
    /// It was made.
    Created(SpotRef, R),
    /// Its factory refused. There is no Spot.
    Rejected(R),
}

impl<R> SpotCreated<R> {
    /// The Spot, if there is one.
    #[must_use]
    pub fn reference(&self) -> Option<&SpotRef> {
        match self {
            SpotCreated::Existing(spot) | SpotCreated::Created(spot, _) => Some(spot),
            SpotCreated::Rejected(_) => None,
        }
    }
}

/// Why a Spot ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CloseReason {
    /// The application closed it.
    ExplicitClose,
    /// Its host stops.
    HostShutdown,
    /// It was moved to another node.
    RelocationOut,
    /// It was idle for longer than an Instance Spot may be.
    IdleEvicted,
}

/// What becomes of a Spot when its node is drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Relocation {
    /// It moves with its state.
    Preserve,
    /// It is made anew elsewhere.
    Recreate,
    /// It stays, and ends with its node.
    Disabled,
}

/// What travels of a create: a message, or nothing.
pub trait Payload: Sized + Send + 'static {
    #[doc(hidden)]
    fn to_bytes(&self) -> Result<Vec<u8>, EncodeError>;
    #[doc(hidden)]
    fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError>;
}

impl<M: Message> Payload for M {
    fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
        codec::encode(self, <[u8]>::to_vec)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(bytes)
    }
}

impl Payload for () {
    fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
        Ok(Vec::new())
    }

    fn from_bytes(_: &[u8]) -> Result<Self, DecodeError> {
        Ok(())
    }
}
