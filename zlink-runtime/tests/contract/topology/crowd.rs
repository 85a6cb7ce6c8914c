//! Chapter 01, sections 6 and 9: peers that flood, stand still, or speak no protocol, and what others notice of it.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use zlink_generated::contract::{desk_client, orders_client};
use zlink_generated::zlink_wire::RecordKind;
use zlink_runtime::PeerState;
use zlink_runtime::id::Rid;

use crate::kit::{
    Desk, Events, Raw, SHOP, client, endpoint, heavy, hello_of, linked, note, peer_state, port_of, server, settle,
    soon, spawn, until, who,
};

/// REQ: NET-909, PM-73, PM-37
#[tokio::test]
async fn a_peer_that_floods_does_not_keep_others_out() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let (loud, quiet) = (client("loud", &[&s]).await, client("quiet", &[&s]).await);
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flood: Vec<_> = (0..4)
        .map(|_| {
            let (orders, stop) = (orders_client(&loud), stop.clone());
            spawn(async move {
                let mut sent = 0_u64;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    orders.tell(note("", 7)).await.unwrap();
                    sent += 1;
                    tokio::task::consume_budget().await;
                }
                sent
            })
        })
        .collect();
    until("the flood", || desk.runs() > 1000).await;
    let before = desk.runs();
    for number in 0..50 {
        soon("a reply beside the flood", orders_client(&quiet).ask(note("", number)))
            .await
            .unwrap();
    }
    assert!(desk.runs() > before + 50, "the flood went on meanwhile");
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut sent = 0;
    for task in flood {
        sent += task.await.unwrap();
    }
    until("all of the flood", || desk.runs() as u64 == sent + 50).await;
}

/// A ZMTP 3.1 greeting with the NULL mechanism, and a READY of a ROUTER.
fn greeting() -> Vec<u8> {
    let mut bytes = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1];
    bytes.extend_from_slice(b"NULL");
    bytes.resize(64, 0);
    bytes
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// REQ: MSG-903, NET-912, NET-606
#[tokio::test]
async fn garbage_and_huge_lengths_close_their_connection_and_harm_nobody() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let c = client("c", &[&s]).await;
    let port = port_of(&s);
    let events = Events::collect();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |count: usize| -> Vec<u8> {
        let byte = |_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as u8
        };
        (0..count).map(byte).collect()
    };
    let huge = |flags: u8, length: u64| [&greeting()[..], &[flags], &length.to_be_bytes()].concat();
    let mut cases = vec![
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        huge(0x02, 1 << 40),
        huge(0x02, 1 << 62),
        huge(0x06, 1 << 40),
        huge(0x06, u64::MAX),
        [&greeting()[..], &[4, 0]].concat(),
        [&greeting()[..], &[4, 255], &[0xff; 255]].concat(),
        vec![0xff; 4096],
    ];
    for _ in 0..20 {
        cases.push(random(200));
        cases.push([greeting(), random(200)].concat());
    }
    let before = resident_kib();
    let total = cases.len();
    let closing: Vec<_> = cases
        .into_iter()
        .map(|bytes| {
            spawn(async move {
                let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                // It may be closed before all is written.
                let _ = stream.write_all(&bytes).await;
                let mut answer = Vec::new();
                let _ = stream.read_to_end(&mut answer).await;
                answer.len()
            })
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(
            soon("a reply", orders_client(&c).ask(note("", 0))).await.unwrap().text,
            "s"
        );
    }
    for one in closing {
        assert!(soon("the end of the connection", one).await.unwrap() < 4096);
    }
    assert!(
        resident_kib() < before + (64 << 10),
        "nothing is allocated for a length"
    );
    until("a record of each", || {
        events.count(&["zlink::link", "refused a connection"]) >= total
    })
    .await;
    assert_eq!(who(&c).await, "s");
    assert_eq!(desk.runs(), 21);
}

/// REQ: NET-909, NET-913, MSG-103, PM-83, PM-101
#[tokio::test]
async fn a_peer_that_stops_reading_holds_its_own_senders_only() {
    const SENDS: u64 = 64;
    let desk = Desk::new("other");
    let other = server("other", 100, &desk).await;
    let c = client("c", &[&other]).await;
    let rid = Rid::new("raw").unwrap();
    let raw = Raw::join(&endpoint(&c), &hello_of("raw")).await;
    linked(&c, &rid).await;
    let all_permits = raw.permits().source().acquire(u32::MAX).await.unwrap();
    let sends: Vec<_> = (0..SENDS)
        .map(|number| spawn(desk_client(&c, &SHOP, rid.clone()).tell(heavy(number, 1 << 20))))
        .collect();
    let is_paused = || c.mesh("shop").unwrap().status().peers.iter().any(|peer| peer.paused);
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
    until("the pause", is_paused).await;
    raw.announce(2, false);
    until("its end", || !is_paused()).await;
    settle().await;
    assert!(done() < SENDS as usize, "there is still no room");
    drop(all_permits);
    for send in sends {
        soon("room", send).await.unwrap().unwrap();
    }
    let kind = RecordKind::NodeSend;
    until("every one of them", || raw.count(kind) as u64 == SENDS).await;
}
