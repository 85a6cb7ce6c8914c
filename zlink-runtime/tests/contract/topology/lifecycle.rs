//! Chapter 01, sections 4, 7 and 10: weights, drains, starts and stops.

use std::time::Duration;

use zlink_generated::contract::{ORDERS, STOCK, desk_client, orders_client, orders_server, stock_client, stock_server};
use zlink_generated::zlink_wire::{Hello, RecordKind, Topology};
use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::id::Rid;
use zlink_runtime::{Host, HostPhase, PeerState, TopologyPhase};

use super::targets;
use crate::kit::{
    ANY, Desk, Raw, SHOP, Stopwatch, client, connections, endpoint, failure, free_port, hello_of, is_free, linked,
    node, note, peer_state, port_of, rid_of, server, settle, soon, spawn, until, who, who_at,
};

/// REQ: NET-706, CH-304, NET-409
#[tokio::test]
async fn a_draining_server_finishes_what_it_accepted_and_gets_nothing_new() {
    for client_server in [false, true] {
        let desks = [Desk::new("going"), Desk::new("staying")];
        let mut hosts = Vec::new();
        for (desk, rid) in desks.iter().zip(["a", "b"]) {
            let server = orders_server(desk.clone());
            let builder = if client_server {
                Host::builder().client_server(|c| c.serve(server).listen(ANY))
            } else {
                node(rid, |mesh| mesh.serve(server))
            };
            hosts.push(builder.start().await.unwrap());
        }
        let kind = zlink_runtime::ListenerKind::ClientServer;
        let to = |host: &Host| match host.listener(kind, "orders") {
            Ok(info) => info.endpoint.to_string(),
            Err(_) => endpoint(host),
        };
        let (a, b) = (to(&hosts[0]), to(&hosts[1]));
        let c = if client_server {
            Host::builder().client_server(|c| c.client(ORDERS).connect(a).connect(b))
        } else {
            node("c", |mesh| mesh.client(ORDERS).connect(a).connect(b))
        };
        let c = c.start().await.unwrap();
        let status = || match c.client_server("orders") {
            Ok(control) => control.status(),
            Err(_) => c.mesh("shop").unwrap().status(),
        };
        until("both servers", || status().channels[0].1.len() == 2).await;
        let held: Vec<_> = (0..2)
            .map(|number| spawn(orders_client(&c).ask(note("hold", number))))
            .collect();
        desks[0].reached(1).await;
        desks[1].reached(1).await;
        desks[1].gate().open();
        let going = hosts.remove(0);
        let stop = spawn(async move { going.shutdown().await });
        until("the drain to be seen", || status().channels[0].1.len() == 1).await;
        assert!(status().peers.iter().any(|peer| peer.state == PeerState::Draining));
        for number in 100..150 {
            assert_eq!(orders_client(&c).ask(note("", number)).await.unwrap().text, "staying");
        }
        assert_eq!(desks[0].runs(), 1, "it gets nothing new");
        desks[0].gate().open();
        let mut replies = Vec::new();
        for reply in held {
            replies.push(soon("an accepted request", reply).await.unwrap().unwrap().text);
        }
        replies.sort();
        assert_eq!(replies, ["going", "staying"]);
        soon("the stop", stop).await.unwrap().unwrap();
    }
}

/// A client that has not heard of the drain yet still sends: it gets a finite refusal.
///
/// REQ: NET-706, CH-205, ERR-205, ERR-601, ERR-603
#[tokio::test]
async fn a_call_that_races_with_the_drain_is_refused_by_the_server() {
    for (topology, kind) in [
        (Topology::RouteMesh, ErrorKind::ShuttingDown),
        (Topology::ClientServer, ErrorKind::Rejected),
    ] {
        let desk = Desk::new("s");
        let server = orders_server(desk.clone());
        let s = if topology == Topology::ClientServer {
            Host::builder().client_server(|c| c.serve(server).listen(ANY))
        } else {
            node("s", |mesh| mesh.serve(server))
        };
        let s = s.start().await.unwrap();
        let to = match s.listener(zlink_runtime::ListenerKind::ClientServer, "orders") {
            Ok(info) => info.endpoint.to_string(),
            Err(_) => endpoint(&s),
        };
        let hello = Hello {
            topology,
            scope: if topology == Topology::ClientServer {
                "orders".into()
            } else {
                "shop".into()
            },
            ..hello_of("raw")
        };
        let raw = Raw::join(&to, &hello).await;
        raw.ask(1, "orders", "contract.orders.ask", &note("hold", 1));
        desk.reached(1).await;
        let stopping = s.clone();
        let stop = spawn(async move { stopping.shutdown().await });
        raw.heard(RecordKind::Update).await;
        raw.ask(2, "orders", "contract.orders.ask", &note("", 2));
        let refused = raw.reply().await;
        assert_eq!(
            (refused.correlation, refused.failed),
            (2, Some((kind, Execution::NotExecuted)))
        );
        desk.gate().open();
        let reply = raw.reply().await;
        assert_eq!((reply.correlation, reply.failed), (1, None));
        soon("the stop", stop).await.unwrap().unwrap();
        assert_eq!(desk.numbers(), [1]);
    }
}

/// REQ: NET-911, NET-912, NET-1004
#[tokio::test]
async fn an_orderly_stop_is_seen_at_once_and_does_no_harm_to_others() {
    let (one, two) = (Desk::new("one"), Desk::new("two"));
    let (a, b) = (server("a", 100, &one).await, server("b", 100, &two).await);
    let c = client("c", &[&a, &b]).await;
    let (rid, watch) = (rid_of(&a), Stopwatch::start());
    a.shutdown().await.unwrap();
    until("its end", || {
        peer_state(&c, &rid) != Some(PeerState::Ready) && targets(&c).len() == 1
    })
    .await;
    assert!(!watch.is_past(Duration::from_secs(5)));
    for _ in 0..4 {
        assert_eq!(who(&c).await, "two");
    }
    assert!(c.status().is_ready(), "a lost peer is no error of the host");
    assert_eq!(
        c.mesh("shop").unwrap().status().phase,
        TopologyPhase::Degraded,
        "its intent is still there"
    );
    assert_eq!(a.status().phase, HostPhase::Stopped);
    assert_eq!(a.mesh("shop").unwrap().status().phase, TopologyPhase::Stopped);
}

/// REQ: NET-1002, NET-1004
#[tokio::test]
async fn hosts_that_need_each_other_both_start() {
    let ports = [free_port(), free_port()];
    let at = |port| format!("tcp://127.0.0.1:{port}");
    let desk = Desk::new("late");
    let early = Host::builder().mesh("shop", |mesh| {
        mesh.listen(at(ports[0])).rid("e").client(ORDERS).connect(at(ports[1]))
    });
    let early = soon("the start", early.start()).await.unwrap();
    assert!(early.status().is_ready());
    assert_eq!(early.mesh("shop").unwrap().status().phase, TopologyPhase::Degraded);
    let late = Host::builder().mesh("shop", |mesh| {
        mesh.listen(at(ports[1]))
            .rid("l")
            .serve(orders_server(desk.clone()))
            .connect(at(ports[0]))
    });
    let late = late.start().await.unwrap();
    linked(&early, &rid_of(&late)).await;
    until("no lack", || {
        early.mesh("shop").unwrap().status().phase == TopologyPhase::Ready
    })
    .await;
    assert_eq!(who(&early).await, "late");
}

/// REQ: NET-405, NET-406, CH-206, NET-108
#[tokio::test]
async fn a_weight_changes_at_run_time_and_nothing_else_with_it() {
    let (one, two) = (Desk::new("one"), Desk::new("two"));
    let (a, b) = (server("a", 100, &one).await, server("b", 100, &two).await);
    let c = client("c", &[&a, &b]).await;
    let mesh = a.mesh("shop").unwrap();
    assert!(mesh.set_weight(ORDERS, 10_001).is_err());
    assert!(mesh.set_weight(STOCK, 1).is_err(), "it does not serve that channel");
    let held = spawn(orders_client(&c).ask(note("hold", 1)));
    until("the call", || one.runs() + two.runs() == 1).await;
    mesh.set_weight(ORDERS, 0).unwrap();
    until("its leave", || targets(&c) == [100]).await;
    for _ in 0..10 {
        assert_eq!(who(&c).await, "two");
    }
    assert_eq!(peer_state(&c, &rid_of(&a)), Some(PeerState::Ready), "the link stays");
    assert_eq!(
        who_at(&c, &rid_of(&a)).await.unwrap(),
        "one",
        "Node direct does not look at weights"
    );
    one.gate().open();
    two.gate().open();
    held.await.unwrap().unwrap();
    mesh.set_weight(ORDERS, 10_000).unwrap();
    until("its return", || targets(&c).len() == 2).await;
    let mut answers = Vec::new();
    for _ in 0..20 {
        answers.push(who(&c).await);
    }
    assert!(
        answers.iter().filter(|name| *name == "one").count() >= 19,
        "{answers:?}"
    );
    assert_eq!(connections(&a), 2, "no link was built anew");
}

/// REQ: NET-1007, NET-1004, EX-104, EX-105, CH-1002
#[tokio::test]
async fn a_stop_has_one_order_and_nothing_runs_after_it() {
    let desk = Desk::new("s");
    let other = Desk::new("other");
    let o = node("o", |mesh| mesh.serve(stock_server(other.clone())))
        .start()
        .await
        .unwrap();
    let s = node("s", |mesh| {
        mesh.serve(orders_server(desk.clone()))
            .client(STOCK)
            .connect(endpoint(&o))
    });
    let s = s.start().await.unwrap();
    linked(&s, &rid_of(&o)).await;
    let c = client("c", &[&s]).await;
    let held = spawn(orders_client(&c).ask(note("hold", 1)));
    let chained = spawn(orders_client(&c).ask(note("relay", 2)));
    desk.reached(2).await;
    soon("the chained call", chained).await.unwrap().unwrap();
    let port = s.mesh("shop").unwrap().endpoint().port().unwrap();
    let stopping = [s.clone(), s.clone()].map(|host| spawn(async move { host.shutdown().await }));
    until("draining", || s.status().phase == HostPhase::Draining).await;
    assert_eq!(s.mesh("shop").unwrap().status().phase, TopologyPhase::Stopping);
    let refused = (ErrorKind::ShuttingDown, Execution::NotExecuted);
    assert_eq!(
        failure(stock_client(&s).ask(note("", 3)).await),
        refused,
        "new work is refused first"
    );
    assert_eq!(failure(stock_client(&s).tell(note("", 3)).await), refused);
    assert!(!held.is_finished(), "what was accepted goes on");
    desk.gate().open();
    assert_eq!(soon("the held call", held).await.unwrap().unwrap().text, "s");
    for stop in stopping {
        soon("the stop", stop).await.unwrap().unwrap();
    }
    assert_eq!(s.status().phase, HostPhase::Stopped);
    assert_eq!(s.status().jobs.in_use(), 0);
    assert_eq!(s.status().waiting_requests, 0);
    assert!(is_free(port));
    assert_eq!(failure(stock_client(&s).ask(note("", 4)).await), refused);
    s.shutdown().await.unwrap();
    settle().await;
    assert_eq!(desk.runs(), 2);
    assert_eq!(other.runs(), 1);
}

/// Whoever asked for the stop may lose interest, and let go of the host as well: it still ends in order.
///
/// REQ: NET-1007, EX-104
#[tokio::test]
async fn a_stop_that_has_begun_needs_nobody_to_wait_for_it() {
    for keeps_the_host in [true, false] {
        let desk = Desk::new("s");
        let s = server("s", 100, &desk).await;
        let c = client("c", &[&s]).await;
        let held = spawn(orders_client(&c).ask(note("hold", 1)));
        desk.reached(1).await;
        let port = port_of(&s);
        let kept = keeps_the_host.then(|| s.clone());
        let mut stop = Box::pin(async move { s.shutdown().await });
        let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(stop.as_mut().poll(cx).is_pending()));
        assert!(polled.await);
        drop(stop);
        until("the drain to be seen", || targets(&c).is_empty()).await;
        assert!(!held.is_finished());
        desk.gate().open();
        assert_eq!(soon("the accepted call", held).await.unwrap().unwrap().text, "s");
        until("the port to be free", || is_free(port)).await;
        if let Some(host) = kept {
            soon("the same end", host.shutdown()).await.unwrap();
            assert_eq!(host.status().phase, HostPhase::Stopped);
        }
    }
}

/// A host whose last handle goes without a stop ends at once, and leaves no task, no socket and no waiting caller.
///
/// REQ: NET-1003, NET-911, ERR-209
#[tokio::test]
async fn a_host_that_is_dropped_leaves_nothing_behind() {
    let desk = Desk::new("s");
    let other = server("o", 100, &Desk::new("o")).await;
    let c = client("c", &[&other]).await;
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = alive();
    let s = server("s", 100, &desk).await;
    s.mesh("shop").unwrap().connect(&endpoint(&c), None).unwrap();
    linked(&c, &rid_of(&s)).await;
    let into = spawn(desk_client(&c, &SHOP, rid_of(&s)).ask(note("never", 1)));
    desk.reached(1).await;
    let silent = Raw::join(&endpoint(&s), &hello_of("silent")).await;
    linked(&s, &Rid::new("silent").unwrap()).await;
    let out = spawn(desk_client(&s, &SHOP, Rid::new("silent").unwrap()).ask(note("", 2)));
    silent.heard(RecordKind::NodeRequest).await;
    let port = port_of(&s);
    drop(s);
    let (kind, execution) = failure(soon("the caller outside", into).await.unwrap());
    assert_eq!(execution, Execution::Unknown);
    assert!(
        matches!(kind, ErrorKind::ShuttingDown | ErrorKind::Unavailable),
        "{kind}: told by the host, or by its absence"
    );
    assert_eq!(
        failure(soon("its own caller", out).await.unwrap()),
        (ErrorKind::ShuttingDown, Execution::Unknown)
    );
    silent.ended().await;
    drop(silent);
    until("the port to be free", || is_free(port)).await;
    until("the handler to be gone", || desk.dropped() == [1]).await;
    until("its tasks to be gone", || alive() <= before).await;
}
