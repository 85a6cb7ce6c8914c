//! Codecs: an order with eight lines, to bytes and back to an owned value.

mod flat;
mod proto;

use std::hint::black_box;
use std::time::{Duration, Instant};

use zlink_runtime::rt;

use crate::Failure;
use crate::sample::{Effort, emit};
use crate::schema::{Address, Line, Order};

/// The message that every codec carries.
fn order() -> Order {
    let line = |at: u32| Line {
        sku: format!("SKU-{:05}", 10_007 * (at + 1) % 99_991),
        name: format!("Oak shelf board {at}"),
        quantity: at + 1,
        unit_cents: 1_299 + 700 * i64::from(at),
        discount_bp: 250 * (at % 3),
    };
    Order {
        id: 9_007_199_254_740_993,
        customer: 48_213_377,
        created_ms: 1_753_000_000_123,
        status: 3,
        currency: "EUR".into(),
        note: "leave with the neighbour at number 14".into(),
        ship_to: Some(Address {
            street: "Rue de la Forge 12".into(),
            city: "Strasbourg".into(),
            zip: "67000".into(),
            country: "FR".into(),
        }),
        lines: (0..8).map(line).collect(),
    }
}

/// Nanoseconds per call: the best of several batches, each long enough for the clock.
pub fn nanoseconds(effort: Effort, mut call: impl FnMut()) -> f64 {
    let mut batch = |calls: u32| {
        let begin = Instant::now();
        (0..calls).for_each(|_| call());
        begin.elapsed()
    };
    let long = Duration::from_millis(effort.pick(20, 6));
    let mut calls = 64;
    while batch(calls) < long {
        calls *= 2;
    }
    let best = (0..5).map(|_| batch(calls)).min().unwrap_or_default();
    best.as_nanos() as f64 / f64::from(calls)
}

/// One codec: both ways, checked before they are timed.
fn codec<T: PartialEq>(
    effort: Effort,
    row: &str,
    value: &T,
    mut encode: impl FnMut(&T, &mut dyn FnMut(&[u8])),
    decode: impl Fn(&[u8]) -> Option<T>,
) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    encode(value, &mut |encoded| bytes = encoded.to_vec());
    if decode(&bytes).as_ref() != Some(value) {
        return Err(format!("{row} decodes another order than it encoded").into());
    }
    let encoding = nanoseconds(effort, || {
        encode(black_box(value), &mut |encoded| {
            black_box(encoded);
        })
    });
    let decoding = nanoseconds(effort, || {
        black_box(decode(black_box(&bytes)));
    });
    emit("codec encode", row, "ns", encoding);
    emit("codec encode", row, "bytes", bytes.len() as f64);
    emit("codec decode", row, "ns", decoding);
    Ok(())
}

/// One round of all codecs.
pub fn measure(effort: Effort) -> Result<(), Failure> {
    let value = order();
    let mut builder = flatbuffers::FlatBufferBuilder::new();
    codec(
        effort,
        "flatbuffers official",
        &value,
        |order, take| take(flat::encode(&mut builder, order)),
        |bytes| flat::decode(bytes).ok(),
    )?;
    let mut buffer = Vec::new();
    codec(
        effort,
        "prost",
        &proto::Order::from(value.clone()),
        |order, take| {
            buffer.clear();
            prost::Message::encode(order, &mut buffer).expect("a vector grows");
            take(&buffer);
        },
        |bytes| prost::Message::decode(bytes).ok(),
    )?;
    codec(
        effort,
        "zlink",
        &value,
        |order, take| rt::encode(order, take).expect("within the limits"),
        |bytes| rt::decode(bytes).ok(),
    )
}
