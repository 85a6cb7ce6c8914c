//! Chapter 12: a host that stands still says so.

use std::time::Duration;

use zlink_generated::contract::desk_client;

use super::kit::{Desk, Events, SHOP, at_rest, node, note, rid_of, spawn, until};

/// Full, and nothing has started for 5 s: a flag, and one warning with counts for as long as that lasts. Nothing is refused,
/// and with the first start it is over; the next stall is told of again.
///
/// REQ: OB-24
#[tokio::test(start_paused = true)]
async fn a_host_that_stalls_says_so_once() {
    const EVENT: &str = "zlink.runtime.host.saturation_stall";
    let events = Events::collect();
    let desk = Desk::new("s");
    let s = node("s", |mesh| mesh.serve_node(desk.node().dispatch_limit(1)))
        .max_queued_jobs(2)
        .start()
        .await
        .unwrap();
    let stalled = || s.status().jobs.stalled;
    let own = desk_client(&s, &SHOP, rid_of(&s));
    let sends: Vec<_> = (1..=5).map(|number| spawn(own.tell(note("hold", number)))).collect();
    desk.reached(1).await;
    until("both permits to be taken", || s.status().jobs.queued == 2).await;
    assert!(!stalled() && events.count(&[EVENT]) == 0, "it is only full");
    tokio::time::advance(Duration::from_millis(4900)).await;
    assert!(!stalled() && events.count(&[EVENT]) == 0);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(stalled());
    // Those who call from outside wait until the flow resumes, and for no permit before that.
    assert_eq!(
        events.count(&[EVENT, "limit=2", "reserved=0", "queued=2", "waiting_sources=0"]),
        1
    );
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(stalled() && events.count(&[EVENT]) == 1, "once");

    desk.gate().release(1);
    desk.reached(2).await;
    assert!(!stalled(), "one has started, and the next one waits");
    until("both permits to be taken", || s.status().jobs.queued == 2).await;
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert!(stalled() && events.count(&[EVENT]) == 2, "once more");

    desk.gate().open();
    at_rest(&[&s]).await;
    desk.reached(5).await;
    for send in sends {
        send.await.unwrap().unwrap();
    }
    assert!(!stalled() && desk.numbers() == [1, 2, 3, 4, 5]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(events.count(&[EVENT]), 2);
}
