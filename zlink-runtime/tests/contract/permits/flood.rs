//! Sections 4, 8 and 11: many times more than a host can hold, and nothing is refused, lost or starved.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use zlink_generated::contract::{Note, STOCK, desk_client, orders_client, orders_server, stock_client, stock_server};
use zlink_runtime::error::ErrorKind;

use super::narrow;
use crate::kit::{
    Craft, Desk, SHOP, Stopwatch, WAYS, Way, at_rest, calling, endpoint, failure, heavy, linked, node, note,
    raw_client, rid_of, settle, soon, spawn, until, until_within,
};

/// REQ: PM-91, PM-96, PM-100, PM-37, PM-73, PM-20
#[tokio::test]
async fn a_host_under_many_times_its_capacity() {
    const JOBS: u32 = 16;
    const SENDS: u64 = 2000;
    let (desk, stock) = (Desk::new("s"), Desk::new("stock"));
    let behind = node("behind", |mesh| mesh.serve(stock_server(stock.clone())))
        .start()
        .await
        .unwrap();
    let s = node("s", |mesh| {
        let orders = orders_server(desk.clone()).dispatch_limit(1);
        mesh.serve(orders)
            .serve_node(desk.node())
            .client(STOCK)
            .connect(endpoint(&behind))
    });
    let s = s.max_queued_jobs(JOBS).start().await.unwrap();
    linked(&s, &rid_of(&behind)).await;
    let loud = [
        calling(Way::Mesh, "a", &s, |h| h).await,
        calling(Way::Mesh, "b", &s, |h| h).await,
    ];
    let third = calling(Way::Mesh, "c", &s, |host| host).await;
    let accepted = spawn(orders_client(&third).ask(note("hold", 999_999)));
    desk.reached(1).await;
    let sent = Arc::new(AtomicU64::new(0));
    let floods: Vec<_> = (0..)
        .zip(&loud)
        .map(|(origin, host)| {
            let (orders, sent) = (orders_client(host), sent.clone());
            spawn(async move {
                for number in 0..SENDS {
                    let text = if number % 100 == 0 { "hold" } else { "" };
                    let message = Note {
                        text: text.into(),
                        ..heavy(origin * 10_000 + number, 16_000)
                    };
                    orders.tell(message).await.unwrap();
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let jobs = || {
        let jobs = s.status().jobs;
        assert!(jobs.in_use() <= JOBS);
        jobs
    };
    // An eighth is kept for what its handlers send to its node.
    let full = JOBS - JOBS / 8;
    until("all permits to be in use", || jobs().in_use() == full).await;
    let still = async || {
        loop {
            let before = sent.load(Ordering::Relaxed);
            settle().await;
            if sent.load(Ordering::Relaxed) == before {
                return before;
            }
        }
    };
    let before = still().await;
    assert!(before < 2 * SENDS, "the senders wait, at {before}");
    assert!(jobs().paused);
    assert_eq!(desk.runs(), 1);

    // Requests end with their deadline, on time, with no other error.
    let (begin, watch) = (Instant::now(), Stopwatch::start());
    let late: Vec<_> = (0..10)
        .map(|number| {
            spawn(
                orders_client(&third)
                    .ask(note("", 700_000 + number))
                    .timeout(Duration::from_millis(200)),
            )
        })
        .collect();
    for call in late {
        assert_eq!(
            failure(soon("the deadline", call).await.unwrap()).0,
            ErrorKind::DeadlineExceeded
        );
    }
    let took = begin.elapsed();
    assert!(
        took >= Duration::from_millis(190) && !watch.is_past(Duration::from_secs(3)),
        "{took:?}"
    );
    // Replies flow, to the full host and from it.
    soon("a reply to it", stock_client(&s).ask(note("", 0))).await.unwrap();
    assert_eq!(jobs().in_use(), full);
    desk.gate().release(1);
    soon("a reply from it", accepted).await.unwrap().unwrap();

    // It works off, and a third peer is served meanwhile.
    let from = desk.runs();
    desk.gate().open();
    for number in 0..10 {
        soon(
            "the third peer's request",
            orders_client(&third).ask(note("", 500_000 + number)),
        )
        .await
        .unwrap();
        soon(
            "its request to the node",
            desk_client(&third, &SHOP, rid_of(&s)).ask(note("", 600_000 + number)),
        )
        .await
        .unwrap();
        if number == 0 {
            let meanwhile = (desk.runs() - from) as u64;
            assert!(meanwhile < 2 * SENDS, "all of the flood went first: {meanwhile}");
        }
        jobs();
    }
    for flood in floods {
        soon("the end of the flood", flood).await.unwrap();
    }
    until_within(Duration::from_secs(20), "all of it", || {
        jobs();
        desk.numbers().iter().filter(|number| **number < 20_000).count() as u64 >= 2 * SENDS
    })
    .await;
    for origin in 0..2 {
        let of: Vec<_> = desk
            .numbers()
            .into_iter()
            .filter(|number| number / 10_000 == origin)
            .collect();
        assert!(
            of.iter().copied().eq((0..SENDS).map(|number| origin * 10_000 + number)),
            "{origin}: {of:?}"
        );
    }
    let status = jobs();
    assert!(
        status.transitions >= 3 && status.paused_total > Duration::from_millis(100),
        "{status:?}"
    );
    at_rest(&[&s, &loud[0], &loud[1], &third, &behind]).await;
    assert!(!s.status().jobs.paused);
}

/// REQ: PM-101, PM-91, PM-100, MSG-103, MSG-809
#[tokio::test]
async fn large_messages_wait_at_their_sender() {
    const SENDS: u64 = 200;
    let desk = Desk::new("s");
    let s = narrow(Way::Mesh, &desk, 4).await;
    let c = calling(Way::Mesh, "c", &s, |host| host).await;
    let before = resident();
    let sent = Arc::new(AtomicU64::new(0));
    let sender = {
        let (orders, sent) = (orders_client(&c), sent.clone());
        spawn(async move {
            for number in 0..SENDS {
                let text = if number == 0 { "hold" } else { "" };
                orders
                    .tell(Note {
                        text: text.into(),
                        ..heavy(number, 1 << 20)
                    })
                    .await
                    .unwrap();
                sent.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    until("the limit", || s.status().jobs.in_use() == 4).await;
    let mut last = u64::MAX;
    while last != sent.load(Ordering::Relaxed) {
        last = sent.load(Ordering::Relaxed);
        settle().await;
        settle().await;
    }
    // One runs, four wait, and 4 MiB here, 4 MiB there and the kernel's buffers between them are full.
    assert!(last < 40, "{last} MiB were taken");
    let grown = resident().saturating_sub(before);
    assert!(grown < 100 << 20, "memory grew by {} MiB", grown >> 20);
    assert!(!sender.is_finished());
    desk.gate().open();
    soon("the rest", sender).await.unwrap();
    desk.reached(SENDS as usize).await;
    assert!(desk.numbers().into_iter().eq(0..SENDS));
    assert!(desk.seen().iter().all(|seen| seen.bytes == 1 << 20));
    at_rest(&[&s, &c]).await;
}

/// Bytes of this process in memory.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Two peers have much to say before a third says one thing: it has its turn after one rotation of each, whether
/// permits are short or not.
///
/// REQ: PM-72, PM-71, PM-35, PM-37
#[tokio::test]
async fn a_trickle_beside_two_floods_is_served_in_its_turn() {
    const FLOOD: u64 = 1000;
    for way in WAYS {
        for jobs in [1, 16, 4096] {
            let desk = Desk::new("s");
            let s = narrow(way, &desk, jobs).await;
            let floods = [raw_client(way, "one", &s).await, raw_client(way, "two", &s).await];
            let trickle = raw_client(way, "three", &s).await;
            let tell = |number| {
                Craft::send("orders", "contract.orders.tell")
                    .message(&note("", number))
                    .record()
            };
            for number in 0..FLOOD {
                for (origin, raw) in (0..).zip(&floods) {
                    raw.say(&tell(origin * 10_000 + number));
                }
            }
            trickle.say(&tell(77_777));
            until_within(Duration::from_secs(20), "all", || desk.runs() as u64 == 2 * FLOOD + 1).await;
            let numbers = desk.numbers();
            let at = numbers.iter().position(|number| *number == 77_777).unwrap();
            assert!(
                at <= 4 * 64 + jobs.min(64) as usize,
                "{way:?}, {jobs} jobs: it came as number {at}"
            );
            for origin in 0..2 {
                let of = numbers.iter().copied().filter(|number| number / 10_000 == origin);
                assert!(of.eq((0..FLOOD).map(|number| origin * 10_000 + number)));
            }
            at_rest(&[&s]).await;
        }
    }
}
