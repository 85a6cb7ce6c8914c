//! Calls on their way out: waits for servers, for room and for permits, their one deadline, and the own node as a target.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use zlink_generated::contract::{
    DeskHandler, Note, ORDERS, STOCK, desk_client, desk_server, orders_client, stock_client,
};
use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::id::Rid;
use zlink_runtime::prelude::*;

use super::kit::*;

/// A link that ends under a call is no reason not to wait for the next server.
///
/// REQ: CH-308, EX-96, ERR-603
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_server_request_that_nobody_took_waits_for_a_server() {
    for round in 0..15 {
        let mut listener = Raw::listen("raw").await;
        let endpoint = listener.endpoint();
        let c = Host::builder()
            .client_server(|channel| channel.client(ORDERS).connect(endpoint))
            .start()
            .await
            .unwrap();
        let raw = listener.accept().await;
        raw.admit(&hello_that_serves(Way::ClientServer)).await;
        until("the server to be known", || candidates(&c) == 1).await;
        let callers: Vec<_> = (0..8)
            .map(|_| {
                let orders = orders_client(&c);
                tokio::spawn(async move {
                    let mut ends = Vec::new();
                    let begin = Instant::now();
                    while begin.elapsed() < Duration::from_millis(40) {
                        let call = orders.ask(note("", 65)).timeout(Duration::from_millis(1)).await;
                        ends.push(failure(call));
                    }
                    ends
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(10)).await;
        raw.leave();
        for caller in callers {
            for end in caller.await.unwrap() {
                assert_ne!(
                    end,
                    (ErrorKind::Unavailable, Execution::NotExecuted),
                    "round {round}: it ended at once instead of waiting for a server"
                );
            }
        }
    }
}

/// REQ: EX-88, MSG-104
#[tokio::test]
async fn one_send_timeout_covers_the_wait_for_a_server_and_the_wait_for_room() {
    let mut listener = Raw::listen("raw").await;
    let endpoint = listener.endpoint();
    let c = Host::builder()
        .client_server(|channel| channel.client(ORDERS).connect(endpoint))
        .send_timeout(Duration::from_secs(3))
        .start()
        .await
        .unwrap();
    let raw = listener.accept().await;
    let begin = Instant::now();
    let orders = orders_client(&c);
    let watch = Stopwatch::start();
    let sending = tokio::spawn(async move { orders.tell(note("", 1)).await });
    until("a part of its time to pass", || {
        begin.elapsed() > Duration::from_secs(1)
    })
    .await;
    raw.announce(1, true);
    raw.admit(&hello_that_serves(Way::ClientServer)).await;
    until("the server to be known", || candidates(&c) == 1).await;
    let end = soon("the end", sending).await.unwrap();
    assert_eq!(failure(end), (ErrorKind::DeadlineExceeded, Execution::NotExecuted));
    assert!(
        !watch.is_past(Duration::from_millis(3800)),
        "3 s were configured, it took {:?}",
        begin.elapsed()
    );
}

/// REQ: CH-207, EX-12, EX-83, MSG-104
#[tokio::test]
async fn a_send_to_the_own_node_ends_at_the_send_timeout() {
    let desk = Desk::new("s");
    let s = node("s", |mesh| mesh.serve_node(desk.node().dispatch_limit(2)))
        .max_queued_jobs(1)
        .send_timeout(Duration::from_millis(200))
        .start()
        .await
        .unwrap();
    // Two turns that hold, one job in the queue: no permit is left.
    let direct = desk_client(&s, &SHOP, rid_of(&s));
    for number in 0..3 {
        soon("a send", direct.tell(note("hold", number))).await.unwrap();
    }
    desk.reached(2).await;
    let end = failure(soon("the send timeout", direct.tell(note("", 999))).await);
    assert_eq!(end, (ErrorKind::DeadlineExceeded, Execution::NotExecuted));
}

/// What its own node has taken is not called unsent, also where its time is up when its task looks at it next, at the end of a
/// long poll.
///
/// REQ: ERR-201, MSG-104, EX-83
#[tokio::test]
async fn a_call_that_got_room_in_its_time_is_not_called_unsent() {
    const TIME: Duration = Duration::from_millis(200);
    let desk = Desk::new("s");
    let s = node("s", |mesh| mesh.serve_node(desk.node().dispatch_limit(1)))
        .max_queued_jobs(1)
        .send_timeout(TIME)
        .start()
        .await
        .unwrap();
    let direct = desk_client(&s, &SHOP, rid_of(&s));
    let has_room = |started: usize| {
        let (desk, s) = (desk.clone(), s.clone());
        async move {
            desk.reached(started).await;
            until("the next job to wait", || s.status().jobs.queued == 1).await;
        }
    };
    // One runs, one waits: no permit is left.
    soon("a send", direct.tell(note("hold", 0))).await.unwrap();
    desk.reached(1).await;
    soon("a send", direct.tell(note("hold", 1))).await.unwrap();

    let begin = Instant::now();
    let mut sending = Box::pin(direct.tell(note("hold", 2)).into_future());
    let waiting = poll_fn(|cx| Poll::Ready(sending.as_mut().poll(cx))).await;
    assert!(waiting.is_pending());
    desk.gate().release(1);
    has_room(2).await;
    until("the end of its time", || begin.elapsed() > TIME * 2).await;
    let late = poll_fn(|cx| Poll::Ready(tired(cx, |cx| sending.as_mut().poll(cx)))).await;
    match late {
        Poll::Ready(ended) => ended.unwrap(),
        Poll::Pending => soon("the send", sending).await.unwrap(),
    }

    let begin = Instant::now();
    let mut asking = Box::pin(direct.ask(note("hold", 3)).timeout(TIME).into_future());
    let waiting = poll_fn(|cx| Poll::Ready(asking.as_mut().poll(cx))).await;
    assert!(waiting.is_pending());
    desk.gate().release(1);
    has_room(3).await;
    until("the end of its time", || begin.elapsed() > TIME * 2).await;
    let late = poll_fn(|cx| Poll::Ready(tired(cx, |cx| asking.as_mut().poll(cx)))).await;
    let late = match late {
        Poll::Ready(ended) => ended,
        Poll::Pending => soon("the request", asking).await,
    };
    assert_eq!(failure(late), (ErrorKind::DeadlineExceeded, Execution::Unknown));
    desk.gate().open();
    desk.reached(3).await;
}

/// Polls where tokio thinks that the task has done enough for now.
fn tired<T>(cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>) -> T) -> T {
    while let Poll::Ready(step) = tokio::task::coop::poll_proceed(cx) {
        step.made_progress();
    }
    poll(cx)
}

/// The own node is asked like any other.
///
/// REQ: CH-207, MSG-804
#[tokio::test]
async fn the_own_node_takes_no_larger_message_than_others() {
    let desk = Desk::new("s");
    let own = node("s", |mesh| mesh.serve_node(desk.node()).max_message(100_000));
    let own = own.start().await.unwrap();
    let direct = desk_client(&own, &SHOP, rid_of(&own));
    let end = direct.tell(heavy(1, 200_000)).await;
    assert!(end.is_err(), "another node refuses it before it is sent: {end:?}");
    let reply = direct.ask(note("weigh", 50_000)).await.unwrap();
    assert_eq!(reply.body.len(), 50_000);
    let end = failure(direct.ask(note("weigh", 200_000)).await);
    assert_eq!(end, (ErrorKind::InternalFailure, Execution::Unknown));
}

/// A send that its task has looked at once and not since holds nobody else up.
///
/// REQ: PM-35, PM-36, PM-60
#[tokio::test]
async fn a_local_send_that_is_not_polled_holds_nobody_up() {
    let desk = Desk::new("s");
    let s = node("s", |mesh| mesh.serve_node(desk.node().dispatch_limit(2)))
        .max_queued_jobs(1)
        .start()
        .await
        .unwrap();
    let c = node("c", |mesh| mesh.connect(endpoint(&s))).start().await.unwrap();
    linked(&c, &rid_of(&s)).await;
    let direct = desk_client(&s, &SHOP, rid_of(&s));
    for number in 0..3 {
        soon("a send", direct.tell(note("hold", number))).await.unwrap();
    }
    desk.reached(2).await;
    let mut kept = Box::pin(direct.tell(note("", 999)).into_future());
    let first = poll_fn(|cx| Poll::Ready(kept.as_mut().poll(cx))).await;
    assert!(first.is_pending());
    desk.gate().open();
    desk.reached(3).await;
    settle().await;
    let other = desk_client(&c, &SHOP, rid_of(&s)).ask(note("", 65)).timeout(SOON);
    let other = other.await;
    assert!(
        other.is_ok(),
        "another peer is not served: {other:?}; {:?}",
        s.status().jobs
    );
    drop(kept);
}

/// REQ: NET-1007, EX-82
#[tokio::test]
async fn a_request_that_waits_for_a_server_does_not_hold_a_shutdown_up() {
    let c = Host::builder()
        .client_server(|channel| {
            channel
                .client(ORDERS)
                .connect(format!("tcp://127.0.0.1:{}", free_port()))
        })
        .start()
        .await
        .unwrap();
    let waiting = spawn(orders_client(&c).ask(note("", 1)));
    settle().await;
    let watch = Stopwatch::start();
    let _ = soon("the stop of a host that does nothing", c.shutdown()).await;
    assert!(!watch.is_past(Duration::from_secs(5)));
    assert_eq!(failure(waiting.await.unwrap()).0, ErrorKind::ShuttingDown);
}

/// What was submitted to nobody ends with a stop, for whatever it waits, also where nobody polls it.
///
/// REQ: EX-82, EX-83, NET-1007
#[tokio::test]
async fn calls_that_were_not_submitted_end_with_a_stop() {
    let c = node("client", |mesh| mesh.client(ORDERS))
        .client_server(|channel| {
            channel
                .client(STOCK)
                .connect(format!("tcp://127.0.0.1:{}", free_port()))
        })
        .start()
        .await
        .unwrap();
    let raw = Raw::join(&endpoint(&c), &hello_that_serves(Way::Mesh)).await;
    linked(&c, &Rid::new("raw").unwrap()).await;
    raw.announce(1, true);
    let paused = || c.mesh("shop").unwrap().status().peers.iter().any(|peer| peer.paused);
    until("the pause", paused).await;
    let asking = spawn(orders_client(&c).ask(note("", 1)));
    let telling = spawn(orders_client(&c).tell(note("", 2)));
    let mut kept = Box::pin(stock_client(&c).ask(note("", 3)).into_future());
    let first = poll_fn(|cx| Poll::Ready(kept.as_mut().poll(cx))).await;
    assert!(first.is_pending());
    settle().await;
    soon("the stop", c.shutdown()).await.unwrap();
    let refused = (ErrorKind::ShuttingDown, Execution::NotExecuted);
    assert_eq!(failure(soon("the request", asking).await.unwrap()), refused);
    assert_eq!(failure(soon("the send", telling).await.unwrap()), refused);
    assert_eq!(failure(soon("what nobody polled", kept).await), refused);
}

/// Sends `number` messages to its own node.
#[derive(Clone)]
struct Selfish(Arc<AtomicUsize>, Arc<tokio::sync::Barrier>);

impl DeskHandler for Selfish {
    async fn ask(&self, context: &NodeContext<'_>, request: Note) -> Result<Note, HandlerError> {
        let own = desk_client(context, &SHOP, Rid::new("s").unwrap());
        if request.number > 0 {
            // All turns that there may be are under way.
            self.1.wait().await;
        }
        for number in 0..request.number {
            // A failure would be fine, and is what EX-83 promises after 5 s.
            let _ = own.tell(note("", number)).await;
        }
        Ok(request)
    }

    async fn tell(&self, _: &NodeContext<'_>, _: Note) -> Result<(), HandlerError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Handlers that send to their own node, all turns busy with it: the host must come back.
///
/// REQ: EX-83, EX-34
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_send_to_their_own_node_do_not_stop_it_for_good() {
    let selfish = Selfish(Arc::default(), Arc::new(tokio::sync::Barrier::new(256)));
    let s = node("s", |mesh| mesh.serve_node(desk_server(selfish.clone())))
        .max_queued_jobs(64)
        .start()
        .await
        .unwrap();
    let direct = desk_client(&s, &SHOP, rid_of(&s));
    let long = Duration::from_secs(60);
    let calls: Vec<_> = (0..256)
        .map(|_| spawn(direct.ask(note("", 65)).timeout(long)))
        .collect();
    for call in calls {
        let end = call.await.unwrap();
        assert!(end.is_ok(), "{end:?}; {:?}", s.status().jobs);
    }
    let probe = direct.ask(note("", 0)).timeout(SOON).await;
    assert!(probe.is_ok(), "{probe:?}; {:?}", s.status().jobs);
    assert!(selfish.0.load(Ordering::Relaxed) >= 64, "what was taken is handled");
}

/// A panic whose payload panics when it is dropped, with a payload that does so too.
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 > 0 {
            std::panic::panic_any(Bomb(self.0 - 1));
        }
    }
}

#[derive(Clone)]
struct Bomber;

impl DeskHandler for Bomber {
    async fn ask(&self, _: &NodeContext<'_>, request: Note) -> Result<Note, HandlerError> {
        if request.text == "bomb" {
            std::panic::panic_any(Bomb(u32::try_from(request.number).unwrap()));
        }
        Ok(request)
    }

    async fn tell(&self, _: &NodeContext<'_>, _: Note) -> Result<(), HandlerError> {
        Ok(())
    }
}

/// REQ: ERR-702
#[tokio::test]
async fn no_panic_of_a_handler_takes_a_worker_along() {
    let s = node("s", |mesh| mesh.serve_node(desk_server(Bomber)))
        .workers(1)
        .start()
        .await
        .unwrap();
    let direct = desk_client(&s, &SHOP, rid_of(&s));
    for depth in 0..4 {
        let end = direct.ask(note("bomb", depth)).timeout(SOON).await;
        assert_eq!(failure(end).0, ErrorKind::InternalFailure, "depth {depth}");
        let probe = direct.ask(note("", 0)).timeout(SOON).await;
        assert!(
            probe.is_ok(),
            "after a bomb of depth {depth} the host serves nobody: {probe:?}"
        );
    }
}
