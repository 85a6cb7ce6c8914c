//! Sections 6, 7 and 9: what cannot be read reaches no handler, and its caller hears of it.

use zlink_generated::contract::{
    ORDERS, Strict, orders_client, orders_server, skewed_client, strict_client, strict_server,
};
use zlink_generated::zlink_wire::RecordKind;
use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::transport::Lane;

use crate::kit::{
    Craft, Desk, Events, WAYS, Way, answer, at_rest, calling, encoded, failure, metadata_block, note, raw_client,
    raw_server, reply_to, serving, settle, sized, soon, spawn, until,
};

const METADATA: u16 = 1;
const CONTENT_TYPE: u16 = 2;
const FLOW: u16 = 4;

/// What the kinds of a call share: a request or a send with something wrong in it.
type Wrong = (&'static str, Box<dyn Fn(Craft) -> Craft>);

fn wrongs() -> Vec<Wrong> {
    let good = || encoded(&note("", 0));
    let mut wrongs: Vec<Wrong> = Vec::new();
    let mut add = |what, change: Box<dyn Fn(Craft) -> Craft>| wrongs.push((what, change));
    add("no body", Box::new(|call| call.bytes(&[])));
    add("garbage for a body", Box::new(|call| call.bytes(&[0xff; 64])));
    add("a body of zeros", Box::new(|call| call.bytes(&[0; 64])));
    add(
        "half a body",
        Box::new(move |call| call.bytes(&good()[..good().len() / 2])),
    );
    add(
        "a required flag that nobody knows",
        Box::new(|call| call.flag(0x40, &[])),
    );
    add(
        "a block beyond its end",
        Box::new(|call| call.flag(0x100, &[0xff, 0xff]).bytes(&[])),
    );
    add(
        "metadata beyond its end",
        Box::new(|call| call.flag(METADATA, &[0xff, 0x03]).bytes(&[])),
    );
    add(
        "too much metadata",
        Box::new(|call| call.flag(METADATA, &sized(&[0; 1025]))),
    );
    for (what, entries) in [
        ("metadata with an empty key", &[(&b""[..], &b"v"[..])][..]),
        ("metadata with a NUL in a key", &[(b"k\0", b"v")]),
        ("metadata with a NUL in a value", &[(b"k", b"\0")]),
        ("metadata with a key that is no text", &[(b"\xff", b"v")]),
        ("metadata with a value that is no text", &[(b"k", b"\xc3")]),
        ("metadata with one key twice", &[(b"k", b"1"), (b"k", b"2")]),
        ("metadata that is not sorted", &[(b"l", b"1"), (b"k", b"2")]),
        ("metadata without entries", &[]),
    ] {
        let block = metadata_block(entries);
        add(what, Box::new(move |call| call.flag(METADATA, &block)));
    }
    let mut cut = metadata_block(&[(b"k", b"v")]);
    cut[3] = 9;
    add(
        "metadata that counts more entries than it has",
        Box::new(move |call| call.flag(METADATA, &cut)),
    );
    add(
        "metadata of another layout",
        Box::new(|call| call.flag(METADATA, &sized(&[1, 1, 1, 0, 0, b'k']))),
    );
    for name in ["application/json", "application/x-flatbuffers ", "\u{fffd}"] {
        let block = [&[name.len() as u8], name.as_bytes()].concat();
        add(
            "an unknown content type",
            Box::new(move |call| call.flag(CONTENT_TYPE, &block)),
        );
    }
    add("an empty content type", Box::new(|call| call.flag(CONTENT_TYPE, &[0])));
    add(
        "a content type that is no text",
        Box::new(|call| call.flag(CONTENT_TYPE, &[2, 0xff, 0xff])),
    );
    add("half a flow", Box::new(|call| call.flag(FLOW, &[7; 9]).bytes(&[])));
    wrongs
}

/// REQ: MSG-901, MSG-902, MSG-405, MSG-604, PM-76
#[tokio::test]
async fn a_malformed_call_reaches_no_handler() {
    for way in WAYS {
        let desk = Desk::new("s");
        let s = serving(way, orders_server(desk.clone()), |host| host).await;
        let raw = raw_client(way, "raw", &s).await;
        let events = Events::collect();
        for (number, (what, wrong)) in (1..).zip(wrongs()) {
            let request = Craft::request(number, "orders", "contract.orders.ask").message(&note("", number));
            raw.say(&wrong(request).record());
            let end = answer(&raw).await;
            let malformed = Some((ErrorKind::ProtocolError, Execution::NotExecuted));
            assert_eq!((end.correlation, end.failed), (number, malformed), "{way:?}, {what}");
            let text = std::str::from_utf8(&end.body).unwrap();
            assert!(!text.is_empty() && text.len() <= 256, "{what}: {text}");

            let before = events.count(&["zlink.dispatch_error", "drop"]);
            let send = Craft::send("orders", "contract.orders.tell").message(&note("", number));
            raw.say(&wrong(send).record());
            until(what, || events.count(&["zlink.dispatch_error", "drop"]) == before + 1).await;
        }
        assert_eq!(desk.runs(), 0);
        assert_eq!(s.status().jobs.in_use(), 0, "every permit is back");
        assert!(raw.is_open());
        raw.say(
            &Craft::request(99, "orders", "contract.orders.ask")
                .message(&note("", 99))
                .record(),
        );
        let end = answer(&raw).await;
        assert_eq!((end.correlation, end.failed), (99, None), "the next one works");
        assert_eq!(desk.numbers(), [99]);
        at_rest(&[&s]).await;
    }
}

/// A request without a correlation has nobody to answer.
///
/// REQ: MSG-905, MSG-902
#[tokio::test]
async fn an_empty_correlation_is_malformed() {
    for way in WAYS {
        let desk = Desk::new("s");
        let s = serving(way, orders_server(desk.clone()), |host| host).await;
        let raw = raw_client(way, "raw", &s).await;
        let events = Events::collect();
        raw.say(
            &Craft::request(0, "orders", "contract.orders.ask")
                .message(&note("", 1))
                .record(),
        );
        events.heard(&["zlink.dispatch_error", "invalid_frame"]).await;
        settle().await;
        assert_eq!((desk.runs(), raw.count(RecordKind::Reply)), (0, 0));
        at_rest(&[&s]).await;
    }
}

/// REQ: MSG-905
#[tokio::test]
async fn a_flow_that_makes_no_sense_is_malformed() {
    let desk = Desk::new("s");
    let s = serving(Way::Mesh, orders_server(desk.clone()), |host| host).await;
    let raw = raw_client(Way::Mesh, "raw", &s).await;
    let version_7 = [1, 0x93, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 1];
    let version_4 = [1, 0x93, 0, 0, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, 1];
    for (number, (id, origin, good)) in (1..).zip([
        (version_7, 1, true),
        (version_7, 0, false),
        (version_7, 200, false),
        (version_4, 1, false),
        ([0; 16], 1, false),
    ]) {
        let request = Craft::request(number, "orders", "contract.orders.ask").message(&note("", number));
        raw.say(&request.flag(FLOW, &[&id[..], &[origin]].concat()).record());
        let end = answer(&raw).await;
        let malformed = Some((ErrorKind::ProtocolError, Execution::NotExecuted));
        assert_eq!(end.failed, if good { None } else { malformed }, "{id:?} {origin}");
    }
    assert_eq!(desk.numbers(), [1]);
}

/// What a newer peer may add is skipped by its length.
///
/// REQ: MSG-706, MSG-606
#[tokio::test]
async fn optional_blocks_of_a_newer_minor_are_skipped() {
    for way in WAYS {
        let desk = Desk::new("s");
        let s = serving(way, orders_server(desk.clone()), |host| host).await;
        let raw = raw_client(way, "raw", &s).await;
        let call = Craft::request(1, "orders", "contract.orders.ask")
            .flag(0x0100, &sized(b"who knows"))
            .flag(0x8000, &sized(&[0; 5000]))
            .flag(METADATA, &metadata_block(&[(b"k", b"v")]))
            .flag(CONTENT_TYPE, &[&[25], &b"application/x-flatbuffers"[..]].concat())
            .message(&note("", 1));
        raw.say(&call.record());
        assert_eq!(answer(&raw).await.failed, None);
        assert_eq!(desk.seen()[0].metadata.view().get("k"), Some("v"));
    }
}

/// Payloads that are cut off or changed, anywhere: a protocol error or, where nothing that matters was hit, a value.
///
/// REQ: MSG-606, MSG-901, MSG-903, MSG-902
#[tokio::test]
async fn a_damaged_payload_is_refused_or_read_but_never_harms() {
    let desk = Desk::new("s");
    let s = serving(Way::Mesh, strict_server(desk.clone()), |host| host).await;
    let raw = raw_client(Way::Mesh, "raw", &s).await;
    let whole = encoded(&Strict {
        text: "text".into(),
        number: 1,
        body: vec![7; 20],
        must: "must".into(),
    });
    let mut damaged: Vec<(bool, Vec<u8>)> = (0..whole.len())
        .map(|length| (true, whole[..length].to_vec()))
        .collect();
    for bit in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        damaged.push((false, flipped));
    }
    for at in (0..whole.len() - 4).step_by(4) {
        // A length or an offset of 4 GiB.
        let mut huge = whole.clone();
        huge[at..at + 4].copy_from_slice(&[0xff; 4]);
        damaged.push((false, huge));
    }
    let (mut read, mut refused) = (0, 0);
    for (number, (cut, payload)) in (1..).zip(&damaged) {
        raw.say(
            &Craft::request(number, "strict", "contract.orders.ask")
                .bytes(payload)
                .record(),
        );
        let end = answer(&raw).await;
        assert_eq!(end.correlation, number);
        match end.failed {
            None => {
                // Behind its last value a payload may have padding.
                assert!(
                    !cut || payload.len() + 8 > whole.len(),
                    "cut to {} of {}",
                    payload.len(),
                    whole.len()
                );
                read += 1;
            }
            failed => {
                assert_eq!(failed, Some((ErrorKind::ProtocolError, Execution::NotExecuted)));
                refused += 1;
            }
        }
    }
    assert!(refused > whole.len(), "{refused} refused, {read} read");
    assert_eq!(desk.runs(), read);
    assert_eq!(s.status().jobs.in_use(), 0);
    assert!(raw.is_open());
}

/// The payload of another message, in both directions.
///
/// REQ: MSG-906, MSG-606, MSG-901
#[tokio::test]
async fn a_message_of_another_type_is_a_protocol_error() {
    for way in WAYS {
        let desk = Desk::new("s");
        let s = serving(way, orders_server(desk.clone()), |host| host).await;
        let c = calling(way, "c", &s, |host| host).await;
        // It ran; its reply lacks a field that this caller needs.
        let end = failure(soon("an end", skewed_client(&c).on(ORDERS).ask(note("", 1))).await);
        assert_eq!(end, (ErrorKind::ProtocolError, Execution::Unknown));
        assert_eq!(desk.runs(), 1);
        soon("the next", orders_client(&c).ask(note("", 2))).await.unwrap();
        at_rest(&[&s, &c]).await;

        let strict = Desk::new("strict");
        let server = strict_server(strict.clone()).on(ORDERS);
        let s = serving(way, server, |host| host).await;
        let c = calling(way, "c", &s, |host| host).await;
        let end = failure(soon("an end", orders_client(&c).ask(note("", 1))).await);
        assert_eq!(end, (ErrorKind::ProtocolError, Execution::NotExecuted));
        let events = Events::collect();
        soon("a send", orders_client(&c).tell(note("", 1))).await.unwrap();
        events.heard(&["zlink.dispatch_error", "decode_error", "drop"]).await;
        assert_eq!(strict.runs(), 0);
        let right = Strict {
            text: String::new(),
            number: 3,
            body: Vec::new(),
            must: "must".into(),
        };
        soon("the next", strict_client(&c).on(ORDERS).ask(right)).await.unwrap();
        at_rest(&[&s, &c]).await;
    }
}

/// REQ: MSG-704, MSG-906, MSG-202
#[tokio::test]
async fn a_malformed_reply_ends_its_request_and_no_other() {
    for way in WAYS {
        let (c, raw) = raw_server(way, |host| host).await;
        let failed = |kind: ErrorKind| [1, kind.number(), 0, 0];
        let payload = encoded(&note("", 0));
        let replies: Vec<(&str, [u8; 4], Vec<u8>)> = vec![
            ("garbage", [0; 4], vec![0xff; 40]),
            ("no payload", [0; 4], Vec::new()),
            ("half a payload", [0; 4], payload[..payload.len() / 2].to_vec()),
            ("an unknown error number", [1, 13, 0, 0], b"text".to_vec()),
            ("the greatest error number", [1, 255, 0, 0], b"text".to_vec()),
            ("success with an error kind", [0, 9, 0, 0], payload.clone()),
            ("success that speaks of execution", [0, 0, 1, 0], payload.clone()),
            ("neither success nor failure", [2, 0, 0, 0], payload.clone()),
            (
                "failure that speaks of execution in another way",
                [1, 0, 2, 0],
                b"text".to_vec(),
            ),
            ("a text of 257 bytes", failed(ErrorKind::Rejected), vec![b't'; 257]),
            ("a text that is no text", failed(ErrorKind::Rejected), vec![0xff]),
        ];
        let other = spawn(orders_client(&c).ask(note("", 0)));
        let held = raw.heard(RecordKind::ChannelRequest).await;
        for (what, result, body) in replies {
            let call = spawn(orders_client(&c).ask(note("", 1)));
            let request = raw.heard(RecordKind::ChannelRequest).await;
            raw.say_on(Lane::Completion, &reply_to(&request, result, &body))
                .unwrap();
            let end = failure(soon(what, call).await.unwrap());
            assert_eq!(end, (ErrorKind::ProtocolError, Execution::Unknown), "{way:?}, {what}");
        }
        // The greatest text that is allowed, and every kind there is.
        for kind in ErrorKind::ALL {
            let call = spawn(orders_client(&c).ask(note("", 1)));
            let request = raw.heard(RecordKind::ChannelRequest).await;
            raw.say_on(Lane::Completion, &reply_to(&request, failed(kind), &[b't'; 256]))
                .unwrap();
            assert_eq!(
                failure(soon("an end", call).await.unwrap()),
                (kind, Execution::NotExecuted)
            );
        }
        assert!(!other.is_finished());
        raw.say_on(Lane::Completion, &reply_to(&held, [0; 4], &payload))
            .unwrap();
        soon("the other reply", other).await.unwrap().unwrap();
        at_rest(&[&c]).await;
    }
}
