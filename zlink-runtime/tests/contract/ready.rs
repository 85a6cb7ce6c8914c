//! Waiting until there is somebody to call, and the watchdog.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use zlink_generated::contract::{Brief, Note, ORDERS, OrdersHandler, STOCK, orders_client, orders_server};
use zlink_runtime::error::{ErrorKind, Execution, HandlerError};
use zlink_runtime::id::Rid;
use zlink_runtime::prelude::*;

use super::kit::{ANY, Desk, Events, SOON, client, endpoint, failure, node, note, rid_of, server, soon, spawn, until};

const BRIEFLY: Duration = Duration::from_millis(20);

/// REQ: NET-1002, CH-308, EX-84
#[tokio::test]
async fn whoever_must_not_begin_alone_waits_until_there_are_servers() {
    let (a, b) = (
        server("a", 100, &Desk::new("a")).await,
        server("b", 100, &Desk::new("b")).await,
    );
    let c = node("c", |mesh| mesh.client(ORDERS).connect(endpoint(&a)))
        .start()
        .await
        .unwrap();
    let mesh = c.mesh("shop").unwrap();
    mesh.ready(ORDERS, 1, SOON).await.unwrap();
    orders_client(&c)
        .ask(note("", 0))
        .await
        .expect("there is a server, so the call is not refused");
    let alone = mesh.ready(ORDERS, 2, BRIEFLY).await;
    let Err(CallError::Failed(error)) = alone else {
        panic!("{alone:?}")
    };
    assert_eq!(
        (error.kind(), error.execution()),
        (ErrorKind::DeadlineExceeded, Execution::NotExecuted)
    );
    assert!(error.message().contains("1 of 2 servers"), "{error}");

    let waiting = c.clone();
    let both = spawn(async move { waiting.mesh("shop").unwrap().ready(ORDERS, 2, SOON).await });
    mesh.connect(&endpoint(&b), None).unwrap();
    soon("both", both).await.unwrap().unwrap();
    let stranger = mesh.ready(STOCK, 1, SOON).await.unwrap_err();
    assert_eq!(stranger.kind(), Some(ErrorKind::NotFound));
    assert!(stranger.to_string().contains("add client(…)"), "{stranger}");
    // The wait is always finite.
    let most = Duration::from_millis(i32::MAX.unsigned_abs().into());
    for endless in [Duration::ZERO, most + Duration::from_nanos(1), Duration::MAX] {
        let refused = mesh.ready(ORDERS, 1, endless).await;
        assert!(
            matches!(refused, Err(CallError::Argument(_))),
            "{endless:?}: {refused:?}"
        );
        let refused = mesh.linked(&rid_of(&b), endless).await;
        assert!(
            matches!(refused, Err(CallError::Argument(_))),
            "{endless:?}: {refused:?}"
        );
    }
    for finite in [Duration::from_nanos(1), most] {
        mesh.ready(ORDERS, 1, finite).await.unwrap();
    }
    mesh.linked(&rid_of(&b), SOON).await.unwrap();
    let nobody = Rid::new("nobody").unwrap();
    assert_eq!(
        failure(mesh.linked(&nobody, BRIEFLY).await).0,
        ErrorKind::DeadlineExceeded
    );

    let waiting = c.clone();
    let never = spawn(async move { waiting.mesh("shop").unwrap().ready(ORDERS, 3, SOON).await });
    tokio::task::yield_now().await;
    c.shutdown().await.unwrap();
    assert_eq!(
        failure(soon("the stop", never).await.unwrap()).0,
        ErrorKind::ShuttingDown
    );
}

/// REQ: NET-1002, CH-308
#[tokio::test]
async fn a_channel_is_ready_with_its_own_server_or_says_what_hinders() {
    let both = Host::builder()
        .client_server(|channel| channel.serve(orders_server(Desk::new("own"))).client(ORDERS))
        .start()
        .await
        .unwrap();
    both.client_server(ORDERS).unwrap().ready(1, SOON).await.unwrap();
    let serves = Host::builder()
        .client_server(|channel| channel.serve(orders_server(Desk::new("s"))).listen(ANY))
        .start()
        .await
        .unwrap();
    let only_serves = serves.client_server(ORDERS).unwrap().ready(1, SOON).await;
    assert_eq!(failure(only_serves).0, ErrorKind::NotConfigured);
    let nobody = format!("tcp://127.0.0.1:{}", super::kit::free_port());
    let lost = Host::builder()
        .client_server(|channel| channel.client(ORDERS).connect(&nobody))
        .start()
        .await
        .unwrap();
    let control = lost.client_server(ORDERS).unwrap();
    until("the first failure", || control.intents()[0].failure.is_some()).await;
    let Err(CallError::Failed(error)) = control.ready(1, BRIEFLY).await else {
        panic!("it is ready")
    };
    assert!(error.message().contains(&nobody), "{error}");
}

/// Blocks its thread until it is let go.
struct Blocking(Arc<AtomicBool>);

impl OrdersHandler for Blocking {
    async fn ask(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        let begin = std::time::Instant::now();
        while !self.0.load(Ordering::Acquire) && begin.elapsed() < SOON {
            std::thread::yield_now();
        }
        Ok(request)
    }

    async fn hurry(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        tokio::task::yield_now().await;
        Ok(request)
    }

    async fn brief(&self, _: &ChannelContext<'_>, request: Brief) -> Result<Brief, HandlerError> {
        Ok(request)
    }

    async fn tell(&self, _: &ChannelContext<'_>, _: Note) -> Result<(), HandlerError> {
        std::future::pending().await
    }
}

/// The watchdogs of this process.
fn watchdogs() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let names = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "zlink-watchdog").count()
}

/// A handler that blocks its thread is named, once, and one that only waits is not; the thread that looks ends with its
/// host.
#[test]
fn a_handler_that_blocks_its_thread_is_named() {
    let release = Arc::new(AtomicBool::new(false));
    let events = Events::collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let heard = events.heard(&["handler_blocks"]);
    let letting_go = release.clone();
    // The one thread of the runtime is blocked: somebody else has to look, and to let it go.
    let looking = std::thread::spawn(move || {
        let looks = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        looks.block_on(async {
            heard.await;
            // It looks again meanwhile, and has nothing new to say.
            let since = Instant::now();
            until("two looks more", || since.elapsed() > Duration::from_millis(600)).await;
        });
        letting_go.store(true, Ordering::Release);
    });
    runtime.block_on(async {
        let serving = orders_server(Blocking(release.clone()));
        let s = node("s", |mesh| mesh.serve(serving))
            .watchdog(Duration::from_millis(500))
            .start()
            .await
            .unwrap();
        let c = client("c", &[&s]).await;
        orders_client(&c)
            .tell(note("waits for ever, and blocks nothing", 1))
            .await
            .unwrap();
        orders_client(&c).hurry(note("", 2)).await.unwrap();
        orders_client(&c).ask(note("", 3)).await.unwrap();
        assert_eq!(watchdogs(), 1);
        drop(s);
        until("its thread to end", || watchdogs() == 0).await;
    });
    looking.join().unwrap();
    assert_eq!(
        events.count(&[
            "handler_blocks",
            "operation=request contract.orders.ask of channel orders",
            "elapsed_ms="
        ]),
        1
    );
    assert_eq!(events.count(&["handler_blocks"]), 1, "and nothing else is");
}
