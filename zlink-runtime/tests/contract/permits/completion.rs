//! Section 5: replies need no permit, and deadlines wait for none.

use std::time::Duration;

use zlink_generated::contract::{ORDERS, STOCK, orders_client, orders_server, stock_client, stock_server};
use zlink_generated::zlink_wire::RecordKind;
use zlink_runtime::error::ErrorKind;

use crate::kit::{
    ANY, Craft, Desk, Stopwatch, WAYS, Way, answer, at_rest, calling, endpoint, failure, hello_of, linked, node, note,
    raw_client, rid_of, serving, settle, soon, spawn, until,
};

/// Both hosts are full, and each owes the other a reply.
///
/// REQ: PM-41, PM-40
#[tokio::test]
async fn replies_pass_between_two_full_hosts() {
    let (one, two) = (Desk::new("a"), Desk::new("b"));
    let a = node("a", |mesh| {
        mesh.serve(orders_server(one.clone()).dispatch_limit(1)).client(STOCK)
    });
    let a = a.max_queued_jobs(2).start().await.unwrap();
    let b = node("b", |mesh| {
        mesh.serve(stock_server(two.clone()).dispatch_limit(1))
            .client(ORDERS)
            .connect(endpoint(&a))
    });
    let b = b.max_queued_jobs(2).start().await.unwrap();
    linked(&a, &rid_of(&b)).await;
    linked(&b, &rid_of(&a)).await;
    let to_a = spawn(orders_client(&b).ask(note("hold", 0)));
    let to_b = spawn(stock_client(&a).ask(note("hold", 0)));
    one.reached(1).await;
    two.reached(1).await;
    let mut sends = Vec::new();
    for number in 1..10 {
        sends.push(spawn(orders_client(&b).tell(note("hold", number))));
        sends.push(spawn(stock_client(&a).tell(note("hold", number))));
    }
    let full = || [&a, &b].iter().all(|host| host.status().jobs.in_use() == 2);
    until("both to be full", full).await;
    let paused = |host: &zlink_runtime::Host| host.mesh("shop").unwrap().status().peers[0].paused;
    until("both to be paused", || paused(&a) && paused(&b)).await;
    one.gate().release(1);
    assert_eq!(soon("a reply to b", to_a).await.unwrap().unwrap().text, "a");
    assert_eq!(b.status().jobs.in_use(), 2, "b is as full as before");
    two.gate().release(1);
    assert_eq!(soon("a reply to a", to_b).await.unwrap().unwrap().text, "b");
    one.gate().open();
    two.gate().open();
    for send in sends {
        soon("a send", send).await.unwrap().unwrap();
    }
    one.reached(10).await;
    two.reached(10).await;
    assert!(one.numbers().into_iter().eq(0..10) && two.numbers().into_iter().eq(0..10));
    at_rest(&[&a, &b]).await;
}

/// REQ: PM-45, PM-40
#[tokio::test]
async fn answers_leave_a_host_that_is_paused() {
    for way in WAYS {
        let desk = Desk::new("s");
        let orders = orders_server(desk.clone()).dispatch_limit(1);
        let s = serving(way, orders, |host| host.max_queued_jobs(2).pressure(50, 0)).await;
        let raw = raw_client(way, "raw", &s).await;
        raw.say(
            &Craft::request(7, "orders", "contract.orders.ask")
                .message(&note("hold", 0))
                .record(),
        );
        desk.reached(1).await;
        for number in 1..5 {
            raw.say(
                &Craft::send("orders", "contract.orders.tell")
                    .message(&note("hold", number))
                    .record(),
            );
        }
        until("the pause", || raw.link().held().by_peer).await;
        assert_eq!(raw.count(RecordKind::Reply), 0);
        desk.gate().release(1);
        let reply = answer(&raw).await;
        assert_eq!((reply.correlation, reply.failed), (7, None));
        assert!(s.status().jobs.paused && raw.link().held().by_peer, "still paused");
        desk.gate().open();
        at_rest(&[&s]).await;
        until("the end of the pause", || !raw.link().held().by_peer).await;
        assert!(desk.numbers().into_iter().eq(0..5));
    }
}

/// The host that calls is full: its replies still come, and its deadlines still hold.
///
/// REQ: PM-40, PM-62, MSG-207
#[tokio::test]
async fn a_full_host_gets_its_replies_and_keeps_its_deadlines() {
    for way in WAYS {
        let (desk, stock) = (Desk::new("far"), Desk::new("near"));
        let far = serving(way, orders_server(desk.clone()), |host| host).await;
        let kind = zlink_runtime::ListenerKind::ClientServer;
        let full = match way {
            Way::Mesh => node("full", |mesh| {
                let mesh = mesh.serve(stock_server(stock.clone()).dispatch_limit(1));
                mesh.client(ORDERS).connect(endpoint(&far))
            }),
            Way::ClientServer => {
                let to = far.listener(kind, "orders").unwrap().endpoint.to_string();
                let server = stock_server(stock.clone()).dispatch_limit(1);
                zlink_runtime::Host::builder()
                    .client_server(|channel| channel.serve(server).listen(ANY))
                    .client_server(|channel| channel.client(ORDERS).connect(to))
            }
        };
        let full = full.max_queued_jobs(1).start().await.unwrap();
        until("a server", || crate::kit::candidates(&full) == 1).await;
        let raw = match way {
            Way::Mesh => raw_client(way, "raw", &full).await,
            Way::ClientServer => {
                let to = full.listener(kind, "stock").unwrap().endpoint.to_string();
                let hello = zlink_generated::zlink_wire::Hello {
                    topology: zlink_generated::zlink_wire::Topology::ClientServer,
                    scope: "stock".into(),
                    ..hello_of("raw")
                };
                crate::kit::Raw::join(&to, &hello).await
            }
        };
        for number in 0..5 {
            let send = Craft::send("stock", "contract.orders.tell").message(&note("hold", number));
            raw.say(&send.record());
        }
        stock.reached(1).await;
        until("it to be full", || full.status().jobs.in_use() == 1).await;
        for number in 0..20 {
            soon("a reply", orders_client(&full).ask(note("", number)))
                .await
                .unwrap();
        }
        let watch = Stopwatch::start();
        let never = orders_client(&full)
            .ask(note("never", 20))
            .timeout(Duration::from_millis(100));
        assert_eq!(
            failure(soon("the deadline", never).await).0,
            ErrorKind::DeadlineExceeded
        );
        assert!(!watch.is_past(Duration::from_secs(1)), "it came late");
        assert_eq!(full.status().jobs.in_use(), 1, "all the while");
        stock.gate().open();
        stock.reached(5).await;
        at_rest(&[&full]).await;
    }
}

/// A request whose time is over before its turn comes is not run for nobody. What was not even received is another
/// matter: on the wire stands what is left of its time, and nobody counts while it is there.
///
/// REQ: PM-96, MSG-207, PM-20
#[tokio::test]
async fn a_request_that_waits_for_its_turn_ends_on_time() {
    for way in WAYS {
        let desk = Desk::new("s");
        let s = super::narrow(way, &desk, 2).await;
        let c = calling(way, "c", &s, |host| host).await;
        orders_client(&c).tell(note("hold", 0)).await.unwrap();
        desk.reached(1).await;
        let (begin, watch) = (tokio::time::Instant::now(), Stopwatch::start());
        let calls: Vec<_> = (1..10)
            .map(|number| {
                spawn(
                    orders_client(&c)
                        .ask(note("", number))
                        .timeout(Duration::from_millis(100)),
                )
            })
            .collect();
        for call in calls {
            assert_eq!(
                failure(soon("the deadline", call).await.unwrap()).0,
                ErrorKind::DeadlineExceeded
            );
        }
        let took = begin.elapsed();
        assert!(
            took >= Duration::from_millis(95) && !watch.is_past(Duration::from_secs(1)),
            "{took:?}"
        );
        desk.gate().open();
        at_rest(&[&s, &c]).await;
        settle().await;
        let numbers = desk.numbers();
        assert!(
            !numbers.contains(&1) && !numbers.contains(&2),
            "their callers had gone: {numbers:?}"
        );
        soon("the next", orders_client(&c).ask(note("", 10))).await.unwrap();
    }
}
