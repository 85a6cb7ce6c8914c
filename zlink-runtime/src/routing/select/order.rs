//! The procedure itself, over indexes: one step of smooth weighted round-robin, and the search for its cycle.
//!
//! It must not know identities, targets, locks or clocks.

use std::sync::Arc;

use crate::limit::SELECT_STEPS;

/// The weights of a list, by index, and their sum.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    each: Arc<[i64]>,
    total: i64,
}

impl Weights {
    pub(super) fn new(weights: Vec<u16>) -> Self {
        let each: Arc<[i64]> = weights.into_iter().map(i64::from).collect();
        let total = each.iter().sum();
        Self { each, total }
    }

    /// Adds each weight to its accumulator, picks the largest, the first of equals, and takes the total from it.
    pub(super) fn step(&self, accumulators: &mut [i64]) -> usize {
        let mut best = 0;
        let mut most = i64::MIN;
        for (index, (accumulator, weight)) in accumulators.iter_mut().zip(self.each.iter()).enumerate() {
            *accumulator += weight;
            if *accumulator > most {
                most = *accumulator;
                best = index;
            }
        }
        if let Some(picked) = accumulators.get_mut(best) {
            *picked -= self.total;
        }
        best
    }

    /// Takes `count` steps, whatever they pick.
    pub(super) fn walk(&self, accumulators: &mut [i64], count: usize) {
        for _ in 0..count {
            self.step(accumulators);
        }
    }
}

/// The order from some state on: a prefix that is walked once, then a period for ever.
#[derive(Clone, Debug)]
pub(super) struct Cycle {
    /// Prefix and period. No list longer than the bound has a cycle within it, so an index fits.
    picks: Arc<[u16]>,
    prefix: usize,
}

/// Steps between two looks at the time.
const STEPS_PER_CHECK: usize = 64;

impl Cycle {
    /// Runs ahead from `start` until a state recurs. Gives up, with `None`, where prefix and period together exceed
    /// [`SELECT_STEPS`] or `go_on` says no.
    ///
    /// The states are not stored: a second state follows in leaps (Brent's method), which finds any recurrence, not
    /// only a return to the start, since kept accumulators may lie outside the cycle.
    pub(super) fn find(weights: &Weights, start: &[i64], go_on: &mut dyn FnMut() -> bool) -> Option<Self> {
        if start.is_empty() || start.len() > SELECT_STEPS {
            return None;
        }
        let mut picks = Vec::new();
        let mut ahead = start.to_vec();
        let mut behind = start.to_vec();
        let (mut leap, mut period) = (1_usize, 0_usize);
        let mut returned = false;
        loop {
            // A cycle within the bound is met before three times as many steps.
            if picks.len() == 3 * SELECT_STEPS || (picks.len() % STEPS_PER_CHECK == 0 && !go_on()) {
                return None;
            }
            if period == leap {
                behind.copy_from_slice(&ahead);
                leap *= 2;
                period = 0;
            }
            picks.push(u16::try_from(weights.step(&mut ahead)).ok()?);
            period += 1;
            if ahead == start {
                returned = true;
                break;
            }
            if ahead == behind {
                break;
            }
        }
        let prefix = if returned {
            period = picks.len();
            0
        } else {
            Self::prefix(weights, start, period, go_on)?
        };
        if prefix + period > SELECT_STEPS {
            return None;
        }
        picks.truncate(prefix + period);
        Some(Self {
            picks: picks.into(),
            prefix,
        })
    }

    /// The number of states before the cycle: two walkers, one period apart, meet where it begins.
    fn prefix(weights: &Weights, start: &[i64], period: usize, go_on: &mut dyn FnMut() -> bool) -> Option<usize> {
        let mut behind = start.to_vec();
        let mut ahead = start.to_vec();
        for step in 0..period {
            weights.step(&mut ahead);
            if step % STEPS_PER_CHECK == 0 && !go_on() {
                return None;
            }
        }
        let mut prefix = 0;
        while ahead != behind {
            weights.step(&mut ahead);
            weights.step(&mut behind);
            prefix += 1;
            if prefix % STEPS_PER_CHECK == 0 && !go_on() {
                return None;
            }
        }
        Some(prefix)
    }

    /// The pick at `cursor`, and the place after it.
    pub(super) fn at(&self, cursor: usize) -> (usize, usize) {
        let index = self.picks.get(cursor).copied().map_or(0, usize::from);
        let next = cursor + 1;
        (index, if next < self.picks.len() { next } else { self.prefix })
    }

    /// The place after `count` picks from the start.
    pub(super) fn after(&self, count: usize) -> usize {
        match count.checked_sub(self.prefix) {
            None => count,
            Some(beyond) => self.prefix + beyond % self.period(),
        }
    }

    /// How many steps lead from one place to another.
    pub(super) fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from {
            to - from
        } else {
            self.picks.len() - from + to - self.prefix
        }
    }

    /// How many picks repeat.
    pub(super) fn period(&self) -> usize {
        self.picks.len() - self.prefix
    }

    #[cfg(all(test, not(any(zlink_loom, zlink_shuttle))))]
    pub(super) fn prefix_len(&self) -> usize {
        self.prefix
    }
}
