//! Chapter 01, sections 1, 4 and 5: intents, one link per pair, and who takes over from whom.

use std::time::Duration;

use zlink_generated::contract::{ORDERS, STOCK, desk_client, orders_client, orders_server, stock_client, stock_server};
use zlink_generated::zlink_wire::{ChannelServer, Hello, RecordKind};
use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::id::{ChannelName, MeshName, Rid};
use zlink_runtime::transport::{Lane, Refused};
use zlink_runtime::{Host, PeerState, TopologyPhase};

use super::join_at;
use crate::kit::{
    ANY, Desk, Events, Raw, SHOP, Stopwatch, client, connections, doomed, endpoint, established, failure, free_port,
    hello_of, is_free, linked, node, note, peer_state, port_of, record, rid_of, server, settle, soon, spawn, until,
    who, who_at,
};

/// REQ: NET-401, NET-404
#[tokio::test]
async fn one_port_carries_every_channel_and_the_node() {
    let desk = Desk::new("s");
    let host = node("s", |mesh| {
        mesh.serve(orders_server(desk.clone()))
            .serve(stock_server(desk.clone()))
            .serve_node(desk.node())
    });
    let host = host.start().await.unwrap();
    let caller = node("c", |mesh| mesh.client(ORDERS).client(STOCK).connect(endpoint(&host)));
    let caller = caller.start().await.unwrap();
    linked(&caller, &rid_of(&host)).await;
    orders_client(&caller).ask(note("", 1)).await.unwrap();
    stock_client(&caller).ask(note("", 2)).await.unwrap();
    desk_client(&caller, &SHOP, rid_of(&host))
        .ask(note("", 3))
        .await
        .unwrap();
    let scopes: Vec<_> = desk.seen().iter().map(|seen| seen.scope).collect();
    assert_eq!(scopes, ["orders", "stock", "desk"]);
    assert_eq!(
        connections(&host),
        2,
        "the two lanes of one link, whatever is registered"
    );
    assert_eq!(connections(&caller), 0);
}

/// REQ: NET-402, CH-303
#[tokio::test]
async fn nothing_crosses_from_one_mesh_to_another() {
    let (shop, depot) = (Desk::new("shop"), Desk::new("depot"));
    let a = server("a", 100, &shop).await;
    let b = Host::builder().mesh("depot", |mesh| {
        mesh.listen(ANY)
            .rid("b")
            .serve(stock_server(depot.clone()))
            .serve_node(depot.node())
    });
    let b = b.start().await.unwrap();
    let to_b = b.mesh("depot").unwrap().endpoint().to_string();
    let both = node("c", |mesh| mesh.client(ORDERS).connect(endpoint(&a)))
        .mesh("depot", |mesh| mesh.listen(ANY).rid("c").client(STOCK).connect(&to_b));
    let both = both.start().await.unwrap();
    let only_shop = client("d", &[&a]).await;
    linked(&both, &rid_of(&a)).await;
    until("a link in the depot", || stock_ready(&both)).await;

    assert_eq!(who(&both).await, "shop");
    assert_eq!(stock_client(&both).ask(note("", 0)).await.unwrap().text, "depot");
    let nowhere = (ErrorKind::NotFound, Execution::NotExecuted);
    assert_eq!(
        failure(who_at(&both, &Rid::new("b").unwrap()).await),
        nowhere,
        "b is no member of the shop"
    );
    let depot_name = MeshName::from_static("depot");
    let crossing = desk_client(&both, &depot_name, rid_of(&a)).ask(note("", 0)).await;
    assert_eq!(failure(crossing), nowhere, "a is no member of the depot");
    assert_eq!(
        failure(stock_client(&only_shop).ask(note("", 0)).await),
        nowhere,
        "a gateway relays nothing"
    );
    b.shutdown().await.unwrap();
    until("the depot to be gone", || !stock_ready(&both)).await;
    assert_eq!(who(&both).await, "shop", "the other mesh does not notice");
    assert_eq!((shop.runs(), depot.runs()), (2, 1));
}

fn stock_ready(host: &Host) -> bool {
    let status = host.mesh("depot").unwrap().status();
    status.channels.iter().any(|(_, targets)| !targets.is_empty())
}

/// REQ: NET-503, NET-409
#[tokio::test]
async fn a_manual_intent_admits_only_whom_it_expects() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let c = node("c", |mesh| {
        mesh.client(ORDERS).connect_to(endpoint(&s), "somebody else")
    });
    let c = c.start().await.unwrap();
    let mesh = c.mesh("shop").unwrap();
    until("the refusal", || mesh.intents()[0].failure.is_some()).await;
    let failure_text = mesh.intents()[0].failure.clone().unwrap();
    assert!(failure_text.contains("Identity"), "{failure_text}");
    settle().await;
    assert_eq!(mesh.intents()[0].state, PeerState::NotConnected);
    assert_eq!(mesh.status().phase, TopologyPhase::Degraded);
    assert_eq!(failure(orders_client(&c).ask(note("", 0)).await).0, ErrorKind::NotFound);
    assert_eq!(
        peer_state(&s, &rid_of(&c)),
        None,
        "the other side did not admit it either"
    );

    mesh.connect(&endpoint(&s), Some(rid_of(&s))).unwrap();
    linked(&c, &rid_of(&s)).await;
    let intents = mesh.intents();
    assert_eq!(intents.len(), 1, "the new expectation takes the place of the old one");
    assert_eq!(
        (intents[0].expected.clone(), intents[0].failure.clone()),
        (Some(rid_of(&s)), None)
    );
    assert_eq!(mesh.status().phase, TopologyPhase::Ready);
    assert_eq!(who(&c).await, "s");

    assert!(mesh.disconnect(&endpoint(&s)).unwrap());
    assert!(!mesh.disconnect(&endpoint(&s)).unwrap());
    until("the link to close", || {
        peer_state(&s, &rid_of(&c)) != Some(PeerState::Ready)
    })
    .await;
    assert!(mesh.intents().is_empty());
    for nobody in ["tcp://127.0.0.1:0", "tcp://0.0.0.0:1", "nonsense"] {
        assert!(mesh.connect(nobody, None).is_err(), "{nobody}");
    }
}

/// Two nodes dial each other at the same moment, a hundred times, while both already call each other.
///
/// REQ: NET-504, NET-409
#[tokio::test]
async fn nodes_that_dial_each_other_end_with_one_link_and_lose_no_call() {
    // Ten times ten: all hundred at once are more than a busy machine links within the second that a call waits for it.
    for _ in 0..10 {
        dial_each_other(10, 10).await;
    }
}

async fn dial_each_other(pairs: usize, calls_each_way: u64) {
    let events = Events::collect();
    let pairs = (0..pairs).map(|_| {
        spawn(async move {
            let desks = [Desk::new("a"), Desk::new("b")];
            let a = node("a", |mesh| mesh.serve_node(desks[0].node()))
                .start()
                .await
                .unwrap();
            let b = node("b", |mesh| mesh.serve_node(desks[1].node()))
                .start()
                .await
                .unwrap();
            let dial = |from: &Host, to: &Host| {
                from.mesh("shop")
                    .unwrap()
                    .connect(&endpoint(to), Some(rid_of(to)))
                    .unwrap();
            };
            dial(&a, &b);
            dial(&b, &a);
            let mut calls = Vec::new();
            for number in 0..calls_each_way {
                for (from, to) in [(&a, &b), (&b, &a)] {
                    calls.push(spawn(desk_client(from, &SHOP, rid_of(to)).ask(note("", number))));
                    tokio::task::yield_now().await;
                }
            }
            for call in calls {
                soon("a reply", call).await.unwrap().expect("no call is lost");
            }
            for desk in &desks {
                let mut numbers = desk.numbers();
                numbers.sort_unstable();
                assert_eq!(numbers, (0..calls_each_way).collect::<Vec<_>>(), "each call ran once");
            }
            [a, b]
        })
    });
    let mut hosts = Vec::new();
    for pair in pairs.collect::<Vec<_>>() {
        hosts.push(pair.await.unwrap());
    }
    let of_each = |pair: &[Host; 2], count: &std::collections::HashMap<u16, usize>| {
        pair.iter().filter_map(|host| count.get(&port_of(host))).sum::<usize>()
    };
    until("one link of two lanes for each pair", || {
        let count = established();
        hosts.iter().all(|pair| of_each(pair, &count) == 2)
    })
    .await;
    for pair in &hosts {
        for (host, peer) in [(&pair[0], &pair[1]), (&pair[1], &pair[0])] {
            let mesh = host.mesh("shop").unwrap();
            assert_eq!(mesh.status().peers.len(), 1);
            assert_eq!(peer_state(host, &rid_of(peer)), Some(PeerState::Ready));
            assert_eq!(mesh.intents()[0].state, PeerState::Ready);
            let name = String::from_utf8(rid_of(peer).as_bytes().to_vec()).unwrap();
            assert_eq!(who_at(host, &rid_of(peer)).await.unwrap(), name);
        }
    }
    // Whoever lost its link to the other's must not dial for ever.
    let made = events.count(&["peer_changed", "state=ready"]);
    for _ in 0..10 {
        settle().await;
    }
    assert_eq!(events.count(&["peer_changed", "state=ready"]), made);
}

/// REQ: NET-107, NET-509, NET-607, NET-911, CH-501
#[tokio::test]
async fn a_peer_that_starts_again_under_its_name_is_a_new_run() {
    let port = free_port();
    let start = |desk: Desk| async move {
        let builder = Host::builder().mesh("shop", |mesh| {
            mesh.rid("s")
                .listen(format!("tcp://127.0.0.1:{port}"))
                .serve(orders_server(desk.clone()))
        });
        builder.start().await.unwrap()
    };
    let (before, after) = (Desk::new("before"), Desk::new("after"));
    let (first, kill) = doomed(start(before.clone())).await;
    let c = client("c", &[&first]).await;
    let pending = spawn(orders_client(&c).ask(note("hold", 1)));
    before.reached(1).await;
    kill.now();
    let lost = failure(soon("the loss of the link", pending).await.unwrap());
    assert_eq!(lost, (ErrorKind::Unavailable, Execution::Unknown));
    until("the port to be free", || is_free(port)).await;
    let _second = start(after.clone()).await;
    linked(&c, &Rid::new("s").unwrap()).await;
    assert_eq!(who(&c).await, "after");
    before.gate().open();
    settle().await;
    assert_eq!(after.numbers(), [0], "the call that was lost is not sent again");
    assert_eq!(c.mesh("shop").unwrap().status().peers.len(), 1);
}

/// A peer with a fixed RID comes back, as a new run or as the same, while calls to it are queued on the link that it
/// left behind; the late end of that link must not take the new one along.
///
/// REQ: NET-509, NET-607, NET-911
#[tokio::test]
async fn a_peer_takes_over_from_its_old_link_with_a_backlog() {
    const ROUNDS: u64 = 100;
    let hub = node("hub", |mesh| mesh.link_budget(4096)).start().await.unwrap();
    let rid = Rid::new("fixed").unwrap();
    let of = |generation| Hello {
        generation,
        ..hello_of("fixed")
    };
    let mut current = Raw::join(&endpoint(&hub), &of(1)).await;
    linked(&hub, &rid).await;
    for round in 2..ROUNDS + 2 {
        current.announce(1, true);
        let status = || hub.mesh("shop").unwrap().status();
        until("the pause", || status().peers.iter().any(|peer| peer.paused)).await;
        let backlog: Vec<_> = (0..4)
            .map(|number| spawn(desk_client(&hub, &SHOP, rid.clone()).ask(note("", number))))
            .collect();
        settle_briefly().await;
        // Every third time it is the same run that has lost its link and dials again.
        let generation = if round % 3 == 0 { current.generation } else { round };
        let next = Raw::join(&endpoint(&hub), &of(generation)).await;
        current.ended().await;
        for number in 0..4 {
            // What waited before the old link is submitted over the new one.
            let call = next.heard(RecordKind::NodeRequest).await;
            assert!(!call.is_empty(), "{number}");
        }
        assert!(next.is_open());
        assert_eq!(peer_state(&hub, &rid), Some(PeerState::Ready), "round {round}");
        backlog.iter().for_each(tokio::task::JoinHandle::abort);
        current = next;
    }
}

async fn settle_briefly() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// REQ: NET-601, CH-203
#[tokio::test]
async fn a_connection_alone_makes_no_target() {
    let mut silent = Raw::listen("s").await;
    let c = node("c", |mesh| mesh.client(ORDERS).connect_to(silent.endpoint(), "s"));
    let c = c.start().await.unwrap();
    let link = silent.accept().await;
    link.heard(RecordKind::Hello).await;
    assert_eq!(failure(orders_client(&c).ask(note("", 0)).await).0, ErrorKind::NotFound);
    let watch = Stopwatch::start();
    let direct = failure(who_at(&c, &Rid::new("s").unwrap()).await);
    assert_eq!(
        direct,
        (ErrorKind::Unavailable, Execution::NotExecuted),
        "known, but not ready in time"
    );
    assert!(
        !watch.is_past(Duration::from_secs(5)),
        "the call has 30 s, the readiness of a target has one"
    );
    assert_ne!(peer_state(&c, &Rid::new("s").unwrap()), Some(PeerState::Ready));
    assert_eq!(link.count(RecordKind::NodeRequest), 0);
}

/// REQ: NET-911, NET-109
#[tokio::test]
async fn frames_of_a_link_that_was_replaced_change_nothing() {
    let c = client("c", &[]).await;
    let channels = vec![ChannelServer {
        name: "orders".into(),
        weight: 100,
    }];
    let old = join_at(&c, &channels).await;
    let new = join_at(&c, &channels).await;
    old.ended().await;
    assert_eq!(old.say_on(Lane::Data, &[1]), Err(Refused::Closed));
    let pending = spawn(orders_client(&c).ask(note("", 1)));
    let request = new.heard(RecordKind::ChannelRequest).await;
    let third = join_at(&c, &channels).await;
    new.ended().await;
    assert_eq!(
        failure(pending.await.unwrap()),
        (ErrorKind::Unavailable, Execution::Unknown)
    );
    let mut late = record(RecordKind::Reply, &[0, 0, 0, 0]);
    late.extend_from_slice(&request[8..16]);
    third.say_on(Lane::Completion, &late).unwrap();
    settle().await;
    assert!(third.is_open());
    assert_eq!(c.status().waiting_requests, 0);
    let name = ChannelName::from_static("orders");
    assert_eq!(c.mesh("shop").unwrap().status().channels[0].0, name);
}
