//! The way down: refuse new work, finish what was accepted, close links, stop. One order, one deadline.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::OnceCell;

use crate::channel::HostState;
use crate::clock;

use super::{Host, Inner};

/// How long links may send what they hold once all work has ended.
const LINGER: Duration = Duration::from_secs(2);

/// A shutdown that had to end accepted work by force.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the host was stopped by force after {waited:?}: {jobs} accepted jobs had not ended, their callers were told")]
pub struct ShutdownError {
    jobs: usize,
    waited: Duration,
}

impl ShutdownError {
    /// Jobs that had been accepted and did not end.
    #[must_use]
    pub const fn unfinished_jobs(&self) -> usize {
        self.jobs
    }
}

/// Makes a stop happen once, however many ask for it.
#[derive(Debug, Default)]
pub(super) struct Stopping {
    result: OnceCell<Result<(), ShutdownError>>,
    abandoned: AtomicBool,
}

impl Host {
    /// Stops the host: new work is refused, peers are told, accepted work is finished within the drain timeout, then
    /// all links close. Calls under way from outside handlers end with their replies or with `ShuttingDown`.
    ///
    /// Asking again waits for the same end. Dropping the future does not undo a stop that has begun.
    ///
    /// # Errors
    /// Where accepted work had to be ended by force at the deadline. The host is stopped all the same.
    pub async fn shutdown(&self) -> Result<(), ShutdownError> {
        self.0.stopping.result.get_or_init(|| self.0.stop()).await.clone()
    }
}

impl Inner {
    async fn stop(&self) -> Result<(), ShutdownError> {
        let begin = clock::now();
        let deadline = begin + self.drain_timeout;
        tracing::info!(target: "zlink::runtime", event_id = "zlink.runtime.host.termination_changed", state = "draining");
        self.outbound.set_state(HostState::Draining);
        let links = || {
            let channels = self.channels.iter().flat_map(super::Channel::links);
            self.meshes.iter().map(|mesh| &mesh.links).chain(channels)
        };
        links().for_each(crate::mesh::Links::drain);
        self.queues.iter().for_each(|(queue, closed)| queue.close(*closed));
        let mut unfinished = 0;
        for (queue, closed) in &self.queues {
            unfinished += queue.drain(*closed, deadline).await;
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
        if unfinished == 0 {
            Ok(())
        } else {
            Err(ShutdownError {
                jobs: unfinished,
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
        self.queues.iter().for_each(|(queue, closed)| queue.stop(*closed));
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
