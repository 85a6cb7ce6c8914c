//! What a host asks of a live store before it trusts it: the conformance suite in eight operations, under keys that
//! nobody else uses.

use std::time::Duration;

use bytes::Bytes;
use uuid::Uuid;

use super::{Batch, Condition, Key, LocationStore, Mutation, Revision, Scan, Scanned, StoreError, Written};

/// Where the probe writes. What is left there by one that did not end expires.
const PREFIX: &str = "probe/";
/// How long, if it does not end.
const RETENTION: Duration = Duration::from_secs(60);

/// A store that failed, or keeps no contract.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// It could not be asked.
    #[error(transparent)]
    Failed(#[from] StoreError),
    /// It answered, and did not what a store must.
    #[error("the store breaks its contract: {0}")]
    Broken(&'static str),
}

crate::error::shown!(ProbeError);

/// Checks a store in use: that batches are conditional and whole, that revisions increase, that reads and scans show
/// what was written. It writes a few bytes under `probe/` and takes them away.
///
/// # Errors
/// The store failed, or keeps no contract; a host must not use it.
pub async fn probe(store: &dyn LocationStore) -> Result<(), ProbeError> {
    let prefix = format!("{PREFIX}{}/", Uuid::new_v4().simple());
    let keys = [Key::new(format!("{prefix}a")), Key::new(format!("{prefix}b"))];
    let [a, b] = keys.map(|key| key.map_err(StoreError::from));
    let (a, b) = (a?, b?);
    let put = |key: &Key, value: &'static str| Mutation::Put {
        key: key.clone(),
        value: Bytes::from_static(value.as_bytes()),
        retention: Some(RETENTION),
    };
    let first = Batch::new(
        [Condition::Missing(a.clone()), Condition::Missing(b.clone())],
        [put(&a, "1"), put(&b, "1")],
    );
    let first = first.map_err(StoreError::from)?;
    let before = applied(store, &first)
        .await?
        .ok_or(ProbeError::Broken("a key that nobody wrote is not missing"))?;
    if applied(store, &first).await?.is_some() {
        return Err(ProbeError::Broken(
            "a batch was applied although its condition does not hold",
        ));
    }
    let half = [Condition::Version(a.clone(), before), Condition::Missing(b.clone())];
    let half = Batch::new(half, [put(&a, "2"), Mutation::Delete(b.clone())]).map_err(StoreError::from)?;
    if applied(store, &half).await?.is_some() {
        return Err(ProbeError::Broken(
            "a batch was applied although one of its conditions does not hold",
        ));
    }
    let found = store.read_many(&[b.clone(), a.clone()]).await?.found;
    let as_written = |stored: &Option<super::Stored>| {
        stored
            .as_ref()
            .is_some_and(|stored| stored.revision == before && stored.value == "1")
    };
    if found.len() != 2 || !found.iter().all(as_written) {
        return Err(ProbeError::Broken("a read does not show what was written"));
    }
    let Scanned::Page(page) = store.scan(&Scan::new(&prefix, 10).map_err(StoreError::from)?).await? else {
        return Err(ProbeError::Broken("a first page has expired"));
    };
    let scanned = page.entries.iter().map(|(key, _)| key);
    if !scanned.eq([&a, &b]) || page.revision < Some(before) {
        return Err(ProbeError::Broken("a scan does not show what was written"));
    }
    let last = [
        Condition::Version(a.clone(), before),
        Condition::Version(b.clone(), before),
    ];
    let last = Batch::new(last, [Mutation::Delete(a.clone()), Mutation::Delete(b)]).map_err(StoreError::from)?;
    let after = applied(store, &last)
        .await?
        .ok_or(ProbeError::Broken("a version that was read does not hold"))?;
    if after <= before {
        return Err(ProbeError::Broken("a revision did not increase"));
    }
    if store.read(&a).await?.found.is_some() {
        return Err(ProbeError::Broken("a deleted value is there"));
    }
    Ok(())
}

async fn applied(store: &dyn LocationStore, batch: &Batch) -> Result<Option<Revision>, StoreError> {
    Ok(match store.write(batch).await? {
        Written::Applied { revision, .. } => Some(revision),
        Written::Conflict => None,
    })
}
