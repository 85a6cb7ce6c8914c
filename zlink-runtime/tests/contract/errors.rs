//! Chapter 04: which call ends how, and what may be concluded from it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use zlink_generated::contract::{
    Brief, ORDERS, Strict, desk_client, orders_client, orders_server, skewed_client, stock_client, strict_client,
};
use zlink_runtime::error::{ArgumentError, CallError, ErrorKind, Execution};
use zlink_runtime::prelude::*;

use super::kit::*;

const DEADLINE: Duration = Duration::from_millis(200);

/// REQ: ERR-101, ERR-212
#[test]
fn the_kinds_and_their_numbers() {
    let kinds = [
        (0, "NotFound"),
        (1, "AlreadyExists"),
        (2, "TypeMismatch"),
        (3, "NotConfigured"),
        (4, "Rejected"),
        (5, "Unavailable"),
        (6, "CapacityExceeded"),
        (7, "DeadlineExceeded"),
        (8, "ShuttingDown"),
        (9, "ProtocolError"),
        (10, "InvalidOperation"),
        (11, "DataLost"),
        (12, "InternalFailure"),
    ];
    let real = ErrorKind::ALL.map(|kind| (kind.number(), kind.to_string()));
    assert_eq!(real, kinds.map(|(number, name)| (number, name.to_owned())));
    for (number, kind) in (0..).zip(ErrorKind::ALL) {
        assert_eq!(ErrorKind::from_number(number), Some(kind));
    }
    assert_eq!(ErrorKind::from_number(13), None);
}

/// A refused argument has no kind, reaches nobody, and the next call is not harmed.
///
/// REQ: ERR-102, ERR-103, MSG-401
#[tokio::test]
async fn a_refused_argument_is_no_failure_of_the_call() {
    let desk = Desk::new("s");
    let s = serving(Way::Mesh, orders_server(desk.clone()), |host| host).await;
    let c = calling(Way::Mesh, "c", &s, |host| host).await;
    let refused: [(&str, CallError); 3] = [
        (
            "metadata",
            orders_client(&c).ask(note("", 1)).metadata("", "x").await.unwrap_err(),
        ),
        (
            "timeout",
            orders_client(&c)
                .ask(note("", 1))
                .timeout(Duration::ZERO)
                .await
                .unwrap_err(),
        ),
        (
            "message",
            orders_client(&c)
                .brief(Brief {
                    text: "more than 8 bytes".into(),
                })
                .await
                .unwrap_err(),
        ),
    ];
    for (argument, error) in refused {
        let CallError::Argument(refused) = &error else {
            panic!("{argument}: {error:?}")
        };
        let refused: &ArgumentError = refused;
        assert_eq!((refused.argument(), error.kind()), (argument, None));
        assert_eq!(error.execution(), Execution::NotExecuted);
    }
    assert_eq!(desk.runs(), 0);
    assert_eq!(who(&c).await, "s");
    at_rest(&[&s, &c]).await;
}

/// REQ: ERR-201, ERR-601, ERR-602, CH-203, CH-303, EX-82
#[tokio::test]
async fn what_does_not_exist_is_not_found_and_did_not_run() {
    let c = client("c", &[]).await;
    let not_found = (ErrorKind::NotFound, Execution::NotExecuted);
    let nowhere = orders_client(&c).on(ChannelName::from_static("nowhere"));
    assert_eq!(failure(nowhere.ask(note("", 1)).await), not_found);
    assert_eq!(failure(nowhere.tell(note("", 1)).await), not_found);
    assert_eq!(
        failure(orders_client(&c).ask(note("", 1)).await),
        not_found,
        "no server is known"
    );
    let stranger = Rid::new("stranger").unwrap();
    assert_eq!(failure(who_at(&c, &stranger).await), not_found);
    let elsewhere = desk_client(&c, &MeshName::from_static("elsewhere"), stranger);
    assert_eq!(failure(elsewhere.ask(note("", 1)).await), not_found);
    at_rest(&[&c]).await;
}

/// REQ: ERR-204, ERR-603
#[tokio::test]
async fn a_process_that_only_serves_is_not_configured_to_call() {
    let desk = Desk::new("s");
    let s = serving(Way::ClientServer, orders_server(desk.clone()), |host| host).await;
    let failed = failure(orders_client(&s).ask(note("", 1)).await);
    assert_eq!(failed, (ErrorKind::NotConfigured, Execution::NotExecuted));
    assert_eq!(desk.runs(), 0, "its own handler is not called directly");
}

/// REQ: ERR-206, ERR-301, ERR-602, CH-309, EX-82
#[tokio::test]
async fn a_known_server_without_a_link_is_unavailable_at_once() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let c = client("c", &[&s]).await;
    assert_eq!(who(&c).await, "s");
    let rid = rid_of(&s);
    s.shutdown().await.unwrap();
    drop(s);
    until("the link to be lost", || {
        peer_state(&c, &rid) != Some(zlink_runtime::PeerState::Ready)
    })
    .await;
    let mut call = Box::pin(orders_client(&c).ask(note("", 1)).into_future());
    let Poll::Ready(ended) = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await else {
        panic!("a mesh does not wait for a server");
    };
    let failed = failure(ended);
    assert!(
        matches!(failed.0, ErrorKind::Unavailable | ErrorKind::NotFound),
        "{failed:?}"
    );
    assert_eq!(failed.1, Execution::NotExecuted);
    let failed = failure(who_at(&c, &rid).await);
    assert!(
        matches!(failed.0, ErrorKind::Unavailable | ErrorKind::NotFound),
        "{failed:?}"
    );
    assert_eq!(failed.1, Execution::NotExecuted);
    assert_eq!(desk.runs(), 1);
}

/// REQ: ERR-208, ERR-406, ERR-603, CH-308, EX-96
#[tokio::test]
async fn without_a_server_a_client_waits_until_its_deadline() {
    let nobody = format!("tcp://127.0.0.1:{}", free_port());
    let builder = Host::builder().client_server(|channel| channel.client(ORDERS).connect(nobody));
    let c = builder.start().await.unwrap();
    let began = Instant::now();
    let failed = failure(orders_client(&c).ask(note("", 1)).timeout(DEADLINE).await);
    assert_eq!(failed, (ErrorKind::DeadlineExceeded, Execution::NotExecuted));
    assert!(
        (DEADLINE..Duration::from_secs(2)).contains(&began.elapsed()),
        "{:?}",
        began.elapsed()
    );
    at_rest(&[&c]).await;
}

/// REQ: ERR-208, ERR-403, ERR-407, MSG-207
#[tokio::test]
async fn a_handler_that_takes_too_long_may_have_run() {
    for way in WAYS {
        let desk = Desk::new("s");
        let s = serving(way, orders_server(desk.clone()), |host| host).await;
        let c = calling(way, "c", &s, |host| host).await;
        let began = Instant::now();
        let failed = failure(orders_client(&c).ask(note("hold", 1)).timeout(DEADLINE).await);
        assert_eq!(failed, (ErrorKind::DeadlineExceeded, Execution::Unknown));
        assert!(began.elapsed() >= DEADLINE);
        desk.gate().open();
        until("the handler to end", || desk.ended() == [1]).await;
        let failed = failure(orders_client(&c).hurry(note("never", 2)).await);
        assert_eq!(
            failed,
            (ErrorKind::DeadlineExceeded, Execution::Unknown),
            "the schema's own 150 ms"
        );
        assert_eq!(who(&c).await, "s", "the late reply is nobody's");
        assert_eq!(c.status().waiting_requests, 0);
    }
}

/// REQ: ERR-401, ERR-210, ERR-306, ERR-402, ERR-901, CH-1001
#[tokio::test]
async fn no_handler_or_an_unusable_payload_is_answered_or_recorded() {
    for way in WAYS {
        let events = Events::collect();
        let desk = Desk::new("s");
        let s = serving(way, orders_server(desk.clone()), |host| host).await;
        let c = calling(way, "c", &s, |host| host).await;
        let skewed = skewed_client(&c).on(ORDERS);
        let failed = failure(skewed.nobody(note("", 1)).await);
        assert_eq!(failed, (ErrorKind::NotFound, Execution::NotExecuted));
        skewed.nobody_told(note("", 2)).await.unwrap();
        events.heard(&["no_handler", "drop", "send"]).await;
        assert!(events.count(&["zlink.dispatch_error", "no_handler", "reply_error"]) >= 1);

        // The server expects more than this payload has: asked of a server whose handler is stricter than its caller.
        let strict = zlink_generated::contract::strict_server(desk.clone()).on(ORDERS);
        let s = serving(way, strict, |host| host).await;
        let c = calling(way, "d", &s, |host| host).await;
        let failed = failure(orders_client(&c).ask(note("", 3)).await);
        assert_eq!(failed, (ErrorKind::ProtocolError, Execution::NotExecuted));
        orders_client(&c).tell(note("", 4)).await.unwrap();
        events.heard(&["decode_error", "drop", "send"]).await;
        let good = Strict {
            must: "it does".into(),
            ..Strict::default()
        };
        assert_eq!(strict_client(&c).on(ORDERS).ask(good).await.unwrap().text, "s");
        assert_eq!(desk.runs(), 1, "only the last one ran");
        at_rest(&[&s, &c]).await;
    }
}

/// REQ: MSG-906, ERR-403
#[tokio::test]
async fn a_reply_of_another_type_is_a_protocol_error_after_the_fact() {
    let desk = Desk::new("s");
    let s = serving(Way::Mesh, orders_server(desk.clone()), |host| host).await;
    let c = calling(Way::Mesh, "c", &s, |host| host).await;
    let failed = failure(skewed_client(&c).on(ORDERS).ask(note("", 1)).await);
    assert_eq!(failed, (ErrorKind::ProtocolError, Execution::Unknown));
    assert_eq!(desk.runs(), 1, "it had run");
}

/// A handler's failure and its panic reach the caller as one kind, without their texts; the host goes on.
///
/// REQ: ERR-213, ERR-702, ERR-701, ERR-302, EX-75, ERR-105
#[tokio::test]
async fn a_failing_handler_is_an_internal_failure_and_keeps_its_secrets() {
    for way in WAYS {
        let events = Events::collect();
        let desk = Desk::new("s");
        let s = serving(way, orders_server(desk.clone()), |host| host).await;
        let c = calling(way, "c", &s, |host| host).await;
        for (number, text) in ["fail", "panic", "cancelled"].into_iter().enumerate() {
            let CallError::Failed(error) = orders_client(&c).ask(note(text, number as u64)).await.unwrap_err() else {
                panic!("it was no argument")
            };
            assert_eq!(
                (error.kind(), error.execution()),
                (ErrorKind::InternalFailure, Execution::Unknown),
                "{text}"
            );
            assert!(!error.message().contains("4711"), "{error}");
            assert!(!error.message().contains("cancelled"), "{error}");
        }
        orders_client(&c).tell(note("fail", 4)).await.unwrap();
        orders_client(&c).tell(note("panic", 5)).await.unwrap();
        until("all five to have run", || desk.runs() == 5).await;
        until("a record of each", || {
            events.count(&["handler_exception", "action=drop", "4711"]) == 2
        })
        .await;
        assert_eq!(who(&c).await, "s");
        at_rest(&[&s, &c]).await;
    }
}

/// REQ: ERR-708, ERR-213
#[tokio::test]
async fn a_reply_that_cannot_be_encoded_fails_its_handler() {
    let desk = Desk::new("s");
    let s = serving(Way::Mesh, orders_server(desk.clone()), |host| host).await;
    let c = calling(Way::Mesh, "c", &s, |host| host).await;
    let failed = failure(orders_client(&c).brief(Brief { text: "long".into() }).await);
    assert_eq!(failed, (ErrorKind::InternalFailure, Execution::Unknown));
    assert_eq!(
        orders_client(&c).brief(Brief { text: "x".into() }).await.unwrap().text,
        "short"
    );
}

/// A failure further down is a value inside the handler, which may still answer.
///
/// REQ: ERR-704, MSG-406
#[tokio::test]
async fn a_downstream_failure_is_a_value_in_the_handler() {
    let desk = Desk::new("s");
    let s = serving(Way::Mesh, orders_server(desk.clone()), |host| host).await;
    let c = calling(Way::Mesh, "c", &s, |host| host).await;
    assert_eq!(
        orders_client(&c).ask(note("relay-failed", 1)).await.unwrap().text,
        "NotFound"
    );
    let failed = failure(orders_client(&c).ask(note("relay", 2)).await);
    assert_eq!(
        failed.0,
        ErrorKind::InternalFailure,
        "passed on with `?`, it is the handler's own failure"
    );
}

/// REQ: ERR-404, ERR-405, ERR-803, ERR-804, CH-501, EX-86
#[tokio::test]
async fn a_lost_link_ends_its_calls_once_and_nobody_else_runs_them() {
    let (lost, other) = (Desk::new("lost"), Desk::new("other"));
    let a = server("a", 100, &lost).await;
    let b = server("b", 100, &other).await;
    let c = client("c", &[&a, &b]).await;
    until("both servers", || candidates(&c) == 2).await;
    let mut calls = Vec::new();
    for number in 0..20 {
        calls.push(spawn(
            orders_client(&c)
                .ask(note("hold", number))
                .timeout(Duration::from_secs(60)),
        ));
    }
    lost.reached(10).await;
    other.reached(10).await;
    let raw = a.mesh("shop").unwrap().rid();
    assert!(c.mesh("shop").unwrap().disconnect(&endpoint(&a)).unwrap());
    until("the link to end", || {
        peer_state(&c, &raw) != Some(zlink_runtime::PeerState::Ready)
    })
    .await;
    other.gate().open();
    let (mut unavailable, mut answered) = (0, 0);
    for call in calls {
        match soon("the end of a call", call).await.unwrap() {
            Ok(reply) => {
                assert_eq!(reply.text, "other");
                answered += 1;
            }
            error => {
                assert_eq!(failure(error), (ErrorKind::Unavailable, Execution::Unknown));
                unavailable += 1;
            }
        }
    }
    assert_eq!((unavailable, answered), (10, 10));
    // The road is back; what ended stays ended, and only new calls run.
    c.mesh("shop").unwrap().connect(&endpoint(&a), None).unwrap();
    until("both servers again", || candidates(&c) == 2).await;
    lost.gate().open();
    settle().await;
    assert_eq!((lost.runs(), other.runs()), (10, 10));
    at_rest(&[&c, &b]).await;
}

/// REQ: ERR-209, ERR-301, CH-1002, EX-82
#[tokio::test]
async fn a_host_that_stops_takes_no_new_calls() {
    for way in WAYS {
        let desk = Desk::new("s");
        let s = serving(way, orders_server(desk.clone()), |host| host).await;
        let c = calling(way, "c", &s, |host| host).await;
        c.shutdown().await.unwrap();
        let stopping = (ErrorKind::ShuttingDown, Execution::NotExecuted);
        assert_eq!(failure(orders_client(&c).ask(note("", 1)).await), stopping);
        assert_eq!(failure(orders_client(&c).tell(note("", 2)).await), stopping);
        assert_eq!(desk.runs(), 0);
    }
}

/// REQ: ERR-405, MSG-202, EX-105
#[tokio::test]
async fn a_stop_by_force_tells_the_callers_of_both_sides_once() {
    let desk = Desk::new("s");
    let s = serving(Way::Mesh, orders_server(desk.clone()), |host| {
        host.drain_timeout(Duration::from_millis(100))
    })
    .await;
    let c = calling(Way::Mesh, "c", &s, |host| {
        host.drain_timeout(Duration::from_millis(100))
    })
    .await;
    let call = spawn(orders_client(&c).ask(note("never", 1)));
    desk.reached(1).await;
    let forced = s.shutdown().await.unwrap_err();
    assert_eq!(forced.unfinished_jobs(), 1);
    let failed = failure(soon("the end of the call", call).await.unwrap());
    assert_eq!(failed.1, Execution::Unknown);
    assert!(
        matches!(failed.0, ErrorKind::ShuttingDown | ErrorKind::Unavailable),
        "{failed:?}"
    );
    assert_eq!(desk.dropped(), [1]);
    at_rest(&[&s, &c]).await;
}

/// Reply, remote error, deadline, drop and the loss of the link, all at once, thousands of times: one end each.
///
/// REQ: ERR-108, MSG-202, MSG-106, EX-87, ERR-106
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_contenders_race_and_one_wins() {
    let desk = Desk::new("s");
    let s = serving(Way::Mesh, orders_server(desk.clone()), |host| host.max_queued_jobs(64)).await;
    let c = calling(Way::Mesh, "c", &s, |host| host).await;
    let (mut ends, mut dropped) = (0, 0);
    for round in 0..40_u64 {
        let mut calls = Vec::new();
        for number in 0..50 {
            let text = ["", "fail", "late"][number as usize % 3];
            let call = orders_client(&c).ask(note(text, number % 4));
            let call = tokio::spawn(call.timeout(Duration::from_millis(1 + number % 3)).into_future());
            if number % 7 == round % 7 {
                call.abort();
            }
            calls.push(call);
        }
        if round % 10 == 9 {
            assert!(c.mesh("shop").unwrap().disconnect(&endpoint(&s)).unwrap());
        }
        for call in calls {
            match soon("an end", call).await {
                Ok(Ok(_)) => ends += 1,
                Ok(Err(CallError::Failed(error))) => {
                    let kinds = [
                        ErrorKind::InternalFailure,
                        ErrorKind::DeadlineExceeded,
                        ErrorKind::Unavailable,
                        ErrorKind::NotFound,
                    ];
                    assert!(kinds.contains(&error.kind()), "{error}");
                    ends += 1;
                }
                Ok(Err(refused)) => panic!("{refused}"),
                Err(gone) => {
                    assert!(gone.is_cancelled());
                    dropped += 1;
                }
            }
        }
        if round % 10 == 9 {
            until("the link to be gone", || candidates(&c) == 0).await;
            c.mesh("shop").unwrap().connect(&endpoint(&s), None).unwrap();
            until("the server again", || candidates(&c) == 1).await;
        }
    }
    assert_eq!(ends + dropped, 2000);
    at_rest(&[&c, &s]).await;
    assert_eq!(who(&c).await, "s");
}

/// Nothing that a call can end with says when to try again, or tries by itself.
///
/// REQ: ERR-801, ERR-802, ERR-104
#[tokio::test]
async fn errors_give_no_advice_and_are_bounded() {
    let c = client("c", &[]).await;
    let long = ChannelName::new("x".repeat(255)).unwrap();
    let CallError::Failed(error) = orders_client(&c).on(long).ask(note("", 1)).await.unwrap_err() else {
        panic!("it was no argument")
    };
    assert!(error.message().len() <= 256);
    let shown = format!("{error:?}").to_lowercase();
    assert!(!shown.contains("retry") && !shown.contains("again"), "{shown}");
}

/// A peer's error crosses the wire unchanged, and one with an unknown number is a protocol error.
///
/// REQ: ERR-701, ERR-707, MSG-704, MSG-901
#[tokio::test]
async fn error_replies_arrive_as_they_were_sent() {
    for way in WAYS {
        let (c, raw) = raw_server(way, |host| host).await;
        for kind in ErrorKind::ALL {
            for (executed, execution) in [(0, Execution::NotExecuted), (1, Execution::Unknown)] {
                let call = spawn(orders_client(&c).ask(note("", 1)));
                let asked = asked_of(&raw, way).await;
                raw.push(reply_to(&asked, [1, kind.number(), executed, 0], b"because"))
                    .await;
                let CallError::Failed(error) = soon("an answer", call).await.unwrap().unwrap_err() else {
                    panic!("it was no argument")
                };
                assert_eq!(
                    (error.kind(), error.execution(), error.message()),
                    (kind, execution, "because")
                );
            }
        }
        let call = spawn(orders_client(&c).ask(note("", 1)));
        let asked = asked_of(&raw, way).await;
        raw.push(reply_to(&asked, [1, 13, 0, 0], b"")).await;
        let failed = failure(soon("an answer", call).await.unwrap());
        assert_eq!(failed, (ErrorKind::ProtocolError, Execution::Unknown));
        at_rest(&[&c]).await;
    }
}

async fn asked_of(raw: &Raw, _way: Way) -> bytes::Bytes {
    raw.heard(zlink_generated::zlink_wire::RecordKind::ChannelRequest).await
}

/// No room is no error: sends wait, and every one is handled once, in order; a request ends by its deadline.
///
/// REQ: ERR-406, ERR-501, ERR-502, MSG-103, ERR-408
#[tokio::test]
async fn lack_of_room_is_waited_out() {
    let desk = Desk::new("s");
    let limited = orders_server(desk.clone()).dispatch_limit(1);
    let s = serving(Way::Mesh, limited, |host| host.max_queued_jobs(4)).await;
    let c = calling(Way::Mesh, "c", &s, |host| host).await;
    let hold = spawn(orders_client(&c).tell(note("hold", 0)));
    soon("a send", hold).await.unwrap().unwrap();
    desk.reached(1).await;
    let client = orders_client(&c);
    let sender = tokio::spawn(async move {
        for number in 1..=2000 {
            client.tell(heavy(number, 10_000)).await.unwrap();
        }
    });
    until("the host to be full", || s.status().jobs.in_use() == 4).await;
    let failed = failure(orders_client(&c).ask(note("", 99_999)).timeout(DEADLINE).await);
    assert_eq!(failed.0, ErrorKind::DeadlineExceeded);
    assert!(!sender.is_finished(), "20 MB do not fit anywhere: the sender waits");
    desk.gate().open();
    soon("the sender", sender).await.unwrap();
    desk.reached(2001).await;
    let told: Vec<u64> = desk.numbers().into_iter().filter(|number| *number != 99_999).collect();
    assert!(told.iter().copied().eq(0..=2000), "each once, in order");
    at_rest(&[&s, &c]).await;
}

/// A subscriber that panics or blocks nobody's result: what is recorded changes no outcome.
///
/// REQ: ERR-907, ERR-903
#[tokio::test]
async fn telemetry_changes_no_result() {
    let desk = Desk::new("s");
    let s = serving(Way::Mesh, orders_server(desk.clone()), |host| host).await;
    let c = calling(Way::Mesh, "c", &s, |host| host).await;
    let events = Events::collect();
    for number in 0..20 {
        assert_eq!(orders_client(&c).ask(note("", number)).await.unwrap().number, number);
    }
    let nowhere = stock_client(&c).ask(note("", 1)).await;
    assert_eq!(failure(nowhere).0, ErrorKind::NotFound);
    drop(events);
    let desk = Arc::new(desk);
    assert_eq!(desk.runs(), 20);
}
