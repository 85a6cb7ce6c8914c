//! Writes whose answers are lost, or that land late: what the store holds in the end.

use zlink_generated::contract::STOCK;
use zlink_runtime::location::MemoryStore;

use crate::kit::line::Mode;
use crate::kit::{Line, OF_HOSTS, SHORT, admits, ask, caller, keys, peers, selects, server, until};

/// REQ: LS-100
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_write_may_lose_its_first_answer() {
    survives(Mode::LosesAnswers).await;
}

/// REQ: LS-100
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_write_may_land_after_its_answer_was_given_up() {
    survives(Mode::DelaysWrites).await;
}

/// Starts, renews, changes and stops a host whose every write goes wrong once.
async fn survives(mode: Mode) {
    let store = MemoryStore::new();
    let c = caller(store.clone(), "a").location_timing(SHORT).start().await.unwrap();
    let of_caller = keys(&store, OF_HOSTS).await;
    let line = Line::new(&store);
    line.set(mode);
    let s = server(line.clone(), "s").location_timing(SHORT).start().await.unwrap();
    selects(&c, &["s"]).await;
    assert_eq!(ask(&c).await.unwrap(), "s");
    let there = keys(&store, OF_HOSTS).await;
    assert_eq!(there.len(), of_caller.len() + 2, "one lease, one descriptor: {there:?}");

    let before = line.counts().lost;
    let at = line.clone();
    until("five renewals", move || at.counts().lost >= before + 5).await;
    let mesh = s.mesh("shop").unwrap();
    for weight in [0, 100, 0, 100] {
        mesh.set_weight(STOCK, weight).unwrap();
        let expected: &[&str] = if weight == 0 { &[] } else { &["s"] };
        selects(&c, expected).await;
    }
    let at = line.clone();
    let before = line.counts().lost;
    until("the changes to be stored", move || at.counts().lost >= before + 2).await;
    assert_eq!(keys(&store, OF_HOSTS).await, there);
    assert!(admits(&s), "it never lost its lease");
    assert!(line.counts().writes > line.counts().lost, "each was repeated");

    s.shutdown().await.unwrap();
    assert_eq!(keys(&store, OF_HOSTS).await, of_caller);
    let at = c.clone();
    until("nobody to be listed", move || peers(&at).is_empty()).await;
}
