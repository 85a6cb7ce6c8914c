//! What records are named and ordered by: keys, revisions, the store's time.

use std::borrow::Borrow;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::error::ArgumentError;
use crate::limit::STORE_KEY_BYTES;

/// The name of one record: 1 to 1,024 bytes of UTF-8, compared and ordered byte for byte. Clones are cheap.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Arc<str>);

impl Key {
    /// Checks `text` and makes it a key.
    ///
    /// # Errors
    /// Where it is empty or longer than 1,024 bytes.
    pub fn new(text: impl AsRef<str>) -> Result<Self, ArgumentError> {
        let text = text.as_ref();
        match text.len() {
            1..=STORE_KEY_BYTES => Ok(Self(text.into())),
            len => Err(ArgumentError::new(
                "key",
                format!("has {len} bytes; it needs 1 to {STORE_KEY_BYTES}"),
            )),
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// The place of an applied batch in the order of its namespace: 1 to 2⁶³ − 1. It is the version of every value that
/// the batch wrote: equal for the values of one batch, greater for each later batch, and never issued twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Revision(NonZeroU64);

impl Revision {
    /// The last one there is.
    pub const MAX: Revision = match NonZeroU64::new(u64::MAX >> 1) {
        Some(number) => Revision(number),
        None => unreachable!(),
    };

    /// The revision with that number, if there is one.
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(some) if number <= Self::MAX.get() => Some(Self(some)),
            _ => None,
        }
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A moment on the store's own clock, in milliseconds since 1970. It judges retention alone; compare it only with
/// other moments of the same store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoreTime(u64);

impl StoreTime {
    /// That many milliseconds after the beginning of 1970.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the beginning of 1970.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// What the system's clock shows; the beginning of 1970 where it is set before that.
    #[must_use]
    pub fn of_system() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self::default().after(since.unwrap_or_default())
    }

    /// The moment `span` later, a begun millisecond counted as a whole one.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        let millis = u64::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(millis))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bounds() {
        assert!(Key::new("").is_err());
        assert!(Key::new("x".repeat(1024)).is_ok());
        assert!(Key::new("x".repeat(1025)).is_err());
        assert_eq!(Revision::new(0), None);
        assert_eq!(Revision::new(u64::MAX >> 1), Some(Revision::MAX));
        assert_eq!(Revision::new((u64::MAX >> 1) + 1), None);
        let late = StoreTime::from_millis(u64::MAX).after(Duration::MAX);
        assert_eq!(late, StoreTime::from_millis(u64::MAX));
        let begun = StoreTime::default().after(Duration::from_nanos(1));
        assert_eq!(begun.as_millis(), 1);
    }

    proptest! {
        #[test]
        fn keys_are_ordered_by_their_bytes(a in ".{1,9}", b in ".{1,9}") {
            let (left, right) = (Key::new(&a).unwrap(), Key::new(&b).unwrap());
            prop_assert_eq!(left.cmp(&right), a.as_bytes().cmp(b.as_bytes()));
        }
    }
}
