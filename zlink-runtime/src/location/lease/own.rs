//! A host's own lease: what it last wrote, until when it may start owned work, and what must come first. Pure.
//!
//! A renewal is conditioned on the revision of the one before. Where it is applied, nobody has taken the lease in between;
//! but once the deadline has passed, what the host owns is read again before it goes on.

use crate::location::boot::BootTime;
use crate::location::{Condition, Key, LocationTiming, Revision};

/// The lease of this host.
#[derive(Debug)]
pub(super) struct OwnLease {
    timing: LocationTiming,
    /// The revision of the last write that is known; `None` where the lease is not there.
    revision: Option<Revision>,
    generation: Option<Revision>,
    /// Usable until then; of the last write that is known to be applied.
    deadline: BootTime,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Owned work may start until the deadline.
    Open,
    /// It may not, until the lease is renewed and what the host owns was read again.
    Closed,
    /// It never may: another run has this identity.
    Fenced,
}

/// What stands in the store where a write met a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The write itself, whose answer was lost.
    Ours(Revision),
    /// The lease of this run, written by somebody else.
    Touched(Revision),
    /// Nothing.
    Missing,
    /// The lease of another run.
    Foreign,
}

impl OwnLease {
    pub(super) fn new(timing: LocationTiming) -> Self {
        Self {
            timing,
            revision: None,
            generation: None,
            deadline: BootTime::ZERO,
            phase: Phase::Closed,
        }
    }

    pub(super) fn revision(&self) -> Option<Revision> {
        self.revision
    }

    pub(super) fn generation(&self) -> Option<Revision> {
        self.generation
    }

    pub(super) fn is_fenced(&self) -> bool {
        self.phase == Phase::Fenced
    }

    /// Whether the host must renew and read what it owns before it writes anything else.
    pub(super) fn is_closed(&self) -> bool {
        self.phase != Phase::Open
    }

    /// Until when owned work may start; zero where it may not.
    pub(super) fn admission(&self) -> BootTime {
        match self.phase {
            Phase::Open => self.deadline,
            Phase::Closed | Phase::Fenced => BootTime::ZERO,
        }
    }

    /// What every write of this host is conditioned on.
    pub(super) fn condition(&self, key: Key) -> Condition {
        match self.revision {
            Some(revision) => Condition::Version(key, revision),
            None => Condition::Missing(key),
        }
    }

    /// Looks at the clock: a deadline that has passed closes.
    pub(super) fn look(&mut self, now: BootTime) {
        if self.phase == Phase::Open && now >= self.deadline {
            self.phase = Phase::Closed;
        }
    }

    /// A write that was begun at `begun` was applied; its answer came at `now`.
    pub(super) fn applied(&mut self, begun: BootTime, revision: Revision, now: BootTime) {
        self.look(now);
        self.revision = Some(revision);
        self.generation.get_or_insert(revision);
        self.deadline = self.deadline.max(begun.saturating_add(self.timing.usable()));
    }

    /// A write met a conflict, and this is there. `begun` is when that write was first begun.
    pub(super) fn conflicted(&mut self, begun: BootTime, found: Found, now: BootTime) {
        match found {
            Found::Ours(revision) => self.applied(begun, revision, now),
            Found::Touched(revision) => {
                self.revision = Some(revision);
                self.close();
            }
            Found::Missing => {
                self.revision = None;
                self.close();
            }
            Found::Foreign => self.fence(),
        }
    }

    /// What the host owns was read after the last write, and is as the host knows it.
    pub(super) fn confirmed(&mut self, now: BootTime) {
        if self.phase == Phase::Closed && self.revision.is_some() && now < self.deadline {
            self.phase = Phase::Open;
        }
    }

    /// Another run has this identity. There is no way back.
    pub(super) fn fence(&mut self) {
        self.phase = Phase::Fenced;
    }

    fn close(&mut self) {
        if self.phase == Phase::Open {
            self.phase = Phase::Closed;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const fn at(seconds: u64) -> BootTime {
        Duration::from_secs(seconds)
    }

    fn revision(number: u64) -> Revision {
        Revision::new(number).unwrap()
    }

    fn held() -> OwnLease {
        let mut lease = OwnLease::new(LocationTiming::default());
        assert_eq!(lease.admission(), at(0));
        lease.applied(at(100), revision(1), at(101));
        lease.confirmed(at(101));
        assert_eq!(lease.admission(), at(110), "15 s - 5 s after the write was begun");
        lease
    }

    /// REQ: LS-031
    #[test]
    fn the_deadline_counts_from_before_the_write() {
        let mut lease = held();
        lease.applied(at(105), revision(2), at(109));
        assert_eq!(lease.admission(), at(115), "an answer that took 4 s leaves 6 s");
        lease.look(at(114));
        assert!(!lease.is_closed());
        lease.look(at(115));
        assert!(lease.is_closed());
        assert_eq!(lease.admission(), at(0));
    }

    /// REQ: LS-033
    #[test]
    fn after_the_deadline_a_renewal_alone_opens_nothing() {
        let mut lease = held();
        lease.look(at(200));
        lease.applied(at(200), revision(2), at(201));
        assert_eq!(lease.admission(), at(0), "renewed, and not yet confirmed");
        lease.confirmed(at(202));
        assert_eq!(lease.admission(), at(210));
    }

    #[test]
    fn an_answer_that_comes_after_the_deadline_opens_nothing() {
        let mut lease = held();
        lease.applied(at(105), revision(2), at(111));
        assert_eq!(lease.admission(), at(0), "the deadline of the write before had passed");
        lease.confirmed(at(120));
        assert_eq!(lease.admission(), at(0), "and now this one's has, too");
    }

    /// REQ: LS-022
    #[test]
    fn renewals_keep_the_generation() {
        let mut lease = held();
        lease.applied(at(102), revision(9), at(102));
        lease.conflicted(at(103), Found::Missing, at(104));
        assert_eq!(
            lease.condition(Key::new("k").unwrap()),
            Condition::Missing(Key::new("k").unwrap())
        );
        assert!(lease.is_closed(), "somebody counted this host out");
        lease.applied(at(104), revision(12), at(105));
        assert_eq!(
            (lease.generation(), lease.revision()),
            (Some(revision(1)), Some(revision(12)))
        );
    }

    /// REQ: LS-034
    #[test]
    fn another_run_fences_for_good() {
        let mut lease = held();
        lease.conflicted(at(103), Found::Foreign, at(104));
        lease.applied(at(104), revision(12), at(104));
        lease.confirmed(at(104));
        assert!(lease.is_fenced());
        assert_eq!(lease.admission(), at(0));
    }

    /// REQ: LS-100
    #[test]
    fn a_lost_answer_counts_from_the_first_attempt() {
        let mut lease = held();
        lease.conflicted(at(103), Found::Ours(revision(2)), at(108));
        assert_eq!((lease.admission(), lease.revision()), (at(113), Some(revision(2))));
        lease.conflicted(at(108), Found::Touched(revision(5)), at(109));
        assert!(lease.is_closed());
    }
}
