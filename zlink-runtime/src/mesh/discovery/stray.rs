//! Finds the leases of dead hosts that have no descriptor in any list that is read, such as hosts that only called: a page of
//! leases now and then, looked at twice. What stood still between is suspected, and from then on watched and swept out as
//! every other host. It must not judge who is dead.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

use crate::clock;
use crate::limit::{PAGE_ENTRIES, STRAY_INTERVAL, STRAY_INTERVAL_PER_LEASE, STRAYS};
use crate::location::{Cursor, LEASES, OwnerId, Page, Revision, Scan, Scanned, StoreError, within};

use super::{Searching, jittered};

/// How far the looking has come.
pub(super) struct Strays {
    due: Instant,
    /// Where the page begins; `None` for the first.
    after: Option<Cursor>,
    /// The leases of the page when it was looked at first; `None` before.
    before: Option<BTreeMap<OwnerId, Revision>>,
    suspects: BTreeSet<OwnerId>,
}

impl Strays {
    pub(super) fn new(now: Instant, random: u64) -> Self {
        Self {
            due: now + jittered(STRAY_INTERVAL, random),
            after: None,
            before: None,
            suspects: BTreeSet::new(),
        }
    }

    /// Whose leases stood still.
    pub(super) fn suspects(&self) -> impl Iterator<Item = OwnerId> {
        self.suspects.iter().copied()
    }

    fn scan(&self) -> Result<Scan, StoreError> {
        let scan = Scan::new(LEASES, PAGE_ENTRIES)?;
        Ok(match &self.after {
            Some(cursor) => scan.after(cursor.clone()),
            None => scan,
        })
    }

    /// The page was read. Every second time it is compared with the time before, and the next one is due.
    fn take(&mut self, page: Page) {
        let leases: BTreeMap<_, _> = page
            .entries
            .iter()
            .filter_map(|(key, stored)| Some((OwnerId::of_lease(key)?, stored.revision)))
            .collect();
        match self.before.take() {
            None => self.before = Some(leases),
            Some(before) => {
                let still = leases.into_iter().filter(|(owner, now)| before.get(owner) == Some(now));
                self.suspects = still.map(|(owner, _)| owner).take(STRAYS).collect();
                self.after = page.next;
            }
        }
    }

    /// Begins again, with the first page.
    fn restart(&mut self) {
        (self.after, self.before) = (None, None);
    }
}

impl Searching {
    /// Best effort, as the sweep is: what fails now is done later, or by another host.
    pub(super) async fn look_for_strays(&mut self) {
        let now = clock::now();
        if now < self.strays.due {
            return;
        }
        let mut interval = STRAY_INTERVAL;
        let read = match self.strays.scan() {
            Ok(scan) => within(self.timeout(), self.store().scan(&scan)).await,
            Err(error) => Err(error),
        };
        match read {
            Ok(Scanned::Page(page)) => {
                let leases = u32::try_from(page.entries.len()).unwrap_or(u32::MAX);
                interval = interval.max(STRAY_INTERVAL_PER_LEASE.saturating_mul(leases));
                self.strays.take(page);
            }
            Ok(Scanned::Expired) => self.strays.restart(),
            Err(error) => {
                tracing::debug!(target: "zlink::runtime", %error, "the leases in the Location Store cannot be looked through");
                self.strays.restart();
            }
        }
        self.strays.due = now + jittered(interval, self.random.bits());
    }
}
