//! Randomness as the runtime takes it: the system's, or a sequence that a seed fixes, so that a test can repeat a run.
//!
//! Identities, runs and pauses are drawn from it; nothing that keeps a secret is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where random bits come from. Clones draw from the same sequence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Random(Option<Arc<AtomicU64>>);

impl Random {
    /// The same sequence for the same seed.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(Some(Arc::new(AtomicU64::new(seed))))
    }

    /// A version 4 UUID.
    pub(crate) fn uuid(&self) -> uuid::Uuid {
        if self.0.is_none() {
            return uuid::Uuid::new_v4();
        }
        uuid::Builder::from_random_bytes((u128::from(self.bits()) << 64 | u128::from(self.bits())).to_be_bytes())
            .into_uuid()
    }

    /// The next 64 bits.
    pub(crate) fn bits(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let Some(state) = &self.0 else {
            // Each half has bits that say what kind of UUID it is, where the other, turned, has none.
            let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
            return high ^ low.rotate_left(32);
        };
        // SplitMix64: the state only counts, so that one atomic addition takes a place of the sequence.
        let mut bits = state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_fixes_the_sequence_and_clones_share_it() {
        let draw = |random: &Random| (0..4).map(|_| random.bits()).collect::<Vec<_>>();
        let random = Random::seeded(7);
        let first = draw(&random);
        assert_eq!(first, draw(&Random::seeded(7)));
        assert_ne!(first, draw(&random.clone()), "the clone goes on where it was");
        assert_ne!(first, draw(&Random::seeded(8)));
        assert_ne!(draw(&Random::default()), draw(&Random::default()));
        let draws = || (0..64).map(|_| Random::default().bits());
        assert_eq!(draws().fold(0, |all, bits| all | bits), u64::MAX, "no bit is always 0");
        assert_eq!(draws().fold(u64::MAX, |all, bits| all & bits), 0, "nor always 1");
        // The first value for the seed 0, as its authors give it.
        assert_eq!(Random::seeded(0).bits(), 0xe220_a839_7b1d_cdaf);
    }
}
