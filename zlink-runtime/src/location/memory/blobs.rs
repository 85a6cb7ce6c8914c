//! The blobs of one namespace: a pure machine over the moment it is given.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use bytes::Bytes;

use crate::location::{BlobPut, BlobRef, BlobRenewed, StoreTime, StoredBlob};

#[derive(Default)]
pub(super) struct Blobs {
    blobs: HashMap<BlobRef, StoredBlob>,
    expiries: BTreeSet<(StoreTime, BlobRef)>,
}

impl Blobs {
    pub(super) fn put(&mut self, reference: &BlobRef, bytes: Bytes, now: StoreTime, retention: Duration) -> BlobPut {
        self.sweep(now);
        if self.blobs.get(reference).is_some_and(|there| there.bytes != bytes) {
            return BlobPut::Conflict;
        }
        if let BlobRenewed::Renewed { expiry } = self.renew(reference, now, retention) {
            return BlobPut::AlreadyStored { expiry };
        }
        let expiry = now.after(retention);
        self.expiries.insert((expiry, reference.clone()));
        self.blobs.insert(reference.clone(), StoredBlob { bytes, expiry });
        BlobPut::Stored { expiry }
    }

    pub(super) fn get(&self, reference: &BlobRef, now: StoreTime) -> Option<StoredBlob> {
        self.blobs.get(reference).filter(|blob| now < blob.expiry).cloned()
    }

    pub(super) fn renew(&mut self, reference: &BlobRef, now: StoreTime, retention: Duration) -> BlobRenewed {
        self.sweep(now);
        let Some(blob) = self.blobs.get_mut(reference) else {
            return BlobRenewed::Missing;
        };
        let expiry = blob.expiry.max(now.after(retention));
        self.expiries.remove(&(blob.expiry, reference.clone()));
        self.expiries.insert((expiry, reference.clone()));
        blob.expiry = expiry;
        BlobRenewed::Renewed { expiry }
    }

    pub(super) fn delete(&mut self, reference: &BlobRef) {
        if let Some(blob) = self.blobs.remove(reference) {
            self.expiries.remove(&(blob.expiry, reference.clone()));
        }
    }

    /// Takes away all that has expired: each blob once, however long that was ago.
    fn sweep(&mut self, now: StoreTime) {
        while let Some((_, reference)) = self.expiries.first().filter(|(expiry, _)| *expiry <= now).cloned() {
            self.delete(&reference);
        }
    }
}
