//! How long to wait before the next attempt: exponential with full jitter, or about a minute. Pure; randomness is handed in.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(50);
const MOST: Duration = Duration::from_secs(5);
/// What was there for this long was worth dialling at once again; what ends sooner counts as a failure.
const STEADY: Duration = Duration::from_secs(1);

/// The pauses between attempts on one intent.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// An attempt succeeded, for that long: where that was long enough, the next failure waits briefly again.
    pub(crate) fn ready_for(&mut self, time: Duration) {
        if time >= STEADY {
            self.failures = 0;
        }
    }

    /// The pause after one more failure: evenly spread from 1 ms to a bound that doubles up to 5 s.
    pub(crate) fn next(&mut self, random: u64) -> Duration {
        let bound = FIRST.saturating_mul(1 << self.failures.min(10)).min(MOST);
        self.failures = self.failures.saturating_add(1);
        let nanos = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(random % nanos).max(Duration::from_millis(1))
    }
}

/// The pause after a refusal that stands until somebody changes something: 45 s to 75 s.
pub(super) fn after_refusal(random: u64) -> Duration {
    Duration::from_millis(45_000 + random % 30_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_five_seconds_and_are_spread_over_the_whole_range() {
        let mut backoff = Backoff::default();
        for bound_ms in [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000] {
            let bound = Duration::from_millis(bound_ms);
            let nanos = bound_ms * 1_000_000;
            let mut low = Backoff {
                failures: backoff.failures,
            };
            assert_eq!(
                low.next(nanos),
                Duration::from_millis(1),
                "a multiple of the bound is no pause, but never 0"
            );
            assert_eq!(backoff.next(nanos - 1), bound - Duration::from_nanos(1));
        }
        backoff.ready_for(STEADY - Duration::from_millis(1));
        assert_eq!(backoff.next(0), Duration::from_millis(1));
        let bound = u64::try_from(MOST.as_nanos()).unwrap();
        assert!(backoff.next(bound - 1) > FIRST, "it was there for too short a time");
        backoff.ready_for(STEADY);
        assert!(backoff.next(u64::MAX) < FIRST);
    }

    #[test]
    fn a_refusal_is_asked_about_again_once_a_minute() {
        for random in [0, 1, 29_999, 30_000, u64::MAX] {
            assert!((45..75).contains(&after_refusal(random).as_secs()));
        }
    }
}
