//! Chapter 01, section 5: what becomes of links whose intents are released or changed.

use zlink_generated::contract::{ORDERS, orders_client, orders_server};
use zlink_generated::zlink_wire::{Hello, NodeState, RecordKind, RejectReason, Update};
use zlink_runtime::PeerState;
use zlink_runtime::id::Rid;
use zlink_runtime::prelude::*;

use crate::kit::{
    Desk, Raw, WAYS, Way, hello, hello_of, linked, node, note, peer_state, record, serving, settle, soon, spawn, until,
};

/// Nobody wants the link any more that a handshake under way would make.
///
/// REQ: NET-503
#[tokio::test]
async fn an_intent_that_is_released_makes_no_link() {
    let mut listener = Raw::listen("raw").await;
    let to = listener.endpoint();
    let a = node("a", |mesh| mesh.connect(&to)).start().await.unwrap();
    let raw = listener.accept().await;
    raw.heard(RecordKind::Hello).await;
    assert!(a.mesh("shop").unwrap().disconnect(&to).unwrap());
    // The peer has not heard of that yet.
    raw.say(&hello(RecordKind::Admit, &hello_of("raw")));
    raw.link().admit(64 << 20);
    raw.ended().await;
    settle().await;
    let state = peer_state(&a, &Rid::new("raw").unwrap());
    assert_ne!(state, Some(PeerState::Ready), "nobody wants it");
    assert_eq!(listener.waiting(), 0, "it is not dialled again");
}

/// The same where an intent takes its place that expects another peer there.
///
/// REQ: NET-503
#[tokio::test]
async fn an_intent_that_expects_another_peer_admits_none_that_was_dialled_before() {
    let mut listener = Raw::listen("raw").await;
    let to = listener.endpoint();
    let a = node("a", |mesh| mesh.connect(&to)).start().await.unwrap();
    let raw = listener.accept().await;
    raw.heard(RecordKind::Hello).await;
    let other = Rid::new("other").unwrap();
    a.mesh("shop").unwrap().connect(&to, Some(other)).unwrap();
    raw.say(&hello(RecordKind::Admit, &hello_of("raw")));
    raw.link().admit(64 << 20);
    raw.ended().await;
    settle().await;
    let state = peer_state(&a, &Rid::new("raw").unwrap());
    assert_ne!(state, Some(PeerState::Ready), "another peer is expected there");
}

/// One of two intents that lead to one peer is released: the other still wants the link, and calls go on.
///
/// REQ: NET-503, NET-704
#[tokio::test]
async fn a_link_stays_while_another_intent_leads_to_its_peer() {
    for way in WAYS {
        let desk = Desk::new("s");
        let s = serving(way, orders_server(desk.clone()), |host| host).await;
        let name = if way == Way::Mesh { "shop" } else { "orders" };
        let to = crate::kit::address_of(&s, name);
        let also = to.replace("127.0.0.1", "localhost");
        let c = match way {
            Way::Mesh => node("c", |mesh| mesh.client(ORDERS).connect(&to)),
            Way::ClientServer => Host::builder().client_server(|channel| channel.client(ORDERS).connect(&to)),
        };
        let c = c.start().await.unwrap();
        until("a server", || crate::kit::candidates(&c) == 1).await;
        let intents = || match way {
            Way::Mesh => c.mesh("shop").unwrap().intents(),
            Way::ClientServer => c.client_server("orders").unwrap().intents(),
        };
        match way {
            Way::Mesh => c.mesh("shop").unwrap().connect(&also, None),
            Way::ClientServer => c.client_server("orders").unwrap().connect(&also, None),
        }
        .unwrap();
        until("both to lead there", || {
            intents()
                .iter()
                .filter(|intent| intent.state == PeerState::Ready)
                .count()
                == 2
        })
        .await;
        let call = spawn(orders_client(&c).ask(note("hold", 1)));
        desk.reached(1).await;
        let released = match way {
            Way::Mesh => c.mesh("shop").unwrap().disconnect(&also),
            Way::ClientServer => c.client_server("orders").unwrap().disconnect(&also),
        };
        assert!(released.unwrap());
        settle().await;
        desk.gate().open();
        let reply = soon("the reply", call).await.unwrap();
        assert_eq!(
            reply.map(|reply| reply.number).map_err(|error| error.to_string()),
            Ok(1),
            "{way:?}"
        );
    }
}

/// What a run of the peer `raw` says of itself.
fn run(generation: u64) -> Hello {
    Hello {
        generation,
        ..hello_of("raw")
    }
}

/// A run of a peer that a later one replaced stays out, also once that one has left in order, and is forgotten.
///
/// REQ: NET-509, LS-025
#[tokio::test]
async fn a_run_that_was_replaced_stays_out_when_its_successor_has_left() {
    let a = node("a", |mesh| mesh).start().await.unwrap();
    let (at, raw) = (a.mesh("shop").unwrap().endpoint().to_string(), Rid::new("raw").unwrap());
    let first = Raw::join(&at, &run(8)).await;
    linked(&a, &raw).await;
    // Smaller, and later all the same.
    let second = Raw::join(&at, &run(7)).await;
    first.ended().await;
    second.round_trip().await;
    let drains = Update {
        revision: 2,
        state: NodeState::Draining,
        channels: Vec::new(),
        placement_weight: None,
    };
    second.say(&hello(RecordKind::Update, &drains));
    until("the drain", || peer_state(&a, &raw) == Some(PeerState::Draining)).await;
    second.link().close(
        zlink_runtime::transport::CloseReason::Local("it leaves"),
        std::time::Duration::from_secs(20),
    );
    until("the peer to be gone", || peer_state(&a, &raw).is_none()).await;

    let late = Raw::join(&at, &run(8)).await;
    let reason = soon("a verdict", late.rejected()).await;
    assert_eq!(reason, RejectReason::StaleGeneration);
}

/// The last words of a run that was killed may come after the next run was admitted: they change nothing, and the next run is
/// let in whenever it comes.
///
/// REQ: NET-509
#[tokio::test]
async fn a_run_that_is_heard_of_late_does_not_keep_its_successor_out() {
    let a = node("a", |mesh| mesh).start().await.unwrap();
    let (at, raw) = (a.mesh("shop").unwrap().endpoint().to_string(), Rid::new("raw").unwrap());
    let killed = Raw::dial(&at, &run(8)).await;
    killed.say(&hello(RecordKind::Hello, &run(8)));
    killed.heard(RecordKind::Admit).await;
    killed.link().admit(64 << 20);
    let second = Raw::join(&at, &run(7)).await;
    linked(&a, &raw).await;

    killed.say(&record(RecordKind::Ready, &[]));
    let reason = soon("a verdict", killed.rejected()).await;
    assert_eq!(reason, RejectReason::StaleGeneration);
    second.round_trip().await;
    second.leave();
    until("the link to be gone", || {
        peer_state(&a, &raw) == Some(PeerState::NotConnected)
    })
    .await;
    Raw::join(&at, &run(7)).await.round_trip().await;
    linked(&a, &raw).await;
}

/// A node is its own peer for calls to its RID, and so it is for who waits until there is one to call.
///
/// REQ: CH-207
#[tokio::test(start_paused = true)]
async fn a_node_need_not_wait_for_itself() {
    let a = node("a", |mesh| mesh.serve_node(Desk::new("a").node()))
        .start()
        .await
        .unwrap();
    let mesh = a.mesh("shop").unwrap();
    let there = mesh.linked(&mesh.rid(), std::time::Duration::from_secs(5)).await;
    assert!(there.is_ok(), "{there:?}");
    assert_eq!(crate::kit::who_at(&a, &mesh.rid()).await.unwrap(), "a");
}
