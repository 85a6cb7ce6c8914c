//! Points and lengths of time as messages carry them: signed microseconds in 64 bits.
//!
//! It must not read any clock but the one it is asked for.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::codec::Inline;

/// A point in time: microseconds since the Unix epoch, before it where negative. Covers 292,000 years either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

/// A length of time in microseconds, with a sign. The default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SignedDuration(i64);

/// A time that 64 bits of microseconds do not reach, or a negative duration where none can be.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the time is out of range")]
pub struct TimeOutOfRange;

crate::error::shown!(TimeOutOfRange);

impl Timestamp {
    /// The point `micros` microseconds after the Unix epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The system's present time. What the system's clock says is taken: it may step back.
    #[must_use]
    pub fn now() -> Self {
        Self::try_from(SystemTime::now()).unwrap_or_default()
    }
}

impl SignedDuration {
    /// `micros` microseconds.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Its length in microseconds.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }
}

impl TryFrom<SystemTime> for Timestamp {
    type Error = TimeOutOfRange;

    /// Rounds down to a microsecond.
    fn try_from(time: SystemTime) -> Result<Self, TimeOutOfRange> {
        let micros = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => i128::try_from(after.as_micros()),
            Err(before) => i128::try_from(before.duration().as_nanos().div_ceil(1000)).map(|micros| -micros),
        };
        micros
            .ok()
            .and_then(|micros| i64::try_from(micros).ok())
            .map(Self)
            .ok_or(TimeOutOfRange)
    }
}

impl TryFrom<Timestamp> for SystemTime {
    type Error = TimeOutOfRange;

    fn try_from(time: Timestamp) -> Result<Self, TimeOutOfRange> {
        let distance = Duration::from_micros(time.0.unsigned_abs());
        let time = if time.0 < 0 {
            UNIX_EPOCH.checked_sub(distance)
        } else {
            UNIX_EPOCH.checked_add(distance)
        };
        time.ok_or(TimeOutOfRange)
    }
}

impl TryFrom<Duration> for SignedDuration {
    type Error = TimeOutOfRange;

    /// Rounds down to a microsecond.
    fn try_from(duration: Duration) -> Result<Self, TimeOutOfRange> {
        i64::try_from(duration.as_micros())
            .map(Self)
            .map_err(|_| TimeOutOfRange)
    }
}

impl TryFrom<SignedDuration> for Duration {
    type Error = TimeOutOfRange;

    fn try_from(duration: SignedDuration) -> Result<Self, TimeOutOfRange> {
        u64::try_from(duration.0)
            .map(Duration::from_micros)
            .map_err(|_| TimeOutOfRange)
    }
}

macro_rules! micros {
    ($name:ident) => {
        impl Inline for $name {
            type Bytes = [u8; 8];
            const ALIGN: usize = 8;
            #[inline]
            fn to_bytes(&self) -> [u8; 8] {
                self.0.to_le_bytes()
            }
            #[inline]
            fn from_bytes(bytes: &[u8; 8]) -> Self {
                Self(i64::from_le_bytes(*bytes))
            }
            #[inline]
            fn is_elided(&self) -> bool {
                self.0 == 0
            }
        }
    };
}

micros!(Timestamp);
micros!(SignedDuration);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_and_after_the_epoch_survive_the_way_through_system_time() {
        for micros in [0, 1, -1, 1_700_000_000_000_000, -86_400_000_001] {
            let there = SystemTime::try_from(Timestamp::from_micros(micros)).unwrap();
            assert_eq!(Timestamp::try_from(there).unwrap().as_micros(), micros);
        }
        let just_before = UNIX_EPOCH - Duration::from_nanos(1);
        assert_eq!(Timestamp::try_from(just_before).unwrap().as_micros(), -1);
    }

    #[test]
    fn durations_without_a_counterpart_are_refused() {
        assert_eq!(Duration::try_from(SignedDuration::from_micros(-1)), Err(TimeOutOfRange));
        assert_eq!(SignedDuration::try_from(Duration::MAX), Err(TimeOutOfRange));
        assert_eq!(
            SignedDuration::try_from(Duration::from_millis(3)).unwrap().as_micros(),
            3000
        );
    }
}
