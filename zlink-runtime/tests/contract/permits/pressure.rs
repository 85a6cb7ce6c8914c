//! Section 10: when a host pauses its peers, which of them, and what that leaves alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zlink_generated::contract::{ORDERS, STOCK, orders_client, orders_server, stock_server};
use zlink_generated::zlink_wire::{ChannelServer, Hello, ObjectRole, RecordKind, Topology};
use zlink_runtime::id::Rid;
use zlink_runtime::transport::Lane;
use zlink_runtime::{Host, PeerState};

use crate::kit::{
    ANY, Craft, Desk, Raw, Way, address_of, at_rest, endpoint, heavy, hello_of, hello_that_serves, linked, node, note,
    peer_state, raw_client, settle, spawn, until,
};

/// Three kinds of sockets on which requests come, one on which none do.
struct Sockets {
    desk: Desk,
    host: Host,
    /// Peers that may call: over two meshes, and over ClientServer.
    callers: Vec<Raw>,
    /// A ClientServer server that the host is a client of.
    called: Raw,
}

impl Sockets {
    async fn new() -> Self {
        let desk = Desk::new("s");
        let mut listener = Raw::listen("stock").await;
        let host = node("s", |mesh| mesh.serve(orders_server(desk.clone()).dispatch_limit(1)))
            .mesh("depot", |mesh| mesh.listen(ANY).rid("s"))
            .client_server(|channel| channel.client(STOCK).connect(listener.endpoint()))
            .client_server(|channel| {
                let counter = zlink_runtime::id::ChannelName::from_static("counter");
                channel.serve(stock_server(desk.clone()).on(counter)).listen(ANY)
            });
        let host = host.max_queued_jobs(10).start().await.unwrap();
        let called = listener.accept().await;
        called
            .admit(&Hello {
                topology: Topology::ClientServer,
                scope: "stock".into(),
                role: ObjectRole::Unspecified,
                channels: vec![ChannelServer {
                    name: "stock".into(),
                    weight: 1,
                }],
                ..hello_of("stock")
            })
            .await;
        let mut callers = vec![raw_client(Way::Mesh, "raw", &host).await];
        let depot = Hello {
            scope: "depot".into(),
            ..hello_of("raw")
        };
        callers.push(Raw::join(&address_of(&host, "depot"), &depot).await);
        let counter = Hello {
            topology: Topology::ClientServer,
            scope: "counter".into(),
            ..hello_of("raw")
        };
        callers.push(Raw::join(&address_of(&host, "counter"), &counter).await);
        linked(&host, &Rid::new("raw").unwrap()).await;
        Self {
            desk,
            host,
            callers,
            called,
        }
    }

    fn told(&self, count: usize) {
        for _ in 0..count {
            self.callers[0].say(
                &Craft::send("orders", "contract.orders.tell")
                    .message(&note("hold", 0))
                    .record(),
            );
        }
    }

    async fn in_use(&self, count: u32) {
        until(&format!("{count} in use"), || self.host.status().jobs.in_use() == count).await;
    }

    fn paused(&self) -> Vec<bool> {
        self.callers.iter().map(|raw| raw.link().held().by_peer).collect()
    }
}

/// REQ: PM-81, PM-82, PM-85, PM-86, PM-87
#[tokio::test]
async fn peers_that_may_call_are_paused_at_8_of_10_and_go_on_at_6() {
    let sockets = Sockets::new().await;
    let Sockets { desk, host, called, .. } = &sockets;
    sockets.told(1);
    desk.reached(1).await;
    for round in 1..=3 {
        let jobs = || host.status().jobs;
        let from = jobs().in_use() as usize;
        sockets.told(7 - from);
        sockets.in_use(7).await;
        settle().await;
        assert_eq!(sockets.paused(), [false; 3], "7 of 10");
        assert!(!jobs().paused);
        sockets.told(1);
        until("the pause of all at 8 of 10", || sockets.paused() == [true; 3]).await;
        assert!(jobs().paused);
        assert!(!called.link().held().by_peer, "from there only answers come");
        if round == 1 {
            let late = Hello {
                generation: 9,
                ..hello_of("late")
            };
            let late = Raw::join(&endpoint(host), &late).await;
            until("a new link to be paused", || late.link().held().by_peer).await;
            late.leave();
        }
        desk.gate().release(1);
        sockets.in_use(7).await;
        settle().await;
        assert_eq!(sockets.paused(), [true; 3], "7 of 10 is not few enough");
        desk.gate().release(1);
        sockets.in_use(6).await;
        until("all to go on at 6 of 10", || sockets.paused() == [false; 3]).await;
        assert!(!jobs().paused);
        assert_eq!(jobs().transitions, 2 * round);
        for raw in &sockets.callers {
            assert_eq!(raw.link().stats().pauses, round, "each pause was told once");
        }
        assert!(jobs().paused_total > std::time::Duration::ZERO);
    }
    let before = host.status().jobs.paused_total;
    settle().await;
    assert_eq!(host.status().jobs.paused_total, before, "it counts pauses only");
    assert_eq!(called.link().stats().pauses, 0);
    assert!(!called.link().held().by_peer);
    desk.gate().open();
    at_rest(&[host]).await;
}

/// However it comes about that an older change is heard after a newer one: it is over.
///
/// REQ: PM-86
#[tokio::test]
async fn a_stale_change_is_not_heard() {
    let c = node("client", |mesh| mesh.client(ORDERS)).start().await.unwrap();
    let raw = Raw::join(&endpoint(&c), &hello_that_serves(Way::Mesh)).await;
    linked(&c, &Rid::new("raw").unwrap()).await;
    let status = || c.mesh("shop").unwrap().status().peers.remove(0);
    // As records: what a link is told to tell, it puts in order itself.
    let tell = |version, paused: bool| {
        let mut flow = vec![1, RecordKind::Flow.to_wire(), 0, 0];
        flow.extend(u32::from(paused).to_le_bytes());
        flow.extend(u64::to_le_bytes(version));
        raw.say_on(Lane::Completion, &flow).unwrap();
    };
    tell(5, true);
    until("the pause", || status().paused).await;
    tell(4, false);
    tell(5, false);
    settle().await;
    assert!(status().paused, "what is older, or as old, changes nothing");
    tell(6, false);
    until("the end of the pause", || !status().paused).await;
    tell(3, true);
    settle().await;
    assert_eq!((status().paused, status().pauses), (false, 1));
}

/// A pause and a full queue each hold a send back; the end of one is not the end of the other.
///
/// REQ: PM-83
#[tokio::test]
async fn going_on_does_not_make_room() {
    let c = node("client", |mesh| mesh.client(ORDERS).link_budget(100_000))
        .start()
        .await
        .unwrap();
    let raw = Raw::join(&endpoint(&c), &hello_that_serves(Way::Mesh)).await;
    let rid = Rid::new("raw").unwrap();
    linked(&c, &rid).await;
    // The peer has no permit any more, so it reads nothing.
    let all = raw.permits().source().acquire(1000).await.unwrap();
    assert_eq!(all.len(), 1000);
    let sent = Arc::new(AtomicUsize::new(0));
    let sender = {
        let (orders, sent) = (orders_client(&c), sent.clone());
        spawn(async move {
            for number in 0..1000 {
                orders.tell(heavy(number, 60_000)).await.unwrap();
                sent.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let sent = || sent.load(Ordering::Relaxed);
    let still = async || {
        loop {
            let before = sent();
            settle().await;
            settle().await;
            if sent() == before {
                return before;
            }
        }
    };
    let full = still().await;
    assert!(full < 700, "60 MB are more than the peer and the network may hold");
    let status = || c.mesh("shop").unwrap().status().peers.remove(0);
    raw.announce(1, true);
    until("the pause", || status().paused).await;
    raw.announce(2, false);
    until("the end of the pause", || !status().paused).await;
    assert_eq!(still().await, full, "the queue is as full as before");
    raw.announce(3, true);
    until("the pause", || status().paused).await;
    drop(all);
    let drained = still().await;
    assert!(
        drained <= full + 1,
        "room alone is not enough either: {drained} of {full}"
    );
    assert_eq!(
        peer_state(&c, &rid),
        Some(PeerState::Ready),
        "nor does any of it touch readiness"
    );
    raw.announce(4, false);
    crate::kit::soon("all of them", sender).await.unwrap();
    assert_eq!(sent(), 1000);
    assert_eq!(status().pauses, 2);
}
