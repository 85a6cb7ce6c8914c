//! Sections 1 and 2: bytes in links and jobs in the host are two authorities, set apart, shown apart, counted apart.

use std::sync::Arc;

use parking_lot::Mutex;
use zlink_generated::contract::{
    Brief, Note, ORDERS, OrdersHandler, STOCK, orders_client, orders_server, stock_server,
};
use zlink_runtime::prelude::*;
use zlink_runtime::transport::LinkProfile;
use zlink_runtime::{Host, JobProfile, LinksStatus};

use super::watching::Watching;
use crate::kit::{
    ANY, Craft, Desk, Way, at_rest, calling, endpoint, heavy, linked, node, note, raw_client, rid_of, settle, soon,
    spawn, until,
};

fn links(host: &Host) -> LinksStatus {
    host.mesh("shop").unwrap().status().links
}

/// REQ: PM-01, PM-10, OB-22
#[tokio::test]
async fn bytes_and_jobs_are_set_and_shown_apart() {
    let shown = async |host: zlink_runtime::HostBuilder| {
        let host = host.start().await.unwrap();
        let status = host.status();
        (
            status.jobs.profile,
            status.jobs.limit,
            status.link_profile,
            links(&host).budget,
        )
    };
    let host = || node("s", |mesh| mesh);
    let (jobs, bytes) = (Some(JobProfile::Balanced), LinkProfile::Balanced);
    assert_eq!(shown(host()).await, (jobs, 4_096, bytes, 4 << 20));
    let throughput = host().job_profile(JobProfile::Throughput);
    assert_eq!(
        shown(throughput).await,
        (Some(JobProfile::Throughput), 16_384, bytes, 4 << 20)
    );
    let throughput = host().link_profile(LinkProfile::Throughput);
    assert_eq!(
        shown(throughput).await,
        (jobs, 4_096, LinkProfile::Throughput, 16 << 20)
    );
    let compact = host().link_profile(LinkProfile::Compact).max_queued_jobs(7);
    assert_eq!(shown(compact).await, (None, 7, LinkProfile::Compact, 1 << 20));
    let low = host().link_profile(LinkProfile::LowLatency);
    assert_eq!(shown(low).await, (jobs, 4_096, LinkProfile::LowLatency, 512 << 10));
}

/// Whatever was set reaches the transport as it is, for every socket and however many peers there are.
///
/// REQ: PM-11
#[tokio::test]
async fn the_transport_is_told_what_was_set() {
    let transport = Watching::default();
    let s = node("s", |mesh| mesh.serve(orders_server(Desk::new("s"))))
        .mesh("depot", |mesh| mesh.listen(ANY).rid("s").link_budget(123_457))
        .client_server(|channel| channel.serve(stock_server(Desk::new("s"))).listen(ANY))
        .link_profile(LinkProfile::Compact)
        .transport(transport.clone());
    let s = s.start().await.unwrap();
    assert_eq!(transport.budgets(), [123_457, 1 << 20, 1 << 20]);
    for number in 0..5 {
        let c = node(&format!("c{number}"), |mesh| mesh.client(ORDERS).connect(endpoint(&s)));
        let c = c.transport(transport.clone()).start().await.unwrap();
        linked(&c, &rid_of(&s)).await;
    }
    let mut budgets = transport.budgets();
    budgets.dedup();
    // Five clients listen, with the default, and dial, with the same.
    assert_eq!(budgets, [123_457, 1 << 20, 4 << 20]);
    assert_eq!(transport.budgets().len(), 3 + 10);
}

/// A handler that keeps what it was sent.
#[derive(Clone, Default)]
struct Keeping(Arc<Mutex<Vec<Note>>>);

impl OrdersHandler for Keeping {
    async fn ask(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        Ok(request)
    }

    async fn hurry(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        Ok(request)
    }

    async fn brief(&self, _: &ChannelContext<'_>, request: Brief) -> Result<Brief, HandlerError> {
        Ok(request)
    }

    async fn tell(&self, _: &ChannelContext<'_>, message: Note) -> Result<(), HandlerError> {
        self.0.lock().push(message);
        Ok(())
    }
}

/// What was received belongs to its handler: whoever keeps it holds neither bytes of a link nor a permit.
///
/// REQ: PM-04, PM-03
#[tokio::test]
async fn a_message_that_is_kept_holds_up_nobody() {
    let keeping = Keeping::default();
    let s = node("s", |mesh| {
        mesh.serve(orders_server(keeping.clone())).link_budget(1 << 20)
    });
    let s = s.max_queued_jobs(2).start().await.unwrap();
    let c = calling(Way::Mesh, "c", &s, |host| host).await;
    for number in 0..20 {
        soon("a send", orders_client(&c).tell(heavy(number, 500_000)))
            .await
            .unwrap();
    }
    until("all of it to be kept", || keeping.0.lock().len() == 20).await;
    assert!(keeping.0.lock().iter().all(|kept| kept.body.len() == 500_000));
    until("nothing to be held", || {
        (links(&s).waiting_bytes, s.status().jobs.in_use()) == (0, 0)
    })
    .await;
    soon("the next", orders_client(&c).ask(note("", 1))).await.unwrap();
    at_rest(&[&s, &c]).await;
}

/// What is on its way when a host pauses its peers still comes, as far as there are permits; then it stays where it is.
///
/// REQ: PM-02, PM-05, PM-91
#[tokio::test]
async fn a_pause_is_followed_by_what_was_on_its_way() {
    let desk = Desk::new("s");
    let s = node("s", |mesh| mesh.serve(orders_server(desk.clone()).dispatch_limit(1)));
    let s = s.max_queued_jobs(100).pressure(50, 10).start().await.unwrap();
    let before = links(&s).budget;
    let raw = raw_client(Way::Mesh, "raw", &s).await;
    for number in 0..300 {
        let call = Craft::send("orders", "contract.orders.tell").message(&note("hold", number));
        raw.say(&call.record());
    }
    until("the pause", || raw.link().held().by_peer).await;
    until("all permits to be in use", || s.status().jobs.in_use() == 100).await;
    settle().await;
    let jobs = s.status().jobs;
    assert_eq!((jobs.in_use(), jobs.paused, jobs.transitions), (100, true, 1));
    assert_eq!(links(&s).budget, before, "no limit of a link has changed");
    assert_eq!(s.mesh("shop").unwrap().status().pauses_peers, Some(true));
    desk.gate().open();
    desk.reached(300).await;
    assert!(desk.numbers().into_iter().eq(0..300));
    at_rest(&[&s]).await;
    until("the end of the pause", || !raw.link().held().by_peer).await;
}

/// How long a message may be is a question of its own: one that no budget has room for passes, alone, and one that is too
/// long is refused where there is room.
///
/// REQ: PM-99, MSG-804
#[tokio::test]
async fn the_length_of_a_message_has_a_bound_of_its_own() {
    let desk = Desk::new("s");
    let s = node("s", |mesh| {
        mesh.serve(orders_server(desk.clone()))
            .link_budget(10_000)
            .max_message(200_000)
    });
    let s = s.max_queued_jobs(1).start().await.unwrap();
    let c = node("c", |mesh| {
        mesh.client(ORDERS).connect(endpoint(&s)).link_budget(10_000)
    });
    let c = c.start().await.unwrap();
    linked(&c, &rid_of(&s)).await;
    soon("one of 150 kB", orders_client(&c).tell(heavy(1, 150_000)))
        .await
        .unwrap();
    desk.reached(1).await;
    let end = orders_client(&c).tell(heavy(2, 200_001)).await;
    assert!(end.is_err(), "{end:?}");
    soon("the next", orders_client(&c).ask(note("", 3))).await.unwrap();
    assert_eq!(desk.numbers(), [1, 3]);
}

/// Status says for every topology whether its peers are told to hold requests back, and that a client has none.
///
/// REQ: PM-82, OB-21
#[tokio::test]
async fn a_client_tells_nobody_to_pause() {
    let desk = Desk::new("s");
    let s = node("s", |mesh| mesh.serve(orders_server(desk.clone()).dispatch_limit(1)))
        .client_server(|channel| channel.serve(stock_server(desk.clone())).listen(ANY));
    let s = s.max_queued_jobs(1).start().await.unwrap();
    let to = s.listener(zlink_runtime::ListenerKind::ClientServer, "stock").unwrap();
    let c = node("c", |mesh| mesh.client(ORDERS).connect(endpoint(&s)));
    let to = to.endpoint.to_string();
    let c = c.client_server(|channel| channel.client(STOCK).connect(to));
    let c = c.start().await.unwrap();
    linked(&c, &rid_of(&s)).await;
    let told = |host: &Host| {
        (
            host.mesh("shop").unwrap().status().pauses_peers,
            host.client_server("stock").unwrap().status().pauses_peers,
        )
    };
    assert_eq!((told(&s), told(&c)), ((Some(false), Some(false)), (Some(false), None)));
    let sends: Vec<_> = (0..3)
        .map(|number| spawn(orders_client(&c).tell(note("hold", number))))
        .collect();
    until("the pause of both", || told(&s) == (Some(true), Some(true))).await;
    assert_eq!(told(&c), (Some(false), None));
    desk.gate().open();
    for send in sends {
        soon("a send", send).await.unwrap().unwrap();
    }
    until("the end of the pause", || told(&s) == (Some(false), Some(false))).await;
}
