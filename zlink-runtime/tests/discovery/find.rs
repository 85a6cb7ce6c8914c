//! Nodes and servers that find each other, and what they are told of each other before they are linked.

use std::time::Duration;

use zlink_generated::contract::{Note, STOCK, desk_client, desk_server, stock_client, stock_server};
use zlink_runtime::error::ErrorKind;
use zlink_runtime::id::MeshName;
use zlink_runtime::location::MemoryStore;
use zlink_runtime::prelude::*;
use zlink_runtime::{LocationState, ObjectRole, PeerState, TopologyPhase};

use crate::kit::{
    Clerk, Line, OF_HOSTS, ask, caller, free_port, keys, kind, node, peers, quick, rid, selects, server, settle, state,
    targets, until,
};

/// REQ: LS-054, NET-501, NET-203
#[tokio::test]
async fn two_hosts_find_each_other_and_exchange_a_request() {
    let store = MemoryStore::new();
    let s = server(store.clone(), "s").start().await.unwrap();
    let c = caller(store.clone(), "c").start().await.unwrap();
    selects(&c, &["s"]).await;
    assert_eq!(ask(&c).await.unwrap(), "s");
    assert_eq!(state(&c), LocationState::Ready);
    assert!(s.mesh("shop").unwrap().endpoint().port().unwrap() > 0);
    assert!(
        c.mesh("shop").unwrap().intents().is_empty(),
        "nobody asked for it by hand"
    );

    // One that joins later is found by those who run, whoever of the two dials.
    for name in ["a", "z"] {
        let joined = server(store.clone(), name).start().await.unwrap();
        selects(&c, &[name, "s"]).await;
        joined.shutdown().await.unwrap();
        selects(&c, &["s"]).await;
    }
}

/// Who is found through the store is told with the port that it got: nobody has to choose one.
///
/// REQ: NET-203
#[tokio::test]
async fn a_port_that_is_left_out_is_a_free_one_for_who_is_found() {
    let store = MemoryStore::new();
    for host in ["127.0.0.1", "[::1]"] {
        let listen = format!("tcp://{host}");
        let s = node(store.clone(), "s", |mesh| mesh.listen(&listen)).start().await;
        let s = s.unwrap_or_else(|error| panic!("{error}"));
        let endpoint = s.mesh("shop").unwrap().endpoint().clone();
        assert_eq!(endpoint.as_str(), format!("{listen}:{}", endpoint.port().unwrap()));
        assert!(endpoint.port() > Some(0));
        let serve = |channel: zlink_runtime::ClientServerBuilder| channel.serve(stock_server(Clerk::new("s")));
        let s = Host::builder().location_store(store.clone());
        let s = s.client_server(|channel| serve(channel).listen(&listen)).start().await;
        assert!(s.is_ok(), "{s:?}");
    }
    let manual = Host::builder()
        .mesh("shop", |mesh| mesh.listen("tcp://127.0.0.1"))
        .start()
        .await;
    assert!(manual.is_err(), "nobody could be told of it");
}

/// REQ: NET-502, NET-504
#[tokio::test]
async fn each_pair_has_one_link() {
    let store = MemoryStore::new();
    let mut hosts = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        hosts.push(server(store.clone(), name).start().await.unwrap());
    }
    for host in &hosts {
        let host = host.clone();
        until("four links", move || {
            let peers = peers(&host);
            peers.len() == 4 && peers.iter().all(|(_, state)| *state == PeerState::Ready)
        })
        .await;
    }
    for host in &hosts {
        settle(host).await;
        assert_eq!(host.mesh("shop").unwrap().status().phase, TopologyPhase::Ready);
        assert_eq!(peers(host).len(), 4);
    }
}

/// REQ: NET-507, NET-704, CH-306
#[tokio::test]
async fn clients_find_the_servers_of_their_channel_and_nobody_else() {
    let store = MemoryStore::new();
    let host = || Host::builder().location_store(store.clone()).location_timing(quick());
    let serve = |name: &str| {
        let clerk = Clerk::new(name);
        host().client_server(|channel| channel.serve(stock_server(clerk)))
    };
    let one = serve("one").start().await.unwrap();
    let other = serve("other").start().await.unwrap();
    // Of another channel, and of a mesh: not for this client.
    let clerk = Clerk::new("elsewhere");
    let elsewhere = host()
        .client_server(|channel| channel.serve(stock_server(clerk.clone()).on(ChannelName::from_static("elsewhere"))))
        .mesh("stock", |mesh| mesh.serve_node(desk_server(clerk)));
    let elsewhere = elsewhere.start().await.unwrap();

    let both = Clerk::new("both");
    let client = host().client_server(|channel| channel.client(STOCK).serve(stock_server(both)));
    let client = client.start().await.unwrap();
    let servers = |host: &Host| {
        let status = host.client_server(STOCK).unwrap().status();
        status.channels.iter().map(|(_, targets)| targets.len()).sum::<usize>()
    };
    let at = client.clone();
    until("three servers", move || servers(&at) == 3).await;
    settle(&client).await;
    assert_eq!(servers(&client), 3);
    let mut counts = std::collections::BTreeMap::<_, usize>::new();
    for _ in 0..300 {
        *counts.entry(ask(&client).await.unwrap()).or_default() += 1;
    }
    let counts: Vec<_> = counts.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(counts, [("both", 100), ("one", 100), ("other", 100)]);
    one.shutdown().await.unwrap();
    let at = client.clone();
    until("two servers", move || servers(&at) == 2).await;
    drop((other, elsewhere));
}

/// REQ: LS-056, NET-408, NET-409, OB-14
#[tokio::test]
async fn two_pure_clients_have_no_link_and_miss_none() {
    let store = MemoryStore::new();
    let client = |prefix| node(store.clone(), prefix, |mesh| mesh.role(ObjectRole::Client));
    let a = client("a").start().await.unwrap();
    let b = client("b").start().await.unwrap();
    for (host, other) in [(&a, "b"), (&b, "a")] {
        let (at, other) = (host.clone(), other.to_owned());
        until("the other to be listed", move || {
            peers(&at) == [(other.clone(), PeerState::NotRequired)]
        })
        .await;
        settle(host).await;
        let status = host.mesh("shop").unwrap().status();
        assert_eq!((status.phase, status.ready_peers()), (TopologyPhase::Ready, 0));
    }
    let to_b = desk_client(&a, &MeshName::from_static("shop"), rid(&b))
        .ask(Note::default())
        .await;
    assert_eq!(kind(to_b.map(|note| note.text)), ErrorKind::NotFound);

    // One Server membership, even of weight 0, and they need one.
    let clerk = Clerk::new("s");
    let c = node(store.clone(), "c", |mesh| {
        mesh.role(ObjectRole::Client).serve(stock_server(clerk).weight(0))
    });
    let _c = c.start().await.unwrap();
    let at = a.clone();
    until("a link to the server", move || {
        peers(&at).contains(&("c".to_owned(), PeerState::Ready))
    })
    .await;
}

/// REQ: NET-402
#[tokio::test]
async fn each_mesh_finds_its_own() {
    let store = MemoryStore::new();
    let shop = server(store.clone(), "shop").start().await.unwrap();
    let clerk = Clerk::new("depot");
    let depot = Host::builder()
        .location_store(store.clone())
        .location_timing(quick())
        .mesh("depot", |mesh| mesh.serve(stock_server(clerk)));
    let depot = depot.start().await.unwrap();
    let c = caller(store, "c").start().await.unwrap();
    selects(&c, &["shop"]).await;
    settle(&c).await;
    assert_eq!(targets(&c), ["shop"]);
    drop((shop, depot));
}

/// A server that nobody can reach is known through the store alone, and what changes of it is known so, too.
///
/// REQ: CH-309, LS-005, LS-052, NET-405
#[tokio::test]
async fn what_a_server_publishes_is_known_without_a_link() {
    let store = MemoryStore::new();
    let c = caller(store.clone(), "a").start().await.unwrap();
    assert_eq!(kind(ask(&c).await), ErrorKind::NotFound, "none is known");
    let s = node(store.clone(), "s", |mesh| {
        // It listens at 127.0.0.1 and says otherwise.
        mesh.listen("tcp://127.0.0.1:0")
            .advertise("127.0.0.9")
            .serve(stock_server(Clerk::new("s")))
    });
    let s = s.start().await.unwrap();
    let fails_with = |expected| {
        let c = c.clone();
        async move {
            let watch = crate::kit::Stopwatch::start();
            while kind(ask(&c).await) != expected {
                assert!(!watch.is_past(crate::kit::SOON), "not in time: {expected:?}");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    };
    fails_with(ErrorKind::Unavailable).await;
    assert_eq!(targets(&c), [""; 0], "a descriptor alone makes no target");
    assert_eq!(peers(&c).len(), 1);
    let mesh = s.mesh("shop").unwrap();
    mesh.set_weight(STOCK, 0).unwrap();
    fails_with(ErrorKind::NotFound).await;
    mesh.set_weight(STOCK, 7).unwrap();
    fails_with(ErrorKind::Unavailable).await;
    s.shutdown().await.unwrap();
    fails_with(ErrorKind::NotFound).await;
    settle(&c).await;
    assert!(peers(&c).is_empty());
}

/// REQ: NET-104, NET-704
#[tokio::test]
async fn what_is_manual_stays_out_of_the_store_and_works_beside_it() {
    let store = MemoryStore::new();
    let port = free_port();
    let clerk = Clerk::new("manual");
    let manual = Host::builder()
        .location_store(store.clone())
        .location_timing(quick())
        .mesh("shop", |mesh| {
            mesh.manual()
                .rid("manual")
                .listen(format!("tcp://127.0.0.1:{port}"))
                .serve(stock_server(clerk))
        });
    let manual = manual.start().await.unwrap();
    assert!(keys(&store, &["node/", "server/"]).await.is_empty());

    let found = server(store.clone(), "found").start().await.unwrap();
    let c = node(store.clone(), "a", |mesh| {
        mesh.client(STOCK).connect(format!("tcp://127.0.0.1:{port}"))
    });
    let c = c.start().await.unwrap();
    let at = c.clone();
    until("both", move || {
        at.mesh("shop").unwrap().status().channels[0].1.len() == 2
    })
    .await;
    let mut names = vec![ask(&c).await.unwrap(), ask(&c).await.unwrap()];
    names.sort_unstable();
    assert_eq!(names, ["found", "manual"]);
    settle(&manual).await;
    assert_eq!(
        manual.mesh("shop").unwrap().status().peers.len(),
        1,
        "the one that dialled it"
    );
    drop(found);
}

/// REQ: LS-057, LS-034
#[tokio::test]
async fn an_orderly_stop_takes_everything_back_at_once() {
    let store = MemoryStore::new();
    let clerk = Clerk::new("s");
    let builder = server(store.clone(), "s")
        .client_server(|channel| channel.serve(stock_server(clerk).on(ChannelName::from_static("depot"))));
    let s = builder.start().await.unwrap();
    let mut there = keys(&store, OF_HOSTS).await;
    there.iter_mut().for_each(|key| key.truncate(key.find('/').unwrap()));
    assert_eq!(there, ["lease", "node", "server"]);
    s.shutdown().await.unwrap();
    assert!(keys(&store, OF_HOSTS).await.is_empty());

    // The last handle is dropped: nothing waits, and yet it is taken back.
    let line = Line::new(&store);
    let s = server(line, "s").start().await.unwrap();
    drop(s);
    let watch = crate::kit::Stopwatch::start();
    while !keys(&store, OF_HOSTS).await.is_empty() {
        assert!(!watch.is_past(crate::kit::SOON), "not in time: an empty store");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// REQ: NET-701
#[tokio::test]
async fn a_call_waits_for_a_server_that_is_found_later() {
    let store = MemoryStore::new();
    let host = || Host::builder().location_store(store.clone()).location_timing(quick());
    let client = host()
        .client_server(|channel| channel.client(STOCK))
        .start()
        .await
        .unwrap();
    let call = tokio::spawn(stock_client(&client).ask(Note::default()).into_future());
    settle(&client).await;
    let clerk = Clerk::new("late");
    let _server = host()
        .client_server(|channel| channel.serve(stock_server(clerk)))
        .start()
        .await
        .unwrap();
    assert_eq!(call.await.unwrap().unwrap().text, "late");
}
