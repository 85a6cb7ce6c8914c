//! The metadata snapshot: a small set of text keys and values that travels beside a payload.
//!
//! It owns the layout, which is private (MSG-408): a zero byte, the number of entries, then per entry the key's length
//! in one byte, the value's in two, key and value; entries by rising key, so that one pass finds every fault. It must
//! not know which surfaces carry metadata.

mod key;

use std::borrow::Borrow;
use std::fmt;

pub use self::key::{Key, MetadataKey, MetadataText};
use crate::error::ArgumentError;
use crate::limit::{METADATA_BYTES, METADATA_ENTRIES};

/// Bytes before the first entry.
const HEAD: usize = 2;
/// Bytes of an entry beside its key and value.
const ENTRY: usize = 3;
/// A key's length stands in one byte.
const KEY_BYTES: usize = 255;

/// Metadata to send, or a copy of what was received.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Its encoded form, or nothing where there are no entries.
    bytes: Vec<u8>,
}

impl Metadata {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets `key` to `value`, in place of what it had.
    ///
    /// # Errors
    /// Where the key is empty or longer than 255 bytes, where either holds a NUL, or where the whole would need more
    /// than 1024 bytes: 2, and 3 + key + value for each entry. Nothing is changed then.
    pub fn set<K: Key>(&mut self, key: K, value: impl Borrow<K::Value>) -> Result<(), ArgumentError> {
        let refuse = |problem: String| Err(ArgumentError::new("metadata", problem));
        let name = key.name();
        let value = value.borrow().to_text();
        if name.is_empty() || name.len() > KEY_BYTES {
            return refuse(format!("a key has {} bytes; it needs 1 to {KEY_BYTES}", name.len()));
        }
        if name.contains('\0') || value.contains('\0') {
            return refuse(format!(
                "the key or value of {name:?} contains a NUL character; remove it"
            ));
        }
        let (place, present) = self.view().place_of(name);
        let present_end = place + present.map_or(0, |entry| entry.size());
        let base = if self.bytes.is_empty() { HEAD } else { self.bytes.len() };
        let size = base - (present_end - place) + ENTRY + name.len() + value.len();
        let count = self.view().len() + usize::from(present.is_none());
        if size > METADATA_BYTES || count > METADATA_ENTRIES {
            return refuse(format!(
                "with {name:?} it needs {size} bytes in {count} entries; at most {METADATA_BYTES} bytes in \
                 {METADATA_ENTRIES} entries are allowed"
            ));
        }
        let lengths = u8::try_from(name.len())
            .ok()
            .zip(u16::try_from(value.len()).ok())
            .zip(u8::try_from(count).ok());
        let Some(((key_length, value_length), count)) = lengths else {
            return refuse(format!("{name:?} is too long"));
        };
        if self.bytes.is_empty() {
            self.bytes.extend([0, 0]);
        }
        let entry = [key_length]
            .into_iter()
            .chain(value_length.to_le_bytes())
            .chain(name.bytes())
            .chain(value.bytes());
        self.bytes.splice(place..present_end, entry);
        if let Some(byte) = self.bytes.get_mut(1) {
            *byte = count;
        }
        Ok(())
    }

    /// The entries.
    #[must_use]
    pub fn view(&self) -> MetadataView<'_> {
        MetadataView { bytes: &self.bytes }
    }

    /// The same as its receiver keeps it.
    pub(crate) fn into_bytes(self) -> bytes::Bytes {
        self.bytes.into()
    }

    /// What travels; nothing where there are no entries.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

/// Metadata that was received, unchangeable and valid to the end of its turn. Clone what must live longer.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct MetadataView<'a> {
    /// Proven to be well formed when the view was made; nothing where there are no entries.
    bytes: &'a [u8],
}

/// Received bytes that are no metadata.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the metadata is malformed: {0}")]
pub struct MalformedMetadata(&'static str);

crate::error::shown!(MalformedMetadata);

/// One entry, and the bytes behind it.
#[derive(Clone, Copy)]
struct Entry<'a> {
    key: &'a str,
    value: &'a str,
}

impl Entry<'_> {
    fn size(&self) -> usize {
        ENTRY + self.key.len() + self.value.len()
    }
}

/// Takes the first entry off `bytes`; `None` where there is no whole one.
fn split_entry(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (&[key, low, high], rest) = bytes.split_first_chunk()?;
    let (key, rest) = rest.split_at_checked(usize::from(key))?;
    let (value, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes([low, high])))?;
    Some((key, value, rest))
}

impl<'a> MetadataView<'a> {
    /// Checks received bytes. Nothing is copied.
    ///
    /// # Errors
    /// Where they are more than 1024, are cut off or have something behind them, hold an empty key, a NUL or what is
    /// not UTF-8, or where keys do not rise.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, MalformedMetadata> {
        if bytes.len() > METADATA_BYTES {
            return Err(MalformedMetadata("it is longer than 1024 bytes"));
        }
        let Some((&[0, count], mut rest)) = bytes.split_first_chunk().filter(|(head, _)| head[1] > 0) else {
            return Err(MalformedMetadata("its head is unknown or counts no entries"));
        };
        let mut last: &[u8] = &[];
        for _ in 0..count {
            let Some((key, value, behind)) = split_entry(rest) else {
                return Err(MalformedMetadata("an entry is cut off"));
            };
            // No key is below the empty one, so this refuses an empty key, too.
            if key <= last {
                return Err(MalformedMetadata("a key is empty, or not above the one before"));
            }
            if key.contains(&0) || value.contains(&0) {
                return Err(MalformedMetadata("it contains a NUL"));
            }
            if std::str::from_utf8(key).is_err() || std::str::from_utf8(value).is_err() {
                return Err(MalformedMetadata("it is not UTF-8"));
            }
            (last, rest) = (key, behind);
        }
        if rest.is_empty() {
            Ok(Self { bytes })
        } else {
            Err(MalformedMetadata("something follows its last entry"))
        }
    }

    /// The value of `key`.
    #[must_use]
    pub fn get(self, key: &str) -> Option<&'a str> {
        self.place_of(key).1.map(|entry| entry.value)
    }

    /// The value of a key that the schema declares.
    ///
    /// # Errors
    /// Where there is a value and it is not the text of a `T`.
    pub fn read<T: MetadataText>(self, key: MetadataKey<T>) -> Result<Option<T::Owned>, ArgumentError> {
        let Some(text) = self.get(key.as_str()) else {
            return Ok(None);
        };
        T::from_text(text)
            .map(Some)
            .ok_or_else(|| ArgumentError::new("metadata", format!("the value of {:?} is {text:?}", key.as_str())))
    }

    /// Keys and values, by rising key.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.entries().map(|entry| (entry.key, entry.value))
    }

    /// The number of entries.
    #[must_use]
    pub fn len(self) -> usize {
        self.bytes.get(1).copied().map_or(0, usize::from)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// A copy that may live longer, or be sent on.
    #[must_use]
    pub fn to_metadata(self) -> Metadata {
        Metadata {
            bytes: self.bytes.to_vec(),
        }
    }

    fn entries(self) -> impl Iterator<Item = Entry<'a>> {
        let mut rest = self.bytes.get(HEAD..).unwrap_or_default();
        std::iter::from_fn(move || {
            let (key, value, behind) = split_entry(rest)?;
            rest = behind;
            // Checked when the view was made; an entry that is not text would end the walk.
            Some(Entry {
                key: std::str::from_utf8(key).ok()?,
                value: std::str::from_utf8(value).ok()?,
            })
        })
    }

    /// Where `key` stands, or would stand.
    fn place_of(self, key: &str) -> (usize, Option<Entry<'a>>) {
        let mut place = HEAD;
        for entry in self.entries() {
            match entry.key.cmp(key) {
                std::cmp::Ordering::Less => place += entry.size(),
                std::cmp::Ordering::Equal => return (place, Some(entry)),
                std::cmp::Ordering::Greater => break,
            }
        }
        (place, None)
    }
}

impl fmt::Debug for MetadataView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
