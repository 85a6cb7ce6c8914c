//! The way down: refuse new work, finish what was accepted, close links, stop. One order, one deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::channel::HostState;
use crate::clock;
use crate::fanout::Fanout;

use super::{Host, Inner};

/// How long links may send what they hold once all work has ended.
const LINGER: Duration = Duration::from_secs(2);

/// A shutdown that had to end accepted work by force.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the host was stopped by force after {waited:?}: {jobs} accepted jobs had not ended, their callers were told; \
     {failed} Spots did not close well"
)]
pub struct ShutdownError {
    jobs: usize,
    failed: usize,
    waited: Duration,
}

crate::error::shown!(ShutdownError);

impl ShutdownError {
    /// Jobs that had been accepted and did not end.
    #[must_use]
    pub const fn unfinished_jobs(&self) -> usize {
        self.jobs
    }

    /// Spots whose `on_closing` failed, or was not done in time.
    #[must_use]
    pub const fn failed_spots(&self) -> usize {
        self.failed
    }
}

type Stopped = Result<(), ShutdownError>;

/// Makes a stop happen once, however many ask for it.
#[derive(Debug, Default)]
pub(super) struct Stopping {
    /// Where its end is told, once it has begun.
    ended: Mutex<Option<Ending>>,
    abandoned: AtomicBool,
}

/// A stop that has begun.
#[derive(Clone, Debug)]
struct Ending {
    deadline: Instant,
    told: watch::Receiver<Option<Stopped>>,
}

impl Stopping {
    /// When accepted work is ended by force, and how the stop ended: each once that is known.
    pub(super) fn status(&self) -> (Option<Instant>, Option<Stopped>) {
        let ended = self.ended.lock();
        let ended = ended.as_ref();
        (
            ended.map(|ending| ending.deadline),
            ended.and_then(|ending| ending.told.borrow().clone()),
        )
    }
}

impl Host {
    /// Stops the host: new work is refused, peers are told, accepted work is finished within the drain timeout, then
    /// all links close. Calls under way from outside handlers end with their replies or with `ShuttingDown`.
    ///
    /// What peers have sent and this host has not taken when the stop begins is not admitted any more: requests are
    /// answered that they did not run, one-way messages are recorded and counted.
    ///
    /// The stop goes on by itself, on the runtime that the host was started on: dropping the future, or the host, changes
    /// nothing about it. Asking again waits for the same end.
    ///
    /// # Errors
    /// Where accepted work had to be ended by force at the deadline, or with its tokio runtime. The host is stopped all
    /// the same.
    pub async fn shutdown(&self) -> Result<(), ShutdownError> {
        let mut ended = self.0.begin_stop();
        let told = ended.wait_for(Option::is_some).await.map(|ended| ended.clone());
        match told {
            Ok(ended) => ended.unwrap_or(Ok(())),
            // The runtime of the host is gone, and took the stop along.
            Err(_) => self.0.stopped_with_its_runtime(),
        }
    }

    /// Stops at once, however many handles there are, as the end of its process would.
    #[cfg(feature = "testing")]
    pub(crate) fn kill(&self) {
        if let Some(location) = &self.0.location {
            location.kill();
        }
        self.0.abandon();
    }
}

impl Inner {
    fn begin_stop(self: &Arc<Self>) -> watch::Receiver<Option<Stopped>> {
        let mut ended = self.stopping.ended.lock();
        let begin = || {
            let (tell, told) = watch::channel(None);
            let (host, begin) = (self.clone(), clock::now());
            let deadline = begin + self.drain_timeout;
            self.runtime.spawn(async move {
                let stopped = host.stop(begin, deadline).await;
                tell.send_replace(Some(stopped));
            });
            Ending { deadline, told }
        };
        ended.get_or_insert_with(begin).told.clone()
    }

    fn stopped_with_its_runtime(&self) -> Stopped {
        let jobs = self.queues.iter().map(|(queue, _)| {
            let status = queue.status();
            status.queued + status.active
        });
        let jobs = jobs.sum();
        self.abandon();
        let waited = Duration::ZERO;
        if jobs == 0 {
            Ok(())
        } else {
            Err(ShutdownError {
                jobs,
                failed: 0,
                waited,
            })
        }
    }

    async fn stop(&self, begin: Instant, deadline: Instant) -> Stopped {
        tracing::info!(target: "zlink::runtime", event_id = "zlink.runtime.host.termination_changed", state = "draining");
        self.outbound.set_state(HostState::Draining);
        let links = || {
            let channels = self.channels.iter().flat_map(super::Channel::links);
            self.meshes.iter().map(|mesh| &mesh.links).chain(channels)
        };
        links().for_each(crate::mesh::Links::drain);
        self.queues.iter().for_each(|(queue, closed)| queue.close(*closed));
        self.fanouts.iter().for_each(Fanout::seal);
        if let Some(spots) = &self.spots {
            spots.seal();
        }
        let (mut unfinished, mut failed) = (0, 0);
        for (queue, closed) in &self.queues {
            unfinished += queue.drain(*closed, deadline).await;
        }
        for fanout in &self.fanouts {
            unfinished += fanout.drain(deadline).await;
        }
        if let Some(spots) = &self.spots {
            let (jobs, spots) = spots.close(deadline).await;
            (unfinished, failed) = (unfinished + jobs, spots);
        }
        // Calls that were started before may still get their replies.
        let _ = tokio::time::timeout_at(deadline, self.outbound.pending().all_ended()).await;
        let linger = LINGER.min(self.drain_timeout);
        if let Some(location) = &self.location {
            location.release(linger).await;
        }
        self.outbound.set_state(HostState::Stopped);
        let closing = links().map(|links| links.close(linger));
        futures_join(closing).await;
        futures_join(self.fanouts.iter().map(Fanout::close)).await;
        self.outbound.pending().shut_down();
        self.permits.close();
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
        let workers = self.workers.lock().take();
        if let Some(workers) = workers {
            // A handler that blocks its thread must not keep the host from stopping.
            let _ = tokio::time::timeout(linger, workers.join()).await;
        }
        self.stopping.abandoned.store(true, Ordering::Release);
        tracing::info!(
            target: "zlink::runtime", event_id = "zlink.runtime.host.termination_changed", state = "stopped", unfinished
        );
        if unfinished + failed == 0 {
            Ok(())
        } else {
            Err(ShutdownError {
                jobs: unfinished,
                failed,
                waited: begin.elapsed(),
            })
        }
    }

    /// Stops at once and waits for nothing: the last handle is gone.
    pub(super) fn abandon(&self) {
        if self.stopping.abandoned.swap(true, Ordering::AcqRel) {
            return;
        }
        self.outbound.set_state(HostState::Stopped);
        if let Some(location) = &self.location {
            location.stop();
        }
        if let Some(spots) = &self.spots {
            spots.abandon();
        }
        self.queues.iter().for_each(|(queue, closed)| queue.stop(*closed));
        self.fanouts.iter().for_each(Fanout::abandon);
        for links in self
            .meshes
            .iter()
            .map(|mesh| &mesh.links)
            .chain(self.channels.iter().flat_map(super::Channel::links))
        {
            links.abandon();
        }
        self.outbound.pending().shut_down();
        drop(self.workers.lock().take());
        self.permits.close();
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

/// Runs all of them side by side, in this task.
async fn futures_join(all: impl Iterator<Item = impl Future<Output = ()>>) {
    let mut all: Vec<_> = all.map(Box::pin).collect();
    std::future::poll_fn(|cx| {
        all.retain_mut(|one| one.as_mut().poll(cx).is_pending());
        if all.is_empty() {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}
