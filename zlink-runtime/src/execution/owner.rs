//! An owner: the one section in which its jobs are admitted, its end, its figures.
//!
//! It knows no runtime, so that it can be model-checked.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use super::gate::{Inner, Ready};
use super::place::Stand;
use super::queue::{Phase, Queue};
use super::{Abandoned, Job, Turn, finish};
use crate::error::{Error, ErrorKind};
use crate::limit::{HOLD_BYTES, HOLD_RECORDS, LIFECYCLE_JOBS};
use crate::permit::Permit;
use crate::sync::{MutexGuard, lock};

/// An owner: one queue under a gate, which it may share with others. Clones are the same owner; with the last one of a
/// gate, turns that wait are dropped.
pub(crate) struct Owner<J: Job> {
    pub(super) gate: Arc<Inner<J>>,
    pub(super) at: u32,
    pub(super) serial: u32,
    pub(super) claims: bool,
}

/// Which owner, and which gate, without holding on to either. It names them as long as they are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OwnerKey {
    gate: usize,
    at: u32,
    serial: u32,
}

impl OwnerKey {
    /// Whether both are under one gate.
    pub(crate) fn shares_gate(self, other: Self) -> bool {
        self.gate == other.gate
    }
}

impl<J: Job> Clone for Owner<J> {
    fn clone(&self) -> Self {
        Self {
            gate: self.gate.clone(),
            ..*self
        }
    }
}

impl<J: Job> fmt::Debug for Owner<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Owner").field(&self.status()).finish()
    }
}

/// A job that was not admitted, and all that came with it.
pub(crate) struct Rejected<J> {
    /// Why.
    pub(crate) kind: ErrorKind,
    /// The job.
    pub(crate) job: J,
    /// Its permit, still reserved; lifecycle work has none.
    pub(crate) permit: Option<Permit>,
}

/// An owner at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnerStatus {
    /// Jobs admitted since it was made.
    pub(crate) admitted: u64,
    /// Jobs that have not started.
    pub(crate) queued: usize,
    /// Turns that have started and not ended.
    pub(crate) active: usize,
    /// Turns that ended in a panic.
    pub(crate) panicked: u64,
}

type Locked<'a, J> = MutexGuard<'a, super::gate::State<J>>;

impl<J: Job> Owner<J> {
    pub(super) fn with_ready(ready: &Arc<Ready>, turns: usize) -> Self {
        let turns = u32::try_from(turns).unwrap_or(u32::MAX);
        Self::first(Inner::new(ready.clone(), turns, true, false, Phase::Open), false)
    }

    /// The owner that a gate was made with.
    pub(super) fn first(gate: Arc<Inner<J>>, claims: bool) -> Self {
        Self {
            gate,
            at: 0,
            serial: 0,
            claims,
        }
    }

    /// Its queue, if it is still there.
    pub(super) fn queue<'a>(&self, state: &'a mut Locked<'_, J>) -> Option<&'a mut Queue<J>> {
        state.queue(self.at).filter(|queue| queue.serial == self.serial)
    }

    /// Which owner it is.
    pub(crate) fn key(&self) -> OwnerKey {
        OwnerKey {
            gate: Arc::as_ptr(&self.gate).addr(),
            at: self.at,
            serial: self.serial,
        }
    }

    /// Whether both are the same owner.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.key() == other.key()
    }

    /// Whether its next job waits for the end of the one under way, whatever becomes of the gate.
    pub(crate) fn claims(&self) -> bool {
        self.claims
    }

    /// Admits a job, or says why not. Verdict, place in the order and queue are one section; where it fails nothing
    /// has changed. The number is the job's place in the order of acceptance, from 1.
    ///
    /// # Errors
    /// The kind that [`Owner::close`] was given; `Unavailable` where it moved away; `CapacityExceeded` where it moves
    /// and holds as much as it may.
    pub(crate) fn admit(&self, job: J, permit: Permit) -> Result<u64, Rejected<J>> {
        let mut state = lock(&self.gate.state);
        let Some(queue) = self.queue(&mut state) else {
            return Err(rejected(state, ErrorKind::Unavailable, job, Some(permit)));
        };
        if let Some(kind) = queue.closed {
            return Err(rejected(state, kind, job, Some(permit)));
        }
        let mut permit = Some(permit);
        let given_back = if queue.phase() == Phase::Holding {
            let (records, bytes) = state.held();
            let held = (records + 1, bytes + job.size());
            if held.0 > HOLD_RECORDS || held.1 > HOLD_BYTES {
                return Err(rejected(state, ErrorKind::CapacityExceeded, job, permit));
            }
            state.set_held(held);
            permit.take()
        } else {
            None
        };
        if let Some(permit) = &mut permit {
            permit.queue();
        }
        let Some(queue) = state.queue(self.at) else {
            return Err(rejected(state, ErrorKind::Unavailable, job, permit));
        };
        queue.push(job, permit);
        let place = queue.admitted;
        state.line_up(self.at);
        self.gate.leave(state, Vec::new());
        drop(given_back);
        Ok(place)
    }

    /// Admits lifecycle work: it needs no permit, goes before application work, and is bounded by itself.
    ///
    /// # Errors
    /// As [`Owner::admit`]; `Unavailable` where the owner is sealed for a move; `CapacityExceeded` where 256 wait.
    pub(crate) fn admit_lifecycle(&self, job: J) -> Result<u64, Rejected<J>> {
        self.admit_control(job, |queue| {
            let moves = queue.phase() != Phase::Open;
            queue.closed.or(moves.then_some(ErrorKind::Unavailable))
        })
    }

    /// The same, unless `refusal` says why not.
    pub(super) fn admit_control(
        &self,
        job: J,
        refusal: impl FnOnce(&mut Queue<J>) -> Option<ErrorKind>,
    ) -> Result<u64, Rejected<J>> {
        let mut state = lock(&self.gate.state);
        let Some(queue) = self.queue(&mut state) else {
            return Err(rejected(state, ErrorKind::Unavailable, job, None));
        };
        if let Some(kind) = refusal(queue) {
            return Err(rejected(state, kind, job, None));
        }
        match queue.push_lifecycle(job, LIFECYCLE_JOBS) {
            Ok(()) => {
                let place = queue.admitted;
                state.line_up(self.at);
                self.gate.leave(state, Vec::new());
                Ok(place)
            }
            Err(job) => Err(rejected(state, ErrorKind::CapacityExceeded, job, None)),
        }
    }

    /// Admits nothing from here on. What was admitted goes on.
    pub(crate) fn close(&self, kind: ErrorKind) {
        let mut state = lock(&self.gate.state);
        if let Some(queue) = self.queue(&mut state) {
            queue.closed.get_or_insert(kind);
        }
        let waits = state.waits(self.at);
        self.gate.leave(state, waits);
    }

    /// Waits until `done` says so of its queue; an owner that is gone is done.
    pub(super) async fn until(&self, done: impl Fn(&Queue<J>) -> bool) {
        poll_fn(|cx| {
            let mut state = lock(&self.gate.state);
            if self.queue(&mut state).is_none_or(|queue| done(queue)) {
                return Poll::Ready(());
            }
            state.wait(cx.waker());
            Poll::Pending
        })
        .await;
    }

    /// Waits until the owner is closed and every job and turn of it has ended.
    pub(crate) async fn drained(&self) {
        self.until(Queue::is_drained).await;
    }

    /// The same, for whoever may be one of its turns.
    ///
    /// # Errors
    /// `InvalidOperation` where a turn of it, or one that holds its gate, would wait for its own end.
    #[cfg_attr(not(test), expect(dead_code, reason = "an Actor may ask for its own end"))]
    pub(crate) async fn ended(&self) -> Result<(), Error> {
        super::turn::may_wait_for(self)?;
        self.drained().await;
        Ok(())
    }

    /// Closes it and abandons, once each, the jobs that have not started and the turns that have not ended: those
    /// that wait here and now, one that is being polled as soon as its poll returns, one that has given its gate back
    /// as soon as the gate is free.
    pub(crate) fn stop(&self, kind: ErrorKind) {
        drop(self.halt(kind));
    }

    /// The same; what is the user's of it ends with what is handed back, be it elsewhere. None of it runs meanwhile.
    pub(crate) fn halt(&self, kind: ErrorKind) -> Option<Halted<J>> {
        let mut state = lock(&self.gate.state);
        let queue = self.queue(&mut state)?;
        queue.closed.get_or_insert(kind);
        if std::mem::replace(&mut queue.stopped, true) {
            return None;
        }
        let (jobs, keeper) = (queue.clear(), queue.take_keeper());
        let standing: Vec<_> = state.places.of(self.at).map(|(at, place)| (at, place.stand)).collect();
        let mut held = Vec::new();
        for (at, stand) in standing {
            match stand {
                Stand::Running => {}
                Stand::Yielded | Stand::Resuming => state.doom(at),
                Stand::Holding => held.extend(state.take_held(at).map(|turn| (at, turn))),
            }
        }
        let waits = state.waits(self.at);
        self.gate.leave(state, waits);
        drop(keeper);
        let owner = self.clone();
        Some(Halted { owner, jobs, held })
    }

    /// Its figures.
    pub(crate) fn status(&self) -> OwnerStatus {
        let mut state = lock(&self.gate.state);
        self.queue(&mut state)
            .map_or_else(OwnerStatus::default, |queue| OwnerStatus {
                admitted: queue.admitted,
                queued: queue.waiting(),
                active: queue.active as usize,
                panicked: u64::from(queue.panicked),
            })
    }
}

/// What was stopped of an owner, and is abandoned as this is dropped.
pub(crate) struct Halted<J: Job> {
    owner: Owner<J>,
    jobs: Vec<(J, Option<Permit>)>,
    held: Vec<(u32, J::Turn)>,
}

impl<J: Job> Drop for Halted<J> {
    fn drop(&mut self) {
        for (job, permit) in self.jobs.drain(..) {
            drop(permit);
            finish(None, || job.abandon());
        }
        let gate = &self.owner.gate;
        for (at, turn) in self.held.drain(..) {
            // It holds the gate until it is gone.
            finish(None, || turn.abandon(Abandoned::Stopped));
            let mut state = lock(&gate.state);
            state.holders -= 1;
            state.places.retire(at);
            if let Some(queue) = self.owner.queue(&mut state) {
                queue.ended(false);
            }
            let waits = state.waits(self.owner.at);
            gate.leave(state, waits);
        }
    }
}

fn rejected<J: Job>(state: Locked<'_, J>, kind: ErrorKind, job: J, permit: Option<Permit>) -> Rejected<J> {
    drop(state);
    Rejected { kind, job, permit }
}
