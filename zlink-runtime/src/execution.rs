//! Ordered execution: owners with their queues and gates, the ready set, and the workers that run turns.
//!
//! It must not know what an owner is (a channel, a Spot), what a job says, or how it came here.

#![cfg_attr(
    any(zlink_loom, zlink_shuttle),
    allow(dead_code, unused_imports, reason = "a model takes its own part")
)]

use std::fmt;
use std::task::{Context, Poll};

use tokio::time::Instant;

use crate::error::ErrorKind;

#[cfg_attr(
    not(test),
    expect(dead_code, reason = "Actors register Joins, and relocation its end")
)]
mod defer;
mod gate;
mod lane;
mod mode;
mod owner;
mod place;
mod pool;
mod queue;
mod ready;
mod run;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "relocation moves queues, and Actors between gates")
)]
mod seal;
mod slot;
mod timer;
mod turn;
mod watchdog;
mod worker;

pub(crate) use mode::{Callback, Mode, Offers, Unit};
pub(crate) use owner::{Halted, Owner, OwnerStatus, Rejected};
pub use pool::WorkCall;
pub(crate) use pool::{CpuPool, IoPool};
pub use timer::{Overrun, Tick};
pub(crate) use timer::{Pulse, Timers};
#[cfg(feature = "bench")]
pub(crate) use turn::HandlerOf;
pub(crate) use turn::{Ended, Resting, Scope, StateCell, StateTurn, States, may_wait_for, within};
pub use turn::{YieldFor, YieldTurn, Yields};
pub(crate) use worker::{Workers, WorkersHandle};

/// What an owner's queue holds: work that was accepted and has not started.
pub(crate) trait Job: Send + 'static {
    /// What it becomes.
    type Turn: Turn;

    /// Decodes it and chooses its handler, under the gate and with its permit still in use. `None` where it ends
    /// here: malformed, or no handler. It runs nothing of the handler itself. Should it panic, all that is left of
    /// the job is its drop. `now` is at most as old as a worker's look at the clock, some jobs or a millisecond.
    fn start(self, now: Instant) -> Option<Self::Turn>;

    /// Ends it without a start: its owner was stopped.
    fn abandon(self);

    /// How much it holds while its owner moves, in bytes.
    fn size(&self) -> usize {
        0
    }

    /// What people call it. Asked for only where a watchdog looks.
    fn name(&self) -> String {
        String::new()
    }
}

/// A job that has started. It is polled, and dropped, by one thread at a time, and never under a lock.
pub(crate) trait Turn: Send + Unpin + 'static {
    /// Runs it on, to its end or to where it waits.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// Whether its last poll, which was pending, gave its gate back: it goes on once it is woken and has it again.
    fn has_yielded(&self) -> bool {
        false
    }

    /// Ends it before its end. What is left of its handler is dropped here.
    fn abandon(self, why: Abandoned);

    /// What people call it. Asked for only where a watchdog looks.
    fn name(&self) -> String {
        String::new()
    }
}

/// Why a turn did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Abandoned {
    /// Its poll panicked, with this text. It is not polled again.
    Panicked(String),
    /// Its owner was stopped.
    Stopped,
}

impl<J: Job> Owner<J> {
    /// An owner of which up to `turns` turns (at least one) may be under way at once.
    pub(crate) fn new(workers: &Workers, turns: usize) -> Self {
        Self::with_ready(workers.ready(), turns)
    }

    /// Closes it, waits until what was admitted has ended, and stops what has not by `deadline`. Returns how many jobs
    /// and turns that were. Dropping the future leaves it closed and goes no further.
    pub(crate) async fn drain(&self, kind: ErrorKind, deadline: Instant) -> usize {
        self.close(kind);
        if tokio::time::timeout_at(deadline, self.drained()).await.is_ok() {
            return 0;
        }
        let OwnerStatus { queued, active, .. } = self.status();
        self.stop(kind);
        queued + active
    }
}

/// Calls `work`, so that a panic in what users wrote ends there; the error is its text.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        // The payload's own drop is a user's too, and what that panics with can panic in its turn, without an end.
        if let Err(another) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(panic))) {
            std::mem::forget(another);
        }
        text.unwrap_or_else(|| "a panic without a text".to_owned())
    })
}

/// Drops what is the user's, of whatever `of` names: what that panics with ends here, and is told.
pub(crate) fn let_go<T>(of: Option<&dyn fmt::Display>, what: T) {
    finish(of, || drop(what));
}

/// Does what nobody waits for and what drops things of the user's, of whatever `of` names: a panic ends here, and is told.
pub(crate) fn finish(of: Option<&dyn fmt::Display>, work: impl FnOnce()) {
    if let Err(panic) = guarded(work) {
        tracing::error!(
            target: "zlink::runtime", event_id = "zlink.runtime.host.drop_failed", of = of.map(tracing::field::display), panic,
            "what a user wrote panicked as it was dropped"
        );
    }
}

#[cfg(test)]
#[cfg(zlink_loom)]
mod model;
#[cfg(test)]
#[cfg(zlink_shuttle)]
mod shuttle_model;
#[cfg(test)]
#[cfg(not(any(zlink_loom, zlink_shuttle)))]
mod tests;
