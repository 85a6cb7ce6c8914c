//! Turns over a state: how a handler gets it, waits with or without its gate, and what its turn is known by meanwhile.
//!
//! It must not know what a handler says or whom it calls.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::{Abandoned, Turn};

mod scope;
mod state;
mod yielding;

use scope::Turning;
#[cfg(test)]
pub(crate) use scope::may_begin;
pub(crate) use scope::{Scope, may_wait_for, within};
pub(crate) use state::{OwnTurn, Resting, StateCell, States};
pub use yielding::{YieldFor, YieldTurn, Yields};

/// How a handler came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// What it registered for its end takes effect.
    Well,
    /// What it registered for its end is forgotten.
    Badly,
}

/// A handler over a state `S`, as an `async fn` or a function that gives a future.
pub(crate) trait Handler<'t, S: Send + 'static>: Send + 'static {
    /// The handler at work.
    type Running: Future<Output = Ended> + Send + 't;

    /// Begins it; nothing of it has run until its first poll.
    fn begin(self, turn: &'t mut YieldTurn<'t, S>) -> Self::Running;
}

impl<'t, S: Send + 'static, F, R> Handler<'t, S> for F
where
    F: FnOnce(&'t mut YieldTurn<'t, S>) -> R + Send + 'static,
    R: Future<Output = Ended> + Send + 't,
{
    type Running = R;

    fn begin(self, turn: &'t mut YieldTurn<'t, S>) -> R {
        self(turn)
    }
}

/// The same over what it is given with its turn, where that knows the cell of its state.
pub(crate) trait HandlerOf<'t, S: Send + 'static, C: 't>: Send + 'static {
    /// The handler at work.
    type Running: Future<Output = Ended> + Send + 't;

    /// Begins it; nothing of it has run until its first poll.
    fn begin(self, turn: &'t mut YieldTurn<'t, S>, given: &'t C) -> Self::Running;
}

impl<'t, S: Send + 'static, C: 't, F, R> HandlerOf<'t, S, C> for F
where
    F: FnOnce(&'t mut YieldTurn<'t, S>, &'t C) -> R + Send + 'static,
    R: Future<Output = Ended> + Send + 't,
{
    type Running = R;

    fn begin(self, turn: &'t mut YieldTurn<'t, S>, given: &'t C) -> R {
        self(turn, given)
    }
}

/// A handler that is given nothing else.
struct Alone<H>(H);

impl<'t, S: Send + 'static, C: 't, H: Handler<'t, S>> HandlerOf<'t, S, C> for Alone<H> {
    type Running = H::Running;

    fn begin(self, turn: &'t mut YieldTurn<'t, S>, _: &'t C) -> H::Running {
        self.0.begin(turn)
    }
}

/// Knows no cell: there is no state.
struct Stateless;

impl States<()> for Stateless {
    fn cell(&self) -> Option<&Resting<()>> {
        None
    }
}

/// A turn over a state, for its gate to poll.
pub(crate) struct StateTurn {
    /// Elsewhere only while it is polled.
    turning: Option<Turning>,
    running: Option<Pin<Box<dyn Future<Output = Ended> + Send>>>,
}

impl StateTurn {
    /// The turn in which `handler` runs. It takes the state out of its cell with its first poll, under its gate, and
    /// brings it back with its end.
    #[cfg(test)]
    pub(crate) fn new<S, H>(cell: &StateCell<S>, scope: Scope, handler: H) -> Self
    where
        S: Send + 'static,
        H: for<'t> Handler<'t, S>,
    {
        Self::given(cell.clone(), scope, scope.yields(), Alone(handler))
    }

    /// A turn without a state, which cannot be given back.
    pub(crate) fn stateless<H: for<'t> Handler<'t, ()>>(scope: Scope, handler: H) -> Self {
        Self::given(Stateless, scope, false, Alone(handler))
    }

    /// A turn in which the handler is given something that knows the cell of its state. `yields` is whether it may give its turn back.
    pub(crate) fn given<S, C, H>(given: C, scope: Scope, yields: bool, handler: H) -> Self
    where
        S: Send + 'static,
        C: States<S> + 'static,
        H: for<'t> HandlerOf<'t, S, C>,
    {
        let mut turning = Turning::new(scope);
        let live = yields.then(|| turning.live());
        let owner = scope.owner();
        let running = async move {
            let mut own = OwnTurn::begin(&given, owner, live);
            let mut turn = YieldTurn::new(&mut own);
            handler.begin(&mut turn, &given).await
        };
        Self {
            turning: Some(turning),
            running: Some(Box::pin(running)),
        }
    }

    fn end(&mut self, ended: Ended) {
        if let Some(turning) = self.turning.take() {
            turning.end(ended);
        }
    }
}

impl Turn for StateTurn {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let running = &mut self.running;
        let poll = Turning::enter(&mut self.turning, || {
            let poll = running.as_mut().map(|handler| handler.as_mut().poll(cx));
            if matches!(poll, Some(Poll::Ready(_))) {
                *running = None;
            }
            poll
        });
        match poll {
            Some(Poll::Pending) => return Poll::Pending,
            Some(Poll::Ready(ended)) => self.end(ended),
            None => {}
        }
        Poll::Ready(())
    }

    fn has_yielded(&self) -> bool {
        self.turning.as_ref().is_some_and(Turning::has_yielded)
    }

    fn abandon(mut self, _: Abandoned) {
        let running = &mut self.running;
        Turning::enter(&mut self.turning, || *running = None);
        self.end(Ended::Badly);
    }
}

impl fmt::Debug for StateTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateTurn")
            .field("turning", &self.turning)
            .finish_non_exhaustive()
    }
}
