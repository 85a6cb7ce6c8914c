//! The golden vectors of records for Spots, and what of them is refused.

use serde_json::{Value, json};

use super::*;
use crate::wire::{self, CallHead, OperationRef, To, call, parse};

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../schemas/zlink/vectors/objects.json");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const TARGET: SpotTarget = SpotTarget {
    generation: 0x0102_0304_0506_0708,
    owner_generation: 2,
    lease: 99,
};

fn to_spot(id: &str, activation: Option<&[u8]>, request: Option<(u64, u32)>) -> Vec<u8> {
    to_object(Space::Spots, id, activation, request)
}

fn to_object(space: Space, id: &str, activation: Option<&[u8]>, request: Option<(u64, u32)>) -> Vec<u8> {
    let mut record = Vec::new();
    let head = CallHead {
        to: To::Object {
            space,
            target: TARGET,
            id,
            activation,
        },
        request,
        operation: OperationRef::Named {
            channel: "",
            packet: "arena.room.say",
        },
        metadata: &[],
        content_type: "",
        flow: None,
    };
    call(&mut record, &head);
    record.extend_from_slice(b"payload");
    record
}

fn control(kind: RecordKind) -> Vec<u8> {
    let mut record = Vec::new();
    let head = CallHead {
        to: To::Control(kind),
        request: Some((7 << 32, 3000)),
        operation: OperationRef::Named {
            channel: "",
            packet: "zlink.spot",
        },
        metadata: &[],
        content_type: "",
        flow: None,
    };
    call(&mut record, &head);
    record.extend_from_slice(b"payload");
    record
}

fn published() -> Vec<u8> {
    let mut record = Vec::new();
    publish_head(&mut record, "room-events", "arena.room.news", "news", &[]);
    record.extend_from_slice(b"payload");
    record
}

fn written() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("spot send", to_spot("room-7", None, None)),
        ("spot request", to_spot("r\u{fc}m/%", None, Some((7 << 32, 3000)))),
        ("spot send that activates", to_spot("cart-1", Some(b"activation"), None)),
        (
            "spot request that activates",
            to_spot("cart-1", Some(b"activation"), Some((7 << 32, 3000))),
        ),
        ("spot create", control(RecordKind::SpotCreate)),
        ("spot close", control(RecordKind::SpotClose)),
        ("spot publish", published()),
        ("actor send", to_object(Space::Actors, "p-1", None, None)),
        (
            "actor request",
            to_object(Space::Actors, "sp\u{e9}l\u{e9}%", None, Some((7 << 32, 3000))),
        ),
        ("actor create", control(RecordKind::ActorCreate)),
        ("actor destroy", control(RecordKind::ActorDestroy)),
    ]
}

fn refused() -> Vec<(&'static str, Vec<u8>)> {
    let cut = |record: Vec<u8>, to: usize| record[..to].to_vec();
    let mut no_correlation = to_spot("room-7", None, Some((7 << 32, 1)));
    no_correlation[8..16].fill(0);
    let mut by_number = to_spot("room-7", None, None);
    by_number[4..8].copy_from_slice(&3_u32.to_le_bytes());
    let mut activates = control(RecordKind::SpotCreate);
    activates[2] = 8;
    let mut creates_activating = control(RecordKind::ActorCreate);
    creates_activating[2] = 8;
    let mut flagged = published();
    flagged[2] = 8;
    vec![
        (
            "a target that is cut off",
            cut(to_spot("room-7", None, None), 8 + 1 + 15 + 23),
        ),
        (
            "a Spot ID that is cut off",
            cut(to_spot("room-7", None, None), 8 + 1 + 15 + 24 + 3),
        ),
        ("an empty Spot ID", to_spot("", None, None)),
        ("an empty activation", to_spot("room-7", Some(b""), None)),
        ("a request with correlation 0", no_correlation),
        ("a packet by number", by_number),
        ("a create that activates", activates),
        ("a publish that activates", flagged),
        ("an empty Actor ID", to_object(Space::Actors, "", None, None)),
        (
            "an Actor ID that is cut off",
            cut(to_object(Space::Actors, "p-1", None, None), 8 + 1 + 15 + 24 + 3),
        ),
        (
            "an Actor that is activated",
            to_object(Space::Actors, "p-1", Some(b"activation"), None),
        ),
        ("an actor create that activates", creates_activating),
    ]
}

fn meaning(record: &[u8]) -> Value {
    let text = |span: Span| String::from_utf8_lossy(span.of(record)).into_owned();
    let named = |call: &Call| match call.operation {
        wire::OperationName::Named { channel, packet } => json!([text(channel), text(packet)]),
        wire::OperationName::Number(number) => json!(number),
    };
    match parse(record) {
        Err(malformed) => json!({ "refused": malformed.what, "correlation": malformed.correlation }),
        Ok(Incoming::Object(spot)) => json!({
            spot.space.surface(): text(spot.id), "generation": spot.generation, "owner_generation": spot.owner_generation,
            "lease": spot.lease, "activation_hex": hex(spot.activation.of(record)), "operation": named(&spot.call),
            "correlation": spot.call.correlation, "timeout_ms": spot.call.timeout_ms,
            "payload_hex": hex(spot.call.payload.of(record)),
        }),
        Ok(Incoming::Control(control)) => json!({
            "control": format!("{:?}", control.kind), "correlation": control.correlation,
            "timeout_ms": control.timeout_ms, "payload_hex": hex(control.payload.of(record)),
        }),
        Ok(Incoming::Publish(publish)) => json!({
            "publish": text(publish.topic), "operation": named(&publish.call),
            "payload_hex": hex(publish.call.payload.of(record)),
        }),
        Ok(other) => json!({ "other": format!("{other:?}") }),
    }
}

/// The vectors are what this runtime writes and how it reads. `ZLINK_BLESS=1` writes them anew, for a change that is
/// meant.
///
/// REQ: SP-063, SP-064
#[test]
fn records_for_spots_are_the_golden_vectors() {
    let all = written().into_iter().chain(refused());
    let vectors: Vec<Value> = all
        .map(|(name, record)| json!({ "name": name, "hex": hex(&record), "is": meaning(&record) }))
        .collect();
    let now = serde_json::to_string_pretty(&vectors).expect("JSON") + "\n";
    if std::env::var_os("ZLINK_BLESS").is_some() {
        std::fs::write(VECTORS, &now).expect("the vectors can be written");
    }
    let golden = std::fs::read_to_string(VECTORS).expect("the vectors are in the repository");
    assert_eq!(
        now, golden,
        "the wire has changed; where that is meant, run this test with ZLINK_BLESS=1"
    );
    for (name, record) in written() {
        assert!(parse(&record).is_ok(), "{name}");
    }
    for (name, record) in refused() {
        assert!(parse(&record).is_err(), "{name}");
    }
}
