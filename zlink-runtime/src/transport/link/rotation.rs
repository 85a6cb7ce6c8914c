//! How much one lane hands on before others have their turn: records, bytes and time, whichever comes first.
//!
//! Whoever has had a share goes to the end of the runtime's queue of ready tasks, so the next share is that of the lane
//! behind it; what is left waits where it is. It must not know what a record is.

use tokio::time::Instant;

use crate::limit::{ROTATION_BYTES, ROTATION_RECORDS, ROTATION_TIME};

/// Between two looks at the clock, in records.
const LOOK: usize = 16;

/// The share of one lane, as far as it is used.
#[derive(Debug, Default)]
pub(in crate::transport) struct Rotation {
    records: usize,
    bytes: usize,
    since: Option<Instant>,
    late: bool,
}

impl Rotation {
    /// Records are about to be handed on.
    pub(in crate::transport) fn begin(&mut self, now: Instant) {
        let since = *self.since.get_or_insert(now);
        self.late |= now.saturating_duration_since(since) >= ROTATION_TIME;
    }

    /// One was. Looks at the clock now and then.
    pub(in crate::transport) fn add(&mut self, bytes: usize, now: impl FnOnce() -> Instant) {
        self.records += 1;
        self.bytes += bytes;
        if self.records.is_multiple_of(LOOK) {
            self.begin(now());
        }
    }

    /// Nothing was handed on, and yet much was done.
    pub(in crate::transport) fn spend(&mut self) {
        self.records = ROTATION_RECORDS;
    }

    /// Whether the share is used up.
    pub(in crate::transport) fn is_spent(&self) -> bool {
        self.late || self.records >= ROTATION_RECORDS || self.bytes >= ROTATION_BYTES
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Records until the share is used up, where each has so many bytes and takes so long.
    fn share(bytes: usize, each: Duration) -> usize {
        let mut now = Instant::now();
        let mut rotation = Rotation::default();
        rotation.begin(now);
        let mut records = 0;
        while !rotation.is_spent() {
            now += each;
            rotation.add(bytes, || now);
            records += 1;
        }
        records
    }

    /// REQ: PM-71
    #[test]
    fn the_first_of_three_limits_ends_a_share() {
        let none = Duration::ZERO;
        assert_eq!(share(10, none), 64, "small and fast: by their number");
        assert_eq!(share(16 << 10, none), 64, "64 × 16 KiB are both");
        assert_eq!(share((16 << 10) + 1, none), 64);
        assert_eq!(share(100 << 10, none), 11, "large: by their bytes");
        assert_eq!(share(8 << 20, none), 1, "at least one, however large");
        assert_eq!(share(10, Duration::from_micros(60)), 32, "slow: by time");
        assert_eq!(share(10, Duration::from_secs(1)), 16);
    }

    /// REQ: PM-71
    #[test]
    fn a_share_goes_on_where_the_last_batch_ended() {
        let begin = Instant::now();
        let mut rotation = Rotation::default();
        for batch in 0..6 {
            rotation.begin(begin + Duration::from_micros(batch));
            (0..10).for_each(|_| rotation.add(1, || begin));
            assert!(!rotation.is_spent(), "{batch}");
        }
        (0..4).for_each(|_| rotation.add(1, || begin));
        assert!(rotation.is_spent());

        let mut rotation = Rotation::default();
        rotation.begin(begin);
        rotation.add(1, || begin);
        rotation.begin(begin + ROTATION_TIME);
        assert!(
            rotation.is_spent(),
            "a lane that was busy all the time has had its share"
        );
    }
}
