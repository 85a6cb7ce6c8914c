//! What the cases share: opening stores, short forms of operations, and checks that name what was seen.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep};

use super::Bench;
use crate::location::{
    Batch, BlobStore, Condition, Key, LocationStore, Mutation, Page, Revision, Scan, Scanned, Stored, Written,
};

/// A store that a case uses.
pub(super) type Store = Arc<dyn LocationStore>;

impl Bench<'_> {
    /// A connection to the namespace of the case.
    pub(super) async fn open(&self) -> Result<Store, String> {
        self.provider
            .location(&self.namespace)
            .await
            .map_err(failed("opening a store"))
    }

    /// The same for blobs, where the provider keeps them.
    pub(super) async fn blobs(&self) -> Result<Option<Arc<dyn BlobStore>>, String> {
        self.provider
            .blobs(&self.namespace)
            .await
            .map_err(failed("opening a blob store"))
    }
}

/// Turns an error into the problem of a case.
pub(super) fn failed<E: Debug>(what: &str) -> impl FnOnce(E) -> String {
    move |error| format!("{what} failed: {error:?}")
}

pub(super) fn check(holds: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem()) }
}

pub(super) fn same<T: PartialEq + Debug>(what: &str, seen: T, wanted: T) -> Result<(), String> {
    check(seen == wanted, || format!("{what}: {seen:?} instead of {wanted:?}"))
}

pub(super) fn key(text: impl AsRef<str>) -> Result<Key, String> {
    Key::new(text).map_err(failed("making a key"))
}

pub(super) fn put(name: &str, value: impl Into<Bytes>) -> Result<Mutation, String> {
    Ok(Mutation::put(key(name)?, value))
}

pub(super) fn put_for(name: &str, value: &'static str, retention: Duration) -> Result<Mutation, String> {
    Ok(Mutation::Put {
        key: key(name)?,
        value: Bytes::from_static(value.as_bytes()),
        retention: Some(retention),
    })
}

pub(super) fn batch(conditions: Vec<Condition>, mutations: Vec<Mutation>) -> Result<Batch, String> {
    Batch::new(conditions, mutations).map_err(failed("making a batch"))
}

/// Writes; the revision, or `None` in conflict.
pub(super) async fn write(
    store: &Store,
    conditions: Vec<Condition>,
    mutations: Vec<Mutation>,
) -> Result<Option<Revision>, String> {
    match store.write(&batch(conditions, mutations)?).await {
        Ok(Written::Applied { revision, .. }) => Ok(Some(revision)),
        Ok(Written::Conflict) => Ok(None),
        Err(error) => Err(format!("a write failed: {error:?}")),
    }
}

/// Writes what no condition hinders.
pub(super) async fn apply(store: &Store, mutations: Vec<Mutation>) -> Result<Revision, String> {
    let written = write(store, Vec::new(), mutations).await?;
    written.ok_or_else(|| "a batch without conditions is in conflict".to_owned())
}

pub(super) async fn read(store: &Store, name: &str) -> Result<Option<Stored>, String> {
    let read = store.read(&key(name)?).await;
    Ok(read.map_err(failed("a read"))?.found)
}

pub(super) async fn page(store: &Store, scan: &Scan) -> Result<Page, String> {
    match store.scan(scan).await.map_err(failed("a scan"))? {
        Scanned::Page(page) => Ok(page),
        Scanned::Expired => Err("a cursor that was just given has expired".to_owned()),
    }
}

pub(super) fn scan(prefix: &str, limit: usize) -> Result<Scan, String> {
    Scan::new(prefix, limit).map_err(failed("making a scan"))
}

/// All pages of a scan, each as it came.
pub(super) async fn pages(store: &Store, prefix: &str, limit: usize) -> Result<Vec<Page>, String> {
    let mut pages = Vec::new();
    let mut request = scan(prefix, limit)?;
    loop {
        let page = page(store, &request).await?;
        let next = page.next.clone();
        pages.push(page);
        match next {
            Some(next) if pages.len() < 10_000 => request = request.after(next),
            Some(_) => return Err(format!("the scan of {prefix:?} has no end")),
            None => return Ok(pages),
        }
    }
}

/// All keys of a scan.
pub(super) async fn keys(store: &Store, prefix: &str, limit: usize) -> Result<Vec<String>, String> {
    let entries = pages(store, prefix, limit)
        .await?
        .into_iter()
        .flat_map(|page| page.entries);
    Ok(entries.map(|(key, _)| key.as_str().to_owned()).collect())
}

/// Lets a little time pass, for as long as there is some left until `deadline`.
pub(super) async fn pause(deadline: Instant, what: &str) -> Result<(), String> {
    check(Instant::now() < deadline, || format!("{what} did not happen in time"))?;
    sleep(Duration::from_millis(5)).await;
    Ok(())
}

/// When something that takes a fraction of a second has failed.
pub(super) fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(20)
}
