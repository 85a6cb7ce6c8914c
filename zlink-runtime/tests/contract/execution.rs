//! Chapter 09, as far as channel and node handlers need it: dispatch, the one terminal, deadlines, shutdown.

use std::time::{Duration, Instant};

use zlink_generated::contract::{ORDERS, desk_client, orders_client, orders_server};
use zlink_generated::zlink_wire::{ChannelServer, Hello, RecordKind};
use zlink_runtime::error::{CallError, ErrorKind, Execution};
use zlink_runtime::transport::Lane;
use zlink_runtime::{Host, HostPhase};

use crate::kit::{
    Desk, Raw, SHOP, client, endpoint, failure, free_port, hello_of, node, note, record, rid_of, server, settle, soon,
    spawn, until,
};

/// REQ: EX-12, PM-20
#[tokio::test]
async fn dispatches_overlap_up_to_their_limit_and_start_in_order() {
    let desk = Desk::new("s");
    let s = node("s", |mesh| mesh.serve(orders_server(desk.clone()).dispatch_limit(2)))
        .start()
        .await
        .unwrap();
    let c = client("c", &[&s]).await;
    for number in 0..5 {
        orders_client(&c).tell(note("hold", number)).await.unwrap();
    }
    until("what may wait", || s.status().jobs.queued == 3).await;
    settle().await;
    assert_eq!(desk.numbers(), [0, 1]);
    for started in 3..=5 {
        desk.gate().release(1);
        desk.reached(started).await;
        settle().await;
        assert_eq!(desk.numbers(), (0..started as u64).collect::<Vec<_>>());
        assert_eq!(
            s.status().jobs.queued as usize,
            5 - started,
            "who waits keeps its permit"
        );
    }
    desk.gate().open();
}

/// REQ: EX-47, EX-70
#[tokio::test]
async fn handlers_that_wait_stop_nobody_else() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let c = client("c", &[&s]).await;
    let direct = desk_client(&c, &SHOP, rid_of(&s));
    let held: Vec<_> = (0..200)
        .map(|number| spawn(orders_client(&c).ask(note("hold", number))))
        .collect();
    desk.reached(200).await;
    assert_eq!(soon("another", direct.ask(note("", 999))).await.unwrap().number, 999);
    let timed = failure(
        orders_client(&c)
            .ask(note("hold", 500))
            .timeout(Duration::from_millis(50))
            .await,
    );
    assert_eq!(timed, (ErrorKind::DeadlineExceeded, Execution::Unknown));
    let late = client("late", &[&s]).await;
    assert_eq!(orders_client(&late).ask(note("", 1)).await.unwrap().text, "s");
    desk.gate().open();
    for call in held {
        soon("a reply", call).await.unwrap().unwrap();
    }
}

/// Waiting for a server, for room and for the handler are stages of one deadline.
///
/// REQ: EX-88, MSG-204
#[tokio::test]
async fn one_deadline_covers_every_stage() {
    let port = free_port();
    let at = format!("tcp://127.0.0.1:{port}");
    let c = Host::builder()
        .client_server(|c| c.client(ORDERS).connect(&at))
        .start()
        .await
        .unwrap();
    let begin = Instant::now();
    let limit = Duration::from_millis(1_500);
    let call = spawn(orders_client(&c).ask(note("hold", 1)).timeout(limit));
    tokio::time::timeout(Duration::from_millis(500), std::future::pending::<()>())
        .await
        .unwrap_err();
    let desk = Desk::new("s");
    let s = Host::builder().client_server(|c| c.serve(orders_server(desk.clone())).listen(&at));
    let s = s.start().await.unwrap();
    desk.reached(1).await;
    assert_eq!(
        failure(call.await.unwrap()),
        (ErrorKind::DeadlineExceeded, Execution::Unknown)
    );
    let took = begin.elapsed();
    assert!(
        took >= limit && took < limit + Duration::from_millis(450),
        "{took:?}: the stages do not add up"
    );
    desk.gate().open();
    s.shutdown().await.unwrap();
}

/// A reply, an error, the deadline, a dropped future and the end of the link meet at every call: each ends once.
///
/// REQ: EX-87, EX-90, MSG-106, MSG-202, ERR-108
#[tokio::test]
async fn a_call_ends_once_whoever_comes_first() {
    const ROUNDS: u64 = 20;
    const CALLS: u64 = 100;
    let c = client("c", &[]).await;
    let (mut replies, mut errors, mut deadlines, mut lost, mut dropped) = (0, 0, 0, 0, 0);
    for round in 0..ROUNDS {
        let hello = Hello {
            generation: round + 1,
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
        let calls: Vec<_> = (0..CALLS)
            .map(|number| {
                let call = orders_client(&c).ask(note("", number));
                // A fifth is given up soon, a fifth has hardly any time.
                let timeout = Duration::from_millis(if number % 5 == 0 { 2 } else { 20_000 });
                (number, spawn(call.timeout(timeout)))
            })
            .collect();
        for at in 0..CALLS {
            let Ok(request) = tokio::time::timeout(Duration::from_secs(5), raw.heard(RecordKind::ChannelRequest)).await
            else {
                break;
            };
            let correlation: [u8; 8] = request[8..16].try_into().unwrap();
            let mut good = record(RecordKind::Reply, &[0; 4]);
            good.extend_from_slice(&correlation);
            zlink_runtime::rt::encode(&note("raw", at), |body| good.extend_from_slice(body)).unwrap();
            let mut bad = record(RecordKind::Reply, &[1, 4, 0, 0]);
            bad.extend_from_slice(&correlation);
            let both = if at % 2 == 0 { [&good, &bad] } else { [&bad, &good] };
            if at % 4 != 3 {
                for one in both {
                    let _ = raw.say_on(Lane::Completion, one);
                }
            }
            if at == CALLS * 3 / 4 {
                for (number, call) in &calls {
                    if number % 7 == 0 {
                        call.abort();
                    }
                }
                raw.leave();
                break;
            }
        }
        for (_, call) in calls {
            match soon("its one end", call).await {
                Ok(Ok(reply)) => {
                    assert_eq!(reply.text, "raw");
                    replies += 1;
                }
                Ok(Err(CallError::Failed(error))) => match error.kind() {
                    ErrorKind::Rejected => errors += 1,
                    ErrorKind::DeadlineExceeded => deadlines += 1,
                    ErrorKind::Unavailable | ErrorKind::NotFound => lost += 1,
                    other => panic!("{other}"),
                },
                Ok(Err(refused)) => panic!("{refused}"),
                Err(aborted) => {
                    assert!(aborted.is_cancelled());
                    dropped += 1;
                }
            }
        }
        assert_eq!(c.status().waiting_requests, 0, "nothing is left behind");
        let rid = zlink_runtime::id::Rid::new("raw").unwrap();
        until("the end of the link", || {
            crate::kit::peer_state(&c, &rid) != Some(zlink_runtime::PeerState::Ready)
        })
        .await;
    }
    assert_eq!(replies + errors + deadlines + lost + dropped, ROUNDS * CALLS);
    assert!(
        replies > 0 && errors > 0 && lost > 0,
        "{replies} {errors} {deadlines} {lost} {dropped}"
    );
}

/// REQ: EX-104, EX-105, EX-103, MSG-202, ERR-209
#[tokio::test]
async fn a_forced_stop_drops_handlers_and_tells_their_callers_once() {
    let desk = Desk::new("s");
    let orders = orders_server(desk.clone()).dispatch_limit(2);
    let s = node("s", |mesh| mesh.serve(orders))
        .drain_timeout(Duration::from_millis(300))
        .start()
        .await
        .unwrap();
    let c = client("c", &[&s]).await;
    let calls: Vec<_> = (0..4)
        .map(|number| spawn(orders_client(&c).ask(note("hold", number))))
        .collect();
    until("two run, two wait", || desk.runs() == 2 && s.status().jobs.queued == 2).await;
    let begin = Instant::now();
    let error = s.shutdown().await.unwrap_err();
    assert!(begin.elapsed() >= Duration::from_millis(300) && begin.elapsed() < Duration::from_secs(5));
    assert_eq!(error.unfinished_jobs(), 4);
    let mut ran = 0;
    for call in calls {
        let (kind, execution) = failure(soon("its end", call).await.unwrap());
        assert_eq!(kind, ErrorKind::ShuttingDown);
        ran += usize::from(execution == Execution::Unknown);
    }
    assert_eq!(
        ran, 2,
        "of those that had not started it is known that they did not run"
    );
    let mut dropped = desk.dropped();
    dropped.sort_unstable();
    assert_eq!(dropped, [0, 1], "each handler that ran was dropped once");
    desk.gate().open();
    settle().await;
    assert_eq!(
        (desk.runs(), desk.ended().len()),
        (2, 0),
        "a late release changes nothing"
    );
    assert_eq!(s.status().phase, HostPhase::Stopped);
    assert_eq!(
        s.shutdown().await.unwrap_err(),
        error,
        "asking again gives the same answer"
    );
    assert_eq!(s.status().jobs.in_use(), 0);
}

/// REQ: EX-104, EX-103, CH-304
#[tokio::test]
async fn a_draining_host_runs_what_it_had_accepted() {
    let desk = Desk::new("s");
    let s = node("s", |mesh| mesh.serve(orders_server(desk.clone()).dispatch_limit(1)))
        .start()
        .await
        .unwrap();
    let c = client("c", &[&s]).await;
    let calls: Vec<_> = (0..5)
        .map(|number| spawn(orders_client(&c).ask(note("hold", number))))
        .collect();
    until("one runs, four wait", || {
        desk.runs() == 1 && s.status().jobs.queued == 4
    })
    .await;
    let stop = spawn({
        let s = s.clone();
        async move { s.shutdown().await }
    });
    until("draining", || s.status().phase == HostPhase::Draining).await;
    desk.gate().open();
    for call in calls {
        assert_eq!(soon("a reply", call).await.unwrap().unwrap().text, "s");
    }
    soon("the stop", stop).await.unwrap().unwrap();
    assert_eq!(desk.runs(), 5);
}

/// REQ: EX-105, NET-911
#[tokio::test]
async fn the_last_handle_stops_the_host() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let port = crate::kit::port_of(&s);
    let c = client("c", &[&s]).await;
    let rid = rid_of(&s);
    let call = spawn(orders_client(&c).ask(note("never", 1)));
    desk.reached(1).await;
    let clone = s.clone();
    drop(s);
    assert_eq!(
        orders_client(&c).ask(note("", 2)).await.unwrap().text,
        "s",
        "a clone keeps it"
    );
    drop(clone);
    let (kind, execution) = failure(soon("its end", call).await.unwrap());
    assert!(
        matches!(kind, ErrorKind::ShuttingDown | ErrorKind::Unavailable),
        "{kind}"
    );
    assert_eq!(execution, Execution::Unknown);
    until("its port", || crate::kit::is_free(port)).await;
    until("its handler", || desk.dropped() == [1]).await;
    until("its link", || {
        crate::kit::peer_state(&c, &rid) != Some(zlink_runtime::PeerState::Ready)
    })
    .await;
}
