//! Blobs as their script keeps them, one key each, of the namespace's slot.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use redis::Script;

use super::link::Server;
use crate::location::{BlobPut, BlobRef, BlobRenewed, StoreError, StoreTime, StoredBlob};

/// What a put or a get may take longer than other operations: the greatest blob, at 4 MiB a second.
const TRANSFER_TIME: Duration = Duration::from_secs(16);

/// A word, the server's time, an expiry, and the bytes of a get.
type Answer = (String, u64, u64, Bytes);

pub(super) struct Blobs {
    namespace: String,
    script: Script,
    /// The latest time that an answer has shown: it never goes back.
    now: Mutex<u64>,
}

impl Blobs {
    pub(super) fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            script: Script::new(include_str!("blobs.lua")),
            now: Mutex::default(),
        }
    }

    pub(super) async fn put(
        &self,
        server: &Server,
        reference: &BlobRef,
        bytes: &[u8],
        retention: Duration,
    ) -> Result<BlobPut, StoreError> {
        let (word, _, expiry, _) = self.ask(server, "put", reference, Some(retention), bytes).await?;
        let expiry = StoreTime::from_millis(expiry);
        Ok(match word.as_str() {
            "conflict" => BlobPut::Conflict,
            "already" => BlobPut::AlreadyStored { expiry },
            _ => BlobPut::Stored { expiry },
        })
    }

    pub(super) async fn get(&self, server: &Server, reference: &BlobRef) -> Result<Option<StoredBlob>, StoreError> {
        let (word, _, expiry, bytes) = self.ask(server, "get", reference, None, &[]).await?;
        Ok((word == "ok").then(|| StoredBlob {
            bytes,
            expiry: StoreTime::from_millis(expiry),
        }))
    }

    pub(super) async fn renew(
        &self,
        server: &Server,
        reference: &BlobRef,
        retention: Duration,
    ) -> Result<BlobRenewed, StoreError> {
        let (word, _, expiry, _) = self.ask(server, "renew", reference, Some(retention), &[]).await?;
        Ok(match word.as_str() {
            "ok" => BlobRenewed::Renewed {
                expiry: StoreTime::from_millis(expiry),
            },
            _ => BlobRenewed::Missing,
        })
    }

    pub(super) async fn delete(&self, server: &Server, reference: &BlobRef) -> Result<(), StoreError> {
        self.ask(server, "delete", reference, None, &[]).await.map(drop)
    }

    async fn ask(
        &self,
        server: &Server,
        act: &str,
        reference: &BlobRef,
        retention: Option<Duration>,
        bytes: &[u8],
    ) -> Result<Answer, StoreError> {
        let mut call = self
            .script
            .key(format!("{{zlink:{}}}:blob:{}", self.namespace, reference.as_str()));
        call.arg(act).arg(*self.now.lock());
        call.arg(StoreTime::default().after(retention.unwrap_or_default()).as_millis());
        call.arg(bytes);
        let longer = match act {
            "put" | "get" => TRANSFER_TIME,
            _ => Duration::ZERO,
        };
        let answer: Answer = server.call(&call, act != "get", longer).await?;
        let mut now = self.now.lock();
        *now = answer.1.max(*now);
        Ok(answer)
    }
}

impl fmt::Debug for Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.namespace, f)
    }
}
