//! What reads and scans ask and answer.

use bytes::Bytes;

use crate::error::ArgumentError;
use crate::limit::{CURSOR_BYTES, PAGE_ENTRIES, READ_KEYS, STORE_KEY_BYTES};

use super::{Key, Revision, StoreError, StoreTime};

/// A value, as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The bytes; nobody else can change them.
    pub value: Bytes,
    /// The revision of the batch that wrote it.
    pub revision: Revision,
    /// When it will be missing, if ever.
    pub expiry: Option<StoreTime>,
}

/// The answer of [`LocationStore::read`](super::LocationStore::read).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The store's time of the observation.
    pub now: StoreTime,
    /// The value; `None` where there is none, or it has expired.
    pub found: Option<Stored>,
}

/// The answer of [`LocationStore::read_many`](super::LocationStore::read_many): one observation of all keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadMany {
    /// The store's time of the observation.
    pub now: StoreTime,
    /// As many as keys were asked for, in their order.
    pub found: Vec<Option<Stored>>,
}

/// Where a scan goes on. Opaque: what is in it is the provider's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cursor(Bytes);

impl Cursor {
    /// For providers: 1 to 4,096 bytes from which a scan can go on.
    ///
    /// # Errors
    /// Where it is empty or longer.
    pub fn new(bytes: impl Into<Bytes>) -> Result<Self, ArgumentError> {
        let bytes = bytes.into();
        match bytes.len() {
            1..=CURSOR_BYTES => Ok(Self(bytes)),
            len => Err(ArgumentError::new(
                "cursor",
                format!("has {len} bytes; it needs 1 to {CURSOR_BYTES}"),
            )),
        }
    }

    /// What the provider put there.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A request for one page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    prefix: String,
    after: Option<Cursor>,
    limit: usize,
}

impl Scan {
    /// The first page of the keys that begin with `prefix` (0 to 1,024 bytes), of at most `limit` entries.
    ///
    /// # Errors
    /// Where the prefix is longer, or the limit is not 1 to 1,000.
    pub fn new(prefix: impl Into<String>, limit: usize) -> Result<Self, ArgumentError> {
        let prefix = prefix.into();
        if prefix.len() > STORE_KEY_BYTES {
            let len = prefix.len();
            return Err(ArgumentError::new(
                "prefix",
                format!("has {len} bytes; at most {STORE_KEY_BYTES}"),
            ));
        }
        if !(1..=PAGE_ENTRIES).contains(&limit) {
            return Err(ArgumentError::new(
                "limit",
                format!("is {limit}; it must be 1 to {PAGE_ENTRIES}"),
            ));
        }
        Ok(Self {
            prefix,
            after: None,
            limit,
        })
    }

    /// The page that begins at `cursor`, a [`Page::next`] of the same store and prefix.
    #[must_use]
    pub fn after(mut self, cursor: Cursor) -> Self {
        self.after = Some(cursor);
        self
    }

    /// For providers whose cursors are the last key of a page: where the scan goes on.
    ///
    /// # Errors
    /// [`StoreError::Argument`] where the cursor cannot be of this prefix.
    pub fn key_cursor(&self) -> Result<Option<&str>, StoreError> {
        match self.after.as_ref().map(|cursor| std::str::from_utf8(cursor.as_bytes())) {
            None => Ok(None),
            Some(Ok(key)) if key.starts_with(&self.prefix) => Ok(Some(key)),
            Some(_) => Err(StoreError::argument("cursor", "is not of this store and prefix")),
        }
    }

    /// What every key of the page begins with.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Where the page begins; `None` for the first.
    #[must_use]
    pub const fn cursor(&self) -> Option<&Cursor> {
        self.after.as_ref()
    }

    /// The most entries of the page, 1 to 1,000.
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.limit
    }
}

/// One page of a scan, from one state of the namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// In the byte order of their keys, at most the limit, with at most 4 MiB of keys and values. It may hold fewer,
    /// or none, and yet not be the last.
    pub entries: Vec<(Key, Stored)>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<Cursor>,
    /// The last batch that this state holds; `None` where nothing was ever written.
    pub revision: Option<Revision>,
    /// The store's time of the observation.
    pub now: StoreTime,
}

/// The answer of [`LocationStore::scan`](super::LocationStore::scan).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scanned {
    /// The page.
    Page(Page),
    /// The store no longer knows where the cursor stands. Begin again, without one.
    Expired,
}

/// For providers: what [`LocationStore::read_many`](super::LocationStore::read_many) checks first.
///
/// # Errors
/// [`StoreError::Argument`] where there are more than 1,000 keys.
pub fn check_read_many(keys: &[Key]) -> Result<(), StoreError> {
    match keys.len() {
        0..=READ_KEYS => Ok(()),
        len => Err(StoreError::argument(
            "keys",
            format!("are {len}; at most {READ_KEYS} at once"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        assert!(Scan::new("x".repeat(1024), 1000).is_ok());
        assert!(Scan::new("x".repeat(1025), 1).is_err());
        assert!(Scan::new("", 0).is_err());
        assert!(Scan::new("", 1001).is_err());
        assert!(Cursor::new(vec![]).is_err());
        assert!(Cursor::new(vec![0; 4096]).is_ok());
        assert!(Cursor::new(vec![0; 4097]).is_err());
        let keys = vec![Key::new("a").unwrap(); 1001];
        assert_eq!(check_read_many(&keys[1..]), Ok(()));
        assert!(matches!(check_read_many(&keys), Err(StoreError::Argument(_))));
    }
}
