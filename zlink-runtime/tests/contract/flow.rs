//! What is told of a message's way to whoever traces: one flow through all hops, and each boundary that it passes.

use std::sync::Arc;

use parking_lot::Mutex;
use zlink_generated::contract::{
    Brief, Note, ORDERS, OrdersHandler, STOCK, orders_client, orders_server, stock_client, stock_server,
};
use zlink_generated::zlink_wire::RecordKind;
use zlink_runtime::error::ErrorKind;
use zlink_runtime::id::Rid;
use zlink_runtime::prelude::*;
use zlink_runtime::rt::ChannelServer;
use zlink_runtime::{FlowContext, FlowOrigin};

use super::kit::{
    ANY, Craft, Desk, Events, Raw, WAYS, Way, address, answer, at_rest, calling, candidates, client, endpoint, failure,
    heavy, hello_of, linked, node, note, raw_client, raw_server, rid_of, serving, spawn, until,
};

/// The flag of a record that brings a flow.
const FLOW: u16 = 4;

/// Asks the stock: itself, in a task that belongs to its flow, and in one that does not. Notes its own flow.
#[derive(Clone)]
struct Relay(Arc<Mutex<Vec<FlowContext>>>);

impl OrdersHandler for Relay {
    async fn ask(&self, context: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        let flow = FlowContext::capture();
        self.0.lock().push(flow);
        assert!(context.metadata().is_empty(), "a flow is no metadata");
        let stock = stock_client(context);
        stock.ask(note("itself", 1)).await?;
        let call = || stock.ask(note("", 2)).into_future();
        tokio::spawn(flow.scope(call())).await??;
        tokio::spawn(call()).await??;
        self.0.lock().push(FlowContext::capture());
        Ok(request)
    }

    async fn hurry(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        Ok(request)
    }

    async fn brief(&self, _: &ChannelContext<'_>, request: Brief) -> Result<Brief, HandlerError> {
        Ok(request)
    }

    async fn tell(&self, _: &ChannelContext<'_>, _: Note) -> Result<(), HandlerError> {
        self.0.lock().push(FlowContext::capture());
        Ok(())
    }
}

fn is_uuid_of_version_7(id: &str) -> bool {
    let form = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        14 => byte == b'7',
        _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
    };
    id.len() == 36 && id.bytes().enumerate().all(form)
}

/// One flow from the first call through the handler to what that calls, over a mesh and over ClientServer; a task of its own
/// belongs to it only where the handler says so. A message that brings none begins one.
///
/// REQ: MSG-208, MSG-407
#[tokio::test]
async fn a_flow_goes_through_every_hop() {
    let events = Events::collect();
    let stock = Host::builder().client_server(|channel| channel.serve(stock_server(Desk::new("t"))).listen(ANY));
    let stock = stock.start().await.unwrap();
    let to = super::kit::address_of(&stock, "stock");
    let flows = Arc::<Mutex<Vec<FlowContext>>>::default();
    let s = node("s", |mesh| mesh.serve(orders_server(Relay(flows.clone()))))
        .client_server(|channel| channel.client(STOCK).connect(to))
        .start()
        .await
        .unwrap();
    let c = client("c", &[&s]).await;
    assert!(FlowContext::capture().id().is_none(), "this is no handler");
    orders_client(&c).ask(note("", 1)).await.unwrap();
    assert!(FlowContext::capture().id().is_none());

    let seen = std::mem::take(&mut *flows.lock());
    let id = seen[0].id().unwrap().to_string();
    assert!(is_uuid_of_version_7(&id), "{id}");
    assert_eq!(seen[0].origin(), Some(FlowOrigin::Application));
    assert_eq!(seen[1].id(), seen[0].id(), "it follows awaits");
    let orders = |phase| events.field(&["zlink::flow", phase, "channel_name=orders"], "flow_id");
    for phase in ["phase=selected", "phase=submitted", "phase=received", "phase=completed"] {
        assert_eq!(orders(phase), [Some(id.clone())], "{phase}");
    }
    assert_eq!(
        events.field(&["phase=received", "channel_name=orders"], "flow_origin"),
        [Some("application".into())]
    );
    let received = ["phase=received", "channel_name=stock"];
    let ids = events.field(&received, "flow_id");
    assert_eq!(
        ids[..2],
        [Some(id.clone()), Some(id.clone())],
        "itself, and in a task in its flow"
    );
    assert!(ids[2].is_some() && ids[2] != ids[0], "a task of its own");
    let correlations = events.field(&received, "correlation_id");
    assert!(
        correlations
            .iter()
            .all(|one| one.as_ref().is_some_and(|one| one.len() == 16))
    );

    // Another call is another flow, and so is each message that brings none.
    let raw = raw_client(Way::Mesh, "raw", &s).await;
    raw.say(&super::kit::send("orders", "contract.orders.tell", &note("", 2)));
    raw.say(&super::kit::send("orders", "contract.orders.tell", &note("", 3)));
    orders_client(&c).tell(note("", 4)).await.unwrap();
    until("the handlers", || flows.lock().len() == 3).await;
    let mut more: Vec<_> = flows.lock().iter().map(|flow| flow.id().unwrap().to_string()).collect();
    let origins: Vec<_> = flows.lock().iter().filter_map(FlowContext::origin).collect();
    assert_eq!(
        origins.iter().filter(|origin| **origin == FlowOrigin::Inbound).count(),
        2
    );
    more.push(id);
    more.sort();
    more.dedup();
    assert_eq!(more.len(), 4);
    at_rest(&[&s, &c, &stock]).await;
}

/// While nobody traces, no flow is made, none that comes is read, and none is sent; whether a message fits does not depend on
/// who looks.
///
/// REQ: MSG-208, ERR-907
#[tokio::test]
async fn without_a_tracer_there_is_no_flow() {
    for traced in [false, true] {
        let _events = traced.then(Events::collect);
        let flows = Arc::<Mutex<Vec<FlowContext>>>::default();
        let server = serving(Way::Mesh, orders_server(Relay(flows.clone())), |host| host).await;
        let raw = raw_client(Way::Mesh, "raw", &server).await;
        let told = Craft::send("orders", "contract.orders.tell");
        let flow = [1, 0x93, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 1, 2];
        raw.say(&told.flag(FLOW, &flow).message(&note("", 1)).record());
        until("the handler", || flows.lock().len() == 1).await;
        let seen = flows.lock()[0];
        assert_eq!((seen.id().is_some(), seen.origin().is_some()), (traced, traced));
        if let (Some(id), Some(origin)) = (seen.id(), seen.origin()) {
            assert_eq!(
                (id.to_string().as_str(), origin),
                ("01930000-0000-7000-8000-000000000001", FlowOrigin::Timer)
            );
        }
        for way in WAYS {
            let (c, raw) = raw_server(way, |host| host).await;
            orders_client(&c).tell(note("", 1)).await.unwrap();
            let record = raw.heard(RecordKind::ChannelSend).await;
            assert_eq!(
                u16::from_le_bytes([record[2], record[3]]) & FLOW != 0,
                traced,
                "{way:?}"
            );
        }
    }
    let s = node("s", |mesh| mesh.serve(orders_server(Desk::new("s"))).max_message(4096));
    let s = s.start().await.unwrap();
    let c = client("c", &[&s]).await;
    let fits = async |bytes| orders_client(&c).ask(heavy(1, bytes)).await.is_ok();
    let mut most = 4096;
    while !fits(most).await {
        most -= 1;
    }
    assert!(most > 4000, "{most}");
    let _events = Events::collect();
    assert!(fits(most).await && !fits(most + 1).await);
}

/// A handler's server under a name, on a node `s` with another client `c`.
async fn pair(way: Way, server: ChannelServer) -> (Host, Host) {
    let server = serving(way, server, |host| host).await;
    let c = calling(way, "c", &server, |host| host).await;
    (server, c)
}

/// Who looks can tell apart: the channel, the path and its mesh, who called and who was selected; that a call was selected,
/// taken by the link, received, admitted to its queue, handled, and how it ended.
///
/// REQ: CH-1005, ERR-904
#[tokio::test]
async fn each_boundary_is_told_apart() {
    for way in WAYS {
        let events = Events::collect();
        let desk = Desk::new("s");
        let (server, c) = pair(way, orders_server(desk.clone())).await;
        orders_client(&c).ask(note("", 1)).await.unwrap();
        let (kind, mesh) = match way {
            Way::Mesh => ("route_mesh", Some("shop".to_owned())),
            Way::ClientServer => ("client_server", None),
        };
        let only = |phase: &str, name: &str| {
            let mut found = events.field(&["zlink::flow", &format!("phase={phase}")], name);
            assert_eq!(found.len(), 1, "one {phase} on {way:?}");
            found.remove(0)
        };
        assert_eq!(only("selected", "channel_route_kind").as_deref(), Some(kind));
        assert_eq!(only("selected", "mesh_name"), mesh);
        assert_eq!(only("selected", "channel_name").as_deref(), Some("orders"));
        assert_eq!(only("received", "channel_name").as_deref(), Some("orders"));
        assert_eq!(only("received", "mesh_name"), mesh, "the mesh of the target");
        let (target, source) = (only("selected", "target_rid"), only("received", "source_rid"));
        assert!(target.is_some() && source.is_some() && source != target);
        if way == Way::Mesh {
            assert_eq!((target.as_deref(), source.as_deref()), (Some("server"), Some("c")));
        }
        let correlation = only("received", "correlation_id");
        assert!(correlation.is_some());
        for phase in ["submitted", "admitted"] {
            assert_eq!(only(phase, "correlation_id"), correlation);
        }
        assert_eq!(only("submitted", "waited_seconds"), None, "it had room at once");
        assert_eq!(only("handled", "flow_id"), only("received", "flow_id"));
        assert_eq!(only("completed", "error"), None);
        // How it ends is told even where no handler ran, and once.
        let nowhere = orders_client(&c).on(ChannelName::from_static("nowhere"));
        assert_eq!(failure(nowhere.ask(note("", 2)).await).0, ErrorKind::NotFound);
        assert_eq!(
            events.count(&["phase=completed", "channel_name=nowhere", "error=NotFound"]),
            1
        );
        at_rest(&[&server, &c]).await;
    }
}

/// The wait for room is told, and how long it was; that no server could be selected, and whether it is because it drains;
/// what a queue does not take any more.
///
/// REQ: CH-1005, ERR-904, ERR-903
#[tokio::test]
async fn waits_and_refusals_are_told_apart() {
    let events = Events::collect();
    let (c, raw) = raw_server(Way::Mesh, |host| host).await;
    raw.announce(1, true);
    until("the pause", || c.mesh("shop").unwrap().status().peers[0].paused).await;
    let waits = spawn(orders_client(&c).tell(note("", 1)));
    events
        .heard(&["phase=backpressured", "reason=backpressure", "channel_name=orders"])
        .await;
    assert_eq!(events.count(&["phase=submitted"]), 0);
    raw.announce(2, false);
    waits.await.unwrap().unwrap();
    let waited = events.field(&["phase=submitted", "channel_name=orders"], "waited_seconds");
    assert!(
        waited[0]
            .as_ref()
            .is_some_and(|waited| waited.parse::<f64>().unwrap() > 0.0)
    );
    raw.leave();

    let desk = Desk::new("s");
    let s = super::kit::server("s", 100, &desk).await;
    let c = client("c2", &[&s]).await;
    let held = spawn(orders_client(&c).ask(note("hold", 1)));
    desk.reached(1).await;
    let stop = tokio::spawn({
        let s = s.clone();
        async move { s.shutdown().await }
    });
    until("the drain to be known", || candidates(&c) == 0).await;
    failure(orders_client(&c).ask(note("", 2)).await);
    assert_eq!(
        events.count(&[
            "selection failed",
            "reason=draining",
            "mesh_name=shop",
            "channel_name=orders"
        ]),
        1
    );
    let status = c.mesh("shop").unwrap().status();
    let (_, failures) = &status.selection_failures[0];
    assert_eq!((failures.draining, failures.no_member, failures.not_ready), (1, 0, 0));
    // Node direct still goes there, and finds the queue closed.
    let direct = zlink_generated::contract::desk_client(&c, &super::kit::SHOP, rid_of(&s));
    assert_eq!(failure(direct.ask(note("", 3)).await).0, ErrorKind::ShuttingDown);
    assert_eq!(
        events.count(&["zlink.dispatch_error", "reason=shutdown", "surface=node", "reply_error"]),
        1
    );
    assert_eq!(
        events.count(&["zlink.runtime.host.termination_changed", "state=draining"]),
        1
    );
    desk.gate().open();
    held.await.unwrap().unwrap();
    stop.await.unwrap().unwrap();
}

/// What is shown and told has no more names than were registered, whatever peers send.
///
/// REQ: CH-1006, ERR-906
#[tokio::test]
async fn figures_are_kept_under_registered_names_only() {
    let events = Events::collect();
    let desk = Desk::new("s");
    let s = super::kit::server("s", 100, &desk).await;
    let raw = Raw::join(&endpoint(&s), &hello_of("raw")).await;
    linked(&s, &Rid::new("raw").unwrap()).await;
    let names = || {
        let status = s.mesh("shop").unwrap().status();
        let channels: Vec<_> = status.channels.iter().map(|(name, _)| name.clone()).collect();
        let failures: Vec<_> = status.selection_failures.iter().map(|(name, _)| name.clone()).collect();
        (status.name, channels, failures)
    };
    let before = names();
    assert_eq!(before.1, [ORDERS]);
    for number in 0..50 {
        let channel = format!("channel-{number}");
        raw.say(&super::kit::send(&channel, "contract.orders.tell", &note("", 1)));
        raw.say(&super::kit::send("orders", &format!("packet-{number}"), &note("", 1)));
    }
    let mut message = Craft::send("orders", "contract.orders.tell");
    message = message.flag(1, &super::kit::metadata_block(&[(b"user", b"u-4711")]));
    raw.say(&message.message(&note("4712", 1)).record());
    desk.reached(1).await;
    let drops = s.mesh("shop").unwrap().status().channel_drops;
    assert_eq!((drops.no_handler, drops.decode_error), (100, 0), "all under one name");
    assert_eq!(names(), before);
    for secret in ["4711", "4712", "channel-7", "packet-7"] {
        assert_eq!(events.count(&[secret]), 0, "{secret}");
    }
    let raw = raw_client(Way::Mesh, "another", &s).await;
    raw.ask(7, "orders", "contract.orders.ask", &note("4712", 1));
    assert_eq!(answer(&raw).await.failed, None);
    assert!(!address(&s).is_empty() && events.count(&["4712"]) == 0);
}
