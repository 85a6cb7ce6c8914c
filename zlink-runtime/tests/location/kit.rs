//! What the tests of stores share.

use bytes::Bytes;
use zlink_runtime::location::{Batch, Condition, Key, LocationStore, Mutation, Revision, StoreError, Written};

pub(crate) fn key(text: impl AsRef<str>) -> Key {
    Key::new(text).unwrap()
}

pub(crate) fn put(name: impl AsRef<str>, value: impl Into<Bytes>) -> Mutation {
    Mutation::put(key(name), value)
}

pub(crate) fn batch(conditions: impl Into<Vec<Condition>>, mutations: impl Into<Vec<Mutation>>) -> Batch {
    Batch::new(conditions, mutations).unwrap()
}

/// The revision of a batch that is applied; `None` in conflict.
pub(crate) async fn write(store: &dyn LocationStore, batch: &Batch) -> Result<Option<Revision>, StoreError> {
    Ok(match store.write(batch).await? {
        Written::Applied { revision, .. } => Some(revision),
        Written::Conflict => None,
    })
}

pub(crate) async fn value(store: &dyn LocationStore, name: &str) -> Result<Option<Bytes>, StoreError> {
    let found = store.read(&key(name)).await?.found;
    Ok(found.map(|stored| stored.value))
}
