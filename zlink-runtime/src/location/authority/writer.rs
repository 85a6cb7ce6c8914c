//! The one writer of authority of a host: it makes batches of the changes that wait, and finds out what came of each.
//!
//! One batch is under way at a time. Each is conditioned on the host's lease and on the key that names its last batch; so
//! an attempt whose answer was lost cannot land once a later batch has, and what is read after a conflict is final. It must
//! not know why a change is made.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;

use super::capacity::{Counters, Named, Tally};
use super::change::{Change, Judged, Keys, Stamp, Token};
use super::reader::read;
use super::record::{Ended, Nonce, SpotRecord};
use super::{AuthorityError, Committed, Reservation};
use crate::limit::{AUTHORITY_BATCH, AUTHORITY_BATCH_BYTES, AUTHORITY_CHANGES};
use crate::location::{
    Batch, Condition, HostLease, Key, LeasePhase, LocationStore, Mutation, Revision, StoreError, Stored, Written,
    within,
};
use crate::random::Random;

/// How a change ended that met no error.
#[derive(Debug)]
pub(super) enum Done {
    Reserved(Reservation),
    Committed(Committed),
    /// The record is this now.
    Written(Box<SpotRecord>),
    Removed,
    /// Nothing was changed: the record is another, or none.
    Found(Option<Box<SpotRecord>>),
    /// Nothing was changed: the same was reserved before.
    Issued(Box<SpotRecord>),
    /// Nothing was changed: the operation has ended before.
    Over(Box<Ended>),
    NoCapacity,
    /// Nothing was changed: the owner lives.
    Alive,
}

pub(super) type Answer = Result<Done, AuthorityError>;

/// A change that waits, and who waits for it.
struct Order {
    change: Change,
    keys: Keys,
    answer: Option<oneshot::Sender<Answer>>,
    /// Its room in the queue.
    _room: Option<OwnedSemaphorePermit>,
}

impl Order {
    /// A change that nobody waits for.
    fn unattended(change: Change, keys: Keys) -> Self {
        Self {
            change,
            keys,
            answer: None,
            _room: None,
        }
    }

    /// Whether its caller has gone.
    fn is_abandoned(&self) -> bool {
        self.answer.as_ref().is_some_and(oneshot::Sender::is_closed)
    }

    /// Whether it only takes away: that is done sooner or later, whoever waits.
    fn takes_away(&self) -> bool {
        matches!(
            self.change,
            Change::Abort(..) | Change::Delete(_) | Change::Acknowledge(..)
        )
    }

    fn end(self, answer: Answer) {
        end(self.answer, answer);
    }
}

fn end(caller: Option<oneshot::Sender<Answer>>, answer: Answer) {
    if let Some(caller) = caller {
        // Whoever left does not want to know; a reservation, and what is Ready, give themselves back where they are dropped.
        let _ = caller.send(answer);
    }
}

/// What handles and the writer share.
pub(super) struct Shared {
    pub(super) lease: Arc<HostLease>,
    random: Random,
    queue: Mutex<Queue>,
    wake: Notify,
    room: Arc<Semaphore>,
    /// Whether it may have written a batch.
    has_written: AtomicBool,
}

#[derive(Default)]
struct Queue {
    orders: Vec<Order>,
    ended: bool,
}

impl Shared {
    pub(super) fn new(lease: Arc<HostLease>, random: Random) -> Self {
        Self {
            lease,
            random,
            queue: Mutex::default(),
            wake: Notify::new(),
            room: Arc::new(Semaphore::new(AUTHORITY_CHANGES)),
            has_written: AtomicBool::new(false),
        }
    }

    /// Whether all that this host had was taken from it, and what it had left was removed, by what names its last batch.
    pub(super) fn is_swept(&self, last: Option<&Stored>) -> bool {
        self.has_written.load(Ordering::Acquire) && last.is_none_or(|last| *last.value == *SWEPT)
    }

    /// Hands a change in, and waits until it has ended. Whoever does not wait leaves a change behind that is made, is not,
    /// or, where it was a reservation, is taken back.
    pub(super) async fn submit(&self, change: Change) -> Answer {
        let Ok(room) = self.room.clone().acquire_owned().await else {
            return Err(AuthorityError::Closed);
        };
        let (answer, answered) = oneshot::channel();
        self.push(Order {
            keys: change.keys(self.lease.config().owner),
            change,
            answer: Some(answer),
            _room: Some(room),
        });
        answered.await.unwrap_or(Err(AuthorityError::Closed))
    }

    /// Hands a change in that nobody waits for.
    pub(super) fn leave(&self, change: Change) {
        let keys = change.keys(self.lease.config().owner);
        self.push(Order::unattended(change, keys));
    }

    fn push(&self, order: Order) {
        let mut queue = self.queue.lock();
        // After the end nobody takes orders: the lease goes, and proves that what is left has no owner.
        if !queue.ended {
            queue.orders.push(order);
            drop(queue);
            self.wake.notify_one();
        }
    }

    /// No more orders come; those that wait are tried once more.
    pub(super) fn end(&self) {
        self.queue.lock().ended = true;
        self.wake.notify_one();
    }

    fn ended(&self) -> bool {
        self.queue.lock().ended
    }

    fn store(&self) -> &dyn LocationStore {
        &*self.lease.config().store
    }

    /// A new one, for the values of one batch.
    pub(super) fn nonce(&self) -> Nonce {
        self.random.bits()
    }

    pub(super) fn timeout(&self) -> Duration {
        self.lease.config().timing.renew_timeout
    }
}

/// Changes that are made together, and the batch that makes them.
struct Attempt {
    batch: Batch,
    stamp: Stamp,
    lease: Revision,
    orders: Vec<Order>,
    tally: Tally,
}

/// What came of an attempt.
enum Settled {
    Applied(Revision),
    /// It was not, and never will be; this was found under the keys that it depends on.
    Conflict(BTreeMap<Key, Stored>),
    /// The same, for want of an answer.
    Failed(StoreError),
    /// This host has no more say in it.
    Over,
}

pub(super) struct Writer {
    shared: Arc<Shared>,
    waiting: VecDeque<Order>,
    counters: Counters,
    named: Named,
    /// The revision of the key that names the last batch.
    last: Option<Revision>,
    /// How many changes the next batch makes at most: fewer where conflicts are many.
    size: usize,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            waiting: VecDeque::new(),
            counters: Counters::default(),
            named: Named::default(),
            last: None,
            size: AUTHORITY_BATCH,
        }
    }

    /// Works until the end is asked for and nothing waits, or can be done.
    pub(super) async fn run(mut self) {
        loop {
            let ended = {
                let mut queue = self.shared.queue.lock();
                self.waiting.extend(queue.orders.drain(..));
                queue.ended
            };
            if self.waiting.is_empty() {
                if ended {
                    return;
                }
                self.shared.wake.notified().await;
                continue;
            }
            let progressed = self.round().await;
            if ended && !progressed {
                break;
            }
        }
        self.waiting
            .drain(..)
            .for_each(|order| order.end(Err(AuthorityError::Closed)));
    }

    /// One batch. Returns whether anything came of it.
    async fn round(&mut self) -> bool {
        self.forsake();
        let Some((token, lease)) = self.token() else {
            return self.closed().await;
        };
        let attempt = match self.attempt(token, lease) {
            Some(attempt) => attempt,
            None => return true,
        };
        let settled = self.settle(&attempt).await;
        match settled {
            Settled::Applied(revision) => {
                self.size = (self.size * 2).min(AUTHORITY_BATCH);
                self.applied(attempt, revision);
                true
            }
            Settled::Conflict(found) => {
                self.conflict(attempt, &found).await;
                true
            }
            Settled::Failed(error) => {
                self.failed(attempt.orders, &AuthorityError::Store(error));
                tokio::time::sleep(self.pause()).await;
                false
            }
            Settled::Over => {
                attempt
                    .orders
                    .into_iter()
                    .for_each(|order| order.end(Err(AuthorityError::Closed)));
                false
            }
        }
    }

    /// What nobody waits for any more, and has not been begun, is not done, or undone.
    fn forsake(&mut self) {
        let forsaken = |order: &Order| order.is_abandoned() && !order.takes_away();
        if !self.waiting.iter().any(forsaken) {
            return;
        }
        for mut order in std::mem::take(&mut self.waiting) {
            if forsaken(&order) {
                match order.change {
                    Change::Commit(record, _) => order = Order::unattended(Change::Abort(record, None), order.keys),
                    _ => continue,
                }
            }
            self.waiting.push_back(order);
        }
    }

    /// What this host writes under, while it may.
    fn token(&self) -> Option<(Token, Revision)> {
        let lease = &self.shared.lease;
        match lease.condition()? {
            Condition::Version(_, revision) => Some((
                Token {
                    owner: lease.config().owner,
                    lease: lease.generation()?,
                },
                revision,
            )),
            Condition::Missing(_) => None,
        }
    }

    /// The lease does not admit owned work. Nothing is begun; what only takes away, or has a Spot waiting for it, stays until
    /// it does again.
    async fn closed(&mut self) -> bool {
        if self.is_over() {
            self.waiting
                .drain(..)
                .for_each(|order| order.end(Err(AuthorityError::Closed)));
            return false;
        }
        let orders = std::mem::take(&mut self.waiting).into();
        self.failed(orders, &AuthorityError::Closed);
        tokio::time::sleep(self.pause()).await;
        false
    }

    fn is_over(&self) -> bool {
        matches!(self.shared.lease.phase(), LeasePhase::Fenced | LeasePhase::Released)
    }

    /// Short, as it may be what keeps callers waiting.
    fn pause(&self) -> Duration {
        (self.shared.lease.config().timing.renew_interval / 50).min(Duration::from_millis(100))
    }

    /// Nothing came of these: tells those who can begin again, and keeps the others.
    fn failed(&mut self, orders: Vec<Order>, error: &AuthorityError) {
        let mut kept = Vec::new();
        for order in orders {
            if order.takes_away() || matches!(order.change, Change::Commit(..)) {
                kept.push(order);
            } else {
                order.end(Err(error.clone()));
            }
        }
        self.again(kept);
    }

    /// Puts orders back to where they were.
    fn again(&mut self, orders: Vec<Order>) {
        for order in orders.into_iter().rev() {
            self.waiting.push_front(order);
        }
    }

    /// The next batch, of what waits longest; `None` where nothing is left to be written.
    fn attempt(&mut self, token: Token, lease: Revision) -> Option<Attempt> {
        let stamp = Stamp {
            token,
            nonce: self.shared.nonce(),
            now: Instant::now(),
        };
        let most = self.waiting.len().min(self.size);
        let (mut conditions, mut mutations) = self.mark(stamp, lease);
        let (mut orders, mut later) = (Vec::with_capacity(most), Vec::new());
        let (mut keys, mut tally, mut bytes) = (FxHashSet::default(), Tally::default(), 0);
        while let Some(order) = self.waiting.pop_front() {
            let more = bytes + order.change.bytes();
            let full = orders.len() >= self.size || (more > AUTHORITY_BATCH_BYTES && !orders.is_empty());
            if full || !order.keys.are_apart(&keys) {
                // Whoever comes after it for the same keys waits behind it.
                keys.extend(order.keys.iter().cloned());
                later.push(order);
                if full {
                    break;
                }
                continue;
            }
            let counted = match order.change.counted(&mut self.named) {
                Ok(counted) => counted,
                Err(error) => {
                    order.end(Err(StoreError::from(error).into()));
                    continue;
                }
            };
            let mark = (conditions.len(), mutations.len());
            if let Err(error) = order
                .change
                .batched(stamp, &order.keys, &mut conditions, &mut mutations)
            {
                conditions.truncate(mark.0);
                mutations.truncate(mark.1);
                order.end(Err(StoreError::from(error).into()));
                continue;
            }
            if let Some((counters, step)) = counted
                && !tally.take(&self.counters, counters, step)
            {
                conditions.truncate(mark.0);
                mutations.truncate(mark.1);
                order.end(Ok(Done::NoCapacity));
                continue;
            }
            keys.extend(order.keys.iter().cloned());
            bytes = more;
            orders.push(order);
        }
        self.again(later);
        if orders.is_empty() {
            return None;
        }
        let batch = tally
            .batched(&self.counters, stamp.nonce, &mut conditions, &mut mutations)
            .and_then(|()| Batch::new(conditions, mutations));
        match batch {
            Ok(batch) => Some(Attempt {
                batch,
                stamp,
                lease,
                orders,
                tally,
            }),
            Err(error) => {
                for order in orders {
                    order.end(Err(StoreError::from(error.clone()).into()));
                }
                None
            }
        }
    }

    /// What every batch begins with: this host lives, nothing of its own was written since, and this is its name.
    fn mark(&self, stamp: Stamp, lease: Revision) -> (Vec<Condition>, Vec<Mutation>) {
        let Token { owner, .. } = stamp.token;
        let last = match self.last {
            Some(revision) => Condition::Version(owner.writer_key(), revision),
            None => Condition::Missing(owner.writer_key()),
        };
        (
            vec![Condition::Version(owner.lease_key(), lease), last],
            vec![Mutation::put(owner.writer_key(), stamp.nonce.to_le_bytes().to_vec())],
        )
    }

    /// Writes, and repeats the same until it is known what came of it.
    async fn settle(&mut self, attempt: &Attempt) -> Settled {
        self.shared.has_written.store(true, Ordering::Release);
        let mut unknown = false;
        loop {
            let writing = self.shared.store().write(&attempt.batch);
            match tokio::time::timeout(self.shared.timeout(), writing).await {
                Ok(Ok(Written::Applied { revision, .. })) => return Settled::Applied(revision),
                Ok(Ok(Written::Conflict)) => break,
                Ok(Err(error)) if !unknown && !error.may_be_applied() => return Settled::Failed(error),
                Ok(Err(StoreError::Unknown(_))) | Err(_) => unknown = true,
                Ok(Err(_)) => {}
            }
            if self.gives_up() {
                return Settled::Over;
            }
            tokio::time::sleep(self.pause()).await;
        }
        let keys = self.dependencies(attempt);
        let found = loop {
            match read(&self.shared.lease, &keys).await {
                Ok(found) => break keys.into_iter().zip(found),
                Err(_) if self.gives_up() => return Settled::Over,
                Err(_) => tokio::time::sleep(self.pause()).await,
            }
        };
        let found: BTreeMap<_, _> = found.filter_map(|(key, stored)| Some((key, stored?))).collect();
        let named = found.get(&attempt.stamp.token.owner.writer_key());
        match named {
            Some(last) if is_named(last, attempt.stamp.nonce) => Settled::Applied(last.revision),
            last => {
                self.last = last.map(|last| last.revision);
                if unknown {
                    self.exclude(attempt.stamp.nonce, found).await
                } else {
                    Settled::Conflict(found)
                }
            }
        }
    }

    /// An earlier write of an attempt in conflict may land yet: writes another batch, after which it cannot.
    async fn exclude(&mut self, nonce: Nonce, found: BTreeMap<Key, Stored>) -> Settled {
        let mut tried = Vec::new();
        loop {
            if self.gives_up() {
                return Settled::Over;
            }
            if let Some((token, lease)) = self.token() {
                let stamp = Stamp {
                    token,
                    nonce: self.shared.nonce(),
                    now: Instant::now(),
                };
                tried.push(stamp.nonce);
                let (conditions, mutations) = self.mark(stamp, lease);
                match Batch::new(conditions, mutations) {
                    Ok(batch) => {
                        let written = within(self.shared.timeout(), self.shared.store().write(&batch)).await;
                        if let Ok(Written::Applied { revision, .. }) = written {
                            self.last = Some(revision);
                            return Settled::Conflict(found);
                        }
                    }
                    Err(error) => return Settled::Failed(error.into()),
                }
            }
            let key = self.shared.lease.config().owner.writer_key();
            if let Ok(read) = read(&self.shared.lease, std::slice::from_ref(&key)).await {
                let last = read.into_iter().next().flatten();
                self.last = last.as_ref().map(|last| last.revision);
                if let Some(last) = last {
                    if is_named(&last, nonce) {
                        return Settled::Applied(last.revision);
                    }
                    if tried.iter().any(|tried| is_named(&last, *tried)) {
                        return Settled::Conflict(found);
                    }
                }
            }
            tokio::time::sleep(self.pause()).await;
        }
    }

    /// Nothing that is found out matters any more.
    fn gives_up(&self) -> bool {
        self.is_over() || self.shared.ended()
    }

    /// All keys whose values can be why a batch is in conflict.
    fn dependencies(&self, attempt: &Attempt) -> Vec<Key> {
        let token = attempt.stamp.token;
        let mut keys = BTreeSet::from([token.owner.writer_key(), token.owner.lease_key()]);
        keys.extend(attempt.tally.keys().cloned());
        keys.extend(attempt.orders.iter().flat_map(|order| order.keys.iter().cloned()));
        keys.into_iter().collect()
    }

    fn applied(&mut self, attempt: Attempt, revision: Revision) {
        self.last = Some(revision);
        self.counters.applied(attempt.tally, revision);
        let token = attempt.stamp.token;
        for order in attempt.orders {
            let Order { change, answer, .. } = order;
            let (reserves, commits) = (
                matches!(change, Change::Reserve(_)),
                matches!(change, Change::Commit(..)),
            );
            let done = match change.applied(token, revision) {
                Some(record) if reserves => Done::Reserved(Reservation::new(self.shared.clone(), record)),
                Some(record) if commits => Done::Committed(Committed::new(self.shared.clone(), record)),
                Some(record) => Done::Written(record),
                None => Done::Removed,
            };
            end(answer, Ok(done));
        }
    }

    /// Tells those whose change can never be made; the others are tried again.
    async fn conflict(&mut self, attempt: Attempt, found: &BTreeMap<Key, Stored>) {
        let token = attempt.stamp.token;
        for key in attempt.tally.keys() {
            self.counters.found(key.clone(), found.get(key));
        }
        let mut again = Vec::new();
        let tried = attempt.orders.len();
        for order in attempt.orders {
            let stored: Vec<_> = order.keys.iter().map(|key| found.get(key).cloned()).collect();
            match order.change.judge(token, &stored) {
                Judged::Stands => again.push(order),
                Judged::Found(record) => order.end(Ok(Done::Found(record.map(Box::new)))),
                Judged::Issued(record) => order.end(Ok(Done::Issued(Box::new(record)))),
                Judged::Over(ended) => order.end(Ok(Done::Over(ended))),
                Judged::Differs => order.end(Err(AuthorityError::Conflict)),
                Judged::Alive => order.end(Ok(Done::Alive)),
                Judged::Unreadable(error) => order.end(Err(AuthorityError::Unreadable(error.to_string()))),
            }
        }
        let nothing_learned = again.len() == tried;
        self.again(again);
        let lease = found.get(&token.owner.lease_key()).map(|lease| lease.revision);
        if lease != Some(attempt.lease) {
            // The lease was renewed. What the keeper has not heard yet, this must not take for granted.
            self.shared.lease.moved(Some(attempt.lease), self.pause()).await;
        } else if nothing_learned {
            tokio::time::sleep(self.pause() / 10).await;
        } else {
            self.size = (self.size / 2).max(1);
        }
    }
}

/// Stands where the last batch of a dead owner was named, once it owns nothing and what it has left is being removed.
pub(super) const SWEPT: &[u8] = b"";

/// Whether the last batch was the one with that nonce.
fn is_named(last: &Stored, nonce: Nonce) -> bool {
    *last.value == nonce.to_le_bytes()
}
