//! The turn that a handler may give back: what users see of it, and the future that does it.
//!
//! That nothing borrowed from the state outlives a yield is the compiler's to check: both need the turn alone.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::state::{OwnTurn, StateCell, States};
use crate::error::{CallError, Error, ErrorKind};

/// What a handler can wait for while others use its gate.
///
/// Requests to channels, Spots and Actors, and work given to CPU and IO workers. Nothing of it is submitted before the
/// first poll.
#[diagnostic::on_unimplemented(
    message = "a handler cannot give its turn back for `{Self}`",
    label = "`yield_for` takes a request, or work for a CPU or IO worker",
    note = "everything else is awaited: `{Self}` keeps the turn, `.await` it"
)]
pub trait Yields: IntoFuture<Output = Result<Self::Reply, CallError>> {
    /// What it answers.
    type Reply;

    /// Whether this one can: a request to a node itself cannot.
    #[doc(hidden)]
    fn may_yield(&self) -> bool {
        true
    }
}

/// A turn over the state `S` that its handler may give back while it waits.
///
/// The state is borrowed from the turn. A borrow ends before [`yield_for`](Self::yield_for), and what was read before is
/// read again after it: other handlers may have run.
pub struct YieldTurn<'t, S: Send + 'static>(&'t mut OwnTurn<S, dyn States<S> + 't>);

impl<'t, S: Send + 'static> YieldTurn<'t, S> {
    pub(super) fn new(turn: &'t mut OwnTurn<S, dyn States<S> + 't>) -> Self {
        Self(turn)
    }

    /// The same turn, for as long as it is borrowed here.
    pub(crate) fn reborrow(&mut self) -> YieldTurn<'_, S> {
        YieldTurn(self.0)
    }

    /// Waits until it has the state, which a turn of another gate of the same object may have.
    pub(crate) async fn hold(&mut self) {
        self.0.hold().await;
    }

    /// The state.
    pub fn state(&mut self) -> &mut S {
        self.0.state()
    }

    /// The state of another object under the same gate.
    ///
    /// # Errors
    /// `InvalidOperation` where it is under another gate.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the handlers of Actors have the state of their Spot")
    )]
    pub(crate) fn state_of<T: Send + 'static>(&mut self, cell: &StateCell<T>) -> Result<&mut T, Error> {
        self.0.lend(cell)
    }

    /// Submits `call` and gives the turn back until its outcome is there; then the handler goes on as a new turn, behind
    /// what waits already. The outcome is the same as without giving it back.
    ///
    /// Dropping the future withdraws the call as dropping the call's own future does, and keeps the turn.
    ///
    /// # Errors
    /// The call's own. `InvalidOperation` where a turn cannot be given back (outside `SpotWide` Spots with their Actors
    /// and Instance Spots, in lifecycle callbacks, for a request to a node): then nothing was submitted.
    pub fn yield_for<C: Yields>(&mut self, call: C) -> YieldFor<'_, S, C::IntoFuture> {
        self.0.stay();
        let call = if self.0.live().is_some_and(|live| live.offers().yields) && call.may_yield() {
            Some(call.into_future())
        } else {
            None
        };
        YieldFor { turn: self.0, call }
    }
}

impl<S: Send + 'static> fmt::Debug for YieldTurn<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("YieldTurn").field(&self.0.live()).finish()
    }
}

pin_project! {
    /// A wait that gives the turn back.
    #[must_use = "nothing is submitted until it is awaited"]
    pub struct YieldFor<'y, S, F>
    where
        S: Send,
        S: 'static,
    {
        turn: &'y mut OwnTurn<S, dyn States<S> + 'y>,
        #[pin]
        call: Option<F>,
    }

    impl<S, F> PinnedDrop for YieldFor<'_, S, F>
    where
        S: Send,
        S: 'static,
    {
        fn drop(this: Pin<&mut Self>) {
            // The rest of the handler, if any is left, runs on in this poll.
            this.project().turn.set_yielded(false);
        }
    }
}

impl<S: Send + 'static, T, F: Future<Output = Result<T, CallError>>> Future for YieldFor<'_, S, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Some(call) = this.call.as_pin_mut() else {
            return Poll::Ready(Err(CallError::Failed(Error::not_executed(
                ErrorKind::InvalidOperation,
                "this handler cannot give its turn back",
            ))));
        };
        // Without one it has no call.
        let poll = match this.turn.live() {
            Some(live) => live.in_yield(|| call.poll(cx)),
            None => call.poll(cx),
        };
        match poll {
            Poll::Ready(outcome) => {
                this.turn.stay();
                Poll::Ready(outcome)
            }
            Poll::Pending => {
                this.turn.leave();
                Poll::Pending
            }
        }
    }
}

impl<S: Send + 'static, F> fmt::Debug for YieldFor<'_, S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YieldFor")
    }
}
