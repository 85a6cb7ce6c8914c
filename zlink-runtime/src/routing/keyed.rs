//! Hashes for tables whose keys others choose: a few multiplications with numbers that nobody outside knows.
//!
//! The key's bytes are the coefficients of a polynomial over the prime 2⁶¹ − 1, which is evaluated at a point that each table
//! draws for itself, and mixed with two more such numbers. Two keys of up to 255 bytes meet in the whole hash for at most 38 of
//! 2⁶¹ points, whoever chose them, and in one of `n` buckets about as seldom as random numbers do: no choice of names makes a
//! table slow, as none does with std's hasher, which takes five times as long for names as short as most are. Unlike that one it
//! promises nothing once hashes are seen; nothing shows them. It must not be used where they would be.

use std::hash::{BuildHasher, Hasher, RandomState};

const PRIME: u64 = (1 << 61) - 1;
/// Bytes of one coefficient, which has a mark above them, so that zeros at the end count.
const WIDTH: usize = 7;

/// The numbers of one table.
#[derive(Clone, Debug)]
pub(crate) struct Keyed {
    point: u64,
    factor: u64,
    summand: u64,
}

impl Default for Keyed {
    fn default() -> Self {
        // Std's keys are the system's randomness.
        let random = RandomState::new();
        let drawn = |number: u64| 1 + random.hash_one(number) % (PRIME - 1);
        Self {
            point: drawn(0),
            factor: drawn(1),
            summand: drawn(2),
        }
    }
}

impl BuildHasher for Keyed {
    type Hasher = KeyedHasher;

    #[inline]
    fn build_hasher(&self) -> KeyedHasher {
        KeyedHasher {
            keys: self.clone(),
            sum: 0,
        }
    }
}

/// One hash under way.
#[derive(Debug)]
pub(crate) struct KeyedHasher {
    keys: Keyed,
    sum: u64,
}

impl KeyedHasher {
    /// The next coefficient, below the prime.
    #[inline]
    fn add(&mut self, coefficient: u64) {
        self.sum = step(self.sum, self.keys.point, coefficient);
    }
}

/// `sum × factor + summand` modulo the prime, of numbers of which none is greater than it.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "each part has 61 bits, or one more")]
fn step(sum: u64, factor: u64, summand: u64) -> u64 {
    let whole = u128::from(sum) * u128::from(factor) + u128::from(summand);
    // 2⁶¹ is 1 here.
    let sum = (whole as u64 & PRIME) + (whole >> 61) as u64;
    if sum >= PRIME { sum - PRIME } else { sum }
}

impl Hasher for KeyedHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (whole, rest) = bytes.as_chunks::<WIDTH>();
        for &[a, b, c, d, e, f, g] in whole {
            self.add(u64::from_le_bytes([a, b, c, d, e, f, g, 1]));
        }
        if !rest.is_empty() {
            self.add(rest.iter().fold(1, |word, byte| word << 8 | u64::from(*byte)));
        }
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.add(u64::from(number));
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        // A length, which is far below the prime.
        self.add(number as u64 % PRIME);
    }

    #[inline]
    fn finish(&self) -> u64 {
        let mixed = step(self.sum, self.keys.factor, self.keys.summand);
        // Tables look at both ends of a hash: there are 61 bits, and three of them stand twice.
        mixed << 3 | mixed >> 58
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn it_calculates_modulo_its_prime() {
        let prime = u128::from(PRIME);
        for (sum, factor, summand) in [
            (PRIME - 1, PRIME - 1, PRIME - 1),
            (PRIME - 1, 2, 0),
            (3, 5, 7),
            (1, 1, PRIME - 1),
        ] {
            let expected = (u128::from(sum) * u128::from(factor) + u128::from(summand)) % prime;
            assert_eq!(
                u128::from(step(sum, factor, summand)),
                expected,
                "{sum} {factor} {summand}"
            );
        }
    }

    #[test]
    fn keys_that_differ_in_any_byte_or_in_length_differ() {
        let keyed = Keyed::default();
        let hash = |bytes: &[u8]| keyed.hash_one(bytes);
        let mut seen = HashSet::new();
        for len in 0..=255 {
            assert!(seen.insert(hash(&vec![0; len])), "{len} zeros");
            for at in 0..len {
                let mut bytes = vec![0; len];
                bytes[at] = 1;
                assert!(seen.insert(hash(&bytes)), "{len} bytes, a 1 at {at}");
            }
        }
    }

    #[test]
    fn each_table_has_its_own_and_names_in_a_row_are_spread() {
        let (one, other) = (Keyed::default(), Keyed::default());
        assert_ne!(one.hash_one("a"), other.hash_one("a"));
        assert_eq!(one.hash_one("a"), one.clone().hash_one("a"));
        const BUCKETS: u64 = 1 << 10;
        for shift in [0, 54] {
            let mut buckets = vec![0_u32; usize::try_from(BUCKETS).unwrap()];
            for number in 0..64 * BUCKETS {
                let bucket = (one.hash_one(format!("room-{number}")) >> shift) % BUCKETS;
                buckets[usize::try_from(bucket).unwrap()] += 1;
            }
            // 64 each; of random numbers, none of a thousand has twice as many in a million years.
            assert!(buckets.iter().all(|count| (16..128).contains(count)), "{buckets:?}");
        }
    }
}
