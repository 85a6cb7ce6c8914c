//! Whether a link is alive: one probe at a time, and a limit that only its own answer moves. Pure.

use tokio::time::Instant;

use crate::limit::{PROBE_INTERVAL, PROBE_LIMIT};

/// The probes of one link.
#[derive(Debug)]
pub(super) struct Liveness {
    next_id: u64,
    outstanding: Option<u64>,
    next_probe: Instant,
    limit: Instant,
    /// How far large records had come.
    moved: u64,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Nothing,
    Probe(u64),
    Expired,
}

impl Liveness {
    /// Begins when the link becomes ready.
    pub(super) fn new(ready: Instant) -> Self {
        Self {
            next_id: 1,
            outstanding: None,
            next_probe: ready + PROBE_INTERVAL,
            limit: ready + PROBE_LIMIT,
            moved: 0,
        }
    }

    /// Looks at the clock. While the link's data is `held`, on purpose, its limit does not run; nor does it while
    /// `moved` rises, since no probe and no answer can pass the large record that is under way.
    pub(super) fn tick(&mut self, now: Instant, held: bool, moved: u64) -> Action {
        let held = std::mem::replace(&mut self.moved, moved) != moved || held;
        if held {
            self.limit = now + PROBE_LIMIT;
        }
        if now >= self.limit {
            return Action::Expired;
        }
        if held || now < self.next_probe {
            return Action::Nothing;
        }
        self.next_probe = now + PROBE_INTERVAL;
        let id = *self.outstanding.get_or_insert(self.next_id);
        Action::Probe(id)
    }

    /// An answer came. Only the first to the outstanding probe counts.
    pub(super) fn answered(&mut self, now: Instant, id: u64) {
        if self.outstanding == Some(id) {
            self.outstanding = None;
            self.next_id += 1;
            self.limit = now + PROBE_LIMIT;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    /// REQ: NET-901, NET-902
    #[tokio::test(start_paused = true)]
    async fn one_probe_is_repeated_until_its_own_answer_comes() {
        let start = Instant::now();
        let mut link = Liveness::new(start);
        assert_eq!(link.tick(at(start, 4), false, 0), Action::Nothing);
        assert_eq!(link.tick(at(start, 5), false, 0), Action::Probe(1));
        assert_eq!(link.tick(at(start, 6), false, 0), Action::Nothing);
        assert_eq!(
            link.tick(at(start, 10), false, 0),
            Action::Probe(1),
            "the same one, as it was not answered"
        );
        link.answered(at(start, 11), 2);
        link.answered(at(start, 11), 0);
        assert_eq!(
            link.tick(at(start, 15), false, 0),
            Action::Expired,
            "foreign answers restart nothing"
        );

        let mut link = Liveness::new(start);
        assert_eq!(link.tick(at(start, 5), false, 0), Action::Probe(1));
        link.answered(at(start, 6), 1);
        assert_eq!(link.tick(at(start, 10), false, 0), Action::Probe(2));
        link.answered(at(start, 14), 1);
        assert_eq!(link.tick(at(start, 20), false, 0), Action::Probe(2));
        assert_eq!(
            link.tick(at(start, 21), false, 0),
            Action::Expired,
            "15 s after the answer of second 6"
        );
    }

    /// REQ: PM-84
    #[tokio::test(start_paused = true)]
    async fn the_limit_stands_still_while_data_is_held_and_then_runs_in_full() {
        let start = Instant::now();
        let mut link = Liveness::new(start);
        for second in 1..100 {
            assert_eq!(link.tick(at(start, second), true, 0), Action::Nothing);
        }
        assert_eq!(link.tick(at(start, 100), false, 0), Action::Probe(1));
        assert_eq!(link.tick(at(start, 113), false, 0), Action::Probe(1));
        assert_eq!(
            link.tick(at(start, 114), false, 0),
            Action::Expired,
            "15 s after second 99"
        );
    }

    /// REQ: PM-84
    #[tokio::test(start_paused = true)]
    async fn the_limit_stands_still_only_while_a_large_record_moves() {
        let start = Instant::now();
        let mut link = Liveness::new(start);
        for second in 1..100 {
            assert_eq!(link.tick(at(start, second), false, second), Action::Nothing);
        }
        assert_eq!(link.tick(at(start, 113), false, 99), Action::Probe(1));
        assert_eq!(
            link.tick(at(start, 114), false, 99),
            Action::Expired,
            "15 s after it moved last"
        );
    }
}
