//! Section 8: the boundary passes, one more fails whole, and the next normal message works.

use std::time::Duration;

use zlink_generated::contract::{Note, desk_client, orders_client, orders_server};
use zlink_generated::zlink_wire::{Hello, RecordKind, RejectReason};
use zlink_runtime::error::{CallError, ErrorKind, Execution};
use zlink_runtime::id::Rid;
use zlink_runtime::prelude::*;
use zlink_runtime::rt;
use zlink_runtime::transport::Endpoint;

use crate::kit::{
    ANY, Craft, Desk, Raw, SHOP, WAYS, Way, answer, at_rest, calling, encoded, endpoint, failure, heavy, hello,
    hello_of, linked, node, note, raw_client, rid_of, settle, soon, until,
};

/// Bytes of a request and of a reply beside their payload.
const REQUEST_HEAD: usize = 24;
const SEND_HEAD: usize = 8;
const REPLY_HEAD: usize = 16;

async fn server(way: Way, desk: &Desk, max_message: usize) -> Host {
    let orders = orders_server(desk.clone());
    let builder = match way {
        Way::Mesh => node("server", |mesh| mesh.serve(orders).max_message(max_message)),
        Way::ClientServer => {
            Host::builder().client_server(|channel| channel.serve(orders).listen(ANY).max_message(max_message))
        }
    };
    builder.start().await.unwrap()
}

async fn caller(way: Way, server: &Host, max_message: usize) -> Host {
    let to = match way {
        Way::Mesh => endpoint(server),
        Way::ClientServer => {
            let kind = zlink_runtime::ListenerKind::ClientServer;
            server.listener(kind, "orders").unwrap().endpoint.to_string()
        }
    };
    let orders = zlink_generated::contract::ORDERS;
    let builder = match way {
        Way::Mesh => node("caller", |mesh| {
            mesh.client(orders).connect(to).max_message(max_message)
        }),
        Way::ClientServer => {
            Host::builder().client_server(|channel| channel.client(orders).connect(to).max_message(max_message))
        }
    };
    let host = builder.start().await.unwrap();
    until("a server", || crate::kit::candidates(&host) == 1).await;
    host
}

/// The largest note of at most `bytes` encoded bytes, and the smallest that has more. An encoding grows in steps.
fn notes_around(bytes: usize) -> (Note, Note) {
    let body = (bytes - 200..)
        .find(|body| encoded(&heavy(1, *body)).len() > bytes)
        .unwrap();
    (heavy(1, body - 1), heavy(2, body))
}

/// Whichever side has the smaller bound: it holds for requests, sends and replies.
///
/// REQ: MSG-803, MSG-804, MSG-904
#[tokio::test]
async fn the_smaller_of_both_sides_bounds_a_message() {
    const LARGE: usize = 1 << 20;
    let (fits, exceeds) = notes_around(20_000);
    for way in WAYS {
        for server_has_less in [true, false] {
            let bound = |head: usize| encoded(&fits).len() + head;
            let sides = |small| {
                if server_has_less {
                    (small, LARGE)
                } else {
                    (LARGE, small)
                }
            };

            let desk = Desk::new("s");
            let (at_server, at_caller) = sides(bound(REQUEST_HEAD));
            let s = server(way, &desk, at_server).await;
            let c = caller(way, &s, at_caller).await;
            let orders = orders_client(&c);
            soon("the boundary", orders.ask(fits.clone())).await.unwrap();
            let over = soon("a refusal", orders.ask(exceeds.clone())).await;
            assert!(matches!(over, Err(CallError::Argument(_))), "{way:?}: {over:?}");
            soon("the next", orders.ask(note("", 3))).await.unwrap();
            assert_eq!(desk.numbers(), [1, 3], "no part of it reached the handler");
            assert_eq!(desk.seen()[0].bytes, fits.body.len());

            let desk = Desk::new("s");
            let (at_server, at_caller) = sides(bound(SEND_HEAD));
            let s = server(way, &desk, at_server).await;
            let c = caller(way, &s, at_caller).await;
            let orders = orders_client(&c);
            soon("the boundary", orders.tell(fits.clone())).await.unwrap();
            let over = soon("a refusal", orders.tell(exceeds.clone())).await;
            assert!(matches!(over, Err(CallError::Argument(_))), "{way:?}: {over:?}");
            soon("the next", orders.tell(note("", 3))).await.unwrap();
            desk.reached(2).await;
            assert_eq!(desk.numbers(), [1, 3]);

            // The reply says who answered, in one byte.
            let weighs = |number: usize| Note {
                text: "s".into(),
                number: number as u64,
                body: vec![0x5a; number],
            };
            let most = (19_000..)
                .find(|body| encoded(&weighs(body + 1)).len() > 20_000)
                .unwrap();
            let desk = Desk::new("s");
            let (at_server, at_caller) = sides(encoded(&weighs(most)).len() + REPLY_HEAD);
            let s = server(way, &desk, at_server).await;
            let c = caller(way, &s, at_caller).await;
            let orders = orders_client(&c);
            let reply = soon("the boundary", orders.ask(note("weigh", most as u64)))
                .await
                .unwrap();
            assert_eq!(reply.body.len(), most);
            let over = failure(soon("an end", orders.ask(note("weigh", most as u64 + 1))).await);
            assert_eq!(over, (ErrorKind::InternalFailure, Execution::Unknown), "{way:?}");
            soon("the next", orders.ask(note("", 3))).await.unwrap();
            at_rest(&[&s, &c]).await;
        }
    }
}

/// A peer that does not keep the bound that it was told is cut off; what it sent reaches nobody.
///
/// REQ: MSG-803, MSG-804, MSG-904, MSG-903
#[tokio::test]
async fn a_peer_that_sends_more_is_cut_off() {
    for way in WAYS {
        // More than what one read or one joined frame may bring, or a bound of the link would be met first.
        let fits = Craft::request(1, "orders", "contract.orders.ask").message(&heavy(1, 100_000));
        let bound = fits.record().len();
        let desk = Desk::new("s");
        let s = server(way, &desk, bound).await;
        let c = calling(way, "c", &s, |host| host).await;
        let raw = raw_client(way, "raw", &s).await;
        raw.say(&fits.record());
        assert_eq!(answer(&raw).await.failed, None);
        let padded = [fits.record(), vec![0]].concat();
        assert_eq!(padded.len(), bound + 1);
        raw.say(&padded);
        raw.ended().await;
        assert_eq!(desk.runs(), 1);
        soon("another peer's request", orders_client(&c).ask(note("", 5)))
            .await
            .unwrap();
        let again = raw_client(way, "raw", &s).await;
        again.say(&fits.record());
        assert_eq!(answer(&again).await.failed, None);
        at_rest(&[&s, &c]).await;
    }
}

/// What a host tells its peers of its bounds.
///
/// REQ: MSG-803, MSG-804, MSG-805
#[tokio::test]
async fn the_bounds_that_hold_where_none_is_set() {
    let told = async |way: Way, host: &Host| {
        let hello_ = match way {
            Way::Mesh => hello_of("raw"),
            Way::ClientServer => Hello {
                topology: zlink_generated::zlink_wire::Topology::ClientServer,
                scope: "orders".into(),
                ..hello_of("raw")
            },
        };
        let to = match way {
            Way::Mesh => endpoint(host),
            Way::ClientServer => {
                let kind = zlink_runtime::ListenerKind::ClientServer;
                host.listener(kind, "orders").unwrap().endpoint.to_string()
            }
        };
        let raw = Raw::dial(&to, &hello_).await;
        raw.say(&hello(RecordKind::Hello, &hello_));
        rt::decode::<Hello>(&raw.heard(RecordKind::Admit).await[4..])
            .unwrap()
            .max_message
    };
    let desk = Desk::new("s");
    let unset = crate::kit::serving(Way::Mesh, orders_server(desk.clone()), |host| host).await;
    assert_eq!(told(Way::Mesh, &unset).await, 64 << 20);
    let unset = crate::kit::serving(Way::ClientServer, orders_server(desk.clone()), |host| host).await;
    assert_eq!(told(Way::ClientServer, &unset).await, 16_777_216);
    let none = server(Way::ClientServer, &desk, 0).await;
    assert_eq!(told(Way::ClientServer, &none).await, (1 << 31) - 1);
    for way in WAYS {
        let most = server(way, &desk, (1 << 31) - 1).await;
        assert_eq!(told(way, &most).await, (1 << 31) - 1);
    }
}

/// REQ: MSG-806
#[tokio::test]
async fn the_bounds_of_identities_and_endpoints() {
    let longest = "r".repeat(255);
    let desk = Desk::new("s");
    let s = node(&longest, |mesh| mesh.serve_node(desk.node()))
        .start()
        .await
        .unwrap();
    let c = node(&"c".repeat(255), |mesh| mesh.connect_to(endpoint(&s), &longest))
        .start()
        .await
        .unwrap();
    linked(&c, &rid_of(&s)).await;
    desk_client(&c, &SHOP, Rid::new(&longest).unwrap())
        .ask(note("", 1))
        .await
        .unwrap();
    assert_eq!(desk.seen()[0].source.clone().unwrap().1, rid_of(&c));
    assert!(Rid::new("r".repeat(256)).is_err());
    assert!(Rid::new("").is_err());

    let endpoint_of = |bytes: usize| format!("tcp://{}:7001", "h".repeat(bytes - "tcp://:7001".len()));
    assert!(endpoint_of(4097).parse::<Endpoint>().is_err());
    let mesh = c.mesh("shop").unwrap();
    assert!(mesh.connect(&endpoint_of(4097), None).is_err());

    // What no encoder of ours would write: one byte more than each field may have.
    for (rid, endpoint_bytes, admitted) in [(255, 4096, true), (256, 4096, false), (255, 4097, false)] {
        let dialled = Hello {
            rid: vec![b'q'; 255],
            ..hello_of("")
        };
        let raw = Raw::dial(&endpoint(&s), &dialled_as(&dialled)).await;
        raw.say(&hello_by_hand(rid, endpoint_bytes));
        if admitted {
            raw.heard(RecordKind::Admit).await;
            raw.leave();
        } else {
            assert_eq!(
                raw.rejected().await,
                RejectReason::InvalidDescriptor,
                "{rid} {endpoint_bytes}"
            );
        }
    }
    soon("the next call", desk_client(&c, &SHOP, rid_of(&s)).ask(note("", 2)))
        .await
        .unwrap();
}

fn dialled_as(hello: &Hello) -> Hello {
    Hello {
        generation: 7,
        ..hello.clone()
    }
}

/// A hello of the mesh `shop` that no bound of a schema has checked.
fn hello_by_hand(rid: usize, endpoint: usize) -> Vec<u8> {
    let mut builder = flatbuffers::FlatBufferBuilder::new();
    let scope = builder.create_string("shop");
    let rid = builder.create_vector(&vec![b'q'; rid]);
    let endpoint = builder.create_string(&"e".repeat(endpoint));
    let slot = |id: u16| 4 + 2 * id;
    let table = builder.start_table();
    builder.push_slot_always(slot(1), scope);
    builder.push_slot_always(slot(2), rid);
    builder.push_slot_always(slot(7), endpoint);
    for (id, value) in [(3, 7_u64), (4, 1), (10, 64 << 20)] {
        builder.push_slot_always(slot(id), value);
    }
    for id in [0, 5, 11] {
        // route_mesh, none, serving
        builder.push_slot_always(slot(id), 1_u8);
    }
    let table = builder.end_table(table);
    builder.finish_minimal(table);
    crate::kit::record(RecordKind::Hello, builder.finished_data())
}

/// REQ: MSG-501, MSG-502
#[tokio::test]
async fn what_was_accepted_no_longer_needs_its_caller() {
    for way in WAYS {
        let desk = Desk::new("s");
        let orders = orders_server(desk.clone()).dispatch_limit(1);
        let s = crate::kit::serving(way, orders, |host| host).await;
        let c = calling(way, "c", &s, |host| host).await;
        orders_client(&c).tell(note("hold", 0)).await.unwrap();
        for number in 1..20 {
            let body = vec![number as u8; 30_000];
            let message = Note {
                text: format!("text {number}"),
                number,
                body,
            };
            orders_client(&c).tell(message).await.unwrap();
        }
        soon("the stop", c.shutdown()).await.unwrap();
        drop(c);
        desk.gate().open();
        desk.reached(20).await;
        for seen in &desk.seen()[1..] {
            assert_eq!(
                (seen.text.clone(), seen.bytes),
                (format!("text {}", seen.number), 30_000)
            );
        }
        at_rest(&[&s]).await;
    }
}

/// REQ: MSG-504, MSG-902
#[tokio::test]
async fn a_body_is_not_looked_at_before_its_turn() {
    for way in WAYS {
        let desk = Desk::new("s");
        let orders = orders_server(desk.clone()).dispatch_limit(1);
        let s = crate::kit::serving(way, orders, |host| host.drain_timeout(Duration::from_secs(1))).await;
        let raw = raw_client(way, "raw", &s).await;
        raw.say(
            &Craft::send("orders", "contract.orders.tell")
                .message(&note("hold", 0))
                .record(),
        );
        desk.reached(1).await;
        let garbage = |number| {
            Craft::request(number, "orders", "contract.orders.ask")
                .bytes(&[0xff; 40])
                .record()
        };
        raw.say(&garbage(1));
        until("it to be queued", || s.status().jobs.queued == 1).await;
        settle().await;
        assert_eq!(raw.count(RecordKind::Reply), 0, "nobody has looked at it");
        desk.gate().release(1);
        let end = answer(&raw).await;
        assert_eq!(
            (end.correlation, end.failed),
            (1, Some((ErrorKind::ProtocolError, Execution::NotExecuted)))
        );

        // What is refused for another reason is not looked at, at all.
        raw.say(
            &Craft::send("orders", "contract.orders.tell")
                .message(&note("hold", 2))
                .record(),
        );
        desk.reached(2).await;
        let stopping = s.clone();
        let stop = crate::kit::spawn(async move { stopping.shutdown().await });
        until("draining", || s.status().phase != zlink_runtime::HostPhase::Serving).await;
        raw.say(&garbage(3));
        let (kind, execution) = answer(&raw).await.failed.unwrap();
        assert!(matches!(kind, ErrorKind::ShuttingDown | ErrorKind::Rejected), "{kind}");
        assert_eq!(execution, Execution::NotExecuted);
        desk.gate().open();
        soon("the stop", stop).await.unwrap().unwrap();
        assert_eq!(desk.numbers(), [0, 2]);
        at_rest(&[&s]).await;
    }
}
