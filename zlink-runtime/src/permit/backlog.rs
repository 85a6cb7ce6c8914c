//! An object that begins with a backlog keeps one permit and hands it on from job to job, so that what is sent to it
//! directly cannot take every permit and then wait behind a head that finds none.
//!
//! It must not know what the backlog holds, or where it came from.

use std::fmt;
use std::task::{Context, Poll, ready};

use super::{Closed, Grant, HostPermits, Permit, Source};

/// An object's right to keep a permit for its restored backlog. At most a quarter of the permits are kept so at a time, one
/// at least; others wait for their turn and hold nothing meanwhile. Drop it with the last job of the backlog.
pub struct Backlog {
    keepers: Option<Source>,
    place: Option<Grant>,
    source: Source,
}

impl HostPermits {
    /// For one object that opens dispatch behind its restored backlog.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        Backlog {
            keepers: self.0.keepers().map(Self::source),
            place: None,
            source: self.source(),
        }
    }
}

impl Backlog {
    /// The permit for the first job, to be taken before dispatch is open; from then on [`Permit::hand_on`] brings it to
    /// the next one. While pending, the object keeps its place in the queue.
    ///
    /// # Errors
    /// Where the permits are closed.
    pub fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<Result<Permit, Closed>> {
        if let (None, Some(keepers)) = (&self.place, &mut self.keepers) {
            self.place = Some(ready!(keepers.poll_acquire(cx, 1))?);
        }
        let granted = ready!(self.source.poll_acquire(cx, 1));
        Poll::Ready(granted.and_then(|mut grant| grant.take().ok_or(Closed)))
    }
}

#[cfg(test)]
impl Backlog {
    /// Whether it may keep a permit, and what it asks next.
    pub(super) fn asks(&self) -> (bool, &Source) {
        let waits_to_keep = self.keepers.as_ref().filter(|_| self.place.is_none());
        (waits_to_keep.is_none(), waits_to_keep.unwrap_or(&self.source))
    }
}

impl fmt::Debug for Backlog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backlog")
            .field("may_keep", &self.place.is_some())
            .finish()
    }
}
