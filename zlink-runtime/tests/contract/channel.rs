//! Chapter 02: Node direct and select-one through real hosts.

use std::time::{Duration, Instant};

use zlink_generated::contract::{
    ORDERS, STOCK, desk_client, orders_client, orders_server, stock_client, stock_server, strict_server,
};
use zlink_generated::zlink_wire::{ChannelServer, Hello, ObjectRole, RecordKind};
use zlink_runtime::error::{CallError, ErrorKind, Execution};
use zlink_runtime::id::{ChannelName, MeshName, Rid};
use zlink_runtime::{Host, ListenerKind, MessageKind, PeerState};

use crate::kit::{
    ANY, Desk, Raw, SHOP, address_of, client, client_with, connections, doomed, endpoint, failure, hello_of, linked,
    node, note, peer_state, rid_of, server, settle, soon, spawn, until, who, who_at,
};

const NOT_FOUND: (ErrorKind, Execution) = (ErrorKind::NotFound, Execution::NotExecuted);

/// REQ: CH-201, CH-202, CH-203, EX-85, ERR-601
#[tokio::test]
async fn node_direct_reaches_the_named_node_or_nobody() {
    let desks = [Desk::new("a"), Desk::new("b"), Desk::new("c")];
    let (a, c) = (server("a", 100, &desks[0]).await, server("c", 100, &desks[2]).await);
    let b = desks[1].clone();
    let (b, kill) = doomed(async move { server("b", 100, &b).await }).await;
    let caller = client("caller", &[&a, &b, &c]).await;
    for _ in 0..3 {
        assert_eq!(who_at(&caller, &rid_of(&b)).await.unwrap(), "b");
    }
    desk_client(&caller, &SHOP, rid_of(&b)).tell(note("", 9)).await.unwrap();
    desks[1].reached(4).await;
    assert_eq!([desks[0].runs(), desks[2].runs()], [0, 0]);
    assert_eq!(failure(who_at(&caller, &Rid::new("nobody").unwrap()).await), NOT_FOUND);
    let depot = MeshName::from_static("depot");
    assert_eq!(
        failure(desk_client(&caller, &depot, rid_of(&a)).ask(note("", 0)).await),
        NOT_FOUND
    );

    kill.now();
    let down = rid_of(&b);
    until("its loss", || peer_state(&caller, &down) != Some(PeerState::Ready)).await;
    // Known but not ready: it waits for a second. At its deadline it would end with another kind.
    let gone = failure(who_at(&caller, &down).await);
    assert_eq!(gone, (ErrorKind::Unavailable, Execution::NotExecuted));
    let own = who_within(&caller, &down, Duration::from_millis(100)).await;
    assert_eq!(
        failure(own),
        (ErrorKind::DeadlineExceeded, Execution::NotExecuted),
        "the call's own time ends first"
    );
    assert_eq!([desks[0].runs(), desks[2].runs()], [0, 0], "nobody stands in for it");
}

async fn who_within(host: &Host, rid: &Rid, limit: Duration) -> Result<String, CallError> {
    let call = desk_client(host, &SHOP, rid.clone()).ask(note("", 0)).timeout(limit);
    call.await.map(|note| note.text)
}

/// REQ: CH-204
#[tokio::test]
async fn an_object_client_takes_no_node_direct_calls() {
    let host = client("c", &[]).await;
    let hello = Hello {
        role: ObjectRole::Client,
        ..hello_of("objects")
    };
    let raw = Raw::join(&endpoint(&host), &hello).await;
    let rid = Rid::new("objects").unwrap();
    linked(&host, &rid).await;
    assert_eq!(failure(who_at(&host, &rid).await), NOT_FOUND);
    settle().await;
    assert_eq!(raw.count(RecordKind::NodeRequest), 0);
}

/// REQ: CH-207, PM-31, MSG-409
#[tokio::test]
async fn a_node_calls_itself_as_it_calls_others() {
    let desk = Desk::new("self");
    let host = server("s", 100, &desk).await;
    let itself = desk_client(&host, &SHOP, rid_of(&host));
    let reply = itself.ask(note("", 1)).metadata("tenant", "acme").await.unwrap();
    assert_eq!(reply, note("self", 1));
    itself.tell(note("", 2)).await.unwrap();
    desk.reached(2).await;
    let seen = desk.seen();
    assert_eq!(seen[0].source, Some((SHOP, rid_of(&host))));
    assert_eq!(seen[0].metadata.view().get("tenant"), Some("acme"));
    assert!(seen[0].correlation.is_some() && seen[1].correlation.is_none());
    assert_eq!(connections(&host), 0, "no link is made for it");
    let failed = failure(itself.ask(note("fail", 3)).await);
    assert_eq!(failed, (ErrorKind::InternalFailure, Execution::Unknown));
    let late = itself.ask(note("hold", 4)).timeout(Duration::from_millis(50)).await;
    assert_eq!(failure(late), (ErrorKind::DeadlineExceeded, Execution::Unknown));
    until("no job", || host.status().jobs.in_use() == 0).await;
    desk.gate().open();
}

/// REQ: CH-205, CH-1002, ERR-209
#[tokio::test]
async fn a_draining_node_is_not_replaced_by_another() {
    let (going, other) = (Desk::new("going"), Desk::new("other"));
    let (a, b) = (server("a", 100, &going).await, server("b", 100, &other).await);
    let caller = client("c", &[&a, &b]).await;
    let held = spawn(desk_client(&caller, &SHOP, rid_of(&a)).ask(note("hold", 1)));
    going.reached(1).await;
    let stop = spawn({
        let a = a.clone();
        async move { a.shutdown().await }
    });
    until("the drain", || {
        peer_state(&caller, &rid_of(&a)) == Some(PeerState::Draining)
    })
    .await;
    let refused = failure(who_at(&caller, &rid_of(&a)).await);
    assert_eq!(refused, (ErrorKind::ShuttingDown, Execution::NotExecuted));
    going.gate().open();
    assert_eq!(soon("what was accepted", held).await.unwrap().unwrap().text, "going");
    soon("the stop", stop).await.unwrap().unwrap();
    assert_eq!((going.runs(), other.runs()), (1, 0));
}

/// REQ: CH-301, CH-303, CH-305, ERR-602, ERR-201
#[tokio::test]
async fn a_channel_leads_to_a_registered_path_and_never_to_oneself() {
    let (own, other) = (Desk::new("own"), Desk::new("other"));
    let s = server("s", 100, &own).await;
    assert_eq!(
        failure(orders_client(&s).ask(note("", 0)).await),
        NOT_FOUND,
        "the only server is the caller itself"
    );
    assert_eq!(failure(orders_client(&s).tell(note("", 0)).await), NOT_FOUND);
    let b = server("b", 1, &other).await;
    s.mesh("shop").unwrap().connect(&endpoint(&b), None).unwrap();
    linked(&s, &rid_of(&b)).await;
    for _ in 0..10 {
        assert_eq!(who(&s).await, "other");
    }
    assert_eq!(
        failure(stock_client(&s).ask(note("", 0)).await),
        NOT_FOUND,
        "not registered here"
    );
    let bystander = client("c", &[&s]).await;
    let elsewhere = orders_client(&bystander).on(ChannelName::from_static("elsewhere"));
    assert_eq!(failure(elsewhere.ask(note("", 0)).await), NOT_FOUND);
    settle().await;
    assert_eq!((own.runs(), other.runs()), (0, 10));
}

/// REQ: CH-306, CH-307, CH-405
#[tokio::test]
async fn a_local_server_competes_through_a_real_link() {
    let (local, remote) = (Desk::new("local"), Desk::new("remote"));
    let far = Host::builder().client_server(|c| c.serve(orders_server(remote.clone())).listen(ANY));
    let far = far.start().await.unwrap();
    let to = far
        .listener(ListenerKind::ClientServer, "orders")
        .unwrap()
        .endpoint
        .to_string();
    let near = Host::builder().client_server(|c| {
        c.serve(orders_server(local.clone()))
            .client(ORDERS)
            .connect(&to)
            .max_message(64 << 10)
    });
    let near = near.start().await.unwrap();
    let control = near.client_server("orders").unwrap();
    until("both servers", || control.status().channels[0].1.len() == 2).await;
    for number in 0..400 {
        orders_client(&near).ask(note("", number)).await.unwrap();
    }
    assert_eq!((local.runs(), remote.runs()), (200, 200), "equal weights alternate");
    let bunched = local.numbers().windows(2).any(|pair| pair[1] - pair[0] != 2);
    assert!(!bunched, "{:?}", local.numbers());

    control.set_weight(300).unwrap();
    until("the weight", || {
        control.status().channels[0].1.iter().any(|target| target.weight == 300)
    })
    .await;
    for number in 0..800 {
        orders_client(&near).ask(note("", number)).await.unwrap();
    }
    assert_eq!((local.runs(), remote.runs()), (800, 400));
    far.shutdown().await.unwrap();
    until("the local one alone", || control.status().channels[0].1.len() == 1).await;
    let too_large = orders_client(&near).ask(crate::kit::heavy(0, 70 << 10)).await;
    assert!(
        matches!(too_large, Err(CallError::Argument(_))),
        "the link's limit holds: {too_large:?}"
    );
    assert_eq!(who(&near).await, "local");

    let strict = Desk::new("strict");
    let host = Host::builder().client_server(|c| c.serve(strict_server(strict.clone()).on(ORDERS)).client(ORDERS));
    let host = host.start().await.unwrap();
    let undecodable = failure(orders_client(&host).ask(note("", 0)).await);
    assert_eq!(
        undecodable,
        (ErrorKind::ProtocolError, Execution::NotExecuted),
        "no bypass skips the codec"
    );
    assert_eq!(strict.runs(), 0);
}

/// A service was renamed, or is a node's now: its clients are told, and do not wait for their deadlines. They find it as
/// soon as it is there.
///
/// REQ: CH-312, ERR-201, ERR-603
#[tokio::test]
async fn calls_do_not_wait_where_every_endpoint_is_something_else() {
    let (here, there) = (crate::kit::free_port(), crate::kit::free_port());
    let at = |port: u16| format!("tcp://127.0.0.1:{port}");
    let other = Desk::new("other");
    let renamed = Host::builder().client_server(|c| c.serve(stock_server(other.clone())).listen(at(here)));
    let renamed = renamed.start().await.unwrap();
    let builder = Host::builder().client_server(|c| c.client(ORDERS).connect(at(here)).connect(at(there)));
    let c = builder.start().await.unwrap();

    // Nobody has answered at the other endpoint, so somebody may yet come there.
    let request = spawn(orders_client(&c).ask(note("", 1)));
    let send = spawn(orders_client(&c).tell(note("", 2)));
    let failures = || {
        let intents = c.client_server("orders").unwrap().intents();
        intents
            .into_iter()
            .filter_map(|intent| intent.failure)
            .collect::<Vec<_>>()
    };
    until("one has refused", || {
        failures().iter().any(|text| text.contains("Channel"))
    })
    .await;
    assert!(!request.is_finished() && !send.is_finished());

    // A node of a mesh comes: it serves by RID, and no channel.
    let mesh = Host::builder().mesh("shop", |mesh| mesh.listen(at(there)));
    let mesh = mesh.start().await.unwrap();
    let nobody = (ErrorKind::NotFound, Execution::NotExecuted);
    let told = soon("the request", request).await.unwrap();
    let text = told.as_ref().unwrap_err().to_string();
    assert!(
        text.contains(&at(here)) && text.contains("\"stock\"") && text.contains(&at(there)) && text.contains("mesh"),
        "{text}"
    );
    assert_eq!(failure(told), nobody);
    assert_eq!(failure(soon("the send", send).await.unwrap()), nobody);
    assert_eq!(
        failure(
            soon("the next", spawn(orders_client(&c).ask(note("", 3))))
                .await
                .unwrap()
        ),
        nobody
    );
    let status = c.client_server("orders").unwrap().status();
    assert_eq!(status.selection_failures[0].1.no_member, 3);

    // One that is gone says nothing any more, and the right one is found without being asked for.
    mesh.shutdown().await.unwrap();
    until("it is gone", || {
        !failures().iter().any(|text| text.contains("Topology"))
    })
    .await;
    let request = spawn(orders_client(&c).ask(note("", 4)));
    settle().await;
    assert!(!request.is_finished());
    let desk = Desk::new("s");
    let s = Host::builder().client_server(|c| c.serve(orders_server(desk.clone())).listen(at(there)));
    let s = s.start().await.unwrap();
    assert_eq!(soon("the reply", request).await.unwrap().unwrap().text, "s");
    assert_eq!((desk.runs(), other.runs()), (1, 0));

    // Whoever adds an endpoint has somebody to wait for.
    s.shutdown().await.unwrap();
    let control = c.client_server("orders").unwrap();
    assert!(control.disconnect(&at(there)).unwrap());
    assert_eq!(
        failure(
            soon("the next", spawn(orders_client(&c).ask(note("", 5))))
                .await
                .unwrap()
        ),
        nobody
    );
    control.connect(&at(there), None).unwrap();
    let request = spawn(orders_client(&c).ask(note("", 6)));
    settle().await;
    assert!(!request.is_finished());
    renamed.shutdown().await.unwrap();
}

/// REQ: CH-308, EX-96, ERR-603, ERR-208, NET-1002
#[tokio::test]
async fn a_client_server_call_waits_for_a_server() {
    let port = crate::kit::free_port();
    let at = format!("tcp://127.0.0.1:{port}");
    let c = Host::builder()
        .client_server(|c| c.client(ORDERS).connect(&at))
        .start()
        .await
        .unwrap();
    let begin = Instant::now();
    let nobody = failure(orders_client(&c).hurry(note("", 0)).await);
    assert_eq!(nobody, (ErrorKind::DeadlineExceeded, Execution::NotExecuted));
    assert!(begin.elapsed() >= Duration::from_millis(150));
    let request = spawn(orders_client(&c).ask(note("", 1)));
    let send = spawn(orders_client(&c).tell(note("", 2)));
    settle().await;
    assert!(!request.is_finished() && !send.is_finished());
    let desk = Desk::new("s");
    let s = Host::builder()
        .client_server(|c| c.serve(orders_server(desk.clone())).listen(&at))
        .start()
        .await
        .unwrap();
    assert_eq!(soon("the reply", request).await.unwrap().unwrap().text, "s");
    soon("the send", send).await.unwrap().unwrap();
    desk.reached(2).await;
    s.shutdown().await.unwrap();

    let limited = Host::builder().send_timeout(Duration::from_millis(100));
    let limited = limited
        .client_server(|c| c.client(ORDERS).connect(&at))
        .start()
        .await
        .unwrap();
    let waited = failure(orders_client(&limited).tell(note("", 3)).await);
    assert_eq!(waited, (ErrorKind::DeadlineExceeded, Execution::NotExecuted));
    let both = Host::builder().client_server(|c| c.serve(orders_server(desk.clone())).client(ORDERS));
    let both = both.start().await.unwrap();
    assert_eq!(who(&both).await, "s", "right after the start");
    assert_eq!(desk.runs(), 3);
}

/// REQ: CH-309, ERR-602, ERR-206, CH-302
#[tokio::test]
async fn an_unreachable_server_is_told_from_none() {
    let desk = Desk::new("s");
    let theirs = desk.clone();
    let (s, kill) = doomed(async move { server("s", 100, &theirs).await }).await;
    let c = client("c", &[&s]).await;
    s.mesh("shop").unwrap().set_weight(ORDERS, 0).unwrap();
    let targets = || c.mesh("shop").unwrap().status().channels[0].1.len();
    until("no weight", || targets() == 0).await;
    assert_eq!(failure(orders_client(&c).ask(note("", 0)).await), NOT_FOUND);
    s.mesh("shop").unwrap().set_weight(ORDERS, 5).unwrap();
    until("its weight", || targets() == 1).await;
    kill.now();
    until("its loss", || targets() == 0).await;
    let lost = failure(orders_client(&c).ask(note("", 0)).await);
    assert_eq!(lost, (ErrorKind::Unavailable, Execution::NotExecuted));
    assert_eq!(desk.runs(), 0);
}

/// REQ: CH-401, CH-405, CH-406, CH-302
#[tokio::test]
async fn weights_of_100_and_300_give_b_a_b_b() {
    let (light, heavy) = (Desk::new("A"), Desk::new("B"));
    let (a, b) = (server("a", 100, &light).await, server("b", 300, &heavy).await);
    for caller in ["c", "d"] {
        let c = client(caller, &[&a, &b]).await;
        let mut order = String::new();
        for _ in 0..12 {
            order += &who(&c).await;
        }
        assert_eq!(
            order, "BABBBABBBABB",
            "the same for every caller that sees the same list"
        );
    }
}

/// REQ: CH-402
#[tokio::test]
async fn equal_servers_go_by_the_bytes_of_their_rids() {
    for [smaller, greater] in [[&b"a"[..], b"ab"], [&[0x7f], &[0x80]]] {
        let mut hosts = Vec::new();
        // The greater one is there first, and on the lower port, which decides nothing.
        for (rid, name) in [(greater, "greater"), (smaller, "smaller")] {
            let desk = Desk::new(name);
            let builder = Host::builder().mesh("shop", |mesh| mesh.listen(ANY).rid(rid).serve(orders_server(desk)));
            hosts.push(builder.start().await.unwrap());
        }
        let c = client("caller", &[&hosts[0], &hosts[1]]).await;
        let mut order = Vec::new();
        for _ in 0..4 {
            order.push(who(&c).await);
        }
        assert_eq!(order, ["smaller", "greater", "smaller", "greater"]);
    }
}

/// REQ: CH-404, CH-302
#[tokio::test]
async fn who_leaves_the_list_and_returns_starts_without_credit() {
    let (light, heavy) = (Desk::new("A"), Desk::new("B"));
    let (a, b) = (server("a", 100, &light).await, server("b", 300, &heavy).await);
    let c = client("c", &[&a, &b]).await;
    let targets = || c.mesh("shop").unwrap().status().channels[0].1.len();
    assert_eq!(who(&c).await + &who(&c).await, "BA");
    b.mesh("shop").unwrap().set_weight(ORDERS, 0).unwrap();
    until("its leave", || targets() == 1).await;
    b.mesh("shop").unwrap().set_weight(ORDERS, 300).unwrap();
    until("its return", || targets() == 2).await;
    let mut order = String::new();
    for _ in 0..4 {
        order += &who(&c).await;
    }
    // A keeps its -200, B is back at 0. Were both kept it would be BBBA, were both reset BABB.
    assert_eq!(order, "BBAB");
}

/// REQ: CH-411, CH-403, CH-405
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_callers_share_one_sequence() {
    let (light, heavy) = (Desk::new("A"), Desk::new("B"));
    let (a, b) = (server("a", 2_500, &light).await, server("b", 7_500, &heavy).await);
    let c = client("c", &[&a, &b]).await;
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let orders = orders_client(&c);
            spawn(async move {
                for _ in 0..50 {
                    orders.ask(note("", 0)).await.unwrap();
                }
            })
        })
        .collect();
    for caller in callers {
        soon("all calls", caller).await.unwrap();
    }
    assert_eq!((light.runs(), heavy.runs()), (100, 300));
}

/// REQ: CH-501, CH-502, ERR-404, ERR-405, EX-86, MSG-106
#[tokio::test]
async fn a_request_to_a_killed_server_ends_once_and_runs_nowhere_else() {
    let (dying, living) = (Desk::new("dying"), Desk::new("living"));
    let theirs = dying.clone();
    let (a, kill) = doomed(async move { server("a", 10_000, &theirs).await }).await;
    let b = server("b", 1, &living).await;
    let c = client("c", &[&a, &b]).await;
    let calls: Vec<_> = (0..10)
        .map(|number| spawn(orders_client(&c).ask(note("hold", number))))
        .collect();
    dying.reached(10).await;
    kill.now();
    for call in calls {
        let ended = failure(soon("its end", call).await.unwrap());
        assert_eq!(ended, (ErrorKind::Unavailable, Execution::Unknown));
    }
    assert_eq!(c.status().waiting_requests, 0);
    let again = orders_client(&c).ask(note("", 99)).await.unwrap();
    assert_eq!(again, note("living", 99), "a new call is a new operation");
    settle().await;
    assert_eq!(living.numbers(), [99]);
}

/// Until a link has taken the record, another member may be picked; it is then submitted once.
///
/// REQ: CH-310, ERR-803
#[tokio::test]
async fn a_call_that_still_waits_goes_to_another_server() {
    let c = node("c", |mesh| mesh.client(ORDERS)).start().await.unwrap();
    let hello = Hello {
        channels: vec![ChannelServer {
            name: "orders".into(),
            weight: 100,
        }],
        ..hello_of("a")
    };
    let raw = Raw::join(&endpoint(&c), &hello).await;
    raw.announce(1, true);
    let paused = || c.mesh("shop").unwrap().status().peers.iter().any(|peer| peer.paused);
    until("the pause", paused).await;
    let send = spawn(orders_client(&c).tell(note("", 1)));
    let request = spawn(orders_client(&c).ask(note("", 2)));
    settle().await;
    assert!(!send.is_finished() && !request.is_finished());
    let desk = Desk::new("b");
    let b = server("b", 100, &desk).await;
    c.mesh("shop").unwrap().connect(&endpoint(&b), None).unwrap();
    linked(&c, &rid_of(&b)).await;
    raw.leave();
    soon("the send", send).await.unwrap().unwrap();
    assert_eq!(soon("the request", request).await.unwrap().unwrap().text, "b");
    desk.reached(2).await;
    settle().await;
    let mut numbers = desk.numbers();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);
    assert_eq!(
        raw.count(RecordKind::ChannelSend) + raw.count(RecordKind::ChannelRequest),
        0
    );
}

/// REQ: CH-601, CH-603, CH-604, EX-13, MSG-301, MSG-305
#[tokio::test]
async fn each_scope_has_its_own_handler_for_one_packet_name() {
    let desks = [Desk::new("orders"), Desk::new("stock"), Desk::new("desk")];
    let s = node("s", |mesh| {
        mesh.serve(orders_server(desks[0].clone()))
            .serve(stock_server(desks[1].clone()))
            .serve_node(desks[2].node())
    });
    let s = s.start().await.unwrap();
    let c = client_with("c", &[&s], |host| host).await;
    drop(c);
    let c = node("c", |mesh| mesh.client(ORDERS).client(STOCK).connect(endpoint(&s)))
        .start()
        .await
        .unwrap();
    linked(&c, &rid_of(&s)).await;
    assert_eq!(orders_client(&c).ask(note("", 1)).await.unwrap().text, "orders");
    assert_eq!(stock_client(&c).ask(note("", 2)).await.unwrap().text, "stock");
    assert_eq!(who_at(&c, &rid_of(&s)).await.unwrap(), "desk");
    orders_client(&c).tell(note("", 3)).await.unwrap();
    stock_client(&c).tell(note("", 3)).await.unwrap();
    desk_client(&c, &SHOP, rid_of(&s)).tell(note("", 3)).await.unwrap();
    for (desk, scope) in desks.iter().zip(["orders", "stock", "desk"]) {
        desk.reached(2).await;
        for (seen, kind) in desk.seen().iter().zip([MessageKind::Request, MessageKind::Send]) {
            assert_eq!((seen.scope, seen.kind), (scope, kind));
            let packet = match kind {
                MessageKind::Request => "contract.orders.ask",
                _ => "contract.orders.tell",
            };
            assert_eq!(seen.packet, packet, "the same in every scope");
            assert_eq!(seen.content_type, "application/x-flatbuffers");
            let channel = (scope != "desk").then(|| ChannelName::new(scope).unwrap());
            assert_eq!(seen.channel, channel);
            let source = (scope == "desk").then(|| (SHOP, Rid::new("c").unwrap()));
            assert_eq!(seen.source, source);
        }
    }
}

/// REQ: CH-311, CH-401, CH-405
#[tokio::test]
async fn manual_endpoints_follow_the_same_order() {
    let desks = [Desk::new("light"), Desk::new("heavy")];
    let mut hosts = Vec::new();
    for (desk, weight) in desks.iter().zip([100, 300]) {
        let server = orders_server(desk.clone()).weight(weight);
        let host = Host::builder().client_server(|c| c.serve(server).listen(ANY));
        hosts.push(host.start().await.unwrap());
    }
    let to = |at: usize| address_of(&hosts[at], "orders");
    let c = Host::builder()
        .client_server(|c| c.client(ORDERS).connect(to(0)).connect(to(1)))
        .start()
        .await
        .unwrap();
    let control = c.client_server("orders").unwrap();
    until("both servers", || control.status().channels[0].1.len() == 2).await;
    let mut order = String::new();
    for number in 0..40 {
        order += &orders_client(&c).ask(note("", number)).await.unwrap().text[..1];
    }
    // The made RIDs decide the tie in the middle.
    assert!(order == "hlhh".repeat(10) || order == "hhlh".repeat(10), "{order}");
}

/// REQ: CH-1004, MSG-409, MSG-404, EX-74
#[tokio::test]
async fn both_kinds_of_path_and_the_node_carry_metadata() {
    let desk = Desk::new("s");
    let s = Host::builder()
        .mesh("shop", |mesh| {
            mesh.listen(ANY)
                .rid("s")
                .serve(orders_server(desk.clone()))
                .serve_node(desk.node())
        })
        .client_server(|c| c.serve(stock_server(desk.clone())).client(STOCK));
    let s = s.start().await.unwrap();
    let c = client("c", &[&s]).await;
    let (orders, direct) = (orders_client(&c), desk_client(&c, &SHOP, rid_of(&s)));
    orders.ask(note("", 0)).metadata("k", "1").await.unwrap();
    orders.tell(note("", 0)).metadata("k", "2").await.unwrap();
    direct.ask(note("", 0)).metadata("k", "3").await.unwrap();
    direct.tell(note("", 0)).metadata("k", "4").await.unwrap();
    stock_client(&s).ask(note("", 0)).metadata("k", "5").await.unwrap();
    stock_client(&s).tell(note("", 0)).metadata("k", "6").await.unwrap();
    desk.reached(6).await;
    let values = desk
        .seen()
        .iter()
        .map(|seen| seen.metadata.view().get("k").unwrap().to_owned())
        .collect::<Vec<_>>();
    let mut sorted = values.clone();
    sorted.sort();
    assert_eq!(sorted, ["1", "2", "3", "4", "5", "6"], "{values:?}");
}
