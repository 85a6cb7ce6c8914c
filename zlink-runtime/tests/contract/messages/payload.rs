//! Sections 5 to 8: what a codec sees, how a payload travels, and the least that a link carries.

use zlink_generated::contract::{Note, orders_client, orders_server};
use zlink_generated::zlink_wire::{Hello, RecordKind, RejectReason, Topology};
use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::limit::LEAST_MESSAGE_BYTES;
use zlink_runtime::rt;
use zlink_runtime::transport::Lane;

use crate::kit::{
    Craft, Desk, Raw, WAYS, Way, address, answer, at_rest, encoded, heavy, hello, hello_of, note, raw_client,
    raw_server, reply_to, serving, settle, soon, spawn, until,
};

const CONTENT_TYPE: u16 = 2;
const DEFAULT: &str = "application/x-flatbuffers";

/// Whatever the route, the name, the kind and the metadata: the bytes of a value are those of its codec, which knows
/// nothing else. They come last in a record, and are all that is read of it again.
///
/// REQ: MSG-601, MSG-701
#[tokio::test]
async fn a_codec_sees_a_value_and_bytes_and_nothing_else() {
    let value = || Note {
        text: "what is sent".into(),
        ..heavy(7, 100)
    };
    let bytes = encoded(&value());
    assert_eq!(rt::decode::<Note>(&bytes).unwrap(), value());
    let mut heads = Vec::new();
    for way in WAYS {
        let (c, raw) = raw_server(way, |host| host).await;
        let orders = orders_client(&c);
        soon("a send", orders.tell(value())).await.unwrap();
        soon("a send", orders.tell(value()).metadata("key", "value"))
            .await
            .unwrap();
        for _ in 0..2 {
            heads.push(raw.heard(RecordKind::ChannelSend).await);
        }
        for call in [spawn(orders.ask(value())), spawn(orders.hurry(value()))] {
            let request = raw.heard(RecordKind::ChannelRequest).await;
            raw.say_on(Lane::Completion, &reply_to(&request, [0; 4], &bytes))
                .unwrap();
            assert_eq!(soon("the reply", call).await.unwrap().unwrap(), value());
            heads.push(request);
        }
    }
    for record in &mut heads {
        let head = record.len().checked_sub(bytes.len()).unwrap();
        assert_eq!(record.split_off(head), bytes);
        assert!(head <= 100, "{head} bytes are no head");
    }
    heads.sort();
    heads.dedup();
    assert!(heads.len() >= 4, "it travelled in different ways: {heads:?}");
}

/// A payload names its content type, or means the default one, and is all that is left of its record: not a byte more or
/// less is taken for it.
///
/// REQ: MSG-702, MSG-604
#[tokio::test]
async fn a_payload_has_its_content_type_and_exactly_its_bytes() {
    for way in WAYS {
        let desk = Desk::new("s");
        let s = serving(way, orders_server(desk.clone()), |host| host).await;
        let raw = raw_client(way, "raw", &s).await;
        let ask = |number| Craft::request(number, "orders", "contract.orders.ask").message(&heavy(number, 100));
        // A length that takes a byte of what follows, or leaves one, moves the payload too.
        let named = |length: usize| [&[length as u8], DEFAULT.as_bytes()].concat();
        let malformed = Some((ErrorKind::ProtocolError, Execution::NotExecuted));
        let whole = DEFAULT.len();
        for (number, request, failed) in [
            (1, ask(1), None),
            (2, ask(2).flag(CONTENT_TYPE, &named(whole)), None),
            (3, ask(3).flag(CONTENT_TYPE, &named(whole + 1)), malformed),
            (4, ask(4).flag(CONTENT_TYPE, &named(whole - 1)), malformed),
            (5, ask(5), None),
        ] {
            raw.say(&request.record());
            let end = answer(&raw).await;
            assert_eq!((end.correlation, end.failed), (number, failed), "{way:?}");
        }
        assert_eq!(desk.numbers(), [1, 2, 5]);
        let seen = desk.seen();
        assert!(
            seen.iter()
                .all(|seen| seen.content_type == DEFAULT && seen.bytes == 100)
        );
        at_rest(&[&s]).await;
    }
}

/// Who would take less than any call and any news of this side need is not admitted; with that much it is, and is served.
///
/// REQ: MSG-803, MSG-804, NET-602, NET-603
#[tokio::test]
async fn a_peer_that_takes_too_little_is_refused() {
    for way in WAYS {
        let desk = Desk::new("s");
        let s = serving(way, orders_server(desk.clone()), |host| host).await;
        let takes = |max_message| {
            let about = hello_of("raw");
            match way {
                Way::Mesh => Hello { max_message, ..about },
                Way::ClientServer => Hello {
                    topology: Topology::ClientServer,
                    scope: "orders".into(),
                    max_message,
                    ..about
                },
            }
        };
        let least = LEAST_MESSAGE_BYTES as u64;
        for too_little in [0, 1, least - 1] {
            let about = takes(too_little);
            let raw = Raw::dial(&address(&s), &about).await;
            raw.say(&hello(RecordKind::Hello, &about));
            assert_eq!(
                raw.rejected().await,
                RejectReason::ResourceLimit,
                "{way:?}, {too_little}"
            );
            raw.ended().await;
        }
        let raw = Raw::join(&address(&s), &takes(least)).await;
        raw.ask(1, "orders", "contract.orders.ask", &note("", 1));
        assert_eq!(raw.reply().await.failed, None, "{way:?}");
        assert_eq!(desk.runs(), 1);
    }
}

/// A job is a job, whatever it weighs: as many of them are read, and what else there is waits at its sender.
///
/// REQ: MSG-809, MSG-506
#[tokio::test]
async fn jobs_are_counted_and_bytes_wait_at_their_sender() {
    const JOBS: u32 = 3;
    for way in WAYS {
        for bytes in [0, 500_000] {
            let desk = Desk::new("s");
            let orders = orders_server(desk.clone()).dispatch_limit(1);
            let s = serving(way, orders, |host| host.max_queued_jobs(JOBS)).await;
            let raw = raw_client(way, "raw", &s).await;
            let tell = |number| {
                let message = Note {
                    text: "hold".into(),
                    ..heavy(number, bytes)
                };
                Craft::send("orders", "contract.orders.tell").message(&message).record()
            };
            for number in 0..u64::from(JOBS) {
                raw.push(tell(number)).await;
            }
            raw.push(tell(9)).await;
            desk.reached(1).await;
            until("as many jobs as may wait", || s.status().jobs.in_use() == JOBS).await;
            settle().await;
            assert_eq!(s.status().jobs.in_use(), JOBS, "{way:?}, {bytes} bytes each");
            desk.gate().open();
            desk.reached(JOBS as usize + 1).await;
            at_rest(&[&s]).await;
        }
    }
}
