//! A message that stays in its process: the value itself goes from hand to hand, and becomes bytes only where they are needed.
//!
//! It must not know where it goes.

use std::any::Any;
use std::fmt;

use bytes::Bytes;

use super::error::{DecodeError, DecodeProblem, EncodeError};
use super::value::Message;
use super::{decode, encode};

/// A message whose type only its ends know.
pub(crate) trait Carried: Send + 'static {
    /// An `Option` of the message, to be taken out of it.
    fn slot(&mut self) -> &mut dyn Any;

    /// Whether it was taken out.
    fn is_taken(&self) -> bool;

    /// Its bytes; none where it was taken out.
    ///
    /// # Errors
    /// Where it cannot be encoded, which [`measure`](super::measure) says beforehand.
    fn encode(&self) -> Result<Option<Bytes>, EncodeError>;
}

impl<M: Message> Carried for Option<M> {
    #[inline]
    fn slot(&mut self) -> &mut dyn Any {
        self
    }

    #[inline]
    fn is_taken(&self) -> bool {
        self.is_none()
    }

    fn encode(&self) -> Result<Option<Bytes>, EncodeError> {
        let encoded = self.as_ref().map(|message| encode(message, Bytes::copy_from_slice));
        encoded.transpose()
    }
}

/// Takes a message out as what it is.
#[inline]
pub(crate) fn take<M: Message>(carried: &mut dyn Carried) -> Option<M> {
    carried.slot().downcast_mut::<Option<M>>()?.take()
}

/// A message as its receiver has it, in either form.
pub(crate) enum Content<'a> {
    Bytes(&'a [u8]),
    Value(&'a mut dyn Carried),
}

impl Content<'_> {
    /// The message, as an `M`.
    ///
    /// # Errors
    /// Where it is none.
    #[inline]
    pub(crate) fn message<M: Message>(self) -> Result<M, DecodeError> {
        match self {
            Content::Bytes(bytes) => decode(bytes),
            Content::Value(carried) => match take(carried) {
                Some(message) => Ok(message),
                None => other(carried),
            },
        }
    }
}

/// Its sender knows it as another type than its receiver: it is read as if it had travelled.
#[cold]
fn other<M: Message>(carried: &dyn Carried) -> Result<M, DecodeError> {
    match carried.encode() {
        Ok(Some(bytes)) => decode(&bytes),
        Ok(None) | Err(_) => Err(DecodeError::new(DecodeProblem::Missing)),
    }
}

/// The same as its receiver keeps it.
pub(crate) enum Kept {
    Bytes(Bytes),
    Value(Box<dyn Carried>),
}

impl Kept {
    /// A message of this process.
    pub(crate) fn value<M: Message>(message: M) -> Self {
        Self::Value(Box::new(Some(message)))
    }

    /// The message, as an `M`.
    ///
    /// # Errors
    /// Where it is none.
    #[inline]
    pub(crate) fn message<M: Message>(self) -> Result<M, DecodeError> {
        match self {
            Kept::Bytes(bytes) => decode(&bytes),
            Kept::Value(mut carried) => Content::Value(&mut *carried).message(),
        }
    }

    /// Its bytes, for whoever sends it on.
    ///
    /// # Errors
    /// Where it cannot be encoded.
    pub(crate) fn into_bytes(self) -> Result<Bytes, EncodeError> {
        match self {
            Kept::Bytes(bytes) => Ok(bytes),
            Kept::Value(carried) => Ok(carried.encode()?.unwrap_or_default()),
        }
    }
}

impl From<Bytes> for Kept {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

/// Values are the same as none.
#[cfg(test)]
impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        matches!((self, other), (Kept::Bytes(one), Kept::Bytes(other)) if one == other)
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kept::Bytes(bytes) => write!(f, "Kept({} bytes)", bytes.len()),
            Kept::Value(_) => f.write_str("Kept(a value)"),
        }
    }
}
