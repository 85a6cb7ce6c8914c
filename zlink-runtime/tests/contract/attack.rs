//! Peers that mean harm, and moments in which two things happen at once.

use zlink_generated::contract::ORDERS;
use zlink_generated::zlink_wire::{NodeState, RecordKind, Update};
use zlink_runtime::id::Rid;
use zlink_runtime::rt;
use zlink_runtime::transport::Lane;

use super::kit::{Desk, Raw, endpoint, hello, hello_of, linked, node, record, server, settle, until};

/// A request that ends inside its names, which is answered with an error where it may come.
fn cut_request(correlation: u64) -> Vec<u8> {
    let mut whole = record(RecordKind::NodeRequest, &u32::MAX.to_le_bytes());
    whole.extend_from_slice(&correlation.to_le_bytes());
    whole.extend_from_slice(&[0; 8]);
    whole.push(200);
    whole
}

/// The completion lane is read without permits: whatever is answered there could be asked without an end.
///
/// REQ: PM-40, PM-100
#[tokio::test]
async fn a_malformed_request_on_the_completion_lane_ends_the_link() {
    let s = node("s", |mesh| mesh).start().await.unwrap();
    let raw = Raw::join(&endpoint(&s), &hello_of("raw")).await;
    linked(&s, &Rid::new("raw").unwrap()).await;
    raw.say_on(Lane::Completion, &cut_request(9)).unwrap();
    raw.ended().await;
    assert_eq!(raw.count(RecordKind::Reply), 0);
}

/// A peer that takes nothing and probes on and on makes nothing wait for it but one answer.
///
/// REQ: PM-100
#[tokio::test]
async fn probes_to_a_side_that_is_paused_are_answered_once() {
    let s = node("s", |mesh| mesh).start().await.unwrap();
    let raw = Raw::join(&endpoint(&s), &hello_of("raw")).await;
    linked(&s, &Rid::new("raw").unwrap()).await;
    raw.announce(1, true);
    settle().await;
    let probe = |id: u64| {
        let mut rest = vec![0; 4];
        rest.extend_from_slice(&id.to_le_bytes());
        record(RecordKind::Probe, &rest)
    };
    for _ in 0..500 {
        raw.push(probe(7)).await;
    }
    settle().await;
    let before = raw.count(RecordKind::ProbeAck);
    raw.announce(2, false);
    until("the answer that waited", || raw.count(RecordKind::ProbeAck) > before).await;
    settle().await;
    assert_eq!(raw.count(RecordKind::ProbeAck), before + 1);
    raw.push(probe(8)).await;
    until("the answer to the last", || {
        raw.count(RecordKind::ProbeAck) == before + 2
    })
    .await;
}

/// A peer that has asked to be sent no calls hears all the same what they would go by: the newest weight comes while it is
/// paused, and comes last.
///
/// REQ: NET-914, PM-44, NET-406
#[tokio::test]
async fn a_paused_peer_hears_of_changes() {
    let s = server("s", 100, &Desk::new("s")).await;
    let raw = Raw::join(&endpoint(&s), &hello_of("raw")).await;
    linked(&s, &Rid::new("raw").unwrap()).await;
    raw.announce(1, true);
    let mesh = s.mesh("shop").unwrap();
    until("the pause", || mesh.status().peers.iter().any(|peer| peer.paused)).await;
    for weight in (1..=500).rev() {
        mesh.set_weight(ORDERS, weight).unwrap();
        tokio::task::yield_now().await;
    }
    let mut last = 501;
    while last != 1 {
        let update = raw.heard(RecordKind::Update).await;
        let update = rt::decode::<Update>(&update[4..]).unwrap();
        let weight = update.channels[0].weight;
        assert!(weight < last, "{weight} after {last}");
        last = weight;
    }
    assert!(mesh.status().peers.iter().any(|peer| peer.paused));
    raw.announce(2, false);
    raw.round_trip().await;
    assert_eq!(raw.count(RecordKind::Update), 0, "the newest comes last");
}

/// A weight that changes between what a side says of itself and the end of the handshake still reaches the peer.
///
/// REQ: NET-605
#[tokio::test]
async fn a_change_during_a_handshake_is_not_lost() {
    let s = server("s", 100, &Desk::new("s")).await;
    let raw = Raw::dial(&endpoint(&s), &hello_of("raw")).await;
    raw.expect_admit(&hello(RecordKind::Hello, &hello_of("raw"))).await;
    s.mesh("shop").unwrap().set_weight(ORDERS, 7).unwrap();
    raw.link().admit(64 << 20);
    raw.say(&record(RecordKind::Ready, &[]));
    let told = raw.heard(RecordKind::Update).await;
    let told = rt::decode::<Update>(&told[4..]).unwrap();
    assert_eq!(told.state, NodeState::Serving);
    assert_eq!(told.channels.first().map(|channel| channel.weight), Some(7));
}

/// A host that was shut down dials nobody, whoever still holds it and asks it to.
///
/// REQ: NET-1007
#[tokio::test]
async fn a_stopped_host_takes_no_intent() {
    let listener = Raw::listen("s").await;
    let c = node("c", |mesh| mesh).start().await.unwrap();
    c.shutdown().await.unwrap();
    let refused = c.mesh("shop").unwrap().connect(&listener.endpoint(), None).unwrap_err();
    assert!(refused.to_string().contains("this host has stopped"), "{refused}");
    assert!(c.mesh("shop").unwrap().intents().is_empty());
    settle().await;
    assert_eq!(listener.waiting(), 0);
}
