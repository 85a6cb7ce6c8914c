//! The golden vectors that every language is held to, and the edges of the record format.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use super::*;
use crate::message::codec::{decode, encode};

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../schemas/zlink/vectors/records.json");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text
        .chars()
        .map(|digit| digit.to_digit(16).expect("a hex digit"))
        .collect();
    digits
        .chunks(2)
        .map(|pair| u8::try_from(pair[0] * 16 + pair[1]).expect("a byte"))
        .collect()
}

fn call_record(head: &CallHead<'_>, payload: &[u8]) -> Vec<u8> {
    let mut record = Vec::new();
    call(&mut record, head);
    record.extend_from_slice(payload);
    record
}

const PLAIN: CallHead<'static> = CallHead {
    to: To::Channel,
    request: None,
    operation: OperationRef::Number(3),
    metadata: b"",
    content_type: "",
    flow: None,
};

fn metadata() -> Vec<u8> {
    let mut metadata = crate::message::metadata::Metadata::new();
    metadata.set("tenant", "acme").unwrap();
    metadata.set("empty", "").unwrap();
    metadata.as_bytes().to_vec()
}

fn hello() -> Hello {
    Hello {
        topology: Topology::RouteMesh,
        scope: "shop".into(),
        rid: b"node-a\xff".to_vec(),
        generation: 0x0102_0304_0506_0708,
        revision: 2,
        role: ObjectRole::None,
        channels: vec![ChannelServer {
            name: "billing".into(),
            weight: 300,
        }],
        endpoint: "tcp://127.0.0.1:7001".into(),
        security_identity: String::new(),
        capabilities: Vec::new(),
        max_message: 64 << 20,
        state: NodeState::Serving,
        operations: vec![Operation {
            channel: "billing".into(),
            packet: "billing.billing.charge".into(),
        }],
        minor: MINOR,
        objects: None,
    }
}

/// Every kind of record, as this runtime writes it.
fn written() -> Vec<(&'static str, Vec<u8>)> {
    let metadata = metadata();
    let request = Some((0x0000_0001_0000_0007, 3000));
    let named = OperationRef::Named {
        channel: "billing",
        packet: "billing.billing.charge",
    };
    let to_node = OperationRef::Named {
        channel: "",
        packet: "shop.admin.drain",
    };
    let service = |kind, body: Result<Vec<u8>, _>| service(kind, &body.expect("it encodes"));
    let refused = Reject {
        reason: RejectReason::StaleGeneration,
        text: "that run has ended".into(),
    };
    let update = Update {
        revision: 3,
        state: NodeState::Draining,
        channels: hello().channels,
        placement_weight: None,
    };
    let placed = Update {
        placement_weight: Some(0),
        ..update.clone()
    };
    let mut reply = reply_head(0x0000_0001_0000_0007).to_bytes().to_vec();
    reply.extend_from_slice(b"payload");
    let rejected = Error::not_executed(ErrorKind::Rejected, "no");
    let failed = Error::unknown(ErrorKind::InternalFailure, "the handler failed: \u{fc}");
    vec![
        ("channel send by number", call_record(&PLAIN, b"payload")),
        ("channel send without payload", call_record(&PLAIN, b"")),
        (
            "channel request by number",
            call_record(&CallHead { request, ..PLAIN }, b"payload"),
        ),
        (
            "channel request by name with metadata",
            call_record(
                &CallHead {
                    request,
                    operation: named,
                    metadata: &metadata,
                    ..PLAIN
                },
                b"payload",
            ),
        ),
        (
            "channel send with a content type",
            call_record(
                &CallHead {
                    content_type: "application/json",
                    ..PLAIN
                },
                b"{}",
            ),
        ),
        (
            "channel request with metadata and a flow",
            call_record(
                &CallHead {
                    request,
                    metadata: &metadata,
                    flow: Some([1, 0x93, 2, 3, 4, 5, 0x70, 7, 0x80, 9, 10, 11, 12, 13, 14, 15, 3]),
                    ..PLAIN
                },
                b"payload",
            ),
        ),
        (
            "node send by number",
            call_record(&CallHead { to: To::Node, ..PLAIN }, b"payload"),
        ),
        (
            "node request by name",
            call_record(
                &CallHead {
                    to: To::Node,
                    request,
                    operation: to_node,
                    ..PLAIN
                },
                b"payload",
            ),
        ),
        ("reply", reply),
        (
            "reply that failed, not executed",
            reply_failed(0x0000_0001_0000_0007, &rejected),
        ),
        (
            "reply that failed, execution unknown",
            reply_failed(0x0000_0001_0000_0007, &failed),
        ),
        ("probe", probe(RecordKind::Probe, 7)),
        ("probe acknowledged", probe(RecordKind::ProbeAck, 7)),
        ("flow paused", flow(5, true)),
        ("flow running", flow(6, false)),
        ("hello", service(RecordKind::Hello, encode(&hello(), <[u8]>::to_vec))),
        ("admit", service(RecordKind::Admit, encode(&hello(), <[u8]>::to_vec))),
        ("reject", service(RecordKind::Reject, encode(&refused, <[u8]>::to_vec))),
        ("update", service(RecordKind::Update, encode(&update, <[u8]>::to_vec))),
        (
            "update of an Object Server",
            service(RecordKind::Update, encode(&placed, <[u8]>::to_vec)),
        ),
        ("not required", service(RecordKind::NotRequired, Ok(Vec::new()))),
        ("ready", service(RecordKind::Ready, Ok(Vec::new()))),
        ("retire", service(RecordKind::Retire, Ok(Vec::new()))),
    ]
}

/// Records that must be refused.
fn refused() -> Vec<(&'static str, Vec<u8>)> {
    let plain = call_record(&PLAIN, b"payload");
    let request = call_record(
        &CallHead {
            request: Some((7 << 32, 0)),
            ..PLAIN
        },
        b"",
    );
    let reply = reply_head(7 << 32).to_bytes().to_vec();
    let with = |record: &[u8], at: usize, byte: u8| {
        let mut record = record.to_vec();
        record[at] = byte;
        record
    };
    let mut no_correlation = request.clone();
    no_correlation[8..16].fill(0);
    let mut text_too_long = with(&reply, 4, 1);
    text_too_long.extend_from_slice(&[b'x'; 257]);
    let mut text_not_utf8 = with(&reply, 4, 1);
    text_not_utf8.push(0xff);
    let mut probe_with_payload = probe(RecordKind::Probe, 7);
    probe_with_payload.push(0);
    vec![
        ("nothing", Vec::new()),
        ("half a head", plain[..3].to_vec()),
        ("a send without its operation", plain[..7].to_vec()),
        ("another major", with(&plain, 0, 2)),
        ("an unspecified kind", with(&plain, 1, 0)),
        ("an unknown kind", with(&plain, 1, 200)),
        ("an unknown required flag", with(&plain, 2, 0x80)),
        ("metadata that is cut off", with(&plain, 2, 1)),
        ("an optional block that is cut off", with(&plain, 3, 1)),
        ("names that are cut off", {
            let mut record = with(&plain[..8], 4, 0xff);
            record[4..8].fill(0xff);
            record.push(9);
            record
        }),
        ("a request with correlation 0", no_correlation),
        ("a reply with an unknown error", with(&with(&reply, 4, 1), 5, 13)),
        ("a reply that succeeded with an error", with(&reply, 5, 1)),
        ("a reply that neither succeeded nor failed", with(&reply, 4, 2)),
        ("an error text over 256 bytes", text_too_long),
        ("an error text that is not UTF-8", text_not_utf8),
        ("a probe with id 0", probe(RecordKind::Probe, 0)),
        ("a probe with a payload", probe_with_payload),
        ("a flow that is neither", with(&flow(5, true), 4, 2)),
        (
            "a service record with a flag",
            with(&service(RecordKind::Ready, &[]), 2, 1),
        ),
    ]
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap_or_else(|_| hex(bytes))
}

/// What a record says, as the vectors have it.
fn meaning(record: &[u8]) -> Value {
    match parse(record) {
        Err(malformed) => json!({ "refused": malformed.what, "correlation": malformed.correlation }),
        Ok(Incoming::Call(call)) => json!({
            "call": if call.to_channel { "channel" } else { "node" },
            "correlation": call.correlation,
            "timeout_ms": call.timeout_ms,
            "operation": match call.operation {
                OperationName::Number(number) => json!(number),
                OperationName::Named { channel, packet } => {
                    json!({ "channel": text(channel.of(record)), "packet": text(packet.of(record)) })
                }
            },
            "metadata_hex": hex(call.metadata.of(record)),
            "content_type": text(call.content_type.of(record)),
            "flow_hex": hex(call.flow.of(record)),
            "payload_hex": hex(call.payload.of(record)),
        }),
        Ok(Incoming::Reply(reply)) => json!({
            "reply": reply.correlation,
            "payload_hex": reply.result.as_ref().ok().map(|payload| hex(payload.of(record))),
            "error": reply.result.as_ref().err().map(|error| json!({
                "kind": error.kind().to_string(),
                "number": error.kind().number(),
                "executed": format!("{:?}", error.execution()),
                "text": error.message(),
            })),
        }),
        Ok(Incoming::Service(kind, body)) => {
            json!({ "service": format!("{kind:?}"), "body_hex": hex(body.of(record)) })
        }
        Ok(Incoming::Probe(id)) => json!({ "probe": id }),
        Ok(Incoming::ProbeAck(id)) => json!({ "probe_ack": id }),
        Ok(Incoming::Flow { version, paused }) => json!({ "flow": { "version": version, "paused": paused } }),
        // Records for Spots have vectors of their own: clients never see them.
        Ok(other) => json!({ "other": format!("{other:?}") }),
    }
}

/// The vectors are what this runtime writes and how it reads. `ZLINK_BLESS=1` writes them anew, for a change that is
/// meant.
///
/// REQ: MSG-701, MSG-703, MSG-704, MSG-706, MSG-707, MSG-708
#[test]
fn records_are_the_golden_vectors() {
    let vectors: Vec<Value> = written()
        .into_iter()
        .chain(refused())
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
    for vector in serde_json::from_str::<Vec<Value>>(&golden).expect("JSON") {
        let record = unhex(vector["hex"].as_str().expect("a hex text"));
        assert_eq!(meaning(&record), vector["is"], "{}", vector["name"]);
    }
}

/// REQ: MSG-706, ERR-707
#[test]
fn what_must_be_refused_is() {
    for (name, record) in refused() {
        assert!(parse(&record).is_err(), "{name}");
    }
    for (name, record) in written() {
        assert!(parse(&record).is_ok(), "{name}");
    }
}

/// A caller of a request that arrived malformed can still be told, as its correlation is in the head.
///
/// REQ: MSG-901
#[test]
fn a_malformed_request_still_tells_whom_to_answer() {
    let mut record = call_record(
        &CallHead {
            request: Some((7 << 32, 1)),
            ..PLAIN
        },
        b"",
    );
    record[2] = 0x80;
    assert_eq!(parse(&record).unwrap_err().correlation, Some(7 << 32));
}

/// A newer minor adds blocks behind optional flags; this reader steps over them.
///
/// REQ: MSG-706
#[test]
fn optional_blocks_are_skipped_by_length() {
    let mut record = Vec::new();
    call(&mut record, &PLAIN);
    record[3] = 0b1010_0000;
    record.extend_from_slice(&[2, 0, 0xaa, 0xbb]);
    record.extend_from_slice(&[0, 0]);
    record.extend_from_slice(b"payload");
    let Ok(Incoming::Call(call)) = parse(&record) else {
        panic!("it is a call")
    };
    assert_eq!(call.payload.of(&record), b"payload");
}

/// REQ: ERR-101, ERR-701
#[test]
fn every_error_kind_crosses_the_wire() {
    for (number, kind) in (0..).zip(ErrorKind::ALL) {
        assert_eq!(kind.number(), number);
        for error in [Error::not_executed(kind, "why"), Error::unknown(kind, "x".repeat(1000))] {
            let record = reply_failed(9 << 32, &error);
            let Ok(Incoming::Reply(reply)) = parse(&record) else {
                panic!("it is a reply")
            };
            assert_eq!(
                reply.result,
                Err(error),
                "the text is cut to 256 bytes before it travels"
            );
        }
    }
}

/// REQ: MSG-602, MSG-708
#[test]
fn admission_messages_survive_the_round_trip() {
    let bytes = encode(&hello(), <[u8]>::to_vec).unwrap();
    assert_eq!(decode::<Hello>(&bytes).unwrap(), hello());
}

proptest! {
    /// REQ: MSG-903
    #[test]
    fn any_bytes_are_read_or_refused(record in proptest::collection::vec(any::<u8>(), 0..200), kind in 0_u8..40) {
        let mut record = record;
        let _ = parse(&record);
        if record.len() > 4 {
            // Past the first checks, into the parts.
            record[0] = MAJOR;
            record[1] = kind;
            let _ = meaning(&record);
        }
    }
}

/// Damaged records, and what a mesh reads of them before it knows the peer.
#[test]
#[ignore = "a soak: `make soak` runs it for ZLINK_SOAK_SECONDS, 60 where that is not set"]
fn soak_of_records() {
    let seconds = std::env::var("ZLINK_SOAK_SECONDS").map_or(60, |seconds| seconds.parse().expect("seconds"));
    let end = Instant::now() + Duration::from_secs(seconds);
    let records: Vec<Vec<u8>> = written().into_iter().map(|(_, record)| record).collect();
    let byte = prop_oneof![any::<u8>(), Just(0), Just(0xff), Just(0x7f)];
    let damage = proptest::collection::vec((any::<prop::sample::Index>(), byte), 0..8);
    let tail = proptest::collection::vec(any::<u8>(), 0..40);
    let damaged = (0..records.len(), damage, any::<prop::sample::Index>(), tail);
    let mut cases = 0;
    while Instant::now() < end {
        let config = Config {
            cases: 20_000,
            failure_persistence: None,
            ..Config::default()
        };
        cases += config.cases;
        let outcome = TestRunner::new(config).run(&damaged, |(record, damage, cut, tail)| {
            let mut record = records[record].clone();
            damage
                .into_iter()
                .for_each(|(at, byte)| *at.get_mut(&mut record) = byte);
            if tail.len() < 20 {
                record.truncate(cut.index(record.len() + 1));
            }
            record.extend(tail);
            let start = Instant::now();
            if let Ok(Incoming::Service(_, body)) = parse(&record) {
                let body = body.of(&record);
                let _ = (decode::<Hello>(body), decode::<Update>(body), decode::<Reject>(body));
            }
            let _ = meaning(&record);
            prop_assert!(
                start.elapsed() < Duration::from_secs(1),
                "it took {:?}",
                start.elapsed()
            );
            Ok(())
        });
        outcome.unwrap_or_else(|failure| panic!("{failure}"));
    }
    println!("{cases} records read or refused");
}
