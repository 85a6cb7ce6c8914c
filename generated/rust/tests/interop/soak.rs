//! Damaged bytes of a message that has every type: `make soak` decodes them for as long as one likes.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use zlink_generated::test_every_type::All;
use zlink_runtime::message::codec::{decode, encode};

use crate::sample;

/// Bytes put in place of others, a cut, and a piece that is there twice.
fn damaged(whole: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let at = 0..whole.len();
    let changes = prop::collection::vec(
        (at.clone(), prop_oneof![any::<u8>(), Just(0), Just(0xff), Just(0x7f)]),
        0..12,
    );
    let twice = proptest::option::weighted(0.2, (at.clone(), at.clone(), 1_usize..64));
    let cut = proptest::option::weighted(0.1, at);
    (changes, twice, cut).prop_map(move |(changes, twice, cut)| {
        let mut bytes = whole.clone();
        changes.into_iter().for_each(|(at, byte)| bytes[at] = byte);
        if let Some((from, to, size)) = twice {
            let piece = bytes[from..(from + size).min(bytes.len())].to_vec();
            bytes.splice(to..to, piece).for_each(drop);
        }
        bytes.truncate(cut.unwrap_or(bytes.len()));
        bytes
    })
}

/// Every outcome is a value or an error, soon; a value can be encoded unless it holds what is unknown here.
fn survives(bytes: &[u8]) {
    let start = Instant::now();
    if let Ok(all) = decode::<All>(bytes) {
        let _ = encode(&all, |_| ());
    }
    let took = start.elapsed();
    assert!(took < Duration::from_secs(20), "{} bytes took {took:?}", bytes.len());
}

#[test]
#[ignore = "a soak: `make soak` runs it for ZLINK_SOAK_SECONDS, 60 where that is not set"]
fn soak_of_decoding() {
    let seconds = std::env::var("ZLINK_SOAK_SECONDS").map_or(60, |seconds| seconds.parse().expect("seconds"));
    let end = Instant::now() + Duration::from_secs(seconds);
    let whole = encode(&sample::all(), <[u8]>::to_vec).expect("the sample is legal");
    let bytes = prop_oneof![9 => damaged(whole).boxed(), 1 => prop::collection::vec(any::<u8>(), 0..2000).boxed()];
    let mut cases = 0;
    while Instant::now() < end {
        let config = Config {
            cases: 10_000,
            failure_persistence: None,
            ..Config::default()
        };
        cases += config.cases;
        let outcome = TestRunner::new(config).run(&bytes, |bytes| {
            survives(&bytes);
            Ok(())
        });
        outcome.unwrap_or_else(|failure| panic!("{failure}"));
    }
    println!("{cases} messages decoded or refused");
}
