//! What others took from this host while it could not renew its lease: it is read before the host goes on. It must not
//! know what an entry says.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::limit::PAGE_ENTRIES;
use crate::location::{Key, LocationStore, Scan, Scanned, StoreError, Stored, within};

/// Is told of all entries before owned work may start again; it must not wait.
type Hook = Arc<dyn Fn(Vec<(Key, Stored)>) + Send + Sync>;

/// Who is told of what was taken, if anybody is.
#[derive(Default)]
pub(super) struct Taken(OnceLock<Hook>);

impl Taken {
    /// Tells `hook` from now on; only the first one counts.
    pub(super) fn tell(&self, hook: impl Fn(Vec<(Key, Stored)>) + Send + Sync + 'static) {
        let _ = self.0.set(Arc::new(hook));
    }

    pub(super) fn hook(&self) -> Option<Hook> {
        self.0.get().cloned()
    }
}

impl fmt::Debug for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Taken({})", self.0.get().is_some())
    }
}

/// All entries under `prefix`, each page within `limit`: there may be many. Pages may be from different moments; what is
/// written while they are read is conditioned on this host's being dead, and it is not any more.
///
/// # Errors
/// The store failed.
pub(super) async fn read(
    store: &dyn LocationStore,
    prefix: &str,
    limit: Duration,
) -> Result<Vec<(Key, Stored)>, StoreError> {
    let (mut entries, mut after) = (Vec::new(), None);
    loop {
        let mut scan = Scan::new(prefix, PAGE_ENTRIES)?;
        if let Some(cursor) = after {
            scan = scan.after(cursor);
        }
        let Scanned::Page(page) = within(limit, store.scan(&scan)).await? else {
            return Err(StoreError::Unavailable("the place in a list is forgotten".into()));
        };
        entries.extend(page.entries);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(entries),
        }
    }
}
