//! Chapter 09, as far as Node and Channel handlers go: queues, turns, submission, completion, shutdown.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use zlink_generated::contract::{
    DeskHandler, Note, ORDERS, StockClient, desk_client, desk_server, orders_client, orders_server, stock_client,
    stock_server,
};
use zlink_runtime::error::{ErrorKind, Execution, HandlerError};
use zlink_runtime::prelude::*;

use super::kit::*;

/// REQ: EX-12, PM-25
#[tokio::test]
async fn a_queue_starts_in_order_and_no_more_at_once_than_its_limit() {
    let desk = Desk::new("s");
    let limited = orders_server(desk.clone()).dispatch_limit(2);
    let s = serving(Way::Mesh, limited, |host| host).await;
    let c = calling(Way::Mesh, "c", &s, |host| host).await;
    for number in 0..10 {
        orders_client(&c).tell(note("hold", number)).await.unwrap();
    }
    desk.reached(2).await;
    until("eight to wait", || s.status().jobs.queued == 8).await;
    settle().await;
    assert_eq!(desk.numbers(), [0, 1], "the third starts only after a release");
    desk.gate().release(1);
    desk.reached(3).await;
    settle().await;
    assert_eq!((desk.numbers(), s.status().jobs.queued), (vec![0, 1, 2], 7));
    desk.gate().open();
    until("all to end", || desk.ended().len() == 10).await;
    assert_eq!(desk.numbers(), (0..10).collect::<Vec<_>>());
    at_rest(&[&s, &c]).await;
}

/// While one handler waits, others of the same queue and of other queues run.
///
/// REQ: EX-12, EX-13, CH-601, CH-602
#[tokio::test]
async fn scopes_have_queues_of_their_own() {
    let (orders, stock) = (Desk::new("orders"), Desk::new("stock"));
    let direct = Desk::new("direct");
    let s = node("s", |mesh| {
        mesh.serve(orders_server(orders.clone()).dispatch_limit(1))
            .serve(stock_server(stock.clone()))
            .serve_node(direct.node())
    })
    .start()
    .await
    .unwrap();
    let c = node("c", |mesh| {
        mesh.client(ORDERS)
            .client(zlink_generated::contract::STOCK)
            .connect(endpoint(&s))
    })
    .start()
    .await
    .unwrap();
    linked(&c, &rid_of(&s)).await;
    let held = spawn(orders_client(&c).ask(note("hold", 1)));
    orders.reached(1).await;
    let other = zlink_generated::contract::stock_client(&c)
        .ask(note("", 2))
        .await
        .unwrap();
    assert_eq!(other.text, "stock", "the same packet name, another channel");
    assert_eq!(who_at(&c, &rid_of(&s)).await.unwrap(), "direct", "and another scope");
    assert_eq!((orders.runs(), stock.runs(), direct.runs()), (1, 1, 1));
    orders.gate().open();
    assert_eq!(soon("the held one", held).await.unwrap().unwrap().text, "orders");
}

/// Every handler waits; a deadline still fires, a new peer is still admitted, and the stop still advances.
///
/// REQ: EX-47, MSG-207, PM-62
#[tokio::test]
async fn waiting_handlers_stop_nothing_else() {
    let desk = Desk::new("s");
    let s = serving(Way::Mesh, orders_server(desk.clone()).dispatch_limit(4), |host| {
        host.max_queued_jobs(4).drain_timeout(Duration::from_millis(300))
    })
    .await;
    let c = calling(Way::Mesh, "c", &s, |host| host).await;
    for number in 0..8 {
        orders_client(&c).tell(note("never", number)).await.unwrap();
    }
    desk.reached(4).await;
    until("the host to be full", || s.status().jobs.in_use() == 4).await;
    let watch = Stopwatch::start();
    let failed = failure(
        orders_client(&c)
            .ask(note("", 9))
            .timeout(Duration::from_millis(200))
            .await,
    );
    assert_eq!(failed.0, ErrorKind::DeadlineExceeded);
    assert!(!watch.is_past(Duration::from_secs(2)));
    let late = calling(Way::Mesh, "late", &s, |host| host).await;
    assert_eq!(candidates(&late), 1, "a new peer is admitted");
    let forced = soon("the stop", s.shutdown()).await.unwrap_err();
    assert_eq!(forced.unfinished_jobs(), 8);
    until("every handler to be dropped", || desk.dropped().len() == 4).await;
}

/// REQ: EX-80, EX-81, MSG-101, MSG-105
#[tokio::test]
async fn a_send_is_done_when_this_side_has_taken_it() {
    for way in WAYS {
        let desk = Desk::new("s");
        let s = serving(way, orders_server(desk.clone()), |host| host).await;
        let c = calling(way, "c", &s, |host| host).await;
        let (): () = orders_client(&c).tell(note("hold", 1)).await.unwrap();
        orders_client(&c).tell(note("fail", 2)).await.unwrap();
        desk.reached(2).await;
        assert!(desk.ended().is_empty(), "both were done before any handler ended");
        desk.gate().open();
        until("the held one to end", || desk.ended() == [1]).await;
    }
}

/// REQ: EX-83, MSG-104, EX-85
#[tokio::test]
async fn a_send_waits_for_room_as_long_as_it_takes_or_as_was_configured() {
    let desk = Desk::new("s");
    let limited = orders_server(desk.clone()).dispatch_limit(1);
    let s = serving(Way::Mesh, limited, |host| host.max_queued_jobs(2)).await;
    let patient = calling(Way::Mesh, "patient", &s, |host| host).await;
    let hasty = calling(Way::Mesh, "hasty", &s, |host| {
        host.send_timeout(Duration::from_millis(100))
    })
    .await;
    orders_client(&patient).tell(note("hold", 0)).await.unwrap();
    desk.reached(1).await;
    let fill = |host: &Host, from: u64| {
        let client = orders_client(host);
        async move {
            for number in from.. {
                match within(
                    Duration::from_millis(400),
                    client.tell(heavy(number, 500_000)).into_future(),
                )
                .await
                {
                    Some(Ok(())) => {}
                    other => return (number, other),
                }
            }
            unreachable!("there is no end of room")
        }
    };
    let (last, waited) = fill(&hasty, 1_000).await;
    let failed = failure(waited.expect("it does not wait for ever"));
    assert_eq!(failed, (ErrorKind::DeadlineExceeded, Execution::NotExecuted));
    let (given_up, waited) = fill(&patient, 1).await;
    assert!(waited.is_none(), "it waits on");
    let waits = spawn(orders_client(&patient).tell(heavy(9_999, 10)));
    settle().await;
    assert!(!waits.is_finished());
    desk.gate().open();
    soon("the one that waited", waits).await.unwrap().unwrap();
    until("it to be handled", || desk.numbers().contains(&9_999)).await;
    at_rest(&[&s, &patient, &hasty]).await;
    let numbers = desk.numbers();
    assert!(
        !numbers.contains(&last) && !numbers.contains(&given_up),
        "what was given up is never admitted later"
    );
}

/// REQ: EX-88, MSG-204, CH-203
#[tokio::test]
async fn one_deadline_covers_the_whole_call() {
    let desk = Desk::new("s");
    let s = serving(Way::Mesh, orders_server(desk.clone()), |host| host).await;
    let c = calling(Way::Mesh, "c", &s, |host| {
        host.request_timeout(Duration::from_millis(150))
    })
    .await;
    let (began, watch) = (Instant::now(), Stopwatch::start());
    let failed = failure(orders_client(&c).ask(note("never", 1)).await);
    assert_eq!(failed.0, ErrorKind::DeadlineExceeded, "the host's default");
    assert!(began.elapsed() >= Duration::from_millis(150) && !watch.is_past(Duration::from_secs(2)));
    let began = Instant::now();
    let call = orders_client(&c)
        .ask(note("never", 2))
        .timeout(Duration::from_millis(300));
    assert_eq!(failure(call.await).0, ErrorKind::DeadlineExceeded, "the call's own");
    assert!(began.elapsed() >= Duration::from_millis(300));
}

/// REQ: EX-89, MSG-201, EX-90, MSG-203
#[tokio::test]
async fn late_and_foreign_replies_end_nothing() {
    for way in WAYS {
        let (c, raw) = raw_server(way, |host| host).await;
        let late = spawn(orders_client(&c).ask(note("", 1)).timeout(Duration::from_millis(50)));
        let first = raw.heard(zlink_generated::zlink_wire::RecordKind::ChannelRequest).await;
        assert_eq!(failure(late.await.unwrap()).0, ErrorKind::DeadlineExceeded);
        let next = spawn(orders_client(&c).ask(note("", 2)));
        let second = raw.heard(zlink_generated::zlink_wire::RecordKind::ChannelRequest).await;
        assert_ne!(correlation_of(&first), correlation_of(&second));
        let payload = encoded(&note("late", 1));
        raw.push(reply_to(&first, [0; 4], &payload)).await;
        let mut foreign = second.to_vec();
        foreign[8] ^= 1;
        raw.push(reply_to(&foreign, [0; 4], &payload)).await;
        raw.push(reply_to(&second, [0; 4], &encoded(&note("second", 2)))).await;
        raw.push(reply_to(&second, [0; 4], &payload)).await;
        assert_eq!(soon("the reply", next).await.unwrap().unwrap().text, "second");
        assert!(raw.is_open(), "nobody is punished for being late");
        at_rest(&[&c]).await;
    }
}

/// REQ: EX-100, EX-101, MSG-205
#[tokio::test]
async fn a_dropped_call_is_withdrawn_or_only_not_waited_for() {
    let desk = Desk::new("s");
    let limited = orders_server(desk.clone()).dispatch_limit(1);
    let s = serving(Way::Mesh, limited, |host| host.max_queued_jobs(2)).await;
    let c = calling(Way::Mesh, "c", &s, |host| host).await;
    let running = spawn(orders_client(&c).ask(note("hold", 1)));
    desk.reached(1).await;
    running.abort();
    let client = orders_client(&c);
    let mut number = 100;
    while let Some(sent) = within(
        Duration::from_millis(300),
        client.tell(heavy(number, 500_000)).into_future(),
    )
    .await
    {
        sent.unwrap();
        number += 1;
    }
    // The one that timed out was dropped while it waited for room; so is this request.
    let request = spawn(orders_client(&c).ask(heavy(7, 10)));
    settle().await;
    request.abort();
    assert!(soon("the abort", request).await.is_err());
    desk.gate().open();
    until("what was accepted to run", || desk.runs() as u64 == 1 + number - 100).await;
    settle().await;
    assert!(!desk.numbers().contains(&number) && !desk.numbers().contains(&7));
    assert_eq!(desk.ended().first(), Some(&1), "a running handler is not undone");
    at_rest(&[&s, &c]).await;
}

/// A graceful stop finishes what was accepted, replies included, and lets handlers call out to the end.
///
/// REQ: EX-103, EX-104, NET-1007, CH-304
#[tokio::test]
async fn a_stop_finishes_what_was_accepted() {
    for way in WAYS {
        let desk = Desk::new("s");
        let s = serving(way, orders_server(desk.clone()), |host| host).await;
        let c = calling(way, "c", &s, |host| host).await;
        let held = spawn(orders_client(&c).ask(note("hold", 1)));
        desk.reached(1).await;
        let stopping = s.clone();
        let stop = spawn(async move { stopping.shutdown().await });
        until("the host to drain", || {
            s.status().phase == zlink_runtime::HostPhase::Draining
        })
        .await;
        settle().await;
        assert!(!stop.is_finished());
        desk.gate().open();
        assert_eq!(soon("the reply", held).await.unwrap().unwrap().text, "s");
        soon("the stop", stop).await.unwrap().unwrap();
        assert_eq!(s.status().phase, zlink_runtime::HostPhase::Stopped);
        soon("a second stop", s.shutdown()).await.unwrap();
        assert_eq!(desk.runs(), 1);
    }
}

/// REQ: EX-104, ERR-704
#[tokio::test]
async fn a_handler_may_call_while_its_host_drains() {
    let stock = Desk::new("stock");
    let far = node("far", |mesh| mesh.serve(stock_server(stock.clone())))
        .start()
        .await
        .unwrap();
    let desk = Desk::new("s");
    let s = node("s", |mesh| {
        mesh.serve(orders_server(desk.clone()).dispatch_limit(1))
            .client(zlink_generated::contract::STOCK)
            .connect(endpoint(&far))
    })
    .start()
    .await
    .unwrap();
    linked(&s, &rid_of(&far)).await;
    let c = client("c", &[&s]).await;
    let held = spawn(orders_client(&c).ask(note("hold", 1)));
    let relays = spawn(orders_client(&c).ask(note("relay", 2)));
    desk.reached(1).await;
    until("the second to be queued", || s.status().jobs.queued == 1).await;
    let stopping = s.clone();
    let stop = spawn(async move { stopping.shutdown().await });
    until("the host to drain", || {
        s.status().phase == zlink_runtime::HostPhase::Draining
    })
    .await;
    desk.gate().open();
    assert_eq!(soon("the first", held).await.unwrap().unwrap().text, "s");
    assert_eq!(
        soon("the one that calls on", relays).await.unwrap().unwrap().text,
        "stock"
    );
    soon("the stop", stop).await.unwrap().unwrap();
}

/// Leaves a client behind, made from its context; waits at the gate where its message says so.
#[derive(Clone)]
struct Leaves(Desk, Arc<Mutex<Option<StockClient>>>);

impl DeskHandler for Leaves {
    async fn ask(&self, context: &NodeContext<'_>, request: Note) -> Result<Note, HandlerError> {
        let stock = stock_client(context);
        *self.1.lock() = Some(stock.clone());
        if request.text == "hold" {
            self.0.gate().pass().await;
        }
        Ok(stock.ask(note("", request.number)).await?)
    }

    async fn tell(&self, _: &NodeContext<'_>, _: Note) -> Result<(), HandlerError> {
        Ok(())
    }
}

/// REQ: EX-104, NET-1007
#[tokio::test]
async fn a_client_that_outlives_its_handler_calls_from_outside() {
    let stock = Desk::new("stock");
    let far = node("far", |mesh| mesh.serve(stock_server(stock.clone())));
    let far = far.start().await.unwrap();
    let (desk, left) = (Desk::new("s"), Arc::new(Mutex::new(None)));
    let leaves = Leaves(desk.clone(), left.clone());
    let s = node("s", |mesh| {
        mesh.serve_node(desk_server(leaves))
            .client(zlink_generated::contract::STOCK)
            .connect(endpoint(&far))
    });
    let s = s.start().await.unwrap();
    linked(&s, &rid_of(&far)).await;
    let c = client("c", &[&s]).await;
    let ask = |text| desk_client(&c, &SHOP, rid_of(&s)).ask(note(text, 0)).into_future();
    soon("a first turn", ask("")).await.unwrap();
    let kept = left.lock().take().unwrap();
    kept.ask(note("", 1)).await.unwrap();
    let held = spawn(ask("hold"));
    until("the second turn", || left.lock().is_some()).await;
    let stopping = s.clone();
    let stop = spawn(async move { stopping.shutdown().await });
    until("the host to drain", || {
        s.status().phase == zlink_runtime::HostPhase::Draining
    })
    .await;
    let refused = (ErrorKind::ShuttingDown, Execution::NotExecuted);
    assert_eq!(failure(soon("its end", kept.ask(note("", 2))).await), refused);
    let alive = left.lock().clone().unwrap();
    soon("a call of the turn that runs", alive.ask(note("", 3)))
        .await
        .unwrap();
    desk.gate().open();
    soon("the reply", held).await.unwrap().unwrap();
    soon("the stop", stop).await.unwrap().unwrap();
}

/// REQ: EX-105, NET-1003
#[tokio::test]
async fn hosts_in_one_process_are_independent() {
    let (one, two) = (Desk::new("one"), Desk::new("two"));
    let a = serving(Way::ClientServer, orders_server(one.clone()), |host| host).await;
    let b = serving(Way::ClientServer, orders_server(two.clone()), |host| host).await;
    let (ca, cb) = (
        calling(Way::ClientServer, "c", &a, |host| host).await,
        calling(Way::ClientServer, "c", &b, |host| host).await,
    );
    assert_eq!((who(&ca).await, who(&cb).await), ("one".into(), "two".into()));
    let pending = spawn(orders_client(&ca).ask(note("never", 1)));
    one.reached(2).await;
    drop(a);
    let failed = failure(soon("the end of the call", pending).await.unwrap());
    assert_eq!(failed.1, Execution::Unknown);
    until("the handler to be dropped", || one.dropped() == [1]).await;
    let runs = one.runs();
    assert_eq!(who(&cb).await, "two", "the other host is as it was");
    assert_eq!(one.runs(), runs, "nothing starts after the last handle is gone");
}

/// REQ: CH-207, EX-85, PM-31
#[tokio::test]
async fn a_node_calls_itself_like_any_other() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let me = rid_of(&s);
    assert_eq!(who_at(&s, &me).await.unwrap(), "s");
    let told = desk_client(&s, &SHOP, me.clone()).tell(note("fail", 2));
    told.await.unwrap();
    desk.reached(2).await;
    assert_eq!(desk.seen()[0].source, Some((SHOP, me.clone())));
    let failed = failure(desk_client(&s, &SHOP, me.clone()).ask(note("panic", 3)).await);
    assert_eq!(failed, (ErrorKind::InternalFailure, Execution::Unknown));
    let late = desk_client(&s, &SHOP, me)
        .ask(note("never", 4))
        .timeout(Duration::from_millis(100));
    assert_eq!(failure(late.await).0, ErrorKind::DeadlineExceeded);
    until("no permit in use", || s.status().jobs.in_use() == 0).await;
    assert!(
        s.mesh("shop").unwrap().status().peers.is_empty(),
        "no link is made for it"
    );
}
