//! Chapter 03: what a message carries, how a call completes, what is too large or malformed.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use zlink_generated::contract::{
    ORDERS, STOCK, desk_client, orders_client, orders_server, skewed_client, stock_server,
};
use zlink_generated::zlink_wire::{ChannelServer, Hello, RecordKind};
use zlink_runtime::error::{CallError, ErrorKind, Execution};
use zlink_runtime::id::{ActorId, ChannelName, MeshName, PacketName, Rid, SpotId};
use zlink_runtime::rt;
use zlink_runtime::{Host, ListenerKind, Metadata};

use crate::kit::{
    ANY, Desk, Events, Raw, SHOP, client, client_with, endpoint, failure, heavy, hello_of, linked, node, note,
    peer_state, port_of, request, rid_of, send, server, settle, soon, spawn, until, who,
};

/// REQ: MSG-101, EX-80, MSG-105
#[tokio::test]
async fn a_send_completes_before_its_handler_runs_to_the_end() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let c = client("c", &[&s]).await;
    soon("acceptance", orders_client(&c).tell(note("hold", 1)))
        .await
        .unwrap();
    desk.reached(1).await;
    assert_eq!(desk.ended(), [0; 0]);
    desk.gate().open();
    until("its end", || desk.ended() == [1]).await;
}

/// REQ: MSG-115, ERR-501
#[tokio::test]
async fn sends_over_one_link_stay_in_order() {
    let desk = Desk::new("s");
    let s = node("s", |mesh| mesh.serve(orders_server(desk.clone()).dispatch_limit(1)))
        .start()
        .await
        .unwrap();
    let c = client("c", &[&s]).await;
    let orders = orders_client(&c);
    for number in 0..1000 {
        orders.tell(note("", number)).await.unwrap();
    }
    desk.reached(1000).await;
    assert_eq!(desk.numbers(), (0..1000).collect::<Vec<_>>());
}

/// A caller with a link to a raw server of `orders` that asks it to hold back.
async fn paused(configure: impl FnOnce(zlink_runtime::HostBuilder) -> zlink_runtime::HostBuilder) -> (Host, Raw) {
    let c = client_with("c", &[], configure).await;
    let hello = Hello {
        channels: vec![ChannelServer {
            name: "orders".into(),
            weight: 100,
        }],
        ..hello_of("raw")
    };
    let raw = Raw::join(&endpoint(&c), &hello).await;
    raw.announce(1, true);
    until("the pause", || {
        c.mesh("shop").unwrap().status().peers.iter().any(|peer| peer.paused)
    })
    .await;
    (c, raw)
}

/// REQ: MSG-103, MSG-104, EX-83, PM-96, PM-84
#[tokio::test]
async fn a_send_without_room_waits_as_long_as_it_takes_and_goes_once() {
    let (c, raw) = paused(|host| host).await;
    let mut send = spawn(orders_client(&c).tell(note("", 1)));
    let waiting = tokio::time::timeout(Duration::from_millis(1_300), &mut send).await;
    assert!(waiting.is_err(), "time does not end it: {waiting:?}");
    assert_eq!(raw.count(RecordKind::ChannelSend), 0);
    assert_eq!(
        peer_state(&c, &Rid::new("raw").unwrap()),
        Some(zlink_runtime::PeerState::Ready),
        "a paused link is a ready one"
    );
    raw.announce(2, false);
    soon("acceptance", send).await.unwrap().unwrap();
    raw.heard(RecordKind::ChannelSend).await;
    settle().await;
    assert_eq!(raw.count(RecordKind::ChannelSend), 0, "once");
}

/// REQ: MSG-104, MSG-205, EX-100, EX-83, ERR-307, PM-96
#[tokio::test]
async fn what_ends_a_waiting_send_ends_it_for_good() {
    // A configured send timeout.
    let (c, raw) = paused(|host| host.send_timeout(Duration::from_millis(100))).await;
    let ended = failure(orders_client(&c).tell(note("", 1)).await);
    assert_eq!(ended, (ErrorKind::DeadlineExceeded, Execution::NotExecuted));
    // Its future is dropped.
    let dropped = spawn(orders_client(&c).tell(note("", 2)));
    settle().await;
    dropped.abort();
    let _ = dropped.await;
    // A request's own timeout.
    let timed_out = failure(orders_client(&c).hurry(note("", 3)).await);
    assert_eq!(timed_out, (ErrorKind::DeadlineExceeded, Execution::NotExecuted));
    raw.announce(2, false);
    orders_client(&c).tell(note("", 4)).await.unwrap();
    raw.heard(RecordKind::ChannelSend).await;
    settle().await;
    assert_eq!(
        raw.count(RecordKind::ChannelSend) + raw.count(RecordKind::ChannelRequest),
        0,
        "only the last one"
    );

    // The loss of its target, which nobody takes the place of.
    let (c, raw) = paused(|host| host).await;
    let rid = Rid::new("raw").unwrap();
    let direct = spawn(desk_client(&c, &SHOP, rid.clone()).tell(note("", 5)));
    settle().await;
    raw.leave();
    let lost = failure(soon("its end", direct).await.unwrap());
    assert_eq!(lost, (ErrorKind::Unavailable, Execution::NotExecuted));
    let again = Raw::join(
        &endpoint(&c),
        &Hello {
            generation: 8,
            ..hello_of("raw")
        },
    )
    .await;
    linked(&c, &rid).await;
    settle().await;
    assert_eq!(again.count(RecordKind::NodeSend), 0, "it does not come later");

    // The end of its own host.
    let (c, raw) = paused(|host| host.drain_timeout(Duration::from_millis(200))).await;
    let send = spawn(orders_client(&c).tell(note("", 6)));
    let request = spawn(orders_client(&c).ask(note("", 7)));
    settle().await;
    let _ = c.shutdown().await;
    let stopped = (ErrorKind::ShuttingDown, Execution::NotExecuted);
    assert_eq!(failure(soon("the send", send).await.unwrap()), stopped);
    assert_eq!(failure(soon("the request", request).await.unwrap()), stopped);
    assert_eq!(
        raw.count(RecordKind::ChannelSend) + raw.count(RecordKind::ChannelRequest),
        0
    );
}

/// REQ: MSG-203, EX-90, CH-503, NET-705, ERR-407, PM-43
#[tokio::test]
async fn a_late_reply_only_leaves_a_record() {
    for client_server in [false, true] {
        let desk = Desk::new("s");
        let (s, c);
        if client_server {
            s = Host::builder()
                .client_server(|c| c.serve(orders_server(desk.clone())).listen(ANY))
                .start()
                .await
                .unwrap();
            let to = s
                .listener(ListenerKind::ClientServer, "orders")
                .unwrap()
                .endpoint
                .to_string();
            c = Host::builder()
                .client_server(|c| c.client(ORDERS).connect(to))
                .start()
                .await
                .unwrap();
        } else {
            s = server("s", 100, &desk).await;
            c = client("c", &[&s]).await;
        }
        let events = Events::collect();
        let late = failure(
            orders_client(&c)
                .hurry(note("hold", 1))
                .timeout(Duration::from_millis(300))
                .await,
        );
        assert_eq!(late.0, ErrorKind::DeadlineExceeded);
        desk.reached(1).await;
        assert_eq!(orders_client(&c).ask(note("", 2)).await.unwrap(), note("s", 2));
        let third = spawn(orders_client(&c).ask(note("hold", 3)));
        desk.reached(3).await;
        desk.gate().release(1);
        events.heard(&["unexpected_reply", "outcome=failed", "drop"]).await;
        assert!(!third.is_finished(), "it matches no other call");
        desk.gate().open();
        assert_eq!(soon("the third", third).await.unwrap().unwrap(), note("s", 3));
        assert_eq!(c.status().waiting_requests, 0);
    }
}

/// REQ: MSG-204, ERR-102, EX-88, ERR-208
#[tokio::test]
async fn the_nearest_timeout_holds() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let of_mesh = node("m", |mesh| {
        mesh.client(ORDERS)
            .connect(endpoint(&s))
            .request_timeout(Duration::from_millis(120))
    });
    let of_mesh = of_mesh.request_timeout(Duration::from_secs(9)).start().await.unwrap();
    let of_host = client_with("h", &[&s], |host| host.request_timeout(Duration::from_millis(120))).await;
    linked(&of_mesh, &rid_of(&s)).await;
    let took = async |call: rt::RequestCall<_, zlink_generated::contract::Note>| {
        let begin = Instant::now();
        assert_eq!(failure(call.await), (ErrorKind::DeadlineExceeded, Execution::Unknown));
        begin.elapsed().as_millis() as u64
    };
    let within = |millis: u64, took: u64| assert!((millis..millis + 3_000).contains(&took), "{took} for {millis}");
    within(120, took(orders_client(&of_mesh).ask(note("hold", 0))).await);
    within(120, took(orders_client(&of_host).ask(note("hold", 0))).await);
    within(150, took(orders_client(&of_host).hurry(note("hold", 0))).await);
    within(
        250,
        took(
            orders_client(&of_mesh)
                .hurry(note("hold", 0))
                .timeout(Duration::from_millis(250)),
        )
        .await,
    );
    within(
        1,
        took(
            orders_client(&of_mesh)
                .ask(note("hold", 0))
                .timeout(Duration::from_nanos(1)),
        )
        .await,
    );
    let before = desk.runs();
    for refused in [Duration::ZERO, Duration::from_millis(1 << 31), Duration::MAX] {
        let error = orders_client(&of_mesh)
            .ask(note("", 1))
            .timeout(refused)
            .await
            .unwrap_err();
        assert!(
            matches!(&error, CallError::Argument(error) if error.argument() == "timeout"),
            "{error}"
        );
        assert_eq!((error.kind(), error.execution()), (None, Execution::NotExecuted));
    }
    let longest = Duration::from_millis(i32::MAX as u64);
    orders_client(&of_mesh).ask(note("", 2)).timeout(longest).await.unwrap();
    settle().await;
    assert_eq!(desk.runs(), before + 1, "refused arguments submit nothing");
    desk.gate().open();
}

/// REQ: MSG-205, EX-100, EX-101, ERR-106
#[tokio::test]
async fn dropping_an_accepted_call_only_ends_the_waiting() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let c = client("c", &[&s]).await;
    let events = Events::collect();
    let call = spawn(orders_client(&c).ask(note("hold", 1)));
    desk.reached(1).await;
    assert_eq!(c.status().waiting_requests, 1);
    call.abort();
    let _ = call.await;
    assert_eq!(c.status().waiting_requests, 0);
    desk.gate().open();
    until("its end", || desk.ended() == [1]).await;
    events.heard(&["unexpected_reply"]).await;
    assert_eq!(desk.dropped(), [0; 0]);
    drop(orders_client(&c).ask(note("", 2)));
    drop(std::future::IntoFuture::into_future(orders_client(&c).ask(note("", 3))));
    settle().await;
    assert_eq!(desk.runs(), 1, "what is not awaited does nothing");
}

/// REQ: MSG-206, MSG-302, MSG-305, MSG-406, EX-74, CH-605
#[tokio::test]
async fn correlation_and_metadata_belong_to_one_hop() {
    let (front, back) = (Desk::new("front"), Desk::new("back"));
    let b = node("b", |mesh| mesh.serve(stock_server(back.clone())))
        .start()
        .await
        .unwrap();
    let f = node("f", |mesh| {
        mesh.serve(orders_server(front.clone()))
            .client(STOCK)
            .connect(endpoint(&b))
    });
    let f = f.start().await.unwrap();
    linked(&f, &rid_of(&b)).await;
    let c = client("c", &[&f]).await;
    let reply = orders_client(&c)
        .ask(note("relay", 7))
        .metadata("tenant", "acme")
        .await
        .unwrap();
    assert_eq!(reply, note("back", 7));
    let (first, second) = (front.seen().remove(0), back.seen().remove(0));
    assert_eq!(first.metadata.view().get("tenant"), Some("acme"));
    assert!(
        second.metadata.view().is_empty(),
        "a call from a handler starts without any"
    );
    assert_eq!(first.packet, "contract.orders.ask", "the schema's name, not the type's");
    let held: Vec<_> = (0..20)
        .map(|number| spawn(orders_client(&c).ask(note("hold", number))))
        .collect();
    front.reached(21).await;
    orders_client(&c).tell(note("", 99)).await.unwrap();
    front.reached(22).await;
    let seen = front.seen();
    let mut ids: Vec<_> = seen[1..21]
        .iter()
        .map(|seen| seen.correlation.clone().unwrap())
        .collect();
    assert!(
        ids.iter().all(|id| (1..=64).contains(&id.len()) && id.is_ascii()),
        "{ids:?}"
    );
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 20, "unique among those that wait");
    assert_eq!(seen[21].correlation, None, "a send has none");
    front.gate().open();
    for call in held {
        soon("a reply", call).await.unwrap().unwrap();
    }
}

/// REQ: MSG-303, MSG-304, NET-102
#[test]
fn names_have_1_to_255_bytes_without_nul() {
    for bad in ["", "a\0", &"n".repeat(256)] {
        assert!(ChannelName::new(bad).is_err() && MeshName::new(bad).is_err() && PacketName::new(bad).is_err());
        assert!(SpotId::new(bad).is_err() && ActorId::new(bad).is_err());
    }
    for good in ["a", "ä b", &"n".repeat(255)] {
        assert_eq!(ChannelName::new(good).unwrap().as_str(), good);
        assert_eq!(SpotId::new(good).unwrap().as_str(), good);
    }
    assert_ne!(SpotId::new("A").unwrap(), SpotId::new("a").unwrap());
    assert_ne!(
        SpotId::new("\u{e4}").unwrap(),
        SpotId::new("a\u{308}").unwrap(),
        "never normalised"
    );
    assert!(Rid::new([]).is_err() && Rid::new([0; 256]).is_err() && Rid::new([0; 255]).is_ok());
}

/// REQ: MSG-401, MSG-402, MSG-403, MSG-404, MSG-801, ERR-102
#[tokio::test]
async fn metadata_is_checked_where_it_is_set() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let c = client("c", &[&s]).await;
    let orders = orders_client(&c);
    let nul = "a\0b";
    for (key, value) in [
        ("", "v"),
        (nul, "v"),
        ("k", nul),
        (&*"k".repeat(256), "v"),
        ("k", &*"v".repeat(1019)),
    ] {
        let asked = orders.ask(note("", 0)).metadata(key, value).await;
        assert!(matches!(asked, Err(CallError::Argument(_))), "{key:?}: {asked:?}");
        let told = orders.tell(note("", 0)).metadata(key, value).await;
        assert!(matches!(told, Err(CallError::Argument(_))), "{key:?}: {told:?}");
    }
    settle().await;
    assert_eq!(desk.runs(), 0);
    // 2 + 3 + 1 + 1018 = 1024.
    let largest = "v".repeat(1018);
    orders.ask(note("", 1)).metadata("k", largest.as_str()).await.unwrap();
    orders
        .ask(note("", 2))
        .metadata("k", "first")
        .metadata("empty", "")
        .metadata("k", "last")
        .await
        .unwrap();
    let mut bundle = Metadata::new();
    bundle.set("k", "bundled").unwrap();
    let call = orders.ask(note("", 3)).metadata("other", "gone").all_metadata(&bundle);
    bundle.set("k", "changed later").unwrap();
    call.await.unwrap();
    let seen = desk.seen();
    assert_eq!(seen[0].metadata.view().get("k"), Some(&*largest));
    let of_second: Vec<_> = seen[1].metadata.view().iter().collect();
    assert_eq!(of_second, [("empty", ""), ("k", "last")]);
    let of_third: Vec<_> = seen[2].metadata.view().iter().collect();
    assert_eq!(of_third, [("k", "bundled")]);
}

/// REQ: MSG-409, CH-1004
#[tokio::test]
async fn every_surface_carries_metadata() {
    let desk = Desk::new("s");
    let s = Host::builder()
        .mesh("shop", |mesh| {
            mesh.listen(ANY)
                .rid("s")
                .serve(orders_server(desk.clone()))
                .serve_node(desk.node())
        })
        .client_server(|c| c.serve(stock_server(desk.clone())).client(STOCK));
    let s = s.start().await.unwrap();
    let c = client("c", &[&s]).await;
    let direct = desk_client(&c, &SHOP, rid_of(&s));
    orders_client(&c).ask(note("", 0)).metadata("k", "1").await.unwrap();
    orders_client(&c).tell(note("", 0)).metadata("k", "2").await.unwrap();
    direct.ask(note("", 0)).metadata("k", "3").await.unwrap();
    direct.tell(note("", 0)).metadata("k", "4").await.unwrap();
    let stock = zlink_generated::contract::stock_client(&s);
    stock.ask(note("", 0)).metadata("k", "5").await.unwrap();
    stock.tell(note("", 0)).metadata("k", "6").await.unwrap();
    desk.reached(6).await;
    let mut values: Vec<_> = desk
        .seen()
        .iter()
        .map(|seen| seen.metadata.view().get("k").unwrap().to_owned())
        .collect();
    values.sort();
    assert_eq!(values, ["1", "2", "3", "4", "5", "6"]);
}

/// A hand-made request: what stands between the names and the payload is `extra`, which `flags` announce.
fn flagged(correlation: u64, flags: u16, extra: &[u8], payload: &[u8]) -> Vec<u8> {
    let empty = request(correlation, "orders", "contract.orders.ask", &note("", 1));
    let names = 24 + 1 + "orders".len() + 1 + "contract.orders.ask".len();
    let mut whole = empty[..names].to_vec();
    whole[2..4].copy_from_slice(&flags.to_le_bytes());
    whole.extend_from_slice(extra);
    whole.extend_from_slice(payload);
    whole
}

fn encoded(message: &impl rt::Message) -> Vec<u8> {
    rt::encode(message, <[u8]>::to_vec).unwrap()
}

fn prefixed(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_le_bytes(), bytes].concat()
}

/// REQ: MSG-405, MSG-604, MSG-606, MSG-706, MSG-901, MSG-902
#[tokio::test]
async fn a_malformed_call_reaches_no_handler() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let raw = Raw::join(&endpoint(&s), &hello_of("raw")).await;
    let good = encoded(&note("", 1));
    let with_metadata = |bytes: &[u8]| prefixed(bytes);
    let mut flipped = good.clone();
    flipped[0] ^= 0x80;
    let cases: Vec<(u16, Vec<u8>, Vec<u8>)> = vec![
        // Payloads that are no message.
        (0, vec![], vec![]),
        (0, vec![], good[..good.len() - 5].to_vec()),
        (0, vec![], flipped),
        (0, vec![], vec![0xff; 64]),
        // Metadata: another version, no entries, half an entry, an empty key, a NUL, no UTF-8, keys twice, too long.
        (1, with_metadata(&[1, 1, 1, 0, 0, b'k']), good.clone()),
        (1, with_metadata(&[0, 0]), good.clone()),
        (1, with_metadata(&[0, 1, 1, 9, 0, b'k']), good.clone()),
        (1, with_metadata(&[0, 1, 0, 1, 0, b'v']), good.clone()),
        (1, with_metadata(&[0, 1, 1, 1, 0, b'k', 0]), good.clone()),
        (1, with_metadata(&[0, 1, 1, 1, 0, b'k', 0xff]), good.clone()),
        (1, with_metadata(&[0, 2, 1, 0, 0, b'k', 1, 0, 0, b'k']), good.clone()),
        (1, with_metadata(&[0; 1025]), good.clone()),
        (1, vec![0xff, 0xff], good.clone()),
        // An unknown content type, an empty one, an unknown required flag, a block that is cut off.
        (2, b"\x10application/json".to_vec(), good.clone()),
        (2, vec![0], good.clone()),
        (0x40, vec![], good.clone()),
        (0x100, vec![0xff, 0xff], vec![]),
    ];
    let total = cases.len() as u64;
    for (at, (flags, extra, payload)) in cases.into_iter().enumerate() {
        raw.say(&flagged(at as u64 + 1, flags, &extra, &payload));
        let reply = raw.reply().await;
        assert_eq!(reply.correlation, at as u64 + 1);
        let refused = Some((ErrorKind::ProtocolError, Execution::NotExecuted));
        assert_eq!(reply.failed, refused, "case {at}: {:?}", reply.body);
    }
    assert_eq!(desk.runs(), 0);
    assert!(raw.is_open(), "a bad call is the fault of its caller, not of the link");
    // What a later minor may add is skipped, and the next normal call works.
    raw.say(&flagged(
        total + 1,
        0x8100,
        &[&prefixed(b"new")[..], &prefixed(&[])].concat(),
        &good,
    ));
    assert_eq!(raw.reply().await.failed, None);
    raw.say(&flagged(total + 2, 2, b"\x19application/x-flatbuffers", &good));
    assert_eq!(raw.reply().await.failed, None);
    assert_eq!(desk.runs(), 2);
    until("all permits back", || s.status().jobs.in_use() == 0).await;
}

/// REQ: MSG-901, MSG-902, ERR-402, ERR-908, ERR-306, PM-76
#[tokio::test]
async fn a_malformed_send_leaves_a_record_and_nothing_else() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let raw = Raw::join(&endpoint(&s), &hello_of("raw")).await;
    let events = Events::collect();
    let whole = send("orders", "contract.orders.tell", &note("", 1));
    raw.say(&whole[..whole.len() - 5]);
    until("its record", || {
        events.count(&["zlink.dispatch_error", "decode_error", "drop"]) == 1
    })
    .await;
    let mut flagged = whole.clone();
    flagged[2] = 0x40;
    raw.say(&flagged);
    until("its record", || {
        events.count(&["zlink.dispatch_error", "invalid_frame", "drop"]) == 1
    })
    .await;
    raw.say(&whole);
    desk.reached(1).await;
    assert_eq!(raw.count(RecordKind::Reply), 0, "nobody is told");
    until("all permits back", || s.status().jobs.in_use() == 0).await;
}

/// REQ: MSG-703, NET-602
#[tokio::test]
async fn a_source_is_who_was_admitted() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let raw = Raw::join(&endpoint(&s), &hello_of("really me")).await;
    raw.ask(1, "", "contract.orders.ask", &note("", 1));
    assert_eq!(raw.reply().await.failed, None);
    assert_eq!(desk.seen()[0].source, Some((SHOP, Rid::new("really me").unwrap())));
}

/// A request that stays waiting, and the raw server that has it.
async fn asked() -> (
    Host,
    Raw,
    tokio::task::JoinHandle<Result<zlink_generated::contract::Note, CallError>>,
    [u8; 8],
) {
    let c = client("c", &[]).await;
    let hello = Hello {
        channels: vec![ChannelServer {
            name: "orders".into(),
            weight: 100,
        }],
        ..hello_of("raw")
    };
    let raw = Raw::join(&endpoint(&c), &hello).await;
    until("the server", || {
        c.mesh("shop").unwrap().status().channels[0].1.len() == 1
    })
    .await;
    let call = spawn(orders_client(&c).ask(note("", 1)));
    let request = raw.heard(RecordKind::ChannelRequest).await;
    (c, raw, call, request[8..16].try_into().unwrap())
}

/// REQ: MSG-704, MSG-906, ERR-707, ERR-210, ERR-403
#[tokio::test]
async fn an_unusable_reply_is_a_protocol_error_at_the_caller() {
    // failed, error number, executed, payload
    let cases: [([u8; 3], &[u8]); 9] = [
        ([0, 3, 0], &[]),
        ([0, 0, 1], &[]),
        ([2, 0, 0], &[]),
        ([1, 13, 0], b"an unknown kind"),
        ([1, 255, 1], b"another"),
        ([1, 5, 2], b"what happened?"),
        ([1, 5, 0], &[0xff]),
        ([1, 5, 0], &[b'x'; 257]),
        ([0, 0, 0], b"no message"),
    ];
    for (at, (result, payload)) in cases.into_iter().enumerate() {
        let (c, raw, call, correlation) = asked().await;
        let mut reply = vec![1, RecordKind::Reply.to_wire(), 0, 0];
        reply.extend_from_slice(&result);
        reply.push(0);
        reply.extend_from_slice(&correlation);
        reply.extend_from_slice(payload);
        raw.say_on(zlink_runtime::transport::Lane::Completion, &reply).unwrap();
        let ended = failure(soon("its end", call).await.unwrap());
        assert_eq!(ended, (ErrorKind::ProtocolError, Execution::Unknown), "case {at}");
        assert_eq!(c.status().waiting_requests, 0);
    }
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let c = client("c", &[&s]).await;
    let other = skewed_client(&c).on(ORDERS).ask(note("", 1)).await;
    assert_eq!(
        failure(other),
        (ErrorKind::ProtocolError, Execution::Unknown),
        "a reply of another type"
    );
    assert_eq!(who(&c).await, "s");
}

/// The body whose request is a record of exactly `bytes` bytes, and one whose request is the next larger one.
fn bodies(bytes: usize) -> [usize; 2] {
    let head = 24;
    let empty = head + encoded(&heavy(1, 4096)).len() - 4096;
    assert_eq!((bytes - empty) % 4, 0, "the test's limits are multiples of the padding");
    [bytes - empty, bytes - empty + 1]
}

/// REQ: MSG-803, MSG-804, MSG-904, MSG-506, ERR-102
#[tokio::test]
async fn the_greatest_message_passes_and_one_more_fails_whole() {
    // Mesh or channel, the limit of either side, and what holds.
    let cases = [
        (false, Some(8192), Some(4096), 4096),
        (false, Some(4096), Some(8192), 4096),
        (true, Some(8192), Some(4096), 4096),
        (true, Some(4096), Some(0), 4096),
        (true, None, None, 16_777_216),
        (false, None, None, 64 << 20),
    ];
    for (client_server, theirs, ours, limit) in cases {
        let desk = Desk::new("s");
        let (s, c);
        if client_server {
            let builder = Host::builder().client_server(|c| {
                let c = c.serve(orders_server(desk.clone())).listen(ANY);
                theirs.into_iter().fold(c, |c, bytes| c.max_message(bytes))
            });
            s = builder.start().await.unwrap();
            let to = s
                .listener(ListenerKind::ClientServer, "orders")
                .unwrap()
                .endpoint
                .to_string();
            let builder = Host::builder().client_server(|c| {
                let c = c.client(ORDERS).connect(to);
                ours.into_iter().fold(c, |c, bytes| c.max_message(bytes))
            });
            c = builder.start().await.unwrap();
        } else {
            let builder = node("s", |mesh| {
                let mesh = mesh.serve(orders_server(desk.clone()));
                theirs.into_iter().fold(mesh, |mesh, bytes| mesh.max_message(bytes))
            });
            s = builder.start().await.unwrap();
            let builder = node("c", |mesh| {
                let mesh = mesh.client(ORDERS).connect(endpoint(&s));
                ours.into_iter().fold(mesh, |mesh, bytes| mesh.max_message(bytes))
            });
            c = builder.start().await.unwrap();
            linked(&c, &rid_of(&s)).await;
        }
        let [largest, over] = bodies(limit);
        let orders = orders_client(&c);
        orders.ask(heavy(1, largest)).await.unwrap();
        assert_eq!(desk.seen()[0].bytes, largest);
        let refused = orders.ask(heavy(2, over)).await;
        assert!(matches!(refused, Err(CallError::Argument(_))), "{limit}: {refused:?}");
        let refused = orders.tell(heavy(3, over + 8)).await;
        assert!(matches!(refused, Err(CallError::Argument(_))), "{limit}: {refused:?}");
        if limit <= 8192 {
            // A reply that is too large becomes an error, whole.
            let reply = orders.ask(note("weigh", limit as u64)).await;
            assert_eq!(failure(reply), (ErrorKind::InternalFailure, Execution::Unknown));
        }
        orders.ask(note("", 5)).await.unwrap();
        assert!(
            !desk.numbers().iter().any(|number| [2, 3].contains(number)),
            "nothing of it was delivered"
        );
    }
}

/// REQ: MSG-904, MSG-903, NET-910
#[tokio::test]
async fn a_peer_that_exceeds_the_limit_is_cut_off() {
    let desk = Desk::new("s");
    let s = node("s", |mesh| mesh.serve(orders_server(desk.clone())).max_message(4096))
        .start()
        .await
        .unwrap();
    let c = client("c", &[&s]).await;
    let raw = Raw::join(&endpoint(&s), &hello_of("raw")).await;
    let [largest, over] = bodies(4096);
    // By name the head is longer than by number.
    let names = 2 + "orders".len() + "contract.orders.ask".len();
    raw.ask(
        1,
        "orders",
        "contract.orders.ask",
        &heavy(1, largest - names.next_multiple_of(4)),
    );
    assert_eq!(raw.reply().await.failed, None);
    raw.ask(2, "orders", "contract.orders.ask", &heavy(2, over));
    raw.ended().await;
    assert_eq!(desk.numbers(), [1]);
    assert_eq!(who(&c).await, "s");
}

/// A ZMTP 3.1 greeting with the NULL mechanism, and a READY of a ROUTER.
fn greeting() -> Vec<u8> {
    let mut bytes = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1];
    bytes.extend_from_slice(b"NULL");
    bytes.resize(64, 0);
    bytes
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// REQ: MSG-903, NET-912, NET-606
#[tokio::test]
async fn garbage_and_huge_lengths_close_their_connection_and_harm_nobody() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let c = client("c", &[&s]).await;
    let port = port_of(&s);
    let events = Events::collect();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |count: usize| -> Vec<u8> {
        let byte = |_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as u8
        };
        (0..count).map(byte).collect()
    };
    let huge = |flags: u8, length: u64| [&greeting()[..], &[flags], &length.to_be_bytes()].concat();
    let mut cases = vec![
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        huge(0x02, 1 << 40),
        huge(0x02, 1 << 62),
        huge(0x06, 1 << 40),
        huge(0x06, u64::MAX),
        [&greeting()[..], &[4, 0]].concat(),
        [&greeting()[..], &[4, 255], &[0xff; 255]].concat(),
        vec![0xff; 4096],
    ];
    for _ in 0..20 {
        cases.push(random(200));
        cases.push([greeting(), random(200)].concat());
    }
    let before = resident_kib();
    let total = cases.len();
    let closing: Vec<_> = cases
        .into_iter()
        .map(|bytes| {
            spawn(async move {
                let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                // It may be closed before all is written.
                let _ = stream.write_all(&bytes).await;
                let mut answer = Vec::new();
                let _ = stream.read_to_end(&mut answer).await;
                answer.len()
            })
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(
            soon("a reply", orders_client(&c).ask(note("", 0))).await.unwrap().text,
            "s"
        );
    }
    for one in closing {
        assert!(soon("the end of the connection", one).await.unwrap() < 4096);
    }
    assert!(
        resident_kib() < before + (64 << 10),
        "nothing is allocated for a length"
    );
    until("a record of each", || {
        events.count(&["zlink::link", "refused a connection"]) >= total
    })
    .await;
    assert_eq!(who(&c).await, "s");
    assert_eq!(desk.runs(), 21);
}

/// REQ: MSG-201, EX-89, MSG-602
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instant_replies_never_hang() {
    let desk = Desk::new("s");
    let s = Host::builder()
        .client_server(|c| c.serve(orders_server(desk.clone())).client(ORDERS))
        .start()
        .await
        .unwrap();
    let callers: Vec<_> = (0..16)
        .map(|caller| {
            let orders = orders_client(&s);
            spawn(async move {
                for number in 0..100 {
                    let number = caller * 1000 + number;
                    assert_eq!(orders.ask(note("", number)).await.unwrap().number, number);
                }
            })
        })
        .collect();
    for caller in callers {
        soon("all replies", caller).await.unwrap();
    }
    assert_eq!(s.status().waiting_requests, 0);
}
