//! When a timer's ticks are due, and which of them are delivered when it is late.
//!
//! Pure: it is told the time and reads no clock.

use std::time::Duration;

use tokio::time::Instant;

/// What becomes of ticks that were due while none could be delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overrun {
    /// Only the last of them is delivered.
    #[default]
    SkipLateTicks,
    /// The last of them is delivered, and before it so many of those it follows.
    CatchUpBounded(u32),
    /// None is left out: the ticks that follow move back.
    DelayNextTick,
}

/// What a tick says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// Which delivery it is, from 1.
    pub delivery_index: u64,
    /// Which tick of the schedule it is, from 1.
    pub scheduled_index: u64,
    /// Ticks left out since the delivery before.
    pub skipped_ticks: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    period: Duration,
    overrun: Overrun,
    /// When the tick `scheduled` was, or would have been, due.
    last_due: Instant,
    delivered: u64,
    scheduled: u64,
}

impl Schedule {
    /// Ticks every `period`, which is not zero, from `start` on.
    pub(super) fn new(start: Instant, period: Duration, overrun: Overrun) -> Self {
        Self {
            period,
            overrun,
            last_due: start,
            delivered: 0,
            scheduled: 0,
        }
    }

    pub(super) fn period(&self) -> Duration {
        self.period
    }

    /// When the next tick is due.
    pub(super) fn due(&self) -> Instant {
        self.last_due + self.period
    }

    /// The tick to deliver at `now`, at which one is due.
    pub(super) fn deliver(&mut self, now: Instant) -> Tick {
        let late = now.saturating_duration_since(self.last_due).as_nanos() / self.period.as_nanos().max(1);
        // Even 584 years late it fits.
        let due = u64::try_from(late).unwrap_or(u64::MAX).max(1);
        let step = match self.overrun {
            Overrun::SkipLateTicks => due,
            Overrun::CatchUpBounded(ticks) => due.saturating_sub(u64::from(ticks)).max(1),
            Overrun::DelayNextTick => 1,
        };
        self.delivered += 1;
        self.scheduled += step;
        self.last_due = match self.overrun {
            Overrun::DelayNextTick => self.due().max(now),
            _ => self.last_due + Duration::from_nanos_u128(self.period.as_nanos() * u128::from(step)),
        };
        Tick {
            delivery_index: self.delivered,
            scheduled_index: self.scheduled,
            skipped_ticks: step - 1,
        }
    }

    /// The handler of the last tick has ended.
    pub(super) fn ended(&mut self, now: Instant) {
        if self.overrun == Overrun::DelayNextTick && now > self.due() {
            self.last_due = now - self.period;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn run(overrun: Overrun, at: &[f64]) -> Vec<(u64, u64, u64)> {
        let start = Instant::now();
        let mut schedule = Schedule::new(start, SECOND, overrun);
        let ticks = at.iter().map(|at| {
            let now = start + Duration::from_secs_f64(*at);
            assert!(schedule.due() <= now, "not due at {at}");
            schedule.deliver(now)
        });
        ticks
            .map(|tick| (tick.delivery_index, tick.scheduled_index, tick.skipped_ticks))
            .collect()
    }

    /// REQ: EX-65
    #[test]
    fn late_ticks_are_left_out() {
        let ticks = run(Overrun::default(), &[1.0, 2.1, 5.9, 6.0]);
        assert_eq!(ticks, [(1, 1, 0), (2, 2, 0), (3, 5, 2), (4, 6, 0)]);
    }

    /// REQ: EX-65
    #[test]
    fn late_ticks_are_made_up_for_within_bounds() {
        let ticks = run(Overrun::CatchUpBounded(1), &[1.0, 5.5, 5.5, 6.0]);
        assert_eq!(ticks, [(1, 1, 0), (2, 4, 2), (3, 5, 0), (4, 6, 0)]);
        let ticks = run(Overrun::CatchUpBounded(u32::MAX), &[3.5, 3.5, 3.5]);
        assert_eq!(ticks, [(1, 1, 0), (2, 2, 0), (3, 3, 0)]);
    }

    /// REQ: EX-65
    #[test]
    fn a_late_tick_moves_those_behind_it() {
        let start = Instant::now();
        let mut schedule = Schedule::new(start, SECOND, Overrun::DelayNextTick);
        let late = start + SECOND * 3;
        assert_eq!(schedule.deliver(late).scheduled_index, 1);
        assert_eq!(schedule.due(), late + SECOND);
        schedule.ended(late + SECOND * 5);
        assert_eq!(
            schedule.due(),
            late + SECOND * 5,
            "due as soon as its handler has ended"
        );
        assert_eq!(schedule.deliver(late + SECOND * 5).scheduled_index, 2);
    }

    proptest! {
        /// REQ: EX-65
        #[test]
        fn what_a_tick_says_adds_up(
            policy in prop_oneof![
                Just(Overrun::SkipLateTicks), (1..5_u32).prop_map(Overrun::CatchUpBounded), Just(Overrun::DelayNextTick),
            ],
            waits in prop::collection::vec(0..5_000_u64, 1..50),
        ) {
            let start = Instant::now();
            let mut schedule = Schedule::new(start, SECOND, policy);
            let (mut now, mut before) = (start, 0);
            for (number, wait) in (1..).zip(waits) {
                now = (now + Duration::from_millis(wait)).max(schedule.due());
                let tick = schedule.deliver(now);
                prop_assert_eq!(tick.delivery_index, number);
                prop_assert_eq!(tick.skipped_ticks, tick.scheduled_index - before - 1);
                prop_assert!(tick.scheduled_index >= tick.delivery_index);
                before = tick.scheduled_index;
            }
        }
    }
}
