//! A whole list of records, as it was at one moment, although it is read in pages. It must not know what a record says.

use std::future::Future;
use std::time::Duration;

use crate::limit::PAGE_ENTRIES;

use super::name::ListName;
use super::{Key, LocationStore, Revision, Scan, Scanned, StoreError, Stored};

/// How often one look at a list begins again because the list changed under it.
const TRIES: usize = 4;

/// The entries of a list, all of them and from one moment.
type Entries = Vec<(Key, Stored)>;

/// Reads `list`, each step within `timeout`, however many the pages are. `None` where it changed so fast that no pages fitted together; look again later.
///
/// # Errors
/// The store failed.
pub(crate) async fn read(
    store: &dyn LocationStore,
    list: &ListName,
    timeout: Duration,
) -> Result<Option<Entries>, StoreError> {
    let limit = PAGE_ENTRIES;
    Reading {
        store,
        list,
        timeout,
        limit,
    }
    .entries()
    .await
}

/// Ends an operation of the store that takes too long.
pub(crate) async fn within<T>(
    timeout: Duration,
    operation: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    match tokio::time::timeout(timeout, operation).await {
        Ok(result) => result,
        Err(_) => Err(StoreError::DeadlineExceeded(format!("no answer within {timeout:?}"))),
    }
}

struct Reading<'a> {
    store: &'a dyn LocationStore,
    list: &'a ListName,
    /// Of one operation.
    timeout: Duration,
    /// The most entries of a page.
    limit: usize,
}

impl Reading<'_> {
    async fn entries(&self) -> Result<Option<Entries>, StoreError> {
        for _ in 0..TRIES {
            let before = self.stamp().await?;
            let Some((entries, pages)) = self.once().await? else {
                continue;
            };
            // A page is from one moment by itself. Of several: whoever changes the list writes its stamp in the same batch.
            if pages == 1 || self.stamp().await? == before {
                return Ok(Some(entries));
            }
        }
        Ok(None)
    }

    async fn stamp(&self) -> Result<Option<Revision>, StoreError> {
        let stamp = within(self.timeout, self.store.read(&self.list.stamp())).await?;
        Ok(stamp.found.map(|stamp| stamp.revision))
    }

    /// All pages, one after another, and how many they were; `None` where the store lost its place.
    async fn once(&self) -> Result<Option<(Entries, usize)>, StoreError> {
        let (mut entries, mut pages, mut after) = (Vec::new(), 0, None);
        loop {
            let mut scan = Scan::new(self.list.prefix(), self.limit)?;
            if let Some(cursor) = after {
                scan = scan.after(cursor);
            }
            let Scanned::Page(page) = within(self.timeout, self.store.scan(&scan)).await? else {
                return Ok(None);
            };
            pages += 1;
            entries.extend(page.entries);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(Some((entries, pages))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::location::{Batch, BoxFuture, Fault, Faults, MemoryStore, Mutation, Operation, ReadMany, Written};

    /// Moves a record of the list to another key before each of the first `moves` pages but one.
    #[derive(Debug)]
    struct Restless {
        inner: MemoryStore,
        list: ListName,
        moves: AtomicUsize,
        pages: AtomicUsize,
    }

    impl Restless {
        async fn new(moves: usize) -> Self {
            let store = Self {
                inner: MemoryStore::new(),
                list: ListName::nodes("m"),
                moves: AtomicUsize::new(moves),
                pages: AtomicUsize::new(0),
            };
            for rid in ["b", "d", "f", "x0"] {
                store.change(vec![Mutation::put(store.record(rid), rid)]).await;
            }
            store
        }

        fn record(&self, rid: &str) -> Key {
            self.list.record(rid.as_bytes()).unwrap()
        }

        async fn change(&self, mut mutations: Vec<Mutation>) {
            mutations.push(Mutation::put(self.list.stamp(), ""));
            let written = self.inner.write(&Batch::new([], mutations).unwrap()).await;
            assert!(matches!(written, Ok(Written::Applied { .. })));
        }
    }

    impl LocationStore for Restless {
        fn read_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<ReadMany, StoreError>> {
            self.inner.read_many(keys)
        }

        fn write<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Written, StoreError>> {
            self.inner.write(batch)
        }

        fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Scanned, StoreError>> {
            Box::pin(async move {
                self.pages.fetch_add(1, Ordering::Relaxed);
                let moves = self.moves.load(Ordering::Relaxed);
                if scan.cursor().is_some() && moves > 0 {
                    self.moves.store(moves - 1, Ordering::Relaxed);
                    // From the last page to the first: a reader that mixes states sees it twice, or never.
                    let (from, to) = if moves.is_multiple_of(2) {
                        ("x0", "a0")
                    } else {
                        ("a0", "x0")
                    };
                    self.change(vec![
                        Mutation::Delete(self.record(from)),
                        Mutation::put(self.record(to), "moved"),
                    ])
                    .await;
                }
                self.inner.scan(scan).await
            })
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    /// Reads the list in pages of two.
    async fn pairs(store: &Restless) -> Result<Option<Entries>, StoreError> {
        let (list, timeout, limit) = (&store.list, SECOND, 2);
        Reading {
            store,
            list,
            timeout,
            limit,
        }
        .entries()
        .await
    }

    /// REQ: LS-065
    #[tokio::test(start_paused = true)]
    async fn a_list_may_take_longer_than_one_operation() {
        let (store, list) = (Restless::new(0).await, ListName::nodes("m"));
        let faults = Faults::new(1);
        let slow = store.inner.with_faults(faults.clone());
        let read = |timeout| Reading {
            store: &slow,
            list: &list,
            timeout,
            limit: 1,
        };
        faults.every(Operation::Scan, Fault::Delay(SECOND / 2));
        let whole = read(SECOND).entries().await.unwrap();
        assert_eq!(whole.expect("nothing changes").len(), 4);
        let late = read(SECOND / 4).entries().await;
        assert!(matches!(late, Err(StoreError::DeadlineExceeded(_))), "{late:?}");
    }

    /// REQ: LS-053, NET-501
    #[tokio::test]
    async fn pages_of_different_states_are_never_mixed() {
        let store = Restless::new(2).await;
        let list = pairs(&store).await.unwrap().expect("it settles");
        assert_eq!(list.len(), 4, "{list:?}");
        assert!(store.pages.load(Ordering::Relaxed) > 2, "it began again");

        let store = Restless::new(usize::MAX - 1).await;
        assert!(pairs(&store).await.unwrap().is_none(), "rather nothing than a mixture");
        assert_eq!(
            read(&store, &store.list, SECOND)
                .await
                .unwrap()
                .expect("one page")
                .len(),
            4
        );
    }
}
