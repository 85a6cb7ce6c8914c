//! Chapter 01, sections 1 and 4 to 10: who is linked with whom, what a peer may say, what ends a link.

use std::time::Duration;

use zlink_generated::contract::{ORDERS, STOCK, desk_client, orders_client, orders_server, stock_client, stock_server};
use zlink_generated::zlink_wire::{
    ChannelServer, Hello, NodeState, ObjectRole, RecordKind, Reject, RejectReason, Topology, Update,
};
use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::id::{ChannelName, MeshName, Rid};
use zlink_runtime::transport::{Lane, Refused};
use zlink_runtime::{Host, HostPhase, PeerState, TopologyPhase};

use crate::kit::{
    ANY, Desk, Events, Raw, SHOP, client, connections, doomed, endpoint, established, failure, free_port, hello,
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
    const PAIRS: usize = 100;
    const CALLS: u64 = 10;
    let events = Events::collect();
    let pairs = (0..PAIRS).map(|_| {
        spawn(async {
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
            for number in 0..CALLS {
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
                assert_eq!(numbers, (0..CALLS).collect::<Vec<_>>(), "each call ran once");
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
    let begin = tokio::time::Instant::now();
    let direct = failure(who_at(&c, &Rid::new("s").unwrap()).await);
    assert_eq!(
        direct,
        (ErrorKind::Unavailable, Execution::NotExecuted),
        "known, but not ready in time"
    );
    assert!(
        begin.elapsed() < Duration::from_secs(5),
        "the call has 30 s, the readiness of a target has one"
    );
    assert_ne!(peer_state(&c, &Rid::new("s").unwrap()), Some(PeerState::Ready));
    assert_eq!(link.count(RecordKind::NodeRequest), 0);
}

/// REQ: NET-602, NET-603, NET-606, MSG-806
#[tokio::test]
async fn each_field_of_a_hello_can_prevent_readiness() {
    let s = node("s", |mesh| mesh.security_identity("blue")).start().await.unwrap();
    let good = || Hello {
        security_identity: "blue".into(),
        ..hello_of("raw")
    };
    let channel = |name: &str, weight| ChannelServer {
        name: name.into(),
        weight,
    };
    type Change<'a> = Box<dyn Fn(&mut Hello) + 'a>;
    let changes: Vec<(RejectReason, Change<'_>)> = vec![
        (RejectReason::Topology, Box::new(|hello| hello.scope = "other".into())),
        (
            RejectReason::Topology,
            Box::new(|hello| hello.topology = Topology::ClientServer),
        ),
        (
            RejectReason::Topology,
            Box::new(|hello| hello.topology = Topology::Unknown(9)),
        ),
        (
            RejectReason::Identity,
            Box::new(|hello| hello.rid = b"not the connection's".to_vec()),
        ),
        (RejectReason::Identity, Box::new(|hello| hello.generation = 8)),
        (
            RejectReason::SecurityIdentity,
            Box::new(|hello| hello.security_identity = "red".into()),
        ),
        (
            RejectReason::SecurityIdentity,
            Box::new(|hello| hello.security_identity = String::new()),
        ),
        (
            RejectReason::Capability,
            Box::new(|hello| hello.capabilities = vec!["teleport".into()]),
        ),
        (RejectReason::InvalidDescriptor, Box::new(|hello| hello.generation = 0)),
        (RejectReason::InvalidDescriptor, Box::new(|hello| hello.revision = 0)),
        (
            RejectReason::InvalidDescriptor,
            Box::new(|hello| hello.rid = Vec::new()),
        ),
        (
            RejectReason::InvalidDescriptor,
            Box::new(|hello| hello.scope = String::new()),
        ),
        (
            RejectReason::InvalidDescriptor,
            Box::new(|hello| hello.role = ObjectRole::Unspecified),
        ),
        (
            RejectReason::InvalidDescriptor,
            Box::new(|hello| hello.role = ObjectRole::Unknown(9)),
        ),
        (
            RejectReason::InvalidDescriptor,
            Box::new(|hello| hello.state = NodeState::Unspecified),
        ),
        (
            RejectReason::InvalidDescriptor,
            Box::new(|hello| hello.channels = vec![channel("a", 10_001)]),
        ),
        (
            RejectReason::InvalidDescriptor,
            Box::new(|hello| hello.channels = vec![channel("", 1)]),
        ),
        (
            RejectReason::InvalidDescriptor,
            Box::new(|hello| hello.channels = vec![channel("a", 1), channel("a", 2)]),
        ),
    ];
    for (at, (reason, change)) in changes.into_iter().enumerate() {
        let mut bad = good();
        change(&mut bad);
        let raw = Raw::dial(&endpoint(&s), &good()).await;
        raw.say(&hello(RecordKind::Hello, &bad));
        assert_eq!(raw.rejected().await, reason, "case {at}");
        raw.ended().await;
    }
    // What a codec would refuse to write: an endpoint of 4,097 bytes, and half a hello.
    let mut long = hello(
        RecordKind::Hello,
        &Hello {
            endpoint: "e".repeat(4096),
            ..good()
        },
    );
    Raw::dial(&endpoint(&s), &good()).await.expect_admit(&long).await;
    long.truncate(long.len() / 2);
    let raw = Raw::dial(&endpoint(&s), &good()).await;
    raw.say(&long);
    assert_eq!(raw.rejected().await, RejectReason::InvalidDescriptor);
    // Another major is not even read.
    let mut later = hello(RecordKind::Hello, &good());
    later[0] = 2;
    let raw = Raw::dial(&endpoint(&s), &good()).await;
    raw.say(&later);
    raw.ended().await;
    settle().await;
    assert_eq!(s.status().phase, HostPhase::Serving);
    let _good = Raw::join(&endpoint(&s), &good()).await;
    linked(&s, &Rid::new("raw").unwrap()).await;
}

/// REQ: NET-603, NET-505, NET-409
#[tokio::test]
async fn a_refusal_is_told_by_its_reason_and_some_are_for_good() {
    let mut listener = Raw::listen("s").await;
    let c = node("c", |mesh| mesh.connect(listener.endpoint()))
        .start()
        .await
        .unwrap();
    let mesh = c.mesh("shop").unwrap();
    let intent = || mesh.intents().remove(0);
    for reason in [
        RejectReason::ProtocolVersion,
        RejectReason::Topology,
        RejectReason::SecurityIdentity,
        RejectReason::Channel,
        RejectReason::StaleGeneration,
        RejectReason::StaleRevision,
        RejectReason::Capability,
        RejectReason::NotServing,
        RejectReason::InvalidDescriptor,
        RejectReason::ResourceLimit,
    ] {
        let link = listener.accept().await;
        link.heard(RecordKind::Hello).await;
        link.say(&hello(
            RecordKind::Reject,
            &Reject {
                reason,
                text: "because".into(),
            },
        ));
        let name = format!("{reason:?}");
        until(&name, || {
            intent()
                .failure
                .is_some_and(|text| text.contains(&name) && text.contains("because"))
        })
        .await;
        assert_eq!(intent().state, PeerState::NotConnected);
    }
    let link = listener.accept().await;
    link.heard(RecordKind::Hello).await;
    let reason = RejectReason::Unknown(77);
    link.say(&hello(
        RecordKind::Reject,
        &Reject {
            reason,
            text: String::new(),
        },
    ));
    until("an unknown reason", || {
        intent().failure.is_some_and(|text| text.contains("protocol error"))
    })
    .await;

    let link = listener.accept().await;
    link.heard(RecordKind::Hello).await;
    link.say(&record(RecordKind::NotRequired, &[]));
    until("not required", || intent().state == PeerState::NotRequired).await;
    link.ended().await;
    assert_eq!(
        mesh.status().phase,
        TopologyPhase::Ready,
        "what is not required is not missing"
    );
    assert_eq!(mesh.status().peers.len(), 1, "yet it is listed");
    settle().await;
    assert_eq!(listener.waiting(), 0, "it is not dialled again");
    assert!(c.status().is_ready());
    mesh.connect(&listener.endpoint(), Some(Rid::new("s").unwrap()))
        .unwrap();
    let link = listener.accept().await;
    link.admit(&hello_of("s")).await;
    linked(&c, &Rid::new("s").unwrap()).await;
}

/// REQ: NET-108, NET-605, NET-406, CH-302
#[tokio::test]
async fn a_live_update_changes_weights_and_state_and_nothing_else() {
    let c = client("c", &[]).await;
    let weighted = |weight| {
        vec![ChannelServer {
            name: "orders".into(),
            weight,
        }]
    };
    let join = async || {
        let hello = Hello {
            channels: weighted(100),
            ..hello_of("raw")
        };
        let raw = Raw::join(&endpoint(&c), &hello).await;
        until("its weight", || targets(&c) == [100]).await;
        raw
    };
    let update = |revision, state, channels: Vec<ChannelServer>| {
        hello(
            RecordKind::Update,
            &Update {
                revision,
                state,
                channels,
            },
        )
    };
    let raw = join().await;
    raw.say(&update(3, NodeState::Serving, weighted(7)));
    until("the new weight", || targets(&c) == [7]).await;
    raw.say(&update(2, NodeState::Serving, weighted(9)));
    raw.say(&update(3, NodeState::Serving, weighted(7)));
    raw.say(&update(4, NodeState::Draining, weighted(7)));
    until("draining", || targets(&c).is_empty()).await;
    assert_eq!(peer_state(&c, &Rid::new("raw").unwrap()), Some(PeerState::Draining));
    raw.say(&update(2, NodeState::Serving, weighted(9)));
    settle().await;
    assert!(targets(&c).is_empty(), "a late older update does not undo draining");
    assert!(raw.is_open(), "late and repeated updates do no harm");

    for bad in [
        update(4, NodeState::Serving, weighted(7)),
        update(5, NodeState::Serving, Vec::new()),
        update(
            5,
            NodeState::Serving,
            [
                weighted(1),
                vec![ChannelServer {
                    name: "stock".into(),
                    weight: 1,
                }],
            ]
            .concat(),
        ),
        update(5, NodeState::Serving, weighted(10_001)),
        record(RecordKind::Update, &[1, 2, 3]),
    ] {
        let raw = join_at(&c, &weighted(7)).await;
        raw.say(&update(4, NodeState::Draining, weighted(7)));
        raw.say(&bad);
        raw.ended().await;
        until("not ready", || {
            peer_state(&c, &Rid::new("raw").unwrap()) != Some(PeerState::Ready)
        })
        .await;
    }
}

/// Joins as the node `raw`, each time as a new run.
async fn join_at(host: &Host, channels: &[ChannelServer]) -> Raw {
    let hello = Hello {
        channels: channels.to_vec(),
        generation: zlink_runtime::id::Generation::random().to_wire(),
        ..hello_of("raw")
    };
    let raw = Raw::join(&endpoint(host), &hello).await;
    linked(host, &Rid::new("raw").unwrap()).await;
    raw
}

/// The weights of the servers of `orders` that `host` may select.
fn targets(host: &Host) -> Vec<u16> {
    let status = host.mesh("shop").unwrap().status();
    let orders = status.channels.into_iter().find(|(name, _)| *name == ORDERS);
    orders
        .map(|(_, targets)| targets.iter().map(|target| target.weight).collect())
        .unwrap_or_default()
}

/// REQ: NET-606, NET-910, NET-912, MSG-706
#[tokio::test]
async fn a_record_out_of_place_ends_its_link_and_nothing_else() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let c = client("c", &[&s]).await;
    let unknown_flag = [1, RecordKind::Ready.to_wire(), 0x40, 0];
    let probe_zero = record(RecordKind::Probe, &[0; 12]);
    let probe_with_more = record(RecordKind::Probe, &[0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9]);
    let events = Events::collect();
    let cases: [&[u8]; 8] = [
        &[1, 0, 0, 0],
        &[1],
        &unknown_flag,
        &probe_zero,
        &probe_with_more,
        &hello(RecordKind::Hello, &hello_of("raw")),
        &hello(RecordKind::Admit, &hello_of("raw")),
        &record(RecordKind::Ready, &[]),
    ];
    for (at, case) in cases.iter().enumerate() {
        let raw = join_at(&s, &[]).await;
        raw.say(case);
        soon(&format!("the end of link {at}"), raw.ended()).await;
    }
    assert_eq!(
        events.count(&["zlink.dispatch_error", "invalid_frame"]),
        cases.len(),
        "each leaves a record"
    );
    // What may be a call of a later protocol is refused, too.
    let raw = join_at(&s, &[]).await;
    raw.say(&[1, 99, 0, 0]);
    until("its record", || {
        events.count(&["zlink.dispatch_error", "invalid_frame"]) > cases.len()
    })
    .await;
    // Before it is admitted, a peer may say nothing but hello and ready.
    let call = hello(RecordKind::NodeSend, &note("", 1));
    for early in [
        call,
        record(RecordKind::Ready, &[]),
        record(RecordKind::Reply, &[0; 12]),
    ] {
        let raw = Raw::dial(&endpoint(&s), &hello_of("early")).await;
        raw.say(&early);
        raw.ended().await;
    }
    assert_eq!(desk.runs(), 0);
    assert_eq!(peer_state(&c, &rid_of(&s)), Some(PeerState::Ready));
    assert_eq!(who(&c).await, "s");
    assert!(s.status().is_ready());
}

/// REQ: NET-604, NET-603
#[tokio::test]
async fn the_client_of_one_channel_is_no_client_of_another() {
    let desk = Desk::new("s");
    let s = Host::builder().client_server(|c| c.serve(orders_server(desk.clone())).listen(ANY));
    let s = s.start().await.unwrap();
    let to = s
        .listener(zlink_runtime::ListenerKind::ClientServer, "orders")
        .unwrap()
        .endpoint
        .to_string();
    let c = Host::builder()
        .client_server(|c| c.client(STOCK).connect(&to))
        .start()
        .await
        .unwrap();
    let control = c.client_server("stock").unwrap();
    until("the refusal", || {
        control.intents()[0]
            .failure
            .as_ref()
            .is_some_and(|text| text.contains("Channel"))
    })
    .await;
    let end = failure(
        stock_client(&c)
            .ask(note("", 0))
            .timeout(Duration::from_millis(100))
            .await,
    );
    assert_eq!(end, (ErrorKind::DeadlineExceeded, Execution::NotExecuted));
    // Nor does a MeshNode get in, though it speaks the same protocol.
    let mesh = node("m", |mesh| mesh.connect(&to)).start().await.unwrap();
    let intent = || mesh.mesh("shop").unwrap().intents().remove(0).failure;
    until("the refusal", || intent().is_some_and(|text| text.contains("Topology"))).await;
    assert_eq!(desk.runs(), 0);
}

/// REQ: NET-701, NET-705, NET-606, CH-1003, ERR-706
#[tokio::test]
async fn a_server_cannot_call_its_clients() {
    let mut listener = Raw::listen("server").await;
    let c = Host::builder().client_server(|c| c.client(ORDERS).connect(listener.endpoint()));
    let c = c.start().await.unwrap();
    let hello = Hello {
        topology: Topology::ClientServer,
        scope: "orders".into(),
        role: ObjectRole::Unspecified,
        channels: vec![ChannelServer {
            name: "orders".into(),
            weight: 100,
        }],
        ..hello_of("server")
    };
    let events = Events::collect();
    let link = listener.accept().await;
    link.admit(&hello).await;
    let pending = spawn(orders_client(&c).ask(note("", 1)));
    let request = link.heard(RecordKind::ChannelRequest).await;
    // A reply to nothing, with and without a failure in it.
    let mut stray = record(RecordKind::Reply, &[0, 0, 0, 0]);
    stray.extend_from_slice(&0xdead_beef_u64.to_le_bytes());
    link.say(&stray);
    events.heard(&["unexpected_reply", "ProtocolError", "drop"]).await;
    assert!(link.is_open(), "it may be late, which is no fault");
    assert!(!pending.is_finished());
    // A request of its own: nobody answers, and the link ends.
    link.say(&request);
    link.ended().await;
    assert_eq!(events.count(&["zlink.dispatch_error", "invalid_frame"]), 1);
    assert_eq!(
        link.count(RecordKind::Reply),
        0,
        "nothing was handled, nothing was answered"
    );
    assert_eq!(
        failure(pending.await.unwrap()),
        (ErrorKind::Unavailable, Execution::Unknown)
    );
}

/// REQ: NET-703, ERR-204, ERR-603
#[tokio::test]
async fn a_process_that_only_serves_a_channel_cannot_call_it() {
    let desk = Desk::new("s");
    let s = Host::builder().client_server(|c| c.serve(orders_server(desk.clone())).listen(ANY));
    let s = s.start().await.unwrap();
    let nobody = (ErrorKind::NotConfigured, Execution::NotExecuted);
    assert_eq!(failure(orders_client(&s).ask(note("", 0)).await), nobody);
    assert_eq!(failure(orders_client(&s).tell(note("", 0)).await), nobody);
    settle().await;
    assert_eq!(desk.runs(), 0);
}

/// REQ: NET-704, NET-110
#[tokio::test]
async fn two_ways_to_one_server_are_one_candidate() {
    let desk = Desk::new("s");
    let s = Host::builder().client_server(|c| c.serve(orders_server(desk.clone())).listen(ANY));
    let s = s.start().await.unwrap();
    let port = s
        .listener(zlink_runtime::ListenerKind::ClientServer, "orders")
        .unwrap()
        .endpoint
        .port()
        .unwrap();
    let c = Host::builder().client_server(|c| {
        c.client(ORDERS)
            .connect(format!("tcp://127.0.0.1:{port}"))
            .connect(format!("tcp://localhost:{port}"))
    });
    let c = c.start().await.unwrap();
    let control = c.client_server("orders").unwrap();
    until("both intents", || {
        control.intents().iter().all(|intent| intent.state == PeerState::Ready)
    })
    .await;
    let status = control.status();
    assert_eq!(status.channels[0].1.len(), 1);
    assert_eq!(status.peers.len(), 1);
    for number in 0..4 {
        orders_client(&c).ask(note("", number)).await.unwrap();
    }
    assert_eq!(desk.numbers(), [0, 1, 2, 3]);
}

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
    let (rid, begin) = (rid_of(&a), tokio::time::Instant::now());
    a.shutdown().await.unwrap();
    until("its end", || {
        peer_state(&c, &rid) != Some(PeerState::Ready) && targets(&c).len() == 1
    })
    .await;
    assert!(begin.elapsed() < Duration::from_secs(5));
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
