//! The queue of one owner: its two lanes, and what keeps work in them from starting.
//!
//! It knows no gate and no lock: its gate asks what may start, under the gate's lock.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use super::Job;
use super::lane::Lane;
use super::seal::First;
use crate::error::ErrorKind;
use crate::permit::{Backlog, Permit};

/// One entry of an application lane.
pub(super) enum Entry<J> {
    /// A job, and its permit; backlog that moved here gets one when it is its turn.
    Work(J, Option<Permit>),
    /// A turn that gave its gate back and goes on, by its place.
    Resume(u32),
    /// A barrier: what came after it waits for its end.
    Barrier,
}

/// Whether what is admitted may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// Jobs are admitted and stay; turns that were accepted go on to their end.
    Sealed,
    /// The same, and the queue is a bounded hold: jobs in it have no permits.
    Holding,
}

pub(super) struct Queue<J: Job> {
    /// Tells it from an earlier owner in the same place.
    pub(super) serial: u32,
    /// One job at a time is under way, from its start to its end, also while it has given its gate back.
    claims: bool,
    busy: bool,
    /// Whether it stands in its gate's line for the lane.
    pub(super) in_line: [bool; 2],
    pub(super) stopped: bool,
    phase: Phase,
    /// Moves that keep it from starting jobs; they nest where a Join was there before its unit was sealed.
    seals: u8,
    /// Why nothing is admitted, or `None`.
    pub(super) closed: Option<ErrorKind>,
    barrier: bool,
    /// Where a turn that holds the claim goes on: the place after its own, so that it takes four bytes.
    resume: Option<NonZeroU32>,
    /// Turns that wait in the lane to go on.
    resumes: u32,
    /// Turns that have started and not ended.
    pub(super) active: u32,
    pub(super) panicked: u32,
    pub(super) admitted: u64,
    application: VecDeque<Entry<J>>,
    #[expect(clippy::box_collection, reason = "an idle owner keeps one word for it, not four")]
    lifecycle: Option<Box<VecDeque<J>>>,
    /// Records that a source relayed from before its boundary.
    #[expect(clippy::box_collection, reason = "an idle owner keeps one word for it, not three")]
    relayed: Option<Box<Vec<J>>>,
    /// The right to hand a permit on from job to job, while there is backlog to hand it on to.
    keeper: Option<Box<Backlog>>,
}

/// What a gate runs next for an owner.
pub(super) enum Taken {
    Job,
    Resume(u32),
}

/// Where the worker of a gate gets the job that starts: jobs are large, and this way one is moved once.
pub(super) type Work<J> = Option<Entry<J>>;

impl<J: Job> Queue<J> {
    pub(super) fn new(serial: u32, claims: bool, phase: Phase) -> Self {
        Self {
            serial,
            claims,
            busy: false,
            in_line: [false; 2],
            stopped: false,
            phase,
            seals: 0,
            closed: None,
            barrier: false,
            resume: None,
            resumes: 0,
            active: 0,
            panicked: 0,
            admitted: 0,
            application: VecDeque::new(),
            lifecycle: None,
            relayed: None,
            keeper: None,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// Starts no job from here on.
    pub(super) fn seal(&mut self) {
        self.seals += 1;
        self.phase = Phase::Sealed;
    }

    /// What waits has been taken out: from here on it is a bounded hold.
    pub(super) fn hold(&mut self) {
        self.phase = Phase::Holding;
    }

    /// A move that kept it from starting jobs is over.
    pub(super) fn open(&mut self) {
        self.seals = self.seals.saturating_sub(1);
        self.phase = if self.seals == 0 { Phase::Open } else { Phase::Sealed };
    }

    pub(super) fn push(&mut self, job: J, permit: Option<Permit>) {
        self.admitted += 1;
        self.application.push_back(Entry::Work(job, permit));
    }

    /// Adds what its source had taken before its boundary.
    pub(super) fn push_relayed(&mut self, job: J) {
        self.admitted += 1;
        self.relayed.get_or_insert_default().push(job);
    }

    pub(super) fn take_relayed(&mut self) -> Vec<J> {
        self.relayed.take().map_or_else(Vec::new, |relayed| *relayed)
    }

    /// How much lifecycle work waits.
    #[inline]
    fn controls(&self) -> usize {
        self.lifecycle.as_ref().map_or(0, |lifecycle| lifecycle.len())
    }

    fn relayed(&self) -> usize {
        self.relayed.as_ref().map_or(0, |relayed| relayed.len())
    }

    /// Adds lifecycle work, unless there is too much of it.
    pub(super) fn push_lifecycle(&mut self, job: J, limit: usize) -> Result<(), J> {
        if self.controls() >= limit {
            return Err(job);
        }
        self.admitted += 1;
        self.lifecycle.get_or_insert_default().push_back(job);
        Ok(())
    }

    /// A turn that gave its gate back may go on: as the claim's own next job, else behind what waits already.
    pub(super) fn push_resume(&mut self, place: u32) {
        if self.claims {
            self.resume = Some(NonZeroU32::MIN.saturating_add(place));
        } else {
            self.resumes += 1;
            self.application.push_back(Entry::Resume(place));
        }
    }

    /// Whether the lane has something that may start now.
    #[inline]
    pub(super) fn is_ready(&self, lane: Lane) -> bool {
        if self.stopped {
            return false;
        }
        if self.busy {
            return lane == Lane::Application && self.resume.is_some();
        }
        match lane {
            Lane::Lifecycle => self.controls() > 0,
            Lane::Application => match self.application.front() {
                None => false,
                Some(Entry::Work(_, Some(_))) if self.phase == Phase::Open => true,
                _ => self.resumes > 0,
            },
        }
    }

    /// Takes what may start now, as [`is_ready`](Self::is_ready) said of the lane; a job goes into `work`.
    #[inline(always)]
    pub(super) fn take(&mut self, lane: Lane, work: &mut Work<J>) -> Option<Taken> {
        if let Some(after) = self.resume.take() {
            return Some(Taken::Resume(after.get() - 1));
        }
        match lane {
            Lane::Lifecycle => *work = Some(Entry::Work(self.lifecycle.as_mut()?.pop_front()?, None)),
            Lane::Application => match self.application.front() {
                Some(Entry::Work(_, Some(_))) if self.phase == Phase::Open => {
                    // Nothing is in there, and where the compiler sees that, it drops nothing and moves once.
                    if work.is_none() {
                        *work = self.application.pop_front();
                    }
                }
                _ => return self.take_resume(),
            },
        }
        self.active += 1;
        self.busy = self.claims;
        Some(Taken::Job)
    }

    /// Whatever keeps jobs back, turns that have begun go on.
    fn take_resume(&mut self) -> Option<Taken> {
        let is_resume = |entry: &Entry<J>| matches!(entry, Entry::Resume(_));
        let at = self.application.iter().position(is_resume)?;
        let Some(Entry::Resume(place)) = self.application.remove(at) else {
            return None;
        };
        self.resumes -= 1;
        Some(Taken::Resume(place))
    }

    /// Whether the lane holds anything, ready or not.
    pub(super) fn has(&self, lane: Lane) -> bool {
        match lane {
            Lane::Application => !self.application.is_empty() || self.resume.is_some(),
            Lane::Lifecycle => self.controls() > 0,
        }
    }

    /// The next job, whether or not a barrier keeps it back.
    fn next_work(&mut self) -> Option<&mut Entry<J>> {
        let behind = usize::from(matches!(self.application.front(), Some(Entry::Barrier)));
        self.application.get_mut(behind)
    }

    /// Whether the next job may start but for a permit.
    fn lacks_permit(&mut self) -> bool {
        matches!(self.next_work(), Some(Entry::Work(_, None))) && self.phase == Phase::Open
    }

    /// Whether the next job waits for a permit that nobody hands on to it.
    pub(super) fn wants_permit(&mut self) -> bool {
        self.keeper.is_none() && self.lacks_permit()
    }

    /// Gives the next job the permit it waits for, and those behind it the right to have it after it. What is left over is
    /// returned, as by [`hand_on`](Self::hand_on).
    pub(super) fn begin_backlog(&mut self, first: First) -> (Option<Permit>, Option<Box<Backlog>>) {
        if !self.wants_permit() {
            return (Some(first.permit), Some(first.backlog));
        }
        self.keeper = Some(first.backlog);
        self.hand_on(first.permit)
    }

    /// Whether the permit of the job that starts goes to the one after it.
    #[inline]
    pub(super) fn hands_on(&mut self) -> bool {
        self.keeper.is_some() && self.lacks_permit()
    }

    /// Gives the permit of a turn that has begun to the next job of the backlog. What is left over is returned, to be dropped
    /// under no lock: the permit where no job can have it, and the right to hand it on with the last job that can.
    pub(super) fn hand_on(&mut self, mut permit: Permit) -> (Option<Permit>, Option<Box<Backlog>>) {
        if !self.hands_on() {
            return (Some(permit), self.keeper.take());
        }
        if let Some(Entry::Work(_, place)) = self.next_work() {
            permit.queue();
            *place = Some(permit);
        }
        // Backlog stands before all that came since, so this ends early, or once.
        let goes_on = self
            .application
            .iter()
            .any(|entry| matches!(entry, Entry::Work(_, None)));
        (None, if goes_on { None } else { self.keeper.take() })
    }

    /// Takes the right to hand a permit on: what waits has ended, or moves.
    pub(super) fn take_keeper(&mut self) -> Option<Box<Backlog>> {
        self.keeper.take()
    }

    /// A turn has ended.
    pub(super) fn ended(&mut self, panicked: bool) {
        self.active -= 1;
        self.panicked += u32::from(panicked);
        self.busy = false;
    }

    /// Jobs that have not started.
    pub(super) fn waiting(&self) -> usize {
        let others = self.resumes as usize + usize::from(self.barrier);
        self.application.len() - others.min(self.application.len()) + self.controls() + self.relayed()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.application.is_empty() && self.controls() == 0 && self.relayed() == 0
    }

    /// Whether no turn is under way, no lifecycle work waits and no barrier stands: from a seal on it stays so.
    pub(super) fn at_boundary(&self) -> bool {
        self.is_quiet() && !self.barrier
    }

    /// The same, for whom the barrier is.
    pub(super) fn is_quiet(&self) -> bool {
        self.active == 0 && self.controls() == 0
    }

    /// Whether what is asked of an owner that ends or moves may have come about: all has ended, or is at the boundary. Whether
    /// a barrier stands is for who asks: it may be theirs.
    pub(super) fn may_be_at_rest(&self) -> bool {
        self.is_quiet() && (self.phase != Phase::Open || self.closed.is_some() && self.is_empty())
    }

    /// Whether it is closed and all of it has ended. What moves may come back until the move is over.
    pub(super) fn is_drained(&self) -> bool {
        let moves = self.phase != Phase::Open && !self.stopped;
        self.closed.is_some() && !moves && self.active == 0 && self.is_empty()
    }

    pub(super) fn is_barred(&self) -> bool {
        self.barrier
    }

    /// Places the barrier behind what waits, or before it.
    pub(super) fn bar(&mut self, before: bool) {
        self.barrier = true;
        if before {
            self.application.push_front(Entry::Barrier);
        } else {
            self.application.push_back(Entry::Barrier);
        }
    }

    pub(super) fn unbar(&mut self) {
        self.barrier = false;
        self.application.retain(|entry| !matches!(entry, Entry::Barrier));
    }

    /// Takes every job of the application lane out, in order. What else is in it stays.
    pub(super) fn take_jobs(&mut self) -> Vec<(J, Option<Permit>)> {
        let (mut jobs, mut rest) = (Vec::new(), VecDeque::new());
        for entry in std::mem::take(&mut self.application) {
            match entry {
                Entry::Work(job, permit) => jobs.push((job, permit)),
                other => rest.push_back(other),
            }
        }
        self.application = rest;
        jobs
    }

    /// Puts jobs before all that waits: they were accepted earlier.
    pub(super) fn put_before(&mut self, jobs: impl IntoIterator<Item = (J, Option<Permit>)>) {
        let behind = std::mem::take(&mut self.application);
        self.application = jobs.into_iter().map(|(job, permit)| Entry::Work(job, permit)).collect();
        self.application.extend(behind);
    }

    /// Takes out all that has not started: it will not.
    pub(super) fn clear(&mut self) -> Vec<(J, Option<Permit>)> {
        let mut jobs = self.take_jobs();
        let controls = self.lifecycle.take().into_iter().flat_map(|lifecycle| *lifecycle);
        jobs.extend(controls.map(|job| (job, None)));
        jobs.extend(self.take_relayed().into_iter().map(|job| (job, None)));
        self.application.clear();
        self.resumes = 0;
        self.resume = None;
        jobs
    }

    /// Gives memory back that an idle owner does not need.
    pub(super) fn shrink(&mut self) {
        if self.application.is_empty() {
            self.application = VecDeque::new();
        }
        if self.controls() == 0 {
            self.lifecycle = None;
        }
    }
}
