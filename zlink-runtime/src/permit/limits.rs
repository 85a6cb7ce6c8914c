//! How many permits there are, which of them are kept for whom, and the two counts at which the receive flow changes.

use crate::error::ArgumentError;

/// The greatest limit.
pub const MAX_PERMITS: u32 = i32::MAX as u32;

/// A limit of permits with its pressure thresholds, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermitLimits {
    max: u32,
    reserve: u32,
    pause: u32,
    resume: u32,
}

impl PermitLimits {
    /// Exactly `max` permits, 1 to [`MAX_PERMITS`]; the flow pauses when `pause` percent are in use and resumes when
    /// no more than `resume` percent are.
    ///
    /// # Errors
    /// Where `max` is out of range, `pause` is not 1 to 100, or `resume` is not below it.
    pub fn new(max: u32, pause: u8, resume: u8) -> Result<Self, ArgumentError> {
        if !(1..=MAX_PERMITS).contains(&max) {
            return Err(ArgumentError::new(
                "max_queued_application_jobs",
                format!("is {max}; give 1 to {MAX_PERMITS}"),
            ));
        }
        if !(1..=100).contains(&pause) {
            return Err(ArgumentError::new(
                "pause percent",
                format!("is {pause}; give 1 to 100"),
            ));
        }
        if resume >= pause {
            return Err(ArgumentError::new(
                "resume percent",
                format!("is {resume}; give less than the pause percent, {pause}"),
            ));
        }
        Ok(Self::at(max, pause, resume))
    }

    /// The nearest legal limit, at 80 and 60 %.
    pub(super) fn of(max: u32) -> Self {
        Self::at(max.clamp(1, MAX_PERMITS), 80, 60)
    }

    #[allow(clippy::cast_possible_truncation, reason = "a percentage of a u32 is one")]
    fn at(max: u32, pause: u8, resume: u8) -> Self {
        let share = |percent: u8| u64::from(max) * u64::from(percent);
        Self {
            max,
            reserve: 0,
            pause: share(pause).div_ceil(100) as u32,
            resume: (share(resume) / 100) as u32,
        }
    }

    /// The same limit, of which an eighth, rounded down, is kept for what turns send to objects of their own host.
    ///
    /// All others are held back when the rest is in use, and by then the flow has to be paused: where the thresholds lie
    /// higher, they come down to that.
    #[must_use]
    pub fn with_reserve(self) -> Self {
        let reserve = self.max / 8;
        let pause = self.pause.min(self.max - reserve);
        Self {
            reserve,
            pause,
            resume: self.resume.min(pause - 1),
            ..self
        }
    }

    /// How many permits there are.
    #[must_use]
    pub const fn max(&self) -> u32 {
        self.max
    }

    /// How many of them are kept for what turns send to objects of their own host.
    #[must_use]
    pub const fn reserve(&self) -> u32 {
        self.reserve
    }

    /// The count in use at which the flow pauses.
    #[must_use]
    pub const fn pause_count(&self) -> u32 {
        self.pause
    }

    /// The count in use at which it resumes.
    #[must_use]
    pub const fn resume_count(&self) -> u32 {
        self.resume
    }
}
