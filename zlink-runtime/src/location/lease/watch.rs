//! Which leases of other hosts are dead, by this host's own clock. Pure: no clock of the store, of the owner or of the
//! day has a say.
//!
//! A lease is dead once its revision has stood for its TTL and the margin. It must be seen to stand: after a time in
//! which the store could not be read, nobody is counted out before every living host has had time to renew.

use std::collections::HashMap;
use std::time::Duration;

use crate::location::boot::BootTime;
use crate::location::name::OwnerId;
use crate::location::{LocationTiming, Revision, Stored};

use super::LeaseValue;

/// A lease, as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseSeen {
    revision: Revision,
    generation: Revision,
    ttl: Duration,
}

impl LeaseSeen {
    /// What the store holds under a lease's key; `None` where it is no lease.
    pub(crate) fn from_stored(stored: &Stored) -> Option<Self> {
        match LeaseValue::from_bytes(&stored.value) {
            Ok(value) => Some(Self {
                revision: stored.revision,
                generation: value.generation.unwrap_or(stored.revision),
                ttl: value.ttl,
            }),
            Err(error) => {
                tracing::warn!(target: "zlink::runtime", %error, "a lease cannot be read");
                None
            }
        }
    }
}

/// How the host of a lease stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It may be alive.
    Alive {
        /// Of its lease.
        generation: Revision,
        /// Of the write that was seen last.
        revision: Revision,
    },
    /// It is not, and its lease is still there with this revision.
    Dead(Revision),
    /// It has none: it has ended, or was counted out.
    Gone,
}

/// What this host has seen of the leases of others.
#[derive(Debug)]
pub(crate) struct LeaseWatch {
    timing: LocationTiming,
    leases: HashMap<OwnerId, Looked>,
    /// Since when every read has succeeded, none long after the one before.
    readable_since: Option<BootTime>,
    last_read: BootTime,
}

/// The last read of a lease.
#[derive(Debug)]
struct Looked {
    begun: BootTime,
    seen: Option<Seen>,
}

#[derive(Debug)]
struct Seen {
    lease: LeaseSeen,
    /// When its revision was first seen.
    since: BootTime,
    /// Once judged dead, a revision stays dead.
    dead: bool,
}

impl LeaseWatch {
    pub(crate) fn new(timing: LocationTiming) -> Self {
        Self {
            timing,
            leases: HashMap::new(),
            readable_since: None,
            last_read: BootTime::ZERO,
        }
    }

    /// The owners that are watched.
    pub(crate) fn owners(&self) -> Vec<OwnerId> {
        let mut owners: Vec<_> = self.leases.keys().copied().collect();
        owners.sort_unstable();
        owners
    }

    /// Watches nobody but those that `wanted` names.
    pub(crate) fn retain(&mut self, wanted: impl Fn(&OwnerId) -> bool) {
        self.leases.retain(|owner, _| wanted(owner));
    }

    /// A read of leases was begun at `begun` and answered at `now`. Owners that are not in `read` stay as they are, and those
    /// of which a read that was begun later was answered before.
    pub(crate) fn read(
        &mut self,
        begun: BootTime,
        now: BootTime,
        read: impl IntoIterator<Item = (OwnerId, Option<LeaseSeen>)>,
    ) {
        let patience = self.timing.patience();
        if self.readable_since.is_none() || begun.saturating_sub(self.last_read) > patience {
            self.readable_since = Some(now);
        }
        self.last_read = now;
        let readable = self
            .readable_since
            .map_or(Duration::ZERO, |since| begun.saturating_sub(since));
        for (owner, lease) in read {
            let looked = self.leases.entry(owner).or_insert(Looked { begun, seen: None });
            if looked.begun > begun {
                continue;
            }
            looked.begun = begun;
            match (&mut looked.seen, lease) {
                (Some(seen), Some(lease)) if seen.lease.revision == lease.revision => {
                    let limit = lease.ttl.saturating_add(self.timing.fencing_margin);
                    seen.dead |= begun.saturating_sub(seen.since) >= limit && readable >= patience;
                }
                (seen, lease) => {
                    *seen = lease.map(|lease| Seen {
                        lease,
                        since: now,
                        dead: false,
                    });
                }
            }
        }
    }

    /// Until when that run of a host may begin work that it owns, by what was read of its lease: the host renewed it before
    /// that was read first. `None` where it is not alive, or nothing was read.
    pub(crate) fn admission(&self, owner: &OwnerId, generation: Revision) -> Option<BootTime> {
        let seen = self.leases.get(owner)?.seen.as_ref()?;
        let usable = seen.lease.ttl.saturating_sub(self.timing.fencing_margin);
        (!seen.dead && seen.lease.generation == generation).then(|| seen.since.saturating_add(usable))
    }

    /// How that host stands, by all that was read; `None` where nothing was.
    pub(crate) fn standing(&self, owner: &OwnerId) -> Option<Standing> {
        Some(match &self.leases.get(owner)?.seen {
            None => Standing::Gone,
            Some(seen) if seen.dead => Standing::Dead(seen.lease.revision),
            Some(seen) => Standing::Alive {
                generation: seen.lease.generation,
                revision: seen.lease.revision,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OWNER: OwnerId = OwnerId::new([7; 16]);

    fn lease(revision: u64) -> LeaseSeen {
        LeaseSeen {
            revision: Revision::new(revision).unwrap(),
            generation: Revision::new(1).unwrap(),
            ttl: Duration::from_secs(15),
        }
    }

    fn at(millis: u64) -> BootTime {
        Duration::from_millis(millis)
    }

    fn is_dead(watch: &LeaseWatch) -> bool {
        matches!(watch.standing(&OWNER), Some(Standing::Dead(_)))
    }

    /// REQ: LS-036
    #[test]
    fn a_lease_is_dead_after_its_ttl_and_the_margin_on_the_watchers_clock() {
        let mut watch = LeaseWatch::new(LocationTiming::default());
        assert_eq!(watch.standing(&OWNER), None);
        let mut now = 1_000_000;
        watch.read(at(now), at(now + 5), [(OWNER, Some(lease(4)))]);
        let first = now + 5;
        while now < first + 19_000 {
            now += 1000;
            watch.read(at(now), at(now + 5), [(OWNER, Some(lease(4)))]);
            assert!(!is_dead(&watch), "after {} ms", now - first);
        }
        watch.read(at(first + 19_999), at(first + 20_300), [(OWNER, Some(lease(4)))]);
        assert!(!is_dead(&watch), "what counts is when the read was begun");
        watch.read(at(first + 20_000), at(first + 20_300), [(OWNER, Some(lease(4)))]);
        assert_eq!(watch.standing(&OWNER), Some(Standing::Dead(lease(4).revision)));

        watch.read(at(first + 21_000), at(first + 21_000), [(OWNER, Some(lease(9)))]);
        assert!(!is_dead(&watch), "a late renewal is a new revision");
        watch.read(at(first + 22_000), at(first + 22_000), [(OWNER, None)]);
        assert_eq!(watch.standing(&OWNER), Some(Standing::Gone));
    }

    /// REQ: RT-004, RT-005
    #[test]
    fn a_run_may_begin_work_until_its_lease_less_the_margin() {
        let mut watch = LeaseWatch::new(LocationTiming::default());
        let run = lease(4).generation;
        assert_eq!(watch.admission(&OWNER, run), None);
        watch.read(at(100), at(105), [(OWNER, Some(lease(4)))]);
        watch.read(at(1_100), at(1_105), [(OWNER, Some(lease(4)))]);
        assert_eq!(
            watch.admission(&OWNER, run),
            Some(at(10_105)),
            "not renewed since it was seen first"
        );
        watch.read(at(6_000), at(6_005), [(OWNER, Some(lease(9)))]);
        assert_eq!(
            watch.admission(&OWNER, run),
            Some(at(16_005)),
            "one renewal, for all that it owns"
        );
        assert_eq!(watch.admission(&OWNER, lease(9).revision), None, "another run is meant");
        watch.read(at(7_000), at(7_005), [(OWNER, None)]);
        assert_eq!(watch.admission(&OWNER, run), None, "it has no lease");
    }

    /// Of two reads that are under way at once the one that was begun later says more, in whatever order they are answered.
    ///
    /// REQ: LS-036, RT-004
    #[test]
    fn an_answer_that_comes_late_tells_nothing_new() {
        let (mut watch, run) = (LeaseWatch::new(LocationTiming::default()), lease(4).generation);
        watch.read(at(100), at(105), [(OWNER, Some(lease(4)))]);
        watch.read(at(10_000), at(10_100), [(OWNER, Some(lease(9)))]);
        let until = watch.admission(&OWNER, run);
        assert_eq!(until, Some(at(20_100)));
        for late in [Some(lease(4)), None] {
            watch.read(at(9_900), at(12_900), [(OWNER, late)]);
            assert_eq!(watch.admission(&OWNER, run), until);
        }
        for second in 13..=30 {
            watch.read(at(second * 1000), at(second * 1000), [(OWNER, Some(lease(9)))]);
            assert_eq!(watch.admission(&OWNER, run), until);
        }
        assert!(!is_dead(&watch));
        watch.read(at(30_100), at(30_100), [(OWNER, Some(lease(9)))]);
        assert!(is_dead(&watch), "it has stood since it was seen first");
        watch.read(at(12_000), at(31_000), [(OWNER, Some(lease(4)))]);
        assert!(is_dead(&watch));
    }

    /// REQ: LS-036, LS-105
    #[test]
    fn after_an_outage_everybody_first_gets_time_to_renew() {
        let mut watch = LeaseWatch::new(LocationTiming::default());
        for second in 0..10 {
            watch.read(at(second * 1000), at(second * 1000), [(OWNER, Some(lease(4)))]);
        }
        watch.read(at(70_000), at(70_000), [(OWNER, Some(lease(4)))]);
        assert!(!is_dead(&watch), "it stood for 70 s, but nobody could renew");
        for millis in [71_000, 74_000, 77_999] {
            watch.read(at(millis), at(millis), [(OWNER, Some(lease(4)))]);
            assert!(!is_dead(&watch), "5 s + 3 s have not passed");
        }
        watch.read(at(78_000), at(78_000), [(OWNER, Some(lease(4)))]);
        assert!(is_dead(&watch));
        watch.read(at(170_000), at(170_000), [(OWNER, Some(lease(4)))]);
        assert!(is_dead(&watch), "a dead one stays out over an outage");
    }

    proptest! {
        /// A host that renews before its own deadline is never counted out, whatever the order and speed of reads.
        ///
        /// REQ: LS-036
        #[test]
        fn whoever_renews_in_time_lives(reads in prop::collection::vec((1_u64..6_000, 0_u64..3_000), 1..80), phase in 0_u64..10_000) {
            let mut watch = LeaseWatch::new(LocationTiming::default());
            let mut now = 0;
            for (pause, took) in reads {
                now += pause;
                // The store shows the state of some moment within the read.
                let seen = now + took / 2;
                watch.read(at(now), at(now + took), [(OWNER, Some(lease(1 + (seen + phase) / 10_000)))]);
                prop_assert!(!is_dead(&watch));
                now += took;
            }
        }
    }
}
