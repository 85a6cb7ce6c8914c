//! PM-64: sends that handlers await to their own host, while everything else in it waits for those handlers.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use zlink_generated::contract::{Brief, Note, OrdersHandler, desk_client, orders_server};
use zlink_runtime::error::ErrorKind;
use zlink_runtime::prelude::*;

use crate::kit::{Craft, Desk, SHOP, Way, at_rest, failure, node, note, raw_client, until, until_within};

/// Sends `number` messages to its own node, one after the other, and remembers what did not arrive.
#[derive(Clone, Default)]
struct Sending {
    failed: Arc<Mutex<Vec<ErrorKind>>>,
    ended: Arc<Mutex<u32>>,
}

impl OrdersHandler for Sending {
    async fn ask(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        Ok(request)
    }

    async fn hurry(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        Ok(request)
    }

    async fn brief(&self, _: &ChannelContext<'_>, request: Brief) -> Result<Brief, HandlerError> {
        Ok(request)
    }

    async fn tell(&self, context: &ChannelContext<'_>, message: Note) -> Result<(), HandlerError> {
        let own = desk_client(context, &SHOP, Rid::new("s").expect("a name"));
        for number in 0..message.number {
            let end = own.tell(note("", number)).await;
            if end.is_err() {
                self.failed.lock().push(failure(end).0);
            }
        }
        *self.ended.lock() += 1;
        Ok(())
    }
}

/// A host whose only handler has `flood` messages waiting, each of which makes it send `each` to its node.
async fn busy(jobs: u32, flood: u64, each: u64) -> (Sending, Desk, Host, crate::kit::Raw) {
    let (sending, desk) = (Sending::default(), Desk::new("s"));
    let s = node("s", |mesh| {
        mesh.serve(orders_server(sending.clone()).dispatch_limit(1))
            .serve_node(desk.node().dispatch_limit(1))
            .send_timeout(Duration::from_millis(300))
    });
    let s = s.max_queued_jobs(jobs).start().await.unwrap();
    let raw = raw_client(Way::Mesh, "raw", &s).await;
    for _ in 0..flood {
        let call = Craft::send("orders", "contract.orders.tell").message(&note("", each));
        raw.say(&call.record());
    }
    (sending, desk, s, raw)
}

/// Its own flood holds every permit that others may have. One in eight is kept for what it sends, and that goes on.
///
/// REQ: PM-64, PM-60, EX-34
#[tokio::test]
async fn a_busy_handler_that_sends_to_its_own_node_goes_on() {
    for jobs in [8, 64] {
        let flood = u64::from(2 * jobs);
        let (sending, desk, s, _raw) = busy(jobs, flood, 100).await;
        let status = || s.status().jobs;
        assert_eq!((status().limit, status().reserve), (jobs, jobs / 8));
        let all = || {
            assert!(status().in_use() <= jobs && !status().stalled);
            u64::from(*sending.ended.lock()) == flood
        };
        until_within(Duration::from_secs(20), "the whole flood", all).await;
        assert_eq!(*sending.failed.lock(), [], "with {jobs}");
        until("all that was sent", || desk.runs() as u64 == flood * 100).await;
        at_rest(&[&s]).await;
    }
}

/// Below eight permits none is kept, and where a handler's own flood holds them all, what it sends ends at its deadline.
///
/// REQ: PM-64, EX-83, PM-96
#[tokio::test]
async fn below_eight_permits_the_deadline_is_left() {
    let (sending, desk, s, _raw) = busy(7, 20, 1).await;
    assert_eq!(s.status().jobs.reserve, 0);
    until("the whole flood", || *sending.ended.lock() == 20).await;
    let failed = sending.failed.lock().clone();
    assert!(
        !failed.is_empty() && failed.iter().all(|kind| *kind == ErrorKind::DeadlineExceeded),
        "{failed:?}"
    );
    until("the others", || desk.runs() + failed.len() == 20).await;
    at_rest(&[&s]).await;
}
