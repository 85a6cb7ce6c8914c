//! Chapter 01, section 4: what a node is told of its sockets, per direction.

use zlink_generated::contract::orders_client;
use zlink_generated::contract::orders_server;

use super::kit::{Desk, Raw, client, endpoint, heavy, hello_of, node, note, send, settle, until};

/// How many bytes hosts hold that came from a peer and wait for permits: the most of several, each stopped elsewhere.
async fn held(receive_budget: Option<usize>) -> usize {
    let mut most = 0;
    for permits in [1500, 1531, 1562, 1593] {
        let desk = Desk::new("s");
        let limited = orders_server(desk.clone()).dispatch_limit(1);
        let configure = |mesh: zlink_runtime::MeshBuilder| match receive_budget {
            Some(bytes) => mesh.serve(limited).receive_budget(bytes),
            None => mesh.serve(limited),
        };
        // It asks for a pause only once it is full.
        let host = node("s", configure).max_queued_jobs(permits).pressure(100, 50);
        let s = host.start().await.unwrap();
        let raw = Raw::join(&endpoint(&s), &hello_of("raw")).await;
        let record = send("orders", "contract.orders.tell", &note("hold", 1));
        for _ in 0..5000 {
            raw.say(&record);
        }
        until("a full host", || s.status().jobs.in_use() == permits).await;
        settle().await;
        most = most.max(s.mesh("shop").unwrap().status().peers[0].waiting_bytes);
        desk.gate().open();
        desk.reached(5000).await;
    }
    most
}

/// What a link reads ahead is bounded by a setting of its own, whatever the permits; nothing of a greater message is lost.
///
/// REQ: NET-410
#[tokio::test]
async fn a_mesh_has_a_receive_budget_of_its_own() {
    let bounded = held(Some(4096)).await;
    assert!(bounded <= 4096 + 200, "{bounded}");
    let usual = held(None).await;
    assert!(usual > 4096 + 200 && usual <= 65_536 + 200, "{usual}");

    let desk = Desk::new("s");
    let server = orders_server(desk.clone());
    let s = node("s", |mesh| mesh.serve(server).receive_budget(4096))
        .start()
        .await
        .unwrap();
    let c = client("c", &[&s]).await;
    for bytes in [0, 4000, 17_000, 1 << 20] {
        orders_client(&c).tell(heavy(1, bytes)).await.unwrap();
    }
    desk.reached(4).await;
    let seen: Vec<_> = desk.seen().iter().map(|seen| seen.bytes).collect();
    assert_eq!(seen, [0, 4000, 17_000, 1 << 20]);
}
