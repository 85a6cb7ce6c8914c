//! A store of a test's own, of each kind there is: empty, and gone with the test.

use std::fmt;

use tempfile::TempDir;
use zlink_runtime::location::{BlobSource, MemoryStore, StoreSource};

use crate::server::Server;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Provider {
    Memory,
    Sqlite,
    Redis,
}

pub(crate) const PROVIDERS: [Provider; 3] = [Provider::Memory, Provider::Sqlite, Provider::Redis];

/// What the hosts of a test share. Each opens it for itself.
pub(crate) enum Shared {
    Memory(MemoryStore),
    Sqlite(TempDir),
    Redis(Server),
}

impl Shared {
    pub(crate) fn new(provider: Provider) -> Self {
        match provider {
            Provider::Memory => Self::Memory(MemoryStore::new()),
            Provider::Sqlite => Self::Sqlite(TempDir::new().unwrap()),
            Provider::Redis => Self::Redis(Server::new()),
        }
    }

    /// One of each.
    pub(crate) fn every() -> [Self; 3] {
        PROVIDERS.map(Self::new)
    }

    pub(crate) fn open(&self) -> StoreSource {
        match self {
            Self::Memory(store) => store.clone().into(),
            Self::Sqlite(folder) => format!("sqlite://{}/records.db", folder.path().display()).into(),
            Self::Redis(server) => format!("{}?namespace=records", server.address()).into(),
        }
    }

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
