//! Sections 1 to 4: one limit, one counter, and the moments at which it moves. Long, because each moment needs a
//! scene of its own.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use zlink_generated::contract::{
    Brief, DeskHandler, Note, ORDERS, OrdersHandler, STOCK, desk_client, desk_server, orders_client, orders_server,
    stock_client, stock_server,
};
use zlink_generated::zlink_wire::{ChannelServer, Hello, RecordKind};
use zlink_runtime::id::ChannelName;
use zlink_runtime::prelude::*;
use zlink_runtime::transport::Lane;
use zlink_runtime::{JobProfile, JobQueueStatus};

use super::narrow;
use crate::kit::{
    ANY, Craft, Desk, Events, Gate, Raw, SHOP, WAYS, Way, answer, at_rest, calling, encoded, endpoint, heavy, hello_of,
    linked, node, note, on_cpu, raw_client, reply_to, rid_of, serving, settle, soon, spawn, until,
};

fn told(number: u64) -> Vec<u8> {
    Craft::send("orders", "contract.orders.tell")
        .message(&note("hold", number))
        .record()
}

/// REQ: PM-13, PM-14, PM-80
#[tokio::test]
async fn a_limit_and_its_thresholds_are_what_status_shows() {
    let start = async |jobs: Option<u32>, pressure: Option<(u8, u8)>| -> JobQueueStatus {
        let host = node("s", |mesh| mesh);
        let host = match jobs {
            Some(jobs) => host.max_queued_jobs(jobs),
            None => host,
        };
        let host = match pressure {
            Some((pause, resume)) => host.pressure(pause, resume),
            None => host,
        };
        host.start().await.unwrap().status().jobs
    };
    for (jobs, pressure, pause, resume) in [
        (1, None, 1, 0),
        (3, None, 3, 1),
        (7, None, 6, 4),
        (10, None, 8, 6),
        (101, None, 81, 60),
        (4_096, None, 3_277, 2_457),
        (10, Some((100, 99)), 10, 9),
        (10, Some((1, 0)), 1, 0),
    ] {
        let status = start(Some(jobs), pressure).await;
        assert_eq!(
            (status.limit, status.pause_count, status.resume_count),
            (jobs, pause, resume)
        );
        assert!(!status.paused && status.in_use() == 0 && status.transitions == 0);
    }
    assert_eq!(start(None, None).await.limit, 4_096);
    for (profile, jobs) in [
        (JobProfile::Compact, 1_024),
        (JobProfile::LowLatency, 2_048),
        (JobProfile::Balanced, 4_096),
        (JobProfile::Throughput, 16_384),
    ] {
        let host = node("s", |mesh| mesh).job_profile(profile).start().await.unwrap();
        assert_eq!(host.status().jobs.limit, jobs);
    }
}

/// A job counts from before it is received until it starts, and counts once, however large it is.
///
/// REQ: PM-20, PM-24, MSG-506, PM-03
#[tokio::test]
async fn the_count_moves_with_grants_and_returns_only() {
    for way in WAYS {
        let desk = Desk::new("s");
        let s = narrow(way, &desk, 8).await;
        let c = calling(way, "c", &s, |host| host).await;
        let queued = || {
            let jobs = s.status().jobs;
            assert!(jobs.in_use() <= 8);
            (jobs.reserved, jobs.queued)
        };
        let ask = |number| spawn(orders_client(&c).ask(note("hold", number)));
        let mut calls = vec![ask(0)];
        desk.reached(1).await;
        assert_eq!(
            queued(),
            (0, 0),
            "what has started counts no more, however long it takes"
        );
        orders_client(&c).tell(note("", 1)).await.unwrap();
        until("an empty one", || queued() == (0, 1)).await;
        let large = orders_client(&c).tell(Note {
            text: "hold".into(),
            ..heavy(2, 1 << 20)
        });
        soon("a large one", large).await.unwrap();
        until("a large one", || queued() == (0, 2)).await;
        calls.push(ask(3));
        until("a request", || queued() == (0, 3)).await;
        settle().await;
        assert_eq!(queued(), (0, 3), "waiting changes nothing");
        desk.gate().release(1);
        desk.reached(3).await;
        until("the empty one ran, and the large one started", || queued() == (0, 1)).await;
        desk.gate().release(1);
        desk.reached(4).await;
        assert_eq!(queued(), (0, 0));
        assert_eq!(desk.ended(), [0, 1, 2]);
        desk.gate().open();
        for call in calls {
            soon("a reply", call).await.unwrap().unwrap();
        }
        at_rest(&[&s, &c]).await;
    }
}

/// A handler that reads its host's status in its first line, and then waits.
#[derive(Clone)]
struct Counting {
    host: Arc<OnceLock<Host>>,
    counts: Arc<Mutex<Vec<u32>>>,
    desk: Desk,
}

impl Counting {
    async fn run(&self) -> Result<(), HandlerError> {
        self.counts.lock().push(self.host.get().unwrap().status().jobs.in_use());
        let gate: &Gate = self.desk.gate();
        gate.pass().await;
        Ok(())
    }
}

impl OrdersHandler for Counting {
    async fn ask(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        self.run().await.map(|()| request)
    }

    async fn hurry(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        self.run().await.map(|()| request)
    }

    async fn brief(&self, _: &ChannelContext<'_>, request: Brief) -> Result<Brief, HandlerError> {
        self.run().await.map(|()| request)
    }

    async fn tell(&self, _: &ChannelContext<'_>, _: Note) -> Result<(), HandlerError> {
        self.run().await
    }
}

impl DeskHandler for Counting {
    async fn ask(&self, _: &NodeContext<'_>, request: Note) -> Result<Note, HandlerError> {
        self.run().await.map(|()| request)
    }

    async fn tell(&self, _: &NodeContext<'_>, _: Note) -> Result<(), HandlerError> {
        self.run().await
    }
}

/// REQ: PM-25
#[tokio::test]
async fn a_handler_counts_no_more_in_its_first_line() {
    let handler = Counting {
        host: Arc::default(),
        counts: Arc::default(),
        desk: Desk::new("s"),
    };
    let s = node("s", |mesh| {
        mesh.serve(orders_server(handler.clone()).dispatch_limit(1))
            .serve_node(desk_server(handler.clone()))
    });
    let s = s.max_queued_jobs(8).start().await.unwrap();
    handler.host.set(s.clone()).unwrap();
    let raw = raw_client(Way::Mesh, "raw", &s).await;
    let counts = || handler.counts.lock().clone();
    raw.say(&told(0));
    until("the first", || counts() == [0]).await;
    for number in 1..4 {
        let call = Craft::request(number, "orders", "contract.orders.ask").message(&note("", number));
        raw.say(&call.record());
    }
    until("three that wait", || s.status().jobs.queued == 3).await;
    for started in 2..=4 {
        handler.desk.gate().release(1);
        until("one more", || counts().len() == started).await;
    }
    assert_eq!(counts(), [0, 2, 1, 0]);
    for channel in ["", "orders"] {
        handler.desk.gate().open();
        raw.say(
            &Craft::request(9, channel, "contract.orders.ask")
                .message(&note("", 9))
                .record(),
        );
        while answer(&raw).await.correlation != 9 {}
        assert_eq!(counts().last(), Some(&0), "{channel:?}");
    }
    at_rest(&[&s]).await;
}

/// The only permit is taken, and still a started handler goes on.
///
/// REQ: PM-26, PM-40
#[tokio::test]
async fn a_started_handler_needs_no_permit_to_go_on() {
    let desk = Desk::new("s");
    let s = node("s", |mesh| {
        mesh.serve(orders_server(desk.clone()).dispatch_limit(2)).client(STOCK)
    });
    let s = s.max_queued_jobs(1).start().await.unwrap();
    let channels = vec![ChannelServer {
        name: "stock".into(),
        weight: 100,
    }];
    let behind = Raw::join(
        &endpoint(&s),
        &Hello {
            channels,
            ..hello_of("behind")
        },
    )
    .await;
    linked(&s, &Rid::new("behind").unwrap()).await;
    let c = calling(Way::Mesh, "c", &s, |host| host).await;
    // One that awaits a request of its own: the next one starts beside it, and a third takes the permit.
    let relay = spawn(orders_client(&c).ask(note("relay", 1)));
    let request = behind.heard(RecordKind::ChannelRequest).await;
    let held = spawn(orders_client(&c).ask(note("hold", 2)));
    desk.reached(2).await;
    let next = spawn(orders_client(&c).ask(note("", 3)));
    until("the only permit to be in use", || s.status().jobs.queued == 1).await;
    let reply = reply_to(&request, [0; 4], &encoded(&note("behind", 1)));
    behind.say_on(Lane::Completion, &reply).unwrap();
    assert_eq!(soon("the first reply", relay).await.unwrap().unwrap().text, "behind");
    soon("the next one", next).await.unwrap().unwrap();
    assert!(!held.is_finished());
    desk.gate().open();
    soon("the held one", held).await.unwrap().unwrap();
    at_rest(&[&s, &c]).await;
}

/// REQ: PM-30, PM-36, PM-27
#[tokio::test]
async fn without_a_permit_nothing_more_is_received() {
    for way in WAYS {
        let desk = Desk::new("s");
        let s = narrow(way, &desk, 3).await;
        let raw = raw_client(way, "raw", &s).await;
        let events = Events::collect();
        let received = || events.count(&["zlink::flow", "phase=received"]);
        for number in 0..10 {
            raw.say(&told(number));
        }
        desk.reached(1).await;
        until("three that wait", || s.status().jobs.in_use() == 3).await;
        let (before, begin) = (on_cpu(), std::time::Instant::now());
        until("a while", || begin.elapsed() > std::time::Duration::from_millis(200)).await;
        let busy = on_cpu() - before;
        assert!(busy < 100_000_000, "it waits, it does not try: {busy} ns of 200 ms");
        assert_eq!(received(), 4, "one that started, and three");
        for started in 2..5 {
            desk.gate().release(1);
            desk.reached(started).await;
            until("one more", || received() == 3 + started).await;
            settle().await;
            assert_eq!((received(), s.status().jobs.in_use()), (3 + started, 3));
        }
        // The source goes while it waits for a permit: nothing of it stays behind.
        raw.leave();
        settle().await;
        desk.gate().open();
        at_rest(&[&s]).await;
        let numbers = desk.numbers();
        assert!(
            numbers.iter().copied().eq(0..numbers.len() as u64),
            "once, and in order: {numbers:?}"
        );
        let c = calling(way, "c", &s, |host| host).await;
        soon("the next", orders_client(&c).ask(note("", 0))).await.unwrap();
    }
}

/// REQ: PM-36, PM-27
#[tokio::test]
async fn a_stop_ends_every_wait_for_a_permit() {
    for way in WAYS {
        let desk = Desk::new("s");
        let orders = orders_server(desk.clone()).dispatch_limit(1);
        let drain = std::time::Duration::from_millis(150);
        let s = serving(way, orders, |host| host.max_queued_jobs(2).drain_timeout(drain)).await;
        let raw = raw_client(way, "raw", &s).await;
        for number in 0..10 {
            raw.say(&told(number));
        }
        desk.reached(1).await;
        until("two that wait", || s.status().jobs.in_use() == 2).await;
        let _ = soon("the stop", s.shutdown()).await;
        assert_eq!(s.status().jobs.in_use(), 0);
        desk.gate().open();
        settle().await;
        assert_eq!(desk.numbers(), [0], "what had not started does not start any more");
    }
}

/// REQ: PM-12, PM-30, PM-85
#[tokio::test]
async fn one_limit_for_two_meshes_and_a_channel() {
    let desk = Desk::new("s");
    let counter = ChannelName::from_static("counter");
    let one = || orders_server(desk.clone()).dispatch_limit(1);
    let s = node("s", |mesh| mesh.serve(one()))
        .mesh("depot", |mesh| {
            mesh.listen(ANY)
                .rid("s")
                .serve(stock_server(desk.clone()).dispatch_limit(1))
        })
        .client_server(|channel| channel.serve(one().on(counter.clone())).listen(ANY));
    let s = s.max_queued_jobs(10).pressure(100, 99).start().await.unwrap();
    let kind = zlink_runtime::ListenerKind::ClientServer;
    let to_counter = s.listener(kind, "counter").unwrap().endpoint.to_string();
    let to_depot = s.mesh("depot").unwrap().endpoint().to_string();
    let c = node("c", |mesh| mesh.client(ORDERS).connect(endpoint(&s)))
        .mesh("depot", |mesh| {
            mesh.listen(ANY).rid("c").client(STOCK).connect(to_depot)
        })
        .client_server(|channel| channel.client(counter.clone()).connect(to_counter));
    let c = c.start().await.unwrap();
    linked(&c, &rid_of(&s)).await;
    until("the depot", || {
        !c.mesh("depot").unwrap().status().channels[0].1.is_empty()
    })
    .await;
    let events = Events::collect();
    let send = async |text: &str, number: u64| {
        orders_client(&c).tell(note(text, number)).await.unwrap();
        stock_client(&c).tell(note(text, number)).await.unwrap();
        orders_client(&c)
            .on(counter.clone())
            .tell(note(text, number))
            .await
            .unwrap();
    };
    soon("the first of each", send("hold", 0)).await;
    desk.reached(3).await;
    for number in 1..6 {
        soon("five more of each, at once", send("hold", number)).await;
    }
    until("the limit", || s.status().jobs.in_use() == 10).await;
    settle().await;
    assert_eq!(s.status().jobs.in_use(), 10);
    assert_eq!(
        events.count(&["zlink::flow", "phase=received"]),
        13,
        "the others are not received"
    );
    let paused = |peers: Vec<zlink_runtime::PeerStatus>| peers.iter().any(|peer| peer.paused);
    until("all three to be paused", || {
        paused(c.mesh("shop").unwrap().status().peers)
            && paused(c.mesh("depot").unwrap().status().peers)
            && paused(c.client_server("counter").unwrap().status().peers)
    })
    .await;
    desk.gate().open();
    desk.reached(18).await;
    for scope in ["orders", "stock"] {
        let of = |seen: &crate::kit::Seen| seen.scope == scope && seen.channel.as_ref() != Some(&counter);
        let numbers: Vec<_> = desk.seen().into_iter().filter(of).map(|seen| seen.number).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5], "{scope}");
    }
    at_rest(&[&s, &c]).await;
}

/// What a host sends itself is counted like what others send; and what it is told over its own ClientServer link is
/// counted where it arrives.
///
/// REQ: PM-31, PM-32, PM-12
#[tokio::test]
async fn calls_to_oneself_take_permits() {
    let desk = Desk::new("s");
    let s = node("s", |mesh| mesh.serve_node(desk.node()));
    let s = s.max_queued_jobs(4).pressure(50, 25).start().await.unwrap();
    let raw = raw_client(Way::Mesh, "raw", &s).await;
    let direct = desk_client(&s, &SHOP, rid_of(&s));
    for number in 0..zlink_runtime::limit::DISPATCH_LIMIT as u64 {
        soon("a call to oneself", direct.tell(note("hold", number)))
            .await
            .unwrap();
        desk.reached(number as usize + 1).await;
    }
    assert_eq!(s.status().jobs.in_use(), 0);
    let more: Vec<_> = (256..266)
        .map(|number| spawn(direct.tell(note("hold", number))))
        .collect();
    until("others to be paused", || raw.link().held().by_peer).await;
    assert!(s.status().jobs.paused);
    settle().await;
    assert_eq!(
        s.status().jobs.in_use(),
        2,
        "who asks others to hold back does so as well"
    );
    assert_eq!(
        more.iter().filter(|call| call.is_finished()).count(),
        2,
        "the others wait"
    );
    desk.gate().open();
    for call in more {
        soon("the end", call).await.unwrap().unwrap();
    }
    desk.reached(266).await;
    assert!(desk.numbers().into_iter().eq(0..266));
    until("others to go on", || !raw.link().held().by_peer).await;
    at_rest(&[&s]).await;

    let desk = Desk::new("own");
    let own = Host::builder().client_server(|channel| {
        channel
            .serve(orders_server(desk.clone()).dispatch_limit(1))
            .client(ORDERS)
    });
    let own = own.max_queued_jobs(4).pressure(50, 25).start().await.unwrap();
    soon("the first", orders_client(&own).tell(note("hold", 0)))
        .await
        .unwrap();
    desk.reached(1).await;
    let more: Vec<_> = (1..8)
        .map(|number| spawn(orders_client(&own).tell(note("hold", number))))
        .collect();
    until("its own client to be paused", || {
        own.client_server("orders")
            .unwrap()
            .status()
            .peers
            .iter()
            .any(|peer| peer.paused)
    })
    .await;
    assert!(own.status().jobs.queued >= 2);
    desk.gate().open();
    for call in more {
        soon("the end", call).await.unwrap().unwrap();
    }
    desk.reached(8).await;
    assert!(desk.numbers().into_iter().eq(0..8));
    at_rest(&[&own]).await;
}

/// REQ: PM-97
#[tokio::test]
async fn a_queue_refuses_nothing_for_its_length() {
    const SENDS: u64 = 20_000;
    let desk = Desk::new("s");
    let s = narrow(Way::Mesh, &desk, 100_000).await;
    let c = calling(Way::Mesh, "c", &s, |host| host).await;
    orders_client(&c).tell(note("hold", 0)).await.unwrap();
    for number in 1..SENDS {
        orders_client(&c).tell(note("", number)).await.unwrap();
    }
    until("all to wait", || u64::from(s.status().jobs.queued) == SENDS - 1).await;
    assert_eq!(desk.runs(), 1);
    desk.gate().open();
    desk.reached(SENDS as usize).await;
    assert!(desk.numbers().into_iter().eq(0..SENDS));
    at_rest(&[&s, &c]).await;
}
