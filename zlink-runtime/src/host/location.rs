//! A host and its Location Store: what is registered, the lease, what is published, and how it stands.
//!
//! Leases are judged below; who is linked with whom is decided by the mesh.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::error::ConfigError;
use crate::id::Rid;
use crate::location::{
    BlobSource, BootClock, Guarded, HostLease, LeaseConfig, LeasePhase, LocationStore, LocationTiming, OwnerId,
    ProbeError, Reader, StoreSource, probe,
};
use crate::mesh::{Discovery, Publishes, Scope, Searches, claim, published};
use crate::random::Random;

use super::validate::Mistakes;

const PLACE: &str = "location_store";
const BLOBS: &str = "relocation_store";

/// What was registered.
#[derive(Debug, Default)]
pub(super) struct LocationOptions {
    pub(super) stores: Vec<StoreSource>,
    pub(super) blobs: Vec<BlobSource>,
    pub(super) timing: LocationTiming,
    pub(super) clock: BootClock,
}

/// A registration that is right.
#[derive(Debug)]
pub(super) struct LocationPlan {
    store: StoreSource,
    /// As registered, or what comes with the store.
    pub(super) blobs: Option<BlobSource>,
    timing: LocationTiming,
    clock: BootClock,
}

impl LocationOptions {
    pub(super) fn plan(self, mistakes: &mut Mistakes) -> Option<LocationPlan> {
        if self.stores.len() > 1 {
            mistakes.add(PLACE, "is given twice; a host has one");
        }
        for error in self.stores.iter().filter_map(|store| store.check().err()) {
            mistakes.add(PLACE, error);
        }
        if self.blobs.len() > 1 {
            mistakes.add(BLOBS, "is given twice; a host has one");
        }
        for error in self.blobs.iter().filter_map(|store| store.check().err()) {
            mistakes.add(BLOBS, error);
        }
        if self.stores.is_empty() && !self.blobs.is_empty() {
            mistakes.add(BLOBS, "is of no use without a Location Store");
        }
        for problem in self.timing.problems() {
            mistakes.add("location_timing", problem);
        }
        let store = self.stores.into_iter().next()?;
        Some(LocationPlan {
            blobs: self.blobs.into_iter().next().or_else(|| store.blobs()),
            store,
            timing: self.timing,
            clock: self.clock,
        })
    }
}

/// How a host stands with its Location Store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LocationState {
    /// The lease is renewed, and the lists of peers are current.
    Ready,
    /// The store fails, or was not read completely yet. Links stay; no peer is dialled that only the store names.
    Degraded,
    /// The same, for longer than the grace.
    Unavailable,
    /// Another run has this host's identity. The host must be started anew.
    Fenced,
}

/// A host's dealings with its Location Store, at one moment.
#[derive(Clone, Copy, Debug)]
pub struct LocationStatus {
    /// How it stands.
    pub state: LocationState,
    /// Whether the host may start work of objects that it owns: its lease is held, and was renewed in time.
    pub admits_owned_work: bool,
    /// How long ago all lists of peers were read completely; `None` before the first time.
    pub list_age: Option<Duration>,
}

/// The store of a running host.
#[derive(Debug)]
pub(super) struct Location {
    lease: Arc<HostLease>,
    runtime: Handle,
    random: Random,
    discovery: Option<Discovery>,
    publishers: Mutex<Vec<JoinHandle<()>>>,
    /// That of the own Spots; without them, from the first question on.
    spots: OnceLock<Reader>,
}

impl Location {
    /// Takes a lease, and with it the identities of `nodes`, all or none.
    ///
    /// # Errors
    /// Where one of them is taken, or the store cannot be used.
    pub(super) async fn take(
        plan: LocationPlan,
        nodes: Vec<(Scope, Rid)>,
        random: &Random,
        runtime: Handle,
    ) -> Result<Self, ConfigError> {
        let owner = OwnerId::new(random.uuid().into_bytes());
        let mut claims = Vec::with_capacity(nodes.len());
        for (scope, rid) in &nodes {
            claims.push(claim(scope, rid, owner).map_err(|problem| ConfigError::new(scope.to_string(), problem))?);
        }
        let config = LeaseConfig {
            store: open(plan.store, &plan.timing)
                .await
                .map_err(|problem| ConfigError::new(PLACE, problem))?,
            timing: plan.timing,
            clock: plan.clock,
            owner,
            runtime: runtime.clone(),
        };
        match HostLease::take(config, claims).await {
            Ok(lease) => Ok(Self {
                lease: Arc::new(lease),
                runtime,
                random: random.clone(),
                discovery: None,
                publishers: Mutex::default(),
                spots: OnceLock::new(),
            }),
            Err(error) => Err(ConfigError::new(PLACE, error.to_string())),
        }
    }

    /// Publishes these sides, and from then on whatever changes of them.
    ///
    /// # Errors
    /// Where one cannot be published, or the store fails.
    pub(super) async fn publish(&mut self, sides: Vec<Arc<dyn Publishes>>) -> Result<(), ConfigError> {
        for side in sides {
            let mut revisions = side.revisions();
            put(&self.lease, &*side).map_err(|problem| ConfigError::new(side.local().scope.to_string(), problem))?;
            let lease = self.lease.clone();
            self.publishers.lock().push(self.runtime.spawn(async move {
                while revisions.changed().await.is_ok() {
                    if let Err(problem) = put(&lease, &*side) {
                        tracing::error!(target: "zlink::runtime", problem, "a change cannot be published");
                    }
                }
            }));
        }
        let timeout = 2 * self.lease.config().timing.renew_timeout;
        if self.lease.stored(timeout).await {
            Ok(())
        } else {
            let problem = format!("did not take within {timeout:?} what this host publishes");
            Err(ConfigError::new(PLACE, problem))
        }
    }

    /// Begins to look for the peers of these sides.
    pub(super) fn search(&mut self, sides: impl IntoIterator<Item = Arc<dyn Searches>>) {
        self.discovery = Some(Discovery::start(
            &self.runtime,
            self.lease.clone(),
            self.random.clone(),
            sides,
        ));
    }

    pub(super) fn lease(&self) -> Arc<HostLease> {
        self.lease.clone()
    }

    /// Asks this one for Spots, which watches the leases of others already.
    pub(super) fn asks(&self, reader: Reader) {
        // Whoever was first is as good.
        let _ = self.spots.set(reader);
    }

    /// Who is asked for Spots.
    pub(super) fn spots(&self) -> &Reader {
        self.spots.get_or_init(|| Reader::new(self.lease.clone()))
    }

    pub(super) fn is_fenced(&self) -> bool {
        self.lease.phase() == LeasePhase::Fenced
    }

    pub(super) fn status(&self) -> LocationStatus {
        let discovery = self.discovery.as_ref().map(Discovery::state).unwrap_or_default();
        let timing = self.lease.config().timing;
        let long = |since: Instant| since.elapsed() > timing.store_failure_grace;
        // Either may fail alone: who searches for nobody reads no list.
        let failing = [self.lease.failing_since(), discovery.failing_since];
        let state = match (self.lease.phase(), failing.into_iter().flatten().min()) {
            (LeasePhase::Fenced, _) => LocationState::Fenced,
            (_, Some(since)) if long(since) => LocationState::Unavailable,
            (LeasePhase::Held, None) if discovery.listed.is_some() => LocationState::Ready,
            _ => LocationState::Degraded,
        };
        LocationStatus {
            state,
            admits_owned_work: self.lease.admits(),
            list_age: discovery.listed.map(|at| at.elapsed()),
        }
    }

    /// Takes everything back, at most for `within`: what cannot be removed expires.
    pub(super) async fn release(&self, within: Duration) {
        let publishers = std::mem::take(&mut *self.publishers.lock());
        for task in publishers {
            task.abort();
            let _ = task.await;
        }
        if let Some(discovery) = &self.discovery {
            discovery.end().await;
        }
        self.lease.release(within).await;
    }

    /// The same without waiting.
    pub(super) fn stop(&self) {
        self.end_tasks();
        self.lease.stop();
    }

    /// Leaves everything as it is, as the end of the process would.
    #[cfg(feature = "testing")]
    pub(super) fn kill(&self) {
        self.end_tasks();
        self.lease.kill();
    }

    fn end_tasks(&self) {
        self.publishers.lock().iter().for_each(JoinHandle::abort);
        if let Some(discovery) = &self.discovery {
            discovery.stop();
        }
    }
}

impl Drop for Location {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Opens the store, and checks that it is one. Where it does not answer, it is tried again for one renew timeout.
async fn open(source: StoreSource, timing: &LocationTiming) -> Result<Arc<dyn LocationStore>, String> {
    let store = source.open().await.map_err(|error| error.to_string())?;
    let store: Arc<dyn LocationStore> = Arc::new(Guarded(store));
    let deadline = Instant::now() + timing.renew_timeout;
    loop {
        let last = match tokio::time::timeout(timing.renew_timeout, probe(&*store)).await {
            Ok(Ok(())) => return Ok(store),
            // What it answered was right. The lease copes with lost answers; a probe cannot tell them from late ones.
            Ok(Err(ProbeError::Failed(error))) if error.may_be_applied() => return Ok(store),
            Ok(Err(ProbeError::Failed(error))) => error.to_string(),
            Ok(Err(broken @ ProbeError::Broken(_))) => return Err(broken.to_string()),
            Err(_) => format!("the store is unavailable: no answer within {:?}", timing.renew_timeout),
        };
        if Instant::now() >= deadline {
            return Err(last);
        }
        tokio::time::sleep(timing.poll_interval.min(timing.renew_timeout) / 2).await;
    }
}

fn put(lease: &HostLease, side: &dyn Publishes) -> Result<(), String> {
    let record = published(&side.local(), lease.config().owner, lease.generation())?;
    lease.put(record);
    Ok(())
}
