//! Looks at the Location Store again and again, and tells each side whom it names: complete lists, each from one moment,
//! of those whose hosts are alive.
//!
//! It decides nothing about links. What the store no longer needs, it removes where a host is proved dead.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::clock;
use crate::limit::READ_KEYS;
use crate::location::{
    HostLease, Key, LeaseSeen, LeaseWatch, ListName, LocationStore, OwnerId, Revision, Standing, StoreError, Stored,
    read_list, within,
};

use crate::random::Random;

use super::descriptor::{self, Descriptor};
use super::info::{NodeInfo, Scope};
use super::links::Links;

use stray::Strays;

mod stray;
mod sweep;

/// What this host knows of the store.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DiscoveryState {
    /// When all lists were read completely last.
    pub(crate) listed: Option<Instant>,
    /// Since when it fails, while it does.
    pub(crate) failing_since: Option<Instant>,
}

/// The loop that looks. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Discovery {
    task: Mutex<Option<JoinHandle<()>>>,
    state: watch::Receiver<DiscoveryState>,
}

impl Discovery {
    /// Begins to look, for all of `sides` that search.
    pub(crate) fn start(
        runtime: &Handle,
        lease: Arc<HostLease>,
        random: Random,
        sides: impl IntoIterator<Item = Arc<dyn Searches>>,
    ) -> Self {
        let searches = sides.into_iter().filter_map(Search::new).collect();
        let (tell, state) = watch::channel(DiscoveryState::default());
        let searching = Searching {
            watch: LeaseWatch::new(lease.config().timing),
            strays: Strays::new(clock::now(), random.bits()),
            lease,
            searches,
            random,
            state: tell,
        };
        Self {
            task: Mutex::new(Some(runtime.spawn(searching.run()))),
            state,
        }
    }

    pub(crate) fn state(&self) -> DiscoveryState {
        let mut state = *self.state.borrow();
        if self.state.has_changed().is_err() {
            // It has ended, and reads nothing any more.
            state.failing_since = state.failing_since.or(state.listed);
        }
        state
    }

    /// Looks no more.
    pub(crate) fn stop(&self) {
        if let Some(task) = &*self.task.lock() {
            task.abort();
        }
    }

    /// The same, and waits until it has let go of everything.
    pub(crate) async fn end(&self) {
        let task = self.task.lock().take();
        if let Some(task) = task {
            task.abort();
            let _ = task.await;
        }
    }
}

impl Drop for Discovery {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A side that searches for others.
pub(crate) trait Searches: Send + Sync + 'static {
    /// What it is, and so whom it searches for.
    fn scope(&self) -> Scope;

    /// Takes a complete list: each description with the revision that published it.
    fn discovered(&self, list: Vec<(u64, NodeInfo)>);

    /// Whether the list is current. While it is not, nobody is dialled whom it names.
    fn list_is_current(&self, current: bool);
}

impl Searches for Links {
    fn scope(&self) -> Scope {
        self.local().scope
    }

    fn discovered(&self, list: Vec<(u64, NodeInfo)>) {
        Links::discovered(self, list);
    }

    fn list_is_current(&self, current: bool) {
        Links::list_is_current(self, current);
    }
}

/// What one side searches for.
struct Search {
    side: Arc<dyn Searches>,
    list: ListName,
    /// What is in the list.
    scope: Scope,
    /// The stamp of the list that was read last; `None` where none was.
    read: Option<Option<Revision>>,
    found: Vec<Found>,
    /// Whom the side was told last.
    told: Option<Vec<(Key, Revision)>>,
}

/// A descriptor in the store. What only keeps a place is one too: its host may die before it serves.
struct Found {
    key: Key,
    revision: Revision,
    descriptor: Descriptor,
}

impl Search {
    fn new(side: Arc<dyn Searches>) -> Option<Self> {
        let (list, scope) = side.scope().searched()?;
        Some(Self {
            side,
            list,
            scope,
            read: None,
            found: Vec::new(),
            told: None,
        })
    }

    fn take(&mut self, entries: Vec<(Key, Stored)>) {
        self.found.clear();
        for (key, stored) in entries {
            match descriptor::read(&stored, &self.scope) {
                Ok(descriptor) => self.found.push(Found {
                    key,
                    revision: stored.revision,
                    descriptor,
                }),
                Err(why) => {
                    tracing::warn!(target: "zlink::runtime", %key, why, "a descriptor in the Location Store cannot be read");
                }
            }
        }
    }

    /// Tells the side who is there, unless it knows.
    fn tell(&mut self, is_there: impl Fn(&Descriptor) -> bool) {
        let there = self.found.iter().filter(|found| is_there(&found.descriptor));
        let there: Vec<_> = there
            .filter_map(|found| Some((found, found.descriptor.info.as_ref()?)))
            .collect();
        let keys: Vec<_> = there
            .iter()
            .map(|(found, _)| (found.key.clone(), found.revision))
            .collect();
        if self.told.as_ref() == Some(&keys) {
            return;
        }
        tracing::info!(
            target: "zlink::runtime", event_id = "zlink.runtime.location.list_changed", scope = %self.scope,
            members = keys.len()
        );
        let list = there
            .iter()
            .map(|(found, info)| (found.revision.get(), (*info).clone()));
        self.side.discovered(list.collect());
        self.told = Some(keys);
    }
}

struct Searching {
    lease: Arc<HostLease>,
    searches: Vec<Search>,
    watch: LeaseWatch,
    strays: Strays,
    random: Random,
    state: watch::Sender<DiscoveryState>,
}

impl Searching {
    async fn run(mut self) {
        let interval = self.lease.config().timing.poll_interval;
        loop {
            match self.look().await {
                Ok(true) => self.complete(),
                // The lists change faster than they can be read. The last ones stay, and so do the links.
                Ok(false) => {}
                Err(error) => self.failed(&error),
            }
            tokio::time::sleep(jittered(interval, self.random.bits())).await;
        }
    }

    fn complete(&self) {
        let before = self.state.send_replace(DiscoveryState {
            listed: Some(clock::now()),
            failing_since: None,
        });
        if let Some(since) = before.failing_since {
            tracing::info!(
                target: "zlink::runtime", event_id = "zlink.runtime.location.store_changed", state = "ready",
                seconds = since.elapsed().as_secs(), "the Location Store can be read again"
            );
        }
        self.searches
            .iter()
            .for_each(|search| search.side.list_is_current(true));
    }

    fn failed(&self, error: &StoreError) {
        self.searches
            .iter()
            .for_each(|search| search.side.list_is_current(false));
        self.state.send_modify(|state| {
            if state.failing_since.is_none() {
                state.failing_since = Some(clock::now());
                tracing::warn!(
                    target: "zlink::runtime", event_id = "zlink.runtime.location.store_changed", state = "degraded", %error,
                    "the Location Store cannot be read; links stay, and no new ones are dialled"
                );
            }
        });
    }

    /// Reads what may have changed. Returns whether every list is complete.
    ///
    /// # Errors
    /// The store failed; what was known stays.
    async fn look(&mut self) -> Result<bool, StoreError> {
        let owners = self.watch.owners();
        let stamps: Vec<_> = self.searches.iter().map(|search| search.list.stamp()).collect();
        let leases = owners.iter().map(|owner| owner.lease_key());
        let keys: Vec<_> = stamps.iter().cloned().chain(leases).collect();
        let begun = self.lease.config().clock.now();
        let mut read = self.read(&keys).await?;
        let leases = read.split_off(stamps.len());
        self.watch_leases(begun, owners, leases);

        let mut complete = true;
        for at in 0..self.searches.len() {
            let stamp = read
                .get(at)
                .and_then(|stored| stored.as_ref())
                .map(|stored| stored.revision);
            let list = match self.searches.get(at) {
                Some(search) if search.read != Some(stamp) => search.list.clone(),
                _ => continue,
            };
            let snapshot = read_list(self.store(), &list, self.timeout()).await?;
            match (self.searches.get_mut(at), snapshot) {
                (Some(search), Some(snapshot)) => {
                    search.take(snapshot);
                    search.read = Some(stamp);
                }
                _ => complete = false,
            }
        }
        self.watch_new_owners().await?;

        let (watch, own) = (&self.watch, self.lease.config().owner);
        let is_there = |descriptor: &Descriptor| match watch.standing(&descriptor.owner) {
            _ if descriptor.owner == own => true,
            Some(Standing::Alive { generation, .. }) => descriptor.lease.is_none_or(|lease| lease == generation),
            _ => false,
        };
        for search in self.searches.iter_mut().filter(|search| search.read.is_some()) {
            search.tell(is_there);
        }
        self.look_for_strays().await;
        self.sweep().await;
        Ok(complete)
    }

    /// Reads the leases of those hosts that have appeared, and watches nobody else but those that have descriptors, and
    /// the strays.
    async fn watch_new_owners(&mut self) -> Result<(), StoreError> {
        let own = self.lease.config().owner;
        let owners: BTreeSet<OwnerId> = self
            .searches
            .iter()
            .flat_map(|search| &search.found)
            .map(|found| found.descriptor.owner)
            .chain(self.strays.suspects())
            .filter(|owner| *owner != own)
            .collect();
        self.watch.retain(|owner| owners.contains(owner));
        let new: Vec<_> = owners
            .into_iter()
            .filter(|owner| self.watch.standing(owner).is_none())
            .collect();
        if !new.is_empty() {
            let keys: Vec<_> = new.iter().map(|owner| owner.lease_key()).collect();
            let begun = self.lease.config().clock.now();
            let leases = self.read(&keys).await?;
            self.watch_leases(begun, new, leases);
        }
        Ok(())
    }

    fn watch_leases(&mut self, begun: Duration, owners: Vec<OwnerId>, leases: Vec<Option<Stored>>) {
        let now = self.lease.config().clock.now();
        let seen = leases
            .into_iter()
            .map(|stored| stored.as_ref().and_then(LeaseSeen::from_stored));
        self.watch.read(begun, now, owners.into_iter().zip(seen));
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Stored>>, StoreError> {
        let mut found = Vec::with_capacity(keys.len());
        for keys in keys.chunks(READ_KEYS) {
            found.extend(within(self.timeout(), self.store().read_many(keys)).await?.found);
        }
        Ok(found)
    }

    fn store(&self) -> &dyn LocationStore {
        &*self.lease.config().store
    }

    fn timeout(&self) -> Duration {
        self.lease.config().timing.renew_timeout
    }
}

/// Up to a tenth less than `interval`, so that hosts that began together do not look together for ever.
fn jittered(interval: Duration, random: u64) -> Duration {
    let tenth = u64::try_from(interval.as_nanos() / 10).unwrap_or(u64::MAX).max(1);
    interval - Duration::from_nanos(random % tenth)
}
