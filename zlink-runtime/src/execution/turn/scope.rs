//! One turn under way, as everything that its handler calls sees it: which gate it holds, and what it registered for
//! its end.
//!
//! It is published to the thread for as long as a poll lasts, and nowhere else.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use super::Ended;
use crate::error::{Error, ErrorKind};
use crate::execution::defer::Deferrals;
use crate::execution::mode::Offers;
use crate::execution::owner::OwnerKey;
use crate::execution::{Job, Owner};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, MutexGuard, lock};

thread_local! {
    static CURRENT: Cell<Option<Turning>> = const { Cell::new(None) };
    /// That of a turn which has ended, for the next that begins here.
    static SPARE: Cell<Option<Arc<Live>>> = const { Cell::new(None) };
}

/// The threads of a model share what is of one thread here.
const MODEL: bool = cfg!(any(zlink_loom, zlink_shuttle));

/// Whose a turn is, and what it may do.
#[derive(Clone, Copy)]
pub(crate) struct Scope {
    owner: OwnerKey,
    /// Whether its gate lets in no other turn.
    exclusive: bool,
    /// Whether its owner's next job waits for its end, whatever becomes of the gate.
    claims: bool,
    offers: Offers,
}

/// A turn from its start to its end. Most need no more than their scope.
pub(super) struct Turning {
    scope: Scope,
    live: Option<Arc<Live>>,
}

/// What becomes of a turn that yields or registers something, as all that it calls see it.
pub(crate) struct Live {
    scope: Scope,
    /// Its gate is given back with the end of this poll, unless that changes.
    yielded: AtomicBool,
    /// A call that it waits for with Yield is being polled.
    in_yield: AtomicBool,
    ended: AtomicBool,
    /// Whether it has looked at what it may register.
    registers: AtomicBool,
    deferrals: Mutex<Deferrals>,
}

impl Scope {
    /// The scope of a turn of `owner` that may do what `offers` says.
    pub(crate) fn new<J: Job>(owner: &Owner<J>, offers: Offers) -> Self {
        Self {
            owner: owner.key(),
            exclusive: owner.gate.is_exclusive(),
            claims: owner.claims(),
            offers,
        }
    }

    pub(super) fn owner(&self) -> OwnerKey {
        self.owner
    }

    #[cfg(test)]
    pub(super) fn yields(&self) -> bool {
        self.offers.yields
    }

    /// The turn that is being polled on this thread.
    pub(crate) fn current() -> Option<Arc<Live>> {
        Self::with_current(Turning::live)
    }

    fn with_current<T>(ask: impl FnOnce(&mut Turning) -> T) -> Option<T> {
        CURRENT.with(|current| {
            let mut turning = current.take()?;
            let answer = ask(&mut turning);
            current.set(Some(turning));
            Some(answer)
        })
    }

    /// Whether this turn would wait for itself if it waited for an answer of `target`, as far as its gate goes.
    fn waits_on_itself(&self, target: OwnerKey, in_yield: bool) -> bool {
        let itself = self.claims && self.owner == target;
        itself || self.exclusive && !in_yield && self.owner.shares_gate(target)
    }
}

impl Turning {
    pub(super) fn new(scope: Scope) -> Self {
        Self { scope, live: None }
    }

    /// What it shares with all that it calls, from now on.
    pub(super) fn live(&mut self) -> Arc<Live> {
        let scope = self.scope;
        self.live.get_or_insert_with(|| Live::new(scope)).clone()
    }

    /// Whether its gate was given back with the last poll.
    pub(super) fn has_yielded(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.has_yielded())
    }

    pub(super) fn end(self, ended: Ended) {
        if let Some(live) = self.live {
            live.end(ended);
            live.recycle();
        }
    }

    /// Does `work` as a part of the turn. It is published by being moved, and comes back.
    #[inline]
    pub(super) fn enter<T>(turning: &mut Option<Self>, work: impl FnOnce() -> T) -> T {
        struct Back<'a> {
            current: &'a Cell<Option<Turning>>,
            turning: &'a mut Option<Turning>,
            outer: Option<Turning>,
        }
        impl Drop for Back<'_> {
            fn drop(&mut self) {
                *self.turning = self.current.replace(self.outer.take());
            }
        }
        if MODEL {
            return work();
        }
        CURRENT.with(|current| {
            let outer = current.replace(turning.take());
            let _back = Back {
                current,
                turning,
                outer,
            };
            work()
        })
    }
}

impl Live {
    fn new(scope: Scope) -> Arc<Self> {
        let live = Self {
            scope,
            yielded: AtomicBool::new(false),
            in_yield: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            registers: AtomicBool::new(false),
            deferrals: Mutex::new(Deferrals::default()),
        };
        if !MODEL
            && let Some(mut spare) = SPARE.try_with(Cell::take).ok().flatten()
            && let Some(place) = Arc::get_mut(&mut spare)
        {
            *place = live;
            return spare;
        }
        Arc::new(live)
    }

    /// Its turn has ended: where nobody has kept it, its memory is the next one's.
    fn recycle(self: Arc<Self>) {
        if !MODEL && Arc::strong_count(&self) == 1 {
            // Where the thread ends, it just goes.
            drop(SPARE.try_with(|spare| spare.replace(Some(self))));
        }
    }

    /// Whether its gate was given back with the last poll.
    fn has_yielded(&self) -> bool {
        self.yielded.load(Ordering::Acquire)
    }

    pub(super) fn set_yielded(&self, yielded: bool) {
        self.yielded.store(yielded, Ordering::Release);
    }

    /// Polls a call that is waited for with Yield.
    pub(super) fn in_yield<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Back<'a>(&'a AtomicBool);
        impl Drop for Back<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Relaxed);
            }
        }
        self.in_yield.store(true, Ordering::Relaxed);
        let _back = Back(&self.in_yield);
        work()
    }

    pub(crate) fn offers(&self) -> Offers {
        self.scope.offers
    }

    pub(crate) fn owner(&self) -> OwnerKey {
        self.scope.owner
    }

    /// Whether it may still register anything, and what it has registered so far.
    pub(in crate::execution) fn deferrals(&self) -> Option<MutexGuard<'_, Deferrals>> {
        self.registers.store(true, Ordering::Relaxed);
        let deferrals = lock(&self.deferrals);
        (!self.ended.load(Ordering::Relaxed)).then_some(deferrals)
    }

    /// Whether this turn would wait for itself if it waited for an answer of `target`.
    fn waits_on_itself(&self, target: OwnerKey) -> bool {
        let in_yield = self.in_yield.load(Ordering::Relaxed);
        self.scope.waits_on_itself(target, in_yield) || lock(&self.deferrals).bars(target)
    }

    fn end(&self, ended: Ended) {
        self.ended.store(true, Ordering::Relaxed);
        // Only polls of this turn register, and they are over.
        if self.registers.load(Ordering::Relaxed) {
            let deferrals = std::mem::take(&mut *lock(&self.deferrals));
            deferrals.settle(ended == Ended::Well);
        }
    }
}

/// Does `work` as a turn of that scope would: what ends an owner that takes no turns any more.
pub(crate) async fn within<T>(scope: Scope, work: impl Future<Output = T>) -> T {
    let mut turning = Some(Turning::new(scope));
    let mut work = std::pin::pin!(work);
    let done = std::future::poll_fn(|cx| Turning::enter(&mut turning, || work.as_mut().poll(cx))).await;
    if let Some(turning) = turning {
        turning.end(Ended::Well);
    }
    done
}

/// Whether the turn that runs here may wait for an answer of `target`. Outside of turns, whoever asks may.
///
/// # Errors
/// `InvalidOperation` where the answer could only come after the wait for it.
pub(crate) fn may_wait_for<J: Job>(target: &Owner<J>) -> Result<(), Error> {
    let target = target.key();
    let waits = Scope::with_current(|turning| match &turning.live {
        Some(live) => live.waits_on_itself(target),
        None => turning.scope.waits_on_itself(target, false),
    });
    match waits {
        Some(true) => Err(Error::not_executed(
            ErrorKind::InvalidOperation,
            "the handler would wait for itself: the target can run only after it",
        )),
        _ => Ok(()),
    }
}

/// Whether an operation of the framework may begin here.
///
/// # Errors
/// `InvalidOperation` where the turn that runs here has signalled that its unit is ready to move.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "whoever says that its unit may move is of relocation")
)]
pub(crate) fn may_begin() -> Result<(), Error> {
    match Scope::current() {
        Some(live) if lock(&live.deferrals).is_ready() => Err(Error::not_executed(
            ErrorKind::InvalidOperation,
            "the handler has said that its unit is ready to move; nothing may begin after that",
        )),
        _ => Ok(()),
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live")
            .field("offers", &self.scope.offers)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Turning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turning")
            .field("offers", &self.scope.offers)
            .finish_non_exhaustive()
    }
}
