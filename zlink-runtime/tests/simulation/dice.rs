//! The choices of a scenario, all from its seed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// SplitMix64. Clones share the sequence.
#[derive(Clone)]
pub(crate) struct Dice(Arc<AtomicU64>);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(AtomicU64::new(seed ^ 0x005e_ed0f_d1ce)))
    }

    fn bits(&self) -> u64 {
        let step = 0x9e37_79b9_7f4a_7c15_u64;
        let mut bits = self.0.fetch_add(step, Ordering::Relaxed).wrapping_add(step);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// From 0 to `bound`, without it.
    pub(crate) fn below(&self, bound: usize) -> usize {
        usize::try_from(self.bits() % bound as u64).unwrap()
    }

    /// With that many chances of a hundred.
    pub(crate) fn percent(&self, chances: usize) -> bool {
        self.below(100) < chances
    }

    pub(crate) fn one_of<T: Clone>(&self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    /// Between the two, in milliseconds.
    pub(crate) fn millis(&self, from: usize, to: usize) -> Duration {
        Duration::from_millis((from + self.below(to - from)) as u64)
    }
}
