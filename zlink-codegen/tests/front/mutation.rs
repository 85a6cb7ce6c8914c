//! Schemas with random damage never panic, and what is accepted round-trips through its lock.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const SEEDS: [&str; 4] = [
    include_str!("../schemas/billing.yaml"),
    include_str!("../schemas/every_type.yaml"),
    include_str!("../../../schemas/tests/arena.yaml"),
    include_str!("../invalid/ZL0102_six_mistakes/schema.yaml"),
];

/// Pieces that mean something somewhere.
const WORDS: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    ": ",
    ", ",
    "\n",
    "  ",
    "- ",
    "&a ",
    "*a",
    "!t ",
    "\"",
    "'",
    "|\n",
    "~",
    "-1",
    "99999999999999999999",
    "list<",
    ">",
    "reserved: ",
    "id: 0",
    "\u{0}",
    "ä",
];

#[derive(Clone, Debug)]
enum Damage {
    Cut(usize, usize),
    Put(usize, usize),
    Copy(usize, usize, usize),
    Flip(usize, u8),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = 0usize..100_000;
    prop_oneof![
        (at.clone(), 0usize..60).prop_map(|(at, len)| Damage::Cut(at, len)),
        (at.clone(), 0..WORDS.len()).prop_map(|(at, word)| Damage::Put(at, word)),
        (at.clone(), 0usize..60, at.clone()).prop_map(|(from, len, to)| Damage::Copy(from, len, to)),
        (at, 1u8..=255).prop_map(|(at, bits)| Damage::Flip(at, bits)),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    if bytes.is_empty() {
        return;
    }
    let len = bytes.len();
    let range = |at: usize, size: usize| at % len..(at % len + size).min(len);
    match *damage {
        Damage::Cut(at, size) => drop(bytes.drain(range(at, size))),
        Damage::Put(at, word) => drop(
            bytes
                .splice(at % len..at % len, WORDS[word].bytes())
                .collect::<Vec<_>>(),
        ),
        Damage::Copy(from, size, to) => {
            let part = bytes[range(from, size)].to_vec();
            drop(bytes.splice(to % len..to % len, part).collect::<Vec<_>>());
        }
        Damage::Flip(at, bits) => bytes[at % len] ^= bits,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_schemas_never_panic(seed in 0..SEEDS.len(), all in prop::collection::vec(damage(), 0..6)) {
        let mut bytes = SEEDS[seed].as_bytes().to_vec();
        all.iter().for_each(|damage| apply(&mut bytes, damage));
        let _ = zlink_codegen::fuzz_load(&bytes);
    }

    #[test]
    fn random_text_never_panics(text in "[ -~\n]{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = zlink_codegen::fuzz_load(text.as_bytes());
        let _ = zlink_codegen::fuzz_load(&bytes);
    }

    #[test]
    fn damaged_locks_never_panic(all in prop::collection::vec(damage(), 0..6)) {
        let mut bytes = include_bytes!("../invalid/ZL1101_field_added/shop.lock.yaml").to_vec();
        all.iter().for_each(|damage| apply(&mut bytes, damage));
        let _ = zlink_codegen::fuzz_load(&bytes);
    }
}

#[test]
fn the_undamaged_seed_is_a_schema() {
    assert!(zlink_codegen::fuzz_load(SEEDS[0].as_bytes()));
    assert!(zlink_codegen::fuzz_load(SEEDS[2].as_bytes()));
    assert!(!zlink_codegen::fuzz_load(SEEDS[3].as_bytes()));
}

#[test]
#[ignore = "a soak: `make soak` runs it for ZLINK_SOAK_SECONDS, 60 where that is not set"]
fn soak_of_loading() {
    let seconds = std::env::var("ZLINK_SOAK_SECONDS").map_or(60, |seconds| seconds.parse().expect("seconds"));
    let end = Instant::now() + Duration::from_secs(seconds);
    let schemas = (0..SEEDS.len(), prop::collection::vec(damage(), 0..20));
    let mut cases = 0;
    while Instant::now() < end {
        let config = Config {
            cases: 2_000,
            failure_persistence: None,
            ..Config::default()
        };
        cases += config.cases;
        let outcome = TestRunner::new(config).run(&schemas, |(seed, all)| {
            let mut bytes = SEEDS[seed].as_bytes().to_vec();
            all.iter().for_each(|damage| apply(&mut bytes, damage));
            let start = Instant::now();
            let _ = zlink_codegen::fuzz_load(&bytes);
            prop_assert!(
                start.elapsed() < Duration::from_secs(2),
                "it took {:?}",
                start.elapsed()
            );
            Ok(())
        });
        outcome.unwrap_or_else(|failure| panic!("{failure}"));
    }
    println!("{cases} schemas loaded or refused");
}
