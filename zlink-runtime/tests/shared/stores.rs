//! What the hosts of a test share: a store of each kind, of the test's own.

use std::fmt;

use tempfile::TempDir;
use zlink_runtime::location::{BlobSource, MemoryStore, StoreSource};

use crate::server::Server;

/// What the hosts of a test share. Each opens it for itself.
pub(crate) enum Shared {
    Memory(MemoryStore),
    Sqlite(TempDir),
    Redis(Server),
}

impl Shared {
    /// One of each, empty.
    pub(crate) fn every() -> [Self; 3] {
        [Self::Memory(MemoryStore::new()), Self::sqlite(), Self::redis()]
    }

    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(TempDir::new().unwrap())
    }

    pub(crate) fn redis() -> Self {
        Self::Redis(Server::new())
    }

    pub(crate) fn open(&self) -> StoreSource {
        match self {
            Self::Memory(store) => store.clone().into(),
            Self::Sqlite(folder) => format!("sqlite://{}/spots.db", folder.path().display()).into(),
            Self::Redis(server) => format!("{}?namespace=spots", server.address()).into(),
        }
    }
}

impl Shared {
    /// Where its blobs are, by themselves.
    pub(crate) fn blobs(&self) -> BlobSource {
        match self {
            Self::Memory(store) => store.clone().into(),
            Self::Sqlite(folder) => format!("sqlite://{}/blobs.db", folder.path().display()).into(),
            Self::Redis(server) => format!("{}?namespace=blobs", server.address()).into(),
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory(_) => "memory",
            Self::Sqlite(_) => "sqlite",
            Self::Redis(_) => "redis",
        })
    }
}
