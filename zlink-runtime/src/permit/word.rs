//! Every count and flag of the permits in one word, so that one compare-and-swap moves them together.
//!
//! Pure: a step takes a word and gives the next one.

use super::limits::PermitLimits;

const COUNT_BITS: u32 = 31;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
const PAUSED: u64 = 1 << 62;
const SLOW: u64 = 1 << 63;

/// From the lowest bit: in use (31 bits), of these queued (31), paused, slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Word(pub(super) u64);

impl Word {
    /// One permit more that is queued.
    pub(super) const ONE_QUEUED: u64 = 1 << COUNT_BITS;

    #[allow(clippy::cast_possible_truncation, reason = "31 bits")]
    pub(super) const fn in_use(self) -> u32 {
        (self.0 & COUNT) as u32
    }

    #[allow(clippy::cast_possible_truncation, reason = "31 bits")]
    pub(super) const fn queued(self) -> u32 {
        (self.0 >> COUNT_BITS & COUNT) as u32
    }

    pub(super) const fn paused(self) -> bool {
        self.0 & PAUSED != 0
    }

    /// Whether somebody waits, some of the reserve is lent, or the permits are closed: look under the lock.
    pub(super) const fn slow(self) -> bool {
        self.0 & SLOW != 0
    }

    pub(super) const fn with_slow(self, slow: bool) -> Self {
        Self(if slow { self.0 | SLOW } else { self.0 & !SLOW })
    }

    /// Grants 1 to `want`, as many as are free below `cap`; `None` where none is.
    pub(super) fn grant(self, want: u32, cap: u32, limits: &PermitLimits) -> Option<(Self, u32)> {
        let count = want.min(cap.saturating_sub(self.in_use()));
        if count == 0 {
            return None;
        }
        let next = self.0 + u64::from(count);
        let paused = if Self(next).in_use() >= limits.pause_count() {
            PAUSED
        } else {
            0
        };
        Some((Self(next | paused), count))
    }

    /// One of those in use is queued.
    pub(super) const fn queue(self) -> Self {
        Self(self.0 + Self::ONE_QUEUED)
    }

    /// Takes back `count`, of which `queued` were queued.
    pub(super) fn give_back(self, count: u32, queued: u32, limits: &PermitLimits) -> Self {
        let next = self.0 - u64::from(count) - u64::from(queued) * Self::ONE_QUEUED;
        Self(if Self(next).in_use() <= limits.resume_count() {
            next & !PAUSED
        } else {
            next
        })
    }
}
