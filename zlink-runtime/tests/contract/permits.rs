//! Chapter 10, as far as channel and node handlers need it: counting, reception, pressure, sending.

use std::time::Duration;

use zlink_generated::contract::{ORDERS, STOCK, desk_client, orders_client, orders_server, stock_client, stock_server};
use zlink_generated::zlink_wire::{ChannelServer, Hello, ObjectRole, Topology};
use zlink_runtime::error::ErrorKind;
use zlink_runtime::id::Rid;
use zlink_runtime::{Host, HostBuilder, ListenerKind, PeerState};

use crate::kit::{
    ANY, Desk, Raw, SHOP, client, endpoint, failure, heavy, hello_of, linked, node, note, peer_state, rid_of, settle,
    soon, spawn, until, who,
};

/// A server of `orders` that runs one handler at a time.
fn narrow(desk: &Desk, jobs: u32) -> HostBuilder {
    let orders = orders_server(desk.clone()).dispatch_limit(1);
    node("s", |mesh| mesh.serve(orders).serve_node(desk.node())).max_queued_jobs(jobs)
}

/// Whether `host` is asked to hold requests back by anybody.
fn is_paused(host: &Host) -> bool {
    host.mesh("shop").unwrap().status().peers.iter().any(|peer| peer.paused)
}

/// REQ: PM-20, PM-24, PM-25, PM-80, MSG-506
#[tokio::test]
async fn a_permit_is_held_from_reception_to_the_start_of_the_handler() {
    let desk = Desk::new("s");
    let s = narrow(&desk, 10).start().await.unwrap();
    let c = client("c", &[&s]).await;
    let jobs = || s.status().jobs;
    assert_eq!((jobs().limit, jobs().pause_count, jobs().resume_count), (10, 8, 6));
    assert_eq!(jobs().in_use(), 0);
    orders_client(&c).tell(note("hold", 0)).await.unwrap();
    desk.reached(1).await;
    until("the return", || jobs().in_use() == 0).await;
    for number in 1..4 {
        let mut held = heavy(number, 1 << (number * 6));
        held.text = "hold".into();
        orders_client(&c).tell(held).await.unwrap();
        until("its permit", || jobs().queued == number as u32).await;
        assert_eq!(jobs().reserved, 0);
    }
    for left in (0..3).rev() {
        desk.gate().release(1);
        until("one start", || jobs().queued == left).await;
    }
    desk.gate().open();
    until("all ends", || desk.ended().len() == 4).await;
    assert_eq!(jobs().in_use(), 0);
}

/// REQ: PM-30, PM-91, MSG-103, ERR-501, PM-100
#[tokio::test]
async fn what_exceeds_the_permits_waits_in_order_and_nothing_is_lost() {
    let desk = Desk::new("s");
    let s = narrow(&desk, 4).start().await.unwrap();
    let (one, two) = (client("one", &[&s]).await, client("two", &[&s]).await);
    orders_client(&one).tell(note("hold", 0)).await.unwrap();
    desk.reached(1).await;
    let sources: Vec<_> = [(one.clone(), 1_000_u64), (two.clone(), 2_000)]
        .into_iter()
        .map(|(host, base)| {
            spawn(async move {
                for number in 0..40 {
                    orders_client(&host).tell(note("", base + number)).await.unwrap();
                }
            })
        })
        .collect();
    until("all permits", || s.status().jobs.in_use() == 4).await;
    settle().await;
    assert_eq!(s.status().jobs.in_use(), 4, "never more");
    assert_eq!(desk.runs(), 1, "what waits does not run");
    assert_eq!(peer_state(&one, &rid_of(&s)), Some(PeerState::Ready));
    desk.gate().open();
    for source in sources {
        soon("all sends", source).await.unwrap();
    }
    desk.reached(81).await;
    for base in [1_000, 2_000] {
        let numbers: Vec<_> = desk
            .numbers()
            .into_iter()
            .filter(|n| (base..base + 1_000).contains(n))
            .collect();
        assert_eq!(
            numbers,
            (base..base + 40).collect::<Vec<_>>(),
            "in order per source, each once"
        );
    }
    until("no permit in use", || s.status().jobs.in_use() == 0).await;
}

/// REQ: PM-12, PM-85, PM-81, PM-86
#[tokio::test]
async fn one_limit_and_one_pressure_hold_for_all_sockets() {
    let desk = Desk::new("s");
    let server = |channel: zlink_runtime::id::ChannelName| orders_server(desk.clone()).on(channel).dispatch_limit(1);
    let names = ["one", "two", "three"].map(zlink_runtime::id::ChannelName::from_static);
    let s = Host::builder()
        .mesh("shop", |mesh| mesh.listen(ANY).rid("s").serve(server(names[0].clone())))
        .mesh("depot", |mesh| {
            mesh.listen(ANY).rid("s").serve(server(names[1].clone()))
        })
        .client_server(|c| c.serve(server(names[2].clone())).listen(ANY))
        .max_queued_jobs(10)
        .start()
        .await
        .unwrap();
    let depot = s.mesh("depot").unwrap().endpoint().to_string();
    let third = s
        .listener(ListenerKind::ClientServer, "three")
        .unwrap()
        .endpoint
        .to_string();
    let c = Host::builder()
        .mesh("shop", |mesh| {
            mesh.listen(ANY).rid("c").client(&names[0]).connect(endpoint(&s))
        })
        .mesh("depot", |mesh| {
            mesh.listen(ANY).rid("c").client(&names[1]).connect(depot)
        })
        .client_server(|c| c.client(&names[2]).connect(third))
        .start()
        .await
        .unwrap();
    let views = || {
        let of = |status: zlink_runtime::TopologyStatus| status.peers.first().map(|peer| (peer.state, peer.paused));
        [
            of(c.mesh("shop").unwrap().status()),
            of(c.mesh("depot").unwrap().status()),
            of(c.client_server("three").unwrap().status()),
        ]
    };
    let all = |paused| move |views: [Option<(PeerState, bool)>; 3]| views == [Some((PeerState::Ready, paused)); 3];
    until("three links", || all(false)(views())).await;
    let tell = |at: usize, number| orders_client(&c).on(names[at].clone()).tell(note("hold", number));
    for at in 0..3 {
        tell(at, 0).await.unwrap();
    }
    desk.reached(3).await;
    for number in 1..=7 {
        tell(number as usize % 3, number).await.unwrap();
    }
    until("seven jobs", || s.status().jobs.queued == 7).await;
    assert!(!s.status().jobs.paused, "7 of 10 run on");
    assert!(all(false)(views()));
    tell(1, 8).await.unwrap();
    until("the pause everywhere", || all(true)(views())).await;
    assert_eq!(s.status().jobs.transitions, 1);
    let held: Vec<_> = (0..9)
        .map(|number| spawn(tell(number % 3, 100 + number as u64)))
        .collect();
    settle().await;
    assert!(held.iter().all(|send| !send.is_finished()));
    assert!(s.status().jobs.in_use() <= 10);
    desk.gate().release(1);
    until("one start", || s.status().jobs.queued == 7).await;
    settle().await;
    assert!(all(true)(views()), "7 of 10, on the way down: still paused");
    desk.gate().release(1);
    until("running everywhere", || {
        all(false)(views()) || s.status().jobs.transitions > 1
    })
    .await;
    desk.gate().open();
    for send in held {
        soon("a send that was held back", send).await.unwrap().unwrap();
    }
    desk.reached(20).await;
    until("rest", || all(false)(views()) && s.status().jobs.in_use() == 0).await;
    let jobs = s.status().jobs;
    assert!(jobs.transitions.is_multiple_of(2) && !jobs.paused, "{jobs:?}");
    assert!(jobs.paused_total > Duration::ZERO);
}

/// REQ: PM-87, PM-84, NET-913, PM-45, PM-40
#[tokio::test]
async fn a_paused_host_stays_ready_and_answers() {
    let desk = Desk::new("s");
    let s = narrow(&desk, 10).start().await.unwrap();
    let c = client("c", &[&s]).await;
    let direct = desk_client(&c, &SHOP, rid_of(&s));
    let accepted: Vec<_> = (0..3).map(|number| spawn(direct.ask(note("hold", number)))).collect();
    desk.reached(3).await;
    for number in 3..13 {
        orders_client(&c).tell(note("never", number)).await.unwrap();
        if number == 3 {
            desk.reached(4).await;
        }
        if s.status().jobs.queued == 8 {
            break;
        }
        until("its job", || {
            s.status().jobs.queued as u64 + 3 == number || is_paused(&c)
        })
        .await;
    }
    until("the pause", || is_paused(&c)).await;
    assert_eq!(peer_state(&c, &rid_of(&s)), Some(PeerState::Ready));
    assert!(s.status().is_ready());
    desk.gate().open();
    for call in accepted {
        assert_eq!(soon("a reply", call).await.unwrap().unwrap().text, "s");
    }
    assert!(is_paused(&c), "nothing started meanwhile");
    let late = client("late", &[&s]).await;
    until("the same for who comes now", || is_paused(&late)).await;
    assert_eq!(peer_state(&late, &rid_of(&s)), Some(PeerState::Ready));
}

/// REQ: PM-82, NET-913, PM-32
#[tokio::test]
async fn a_client_never_pauses_its_servers() {
    let mut listener = Raw::listen("server").await;
    let desk = Desk::new("c");
    let c = Host::builder()
        .client_server(|c| c.client(STOCK).connect(listener.endpoint()))
        .mesh("shop", |mesh| {
            mesh.listen(ANY)
                .rid("c")
                .serve(orders_server(desk.clone()).dispatch_limit(1))
        })
        .max_queued_jobs(1);
    let c = c.start().await.unwrap();
    let stock = Hello {
        topology: Topology::ClientServer,
        scope: "stock".into(),
        role: ObjectRole::Unspecified,
        channels: vec![ChannelServer {
            name: "stock".into(),
            weight: 100,
        }],
        ..hello_of("server")
    };
    let link = listener.accept().await;
    link.admit(&stock).await;
    let caller = client("caller", &[&c]).await;
    for number in 0..2 {
        orders_client(&caller).tell(note("hold", number)).await.unwrap();
    }
    until("the pause", || is_paused(&caller)).await;
    // Replies pass all the same, over the line that has only these.
    let call = spawn(stock_client(&c).ask(note("", 1)));
    let request = link
        .heard(zlink_generated::zlink_wire::RecordKind::ChannelRequest)
        .await;
    let mut reply = crate::kit::record(zlink_generated::zlink_wire::RecordKind::Reply, &[0; 4]);
    reply.extend_from_slice(&request[8..16]);
    zlink_runtime::rt::encode(&note("server", 1), |body| reply.extend_from_slice(body)).unwrap();
    link.say(&reply);
    assert_eq!(soon("the reply", call).await.unwrap().unwrap(), note("server", 1));
    assert!(!link.is_held(), "a DEALER announces nothing");
    desk.gate().open();
}

/// REQ: PM-31, PM-20
#[tokio::test]
async fn calls_of_a_node_to_itself_count_too() {
    let desk = Desk::new("s");
    let s = node("s", |mesh| mesh.serve_node(desk.node()))
        .max_queued_jobs(10)
        .start()
        .await
        .unwrap();
    let watcher = client("w", &[&s]).await;
    let itself = desk_client(&s, &SHOP, rid_of(&s));
    // As many as may run at once, and then those that wait.
    for number in 0..256 {
        itself.tell(note("hold", number)).await.unwrap();
    }
    desk.reached(256).await;
    assert_eq!(s.status().jobs.in_use(), 0);
    for number in 256..266 {
        itself.tell(note("hold", number)).await.unwrap();
    }
    assert_eq!(s.status().jobs.queued, 10);
    until("the pause", || is_paused(&watcher)).await;
    let one_more = spawn(itself.tell(note("hold", 266)));
    settle().await;
    assert!(!one_more.is_finished(), "without a permit it waits, and is not refused");
    desk.gate().release(1);
    soon("its permit", one_more).await.unwrap().unwrap();
    desk.gate().open();
    until("all", || desk.ended().len() == 267).await;
    assert_eq!(s.status().jobs.in_use(), 0);
}

/// REQ: PM-36, PM-40, PM-41, NET-914, EX-47, MSG-207
#[tokio::test]
async fn a_saturated_host_completes_what_it_has_begun() {
    let (desk, other) = (Desk::new("s"), Desk::new("other"));
    let o = node("o", |mesh| mesh.serve(stock_server(other.clone())))
        .start()
        .await
        .unwrap();
    let s = node("s", |mesh| {
        mesh.serve(orders_server(desk.clone()).dispatch_limit(1))
            .client(STOCK)
            .connect(endpoint(&o))
    });
    let s = s.max_queued_jobs(2).start().await.unwrap();
    linked(&s, &rid_of(&o)).await;
    let c = client("c", &[&s]).await;
    let begun = spawn(stock_client(&s).ask(note("hold", 1)));
    other.reached(1).await;
    let flood = spawn({
        let orders = orders_client(&c);
        async move {
            for number in 0..20 {
                orders.tell(note("hold", number)).await.unwrap();
            }
        }
    });
    until("saturation", || s.status().jobs.in_use() == 2).await;
    settle().await;
    other.gate().open();
    assert_eq!(soon("the reply", begun).await.unwrap().unwrap().text, "other");
    assert_eq!(
        stock_client(&s).ask(note("", 2)).await.unwrap().text,
        "other",
        "new requests, too"
    );
    let timed = failure(
        soon(
            "its deadline",
            stock_client(&s)
                .on(ORDERS)
                .ask(note("", 3))
                .timeout(Duration::from_millis(50)),
        )
        .await,
    );
    assert_eq!(
        timed.0,
        ErrorKind::NotFound,
        "there is no other server; it is told at once"
    );
    let deadline = failure(
        soon(
            "on time",
            orders_client(&c).ask(note("", 4)).timeout(Duration::from_millis(50)),
        )
        .await,
    );
    assert_eq!(deadline.0, ErrorKind::DeadlineExceeded);
    let newcomer = client("new", &[&s]).await;
    assert_eq!(
        peer_state(&newcomer, &rid_of(&s)),
        Some(PeerState::Ready),
        "a handshake takes no permit"
    );
    desk.gate().open();
    soon("the flood", flood).await.unwrap();
    desk.reached(20).await;
}

/// REQ: PM-83, PM-101, MSG-103, NET-909, PM-02
#[tokio::test]
async fn a_peer_that_stops_reading_holds_its_own_senders_only() {
    const SENDS: u64 = 64;
    let desk = Desk::new("other");
    let other = crate::kit::server("other", 100, &desk).await;
    let c = client("c", &[&other]).await;
    let rid = Rid::new("raw").unwrap();
    let raw = Raw::join_with(&endpoint(&c), &hello_of("raw"), 1).await;
    linked(&c, &rid).await;
    raw.stop_reading();
    let sends: Vec<_> = (0..SENDS)
        .map(|number| spawn(desk_client(&c, &SHOP, rid.clone()).tell(heavy(number, 1 << 20))))
        .collect();
    let done = || sends.iter().filter(|send| send.is_finished()).count();
    let mut before = usize::MAX;
    until("a standstill", || {
        let now = done();
        std::mem::replace(&mut before, now) == now && now > 3
    })
    .await;
    for _ in 0..10 {
        settle().await;
    }
    let taken = done();
    assert!(taken < 40, "the link and the kernel hold little: {taken} MiB");
    assert_eq!(who(&c).await, "other", "others are served meanwhile");
    assert_eq!(peer_state(&c, &rid), Some(PeerState::Ready), "it is slow, not gone");
    // A pause and its end clear the pause only, not the lack of room.
    raw.announce(1, true);
    until("the pause", || is_paused(&c)).await;
    raw.announce(2, false);
    until("its end", || !is_paused(&c)).await;
    settle().await;
    assert!(done() < SENDS as usize, "there is still no room");
    raw.go_on_reading();
    for send in sends {
        soon("room", send).await.unwrap().unwrap();
    }
    let kind = zlink_generated::zlink_wire::RecordKind::NodeSend;
    until("every one of them", || raw.count(kind) as u64 == SENDS).await;
}

/// REQ: PM-97, ERR-501
#[tokio::test]
async fn a_queue_takes_any_number() {
    const SENDS: u64 = 20_000;
    let desk = Desk::new("s");
    let s = narrow(&desk, 100_000).start().await.unwrap();
    let c = client("c", &[&s]).await;
    let orders = orders_client(&c);
    orders.tell(note("hold", 0)).await.unwrap();
    for number in 1..SENDS {
        orders.tell(note("", number)).await.unwrap();
    }
    until("all queued", || s.status().jobs.queued as u64 == SENDS - 1).await;
    desk.gate().open();
    until("all run", || desk.runs() as u64 == SENDS).await;
    assert_eq!(desk.numbers(), (0..SENDS).collect::<Vec<_>>());
}
