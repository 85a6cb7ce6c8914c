//! The two ways through the codec, and the buffer that one thread encodes into again and again.
//!
//! It must not know where the bytes go: it lends them.

use std::cell::Cell;

use super::error::{DecodeError, EncodeError};
use super::reader::Reader;
use super::value::Message;
use super::writer::Writer;

/// A message longer than this does not leave its buffer behind.
const KEEP_BYTES: usize = 64 << 10;

thread_local! {
    /// Taken while in use, so that encoding inside `consume` finds none and makes its own.
    static WRITER: Cell<Option<Box<Writer>>> = const { Cell::new(None) };
}

/// Encodes `message` and lends its bytes to `consume`, without a copy.
///
/// # Errors
/// Where the message breaks a rule of its schema, or a limit; `consume` is not called.
pub fn encode<M: Message, R>(message: &M, consume: impl FnOnce(&[u8]) -> R) -> Result<R, EncodeError> {
    let mut writer = WRITER.take().unwrap_or_default();
    // A writer that failed stands in the middle of a message, so it is dropped.
    let bytes = writer.message(message)?;
    let keep = bytes.len() <= KEEP_BYTES;
    let result = consume(bytes);
    if keep {
        writer.reset();
        WRITER.set(Some(writer));
    }
    Ok(result)
}

/// Decodes the message that `bytes` are. Fields that this program does not know are ignored.
///
/// # Errors
/// Where they are no such message, or break one of its rules. Whatever the bytes, it takes time and memory in
/// proportion to their number.
pub fn decode<M: Message>(bytes: &[u8]) -> Result<M, DecodeError> {
    Reader::message(bytes)
}
