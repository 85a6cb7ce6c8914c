//! Bytes that a record only points at: they are written, and read again, before anything points at them, and deleted after
//! nothing does. What is left behind in between goes by itself, at the end of its retention.
//!
//! It must not know what they are, nor who points at them.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use std::sync::Arc;

use crate::error::ErrorKind;
use crate::limit::{BLOB_PIECE_BYTES, BLOB_RETENTION, BLOB_TRIES};

use super::{BlobPut, BlobRef, BlobRenewed, BlobSource, BlobStore, StoreError};

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// What a record says of bytes that are kept elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    pub(crate) reference: BlobRef,
    pub(crate) sha256: [u8; 32],
    pub(crate) size: u64,
}

/// Why bytes are not kept, or not had back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BlobError {
    /// There is no store for them.
    #[error("this host has no Relocation Store; register one with relocation_store(…)")]
    None,
    #[error(transparent)]
    Store(#[from] StoreError),
    /// They are gone, or others are there.
    #[error("the Relocation Store does not have the bytes that it was given: {0}")]
    Lost(&'static str),
}

impl BlobError {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            BlobError::None => ErrorKind::NotConfigured,
            BlobError::Store(error) => error.kind(),
            BlobError::Lost(_) => ErrorKind::DataLost,
        }
    }
}

/// The Relocation Store of a host. It is opened once somebody needs it.
pub(crate) struct Blobs {
    source: Option<BlobSource>,
    opened: OnceCell<Arc<dyn BlobStore>>,
}

impl fmt::Debug for Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Blobs").field(&self.source).finish()
    }
}

impl Blobs {
    pub(crate) fn new(source: Option<BlobSource>) -> Self {
        Self {
            source,
            opened: OnceCell::new(),
        }
    }

    async fn store(&self) -> Result<&dyn BlobStore, BlobError> {
        let source = self.source.as_ref().ok_or(BlobError::None)?;
        let open = || async {
            source
                .open()
                .await
                .map_err(|error| StoreError::Unavailable(error.to_string()))
        };
        Ok(&**self.opened.get_or_try_init(open).await?)
    }

    /// Keeps `bytes` under a name that was never used before, and reads them again.
    ///
    /// # Errors
    /// Where they are not there afterwards; then nothing may point at them.
    pub(crate) async fn keep(&self, reference: BlobRef, bytes: Bytes) -> Result<Pointer, BlobError> {
        let store = self.store().await?;
        let pointer = Pointer {
            reference,
            sha256: digest(&bytes).await,
            size: bytes.len() as u64,
        };
        let mut tries = 1;
        loop {
            match store.put(&pointer.reference, bytes.clone(), BLOB_RETENTION).await {
                Ok(BlobPut::Stored { .. } | BlobPut::AlreadyStored { .. }) => break,
                Ok(BlobPut::Conflict) => return Err(BlobError::Lost("others are there")),
                // The same again tells what came of it.
                Err(error) if error.may_be_applied() && tries < BLOB_TRIES => {
                    tries += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.read(&pointer).await?;
        Ok(pointer)
    }

    /// What is pointed at. Where it is missing, it is looked for a few times: a store may show it late.
    ///
    /// # Errors
    /// Where it is not there, or other bytes are.
    pub(crate) async fn read(&self, pointer: &Pointer) -> Result<Bytes, BlobError> {
        let store = self.store().await?;
        for attempt in 0..BLOB_TRIES {
            if attempt > 0 {
                tokio::time::sleep(PAUSE).await;
            }
            let Some(blob) = store.get(&pointer.reference).await? else {
                continue;
            };
            let same = blob.bytes.len() as u64 == pointer.size && digest(&blob.bytes).await == pointer.sha256;
            return if same {
                Ok(blob.bytes)
            } else {
                Err(BlobError::Lost("others are there"))
            };
        }
        Err(BlobError::Lost("they are missing"))
    }

    /// What is pointed at stays for another retention from now on.
    ///
    /// # Errors
    /// Where it is not there any more, or the store fails.
    pub(crate) async fn renew(&self, pointer: &Pointer) -> Result<(), BlobError> {
        match self.store().await?.renew(&pointer.reference, BLOB_RETENTION).await? {
            BlobRenewed::Renewed { .. } => Ok(()),
            BlobRenewed::Missing => Err(BlobError::Lost("they are missing")),
        }
    }

    /// Nothing points at it any more. Where it cannot be deleted, it stays until the end of its retention.
    pub(crate) async fn delete(&self, pointer: &Pointer) {
        let deleted = match self.store().await {
            Ok(store) => store.delete(&pointer.reference).await.map_err(BlobError::from),
            Err(error) => Err(error),
        };
        if let Err(error) = deleted {
            tracing::debug!(target: "zlink::runtime", %error, "a blob stays until the end of its retention");
        }
    }
}

/// In pieces, so that other work of the thread goes on in between.
async fn digest(bytes: &[u8]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for piece in bytes.chunks(BLOB_PIECE_BYTES) {
        hasher.update(piece);
        tokio::task::yield_now().await;
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::{Fault, Faults, MemoryStore, Operation};

    fn reference(name: &str) -> BlobRef {
        BlobRef::new(name).unwrap()
    }

    fn blobs(store: &MemoryStore, faults: &Faults) -> Blobs {
        Blobs::new(Some(BlobSource::from(store.with_faults(faults.clone()))))
    }

    /// REQ: LS-070, LS-004
    #[tokio::test(start_paused = true)]
    async fn what_is_kept_is_read_again_before_it_is_pointed_at() {
        let (store, faults) = (MemoryStore::new(), Faults::new(1));
        let kept = blobs(&store, &faults);
        let bytes = Bytes::from(vec![7; 300_000]);
        faults.next(Operation::BlobWrite, Fault::LostAnswer);
        let pointer = kept.keep(reference("a"), bytes.clone()).await.unwrap();
        assert_eq!(pointer.size, 300_000);
        assert_eq!(
            faults.begun(Operation::BlobRead),
            1,
            "it was read before anybody learned of it"
        );
        assert_eq!(kept.read(&pointer).await.unwrap(), bytes);
        kept.delete(&pointer).await;
        assert_eq!(kept.read(&pointer).await, Err(BlobError::Lost("they are missing")));
        assert!(kept.renew(&pointer).await.is_err());

        faults.every(Operation::BlobRead, Fault::Error);
        let failed = kept.keep(reference("b"), bytes).await.unwrap_err();
        assert_eq!(
            failed.kind(),
            ErrorKind::Unavailable,
            "nobody knows, so nothing is pointed at"
        );
    }

    /// REQ: LS-106, LS-070
    #[tokio::test(start_paused = true)]
    async fn other_bytes_and_none_are_lost_data() {
        let (store, faults) = (MemoryStore::new(), Faults::new(2));
        let kept = blobs(&store, &faults);
        let pointer = kept.keep(reference("a"), Bytes::from_static(b"right")).await.unwrap();
        kept.delete(&pointer).await;
        let before = faults.begun(Operation::BlobRead);
        let missing = kept.read(&pointer).await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::DataLost);
        assert_eq!(
            faults.begun(Operation::BlobRead) - before,
            u64::from(BLOB_TRIES),
            "a bounded number of times"
        );
        for wrong in ["wrong", "longer"] {
            kept.delete(&pointer).await;
            kept.keep(pointer.reference.clone(), Bytes::copy_from_slice(wrong.as_bytes()))
                .await
                .unwrap();
            assert_eq!(kept.read(&pointer).await.unwrap_err().kind(), ErrorKind::DataLost);
        }
        let taken = kept.keep(pointer.reference.clone(), Bytes::from_static(b"right")).await;
        assert_eq!(
            taken.unwrap_err().kind(),
            ErrorKind::DataLost,
            "a name is never used twice"
        );
        let none = Blobs::new(None).keep(reference("a"), Bytes::new()).await.unwrap_err();
        assert_eq!(none.kind(), ErrorKind::NotConfigured);
    }
}
