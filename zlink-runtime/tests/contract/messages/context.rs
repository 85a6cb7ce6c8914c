//! Sections 3 and 4: which handler a name finds, what it is told, and the metadata beside the message.

use zlink_generated::contract::{ORDERS, STOCK, desk_client, orders_client, orders_server, stock_client, stock_server};
use zlink_generated::zlink_wire::RecordKind;
use zlink_runtime::error::{CallError, ErrorKind, Execution};
use zlink_runtime::id::{ActorId, ChannelName, MeshName, PacketName, SpotId};
use zlink_runtime::prelude::*;
use zlink_runtime::{MessageKind, Metadata};

use crate::kit::{
    ANY, Craft, Desk, Events, SHOP, WAYS, Way, answer, at_rest, client, endpoint, failure, linked, node, note,
    raw_client, raw_server, rid_of, serving, settle, soon, until,
};

/// Every surface that carries calls, in one process each.
struct Surfaces {
    desk: Desk,
    server: Host,
    client: Host,
}

impl Surfaces {
    /// `orders` and Node direct over the mesh, `stock` over ClientServer.
    async fn new() -> Self {
        let desk = Desk::new("s");
        let server = node("s", |mesh| {
            mesh.serve(orders_server(desk.clone())).serve_node(desk.node())
        });
        let server = server.client_server(|channel| channel.serve(stock_server(desk.clone())).listen(ANY));
        let server = server.start().await.unwrap();
        let to = server
            .listener(zlink_runtime::ListenerKind::ClientServer, "stock")
            .unwrap()
            .endpoint
            .to_string();
        let client = node("c", |mesh| mesh.client(ORDERS).connect(endpoint(&server)));
        let client = client
            .client_server(|channel| channel.client(STOCK).connect(to))
            .start()
            .await
            .unwrap();
        linked(&client, &rid_of(&server)).await;
        stock_client(&client).ask(note("", 0)).await.unwrap();
        Self { desk, server, client }
    }

    /// The six calls: a request and a send on each surface, all with `metadata`. Returns how they ended.
    async fn call(&self, metadata: &Metadata) -> Vec<Result<(), CallError>> {
        let (orders, stock) = (orders_client(&self.client), stock_client(&self.client));
        let direct = desk_client(&self.client, &SHOP, rid_of(&self.server));
        vec![
            orders.ask(note("", 1)).all_metadata(metadata).await.map(drop),
            orders.tell(note("", 2)).all_metadata(metadata).await,
            stock.ask(note("", 3)).all_metadata(metadata).await.map(drop),
            stock.tell(note("", 4)).all_metadata(metadata).await,
            direct.ask(note("", 5)).all_metadata(metadata).await.map(drop),
            direct.tell(note("", 6)).all_metadata(metadata).await,
        ]
    }
}

/// REQ: MSG-305, MSG-301, MSG-302, MSG-409
#[tokio::test]
async fn the_context_of_each_surface() {
    let surfaces = Surfaces::new().await;
    let mut metadata = Metadata::new();
    metadata.set("tenant", "acme").unwrap();
    for end in surfaces.call(&metadata).await {
        end.unwrap();
    }
    surfaces.desk.reached(7).await;
    let mut seen = surfaces.desk.seen();
    seen.sort_by_key(|seen| seen.number);
    let source = Some((SHOP, rid_of(&surfaces.client)));
    let of_channel = |name: &ChannelName| (Some(name.clone()), None);
    // All three surfaces have the same two packet names: each finds its own handler.
    let expected = [
        ("orders", MessageKind::Request, of_channel(&ORDERS)),
        ("orders", MessageKind::Send, of_channel(&ORDERS)),
        ("stock", MessageKind::Request, of_channel(&STOCK)),
        ("stock", MessageKind::Send, of_channel(&STOCK)),
        ("desk", MessageKind::Request, (None, source.clone())),
        ("desk", MessageKind::Send, (None, source)),
    ];
    for (seen, (scope, kind, place)) in seen[1..].iter().zip(expected) {
        assert_eq!((seen.scope, seen.kind), (scope, kind));
        assert_eq!((seen.channel.clone(), seen.source.clone()), place);
        let packet = if kind == MessageKind::Request {
            "contract.orders.ask"
        } else {
            "contract.orders.tell"
        };
        assert_eq!(seen.packet, packet);
        assert_eq!(seen.content_type, "application/x-flatbuffers");
        assert_eq!(seen.correlation.is_some(), kind == MessageKind::Request);
        assert_eq!(seen.metadata, metadata);
    }
    at_rest(&[&surfaces.server, &surfaces.client]).await;
}

/// A packet name is one thing as a request and another as a send; no other part of a call finds a handler.
///
/// REQ: MSG-301, MSG-302, MSG-901
#[tokio::test]
async fn kind_scope_and_name_together_find_a_handler() {
    let desk = Desk::new("s");
    let s = serving(Way::Mesh, orders_server(desk.clone()), |host| host).await;
    let raw = raw_client(Way::Mesh, "raw", &s).await;
    let events = Events::collect();
    let wrong = [
        ("orders", "contract.orders.tell"),
        ("orders", "Contract.orders.ask"),
        ("", "contract.orders.ask"),
        ("stock", "contract.orders.ask"),
        ("orders", "ask"),
    ];
    for (number, (channel, packet)) in (1..).zip(wrong) {
        raw.say(&Craft::request(number, channel, packet).message(&note("", 0)).record());
        let answer = answer(&raw).await;
        let nobody = Some((ErrorKind::NotFound, Execution::NotExecuted));
        assert_eq!(
            (answer.correlation, answer.failed),
            (number, nobody),
            "{channel} {packet}"
        );
    }
    raw.say(
        &Craft::send("orders", "contract.orders.ask")
            .message(&note("", 0))
            .record(),
    );
    until("a record of the send", || events.count(&["no_handler", "drop"]) == 1).await;
    assert_eq!(desk.runs(), 0);

    // What names a call on the wire is what the schema says, whatever its metadata.
    let (c, raw) = raw_server(Way::Mesh, |host| host).await;
    orders_client(&c)
        .tell(note("", 1))
        .metadata("packet", "stock")
        .await
        .unwrap();
    let sent = raw.heard(RecordKind::ChannelSend).await;
    assert_eq!(
        sent[8..],
        *[&[6][..], b"orders", &[20], b"contract.orders.tell", &sent[36..]].concat()
    );
}

/// REQ: MSG-303, MSG-304
#[tokio::test]
async fn names_have_1_to_255_bytes_and_are_compared_byte_by_byte() {
    macro_rules! check {
        ($($name:ident),*) => {$(
            for bad in ["", "a\0b", &"n".repeat(256), &"ä".repeat(128)] {
                assert!($name::new(bad).is_err(), "{} {bad:?}", stringify!($name));
            }
            for good in ["n", &"n".repeat(255), &"ä".repeat(127), " a\tb ", "e\u{301}"] {
                assert_eq!($name::new(good).unwrap().as_str(), good, "nothing is normalized");
            }
            assert_ne!($name::new("a").unwrap(), $name::new("A").unwrap());
            assert_ne!($name::new("\u{e9}").unwrap(), $name::new("e\u{301}").unwrap());
        )*};
    }
    check!(ChannelName, MeshName, PacketName, SpotId, ActorId);

    // At the end of that range, over the wire.
    let (long, other) = (
        ChannelName::new("ä".repeat(127) + "x").unwrap(),
        ChannelName::new("ä".repeat(127) + "X").unwrap(),
    );
    let desk = Desk::new("s");
    let s = node("s", |mesh| mesh.serve(orders_server(desk.clone()).on(long.clone())))
        .start()
        .await
        .unwrap();
    let c = node("c", |mesh| {
        mesh.client(long.clone()).client(other.clone()).connect(endpoint(&s))
    });
    let c = c.start().await.unwrap();
    linked(&c, &rid_of(&s)).await;
    assert_eq!(
        orders_client(&c).on(long.clone()).ask(note("", 0)).await.unwrap().text,
        "s"
    );
    assert_eq!(desk.seen()[0].channel, Some(long));
    assert_eq!(
        failure(orders_client(&c).on(other).ask(note("", 0)).await).0,
        ErrorKind::NotFound
    );
}

/// REQ: MSG-401, MSG-403, MSG-404
#[tokio::test]
async fn metadata_is_text_and_its_last_value_travels() {
    let desk = Desk::new("s");
    let s = serving(Way::Mesh, orders_server(desk.clone()), |host| host).await;
    let c = client("c", &[&s]).await;
    let long = "k".repeat(256);
    for (key, value) in [("", "v"), ("k\0", "v"), ("k", "v\0"), (&*long, "v")] {
        let request = orders_client(&c).ask(note("", 0)).metadata(key, value).await;
        assert!(
            matches!(request, Err(CallError::Argument(_))),
            "{key:?} {value:?}: {request:?}"
        );
        let send = orders_client(&c)
            .tell(note("", 0))
            .metadata(key, value)
            .metadata("good", "one")
            .await;
        assert!(
            matches!(send, Err(CallError::Argument(_))),
            "{key:?} {value:?}: {send:?}"
        );
    }
    settle().await;
    assert_eq!(desk.runs(), 0, "nothing was submitted");

    let mut bundle = Metadata::new();
    bundle.set("from", "the bundle").unwrap();
    let call = orders_client(&c)
        .ask(note("", 1))
        .metadata("lost", "x")
        .metadata("refused", "\0")
        .all_metadata(&bundle);
    let call = call
        .metadata("key", "first")
        .metadata("empty", "")
        .metadata("ключ", "значение")
        .metadata("key", "last");
    bundle.set("from", "what was changed later").unwrap();
    call.await.unwrap();
    let seen = desk.seen().remove(0).metadata;
    let seen: Vec<_> = seen.view().iter().collect();
    assert_eq!(
        seen,
        [
            ("empty", ""),
            ("from", "the bundle"),
            ("key", "last"),
            ("ключ", "значение")
        ]
    );
}

/// REQ: MSG-402, MSG-801, MSG-409
#[tokio::test]
async fn exactly_1024_bytes_of_metadata_pass_on_every_surface() {
    let surfaces = Surfaces::new().await;
    // 2, then 3 + key + value for each: 2 + (3 + 1 + 500) + (3 + 1 + 514) = 1024.
    let mut full = Metadata::new();
    full.set("a", "v".repeat(500).as_str()).unwrap();
    full.set("b", "v".repeat(514).as_str()).unwrap();
    for end in surfaces.call(&full).await {
        end.unwrap();
    }
    surfaces.desk.reached(7).await;
    assert!(surfaces.desk.seen()[1..].iter().all(|seen| seen.metadata == full));

    let mut over = full.clone();
    assert!(over.set("b", "v".repeat(515).as_str()).is_err());
    assert_eq!(over, full, "what is refused changes nothing");
    let (a, b) = ("v".repeat(500), "v".repeat(515));
    let orders = orders_client(&surfaces.client);
    let stock = stock_client(&surfaces.client);
    let direct = desk_client(&surfaces.client, &SHOP, rid_of(&surfaces.server));
    macro_rules! refused {
        ($($call:expr),*) => {$(
            let end = soon("a refusal", $call.metadata("a", a.as_str()).metadata("b", b.as_str())).await.map(drop);
            assert!(matches!(end, Err(CallError::Argument(_))), "{end:?}");
        )*};
    }
    refused!(orders.ask(note("", 9)), stock.ask(note("", 9)), direct.ask(note("", 9)));
    refused!(
        orders.tell(note("", 9)),
        stock.tell(note("", 9)),
        direct.tell(note("", 9))
    );
    // 255 entries are the most, however small.
    let mut many = Metadata::new();
    for entry in 0..170 {
        many.set(format!("{entry:x}").as_str(), "").unwrap();
    }
    for end in surfaces.call(&many).await {
        end.unwrap();
    }
    surfaces.desk.reached(13).await;
    assert_eq!(surfaces.desk.runs(), 13, "what was refused did not run");
    at_rest(&[&surfaces.server, &surfaces.client]).await;
}

/// REQ: MSG-406, MSG-407
#[tokio::test]
async fn metadata_goes_one_hop_and_never_back() {
    let (desk, stock) = (Desk::new("s"), Desk::new("stock"));
    let behind = node("behind", |mesh| mesh.serve(stock_server(stock.clone())))
        .start()
        .await
        .unwrap();
    let s = node("s", |mesh| {
        mesh.serve(orders_server(desk.clone()))
            .client(STOCK)
            .connect(endpoint(&behind))
    });
    let s = s.start().await.unwrap();
    linked(&s, &rid_of(&behind)).await;
    let c = client("c", &[&s]).await;
    orders_client(&c)
        .ask(note("relay", 1))
        .metadata("tenant", "acme")
        .await
        .unwrap();
    assert_eq!(desk.seen()[0].metadata.view().get("tenant"), Some("acme"));
    assert!(
        stock.seen()[0].metadata.view().is_empty(),
        "a downstream call starts empty"
    );

    let raw = raw_client(Way::Mesh, "raw", &s).await;
    let metadata = crate::kit::metadata_block(&[(b"tenant", b"acme")]);
    let request = Craft::request(1, "orders", "contract.orders.ask")
        .flag(1, &metadata)
        .message(&note("", 2));
    raw.say(&request.record());
    let answer = answer(&raw).await;
    assert_eq!((answer.failed, answer.flags), (None, 0), "a reply carries none");
    assert_eq!(desk.seen()[1].metadata.view().get("tenant"), Some("acme"));
    at_rest(&[&s, &c, &behind]).await;
}

/// REQ: MSG-703, MSG-305
#[tokio::test]
async fn a_sender_is_who_its_link_was_admitted_as() {
    let desk = Desk::new("s");
    let s = node("s", |mesh| mesh.serve_node(desk.node())).start().await.unwrap();
    let (one, two) = (
        raw_client(Way::Mesh, "one", &s).await,
        raw_client(Way::Mesh, "two", &s).await,
    );
    // The same bytes from both: nothing in them says from whom they are.
    let record = Craft::request(7, "", "contract.orders.ask")
        .flag(1, &crate::kit::metadata_block(&[(b"rid", b"two")]))
        .message(&note("two", 0))
        .record();
    for raw in [&one, &two] {
        raw.say(&record);
        let answer = answer(raw).await;
        assert_eq!(
            (answer.correlation, answer.failed),
            (7, None),
            "the reply finds its own way back"
        );
    }
    let sources: Vec<_> = desk.seen().into_iter().map(|seen| seen.source.unwrap().1).collect();
    assert_eq!(sources, ["one", "two"].map(|rid| Rid::new(rid).unwrap()));
    assert!(WAYS.len() == 2 && one.count(RecordKind::Reply) + two.count(RecordKind::Reply) == 0);
}
