//! What others took from this host while it could not renew its lease: it is read before the host goes on. It must not
//! know what an entry says.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::limit::PAGE_ENTRIES;
use crate::location::name::OwnerId;
use crate::location::{Cursor, Key, LocationStore, Revision, Scan, Scanned, StoreError, Stored, within};

/// What a host that was cut off is told before owned work may start again.
#[derive(Debug)]
pub(crate) struct Returned {
    /// What names its last batch; `None` where it made none, or all it had was taken and nothing is left of it.
    pub(crate) last: Option<Stored>,
    /// What others took, as far as they have left it.
    pub(crate) taken: Vec<(Key, Stored)>,
    /// The revision of its lease: all that it had before is older.
    pub(crate) lease: Revision,
}

/// It must not wait.
type Hook = Arc<dyn Fn(Returned) + Send + Sync>;

/// Who is told, if anybody is.
#[derive(Default)]
pub(super) struct Taken(OnceLock<Hook>);

impl Taken {
    /// Tells `hook` from now on; only the first one counts.
    pub(super) fn tell(&self, hook: impl Fn(Returned) + Send + Sync + 'static) {
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

/// How far the reading has come. It may take longer than a lease holds, which is renewed between pages: what is written into
/// the list is conditioned on this host's being dead, and as long as its renewals are applied it was not.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// Whether the records of this host are known.
    pub(super) records: bool,
    last: Option<Stored>,
    taken: Vec<(Key, Stored)>,
    after: Option<Cursor>,
    /// Nothing is left to be read.
    pub(super) ended: bool,
}

impl Reading {
    /// Reads one page of what was taken from `owner`, within `limit`. Returns all, once, after the last.
    ///
    /// # Errors
    /// The store failed; the same page is next.
    pub(super) async fn step(
        &mut self,
        store: &dyn LocationStore,
        owner: OwnerId,
        lease: Revision,
        limit: Duration,
    ) -> Result<Option<Returned>, StoreError> {
        let mut scan = Scan::new(owner.taken_prefix(), PAGE_ENTRIES)?;
        if let Some(cursor) = &self.after {
            scan = scan.after(cursor.clone());
        }
        let Scanned::Page(page) = within(limit, store.scan(&scan)).await? else {
            (self.after, self.taken) = (None, Vec::new());
            return Err(StoreError::Unavailable("the place in a list is forgotten".into()));
        };
        self.taken.extend(page.entries);
        self.after = page.next;
        self.ended = self.after.is_none();
        Ok(self.ended.then(|| Returned {
            last: self.last.take(),
            taken: std::mem::take(&mut self.taken),
            lease,
        }))
    }

    /// What names the last batch was read.
    pub(super) fn read(&mut self, last: Option<Stored>) {
        (self.records, self.last) = (true, last);
    }
}
