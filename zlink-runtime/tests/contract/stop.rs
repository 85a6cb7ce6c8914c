//! What a stop waits for, and what it does not.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use zlink_generated::contract::{orders_client, orders_server};
use zlink_runtime::HostPhase;
use zlink_runtime::prelude::*;

use super::kit::*;

/// What nobody has taken yet is none of the work that a stop finishes: also where the application does not look at its
/// call, so that nobody can tell it.
///
/// REQ: MSG-104, NET-1007
#[tokio::test]
async fn a_call_that_waits_for_room_and_is_not_polled_holds_no_stop_up() {
    for way in WAYS {
        let (host, raw) = raw_server(way, |host| host.drain_timeout(Duration::from_secs(60))).await;
        raw.announce(1, true);
        let peers = || match way {
            Way::Mesh => host.mesh("shop").unwrap().status().peers,
            Way::ClientServer => host.client_server("orders").unwrap().status().peers,
        };
        until("the pause", || peers()[0].paused).await;
        let ask = orders_client(&host).ask(note("", 1)).timeout(Duration::from_secs(100));
        let mut ask = Box::pin(ask.into_future());
        let first = poll_fn(|cx| Poll::Ready(ask.as_mut().poll(cx))).await;
        assert!(first.is_pending());
        let tell = orders_client(&host).tell(note("", 2));
        let mut tell = Box::pin(tell.into_future());
        let first = poll_fn(|cx| Poll::Ready(tell.as_mut().poll(cx))).await;
        assert!(first.is_pending());
        soon("the stop", host.shutdown()).await.unwrap();
        let stopped = (ErrorKind::ShuttingDown, Execution::NotExecuted);
        assert_eq!(failure(soon("its end", ask).await), stopped, "{way:?}");
        assert_eq!(failure(soon("its end", tell).await), stopped, "{way:?}");
    }
}

/// What its server had taken before the stop began may still end with its reply: the links stay for it.
///
/// REQ: EX-104
#[tokio::test]
async fn a_call_under_way_gets_its_reply_while_its_host_drains() {
    for way in WAYS {
        let desk = Desk::new("s");
        let s = serving(way, orders_server(desk.clone()), |host| host).await;
        let c = calling(way, "c", &s, |host| host).await;
        let call = spawn(orders_client(&c).ask(note("hold", 1)));
        desk.reached(1).await;
        let stopping = c.clone();
        let stop = spawn(async move { stopping.shutdown().await });
        until("it to drain", || c.status().phase == HostPhase::Draining).await;
        settle().await;
        assert!(!stop.is_finished() && !call.is_finished());
        desk.gate().open();
        assert_eq!(soon("the reply", call).await.unwrap().unwrap().text, "s");
        soon("the stop", stop).await.unwrap().unwrap();
    }
}
