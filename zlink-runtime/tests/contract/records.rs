//! Chapter 04: what has nobody to be told to is recorded, and done no other thing with.

use zlink_generated::contract::desk_client;
use zlink_generated::zlink_wire::{Hello, RecordKind};
use zlink_runtime::PeerState;
use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::id::Rid;

use crate::kit::{
    Desk, Events, Raw, SHOP, at_rest, client, endpoint, failure, hello_of, linked, note, peer_state, send, server,
    settle, soon, spawn, until,
};

/// REQ: ERR-307, ERR-301, MSG-104
#[tokio::test]
async fn a_send_that_waits_keeps_its_target() {
    let c = client("c", &[]).await;
    let rid = Rid::new("raw").unwrap();
    let raw = Raw::join(&endpoint(&c), &hello_of("raw")).await;
    raw.announce(1, true);
    until("the pause", || {
        c.mesh("shop").unwrap().status().peers.iter().any(|peer| peer.paused)
    })
    .await;
    let waiting = spawn(desk_client(&c, &SHOP, rid.clone()).tell(note("", 1)));
    settle().await;
    assert!(!waiting.is_finished());
    raw.leave();
    let lost = failure(soon("its end", waiting).await.unwrap());
    assert_eq!(lost, (ErrorKind::Unavailable, Execution::NotExecuted));
    let later = Hello {
        generation: 8,
        ..hello_of("raw")
    };
    let again = Raw::join(&endpoint(&c), &later).await;
    linked(&c, &rid).await;
    desk_client(&c, &SHOP, rid).tell(note("", 2)).await.unwrap();
    again.heard(RecordKind::NodeSend).await;
    settle().await;
    assert_eq!(again.count(RecordKind::NodeSend), 0, "it does not come later");
}

/// REQ: ERR-705, ERR-901
#[tokio::test]
async fn an_answer_without_a_way_back_is_recorded() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let raw = Raw::join(&endpoint(&s), &hello_of("raw")).await;
    let events = Events::collect();
    raw.ask(1, "orders", "contract.orders.ask", &note("hold", 1));
    desk.reached(1).await;
    raw.leave();
    let rid = Rid::new("raw").unwrap();
    until("the end of the link", || peer_state(&s, &rid) != Some(PeerState::Ready)).await;
    desk.gate().open();
    events
        .heard(&["zlink.dispatch_error", "reply_path_missing", "action=drop"])
        .await;
    assert_eq!(desk.ended(), [1]);
}

/// REQ: ERR-908, ERR-306, MSG-901, MSG-902
#[tokio::test]
async fn a_malformed_send_leaves_a_record_and_nothing_else() {
    let desk = Desk::new("s");
    let s = server("s", 100, &desk).await;
    let raw = Raw::join(&endpoint(&s), &hello_of("raw")).await;
    let events = Events::collect();
    let whole = send("orders", "contract.orders.tell", &note("", 1));
    raw.say(&whole[..whole.len() - 5]);
    until("its record", || {
        events.count(&["zlink.dispatch_error", "decode_error", "drop"]) == 1
    })
    .await;
    let mut flagged = whole.clone();
    flagged[2] = 0x40;
    raw.say(&flagged);
    until("its record", || {
        events.count(&["zlink.dispatch_error", "invalid_frame", "drop"]) == 1
    })
    .await;
    raw.say(&whole);
    desk.reached(1).await;
    assert_eq!(raw.count(RecordKind::Reply), 0, "nobody is told");
    at_rest(&[&s]).await;
}
