//! Chapter 01, section 6: what a peer says before and while it is linked, and what it must not say.

use zlink_generated::zlink_wire::{
    ChannelServer, Hello, NodeState, ObjectRole, Operation, RecordKind, Reject, RejectReason, Topology, Update,
};
use zlink_runtime::id::Rid;
use zlink_runtime::{HostPhase, PeerState, TopologyPhase};

use super::{join_at, targets};
use crate::kit::{
    Desk, Events, Raw, client, endpoint, hello, hello_of, linked, node, note, peer_state, record, rid_of, server,
    settle, soon, until, who,
};

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
    let operation = |channel: &str, packet: &str| Operation {
        channel: channel.into(),
        packet: packet.into(),
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
        (
            RejectReason::InvalidDescriptor,
            Box::new(|hello| hello.operations = vec![operation("a", "p"), operation("", "p"), operation("a", "p")]),
        ),
        (
            RejectReason::InvalidDescriptor,
            Box::new(|hello| hello.operations = vec![operation("a", "")]),
        ),
        (
            RejectReason::ResourceLimit,
            Box::new(|hello| hello.channels = (0..4097).map(|at| channel(&at.to_string(), 1)).collect()),
        ),
        (
            RejectReason::ResourceLimit,
            Box::new(|hello| hello.operations = (0..16_385).map(|at| operation("", &at.to_string())).collect()),
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

/// REQ: NET-108, NET-605, NET-406, CH-302, LS-052
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
                placement_weight: None,
            },
        )
    };
    let placed = |revision, weight| {
        hello(
            RecordKind::Update,
            &Update {
                revision,
                state: NodeState::Draining,
                channels: weighted(7),
                placement_weight: Some(weight),
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
        placed(5, 10_001),
        placed(4, 1),
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

/// REQ: NET-902, NET-907
#[tokio::test]
async fn a_probe_comes_back_and_goes_no_further() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let raw = join_at(&s, &[]).await;
    let probe = |kind, id: u64| record(kind, &[&[0; 4][..], &id.to_le_bytes()].concat());
    let events = Events::collect();
    for id in [1, u64::MAX] {
        raw.say(&probe(RecordKind::Probe, id));
        assert_eq!(raw.heard(RecordKind::ProbeAck).await, probe(RecordKind::ProbeAck, id));
    }
    // An answer to nothing, or to what was answered already, means nothing.
    raw.say(&probe(RecordKind::ProbeAck, 77));
    raw.say(&probe(RecordKind::ProbeAck, 77));
    raw.ask(1, "", "contract.orders.ask", &note("", 1));
    assert_eq!(raw.reply().await.failed, None);
    assert_eq!(desk.runs(), 1);
    assert_eq!(events.count(&["dispatch_error"]), 0);
    until("their permits", || s.status().jobs.in_use() == 0).await;
}
