//! The state of an owner's object: at rest in its cell between turns, in the hands of the turn that holds its gate
//! otherwise.
//!
//! It moves by ownership, behind one pointer; no lock is held while anything of the user's runs.

use std::any::Any;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::Scope;
use crate::error::{Error, ErrorKind};
use crate::execution::owner::OwnerKey;
use crate::execution::{Job, Owner};
use crate::sync::{Mutex, lock};

/// Where a state rests. Clones are the same cell.
pub(crate) struct StateCell<S>(Arc<Mutex<Resting<S>>>);

struct Resting<S> {
    /// Whose it is: a member that moves takes it along.
    owner: OwnerKey,
    state: Option<Box<S>>,
    /// Turns of other gates of the same object that wait for it: its timers may have their own.
    waiting: Vec<Waker>,
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
        Self(Arc::new(Mutex::new(Resting {
            owner: owner.key(),
            state: Some(Box::new(state)),
            waiting: Vec::new(),
            ended: false,
        })))
    }

    /// Its object is under the gate of `owner` from here on.
    #[cfg_attr(not(test), expect(dead_code, reason = "an Actor that joins takes its state along"))]
    pub(crate) fn moved_to<J: Job>(&self, owner: &Owner<J>) {
        lock(&self.0).owner = owner.key();
    }

    /// Takes the state out for good: its owner has ended. `None` while a turn has it.
    pub(crate) fn take(&self) -> Option<Box<S>> {
        let (state, waiting) = {
            let mut resting = lock(&self.0);
            let state = resting.state.take();
            resting.ended |= state.is_some();
            (state, std::mem::take(&mut resting.waiting))
        };
        waiting.into_iter().for_each(Waker::wake);
        state
    }

    /// Takes the state out for a turn, once no other has it; `None` where it is gone for good.
    fn poll_borrow(&self, cx: &Context<'_>) -> Poll<Option<Box<S>>> {
        let mut resting = lock(&self.0);
        match resting.state.take() {
            None if !resting.ended => {
                resting.waiting.push(cx.waker().clone());
                Poll::Pending
            }
            state => Poll::Ready(state),
        }
    }

    fn put(&self, state: Box<S>) {
        let mut resting = lock(&self.0);
        let old = resting.state.replace(state);
        // Hardly ever does anybody wait; then there is nothing to move.
        let waiting = (!resting.waiting.is_empty()).then(|| std::mem::take(&mut resting.waiting));
        drop(resting);
        debug_assert!(old.is_none(), "one state, in one place");
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

impl<S> fmt::Debug for StateCell<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateCell")
    }
}

/// One turn, with the state while it holds its gate.
pub(crate) struct OwnTurn<S: Send + 'static> {
    cell: StateCell<S>,
    state: Option<Box<S>>,
    scope: Arc<Scope>,
    /// The state of another object under the same gate.
    loan: Option<Box<dyn Any + Send>>,
}

/// A state that goes back to its cell when its borrower needs it no more.
struct Loan<T> {
    cell: StateCell<T>,
    state: Option<Box<T>>,
}

impl<T> Drop for Loan<T> {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            self.cell.put(state);
        }
    }
}

impl<S: Send + 'static> OwnTurn<S> {
    /// Takes the state, unless a turn of another gate of its object has it: its own gate is held from here on.
    pub(super) fn begin(cell: StateCell<S>, scope: Arc<Scope>) -> Self {
        let state = lock(&cell.0).state.take();
        Self {
            cell,
            state,
            scope,
            loan: None,
        }
    }

    /// Waits for the state, where a turn of another gate of its object has it: timers may have gates of their own.
    pub(super) async fn hold(&mut self) {
        if self.state.is_none() {
            let cell = &self.cell;
            self.state = poll_fn(|cx| cell.poll_borrow(cx)).await;
        }
    }

    pub(super) fn scope(&self) -> &Arc<Scope> {
        &self.scope
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
            let mut resting = lock(&cell.0);
            let here = self.scope.owner().shares_gate(resting.owner);
            if here { resting.state.take() } else { None }
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
        self.loan = None;
        if let Some(state) = self.state.take() {
            self.cell.put(state);
        }
        self.scope.set_yielded(true);
    }

    /// Keeps the gate, whatever was said before.
    pub(super) fn stay(&mut self) {
        self.scope.set_yielded(false);
        if self.state.is_none() {
            self.state = lock(&self.cell.0).state.take();
        }
    }
}

impl<S: Send + 'static> Drop for OwnTurn<S> {
    fn drop(&mut self) {
        self.loan = None;
        if let Some(state) = self.state.take() {
            self.cell.put(state);
        }
    }
}
