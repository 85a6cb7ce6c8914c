//! The state of an owner's object: at rest in its cell between turns, in the hands of the turn that holds its gate
//! otherwise.
//!
//! It moves by ownership, behind one pointer; no lock is held while anything of the user's runs.

use std::any::Any;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::scope::Live;
use crate::error::{Error, ErrorKind};
use crate::execution::owner::OwnerKey;
use crate::execution::{Job, Owner, let_go};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, Place, lock};

/// The cell of a state. Clones are the same.
pub(crate) struct StateCell<S>(Arc<Resting<S>>);

/// Where a state rests.
pub(crate) struct Resting<S> {
    state: Place<S>,
    /// Whether anybody waits for it, or for its end. Set and seen by whoever swaps the state after it, so that none is
    /// forgotten.
    awaited: AtomicBool,
    rest: Mutex<Rest>,
}

struct Rest {
    /// Whose it is: a member that moves takes it along.
    owner: OwnerKey,
    /// Turns of other gates of the same object that wait for it: its timers may have their own.
    #[expect(clippy::box_collection, reason = "an idle object keeps one word for it, not three")]
    waiting: Option<Box<Vec<Waker>>>,
    /// It was taken out for good.
    ended: bool,
}

impl<S> Clone for StateCell<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> StateCell<S> {
    /// The cell of `owner`'s object.
    pub(crate) fn new<J: Job>(owner: &Owner<J>, state: S) -> Self {
        Self(Arc::new(Resting {
            state: Place::new(Box::new(state)),
            awaited: AtomicBool::new(false),
            rest: Mutex::new(Rest {
                owner: owner.key(),
                waiting: None,
                ended: false,
            }),
        }))
    }

    /// Its object is under the gate of `owner` from here on.
    #[cfg_attr(not(test), expect(dead_code, reason = "an Actor that joins takes its state along"))]
    pub(crate) fn moved_to<J: Job>(&self, owner: &Owner<J>) {
        lock(&self.0.rest).owner = owner.key();
    }

    /// The cell as an object keeps it that does not know its state.
    pub(crate) fn into_any(self) -> Arc<dyn Any + Send + Sync>
    where
        S: Send + 'static,
    {
        self.0
    }

    /// Takes the state out for good, as [`Resting::take`].
    #[cfg_attr(not(test), expect(dead_code, reason = "an object asks what it keeps"))]
    pub(crate) fn take(&self) -> Option<Box<S>> {
        self.0.take()
    }
}

impl<S> Resting<S> {
    /// Takes the state out for good: its owner has ended. `None` while a turn has it.
    pub(crate) fn take(&self) -> Option<Box<S>> {
        let state = self.state.take();
        let waiting = {
            let mut rest = lock(&self.rest);
            rest.ended |= state.is_some();
            std::mem::take(&mut rest.waiting)
        };
        waiting.into_iter().flat_map(|waiting| *waiting).for_each(Waker::wake);
        state
    }

    /// Takes the state out for good, as [`take`](Self::take). Where a turn has it, it is dropped as that gives it back.
    pub(crate) fn end(&self) -> Option<Box<S>> {
        let waiting = {
            let mut rest = lock(&self.rest);
            rest.ended = true;
            self.awaited.swap(true, Ordering::AcqRel);
            std::mem::take(&mut rest.waiting)
        };
        waiting.into_iter().flat_map(|waiting| *waiting).for_each(Waker::wake);
        // Whoever brings it back after this has seen that it is awaited.
        self.state.take()
    }

    /// Takes it for a turn, where it is at rest.
    #[inline]
    fn borrow(&self) -> Option<Box<S>> {
        self.state.take()
    }

    /// The same, once no other turn has it; `None` where it is gone for good.
    fn poll_borrow(&self, cx: &Context<'_>) -> Poll<Option<Box<S>>> {
        if let Some(state) = self.borrow() {
            return Poll::Ready(Some(state));
        }
        {
            let mut rest = lock(&self.rest);
            if rest.ended {
                return Poll::Ready(None);
            }
            rest.waiting.get_or_insert_default().push(cx.waker().clone());
            self.awaited.swap(true, Ordering::AcqRel);
        }
        // It may have come back meanwhile, from one who saw nobody wait.
        self.borrow().map_or(Poll::Pending, |state| Poll::Ready(Some(state)))
    }

    #[inline]
    fn put(&self, state: Box<S>) {
        let old = self.state.put(state);
        debug_assert!(old.is_none(), "one state, in one place");
        // Hardly ever does anybody wait.
        if self.awaited.load(Ordering::Acquire) {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        let (waiting, ended) = {
            let mut rest = lock(&self.rest);
            self.awaited.store(rest.ended, Ordering::Release);
            (std::mem::take(&mut rest.waiting), rest.ended)
        };
        waiting.into_iter().flat_map(|waiting| *waiting).for_each(Waker::wake);
        if ended {
            // Nobody comes for it any more. It is the user's, and this may be within the end of a handler that panicked.
            let_go(None, self.state.take());
        }
    }
}

impl<S> fmt::Debug for StateCell<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateCell")
    }
}

/// What knows the cell of a state.
pub(crate) trait States<S>: Send + Sync {
    /// The cell; `None` before there is a state.
    fn cell(&self) -> Option<&Resting<S>>;
}

impl<S: Send> States<S> for StateCell<S> {
    fn cell(&self) -> Option<&Resting<S>> {
        Some(&self.0)
    }
}

impl<S, C: States<S>> States<S> for &C {
    fn cell(&self) -> Option<&Resting<S>> {
        C::cell(self)
    }
}

/// One turn, with the state while it holds its gate. `C` knows the cell of the state.
pub(crate) struct OwnTurn<S: Send + 'static, C: States<S> + ?Sized> {
    state: Option<Box<S>>,
    owner: OwnerKey,
    /// Of a turn that can be given back.
    live: Option<Arc<Live>>,
    /// The state of another object under the same gate.
    loan: Option<Box<dyn Any + Send>>,
    cell: C,
}

/// A state that goes back to its cell when its borrower needs it no more.
struct Loan<T> {
    cell: StateCell<T>,
    state: Option<Box<T>>,
}

impl<T> Drop for Loan<T> {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            self.cell.0.put(state);
        }
    }
}

impl<S: Send + 'static, C: States<S>> OwnTurn<S, C> {
    /// Takes the state, unless a turn of another gate of its object has it: its own gate is held from here on.
    pub(super) fn begin(cell: C, owner: OwnerKey, live: Option<Arc<Live>>) -> Self {
        let state = cell.cell().and_then(Resting::borrow);
        Self {
            state,
            owner,
            live,
            loan: None,
            cell,
        }
    }
}

impl<S: Send + 'static, C: States<S> + ?Sized> OwnTurn<S, C> {
    /// Waits for the state, where a turn of another gate of its object has it: timers may have gates of their own.
    pub(super) async fn hold(&mut self) {
        if self.state.is_none()
            && let Some(cell) = self.cell.cell()
        {
            self.state = poll_fn(|cx| cell.poll_borrow(cx)).await;
        }
    }

    /// What it shares with all that it calls; `None` where it cannot be given back.
    pub(super) fn live(&self) -> Option<&Arc<Live>> {
        self.live.as_ref()
    }

    /// The state. A yield that was left behind is over.
    ///
    /// # Panics
    /// Where another turn has the state: two would hold one gate.
    pub(super) fn state(&mut self) -> &mut S {
        self.stay();
        self.state.as_mut().expect("who holds the gate has the state")
    }

    /// The state of another object under this turn's gate.
    ///
    /// # Errors
    /// `InvalidOperation` where it is under another gate.
    pub(super) fn lend<T: Send + 'static>(&mut self, cell: &StateCell<T>) -> Result<&mut T, Error> {
        self.stay();
        self.loan = None;
        let elsewhere = || Error::not_executed(ErrorKind::InvalidOperation, "that state is under another gate");
        let lent = {
            let rest = lock(&cell.0.rest);
            let here = self.owner.shares_gate(rest.owner);
            if here { cell.0.borrow() } else { None }
        };
        let state = lent.ok_or_else(elsewhere)?;
        let loan = Loan {
            cell: cell.clone(),
            state: Some(state),
        };
        let loan = self.loan.insert(Box::new(loan)).downcast_mut::<Loan<T>>();
        loan.and_then(|loan| loan.state.as_deref_mut()).ok_or_else(elsewhere)
    }

    /// Gives the gate back with the end of this poll, and what it guards at once.
    pub(super) fn leave(&mut self) {
        self.rest();
        self.set_yielded(true);
    }

    /// Keeps the gate, whatever was said before.
    pub(super) fn stay(&mut self) {
        self.set_yielded(false);
        if self.state.is_none()
            && let Some(cell) = self.cell.cell()
        {
            self.state = cell.borrow();
        }
    }

    pub(super) fn set_yielded(&self, yielded: bool) {
        if let Some(live) = &self.live {
            live.set_yielded(yielded);
        }
    }

    /// Gives back what it has of objects.
    fn rest(&mut self) {
        self.loan = None;
        if let Some(state) = self.state.take()
            && let Some(cell) = self.cell.cell()
        {
            cell.put(state);
        }
    }
}

impl<S: Send + 'static, C: States<S> + ?Sized> Drop for OwnTurn<S, C> {
    fn drop(&mut self) {
        self.rest();
    }
}
