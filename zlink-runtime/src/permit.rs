//! The host's right to hold jobs that have not started: one counter, one limit, whatever asks.
//!
//! It must not know what a job is, or which socket a source reads.

use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::sync::Arc;

mod backlog;
mod core;
mod limits;
mod receivers;
mod word;

use self::core::{Core, Granted, Ticket, Wanted};
pub use backlog::Backlog;
pub use limits::{MAX_PERMITS, PermitLimits};
pub(crate) use receivers::{Receiver, Receivers};

/// The permits of one host. Clones are the same permits.
#[derive(Clone)]
pub struct HostPermits(Arc<Core>);

impl HostPermits {
    /// A limit of `max` permits (1 to [`MAX_PERMITS`], the nearest of them otherwise) that pauses at 80 % and
    /// resumes at 60 %.
    #[must_use]
    pub fn new(max: u32) -> Self {
        Self::with_limits(PermitLimits::of(max))
    }

    /// Permits within `limits`.
    #[must_use]
    pub fn with_limits(limits: PermitLimits) -> Self {
        let clock = || crate::clock::now().into_std();
        let keepers = Core::new(PermitLimits::of(limits.max() / 4), None, clock);
        let keepers = Some(Self(Arc::new(keepers)));
        Self(Arc::new(Core::new(limits, keepers, clock)))
    }

    /// A new source: one peer connection, one local originating owner, …
    #[must_use]
    pub fn source(&self) -> Source {
        Source {
            permits: self.clone(),
            ticket: None,
            for_turn: false,
        }
    }

    /// A new source of sends that a turn awaits while it holds its gate, to objects of its own host: it may have of the
    /// [reserve](PermitLimits::with_reserve), before all others.
    #[must_use]
    pub fn turn_source(&self) -> Source {
        let mut source = self.source();
        source.for_turn = true;
        source
    }

    /// Permits in use: reserved and queued.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        self.0.word().in_use()
    }

    /// Whether peers shall hold requests back, as far as is known without a lock.
    pub(crate) fn is_paused(&self) -> bool {
        self.0.word().paused()
    }

    /// The receive flow that follows from the permits in use.
    #[must_use]
    pub fn flow(&self) -> Flow {
        self.0.flow()
    }

    /// Follows the receive flow from here on.
    #[must_use]
    pub fn watch(&self) -> FlowWatch {
        let (key, seen) = self.0.watch();
        FlowWatch {
            permits: self.clone(),
            key,
            seen,
        }
    }

    /// Ends every wait, now and from here on, with [`Closed`]. Permits that were granted stay valid until they are
    /// returned; figures stay readable.
    pub fn close(&self) {
        self.0.close();
    }

    /// All figures at one moment.
    #[must_use]
    pub fn status(&self) -> PermitStatus {
        self.0.status()
    }
}

impl fmt::Debug for HostPermits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostPermits").field(&self.0.word()).finish()
    }
}

/// The absolute receive flow of a host, numbered so that a late older value is known as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Rises by one with every change; 0 is the state at the start.
    pub version: u64,
    /// Whether peers shall hold requests back.
    pub paused: bool,
}

/// What the host's status shows of its permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermitStatus {
    /// The limit and the two counts at which the flow changes.
    pub limits: PermitLimits,
    /// Granted, for a record that is not yet a job.
    pub reserved: u32,
    /// Attached to a job that has not started.
    pub queued: u32,
    /// How many of both are of the reserve.
    pub lent: u32,
    /// Sources that wait.
    pub waiting: usize,
    /// The receive flow. Its version is the number of changes so far.
    pub flow: Flow,
    /// How long the flow was `paused`, all pauses together, the present one included.
    pub paused_time: Duration,
    /// How long all permits but those of the reserve have been in use without a job starting; `None` while one is free.
    pub stalled: Option<Duration>,
}

impl PermitStatus {
    /// Permits in use: reserved and queued.
    #[must_use]
    pub const fn in_use(&self) -> u32 {
        self.reserved + self.queued
    }
}

/// The host's permits are closed: it is shutting down.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host takes no more jobs")]
pub struct Closed;

crate::error::shown!(Closed);

/// What waits for permits; at most one waiter at a time. Dropping it gives up its place in the queue.
pub struct Source {
    permits: HostPermits,
    ticket: Option<Ticket>,
    for_turn: bool,
}

impl Source {
    /// Takes 1 to `want` permits (at least one, if 0), or waits for at least one behind the sources that wait
    /// longer. While pending, the source keeps its place, whoever polls next; only the last waker is woken.
    ///
    /// # Errors
    /// Where the permits are closed.
    pub fn poll_acquire(&mut self, cx: &mut Context<'_>, want: u32) -> Poll<Result<Grant, Closed>> {
        let wanted = self.wanted(want);
        let granted = self.permits.0.poll_acquire(&mut self.ticket, wanted, cx.waker());
        granted.map_ok(|granted| self.grant(granted))
    }

    fn wanted(&self, want: u32) -> Wanted {
        Wanted {
            count: want.max(1),
            for_turn: self.for_turn,
        }
    }

    fn grant(&self, Granted { count, lent }: Granted) -> Grant {
        Grant {
            permits: Some(self.permits.clone()),
            left: count,
            lent,
        }
    }

    /// The same as a future. Dropping it before it is ready gives up the place in the queue.
    ///
    /// # Errors
    /// Where the permits are closed.
    pub async fn acquire(&mut self, want: u32) -> Result<Grant, Closed> {
        struct Waiting<'a>(&'a mut Source);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.cancel();
            }
        }
        let waiting = Waiting(self);
        poll_fn(|cx| waiting.0.poll_acquire(cx, want)).await
    }

    /// Takes 1 to `want` permits if any is free and no source waits.
    #[must_use]
    pub fn try_acquire(&self, want: u32) -> Option<Grant> {
        let granted = self.permits.0.try_acquire(self.wanted(want))?;
        Some(self.grant(granted))
    }

    /// One permit at once, or none: the same without a grant around it.
    pub(crate) fn try_one(&self) -> Option<Permit> {
        let granted = self.permits.0.try_acquire(self.wanted(1))?;
        Some(Permit {
            permits: self.permits.clone(),
            queued: false,
            lent: granted.lent,
        })
    }

    /// The same for what goes into an owner's queue next: it counts as queued already.
    pub(crate) fn try_queued(&self) -> Option<Permit> {
        let granted = self.permits.0.try_queued(self.for_turn)?;
        Some(Permit {
            permits: self.permits.clone(),
            queued: true,
            lent: granted.lent,
        })
    }

    /// Serves each of `targets` with a permit of its own, and asks for the next one only when the last is a job: what
    /// waits for many at once holds none, and two that do so cannot wait for each other. What came with a permit, as a
    /// record does, begins with that one; where there is no target it returns. Dropping the future serves nobody further.
    ///
    /// # Errors
    /// Where the permits are closed. The targets before that were served.
    pub async fn serve_each<T>(
        &mut self,
        mut first: Option<Permit>,
        targets: impl IntoIterator<Item = T>,
        mut serve: impl FnMut(T, Permit),
    ) -> Result<(), Closed> {
        for target in targets {
            let permit = match first.take() {
                Some(permit) => permit,
                None => self.acquire(1).await?.take().ok_or(Closed)?,
            };
            serve(target, permit);
        }
        Ok(())
    }

    /// Gives up the place in the queue, if there is one, and returns what was granted to it unseen.
    pub fn cancel(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.permits.0.cancel(ticket);
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("waits", &self.ticket.is_some()).finish()
    }
}

/// Permits that were granted together; what is not taken returns at once when it is dropped.
pub struct Grant {
    /// Goes with the last of them.
    permits: Option<HostPermits>,
    left: u32,
    lent: bool,
}

impl Grant {
    /// One of them, if any is left.
    pub fn take(&mut self) -> Option<Permit> {
        self.left = self.left.checked_sub(1)?;
        let permits = match self.left {
            0 => self.permits.take()?,
            _ => self.permits.clone()?,
        };
        Some(Permit {
            permits,
            queued: false,
            lent: self.lent,
        })
    }

    /// How many are left.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.left
    }

    /// Whether none is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.left == 0
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if let Some(permits) = &self.permits
            && self.left > 0
        {
            let (count, lent) = (self.left, self.lent);
            permits.0.give_back(Granted { count, lent }, 0);
        }
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant").field("left", &self.left).finish()
    }
}

/// The right to hold one job that has not started. Dropping it returns it, once.
pub struct Permit {
    permits: HostPermits,
    queued: bool,
    lent: bool,
}

impl Permit {
    /// Counts it as queued from here on: its job stands in an owner's queue.
    pub(crate) fn queue(&mut self) {
        if !self.queued {
            self.queued = true;
            self.permits.0.queue();
        }
    }

    /// Returns it because its job starts.
    pub(crate) fn start(self) {
        self.permits.0.started();
    }

    /// Gives it to the next job of the same restored backlog, because its own one starts. Only where the owner was opened
    /// with a [`Backlog`], for as long as that lives.
    #[must_use = "dropping it returns the permit"]
    pub fn hand_on(self) -> Self {
        self.permits.0.passed_on();
        self
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let (count, lent) = (1, self.lent);
        self.permits
            .0
            .give_back(Granted { count, lent }, u32::from(self.queued));
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("queued", &self.queued).finish()
    }
}

/// Follows the receive flow of a host.
pub struct FlowWatch {
    permits: HostPermits,
    key: usize,
    seen: u64,
}

impl FlowWatch {
    /// Waits until the flow differs from what this watch last saw, and returns it as it is then; `None` once the
    /// permits are closed and nothing is unseen. Changes in between are not told one by one.
    pub async fn changed(&mut self) -> Option<Flow> {
        poll_fn(|cx| self.permits.0.poll_changed(self.key, &mut self.seen, cx.waker())).await
    }

    /// Waits while the flow is `paused`; not once the permits are closed.
    pub(crate) async fn running(&mut self) {
        poll_fn(|cx| self.permits.0.poll_running(self.key, cx.waker())).await;
    }
}

impl Drop for FlowWatch {
    fn drop(&mut self) {
        self.permits.0.unwatch(self.key);
    }
}

impl fmt::Debug for FlowWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowWatch").field("seen", &self.seen).finish()
    }
}

#[cfg(test)]
#[cfg(zlink_loom)]
mod model;
#[cfg(test)]
#[cfg(not(any(zlink_loom, zlink_shuttle)))]
mod tests;
