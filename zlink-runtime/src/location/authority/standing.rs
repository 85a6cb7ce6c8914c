//! How the owners of Spots stand: their leases, read when somebody asks, and again and again while somebody did lately.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::reader::read;
use crate::limit::READ_KEYS;
use crate::location::boot::{BootTime, nanos};
use crate::location::name::OwnerId;
use crate::location::{HostLease, LeaseSeen, LeaseWatch, Revision, Standing, StoreError, Stored};

/// For how many lease TTLs an owner is watched after somebody asked for it: longer than it takes to see it dead.
const WATCHED: u32 = 20;

pub(super) struct Owners {
    lease: Arc<HostLease>,
    state: Mutex<State>,
}

struct State {
    watch: LeaseWatch,
    asked: HashMap<OwnerId, Asked>,
}

struct Asked {
    last: BootTime,
    /// When its lease was read last.
    read: Option<BootTime>,
    /// Of the run that was asked for last.
    admission: Option<Arc<Admission>>,
}

impl Asked {
    fn new(now: BootTime) -> Self {
        Self {
            last: now,
            read: None,
            admission: None,
        }
    }
}

/// Until when one run of a host may own what it owned, by all that was read of its lease: one for all that it owns. Every
/// read of the lease moves it. Without reads it comes to its end by itself.
#[derive(Debug)]
pub(crate) struct Admission {
    generation: Revision,
    /// In nanoseconds of the boot clock; 0 where it may not.
    until: AtomicU64,
    /// Whether somebody has asked since the last poll.
    is_asked: AtomicBool,
}

impl Admission {
    /// Whether it may at that moment of the boot clock.
    pub(crate) fn holds(&self, now: BootTime) -> bool {
        if !self.is_asked.load(Ordering::Relaxed) {
            self.is_asked.store(true, Ordering::Relaxed);
        }
        nanos(now) < self.until.load(Ordering::Acquire)
    }

    fn is_seen(&self, until: Option<BootTime>) {
        self.until.store(until.map_or(0, nanos), Ordering::Release);
    }
}

impl Owners {
    pub(super) fn new(lease: Arc<HostLease>) -> Self {
        let watch = LeaseWatch::new(lease.config().timing);
        let state = Mutex::new(State {
            watch,
            asked: HashMap::new(),
        });
        Self { lease, state }
    }

    fn now(&self) -> BootTime {
        self.lease.config().clock.now()
    }

    /// How that owner stands, by a read that is not much older than the poll interval.
    ///
    /// # Errors
    /// The store failed.
    pub(super) async fn standing(&self, owner: OwnerId) -> Result<Standing, StoreError> {
        let now = self.now();
        let fresh = 2 * self.lease.config().timing.poll_interval;
        {
            let mut state = self.state.lock();
            let asked = state.asked.entry(owner).or_insert_with(|| Asked::new(now));
            asked.last = now;
            let known = asked.read.is_some_and(|read| now.saturating_sub(read) <= fresh);
            if let Some(standing) = known.then(|| state.watch.standing(&owner)).flatten() {
                return Ok(standing);
            }
        }
        self.look(owner).await
    }

    /// Whether that run of a host may own what it owned, by what is known without asking. It is watched on.
    pub(super) fn may_own(&self, owner: OwnerId, generation: Revision) -> bool {
        let now = self.now();
        let mut state = self.state.lock();
        let until = state.watch.admission(&owner, generation);
        if let Some(asked) = state.asked.get_mut(&owner) {
            asked.last = now;
        }
        until.is_some_and(|until| now < until)
    }

    /// How long that run of a host may own what it owned, as later reads of its lease tell, too.
    pub(super) fn admission(&self, owner: OwnerId, generation: Revision) -> Arc<Admission> {
        let now = self.now();
        let mut state = self.state.lock();
        let until = state.watch.admission(&owner, generation);
        let asked = state.asked.entry(owner).or_insert_with(|| Asked::new(now));
        asked.last = now;
        if let Some(known) = &asked.admission {
            if known.generation == generation {
                return known.clone();
            }
            // Nobody moves it any more.
            known.is_seen(None);
        }
        let admission = Admission {
            generation,
            until: AtomicU64::new(until.map_or(0, nanos)),
            is_asked: AtomicBool::new(false),
        };
        asked.admission.insert(Arc::new(admission)).clone()
    }

    /// The same, by a read that begins now.
    ///
    /// # Errors
    /// The store failed.
    pub(super) async fn look(&self, owner: OwnerId) -> Result<Standing, StoreError> {
        self.read(vec![owner]).await?;
        // It was just read; who has no lease there is gone.
        Ok(self.state.lock().watch.standing(&owner).unwrap_or(Standing::Gone))
    }

    async fn read(&self, owners: Vec<OwnerId>) -> Result<(), StoreError> {
        let keys: Vec<_> = owners.iter().map(|owner| owner.lease_key()).collect();
        let begun = self.now();
        let leases = read(&self.lease, &keys).await?;
        let now = self.now();
        let mut state = self.state.lock();
        let State { watch, asked: all } = &mut *state;
        let seen = |stored: Option<Stored>| stored.as_ref().and_then(LeaseSeen::from_stored);
        let leases = leases.into_iter().map(seen);
        watch.read(begun, now, owners.iter().copied().zip(leases));
        for owner in &owners {
            let asked = all.entry(*owner).or_insert_with(|| Asked::new(now));
            asked.read = asked.read.max(Some(begun));
            if let Some(admission) = &asked.admission {
                admission.is_seen(watch.admission(owner, admission.generation));
            }
        }
        Ok(())
    }

    /// Reads the leases of those that were asked for lately, until it is dropped.
    pub(super) async fn poll(&self) {
        let timing = self.lease.config().timing;
        let watched: Duration = WATCHED * timing.lease_ttl;
        loop {
            tokio::time::sleep(timing.poll_interval).await;
            let owners: Vec<_> = {
                let now = self.now();
                let mut state = self.state.lock();
                let State { watch, asked } = &mut *state;
                asked.retain(|_, asked| {
                    let admission = asked.admission.as_ref();
                    if admission.is_some_and(|admission| admission.is_asked.swap(false, Ordering::Relaxed)) {
                        asked.last = now;
                    }
                    now.saturating_sub(asked.last) < watched
                });
                watch.retain(|owner| asked.contains_key(owner));
                let mut owners: Vec<_> = asked.keys().copied().collect();
                owners.sort_unstable();
                owners
            };
            for owners in owners.chunks(READ_KEYS) {
                if self.read(owners.to_vec()).await.is_err() {
                    // The next look tells; who is not seen is not counted out.
                    break;
                }
            }
        }
    }
}
