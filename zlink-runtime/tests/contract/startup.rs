//! Chapter 01, sections 2, 3, 7 and 10: what start refuses, all of it at once and before a socket opens.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use zlink_generated::contract::{ORDERS, STOCK, desk_server, orders_server, stock_server, strict_server};
use zlink_generated::zlink_wire::RecordKind;
use zlink_runtime::id::ChannelName;
use zlink_runtime::transport::{
    Acceptor, BoxFuture, Endpoint, Link, LinkConfig, LinkTransport, Listener, Offer, Transport, TransportError,
};
use zlink_runtime::{ClientServerBuilder, Host, HostBuilder, HostPhase, ListenerKind, MeshBuilder, ObjectRole};

use crate::kit::{ANY, Desk, Raw, free_port, hello, hello_of, is_free, refused, settle, soon, spawn, until};

fn desk() -> Desk {
    Desk::new("desk")
}

/// A host of one node of `shop` whose listener is right.
fn mesh(configure: impl FnOnce(MeshBuilder) -> MeshBuilder) -> HostBuilder {
    Host::builder().mesh("shop", |mesh| configure(mesh.listen(ANY)))
}

/// A host of one ClientServer channel whose listener is right.
fn channel(configure: impl FnOnce(ClientServerBuilder) -> ClientServerBuilder) -> HostBuilder {
    Host::builder().client_server(configure)
}

/// Starts it, together with a second node that is right and wants `port`: the start fails with one mistake that says
/// `problem` at `place`, and the port was not touched.
async fn refuses(builder: HostBuilder, place: &str, problem: &str) {
    let port = free_port();
    let builder = builder.mesh("beside", |mesh| mesh.listen(format!("tcp://127.0.0.1:{port}")));
    let error = refused(builder).await;
    let found = error.mistakes();
    assert_eq!(found.len(), 1, "one mistake for {problem:?}, not: {error}");
    assert!(
        found[0].place().contains(place),
        "{place:?} is not the place of: {error}"
    );
    assert!(found[0].problem().contains(problem), "{problem:?} is not in: {error}");
    assert!(is_free(port), "{problem}: the port was bound");
}

/// REQ: NET-101, NET-102, NET-103, NET-1006
#[tokio::test]
async fn names_and_identities_of_nodes_are_checked() {
    let place = "mesh \"shop\"";
    refuses(mesh(|m| m).mesh("shop", |m| m.listen(ANY)), place, "registered twice").await;
    refuses(Host::builder().mesh("", |m| m.listen(ANY)), "mesh \"\"", "is empty").await;
    refuses(
        Host::builder().mesh("m".repeat(256), |m| m.listen(ANY)),
        "mesh",
        "256 bytes",
    )
    .await;
    refuses(Host::builder().mesh("a\0b", |m| m.listen(ANY)), "mesh", "NUL").await;
    refuses(mesh(|m| m.rid([])), place, "is empty").await;
    refuses(mesh(|m| m.rid([0xff; 256])), place, "256 bytes").await;
    refuses(mesh(|m| m.rid("a").rid_prefix("b")), place, "fixed RID and a prefix").await;
    for prefix in ["", "a/b", "ä", &"p".repeat(65)] {
        refuses(mesh(|m| m.rid_prefix(prefix)), place, "prefix").await;
    }
}

/// REQ: NET-202, NET-203, NET-204, NET-1006
#[tokio::test]
async fn endpoints_of_nodes_are_checked() {
    let place = "mesh \"shop\"";
    let shop = |configure: fn(MeshBuilder) -> MeshBuilder| Host::builder().mesh("shop", configure);
    refuses(shop(|m| m), place, "no listen endpoint").await;
    refuses(shop(|m| m.listen("127.0.0.1:7001")), place, "127.0.0.1:7001").await;
    refuses(shop(|m| m.listen("tcp://127.0.0.1")), place, "port").await;
    refuses(shop(|m| m.listen("tcp://127.0.0.1:70000")), place, "port").await;
    refuses(shop(|m| m.listen("udp://127.0.0.1:1")), place, "udp").await;
    for any in ["tcp://0.0.0.0:0", "tcp://[::]:0", "tcp://*:0"] {
        refuses(mesh(|m| m.listen(any)), place, "advertise").await;
        refuses(mesh(|m| m.listen(any).advertise("0.0.0.0")), place, "no peer can dial").await;
    }
    refuses(mesh(|m| m.connect("tcp://127.0.0.1:0")), place, "can only be bound").await;
    refuses(mesh(|m| m.connect("tcp://0.0.0.0:7001")), place, "can only be bound").await;
    refuses(mesh(|m| m.connect("nonsense")), place, "nonsense").await;
    refuses(mesh(|m| m.connect_to("tcp://127.0.0.1:7001", [])), place, "RID").await;
    let twice = mesh(|m| {
        m.connect("tcp://127.0.0.1:7001")
            .connect_to("tcp://127.0.0.1:7001", "a")
    });
    refuses(twice, place, "twice").await;
}

/// REQ: NET-104, NET-301, NET-302, NET-304, NET-1006
#[tokio::test]
async fn object_roles_need_a_store_which_no_host_has_yet() {
    let place = "mesh \"shop\"";
    for role in [ObjectRole::Client, ObjectRole::Server] {
        let port = free_port();
        let listen = format!("tcp://127.0.0.1:{port}");
        let error = refused(Host::builder().mesh("shop", |mesh| mesh.listen(&listen).role(role))).await;
        assert_eq!(error.mistakes().len(), 1);
        assert!(error.to_string().contains("Location Store"), "{error}");
        assert!(is_free(port), "no hidden store makes it start");
        let fixed = refused(mesh(|m| m.role(role).rid("a"))).await;
        assert!(
            fixed.mistakes().iter().any(|one| one.problem().contains("fixed RID")),
            "{fixed}"
        );
    }
    let handled = refused(mesh(|m| m.role(ObjectRole::Client).serve_node(desk_server(desk())))).await;
    let direct = |error: &str| error.contains("Node direct");
    assert!(direct(&handled.to_string()), "{handled}");
    let served = refused(mesh(|m| {
        m.role(ObjectRole::Client).serve(orders_server(desk())).client(STOCK)
    }))
    .await;
    assert_eq!(served.mistakes().len(), 1, "channel roles are allowed: {served}");
    refuses(mesh(|m| m.role(ObjectRole::Server)), place, "Location Store").await;
}

/// REQ: NET-403, NET-407, NET-702, NET-1006, SP-101
#[tokio::test]
async fn a_channel_name_leads_to_one_path() {
    let orders = "\"orders\"";
    refuses(
        mesh(|m| m.serve(orders_server(desk())).client(ORDERS)),
        "shop",
        "twice in channel \"orders\"",
    )
    .await;
    refuses(mesh(|m| m.client(ORDERS).client(ORDERS)), "shop", "twice in channel").await;
    let twice = mesh(|m| m.serve(orders_server(desk())).serve(orders_server(desk())));
    refuses(twice, "shop", "twice in channel").await;
    let meshes = mesh(|m| m.client(ORDERS)).mesh("other", |m| m.listen(ANY).client(ORDERS));
    refuses(meshes, orders, "2 paths").await;
    let both = mesh(|m| m.client(ORDERS)).client_server(|c| c.serve(orders_server(desk())).listen(ANY));
    refuses(both, orders, "2 paths").await;
    let apart = channel(|c| c.serve(orders_server(desk())).listen(ANY))
        .client_server(|c| c.client(ORDERS).connect("tcp://127.0.0.1:7001"));
    refuses(apart, orders, "2 paths").await;
    let servers = channel(|c| c.serve(orders_server(desk())).serve(orders_server(desk())).listen(ANY));
    refuses(servers, orders, "role twice").await;
    let clients = channel(|c| c.client(ORDERS).client(ORDERS).connect("tcp://127.0.0.1:7001"));
    refuses(clients, orders, "role twice").await;

    let pair = channel(|c| c.serve(orders_server(desk())).client(ORDERS))
        .start()
        .await
        .unwrap();
    assert!(
        pair.status().is_ready(),
        "one Server and one Client role of a name are a single path"
    );
    let other = mesh(|m| m.serve(orders_server(desk())).serve(stock_server(desk())))
        .start()
        .await;
    assert!(other.unwrap().status().is_ready());
}

/// REQ: NET-405, CH-602, NET-1006, PM-13, MSG-204, MSG-803
#[tokio::test]
async fn values_out_of_range_are_refused() {
    let weighed = |weight| mesh(move |m| m.serve(orders_server(desk()).weight(weight)));
    refuses(weighed(10_001), "shop", "weight 10001").await;
    for weight in [0, 10_000] {
        weighed(weight).start().await.unwrap();
    }
    let clash = mesh(|m| m.serve_node(desk_server(desk())).serve_node(desk_server(desk())));
    let error = refused(clash).await;
    assert_eq!(
        error.mistakes().len(),
        2,
        "one for its request, one for its send: {error}"
    );
    // The same packet names in other scopes are other handlers.
    let apart = mesh(|m| {
        m.serve(orders_server(desk()))
            .serve(stock_server(desk()))
            .serve_node(desk_server(desk()))
    });
    apart.start().await.unwrap();

    refuses(mesh(|m| m).max_queued_jobs(0), "host", "max_queued").await;
    for (pause, resume) in [(0, 0), (101, 60), (80, 80), (60, 80)] {
        refuses(mesh(|m| m).pressure(pause, resume), "host", "percent").await;
    }
    for (pause, resume) in [(1, 0), (100, 99)] {
        mesh(|m| m)
            .max_queued_jobs(1)
            .pressure(pause, resume)
            .start()
            .await
            .unwrap();
    }
    refuses(mesh(|m| m).workers(0), "host", "0 workers").await;
    for timeout in [Duration::ZERO, Duration::from_millis(1 << 31)] {
        refuses(mesh(|m| m).request_timeout(timeout), "host", "request_timeout").await;
        refuses(mesh(|m| m).send_timeout(timeout), "host", "send_timeout").await;
        refuses(mesh(|m| m).drain_timeout(timeout), "host", "drain_timeout").await;
        refuses(mesh(|m| m).watchdog(timeout), "host", "watchdog").await;
        refuses(mesh(|m| m.send_timeout(timeout)), "mesh", "send_timeout").await;
        refuses(mesh(|m| m.request_timeout(timeout)), "shop", "request_timeout").await;
    }
    let longest = Duration::from_millis(i32::MAX as u64);
    mesh(|m| m.request_timeout(longest))
        .request_timeout(Duration::from_nanos(1))
        .start()
        .await
        .unwrap();
    for bytes in [0, 4095, 1 << 31] {
        refuses(mesh(|m| m.max_message(bytes)), "shop", "max_message").await;
    }
    for bytes in [1, 4095, 1 << 31] {
        let server = orders_server(desk());
        refuses(
            channel(|c| c.serve(server).listen(ANY).max_message(bytes)),
            "orders",
            "max_message",
        )
        .await;
    }
    let many = mesh(|m| {
        (0..200).fold(m.max_message(4096), |m, at| {
            let name = ChannelName::new(format!("a-channel-with-a-name-of-its-own-{at}")).unwrap();
            m.serve(orders_server(desk()).on(name))
        })
    });
    refuses(many, "shop", "max_message 4096").await;
    refuses(mesh(|m| m.link_budget(0)), "shop", "link_budget").await;
    refuses(mesh(|m| m.receive_budget(4095)), "shop", "receive_budget").await;
    refuses(mesh(|m| m.security_identity("s".repeat(256))), "shop", "256 bytes").await;
    refuses(
        mesh(|m| m.serve(orders_server(desk()).dispatch_limit(0))),
        "shop",
        "dispatch limit 0",
    )
    .await;
    refuses(
        mesh(|m| m.serve_node(desk().node().dispatch_limit(0))),
        "shop",
        "dispatch limit 0",
    )
    .await;
}

/// REQ: NET-204, NET-704, NET-1006
#[tokio::test]
async fn client_server_channels_need_roles_and_endpoints() {
    let place = "client_server";
    refuses(channel(|c| c), place, "no role").await;
    refuses(
        channel(|c| c.serve(orders_server(desk()))),
        "orders",
        "no listen endpoint",
    )
    .await;
    refuses(channel(|c| c.client(ORDERS)), "orders", "no endpoint to connect").await;
    let listening = channel(|c| c.client(ORDERS).connect("tcp://127.0.0.1:7001").listen(ANY));
    refuses(listening, "orders", "no Server role").await;
    let connecting = channel(|c| {
        c.serve(orders_server(desk()))
            .listen(ANY)
            .connect("tcp://127.0.0.1:7001")
    });
    refuses(connecting, "orders", "no Client role").await;
    let two = channel(|c| c.serve(orders_server(desk())).client(STOCK).listen(ANY));
    refuses(two, "orders", "\"stock\"").await;
    refuses(
        channel(|c| c.serve(orders_server(desk())).listen("tcp://0.0.0.0:0")),
        "orders",
        "advertise",
    )
    .await;
    refuses(
        channel(|c| c.client(ORDERS).connect("tcp://127.0.0.1:0")),
        "orders",
        "can only be bound",
    )
    .await;
    let alone = channel(|c| c.client(ORDERS).connect("tcp://127.0.0.1:7001"))
        .start()
        .await
        .unwrap();
    assert!(
        alone.status().is_ready(),
        "manual endpoints need no store, and start waits for no peer"
    );
    let renamed = ChannelName::from_static("other");
    channel(|c| c.serve(strict_server(desk()).on(renamed.clone())).client(renamed))
        .start()
        .await
        .unwrap();
}

/// REQ: NET-1003, NET-1006, ERR-102
#[tokio::test]
async fn every_mistake_is_told_at_once_and_nothing_is_left_bound() {
    let port = free_port();
    let good = format!("tcp://127.0.0.1:{port}");
    let error = refused(
        Host::builder()
            .pressure(10, 20)
            .mesh("good", |m| m.listen(&good))
            .mesh("bad", |m| {
                m.listen("nowhere")
                    .rid([])
                    .connect("tcp://127.0.0.1:0")
                    .serve(orders_server(desk()).weight(20_000))
                    .client(STOCK)
                    .client(STOCK)
            })
            .client_server(|c| c.client(ORDERS)),
    )
    .await;
    let all: Vec<_> = error.mistakes().iter().map(ToString::to_string).collect();
    let wanted = [
        "resume percent",
        "nowhere",
        "RID",
        "127.0.0.1:0",
        "20000",
        "\"stock\"",
        "2 paths",
        "no endpoint to connect",
    ];
    for part in wanted {
        assert!(all.iter().any(|one| one.contains(part)), "{part:?} is missing: {error}");
        assert!(error.to_string().contains(part));
    }
    assert_eq!(all.len(), wanted.len(), "{error}");
    assert!(is_free(port));
}

/// REQ: NET-1003
#[tokio::test]
async fn an_endpoint_that_is_in_use_fails_the_start_and_frees_the_others() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().port();
    let free = free_port();
    let builder = Host::builder()
        .mesh("first", |m| m.listen(format!("tcp://127.0.0.1:{free}")))
        .mesh("second", |m| m.listen(format!("tcp://127.0.0.1:{taken}")))
        .client_server(|c| {
            c.serve(orders_server(desk()))
                .listen(format!("tcp://127.0.0.1:{taken}"))
        });
    let error = refused(builder).await;
    assert_eq!(error.mistakes().len(), 2, "both are told: {error}");
    assert!(
        error.to_string().contains("mesh \"second\"") && error.to_string().contains("orders"),
        "{error}"
    );
    assert!(is_free(free), "what was bound before is free again");
}

/// REQ: NET-201, NET-202, NET-203, NET-207
#[tokio::test]
async fn listeners_tell_where_they_can_be_dialled() {
    let host = Host::builder()
        .mesh("plain", |m| m.listen(ANY))
        .mesh("wide", |m| m.listen("tcp://0.0.0.0:0").advertise("127.0.0.1"))
        .client_server(|c| c.serve(orders_server(desk())).client(ORDERS))
        .start()
        .await
        .unwrap();
    let mut ports = Vec::new();
    for (kind, name) in [
        (ListenerKind::RouteMesh, "plain"),
        (ListenerKind::RouteMesh, "wide"),
        (ListenerKind::ClientServer, "orders"),
    ] {
        let info = host.listener(kind, name).unwrap();
        assert_eq!((info.kind, info.name.as_str()), (kind, name));
        let port = info.endpoint.port().unwrap();
        assert_ne!(port, 0);
        assert_eq!(info.endpoint.to_string(), format!("tcp://127.0.0.1:{port}"));
        assert!(
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok(),
            "{name} can be dialled"
        );
        assert!(info.observed <= tokio::time::Instant::now());
        ports.push(port);
    }
    ports.dedup();
    assert_eq!(ports.len(), 3, "each has a listener of its own");
    for (kind, name) in [
        (ListenerKind::RouteMesh, "orders"),
        (ListenerKind::ClientServer, "plain"),
        (ListenerKind::RouteMesh, "none"),
    ] {
        assert!(host.listener(kind, name).is_err(), "{kind:?} {name}");
    }
}

/// REQ: NET-102, NET-103, NET-404
#[tokio::test]
async fn a_bare_node_serves_under_its_fixed_or_its_made_rid() {
    let fixed = mesh(|m| m.rid([0xff, 0x00, 0xfe])).start().await.unwrap();
    assert_eq!(fixed.mesh("shop").unwrap().rid().as_bytes(), [0xff, 0x00, 0xfe]);
    assert_eq!(fixed.status().phase, HostPhase::Serving);
    let mut made = Vec::new();
    for prefix in [None, Some("eu.west-1_A"), Some(&*"p".repeat(64))] {
        let host = mesh(|m| prefix.into_iter().fold(m, |m, prefix| m.rid_prefix(prefix)));
        let host = host.start().await.unwrap();
        let rid = String::from_utf8(host.mesh("shop").unwrap().rid().as_bytes().to_vec()).unwrap();
        let uuid = rid
            .strip_prefix(prefix.unwrap_or("node"))
            .and_then(|rest| rest.strip_prefix('-'));
        let uuid: Vec<_> = uuid.unwrap_or_else(|| panic!("{rid}")).split('-').collect();
        assert_eq!(uuid.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert!(
            uuid.concat()
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)),
            "{rid}"
        );
        assert!(
            uuid[2].starts_with('4') && uuid[3].starts_with(['8', '9', 'a', 'b']),
            "{rid} is no UUID v4"
        );
        made.push(rid);
    }
    let again = mesh(|m| m).start().await.unwrap();
    assert_ne!(again.mesh("shop").unwrap().rid().as_bytes(), made[0].as_bytes());
}

/// Binds every endpoint at once but one, for which it waits.
#[derive(Debug)]
struct Slow {
    inner: LinkTransport,
    endpoint: String,
    go: Arc<Semaphore>,
}

impl Transport for Slow {
    fn bind<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        offer: Offer,
        acceptor: Arc<dyn Acceptor>,
    ) -> BoxFuture<'a, Result<Box<dyn Listener>, TransportError>> {
        Box::pin(async move {
            if endpoint.to_string() == self.endpoint && self.go.acquire().await.is_err() {
                return Err(TransportError::Bind {
                    endpoint: self.endpoint.clone(),
                    cause: "the test wants it so".into(),
                });
            }
            self.inner.bind(endpoint, offer, acceptor).await
        })
    }

    fn dial<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        offer: Offer,
    ) -> BoxFuture<'a, Result<Arc<dyn Link>, TransportError>> {
        self.inner.dial(endpoint, offer)
    }
}

/// A node that no peer could ever admit, for what it would say of itself, is a mistake like others, told with the others.
///
/// REQ: NET-1001, NET-1006
#[tokio::test]
async fn what_a_node_says_of_itself_is_checked_with_everything_else_before_a_socket_opens() {
    let serve = |mesh: MeshBuilder, letter: &str, channels: usize, pad: usize| {
        (0..channels).fold(mesh, |mesh, at| {
            let name = ChannelName::new(format!("{at:04}{}", letter.repeat(pad))).unwrap();
            mesh.serve(orders_server(desk()).on(name))
        })
    };
    let first = format!("tcp://127.0.0.1:{}", free_port());
    let slow = Slow {
        inner: LinkTransport::new(LinkConfig::default()),
        endpoint: first.clone(),
        // Nobody lets it be bound.
        go: Arc::new(Semaphore::new(0)),
    };
    let builder = Host::builder()
        .transport(slow)
        .mesh("first", |m| m.listen(&first))
        .mesh("", |m| serve(m.listen(ANY), "a", 4097, 1))
        .mesh("depot", |m| serve(m.listen(ANY), "b", 2000, 251))
        .mesh("small", |m| serve(m.listen(ANY).max_message(4096), "c", 20, 251))
        .client_server(|c| c)
        .mesh("wild", |m| m.listen("tcp://*:0"));
    let error = soon("the failure", refused(builder)).await;
    let text = error.to_string();
    for told in [
        "lists 4097 channels",
        "bytes to tell peers its channels and handlers",
        "bytes to tell of its channels",
        "has no role",
        "listens on every address",
    ] {
        assert!(text.contains(told), "{told:?} in {text}");
    }
    assert_eq!(
        error.mistakes().len(),
        6,
        "each once, and the mesh without a name: {text}"
    );
}

/// REQ: NET-1001, NET-1003
#[tokio::test]
async fn nobody_is_let_in_before_all_is_bound() {
    for succeeds in [true, false] {
        let handler = desk();
        let (first, second) = (free_port(), free_port());
        let [first, second] = [first, second].map(|port| format!("tcp://127.0.0.1:{port}"));
        let go = Arc::new(Semaphore::new(0));
        let slow = Slow {
            inner: LinkTransport::new(LinkConfig::default()),
            endpoint: second.clone(),
            go: go.clone(),
        };
        let builder = Host::builder()
            .mesh("shop", |m| m.listen(&first).serve_node(desk_server(handler.clone())))
            .mesh("depot", |m| m.listen(&second))
            .transport(slow);
        let starting = spawn(builder.start());
        let port = first.rsplit(':').next().unwrap().parse().unwrap();
        until("the first listener", || !is_free(port)).await;
        let raw = Raw::dial(&first, &hello_of("raw")).await;
        raw.say(&hello(RecordKind::Hello, &hello_of("raw")));
        settle().await;
        assert_eq!(raw.count(RecordKind::Admit), 0);
        assert!(!starting.is_finished());
        if succeeds {
            go.add_permits(1);
            let host = soon("the start", starting).await.unwrap().unwrap();
            raw.heard(RecordKind::Admit).await;
            assert!(host.status().is_ready());
        } else {
            go.close();
            soon("the failure", starting).await.unwrap().unwrap_err();
            raw.ended().await;
            assert_eq!(raw.count(RecordKind::Admit), 0);
            assert!(is_free(port));
        }
        assert_eq!(handler.runs(), 0);
    }
}
