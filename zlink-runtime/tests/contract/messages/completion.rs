//! Sections 1 and 2: sends complete at the source's send path, requests exactly once. Long, because each way to end
//! needs a scene of its own.

use std::collections::HashSet;
use std::time::Duration;

use zlink_generated::contract::{SKEWED, desk_client, orders_client, orders_server, skewed_client};
use zlink_generated::zlink_wire::RecordKind;
use zlink_runtime::Host;
use zlink_runtime::error::{CallError, ErrorKind, Execution};
use zlink_runtime::transport::Lane;

use crate::kit::{
    Desk, Events, SHOP, Stopwatch, WAYS, Way, at_rest, calling, client, correlation_of, encoded, failure, node, note,
    raw_client, raw_server, reply_to, rid_of, serving, settle, soon, spawn, timeout_of, until,
};

/// REQ: MSG-101, MSG-105, PM-98
#[tokio::test]
async fn a_send_is_over_before_its_handler_begins() {
    for way in WAYS {
        let desk = Desk::new("s");
        let s = serving(way, orders_server(desk.clone()).dispatch_limit(1), |host| host).await;
        let c = calling(way, "c", &s, |host| host).await;
        for number in 0..3 {
            let sent = orders_client(&c).tell(note("hold", number));
            soon("a send", sent).await.unwrap();
        }
        desk.reached(1).await;
        settle().await;
        assert_eq!(desk.numbers(), [0], "the others are sent, and wait for their turn");
        assert!(desk.ended().is_empty());
        desk.gate().open();
        desk.reached(3).await;

        // What the target cannot take later changes nothing for the sender.
        let events = Events::collect();
        let nobody = skewed_client(&c).on(zlink_generated::contract::ORDERS);
        soon("a send", nobody.nobody_told(note("", 9))).await.unwrap();
        events.heard(&["zlink.dispatch_error", "no_handler", "drop"]).await;
        soon("a send", orders_client(&c).tell(note("fail", 4))).await.unwrap();
        events
            .heard(&["zlink.dispatch_error", "handler_exception", "drop"])
            .await;
        at_rest(&[&s, &c]).await;
        assert_eq!(desk.numbers(), [0, 1, 2, 4]);
    }
    assert_eq!(SKEWED.as_str(), "skewed");
}

/// REQ: MSG-103, MSG-104, MSG-205, PM-96, PM-100
#[tokio::test]
async fn a_send_waits_for_room_as_long_as_it_takes_and_is_submitted_once() {
    for way in WAYS {
        let (c, raw) = raw_server(way, |host| host).await;
        raw.announce(1, true);
        until("the pause", || paused(&c)).await;
        let waiting = spawn(orders_client(&c).tell(note("", 1)));
        let dropped = spawn(orders_client(&c).tell(note("", 2)));
        let asked = spawn(orders_client(&c).ask(note("", 3)).timeout(Duration::from_millis(300)));
        let begin = tokio::time::Instant::now();
        let end = failure(soon("the deadline", asked).await.unwrap());
        assert_eq!(end, (ErrorKind::DeadlineExceeded, Execution::NotExecuted));
        assert!(begin.elapsed() >= Duration::from_millis(290));
        dropped.abort();
        until("well over a second", || begin.elapsed() > Duration::from_millis(1300)).await;
        assert!(!waiting.is_finished(), "time does not end a send");
        assert_eq!(raw.count(RecordKind::ChannelSend), 0);
        raw.announce(2, false);
        soon("the send", waiting).await.unwrap().unwrap();
        raw.heard(RecordKind::ChannelSend).await;
        settle().await;
        assert_eq!(
            raw.count(RecordKind::ChannelSend) + raw.count(RecordKind::ChannelRequest),
            0,
            "neither a second time, nor what was withdrawn, nor what had ended"
        );
        at_rest(&[&c]).await;
    }
}

fn paused(host: &Host) -> bool {
    let status = match host.client_server("orders") {
        Ok(channel) => channel.status(),
        Err(_) => host.mesh("shop").unwrap().status(),
    };
    status.peers.iter().any(|peer| peer.paused)
}

/// REQ: MSG-104, PM-96
#[tokio::test]
async fn what_else_ends_a_waiting_send() {
    for way in WAYS {
        let (c, raw) = raw_server(way, |host| host.send_timeout(Duration::from_millis(150))).await;
        raw.announce(1, true);
        until("the pause", || paused(&c)).await;
        let end = failure(soon("the send timeout", orders_client(&c).tell(note("", 1))).await);
        assert_eq!(end, (ErrorKind::DeadlineExceeded, Execution::NotExecuted));
        raw.announce(2, false);
        settle().await;
        assert_eq!(raw.count(RecordKind::ChannelSend), 0, "it is not admitted later");

        let (c, raw) = raw_server(way, |host| host.drain_timeout(Duration::from_millis(100))).await;
        raw.announce(1, true);
        until("the pause", || paused(&c)).await;
        let waiting = spawn(orders_client(&c).tell(note("", 1)));
        settle().await;
        let stop = c.clone();
        let stop = spawn(async move { stop.shutdown().await });
        let end = failure(soon("the end of the send", waiting).await.unwrap());
        assert_eq!(end, (ErrorKind::ShuttingDown, Execution::NotExecuted), "{way:?}");
        let _ = soon("the stop", stop).await.unwrap();
        assert_eq!(raw.count(RecordKind::ChannelSend), 0);
    }
    // The loss of its route, where there is no other.
    let (c, raw) = raw_server(Way::Mesh, |host| host).await;
    raw.announce(1, true);
    until("the pause", || paused(&c)).await;
    let waiting = spawn(orders_client(&c).tell(note("", 1)));
    settle().await;
    raw.leave();
    let (kind, execution) = failure(soon("the end of the send", waiting).await.unwrap());
    assert!(matches!(kind, ErrorKind::Unavailable | ErrorKind::NotFound), "{kind}");
    assert_eq!(execution, Execution::NotExecuted);
}

/// REQ: MSG-205
#[tokio::test]
async fn dropping_an_accepted_call_only_stops_the_waiting() {
    let desk = Desk::new("s");
    let s = serving(Way::Mesh, orders_server(desk.clone()), |host| host).await;
    let c = calling(Way::Mesh, "c", &s, |host| host).await;
    let accepted = spawn(orders_client(&c).ask(note("hold", 1)));
    desk.reached(1).await;
    accepted.abort();
    until("the end of the waiting", || c.status().waiting_requests == 0).await;
    desk.gate().open();
    until("the end of the handler", || desk.ended() == [1]).await;
    assert!(desk.dropped().is_empty());
    // Never polled: never sent.
    drop(orders_client(&c).tell(note("", 2)));
    drop(orders_client(&c).ask(note("", 3)).into_future());
    settle().await;
    assert_eq!(desk.numbers(), [1]);
    at_rest(&[&s, &c]).await;
}

/// REQ: MSG-203, PM-43, MSG-106, MSG-206
#[tokio::test]
async fn late_and_repeated_replies_find_nobody() {
    for way in WAYS {
        let events = Events::collect();
        let (c, raw) = raw_server(way, |host| host).await;
        let ask = |number, millis| {
            let call = orders_client(&c).ask(note("", number));
            spawn(call.timeout(Duration::from_millis(millis)))
        };
        let late = ask(1, 40);
        let first = raw.heard(RecordKind::ChannelRequest).await;
        let end = failure(soon("the deadline", late).await.unwrap());
        assert_eq!(end, (ErrorKind::DeadlineExceeded, Execution::Unknown));
        let (two, three) = (ask(2, 10_000), ask(3, 10_000));
        let second = raw.heard(RecordKind::ChannelRequest).await;
        let third = raw.heard(RecordKind::ChannelRequest).await;
        let ids = HashSet::from([&first, &second, &third].map(|request| correlation_of(request)));
        assert_eq!(ids.len(), 3, "each has its own correlation");
        let reply = |request: &[u8], text: &str| {
            let reply = reply_to(request, [0; 4], &encoded(&note(text, 0)));
            raw.say_on(Lane::Completion, &reply).unwrap();
        };
        reply(&first, "late");
        reply(&third, "three");
        reply(&third, "three again");
        let failed = reply_to(&third, [1, ErrorKind::DataLost.number(), 0, 0], b"no");
        raw.say_on(Lane::Completion, &failed).unwrap();
        reply(&first, "later");
        reply(&second, "two");
        assert_eq!(soon("a reply", two).await.unwrap().unwrap().text, "two");
        assert_eq!(soon("a reply", three).await.unwrap().unwrap().text, "three");
        until("the record of each other one", || {
            events.count(&["unexpected_reply", "drop"]) == 4
        })
        .await;
        assert!(raw.is_open(), "being late is no fault");
        let four = ask(4, 10_000);
        reply(&raw.heard(RecordKind::ChannelRequest).await, "four");
        assert_eq!(soon("a reply", four).await.unwrap().unwrap().text, "four");
        at_rest(&[&c]).await;
    }
}

/// Replies, errors, deadlines, drops and the loss of the link meet, in every order that comes up.
///
/// REQ: MSG-106, MSG-202
#[tokio::test]
async fn one_outcome_whatever_else_comes() {
    const CALLS: u64 = 300;
    for way in WAYS {
        let (c, raw) = raw_server(way, |host| host).await;
        let mut calls = Vec::new();
        for number in 0..CALLS {
            // A third waits for its answer however busy the machine is; the others meet it at their deadlines.
            let millis = if number % 3 == 0 { 60_000 } else { 1 + number % 20 };
            let call = orders_client(&c).ask(note("", number));
            calls.push(spawn(call.timeout(Duration::from_millis(millis))));
        }
        let mut replied = 0;
        for at in 0..CALLS {
            // Those that ended before they could be sent are not heard.
            if at > 0 && raw.count(RecordKind::ChannelRequest) == 0 {
                settle().await;
                if raw.count(RecordKind::ChannelRequest) == 0 {
                    break;
                }
            }
            let request = raw.heard(RecordKind::ChannelRequest).await;
            let reply = reply_to(&request, [0; 4], &encoded(&note("", at)));
            let failed = reply_to(&request, [1, ErrorKind::DataLost.number(), 1, 0], b"told");
            let (one, two) = if at % 2 == 0 { (reply, failed) } else { (failed, reply) };
            let said = [one, two]
                .iter()
                .all(|record| raw.say_on(Lane::Completion, record).is_ok());
            replied += u64::from(said);
            if at % 7 == 0 {
                calls[at as usize].abort();
            }
            if at % 16 == 15 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        raw.leave();
        let mut ends = [0_u64; 3];
        for call in calls {
            let end = match soon("an end", call).await {
                Err(aborted) => {
                    assert!(aborted.is_cancelled());
                    continue;
                }
                Ok(Ok(_)) => 0,
                Ok(Err(CallError::Failed(error))) if error.kind() == ErrorKind::DeadlineExceeded => 2,
                Ok(Err(CallError::Failed(error))) => {
                    assert!(
                        matches!(error.kind(), ErrorKind::DataLost | ErrorKind::Unavailable),
                        "{error}"
                    );
                    1
                }
                Ok(Err(other)) => panic!("{other}"),
            };
            ends[end] += 1;
        }
        assert!(replied > 20, "too few to meet anything: {replied} of {CALLS}");
        assert!(ends[0] > 0 && ends[1] > 0, "{ends:?}");
        assert_eq!(c.status().waiting_requests, 0);
        at_rest(&[&c]).await;
    }
}

/// Replies that are there at once, from this very process.
///
/// REQ: MSG-201
#[tokio::test]
async fn an_instant_reply_is_never_missed() {
    let desk = Desk::new("own");
    let both = Host::builder()
        .mesh("shop", |mesh| {
            mesh.listen(crate::kit::ANY).rid("own").serve_node(desk.node())
        })
        .client_server(|channel| {
            let channel = channel.serve(orders_server(desk.clone()));
            channel.client(zlink_generated::contract::ORDERS)
        });
    let both = both.start().await.unwrap();
    let own = rid_of(&both);
    for round in 0..20 {
        let calls = (0..25).map(|number| {
            let number = round * 25 + number;
            (
                spawn(desk_client(&both, &SHOP, own.clone()).ask(note("", number))),
                spawn(orders_client(&both).ask(note("", number))),
                number,
            )
        });
        for (direct, channel, number) in calls.collect::<Vec<_>>() {
            assert_eq!(soon("a reply", direct).await.unwrap().unwrap().number, number);
            assert_eq!(soon("a reply", channel).await.unwrap().unwrap().number, number);
        }
    }
    assert_eq!(desk.runs(), 1000);
    at_rest(&[&both]).await;
}

/// The head of a request tells what its deadline is.
///
/// REQ: MSG-204
#[tokio::test]
async fn the_nearest_timeout_holds() {
    let left = async |c: &Host, raw: &crate::kit::Raw, call: Option<Duration>, hurry: bool| {
        let client = orders_client(c);
        let request = if hurry {
            client.hurry(note("", 0))
        } else {
            client.ask(note("", 0))
        };
        let request = match call {
            Some(timeout) => request.timeout(timeout),
            None => request,
        };
        let waiting = spawn(request);
        let left = timeout_of(&raw.heard(RecordKind::ChannelRequest).await);
        waiting.abort();
        left
    };
    let about = |left: u32, millis: u32| {
        assert!(left <= millis && left > millis - millis / 4, "{left} ms of {millis}");
    };
    for way in WAYS {
        let (c, raw) = raw_server(way, |host| host).await;
        about(left(&c, &raw, None, false).await, 30_000);
        about(left(&c, &raw, None, true).await, 150);
        let (c, raw) = raw_server(way, |host| host.request_timeout(Duration::from_secs(7))).await;
        about(left(&c, &raw, None, false).await, 7_000);
        about(left(&c, &raw, Some(Duration::from_secs(3)), false).await, 3_000);
        about(left(&c, &raw, Some(Duration::from_secs(3)), true).await, 3_000);
        let longest = Duration::from_millis(i32::MAX as u64);
        about(left(&c, &raw, Some(longest), false).await, i32::MAX as u32);
        assert_eq!(left(&c, &raw, Some(Duration::from_nanos(1)), false).await, 1);
        let refused = |timeout| orders_client(&c).ask(note("", 0)).timeout(timeout).into_future();
        for timeout in [Duration::ZERO, longest + Duration::from_nanos(1), Duration::MAX] {
            let end = soon("a refusal", refused(timeout)).await;
            assert!(matches!(end, Err(CallError::Argument(_))), "{timeout:?}: {end:?}");
        }
        settle().await;
        assert_eq!(raw.count(RecordKind::ChannelRequest), 0, "what is refused is not sent");
    }
    // A mesh has a default of its own, between the host's and the call's.
    let s = node("s", |mesh| mesh.serve(orders_server(Desk::new("s"))))
        .start()
        .await
        .unwrap();
    let c = crate::kit::node("c", |mesh| {
        mesh.client(zlink_generated::contract::ORDERS)
            .connect(crate::kit::endpoint(&s))
            .request_timeout(Duration::from_millis(60))
    });
    let c = c.start().await.unwrap();
    crate::kit::linked(&c, &rid_of(&s)).await;
    let watch = Stopwatch::start();
    let end = failure(soon("the deadline", orders_client(&c).ask(note("never", 0))).await);
    assert_eq!(end, (ErrorKind::DeadlineExceeded, Execution::Unknown));
    assert!(!watch.is_past(Duration::from_secs(5)));
}

/// REQ: MSG-204
#[tokio::test]
async fn who_comes_later_gets_only_what_is_left() {
    for way in WAYS {
        let (c, raw) = raw_server(way, |host| host).await;
        raw.announce(1, true);
        until("the pause", || paused(&c)).await;
        let waiting = spawn(orders_client(&c).ask(note("", 1)).timeout(Duration::from_secs(20)));
        // Its time has begun before the one that is measured here; clocks that are read less often have room.
        settle().await;
        let begin = tokio::time::Instant::now();
        until("half a second and more", || {
            begin.elapsed() > Duration::from_millis(600)
        })
        .await;
        raw.announce(2, false);
        let left = timeout_of(&raw.heard(RecordKind::ChannelRequest).await);
        assert!(left <= 19_500, "{left} ms are left of 20,000 after 500");
        waiting.abort();
    }
}

/// REQ: MSG-206, MSG-407
#[tokio::test]
async fn each_request_has_a_correlation_and_a_send_has_none() {
    let (desk, stock) = (Desk::new("s"), Desk::new("stock"));
    let behind = node("behind", |mesh| {
        mesh.serve(zlink_generated::contract::stock_server(stock.clone()))
    });
    let behind = behind.start().await.unwrap();
    let s = node("s", |mesh| {
        mesh.serve(orders_server(desk.clone()))
            .client(zlink_generated::contract::STOCK)
            .connect(crate::kit::endpoint(&behind))
    });
    let s = s.start().await.unwrap();
    crate::kit::linked(&s, &rid_of(&behind)).await;
    let c = client("c", &[&s]).await;
    let mut calls: Vec<_> = (0..20).map(|n| spawn(orders_client(&c).ask(note("hold", n)))).collect();
    calls.push(spawn(orders_client(&c).ask(note("relay", 20))));
    orders_client(&c).tell(note("", 21)).await.unwrap();
    desk.reached(22).await;
    stock.reached(1).await;
    let seen = desk.seen();
    let ids: Vec<_> = seen.iter().filter_map(|seen| seen.correlation.clone()).collect();
    assert_eq!(ids.len(), 21, "the send has none");
    assert!(
        ids.iter().all(|id| id.is_ascii() && (1..=64).contains(&id.len())),
        "{ids:?}"
    );
    assert_eq!(
        ids.iter().collect::<HashSet<_>>().len(),
        21,
        "unique among those that wait"
    );
    assert!(
        seen.iter().all(|seen| seen.metadata.view().is_empty()),
        "it is no metadata"
    );
    let downstream = stock.seen()[0].correlation.clone();
    let relay = seen.iter().find(|seen| seen.text == "relay").unwrap();
    assert!(downstream.is_some());
    assert_ne!(downstream, relay.correlation, "a downstream request has its own");
    desk.gate().open();
    for call in calls {
        soon("a reply", call).await.unwrap().unwrap();
    }
    // The reply carries what the request carried.
    let raw = raw_client(Way::Mesh, "raw", &s).await;
    let request = crate::kit::Craft::request(0x0102_0304_0506_0708, "orders", "contract.orders.ask");
    raw.say(&request.message(&note("", 1)).record());
    assert_eq!(crate::kit::answer(&raw).await.correlation, 0x0102_0304_0506_0708);
    at_rest(&[&s, &c, &behind]).await;
}

/// REQ: MSG-115
#[tokio::test]
async fn what_one_origin_sends_arrives_in_its_order() {
    for way in WAYS {
        let desk = Desk::new("s");
        let s = serving(way, orders_server(desk.clone()), |host| host.max_queued_jobs(7)).await;
        let origins = [calling(way, "a", &s, |h| h).await, calling(way, "b", &s, |h| h).await];
        let senders: Vec<_> = (0_u64..)
            .zip(&origins)
            .map(|(origin, host)| {
                let orders = orders_client(host);
                spawn(async move {
                    for number in 0..1000 {
                        orders.tell(note("", origin * 10_000 + number)).await.unwrap();
                    }
                })
            })
            .collect();
        for sender in senders {
            soon("all sends", sender).await.unwrap();
        }
        desk.reached(2000).await;
        for origin in 0..2_u64 {
            let from = desk.numbers().into_iter().filter(|number| number / 10_000 == origin);
            let expected: Vec<_> = (0..1000).map(|number| origin * 10_000 + number).collect();
            assert_eq!(from.collect::<Vec<_>>(), expected);
        }
        at_rest(&[&s, &origins[0], &origins[1]]).await;
    }
}

/// A send has one way to end: its future. What else its type could offer would be a second one.
///
/// REQ: MSG-102, PM-95
#[test]
fn a_send_offers_no_second_way() {
    let source = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/channel/call.rs")).unwrap();
    let mut methods = Vec::new();
    for item in syn::parse_file(&source).unwrap().items {
        let syn::Item::Impl(item) = item else { continue };
        let syn::Type::Path(path) = &*item.self_ty else {
            continue;
        };
        let name = path.path.segments.last().unwrap().ident.to_string();
        if name != "SendCall" && name != "SendFuture" {
            continue;
        }
        for of in item.items {
            if let syn::ImplItem::Fn(of) = of
                && (item.trait_.is_some() || matches!(of.vis, syn::Visibility::Public(_)))
            {
                methods.push(format!("{name}::{}", of.sig.ident));
            }
        }
    }
    methods.sort();
    let expected = [
        "SendCall::all_metadata",
        "SendCall::fmt",
        "SendCall::into_future",
        "SendCall::metadata",
        "SendFuture::fmt",
        "SendFuture::poll",
    ];
    assert_eq!(methods, expected);
}
