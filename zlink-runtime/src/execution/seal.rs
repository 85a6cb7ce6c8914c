//! How queues move: sealed at a boundary, taken out, held, and merged where they arrive.
//!
//! Each step is one section of the gate, so that a message that races it stands in one queue, once. It must not know
//! where a queue goes, or why.

use std::future::poll_fn;
use std::sync::Arc;

use super::defer::Barrier;
use super::gate::Inner;
use super::mode::Unit;
use super::queue::{Phase, Queue};
use super::{Job, Owner};
use crate::error::ErrorKind;
use crate::limit::{HOLD_BYTES, HOLD_RECORDS, LIFECYCLE_JOBS};
use crate::permit::{Backlog, Closed, Permit};
use crate::sync::{Mutex, lock};

/// Owners of one gate that shall move together: they admit, and start nothing. Turns that have begun go on to their end.
/// Dropping it lets them run again.
pub(crate) struct Seal<J: Job> {
    gate: Arc<Inner<J>>,
    owners: Vec<Owner<J>>,
    over: bool,
    /// Of a Join: until it is over, whoever has sealed the owner since waits for it.
    barrier: Option<Barrier<J>>,
}

impl<J: Job> Seal<J> {
    /// Seals all of them, in one section, or none.
    ///
    /// # Errors
    /// The kind that one of them was closed with; `Unavailable` where one is sealed, gone, or under another gate.
    pub(crate) fn new(owners: Vec<Owner<J>>) -> Result<Self, ErrorKind> {
        let gate = owners.first().ok_or(ErrorKind::Unavailable)?.gate.clone();
        let mut state = lock(&gate.state);
        for owner in &owners {
            let here = Arc::ptr_eq(&owner.gate, &gate);
            match owner.queue(&mut state).filter(|_| here) {
                Some(queue) if queue.phase() == Phase::Open => queue.closed.map_or(Ok(()), Err)?,
                _ => return Err(ErrorKind::Unavailable),
            }
        }
        // Nothing starts from here on, so nothing is handed on; it is dropped under no lock.
        let mut keepers = Vec::new();
        for owner in &owners {
            if let Some(queue) = owner.queue(&mut state) {
                queue.seal();
                keepers.extend(queue.take_keeper());
            }
        }
        drop(state);
        drop(keepers);
        Ok(Self {
            gate,
            owners,
            over: false,
            barrier: None,
        })
    }

    /// Seals the one that a Join is carried out for, also where it was sealed or closed since the Join was registered: the
    /// Join was first.
    ///
    /// # Errors
    /// `Unavailable` where the owner was stopped, or moves on.
    pub(crate) fn of_join(barrier: Barrier<J>) -> Result<Self, ErrorKind> {
        let owner = barrier.owner().clone();
        let mut state = lock(&owner.gate.state);
        let keeper = match owner.queue(&mut state) {
            Some(queue) if !queue.stopped && queue.phase() != Phase::Holding => {
                queue.seal();
                queue.take_keeper()
            }
            _ => return Err(ErrorKind::Unavailable),
        };
        drop(state);
        drop(keeper);
        Ok(Self {
            gate: owner.gate.clone(),
            owners: vec![owner],
            over: false,
            barrier: Some(barrier),
        })
    }

    /// Whether nothing stands before the move of an owner.
    fn is_clear(&self, queue: &Queue<J>) -> bool {
        match self.barrier {
            Some(_) => queue.is_quiet(),
            None => queue.at_boundary(),
        }
    }

    /// Waits until no turn of them is under way, no lifecycle work waits, and no barrier stands but an own one. Dropping
    /// the future changes nothing.
    pub(crate) async fn boundary(&self) {
        for owner in &self.owners {
            owner.until(|queue| self.is_clear(queue)).await;
        }
    }

    /// Takes out what waits, owner by owner, and makes their queues a bounded hold for what comes from here on. Permits
    /// are given back. `None` where they are not at their boundary.
    pub(crate) fn capture(&self) -> Option<Vec<Vec<J>>> {
        let mut state = lock(&self.gate.state);
        let at_boundary = |owner: &Owner<J>, state: &mut _| owner.queue(state).is_none_or(|queue| self.is_clear(queue));
        if !self.owners.iter().all(|owner| at_boundary(owner, &mut state)) {
            return None;
        }
        let taken = self.owners.iter().map(|owner| match owner.queue(&mut state) {
            Some(queue) => {
                queue.hold();
                queue.take_jobs()
            }
            None => Vec::new(),
        });
        let taken: Vec<_> = taken.collect();
        drop(state);
        Some(taken.into_iter().map(without_permits).collect())
    }

    /// Takes out what was held since, owner by owner. More may come.
    pub(crate) fn take_held(&self) -> Vec<Vec<J>> {
        let mut state = lock(&self.gate.state);
        state.set_held((0, 0));
        let taken = self.owners.iter().map(|owner| match owner.queue(&mut state) {
            Some(queue) => queue.take_jobs(),
            None => Vec::new(),
        });
        let taken: Vec<_> = taken.collect();
        drop(state);
        taken.into_iter().map(without_permits).collect()
    }

    /// Lets them run again where they are: first what was captured, then what was held. What came without a permit
    /// starts as [`Owner::give`] says.
    pub(crate) fn reopen(mut self, captured: Vec<Vec<J>>) {
        self.over = true;
        open(&self.gate, &self.owners, captured, Vec::new());
    }

    /// Closes the owner at `of` with `kind` and admits the last that runs of it: what it does when it has left. Between
    /// both nothing is admitted.
    ///
    /// # Errors
    /// The job, where the owner was not captured, or was stopped.
    pub(crate) fn leave(&self, of: usize, kind: ErrorKind, job: J) -> Result<(), J> {
        let Some(owner) = self.owners.get(of) else {
            return Err(job);
        };
        let refusal = |queue: &mut Queue<J>| {
            if queue.phase() != Phase::Holding || queue.stopped {
                return Some(ErrorKind::InvalidOperation);
            }
            queue.closed.get_or_insert(kind);
            None
        };
        let admitted = owner.admit_control(job, refusal);
        admitted.map(drop).map_err(|rejected| rejected.job)
    }

    /// Ends them here: they are closed with `kind`, and what was held and not taken yet is returned.
    pub(crate) fn depart(mut self, kind: ErrorKind) -> Vec<Vec<J>> {
        self.over = true;
        let mut state = lock(&self.gate.state);
        state.set_held((0, 0));
        let taken = self.owners.iter().map(|owner| match owner.queue(&mut state) {
            Some(queue) => {
                queue.closed.get_or_insert(kind);
                queue.open();
                queue.take_jobs()
            }
            None => Vec::new(),
        });
        let taken: Vec<_> = taken.collect();
        let waits = self.owners.iter().flat_map(|owner| state.waits(owner.at)).collect();
        self.gate.leave(state, waits);
        taken.into_iter().map(without_permits).collect()
    }
}

impl<J: Job> Drop for Seal<J> {
    fn drop(&mut self) {
        if !self.over {
            open(&self.gate, &self.owners, Vec::new(), Vec::new());
        }
    }
}

fn without_permits<J>(jobs: Vec<(J, Option<Permit>)>) -> Vec<J> {
    jobs.into_iter().map(|(job, _)| job).collect()
}

/// The permit for the first job of a backlog, with the right to hand it on to those behind it.
#[derive(Debug)]
pub(crate) struct First {
    pub(super) permit: Permit,
    pub(super) backlog: Box<Backlog>,
}

impl First {
    /// Waits for both, as [`Backlog::poll_first`] does. Dropping the future gives up the place.
    ///
    /// # Errors
    /// Where the permits are closed.
    pub(crate) async fn of(mut backlog: Backlog) -> Result<Self, Closed> {
        let permit = poll_fn(|cx| backlog.poll_first(cx)).await?;
        Ok(Self {
            permit,
            backlog: Box::new(backlog),
        })
    }
}

/// Puts `saved` and what was relayed before all that waits, owner by owner, and lets them run: one section.
fn open<J: Job>(gate: &Arc<Inner<J>>, owners: &[Owner<J>], saved: Vec<Vec<J>>, firsts: Vec<First>) {
    let (mut saved, mut firsts) = (saved.into_iter(), firsts.into_iter());
    let mut unused = Vec::new();
    let mut state = lock(&gate.state);
    for owner in owners {
        let Some(queue) = owner.queue(&mut state) else { continue };
        let relayed = queue.take_relayed();
        let before = saved.next().unwrap_or_default().into_iter().chain(relayed);
        queue.put_before(before.map(|job| (job, None)));
        queue.open();
        if queue.wants_permit()
            && let Some(first) = firsts.next()
        {
            unused.push(queue.begin_backlog(first));
        }
        state.line_up(owner.at);
    }
    state.set_held((0, 0));
    let waits = owners.iter().flat_map(|owner| state.waits(owner.at)).collect();
    gate.leave(state, waits);
}

/// The owners of one gate that are being restored: they hold what they admit, and run nothing.
pub(crate) struct Arrival<J: Job>(Vec<Owner<J>>);

impl<J: Job> Arrival<J> {
    /// The owners of one gate of a unit that was made [`Unit::arriving`], in the order in which their saved work is.
    pub(crate) fn new(owners: Vec<Owner<J>>) -> Self {
        Self(owners)
    }

    /// Holds a record that the source had taken before its boundary: it runs before all that comes here directly.
    ///
    /// # Errors
    /// The record, where the hold is full or the owner is none of these.
    pub(crate) fn relay(&self, to: usize, job: J) -> Result<(), J> {
        let Some(owner) = self.0.get(to) else { return Err(job) };
        let mut state = lock(&owner.gate.state);
        let held = (state.held().0 + 1, state.held().1 + job.size());
        match owner.queue(&mut state).filter(|queue| queue.phase() == Phase::Holding) {
            Some(queue) if held.0 <= HOLD_RECORDS && held.1 <= HOLD_BYTES => {
                queue.push_relayed(job);
                state.set_held(held);
                Ok(())
            }
            _ => Err(job),
        }
    }

    /// Merges, in this order and owner by owner: saved work, what was relayed, what came since; and lets all of them run.
    /// `firsts` are for the owners that have saved or relayed work or held some, in their order; each further job gets the
    /// permit that the one before returns.
    pub(crate) fn open(self, saved: Vec<Vec<J>>, firsts: Vec<First>) {
        if let Some(owner) = self.0.first() {
            open(&owner.gate, &self.0, saved, firsts);
        }
    }
}

impl<J: Job> Owner<J> {
    /// Whether the next job came without a permit, and nobody hands one on to it.
    pub(crate) fn wants_permit(&self) -> bool {
        self.queue(&mut lock(&self.gate.state)).is_some_and(Queue::wants_permit)
    }

    /// Gives the next job the permit it waits for; those behind it that have none get it after it. Where no job waits for
    /// one, or has it handed on to it, nothing is kept.
    pub(crate) fn give(&self, first: First) {
        let mut state = lock(&self.gate.state);
        let Some(queue) = self.queue(&mut state) else { return };
        let unused = queue.begin_backlog(first);
        state.line_up(self.at);
        self.gate.leave(state, Vec::new());
        drop(unused);
    }
}

/// A member that may move from gate to gate within this host; whoever sends to it finds it by this.
pub(crate) struct Member<J: Job>(Mutex<Owner<J>>);

impl<J: Job> Member<J> {
    /// A member of `unit`; `None` where the unit has none.
    pub(crate) fn of(unit: &Unit<J>) -> Option<Self> {
        unit.member().map(|owner| Self(Mutex::new(owner)))
    }

    /// The owner it is now.
    pub(crate) fn owner(&self) -> Owner<J> {
        lock(&self.0).clone()
    }

    /// Admits as [`Owner::admit`] does, wherever it is.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn admit(&self, job: J, permit: Permit) -> Result<u64, super::Rejected<J>> {
        lock(&self.0).admit(job, permit)
    }

    /// Moves it, with its waiting jobs and their order, under the gate that `unit` has for members. It must be sealed by
    /// `seal`, alone and at its boundary; it runs on from there, first what `joined` makes for it there, if anything. Others
    /// of either gate notice nothing.
    ///
    /// # Errors
    /// `InvalidOperation` where it is not at its boundary, or the unit has no members.
    pub(crate) fn join(
        &self,
        mut seal: Seal<J>,
        unit: &Unit<J>,
        joined: impl FnOnce(&Owner<J>) -> Option<J>,
    ) -> Result<(), ErrorKind> {
        let mut place = lock(&self.0);
        let target = unit.member().ok_or(ErrorKind::InvalidOperation)?;
        let joined = joined(&target);
        let mut state = lock(&place.gate.state);
        let sealed = seal.owners.iter().all(|owner| owner.is(&place));
        let Some(queue) = place.queue(&mut state).filter(|queue| sealed && seal.is_clear(queue)) else {
            drop(state);
            drop(place);
            target.remove();
            if let Some(job) = joined {
                job.abandon();
            }
            return Err(ErrorKind::InvalidOperation);
        };
        seal.over = true;
        let (closed, admitted) = (queue.closed, queue.admitted);
        queue.closed = Some(ErrorKind::Unavailable);
        let jobs = queue.take_jobs();
        state.remove(place.at);
        let waits = state.waits(place.at);
        place.gate.leave(state, waits);
        let mut state = lock(&target.gate.state);
        if let Some(queue) = target.queue(&mut state) {
            queue.admitted = admitted;
            queue.closed = closed;
            queue.put_before(jobs);
            // It is empty: there is room for one.
            let full = joined.and_then(|job| queue.push_lifecycle(job, LIFECYCLE_JOBS).err());
            debug_assert!(full.is_none(), "the lane of a new owner is empty");
            state.line_up(target.at);
        }
        target.gate.leave(state, Vec::new());
        *place = target;
        drop(place);
        drop(seal);
        Ok(())
    }
}

impl<J: Job> Owner<J> {
    /// Takes it out of its gate for good, where others share that; at its boundary only.
    pub(crate) fn remove(&self) -> bool {
        let mut state = lock(&self.gate.state);
        let ended = self
            .queue(&mut state)
            .is_some_and(|queue| queue.at_boundary() && queue.is_empty());
        let removed = if ended { state.remove(self.at) } else { None };
        let waits = state.waits(self.at);
        self.gate.leave(state, waits);
        removed.is_some()
    }
}
