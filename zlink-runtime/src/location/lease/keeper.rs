//! The writer of a host: one loop that renews the lease, and with it writes what of the host's records has changed.
//!
//! There is no other writer under the host's token, so renewals and records never meet in a conflict. It has a thread
//! of its own, so that handlers which block the runtime do not cost the host its lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;

use crate::location::boot::{BootClock, BootTime, nanos};
use crate::location::name::OwnerId;
use crate::location::{
    Batch, Condition, Key, LocationStore, LocationTiming, Mutation, Revision, StoreError, Stored, Written,
};

use crate::location::losses::{Counting, Losses};

use super::LeaseValue;
use super::own::{Found, OwnLease};
use super::records::{Change, Foreign, Record, Records, Wanted, batched, keys_of};
use super::taken::{Reading, Returned, Taken};

/// What a lease is taken with.
#[derive(Clone, Debug)]
pub(crate) struct LeaseConfig {
    pub(crate) store: Arc<dyn LocationStore>,
    pub(crate) timing: LocationTiming,
    pub(crate) clock: BootClock,
    pub(crate) owner: OwnerId,
    /// Where the loop runs if the clock is not the system's.
    pub(crate) runtime: Handle,
}

/// Why a host has no lease.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LeaseError {
    #[error("another host holds {0} in the Location Store")]
    Taken(Key),
    #[error("the Location Store cannot be used: {0}")]
    Store(StoreError),
    #[error("the thread for renewing the lease cannot be started: {0}")]
    Thread(String),
}

/// How the lease of a host stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeasePhase {
    /// It is renewed.
    Held,
    /// The last attempts to renew it failed.
    Failing,
    /// Another run has this host's identity: nothing is written any more.
    Fenced,
    /// It was given back, or left to expire.
    Released,
}

/// Whether, and how, the loop is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopping {
    No,
    /// What this host has in the store is removed.
    Release,
    /// It is left there.
    #[cfg(any(test, feature = "testing"))]
    Die,
}

#[derive(Clone, Copy, Debug)]
struct Progress {
    phase: LeasePhase,
    /// Since when it cannot be renewed, while it cannot.
    failing_since: Option<Instant>,
    generation: Option<Revision>,
    revision: Option<Revision>,
    /// The version of [`Wanted`] that is in the store.
    stored: u64,
}

/// The lease of this host, and its records. Dropping it gives them back, as far as that can be done without waiting.
#[derive(Debug)]
pub(crate) struct HostLease(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: LeaseConfig,
    /// Owned work may start until then, in nanoseconds of the boot clock; 0 where it may not.
    admission: AtomicU64,
    wanted: Mutex<Wanted>,
    stopping: watch::Sender<Stopping>,
    wake: Notify,
    progress: Arc<watch::Sender<Progress>>,
    taken: Taken,
    losses: Arc<Losses>,
}

impl HostLease {
    /// Takes a lease for a new owner and writes `claims` with it, all or nothing. Where the store fails, it is tried again
    /// for one renew timeout.
    ///
    /// # Errors
    /// Where a claim is held by another host, or the store cannot be used. Nothing is left then, unless the store lost an
    /// answer: such a lease expires.
    pub(crate) async fn take(mut config: LeaseConfig, claims: Vec<Record>) -> Result<Self, LeaseError> {
        let (store, losses) = Counting::new(config.store, config.clock.clone());
        config.store = Arc::new(store);
        let wanted = Wanted {
            version: 1,
            records: claims.into_iter().map(|record| (record.key.clone(), record)).collect(),
        };
        let own_thread = config.clock.is_system();
        let runtime = config.runtime.clone();
        let shared = Arc::new(Shared {
            config,
            admission: AtomicU64::new(0),
            wanted: Mutex::new(wanted),
            stopping: watch::Sender::new(Stopping::No),
            wake: Notify::new(),
            progress: Arc::new(watch::Sender::new(Progress {
                phase: LeasePhase::Failing,
                failing_since: Some(Instant::now()),
                generation: None,
                revision: None,
                stored: 0,
            })),
            taken: Taken::default(),
            losses,
        });
        // From here on, a future that is dropped gives the lease back.
        let lease = Self(shared.clone());
        let (tell, taken) = oneshot::channel();
        let looping = Keeper::new(shared).run(tell);
        if own_thread {
            on_a_thread(looping).map_err(|error| LeaseError::Thread(error.to_string()))?;
        } else {
            runtime.spawn(looping);
        }
        match taken.await {
            Ok(Ok(())) => Ok(lease),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(LeaseError::Thread("it ended".into())),
        }
    }

    /// Whether owned work may start now: the lease is held, and its deadline has not passed on the boot clock. What comes
    /// back from a stop or a suspension learns here that it was away.
    pub(crate) fn admits(&self) -> bool {
        self.admits_at().is_some()
    }

    /// The same, with the moment on the boot clock at which it may.
    #[inline]
    pub(crate) fn admits_at(&self) -> Option<u64> {
        self.admits_by(self.0.config.clock.now())
    }

    /// The same of a moment that is known.
    #[inline]
    pub(crate) fn admits_by(&self, now: BootTime) -> Option<u64> {
        let now = nanos(now);
        (now < self.0.admission.load(Ordering::Acquire)).then_some(now)
    }

    pub(crate) fn phase(&self) -> LeasePhase {
        self.0.progress.borrow().phase
    }

    /// Since when it cannot be renewed, while it cannot.
    pub(crate) fn failing_since(&self) -> Option<Instant> {
        self.0.progress.borrow().failing_since
    }

    /// Of the lease's first write.
    pub(crate) fn generation(&self) -> Option<Revision> {
        self.0.progress.borrow().generation
    }

    /// How often the store was found to have lost records, by whoever used it.
    pub(crate) fn losses(&self) -> u64 {
        self.0.losses.count()
    }

    /// Whether the store was found to have lost records so lately that somebody may still have what they told of, and does
    /// not know of the loss: for as long as a lease lives without being renewed, and the margin.
    pub(crate) fn has_lost_lately(&self) -> bool {
        let timing = &self.0.config.timing;
        let since = self.0.losses.since(self.0.config.clock.now());
        since.is_some_and(|since| since < timing.lease_ttl.saturating_add(timing.fencing_margin))
    }

    pub(crate) fn config(&self) -> &LeaseConfig {
        &self.0.config
    }

    /// What a write under this host's token must be conditioned on; `None` while it must not write.
    pub(crate) fn condition(&self) -> Option<Condition> {
        let revision = self.0.progress.borrow().revision?;
        self.admits()
            .then(|| Condition::Version(self.0.config.owner.lease_key(), revision))
    }

    /// Tells `hook` what was taken from this host, each time before owned work may start again. It must not wait, and may be
    /// told the same twice. Only the first hook counts.
    pub(crate) fn when_taken(&self, hook: impl Fn(Returned) + Send + Sync + 'static) {
        self.0.taken.tell(hook);
    }

    /// Waits until its revision is another than `from`, or it has ended, at most for `within`.
    pub(crate) async fn moved(&self, from: Option<Revision>, within: Duration) {
        let mut progress = self.0.progress.subscribe();
        let over = |phase| matches!(phase, LeasePhase::Fenced | LeasePhase::Released);
        let moved = progress.wait_for(|progress| progress.revision != from || over(progress.phase));
        let _ = tokio::time::timeout(within, moved).await;
    }

    /// Wants `record` in the store, instead of what is there under its key. Does not wait.
    pub(crate) fn put(&self, record: Record) {
        let mut wanted = self.0.wanted.lock();
        wanted.version += 1;
        wanted.records.insert(record.key.clone(), record);
        drop(wanted);
        self.0.wake.notify_one();
    }

    /// Waits until all that was wanted so far is in the store, at most for `within`. Returns whether it is.
    pub(crate) async fn stored(&self, within: Duration) -> bool {
        let version = self.0.wanted.lock().version;
        let mut progress = self.0.progress.subscribe();
        let stored = progress.wait_for(|progress| progress.stored >= version);
        matches!(tokio::time::timeout(within, stored).await, Ok(Ok(_)))
    }

    /// Removes the records and the lease, at most for `within`. What cannot be removed is left to expire.
    pub(crate) async fn release(&self, within: Duration) {
        self.stop();
        let mut progress = self.0.progress.subscribe();
        let released = progress.wait_for(|progress| progress.phase == LeasePhase::Released);
        if tokio::time::timeout(within, released).await.is_err() {
            tracing::warn!(target: "zlink::runtime", "the Location Store did not answer in time; the lease is left to expire");
        }
    }

    /// Gives everything back, and does not wait for it.
    pub(crate) fn stop(&self) {
        self.end(Stopping::Release);
    }

    /// Writes nothing more, as the end of the process would.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn kill(&self) {
        self.end(Stopping::Die);
    }

    fn end(&self, how: Stopping) {
        self.0.stopping.send_if_modified(|stopping| {
            let goes_on = *stopping == Stopping::No;
            if goes_on {
                *stopping = how;
            }
            goes_on
        });
    }
}

impl Drop for HostLease {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Runs `future` to its end on a thread that does nothing else.
fn on_a_thread(future: impl Future<Output = ()> + Send + 'static) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let thread = std::thread::Builder::new().name("zlink-lease".into());
    thread.spawn(move || runtime.block_on(future)).map(drop)
}

/// A write whose outcome is not known yet, or that is about to be begun.
struct Attempt {
    batch: Batch,
    nonce: u64,
    /// When it was first begun.
    begun: Option<BootTime>,
    changes: Vec<Change>,
    /// The version of [`Wanted`] that the store has once it is applied, if it gets there.
    reaches: Option<u64>,
    /// It takes everything away.
    removes: bool,
    /// One of its writes may be applied yet: only it can be repeated.
    unknown: bool,
}

/// How a write ended.
enum Ended {
    Applied,
    /// What is there has been read.
    Conflict,
    Failed(StoreError),
}

struct Keeper {
    shared: Arc<Shared>,
    own: OwnLease,
    records: Records,
    /// The nonces of this run, from that of no write to that of the last one.
    nonces: (u64, u64),
    pending: Option<Attempt>,
    /// Of what must be known before owned work starts again.
    reading: Reading,
    /// When the next write is due.
    due: Instant,
    failing_since: Option<Instant>,
}

impl Keeper {
    fn new(shared: Arc<Shared>) -> Self {
        // Counted from a place of its own, so that a run with the same identity is told from this one.
        let nonce = uuid::Uuid::new_v4().as_u64_pair().1;
        Self {
            own: OwnLease::new(shared.config.timing),
            shared,
            records: Records::default(),
            nonces: (nonce, nonce),
            pending: None,
            reading: Reading::default(),
            due: Instant::now(),
            failing_since: Some(Instant::now()),
        }
    }

    async fn run(mut self, taken: oneshot::Sender<Result<(), LeaseError>>) {
        let result = self.take().await;
        let failed = result.is_err();
        // Nobody listens where the start was dropped; then the stop is asked for already.
        let _ = taken.send(result);
        let mut stopping = self.shared.stopping.subscribe();
        while !failed && *stopping.borrow_and_update() == Stopping::No {
            tokio::select! {
                biased;
                changed = stopping.changed() => if changed.is_err() { break },
                () = tokio::time::sleep_until(self.due), if !self.own.is_fenced() => self.step().await,
                () = self.shared.wake.notified(), if !self.own.is_fenced() => self.step().await,
            }
        }
        let releases = matches!(*stopping.borrow(), Stopping::No | Stopping::Release);
        if releases && !self.own.is_fenced() && self.own.revision().is_some() {
            let limit = self.timing().renew_timeout;
            let _ = tokio::time::timeout(limit, self.release()).await;
        }
    }

    fn timing(&self) -> LocationTiming {
        self.shared.config.timing
    }

    /// How long to wait after a failure: short, as it may be what keeps the host from its work.
    fn pause(&self) -> Duration {
        (self.timing().renew_interval / 10).min(self.timing().poll_interval / 2)
    }

    /// The first write.
    async fn take(&mut self) -> Result<(), LeaseError> {
        let deadline = Instant::now() + self.timing().renew_timeout;
        loop {
            let attempt = match self.pending.take() {
                Some(attempt) => attempt,
                None => self.attempt(true).map_err(LeaseError::Store)?,
            };
            match self.write(attempt).await {
                Ok(Ended::Applied) => break,
                Ok(Ended::Conflict) if Instant::now() >= deadline => {
                    let why = "it reports conflicts, and nothing that explains them".to_owned();
                    return Err(LeaseError::Store(StoreError::Unavailable(why)));
                }
                Ok(Ended::Failed(error)) if Instant::now() >= deadline => return Err(LeaseError::Store(error)),
                Ok(Ended::Conflict | Ended::Failed(_)) => tokio::time::sleep(self.pause()).await,
                Err(Foreign(key)) => return Err(LeaseError::Taken(key)),
            }
        }
        self.failing_since = None;
        // A new owner owns nothing that could have been taken meanwhile.
        self.own.confirmed(self.shared.config.clock.now());
        self.tell();
        Ok(())
    }

    /// One write, and what has to be read for it.
    async fn step(&mut self) {
        let begun = Instant::now();
        self.own.look(self.shared.config.clock.now());
        self.tell();
        let was_closed = self.own.is_closed();
        let attempt = match self.pending.take() {
            Some(attempt) => Ok(attempt),
            // While the host is fenced off, nothing is written but the lease.
            None => self.attempt(!was_closed),
        };
        let ended = match attempt {
            Ok(attempt) => self.write(attempt).await,
            Err(error) => Ok(Ended::Failed(error)),
        };
        let ended = match ended {
            Ok(Ended::Applied) if self.own.is_closed() => self.confirm(begun).await,
            other => other,
        };
        let timing = self.timing();
        match ended {
            Ok(Ended::Applied) => {
                self.healthy(true, "");
                let dirty = !self.records.changes(&self.shared.wanted.lock()).0.is_empty();
                self.due = if dirty || self.own.is_closed() {
                    begun
                } else {
                    begun + timing.renew_interval
                };
            }
            Ok(Ended::Conflict) => self.due = Instant::now() + self.pause() / 10,
            Ok(Ended::Failed(error)) => {
                self.healthy(false, &error.to_string());
                self.due = Instant::now() + self.pause();
            }
            Err(Foreign(key)) => {
                self.own.fence();
                tracing::error!(
                    target: "zlink::runtime", event_id = "zlink.runtime.location.fenced", %key,
                    "another run has this host's identity; this one must be started anew"
                );
            }
        }
        self.tell();
    }

    /// Reads what this host keeps in the store, and what was taken from it. Only then may owned work start again. Once the
    /// next renewal is due, the rest waits for that.
    async fn confirm(&mut self, begun: Instant) -> Result<Ended, Foreign> {
        if !self.reading.records {
            let own = self.records.keys();
            let last = self.shared.config.owner.writer_key();
            let keys: Vec<_> = own.iter().cloned().chain([last]).collect();
            let mut found = match self.read(&keys).await {
                Ok(found) => found,
                Err(error) => return Ok(Ended::Failed(error)),
            };
            let last = found.pop().flatten();
            self.records.found(own.into_iter().zip(found), &[])?;
            self.reading.read(last);
        }
        let hook = self.shared.taken.hook();
        while let (false, Some(hook), Some(lease)) = (self.reading.ended, &hook, self.own.revision()) {
            let config = &self.shared.config;
            let limit = config.timing.renew_timeout;
            match self.reading.step(&*config.store, config.owner, lease, limit).await {
                Ok(returned) => returned.into_iter().for_each(|returned| hook(returned)),
                Err(error) => return Ok(Ended::Failed(error)),
            }
            if begun.elapsed() >= self.timing().renew_interval {
                break;
            }
        }
        if self.reading.ended || hook.is_none() {
            self.own.confirmed(self.shared.config.clock.now());
        }
        if !self.own.is_closed() {
            self.reading = Reading::default();
        }
        Ok(Ended::Applied)
    }

    fn next_nonce(&mut self) -> u64 {
        let (_, last) = &mut self.nonces;
        *last = last.wrapping_add(1);
        *last
    }

    /// Whether a write of this run had that nonce.
    fn is_own(&self, nonce: u64) -> bool {
        let (before, last) = self.nonces;
        (1..=last.wrapping_sub(before)).contains(&nonce.wrapping_sub(before))
    }

    /// The next write: the lease, and with it the records that have changed.
    fn attempt(&mut self, with_records: bool) -> Result<Attempt, StoreError> {
        let nonce = self.next_nonce();
        let (mut changes, mut reaches) = (Vec::new(), None);
        if with_records {
            let wanted = self.shared.wanted.lock();
            let (some, all) = self.records.changes(&wanted);
            (changes, reaches) = (some, all.then_some(wanted.version));
        }
        let (mut conditions, mut mutations) = batched(&changes, nonce);
        let key = self.shared.config.owner.lease_key();
        let value = LeaseValue {
            generation: self.own.generation(),
            ttl: self.timing().lease_ttl,
            nonce,
        };
        let value = value
            .to_bytes()
            .map_err(|error| StoreError::argument("lease", error.to_string()))?;
        conditions.push(self.own.condition(key.clone()));
        mutations.push(Mutation::put(key, value));
        Ok(Attempt {
            batch: Batch::new(conditions, mutations)?.urgent(),
            nonce,
            begun: None,
            changes,
            reaches,
            removes: false,
            unknown: false,
        })
    }

    /// Writes, and finds out what came of it. Where that cannot be found out now, the attempt is pending.
    async fn write(&mut self, mut attempt: Attempt) -> Result<Ended, Foreign> {
        let config = self.shared.config.clone();
        let begun = config.clock.now();
        let first = *attempt.begun.get_or_insert(begun);
        let writing = config.store.write(&attempt.batch);
        match tokio::time::timeout(config.timing.renew_timeout, writing).await {
            Ok(Ok(Written::Applied { revision, .. })) => {
                self.own.applied(begun, revision, config.clock.now());
                self.settle(attempt, revision);
                Ok(Ended::Applied)
            }
            Ok(Ok(Written::Conflict)) => {
                let lease = config.owner.lease_key();
                let mut keys = vec![lease];
                keys.extend(keys_of(&attempt.changes));
                let mut found = match self.read(&keys).await {
                    Ok(found) => keys.into_iter().zip(found),
                    Err(error) => {
                        self.pending = Some(attempt);
                        return Ok(Ended::Failed(error));
                    }
                };
                let lease = found.next().and_then(|(_, stored)| stored);
                let lease = self.judge(lease.as_ref(), attempt.nonce);
                self.own.conflicted(first, lease, config.clock.now());
                if let Found::Ours(revision) = lease {
                    self.settle(attempt, revision);
                    return Ok(Ended::Applied);
                }
                if lease == Found::Foreign {
                    return Err(Foreign(config.owner.lease_key()));
                }
                // Others may have taken what was not taken when it was read.
                self.reading = Reading::default();
                self.records.found(found, &attempt.changes)?;
                Ok(Ended::Conflict)
            }
            Ok(Err(error)) => {
                attempt.unknown |= error.may_be_applied();
                self.pending = attempt.unknown.then_some(attempt);
                Ok(Ended::Failed(error))
            }
            Err(_) => {
                attempt.unknown = true;
                self.pending = Some(attempt);
                Ok(Ended::Failed(StoreError::Unknown(
                    "a write took longer than the renew timeout".into(),
                )))
            }
        }
    }

    fn settle(&mut self, attempt: Attempt, revision: Revision) {
        for change in attempt.changes {
            self.records.applied(change, revision);
        }
        if let Some(version) = attempt.reaches {
            self.shared
                .progress
                .send_modify(|progress| progress.stored = progress.stored.max(version));
        }
    }

    /// Whose lease is there.
    fn judge(&self, stored: Option<&Stored>, nonce: u64) -> Found {
        let Some(stored) = stored else { return Found::Missing };
        match LeaseValue::from_bytes(&stored.value) {
            Ok(value) => {
                let generation = value.generation.unwrap_or(stored.revision);
                let same_write = value.nonce == nonce;
                // Its first write names no generation, and may land again after this host was counted out.
                let is_first = value.generation.is_none() && self.is_own(value.nonce);
                let same_run = self
                    .own
                    .generation()
                    .map_or(same_write, |own| own == generation || is_first);
                match (same_run, same_write) {
                    (true, true) => Found::Ours(stored.revision),
                    (true, false) => Found::Touched(stored.revision),
                    (false, _) => Found::Foreign,
                }
            }
            Err(error) => {
                tracing::error!(target: "zlink::runtime", %error, "this host's lease was overwritten");
                Found::Foreign
            }
        }
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Stored>>, StoreError> {
        let mut found = Vec::with_capacity(keys.len());
        for keys in keys.chunks(crate::limit::READ_KEYS) {
            let reading = self.shared.config.store.read_many(keys);
            match tokio::time::timeout(self.timing().renew_timeout, reading).await {
                Ok(read) => found.extend(read?.found),
                Err(_) => {
                    return Err(StoreError::DeadlineExceeded(
                        "a read took longer than the renew timeout".into(),
                    ));
                }
            }
        }
        Ok(found)
    }

    /// Removes everything, the lease last of all in the same batch. Ends when it is done, or cannot be.
    async fn release(&mut self) {
        loop {
            let attempt = match self.pending.take() {
                Some(attempt) => Ok(attempt),
                None => self.removal(),
            };
            let Ok(attempt) = attempt else { return };
            let removes = attempt.removes;
            match self.write(attempt).await {
                Ok(Ended::Applied) if removes => return,
                Ok(Ended::Conflict) if self.own.revision().is_none() => return,
                Ok(Ended::Applied | Ended::Conflict) => {}
                Ok(Ended::Failed(_)) => tokio::time::sleep(self.pause()).await,
                Err(Foreign(_)) => return,
            }
        }
    }

    fn removal(&mut self) -> Result<Attempt, StoreError> {
        let nonce = self.next_nonce();
        let key = self.shared.config.owner.lease_key();
        let mut mutations = self.records.removal(nonce);
        mutations.push(Mutation::Delete(key.clone()));
        Ok(Attempt {
            batch: Batch::new([self.own.condition(key)], mutations)?.urgent(),
            nonce,
            begun: None,
            changes: Vec::new(),
            reaches: None,
            removes: true,
            unknown: false,
        })
    }

    fn healthy(&mut self, healthy: bool, why: &str) {
        if self.failing_since.is_some() == healthy {
            self.failing_since = (!healthy).then(Instant::now);
            if healthy {
                tracing::info!(
                    target: "zlink::runtime", event_id = "zlink.runtime.location.lease_changed", state = "held",
                    "the lease is renewed"
                );
            } else {
                tracing::warn!(
                    target: "zlink::runtime", event_id = "zlink.runtime.location.lease_changed", state = "failing", why,
                    "the lease cannot be renewed"
                );
            }
        }
    }

    /// Tells the handles how things stand.
    fn tell(&mut self) {
        self.shared
            .admission
            .store(nanos(self.own.admission()), Ordering::Release);
        let phase = match () {
            () if self.own.is_fenced() => LeasePhase::Fenced,
            () if self.failing_since.is_some() => LeasePhase::Failing,
            () => LeasePhase::Held,
        };
        let (generation, revision) = (self.own.generation(), self.own.revision());
        self.shared.progress.send_modify(|progress| {
            progress.phase = phase;
            progress.failing_since = self.failing_since;
            (progress.generation, progress.revision) = (generation, revision);
        });
    }
}

impl Drop for Keeper {
    /// However it ends: nobody renews the lease from here on.
    fn drop(&mut self) {
        self.shared.admission.store(0, Ordering::Release);
        self.shared
            .progress
            .send_modify(|progress| progress.phase = LeasePhase::Released);
    }
}
