//! How Spots of this host end: closed, evicted, stopped with their host. It must not know how one is made.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use crate::clock;
use crate::error::ErrorKind;
use crate::execution::{Callback, Scope, within};
use crate::limit::{CLOSING_TIME, EVICTION_SCAN};
use crate::location::{Removal, SpotRecord};

use super::manage::contained;
use super::object::{Object, Phase};
use super::spots::{Inner, Spots};
use super::value::CloseReason;

/// How long a host that stops waits for the store to remove the record of a Spot.
const STOPPING_REMOVAL: Duration = Duration::from_secs(2);

/// The longest between two rounds of looks for idle ones.
const EVICTION_PAUSE: Duration = Duration::from_secs(60);

/// How a Spot's close went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    Well,
    /// So many jobs and turns had not ended in time.
    Late(usize),
    /// `on_closing` failed.
    Failed,
}

impl Closed {
    fn failed(self, object: &Object, error: &dyn std::fmt::Display) -> Self {
        tracing::warn!(target: "zlink::spot", event_id = "zlink.spot.closing_failed", spot = %object.id, %error, "on_closing failed");
        match self {
            Closed::Late(_) => self,
            Closed::Well | Closed::Failed => Closed::Failed,
        }
    }
}

/// What did not end well as a host stopped.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ends {
    /// Jobs.
    unfinished: usize,
    /// Spots and Actors.
    failed: usize,
}

impl Ends {
    fn count(&mut self, closed: Result<Closed, JoinError>) {
        match closed {
            Ok(Closed::Well) => {}
            Ok(Closed::Late(jobs)) => self.unfinished += jobs,
            Ok(Closed::Failed) => self.failed += 1,
            Err(error) => {
                tracing::error!(target: "zlink::spot", event_id = "zlink.spot.closing_failed", %error, "a close did not come to its end");
                self.failed += 1;
            }
        }
    }
}

impl Inner {
    /// Ends a Spot that takes nothing new any more: what it has accepted, `on_closing`, its record. Returns whether all
    /// that ended well, and in time.
    pub(super) async fn finish_close(
        self: Arc<Self>,
        object: Arc<Object>,
        reason: CloseReason,
        deadline: Option<Instant>,
    ) -> Closed {
        let deadline = deadline.unwrap_or_else(|| clock::now() + CLOSING_TIME);
        let closed = match object.begins_to_end() {
            Ok(()) => {
                let closed = self.end_work(&object, reason, deadline).await;
                let closed = object.has_closed(closed);
                if object.phase() == Phase::Ended && reason != CloseReason::HostShutdown {
                    // Another host has it, or this one has stopped meanwhile, and does the rest: that is who says `HostShutdown`.
                    return closed;
                }
                closed
            }
            Err(mut over) => match tokio::time::timeout_at(deadline, over.wait_for(Option::is_some)).await {
                // It stands in the object, and is told.
                Ok(told) => told.ok().and_then(|told| *told).unwrap_or(Closed::Failed),
                Err(_) => {
                    let closed = match object.unfinished() {
                        0 => Closed::Well.failed(&object, &"it took too long"),
                        jobs => Closed::Late(jobs),
                    };
                    let closed = object.has_closed(closed);
                    // Nothing of it goes on, whoever closes it.
                    object.stop(ErrorKind::ShuttingDown);
                    closed
                }
            },
        };
        if let Some(record) = object.own_record() {
            let removing = self.remove_record(record);
            if reason == CloseReason::HostShutdown {
                // What stays in the store that does not answer has no owner once the lease has run out.
                let _ = tokio::time::timeout(STOPPING_REMOVAL, removing).await;
            } else {
                removing.await;
            }
            self.is_misled(&object.id, u64::MAX);
        }
        self.remove(&object);
        // `on_closing` has taken it, where that was begun.
        object.forget();
        closed
    }

    /// What it has accepted, and `on_closing`.
    async fn end_work(&self, object: &Arc<Object>, reason: CloseReason, deadline: Instant) -> Closed {
        let mut closed = Closed::Well;
        if tokio::time::timeout_at(deadline, object.drained()).await.is_err() {
            closed = Closed::Late(object.stop_rest());
        }
        if object.own_record().is_some() {
            let closing = contained(object.factory.life().close(object.clone(), reason, deadline));
            let closing = within(Scope::new(object.lane(), object.offers(Callback::Lifecycle)), closing);
            match tokio::time::timeout_at(deadline, self.while_owned(object, closing)).await {
                // Where it has ended, nothing of it runs here any more: it was taken, or whoever stopped it says how it went.
                Ok(Some(Ok(Ok(()))) | None) => {}
                Ok(Some(Ok(Err(error)))) => closed = closed.failed(object, &error),
                Ok(Some(Err(panic))) => closed = closed.failed(object, &panic),
                Err(_) => closed = closed.failed(object, &"it took too long"),
            }
        }
        closed
    }

    /// Ends what is sent on to another host, at the latest at `deadline`.
    async fn finish_forwarding(self: Arc<Self>, object: Arc<Object>, deadline: Instant) -> Closed {
        object.lane().close(ErrorKind::ShuttingDown);
        let drained = tokio::time::timeout_at(deadline, object.lane().drained()).await;
        // Its owner may not be reached.
        let closed = drained.map_or_else(|_| Closed::Late(object.stop_rest()), |()| Closed::Well);
        self.remove(&object);
        closed
    }

    async fn remove_record(&self, record: SpotRecord) {
        let removed = match self.authority.delete(&record).await {
            // The inbox was cleared meanwhile, or not.
            Ok(Removal::Other(other)) if other.generation == record.generation => self.authority.delete(&other).await,
            removed => removed,
        };
        if removed == Ok(Removal::Removed) {
            self.unpointed(record.blob);
        } else if let Err(error) = removed {
            tracing::warn!(target: "zlink::spot", spot = %record.id, %error, "the record of a closed Spot stays");
        }
    }

    /// Polls `work` only while this host may run its Spots; `None` as soon as this one has ended: another host has it, or it
    /// was stopped.
    async fn while_owned<T>(&self, object: &Object, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        poll_fn(|cx| {
            if object.has_ended(cx) {
                return Poll::Ready(None);
            }
            if !self.fence.may_run(cx) {
                return Poll::Pending;
            }
            work.as_mut().poll(cx).map(Some)
        })
        .await
    }

    /// Closes Instance Spots that have had nothing to do for long, a few at a time, for ever.
    pub(super) async fn evict(spots: Weak<Self>) {
        let mut left = 0;
        loop {
            let pause = match spots.upgrade() {
                None => return,
                Some(spots) => spots.evict_some(&mut left),
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Looks at the next of those that are `left` of this round. However many there are, it costs the same.
    fn evict_some(self: &Arc<Self>, left: &mut usize) -> Duration {
        let next: Vec<_> = {
            let mut all = self.evictable.lock();
            if *left == 0 {
                *left = all.len();
            }
            let next = EVICTION_SCAN.min(*left).min(all.len());
            *left -= next;
            all.drain(..next).collect()
        };
        let now = clock::now();
        let is_open = self.fence.is_open();
        let mut kept = Vec::with_capacity(next.len());
        for weak in next {
            let Some((object, limit)) = weak.upgrade().and_then(|object| {
                let limit = object.home.idle_timeout?;
                Some((object, limit))
            }) else {
                continue;
            };
            let idle = object
                .idle_since()
                .is_some_and(|since| now.saturating_duration_since(since) > limit);
            if idle && is_open {
                object.begin_close(CloseReason::IdleEvicted);
            }
            if object.phase() < Phase::Closing {
                kept.push(weak);
            }
        }
        self.evictable.lock().extend(kept);
        if *left > 0 {
            return Duration::from_millis(1);
        }
        let shortest = self.homes.iter().filter_map(|home| home.idle_timeout).min();
        // Those that are gone are kept until they are looked at.
        shortest.map_or(EVICTION_PAUSE, |shortest| {
            (shortest / 4).clamp(Duration::from_millis(10), EVICTION_PAUSE)
        })
    }
}

impl Spots {
    /// Takes nothing new from here on.
    pub(crate) fn seal(&self) {
        for object in self.all() {
            object.seal(ErrorKind::ShuttingDown);
        }
    }

    /// Ends all Spots in order, at the latest at `deadline`. Returns how many jobs had not ended, and how many
    /// `on_closing` failed.
    pub(crate) async fn close(&self, deadline: Instant) -> (usize, usize) {
        self.seal();
        let mut ends = Ends::default();
        // A Spot that has members ends after them.
        let (entries, others): (Vec<_>, Vec<_>) = self.all().into_iter().partition(Object::is_entry);
        let (mut actors, mut spots) = (JoinSet::new(), JoinSet::new());
        for object in others {
            let to = if object.spot().is_some() {
                &mut actors
            } else {
                &mut spots
            };
            self.finish(object, deadline, to);
        }
        while let Some(closed) = actors.join_next().await {
            ends.count(closed);
        }
        for entry in entries {
            self.finish(entry, deadline, &mut spots);
        }
        while let Some(closed) = spots.join_next().await {
            ends.count(closed);
        }
        self.0.end_tasks();
        (ends.unfinished, ends.failed)
    }

    fn finish(&self, object: Arc<Object>, deadline: Instant, to: &mut JoinSet<Closed>) {
        let spots = self.0.clone();
        match object.phase() {
            Phase::Closing => to.spawn_on(
                spots.finish_close(object, CloseReason::HostShutdown, Some(deadline)),
                &self.0.runtime,
            ),
            Phase::Forwarding => to.spawn_on(spots.finish_forwarding(object, deadline), &self.0.runtime),
            Phase::Creating | Phase::Ready | Phase::Ended => return,
        };
    }

    fn all(&self) -> Vec<Arc<Object>> {
        let mut all: Vec<_> = self.0.table.lock().iter().cloned().collect();
        all.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// REQ: SP-036
    #[tokio::test]
    async fn a_close_that_comes_to_no_end_is_none_that_went_well() {
        let mut all = JoinSet::new();
        for closed in [Closed::Well, Closed::Late(3), Closed::Failed] {
            all.spawn(async move { closed });
        }
        all.spawn(async { panic!("as told") });
        all.spawn(std::future::pending()).abort();
        let mut ends = Ends::default();
        while let Some(closed) = all.join_next().await {
            ends.count(closed);
        }
        let told = Ends {
            unfinished: 3,
            failed: 3,
        };
        assert_eq!(ends, told);
    }
}
