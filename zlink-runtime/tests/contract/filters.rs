//! Chapter 02, section 6: what a host puts around its handlers, and what belongs to one dispatch.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use zlink_generated::contract::{
    Brief, DeskHandler, Note, ORDERS, OrdersHandler, STOCK, desk_client, desk_server, orders_client, orders_server,
    stock_client, stock_server,
};
use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::prelude::*;
use zlink_runtime::{Filter, FilterContext, HandlerScope, MessageKind, Next};

use super::kit::{
    ANY, Desk, Events, Gate, SHOP, WAYS, Way, at_rest, calling, client, failure, node, note, raw_client, rid_of, send,
    serving, soon, until,
};

/// What happened, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, entry: impl Into<String>) {
        self.0.lock().push(entry.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }

    /// Waits until `count` entries are there, and takes them.
    #[track_caller]
    fn reached(&self, count: usize) -> impl Future<Output = Vec<String>> + use<> {
        let (seen, log) = (self.clone(), self.clone());
        let reached = until(&format!("{count} entries"), move || seen.0.lock().len() >= count);
        async move {
            reached.await;
            log.take()
        }
    }
}

/// Notes when a message comes and when it goes, and with what.
struct Named(&'static str, Log);

impl Filter for Named {
    async fn handle(&self, context: &FilterContext<'_>, next: Next<'_>) -> Result<(), HandlerError> {
        let text = context.metadata().get("text").unwrap_or_default().to_owned();
        self.1.add(format!("{}{text}", self.0));
        let ended = next.run().await;
        let how = if ended.is_ok() { "" } else { "!" };
        self.1.add(format!("{}{text}{how}", self.0));
        ended
    }
}

/// A desk that notes its runs in a log.
#[derive(Clone)]
struct Logging(Log, Desk);

impl Logging {
    fn new() -> Self {
        Self(Log::default(), Desk::new("s"))
    }

    fn log(&self, scope: &HandlerScope, text: &str) {
        assert!(scope.number() > 0);
        self.0.add(format!("handler{text}"));
    }
}

impl OrdersHandler for Logging {
    async fn ask(&self, context: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        self.log(context.scope(), context.metadata().get("text").unwrap_or_default());
        OrdersHandler::ask(&self.1, context, request).await
    }

    async fn hurry(&self, context: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        OrdersHandler::hurry(&self.1, context, request).await
    }

    async fn brief(&self, context: &ChannelContext<'_>, request: Brief) -> Result<Brief, HandlerError> {
        OrdersHandler::brief(&self.1, context, request).await
    }

    async fn tell(&self, context: &ChannelContext<'_>, message: Note) -> Result<(), HandlerError> {
        self.log(context.scope(), context.metadata().get("text").unwrap_or_default());
        OrdersHandler::tell(&self.1, context, message).await
    }
}

impl DeskHandler for Logging {
    async fn ask(&self, context: &NodeContext<'_>, request: Note) -> Result<Note, HandlerError> {
        self.log(context.scope(), context.metadata().get("text").unwrap_or_default());
        DeskHandler::ask(&self.1, context, request).await
    }

    async fn tell(&self, context: &NodeContext<'_>, message: Note) -> Result<(), HandlerError> {
        self.log(context.scope(), context.metadata().get("text").unwrap_or_default());
        DeskHandler::tell(&self.1, context, message).await
    }
}

/// In as they were registered, out in reverse, around requests and sends of every surface: channels over a mesh and over
/// ClientServer, a node called from outside and from its own host.
///
/// REQ: CH-606
#[tokio::test]
async fn filters_stand_around_every_handler_in_their_order() {
    let handler = Logging::new();
    let log = handler.0.clone();
    let builder = node("s", |mesh| {
        mesh.serve(orders_server(handler.clone()))
            .serve_node(desk_server(handler.clone()))
    });
    let builder =
        builder.client_server(|channel| channel.serve(stock_server(handler.1.clone())).client(STOCK).listen(ANY));
    let builder = builder.filter(Named("1", log.clone())).filter(Named("2", log.clone()));
    let s = builder.filter(Named("3", log.clone())).start().await.unwrap();
    let c = client("c", &[&s]).await;
    let (orders, direct, own) = (
        orders_client(&c),
        desk_client(&c, &SHOP, rid_of(&s)),
        desk_client(&s, &SHOP, rid_of(&s)),
    );
    let through = |text: &str| ["1", "2", "3", "handler", "3", "2", "1"].map(|step| format!("{step}{text}"));

    orders.ask(note("", 1)).metadata("text", "a").await.unwrap();
    assert_eq!(log.take(), through("a"));
    orders.tell(note("", 2)).metadata("text", "b").await.unwrap();
    assert_eq!(log.reached(7).await, through("b"));
    direct.ask(note("", 3)).metadata("text", "c").await.unwrap();
    assert_eq!(log.take(), through("c"));
    direct.tell(note("", 4)).metadata("text", "d").await.unwrap();
    assert_eq!(log.reached(7).await, through("d"));
    own.ask(note("", 5)).metadata("text", "e").await.unwrap();
    assert_eq!(log.take(), through("e"));
    // This handler is another one, which notes nothing.
    stock_client(&s).ask(note("", 6)).await.unwrap();
    assert_eq!(log.take(), ["1", "2", "3", "3", "2", "1"]);
    // What the handler fails with comes out through all of them.
    let failed = orders.ask(note("fail", 7)).metadata("text", "f").await;
    assert_eq!(failure(failed), (ErrorKind::InternalFailure, Execution::Unknown));
    assert_eq!(log.take(), ["1f", "2f", "3f", "handlerf", "3f!", "2f!", "1f!"]);
    at_rest(&[&s, &c]).await;
}

/// Notes all that it is told.
#[derive(Clone, Default)]
struct Curious(Arc<Mutex<Vec<Told>>>);

#[derive(Debug, PartialEq, Eq)]
struct Told {
    kind: MessageKind,
    packet: String,
    content_type: String,
    tenant: Option<String>,
    correlation: Option<String>,
    channel: Option<ChannelName>,
    source: Option<(MeshName, Rid)>,
    /// All that can be printed of it.
    text: String,
}

impl Filter for Curious {
    async fn handle(&self, context: &FilterContext<'_>, next: Next<'_>) -> Result<(), HandlerError> {
        self.0.lock().push(Told {
            kind: context.kind(),
            packet: context.packet_name().as_str().to_owned(),
            content_type: context.content_type().to_owned(),
            tenant: context.metadata().get("tenant").map(str::to_owned),
            correlation: context.correlation().map(|correlation| correlation.to_string()),
            channel: context.channel().cloned(),
            source: context.mesh().cloned().zip(context.source().cloned()),
            text: format!("{context:?} {next:?}"),
        });
        next.run().await
    }
}

/// A filter is told what the handler is, and neither is told which path, endpoint or server it was.
///
/// REQ: CH-603, CH-1006, MSG-305
#[tokio::test]
async fn a_filter_is_told_what_the_handler_is() {
    for way in WAYS {
        let (desk, curious) = (Desk::new("desk"), Curious::default());
        let filter = curious.clone();
        let server = serving(way, orders_server(desk.clone()), |host| host.filter(filter)).await;
        let c = calling(way, "c", &server, |host| host).await;
        orders_client(&c)
            .ask(note("", 1))
            .metadata("tenant", "acme")
            .await
            .unwrap();
        orders_client(&c).tell(note("", 2)).await.unwrap();
        desk.reached(2).await;
        let told = std::mem::take(&mut *curious.0.lock());
        for (told, seen) in told.iter().zip(desk.seen()) {
            assert_eq!((told.kind, &told.packet), (seen.kind, &seen.packet));
            assert_eq!(
                (&told.content_type, &told.correlation),
                (&seen.content_type, &seen.correlation)
            );
            assert_eq!((&told.channel, &told.source), (&seen.channel, &None));
            assert_eq!(told.channel, Some(ORDERS));
            let endpoint = super::kit::address(&server);
            for physical in [endpoint.as_str(), "shop", "mesh", "client_server", "tcp:"] {
                assert!(!told.text.contains(physical), "{physical} in {}", told.text);
            }
        }
        assert_eq!(
            told.iter().map(|told| told.tenant.as_deref()).collect::<Vec<_>>(),
            [Some("acme"), None]
        );
        assert!(told[0].correlation.is_some() && told[1].correlation.is_none());
    }
    let (desk, curious) = (Desk::new("desk"), Curious::default());
    let s = node("s", |mesh| mesh.serve_node(desk.node()))
        .filter(curious.clone())
        .start()
        .await
        .unwrap();
    let c = client("c", &[&s]).await;
    desk_client(&c, &SHOP, rid_of(&s)).ask(note("", 1)).await.unwrap();
    let told = std::mem::take(&mut *curious.0.lock());
    assert_eq!(
        (told[0].channel.clone(), told[0].source.clone()),
        (None, Some((SHOP, rid_of(&c))))
    );
}

/// Ends what its metadata tells it to, in the way it is told.
struct Ends(Gate);

impl Filter for Ends {
    async fn handle(&self, context: &FilterContext<'_>, next: Next<'_>) -> Result<(), HandlerError> {
        match context.metadata().get("end") {
            Some("quietly") => Ok(()),
            Some("loudly") => Err(HandlerError::new("no: the secret 4711")),
            Some("unpolled") => {
                drop(next.run());
                Ok(())
            }
            Some("panic") => panic!("a filter that panics"),
            Some("after") => {
                next.run().await?;
                Err(HandlerError::new("on second thoughts"))
            }
            Some("hides") => {
                let _ = next.run().await;
                Ok(())
            }
            Some("impatient") => {
                tokio::select! {
                    biased;
                    ended = next.run() => ended,
                    () = self.0.pass() => Ok(()),
                }
            }
            _ => next.run().await,
        }
    }
}

/// A filter that does not let a message through ends it: a request with `Rejected`, whatever the filter returns, a send
/// without a trace but in the flow. No handler runs, those outside see it end, and the next message is handled.
///
/// REQ: CH-606, ERR-703, ERR-205, EX-82
#[tokio::test]
async fn what_a_filter_does_not_let_through_is_rejected() {
    for way in WAYS {
        let events = Events::collect();
        let (desk, log) = (Desk::new("s"), Log::default());
        let server = serving(way, orders_server(desk.clone()), |host| {
            host.filter(Named("1", log.clone())).filter(Ends(desk.gate().clone()))
        })
        .await;
        let c = calling(way, "c", &server, |host| host).await;
        let orders = orders_client(&c);
        for how in ["quietly", "loudly", "unpolled"] {
            let ended = orders.ask(note("", 1)).metadata("end", how).await.unwrap_err();
            assert!(!ended.to_string().contains("4711"), "{ended}");
            assert_eq!(
                (ended.kind(), ended.execution()),
                (Some(ErrorKind::Rejected), Execution::NotExecuted)
            );
            assert_eq!(log.take().len(), 2);
            orders.tell(note("", 2)).metadata("end", how).await.unwrap();
            assert_eq!(log.reached(2).await.len(), 2);
        }
        assert_eq!(desk.runs(), 0, "no handler ran");
        assert_eq!(
            events.count(&["zlink::flow", "phase=filtered", "contract.orders.tell"]),
            3
        );
        assert_eq!(events.count(&["zlink.dispatch_error"]), 0, "it is no failure");
        orders.ask(note("", 3)).await.unwrap();
        assert_eq!(desk.numbers(), [3]);
        at_rest(&[&server, &c]).await;
    }
}

/// A filter that fails, panics, keeps a failure back or does not wait is like a handler that does: the caller learns that
/// something failed, once, and the host goes on.
///
/// REQ: CH-606, ERR-702, ERR-108
#[tokio::test]
async fn a_filter_that_fails_is_a_handler_that_fails() {
    let events = Events::collect();
    let desk = Desk::new("s");
    let server = serving(Way::Mesh, orders_server(desk.clone()), |host| {
        host.filter(Ends(desk.gate().clone()))
    })
    .await;
    let c = calling(Way::Mesh, "c", &server, |host| host).await;
    let orders = orders_client(&c);
    desk.gate().open();
    for (how, text, runs) in [
        ("panic", "", 0),
        ("after", "", 1),
        ("hides", "fail", 2),
        ("impatient", "never", 3),
    ] {
        let ended = soon(how, orders.ask(note(text, 1)).metadata("end", how)).await;
        assert_eq!(
            failure(ended),
            (ErrorKind::InternalFailure, Execution::Unknown),
            "{how}"
        );
        assert_eq!(desk.runs(), runs, "{how}");
    }
    assert_eq!(
        events.count(&["zlink.dispatch_error", "handler_exception", "reply_error"]),
        4
    );
    assert_eq!(
        desk.dropped(),
        [1, 1],
        "the one that failed, and the one that nobody waited for"
    );
    orders.tell(note("", 2)).metadata("end", "after").await.unwrap();
    events
        .heard(&["zlink.dispatch_error", "handler_exception", "drop"])
        .await;
    assert_eq!(orders.ask(note("", 3)).await.unwrap().number, 3);
    at_rest(&[&server, &c]).await;
}

/// What is no message gets no further than to the first filter.
///
/// REQ: MSG-901, CH-606
#[tokio::test]
async fn filters_see_only_what_a_handler_would() {
    for way in WAYS {
        let (desk, curious) = (Desk::new("s"), Curious::default());
        let filter = curious.clone();
        let strict = zlink_generated::contract::strict_server(desk.clone()).on(ORDERS);
        let server = serving(way, strict, |host| host.filter(filter)).await;
        let raw = raw_client(way, "raw", &server).await;
        raw.say(&send("orders", "contract.orders.tell", &note("", 1)));
        raw.say(&send("orders", "contract.orders.nothing", &note("", 1)));
        at_rest(&[&server]).await;
        raw.round_trip().await;
        assert_eq!((curious.0.lock().len(), desk.runs()), (0, 0));
    }
}

/// Counts what is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Gives each scope something of its own, and notes the scope.
struct Gives(Arc<AtomicUsize>, Arc<Mutex<Vec<u64>>>);

impl Filter for Gives {
    async fn handle(&self, context: &FilterContext<'_>, next: Next<'_>) -> Result<(), HandlerError> {
        let scope = context.scope();
        assert!(scope.get::<Counted>().is_none(), "it begins empty");
        scope.set(Counted(self.0.clone()));
        scope.set(scope.number());
        self.1.lock().push(scope.number());
        next.run().await
    }
}

/// Replies with its scope's number, or does as it is told.
#[derive(Clone)]
struct Scoped(Arc<AtomicUsize>, Desk);

impl DeskHandler for Scoped {
    async fn ask(&self, context: &NodeContext<'_>, request: Note) -> Result<Note, HandlerError> {
        let scope = context.scope();
        assert_eq!(
            scope.get::<u64>().as_deref(),
            Some(&scope.number()),
            "as the filter left it"
        );
        let already = self.0.load(Ordering::SeqCst) as u64;
        let text = request.text.clone();
        DeskHandler::ask(&self.1, context, request).await?;
        Ok(Note {
            number: scope.number(),
            text,
            body: vec![already as u8],
        })
    }

    async fn tell(&self, context: &NodeContext<'_>, message: Note) -> Result<(), HandlerError> {
        DeskHandler::tell(&self.1, context, message).await
    }
}

/// Every dispatch has a scope that filters and handler share and no other dispatch has. It ends once, with the handler:
/// well, failed, panicked, not let through or stopped, and before the request is answered.
///
/// REQ: CH-607
#[tokio::test]
async fn each_dispatch_has_a_scope_that_ends_with_it() {
    let (ended, scopes) = (Arc::<AtomicUsize>::default(), Arc::<Mutex<Vec<u64>>>::default());
    let desk = Desk::new("s");
    let server = desk_server(Scoped(ended.clone(), desk.clone()));
    let s = node("s", |mesh| mesh.serve_node(server))
        .filter(Gives(ended.clone(), scopes.clone()))
        .filter(Ends(desk.gate().clone()))
        .drain_timeout(Duration::from_millis(50))
        .start()
        .await
        .unwrap();
    let c = client("c", &[&s]).await;
    let direct = desk_client(&c, &SHOP, rid_of(&s));
    let mut numbers = Vec::new();
    for count in 1..=20 {
        let reply = direct.ask(note("", 0)).await.unwrap();
        assert_eq!(ended.load(Ordering::SeqCst), count, "gone before the reply came");
        assert_eq!(reply.body, [count as u8 - 1], "and there while the handler ran");
        numbers.push(reply.number);
    }
    assert_eq!(numbers, *scopes.lock());
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 20, "20 requests, 20 scopes");
    for text in ["fail", "panic"] {
        direct.ask(note(text, 0)).await.unwrap_err();
    }
    direct.ask(note("", 0)).metadata("end", "quietly").await.unwrap_err();
    assert_eq!(ended.load(Ordering::SeqCst), 23);
    direct.tell(note("", 0)).await.unwrap();
    until("the send to end", || ended.load(Ordering::SeqCst) == 24).await;
    let runs = desk.runs();
    let stopped = super::kit::spawn(direct.ask(note("never", 0)));
    desk.reached(runs + 1).await;
    s.shutdown().await.unwrap_err();
    assert_eq!(failure(stopped.await.unwrap()).0, ErrorKind::ShuttingDown);
    assert_eq!((ended.load(Ordering::SeqCst), scopes.lock().len()), (25, 25));
}

/// Without a filter a scope is there too, and two running dispatches do not share one.
///
/// REQ: CH-607
#[tokio::test]
async fn a_scope_needs_no_filter() {
    struct Keeps(Gate, Mutex<Vec<u64>>);
    impl DeskHandler for Keeps {
        async fn ask(&self, context: &NodeContext<'_>, request: Note) -> Result<Note, HandlerError> {
            assert!(context.scope().get::<u64>().is_none());
            context.scope().set(request.number);
            self.1.lock().push(request.number);
            self.0.pass().await;
            let number = context.scope().get::<u64>().map_or(0, |number| *number);
            Ok(note("", number))
        }

        async fn tell(&self, _: &NodeContext<'_>, _: Note) -> Result<(), HandlerError> {
            Ok(())
        }
    }
    let gate = Desk::new("s").gate().clone();
    let server = desk_server(Keeps(gate.clone(), Mutex::default()));
    let s = node("s", |mesh| mesh.serve_node(server)).start().await.unwrap();
    let own = desk_client(&s, &SHOP, rid_of(&s));
    let calls: Vec<_> = (1..=5)
        .map(|number| super::kit::spawn(own.ask(note("", number))))
        .collect();
    gate.open();
    for (number, call) in (1..).zip(calls) {
        assert_eq!(call.await.unwrap().unwrap().number, number);
    }
}
