//! The contract of blob stores: bytes of objects on the move, written once under names that are never used twice.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::error::ArgumentError;
use crate::limit::{BLOB_BYTES, BLOB_REFERENCE_BYTES, STORE_RETENTION};

use super::{BoxFuture, StoreError, StoreTime};

/// The name of one blob: 1 to 4,096 bytes of UTF-8, issued by the runtime and never used again for other bytes.
/// Clones are cheap.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobRef(Arc<str>);

impl BlobRef {
    /// Checks `text` and makes it a reference.
    ///
    /// # Errors
    /// Where it is empty or longer than 4,096 bytes.
    pub fn new(text: impl AsRef<str>) -> Result<Self, ArgumentError> {
        let text = text.as_ref();
        match text.len() {
            1..=BLOB_REFERENCE_BYTES => Ok(Self(text.into())),
            len => Err(ArgumentError::new(
                "blob reference",
                format!("has {len} bytes; it needs 1 to {BLOB_REFERENCE_BYTES}"),
            )),
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How [`BlobStore::put`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a put in conflict stored nothing"]
pub enum BlobPut {
    /// The bytes are stored until then.
    Stored {
        /// When the blob will be missing, unless it is renewed.
        expiry: StoreTime,
    },
    /// The same bytes were there; they stay until then, which is no sooner than before.
    AlreadyStored {
        /// When the blob will be missing, unless it is renewed.
        expiry: StoreTime,
    },
    /// Other bytes are there; nothing was changed.
    Conflict,
}

/// A blob, as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBlob {
    /// The bytes.
    pub bytes: Bytes,
    /// When it will be missing, unless it is renewed.
    pub expiry: StoreTime,
}

/// How [`BlobStore::renew`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a missing blob was not renewed"]
pub enum BlobRenewed {
    /// It stays until then, which is no sooner than before.
    Renewed {
        /// When the blob will be missing, unless it is renewed again.
        expiry: StoreTime,
    },
    /// There is none, or it has expired.
    Missing,
}

/// Keeps blobs: at most 64 MiB and an envelope of 23 bytes each. An expired blob is missing everywhere.
///
/// What the [module](super) says of futures and bounds holds here, too. After [`StoreError::Unknown`], each operation
/// may simply be repeated.
pub trait BlobStore: Send + Sync + fmt::Debug + 'static {
    /// Stores `bytes` for at least `retention`, unless other bytes are there.
    ///
    /// # Errors
    /// [`StoreError::Argument`] for more than 64 MiB + 23 bytes, and for a retention of zero or more than a year;
    /// otherwise the store failed.
    fn put<'a>(
        &'a self,
        reference: &'a BlobRef,
        bytes: Bytes,
        retention: Duration,
    ) -> BoxFuture<'a, Result<BlobPut, StoreError>>;

    /// Reads a blob; `None` where there is none, or it has expired.
    ///
    /// # Errors
    /// The store failed, which never means that the blob is missing.
    fn get<'a>(&'a self, reference: &'a BlobRef) -> BoxFuture<'a, Result<Option<StoredBlob>, StoreError>>;

    /// Lets a blob stay for at least `retention` from now; never shortens its time.
    ///
    /// # Errors
    /// [`StoreError::Argument`] for a retention of zero or more than a year; otherwise the store failed.
    fn renew<'a>(
        &'a self,
        reference: &'a BlobRef,
        retention: Duration,
    ) -> BoxFuture<'a, Result<BlobRenewed, StoreError>>;

    /// Takes a blob away; it may be gone already.
    ///
    /// # Errors
    /// The store failed.
    fn delete<'a>(&'a self, reference: &'a BlobRef) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// For providers: what [`BlobStore::put`] checks first.
///
/// # Errors
/// [`StoreError::Argument`] where the blob or the retention is out of bounds.
pub fn check_blob(bytes: &Bytes, retention: Duration) -> Result<(), StoreError> {
    if bytes.len() > BLOB_BYTES {
        let len = bytes.len();
        return Err(StoreError::argument(
            "blob",
            format!("has {len} bytes; at most {BLOB_BYTES}"),
        ));
    }
    check_retention(retention)
}

/// For providers: what [`BlobStore::renew`] checks first.
///
/// # Errors
/// [`StoreError::Argument`] where the retention is zero or longer than a year.
pub fn check_retention(retention: Duration) -> Result<(), StoreError> {
    if retention.is_zero() || retention > STORE_RETENTION {
        return Err(StoreError::argument("retention", "is no time, or more than a year"));
    }
    Ok(())
}
