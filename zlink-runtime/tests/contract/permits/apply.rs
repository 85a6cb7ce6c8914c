//! Section 10, at its edge: a receive flow that cannot be told, or is told for ever; and what is received meanwhile.

use std::time::{Duration, Instant};

use zlink_generated::contract::{ORDERS, orders_client, orders_server};
use zlink_runtime::Host;

use super::watching::{Telling, Watching};
use crate::kit::{
    Craft, Desk, Events, Way, at_rest, endpoint, linked, node, note, raw_client, rid_of, settle, soon, spawn, until,
};

/// A host that pauses at two jobs of four, over a watched transport.
async fn watched(desk: &Desk, transport: &Watching) -> Host {
    let host = node("s", |mesh| mesh.serve(orders_server(desk.clone()).dispatch_limit(1)));
    let host = host.max_queued_jobs(4).pressure(50, 25).transport(transport.clone());
    host.drain_timeout(Duration::from_millis(500)).start().await.unwrap()
}

/// What a link that lives could not be told is counted and reported; what it was not told because it closes is neither.
/// Nothing else comes of it.
///
/// REQ: PM-88, PM-86
#[tokio::test]
async fn a_flow_that_cannot_be_told_is_reported() {
    let (desk, transport, events) = (Desk::new("s"), Watching::default(), Events::collect());
    let s = watched(&desk, &transport).await;
    let raw = raw_client(Way::Mesh, "raw", &s).await;
    let reported = || events.count(&["zlink.runtime.host.receive_flow_failed"]);
    let mut number = 0;
    let mut say = |text: &str| {
        number += 1;
        let call = Craft::send("orders", "contract.orders.tell").message(&note(text, number));
        raw.say(&call.record());
    };
    let jobs = || s.status().jobs;
    for (telling, failures) in [
        (Telling::Fails, 1),
        (Telling::Closes, 1),
        (Telling::Works, 1),
        (Telling::Fails, 2),
    ] {
        transport.tell(telling);
        let (told, runs) = (transport.told().len(), desk.runs());
        say("hold");
        desk.reached(runs + 1).await;
        say("");
        say("");
        until("the pause to be told", || transport.told().len() == told + 1).await;
        assert!(jobs().paused);
        assert_eq!(
            (jobs().failed_applies, reported()),
            (failures, failures as usize),
            "{telling:?}"
        );
        if telling != Telling::Works {
            settle().await;
            assert!(!raw.link().held().by_peer);
        }
        transport.tell(Telling::Works);
        desk.gate().release(1);
        desk.reached(runs + 3).await;
        until("the end of the pause to be told", || transport.told().len() == told + 2).await;
        assert!(!jobs().paused);
    }
    let versions: Vec<u64> = transport.told().iter().map(|flow| flow.version).collect();
    assert_eq!(versions, [1, 2, 3, 4, 5, 6, 7, 8], "each change once, and in order");
    at_rest(&[&s]).await;
}

/// Lets everything go on that hangs, however the test ends.
struct Back(Watching);

impl Drop for Back {
    fn drop(&mut self) {
        self.0.tell(Telling::Works);
    }
}

/// REQ: PM-89, OB-23
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_stop_waits_for_no_flow_that_hangs() {
    let (desk, transport) = (Desk::new("s"), Watching::default());
    let s = watched(&desk, &transport).await;
    let c = node("c", |mesh| mesh.client(ORDERS).connect(endpoint(&s)))
        .start()
        .await
        .unwrap();
    linked(&c, &rid_of(&s)).await;
    soon("the first", orders_client(&c).tell(note("hold", 0)))
        .await
        .unwrap();
    desk.reached(1).await;
    transport.tell(Telling::Hangs);
    // Should the test fail, its runtime must not wait for ever for the thread that hangs.
    let _back = Back(transport.clone());
    for number in 1..3 {
        soon("another", orders_client(&c).tell(note("", number))).await.unwrap();
    }
    until("a link to hang", || transport.hanging() == 1).await;
    let begin = Instant::now();
    let end = soon("the stop", s.shutdown()).await;
    assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
    assert_eq!(
        end.unwrap_err().unfinished_jobs(),
        3,
        "what had been taken is ended by force"
    );
    let jobs = s.status().jobs;
    assert!(jobs.paused_total > Duration::from_millis(400), "{jobs:?}");
    assert_eq!(transport.hanging(), 1, "it hangs still");
    transport.tell(Telling::Works);
    until("it to come back", || transport.hanging() == 0).await;
}

/// A handler that keeps its thread: what comes is received all the same, and waits for its turn.
///
/// REQ: PM-75, PM-73
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn what_is_received_runs_no_handler() {
    let desk = Desk::new("s");
    let blocked = super::Blocking::default();
    let s = node("s", |mesh| {
        mesh.serve(orders_server(blocked.clone()).dispatch_limit(1))
            .serve_node(desk.node())
    });
    let s = s
        .max_queued_jobs(40)
        .pressure(100, 99)
        .workers(2)
        .start()
        .await
        .unwrap();
    let raw = raw_client(Way::Mesh, "raw", &s).await;
    for number in 0..21 {
        let call = Craft::send("orders", "contract.orders.tell").message(&note("", number));
        raw.say(&call.record());
    }
    until("the rest to be received while one runs", || {
        s.status().jobs.queued == 20
    })
    .await;
    assert_eq!(blocked.runs(), 1);
    // Other objects of the same peer go on.
    let call = Craft::request(7, "", "contract.orders.ask").message(&note("", 99));
    raw.say(&call.record());
    assert_eq!(crate::kit::answer(&raw).await.correlation, 7);
    assert_eq!((blocked.runs(), s.status().jobs.queued), (1, 20));
    blocked.open();
    until("all to have run", || blocked.runs() == 21).await;
    at_rest(&[&s]).await;
}

/// What cannot be decoded takes its place in the queue like anything else, and fails in its turn: admission looks at no
/// payload.
///
/// REQ: PM-55, PM-76
#[tokio::test]
async fn a_payload_is_not_looked_at_before_its_turn() {
    let desk = Desk::new("s");
    let s = node("s", |mesh| mesh.serve(orders_server(desk.clone()).dispatch_limit(1)));
    let s = s.max_queued_jobs(8).start().await.unwrap();
    let raw = raw_client(Way::Mesh, "raw", &s).await;
    let tell = || Craft::send("orders", "contract.orders.tell");
    raw.say(&tell().message(&note("hold", 0)).record());
    desk.reached(1).await;
    raw.say(&tell().bytes(&[1, 2, 3]).record());
    raw.say(
        &Craft::request(7, "orders", "contract.orders.ask")
            .bytes(&[1, 2, 3])
            .record(),
    );
    raw.say(&tell().message(&note("", 1)).record());
    until("three that wait", || s.status().jobs.queued == 3).await;
    settle().await;
    let drops = || s.mesh("shop").unwrap().status().channel_drops.decode_error;
    assert_eq!(drops(), 0);
    desk.gate().open();
    let failed = crate::kit::answer(&raw).await;
    assert_eq!((failed.correlation, failed.failed.is_some()), (7, true));
    desk.reached(2).await;
    assert_eq!((drops(), desk.numbers()), (1, vec![0, 1]));
    at_rest(&[&s]).await;
}

/// Two hosts, each with more for the other than it can hold: each pauses the other, and both go on by themselves.
///
/// REQ: PM-90, PM-91, PM-60
#[tokio::test]
async fn two_hosts_that_pause_each_other_resume() {
    let (one, two) = (Desk::new("a"), Desk::new("b"));
    let server = |desk: &Desk| orders_server(desk.clone()).dispatch_limit(1);
    let stock = zlink_generated::contract::stock_server(two.clone()).dispatch_limit(1);
    let a = node("a", |mesh| {
        mesh.serve(server(&one)).client(zlink_generated::contract::STOCK)
    });
    let a = a.max_queued_jobs(2).start().await.unwrap();
    let b = node("b", |mesh| mesh.serve(stock).client(ORDERS).connect(endpoint(&a)));
    let b = b.max_queued_jobs(2).start().await.unwrap();
    linked(&a, &rid_of(&b)).await;
    linked(&b, &rid_of(&a)).await;
    let flood = |number| (spawn(orders_client(&b).tell(note("hold", number))), number);
    let to_a: Vec<_> = (0..20).map(flood).collect();
    let to_b: Vec<_> = (0..20)
        .map(|number| spawn(zlink_generated::contract::stock_client(&a).tell(note("hold", number))))
        .collect();
    let paused = |host: &Host| host.mesh("shop").unwrap().status().peers[0].paused;
    until("both to be paused", || paused(&a) && paused(&b)).await;
    one.gate().open();
    two.gate().open();
    for (send, _) in to_a {
        soon("a send to a", send).await.unwrap().unwrap();
    }
    for send in to_b {
        soon("a send to b", send).await.unwrap().unwrap();
    }
    one.reached(20).await;
    two.reached(20).await;
    assert!(one.numbers().into_iter().eq(0..20) && two.numbers().into_iter().eq(0..20));
    at_rest(&[&a, &b]).await;
    until("neither to be paused", || !paused(&a) && !paused(&b)).await;
}
