//! What a Spot is made by, as far as the store must know it: small, it is in the record; large, the record points at it.
//!
//! Written and read again before the record points at it; deleted once no record does. It must not know what it says.

use std::sync::{Arc, Weak};

use bytes::Bytes;

use crate::error::{Error, ErrorKind};
use crate::limit::{BLOB_RETENTION, INBOX_BYTES};
use crate::location::{BlobRef, Pointer};

use super::object::Object;
use super::spots::Inner;

impl Inner {
    /// What a record is to hold of a request or first message.
    ///
    /// # Errors
    /// Where it is too large for the record, and is not kept elsewhere.
    pub(super) async fn inbox(&self, bytes: &Bytes) -> Result<(Bytes, Option<Pointer>), Error> {
        if bytes.len() <= INBOX_BYTES {
            return Ok((bytes.clone(), None));
        }
        let owner = &self.fence.lease().config().owner;
        let name = format!("inbox/{owner}/{}", self.random.uuid().hyphenated());
        let failed = |kind, text: String| Error::not_executed(kind, text);
        let name = BlobRef::new(name).map_err(|error| failed(ErrorKind::InternalFailure, error.to_string()))?;
        let (blobs, bytes) = (self.blobs.clone(), bytes.clone());
        // In a task of its own: a provider that panics ends that, and no turn.
        let keeping = self.runtime.spawn(async move { blobs.keep(name, bytes).await });
        match keeping.await {
            Ok(Ok(pointer)) => Ok((Bytes::new(), Some(pointer))),
            Ok(Err(error)) => Err(failed(error.kind(), format!("the first message of a Spot: {error}"))),
            Err(ended) => Err(failed(
                ErrorKind::InternalFailure,
                format!("the Relocation Store: {ended}"),
            )),
        }
    }

    /// Nothing points at it any more.
    pub(super) fn unpointed(&self, blob: Option<Pointer>) {
        let Some(blob) = blob else { return };
        let blobs = self.blobs.clone();
        self.runtime.spawn(async move { blobs.delete(&blob).await });
    }
}

impl Object {
    /// Keeps what its record points at from its end, as long as it does.
    pub(super) fn watch_blob(self: &Arc<Self>) {
        if self.record().is_some_and(|record| record.blob.is_some()) {
            self.spots.runtime.spawn(renew(Arc::downgrade(self)));
        }
    }
}

async fn renew(object: Weak<Object>) {
    loop {
        tokio::time::sleep(BLOB_RETENTION / 2).await;
        let Some(object) = object.upgrade() else { return };
        let Some(blob) = object.record().and_then(|record| record.blob) else {
            return;
        };
        if let Err(error) = object.spots.blobs.renew(&blob).await {
            tracing::warn!(target: "zlink::spot", spot = %object.id, %error, "what a record points at may be lost");
        }
    }
}
