//! A whole list of records, as it was at one moment, although it is read in pages. It must not know what a record says.

use crate::limit::PAGE_ENTRIES;

use super::name::ListName;
use super::{Key, LocationStore, Revision, Scan, Scanned, StoreError, Stored};

/// How often one look at a list begins again because the list changed under it.
const TRIES: usize = 4;

/// The entries of a list, all of them and from one moment.
type Entries = Vec<(Key, Stored)>;

/// Reads `list`. `None` where it changed so fast that no pages fitted together; look again later.
///
/// # Errors
/// The store failed.
pub(crate) async fn read(store: &dyn LocationStore, list: &ListName) -> Result<Option<Entries>, StoreError> {
    in_pages(store, list, PAGE_ENTRIES).await
}

async fn in_pages(store: &dyn LocationStore, list: &ListName, limit: usize) -> Result<Option<Entries>, StoreError> {
    for _ in 0..TRIES {
        let before = stamp(store, list).await?;
        let Some((entries, pages)) = once(store, list, limit).await? else {
            continue;
        };
        // A page is from one moment by itself. Of several: whoever changes the list writes its stamp in the same batch.
        if pages == 1 || stamp(store, list).await? == before {
            return Ok(Some(entries));
        }
    }
    Ok(None)
}

async fn stamp(store: &dyn LocationStore, list: &ListName) -> Result<Option<Revision>, StoreError> {
    Ok(store.read(&list.stamp()).await?.found.map(|stamp| stamp.revision))
}

/// All pages, one after another, and how many they were; `None` where the store lost its place.
async fn once(
    store: &dyn LocationStore,
    list: &ListName,
    limit: usize,
) -> Result<Option<(Entries, usize)>, StoreError> {
    let (mut entries, mut pages, mut after) = (Vec::new(), 0, None);
    loop {
        let mut scan = Scan::new(list.prefix(), limit)?;
        if let Some(cursor) = after {
            scan = scan.after(cursor);
        }
        let Scanned::Page(page) = store.scan(&scan).await? else {
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::location::{Batch, BoxFuture, MemoryStore, Mutation, ReadMany, Written};

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

    /// REQ: LS-053, NET-501
    #[tokio::test]
    async fn pages_of_different_states_are_never_mixed() {
        let store = Restless::new(2).await;
        let list = in_pages(&store, &store.list, 2).await.unwrap().expect("it settles");
        assert_eq!(list.len(), 4, "{list:?}");
        assert!(store.pages.load(Ordering::Relaxed) > 2, "it began again");

        let store = Restless::new(usize::MAX - 1).await;
        assert!(
            in_pages(&store, &store.list, 2).await.unwrap().is_none(),
            "rather nothing than a mixture"
        );
        assert_eq!(read(&store, &store.list).await.unwrap().expect("one page").len(), 4);
    }
}
