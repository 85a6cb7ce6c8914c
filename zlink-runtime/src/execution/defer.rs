//! What a handler registers for its end: Joins of members, and that its unit is ready to move.
//!
//! A registration stands in the target's queue as a barrier from the moment it is made. It takes effect when the
//! handler ends well, and is forgotten otherwise; both live in memory only. It must not know what a Join does.

use std::num::NonZeroU128;
use std::time::Duration;

use tokio::time::Instant;

use super::queue::{Phase, Queue};
use super::turn::Scope;
use super::{Job, Owner, finish};
use crate::clock;
use crate::error::{ArgumentError, CallError, Error, ErrorKind};
use crate::execution::owner::OwnerKey;
use crate::limit::{DEFERRED_ALL_BYTES, DEFERRED_BYTES, DEFERRED_JOINS, DEFERRED_TIMEOUT};
use crate::random::Random;
use crate::sync::lock;

/// Keeps back what an owner admitted after it, until it is dropped.
pub(crate) struct Barrier<J: Job>(Owner<J>);

impl<J: Job> Barrier<J> {
    /// Whose it is.
    pub(super) fn owner(&self) -> &Owner<J> {
        &self.0
    }
}

impl<J: Job> Drop for Barrier<J> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.gate.state);
        if let Some(queue) = self.0.queue(&mut state) {
            queue.unbar();
            state.line_up(self.0.at);
        }
        let waits = state.waits(self.0.at);
        self.0.gate.leave(state, waits);
    }
}

/// A Join that was registered, as it is carried out. Its target admits and waits until this is dropped.
pub(crate) struct Deferred<J: Job, R> {
    /// Names the operation wherever it goes.
    pub(crate) operation: NonZeroU128,
    /// When it fails, at the latest.
    pub(crate) deadline: Instant,
    /// What was registered.
    pub(crate) request: R,
    /// Its place in the order.
    pub(crate) barrier: Barrier<J>,
}

type Settle = Box<dyn FnOnce(bool) + Send>;

/// The registrations of one handler.
#[derive(Default)]
pub(super) struct Deferrals {
    list: Vec<(OwnerKey, Settle)>,
    joins: usize,
    bytes: usize,
    ready: bool,
}

impl Deferrals {
    /// Whether a barrier of this handler stands before `owner`.
    pub(super) fn bars(&self, owner: OwnerKey) -> bool {
        self.list.iter().any(|(barred, _)| *barred == owner)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    /// Carries all of them out, in the order of registration, or none.
    pub(super) fn settle(self, well: bool) {
        for (_, settle) in self.list {
            finish(None, || settle(well));
        }
    }
}

impl<J: Job> Owner<J> {
    /// Registers `request` for the end of the handler that runs here: then `make` makes the lifecycle work of this owner
    /// that carries it out. `size` is what the request takes, in bytes; without a `timeout`, it is 5 s.
    ///
    /// # Errors
    /// `InvalidOperation` where no handler runs here, or one that cannot register a Join; `Unavailable` where this owner
    /// has a transition before it or moves away; the kind that it was closed with. An argument that is out of bounds:
    /// 64 Joins a handler, 1 MiB a request, 8 MiB all together, a timeout of 1 ms to `i32::MAX` ms. Nothing is left of a
    /// registration that failed.
    pub(crate) fn defer_join<R: Send + 'static>(
        &self,
        random: &Random,
        request: R,
        size: usize,
        timeout: Option<Duration>,
        make: impl FnOnce(Deferred<J, R>) -> J + Send + 'static,
    ) -> Result<NonZeroU128, CallError> {
        let scope = Scope::current().filter(|scope| scope.offers().joins);
        let Some(mut deferrals) = scope.as_ref().and_then(|scope| scope.deferrals()) else {
            return Err(refused("no handler that can register a Join runs here"));
        };
        if deferrals.ready {
            return Err(refused("nothing may begin after the unit was said to be ready to move"));
        }
        let timeout = timeout.map_or(Ok(DEFERRED_TIMEOUT), |timeout| clock::timeout("timeout", timeout))?;
        if deferrals.joins == DEFERRED_JOINS {
            return Err(too_much(
                "join",
                format!("a handler registers at most {DEFERRED_JOINS}"),
            ));
        }
        if size > DEFERRED_BYTES {
            return Err(too_much("request", format!("has {size} bytes, above {DEFERRED_BYTES}")));
        }
        if deferrals.bytes + size > DEFERRED_ALL_BYTES {
            let problem = format!(
                "{} bytes more than one handler may register",
                deferrals.bytes + size - DEFERRED_ALL_BYTES
            );
            return Err(too_much("request", problem));
        }
        let barrier = self.bar(false)?;
        let operation = operation(random);
        let deferred = Deferred {
            operation,
            deadline: clock::now() + timeout,
            request,
            barrier,
        };
        let owner = self.clone();
        deferrals.joins += 1;
        deferrals.bytes += size;
        deferrals
            .list
            .push((self.key(), Box::new(move |well| owner.carry_out(well, deferred, make))));
        Ok(operation)
    }

    /// Registers for the end of the handler that runs here that this owner's unit may move: then `make` makes the
    /// lifecycle work that runs before the next job.
    ///
    /// # Errors
    /// `InvalidOperation` where the handler that runs here cannot say so, or has said so.
    pub(crate) fn defer_ready(&self, make: impl FnOnce(Barrier<J>) -> J + Send + 'static) -> Result<(), CallError> {
        let scope = Scope::current().filter(|scope| scope.offers().ready && scope.owner().shares_gate(self.key()));
        let Some(mut deferrals) = scope.as_ref().and_then(|scope| scope.deferrals()) else {
            return Err(refused("this handler cannot say that its unit is ready to move"));
        };
        if deferrals.ready {
            return Err(refused("it was said before"));
        }
        let barrier = self.bar(true)?;
        let owner = self.clone();
        deferrals.ready = true;
        deferrals
            .list
            .push((self.key(), Box::new(move |well| owner.carry_out(well, barrier, make))));
        Ok(())
    }

    /// Whoever seals or closes the owner after the registration waits for it; only a stop comes before it.
    fn carry_out<D>(&self, well: bool, deferred: D, make: impl FnOnce(D) -> J) {
        if !well {
            return;
        }
        let refusal = |queue: &mut Queue<J>| queue.stopped.then(|| queue.closed.unwrap_or(ErrorKind::Unavailable));
        if let Err(rejected) = self.admit_control(make(deferred), refusal) {
            rejected.job.abandon();
        }
    }

    /// Places a barrier behind all that was admitted, or before it.
    fn bar(&self, before: bool) -> Result<Barrier<J>, CallError> {
        let mut state = lock(&self.gate.state);
        let kind = match self.queue(&mut state) {
            None => ErrorKind::Unavailable,
            Some(queue) => match (queue.closed, queue.phase()) {
                (Some(kind), _) => kind,
                (None, Phase::Open) if queue.is_barred() => ErrorKind::Unavailable,
                (None, Phase::Open) => {
                    queue.bar(before);
                    return Ok(Barrier(self.clone()));
                }
                (None, Phase::Sealed | Phase::Holding) => ErrorKind::Unavailable,
            },
        };
        let error = Error::not_executed(kind, "the target has a transition before it, moves, or ends");
        Err(CallError::Failed(error))
    }
}

fn operation(random: &Random) -> NonZeroU128 {
    // A version 4 UUID has bits that are always set.
    NonZeroU128::new(random.uuid().as_u128()).unwrap_or(NonZeroU128::MIN)
}

fn refused(problem: &str) -> CallError {
    CallError::Failed(Error::not_executed(ErrorKind::InvalidOperation, problem))
}

fn too_much(argument: &'static str, problem: String) -> CallError {
    CallError::Argument(ArgumentError::new(argument, problem))
}
