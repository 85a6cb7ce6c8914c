//! Turns over a state: how a handler gets it, waits with or without its gate, and what its turn is known by meanwhile.
//!
//! It must not know what a handler says or whom it calls.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::{Abandoned, Turn};

mod scope;
mod state;
mod yielding;

#[cfg(test)]
pub(crate) use scope::may_begin;
pub(crate) use scope::{Scope, may_wait_for};
pub(crate) use state::{OwnTurn, StateCell};
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

/// A turn over a state, for its gate to poll.
pub(crate) struct StateTurn {
    /// Elsewhere only while it is polled.
    scope: Option<Arc<Scope>>,
    running: Option<Pin<Box<dyn Future<Output = Ended> + Send>>>,
}

impl StateTurn {
    /// The turn in which `handler` runs. It takes the state out of its cell with its first poll, under its gate, and
    /// brings it back with its end.
    pub(crate) fn new<S, H>(cell: &StateCell<S>, scope: Arc<Scope>, handler: H) -> Self
    where
        S: Send + 'static,
        H: for<'t> Handler<'t, S>,
    {
        let (cell, own) = (cell.clone(), scope.clone());
        let running = async move {
            let mut own = OwnTurn::begin(cell, own);
            let mut turn = YieldTurn::new(&mut own);
            handler.begin(&mut turn).await
        };
        Self {
            scope: Some(scope),
            running: Some(Box::pin(running)),
        }
    }

    fn end(&self, ended: Ended) {
        if let Some(scope) = &self.scope {
            scope.end(ended);
        }
    }
}

impl Turn for StateTurn {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let running = &mut self.running;
        let poll = Scope::enter(&mut self.scope, || {
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
        if let Some(scope) = self.scope.take() {
            scope.recycle();
        }
        Poll::Ready(())
    }

    fn has_yielded(&self) -> bool {
        self.scope.as_ref().is_some_and(|scope| scope.has_yielded())
    }

    fn abandon(mut self, _: Abandoned) {
        let running = &mut self.running;
        Scope::enter(&mut self.scope, || *running = None);
        self.end(Ended::Badly);
    }
}

impl fmt::Debug for StateTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateTurn")
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}
