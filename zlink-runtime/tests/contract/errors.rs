//! Chapter 04: the closed set of kinds, and who is told what.

use std::time::Duration;

use zlink_generated::contract::{
    Brief, ORDERS, STOCK, orders_client, orders_server, skewed_client, stock_server, strict_server,
};
use zlink_generated::zlink_wire::{ChannelServer, Hello, RecordKind};
use zlink_runtime::Host;
use zlink_runtime::error::{CallError, ErrorKind, Execution, MAX_ERROR_TEXT};
use zlink_runtime::transport::Lane;

use crate::kit::{
    ANY, Desk, Events, Raw, client, endpoint, failure, hello_of, linked, node, note, rid_of, server, settle, soon,
    spawn, until, who,
};

/// REQ: ERR-101, EX-92
#[test]
fn the_kinds_are_closed_and_numbered() {
    let table = [
        "NotFound",
        "AlreadyExists",
        "TypeMismatch",
        "NotConfigured",
        "Rejected",
        "Unavailable",
        "CapacityExceeded",
        "DeadlineExceeded",
        "ShuttingDown",
        "ProtocolError",
        "InvalidOperation",
        "DataLost",
        "InternalFailure",
    ];
    assert_eq!(ErrorKind::ALL.len(), 13);
    for (number, name) in (0_u8..).zip(table) {
        let kind = ErrorKind::from_number(number).unwrap();
        assert_eq!((kind.number(), kind.to_string().as_str()), (number, name));
        assert_eq!(ErrorKind::ALL[usize::from(number)], kind);
    }
    assert!((13..=255).all(|number| ErrorKind::from_number(number).is_none()));
}

/// REQ: ERR-701, ERR-101, MSG-704
#[tokio::test]
async fn every_kind_travels_as_it_is() {
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
    for kind in ErrorKind::ALL {
        for (executed, execution) in [(0, Execution::NotExecuted), (1, Execution::Unknown)] {
            let call = spawn(orders_client(&c).ask(note("", 0)));
            let request = raw.heard(RecordKind::ChannelRequest).await;
            let mut reply = vec![1, RecordKind::Reply.to_wire(), 0, 0, 1, kind.number(), executed, 0];
            reply.extend_from_slice(&request[8..16]);
            reply.extend_from_slice("w\u{e4}rum".repeat(36).as_bytes());
            raw.say_on(Lane::Completion, &reply).unwrap();
            let Err(CallError::Failed(error)) = soon("its end", call).await.unwrap() else {
                panic!("{kind} is a failure");
            };
            assert_eq!((error.kind(), error.execution()), (kind, execution));
            assert!(error.message().starts_with("wärum") && error.message().len() <= MAX_ERROR_TEXT);
        }
    }
}

/// REQ: ERR-702, ERR-104, ERR-105, ERR-213, EX-75, ERR-701
#[tokio::test]
async fn a_failing_or_panicking_handler_fails_its_request_and_nothing_else() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let c = client("c", &[&s]).await;
    let events = Events::collect();
    for (at, text) in ["fail", "cancelled", "panic"].into_iter().enumerate() {
        let Err(CallError::Failed(error)) = orders_client(&c).ask(note(text, 0)).await else {
            panic!("{text} fails");
        };
        assert_eq!(
            (error.kind(), error.execution()),
            (ErrorKind::InternalFailure, Execution::Unknown),
            "{text}"
        );
        assert!(
            !error.message().contains("4711") && error.message().len() <= MAX_ERROR_TEXT,
            "{error}"
        );
        until("its record", || {
            events.count(&["handler_exception", "reply_error"]) == at + 1
        })
        .await;
    }
    assert_eq!(who(&c).await, "s", "the host keeps serving");
    assert!(s.status().is_ready());
    assert_eq!(s.status().jobs.in_use(), 0);
}

/// REQ: EX-81, ERR-302, ERR-306, MSG-105, PM-98
#[tokio::test]
async fn a_failure_after_acceptance_changes_no_send() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let c = client("c", &[&s]).await;
    let events = Events::collect();
    for text in ["fail", "panic"] {
        orders_client(&c).tell(note(text, 0)).await.unwrap();
    }
    until("both records", || {
        events.count(&["handler_exception", "action=drop"]) == 2
    })
    .await;
    skewed_client(&c).on(ORDERS).nobody_told(note("", 0)).await.unwrap();
    until("its record", || {
        events.count(&["no_handler", "action=drop", "outcome=failed"]) == 1
    })
    .await;
    assert_eq!(who(&c).await, "s");
}

/// REQ: ERR-401, ERR-201, ERR-210, ERR-901, CH-1001, EX-75
#[tokio::test]
async fn what_has_no_handler_or_cannot_be_decoded_is_answered() {
    let (desk, strict) = (Desk::new("s"), Desk::new("strict"));
    let s = server("s", 100, &desk).await;
    let c = client("c", &[&s]).await;
    let events = Events::collect();
    let nobody = failure(skewed_client(&c).on(ORDERS).nobody(note("", 0)).await);
    assert_eq!(nobody, (ErrorKind::NotFound, Execution::NotExecuted));
    assert_eq!(
        events.count(&["zlink.dispatch_error", "no_handler", "reply_error", "surface=channel"]),
        1
    );
    let other = node("o", |mesh| mesh.serve(strict_server(strict.clone()).on(STOCK)))
        .start()
        .await
        .unwrap();
    let d = node("d", |mesh| mesh.client(STOCK).connect(endpoint(&other)))
        .start()
        .await
        .unwrap();
    linked(&d, &rid_of(&other)).await;
    let stock = zlink_generated::contract::stock_client(&d);
    assert_eq!(
        failure(stock.ask(note("", 0)).await),
        (ErrorKind::ProtocolError, Execution::NotExecuted)
    );
    assert_eq!(
        events.count(&["zlink.dispatch_error", "decode_error", "reply_error"]),
        1
    );
    stock.tell(note("", 0)).await.unwrap();
    until("its record", || events.count(&["decode_error", "action=drop"]) == 1).await;
    assert_eq!((desk.runs(), strict.runs()), (0, 0));
}

/// REQ: ERR-708, ERR-102
#[tokio::test]
async fn a_message_that_cannot_be_encoded_fails_where_it_is_made() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let c = client("c", &[&s]).await;
    let brief = |text: &str| orders_client(&c).brief(Brief { text: text.into() });
    let refused = brief("nine char").await;
    assert!(matches!(refused, Err(CallError::Argument(_))), "{refused:?}");
    settle().await;
    assert_eq!(desk.runs(), 0, "a request that breaks its schema is not sent");
    assert_eq!(
        failure(brief("long").await),
        (ErrorKind::InternalFailure, Execution::Unknown)
    );
    assert_eq!(brief("eight ch").await.unwrap().text, "short");
}

/// REQ: ERR-704, MSG-203
#[tokio::test]
async fn a_failure_downstream_is_a_value_in_the_handler() {
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
    let c = client("c", &[&f]).await;
    let reply = orders_client(&c).ask(note("relay-failed", 0)).await.unwrap();
    assert_eq!(reply.text, "NotFound", "the handler learned it, and still replied");
    b.shutdown().await.unwrap();
    let passed_on = failure(orders_client(&c).ask(note("relay", 0)).await);
    assert_eq!(
        passed_on.0,
        ErrorKind::InternalFailure,
        "a downstream kind is not passed through by itself"
    );
}

/// REQ: ERR-406, ERR-208, ERR-502, PM-63
#[tokio::test]
async fn lack_of_room_ends_a_request_at_its_deadline_only() {
    let desk = Desk::new("s");
    let s = node("s", |mesh| mesh.serve(orders_server(desk.clone()).dispatch_limit(1)));
    let s = s.max_queued_jobs(1).start().await.unwrap();
    let idle = Desk::new("idle");
    let other = node("o", |mesh| mesh.serve(stock_server(idle.clone())))
        .start()
        .await
        .unwrap();
    let c = node("c", |mesh| {
        mesh.client(ORDERS)
            .client(STOCK)
            .connect(endpoint(&s))
            .connect(endpoint(&other))
    });
    let c = c.start().await.unwrap();
    linked(&c, &rid_of(&s)).await;
    linked(&c, &rid_of(&other)).await;
    for number in 0..2 {
        orders_client(&c).tell(note("hold", number)).await.unwrap();
    }
    desk.reached(1).await;
    until("the pause", || {
        c.mesh("shop").unwrap().status().peers.iter().any(|peer| peer.paused)
    })
    .await;
    let calls: Vec<_> = (10..20)
        .map(|number| {
            spawn(
                orders_client(&c)
                    .ask(note("", number))
                    .timeout(Duration::from_millis(200)),
            )
        })
        .collect();
    assert_eq!(
        zlink_generated::contract::stock_client(&c)
            .ask(note("", 0))
            .await
            .unwrap()
            .text,
        "idle"
    );
    for call in calls {
        assert_eq!(
            failure(soon("its deadline", call).await.unwrap()).0,
            ErrorKind::DeadlineExceeded
        );
    }
    desk.gate().open();
    assert_eq!(who(&c).await, "s");
    settle().await;
    assert!(
        desk.numbers().iter().all(|number| *number < 10),
        "what never left is not sent later: {:?}",
        desk.numbers()
    );
}

/// REQ: ERR-404, ERR-804, EX-86, CH-501
#[tokio::test]
async fn a_recovered_route_carries_new_calls_only() {
    let c = client("c", &[]).await;
    let join = |generation| {
        let hello = Hello {
            generation,
            channels: vec![ChannelServer {
                name: "orders".into(),
                weight: 100,
            }],
            ..hello_of("raw")
        };
        let to = endpoint(&c);
        async move { Raw::join(&to, &hello).await }
    };
    let targets = || c.mesh("shop").unwrap().status().channels[0].1.len();
    let raw = join(1).await;
    until("the server", || targets() == 1).await;
    let request = spawn(orders_client(&c).ask(note("", 1)));
    orders_client(&c).tell(note("", 2)).await.unwrap();
    raw.heard(RecordKind::ChannelRequest).await;
    raw.heard(RecordKind::ChannelSend).await;
    raw.leave();
    assert_eq!(
        failure(request.await.unwrap()),
        (ErrorKind::Unavailable, Execution::Unknown)
    );
    let raw = join(2).await;
    until("the server", || targets() == 1).await;
    orders_client(&c).tell(note("", 3)).await.unwrap();
    raw.heard(RecordKind::ChannelSend).await;
    settle().await;
    assert_eq!(
        raw.count(RecordKind::ChannelRequest) + raw.count(RecordKind::ChannelSend),
        0
    );
}

/// REQ: ERR-301, ERR-209, ERR-204, EX-82, CH-1002
#[tokio::test]
async fn a_send_fails_before_acceptance_with_the_reason() {
    let desk = Desk::new("s");
    let s = Host::builder()
        .client_server(|c| c.serve(orders_server(desk.clone())).listen(ANY))
        .start()
        .await
        .unwrap();
    let c = client("c", &[]).await;
    let kinds = [
        failure(orders_client(&c).tell(note("", 0)).await),
        failure(zlink_generated::contract::stock_client(&c).tell(note("", 0)).await),
        failure(orders_client(&s).tell(note("", 0)).await),
    ];
    let not_run = |kind| (kind, Execution::NotExecuted);
    assert_eq!(
        kinds,
        [ErrorKind::NotFound, ErrorKind::NotFound, ErrorKind::NotConfigured].map(not_run)
    );
    c.shutdown().await.unwrap();
    assert_eq!(
        failure(orders_client(&c).tell(note("", 0)).await),
        not_run(ErrorKind::ShuttingDown)
    );
    assert_eq!(desk.runs(), 0);
}
