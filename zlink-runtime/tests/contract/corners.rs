//! Ends of ranges, and combinations of what each works alone.

use std::time::Duration;

use zlink_generated::contract::{Brief, ORDERS, orders_client, orders_server};
use zlink_runtime::PeerState;
use zlink_runtime::error::CallError;
use zlink_runtime::id::Rid;
use zlink_runtime::prelude::*;
use zlink_runtime::transport::zmtp::Security;
use zlink_runtime::transport::{LinkConfig, LinkTransport};

use super::kit::*;

/// What is wrong with a message is told at once, whether or not there is somebody to send it to.
///
/// REQ: ERR-102
#[tokio::test(start_paused = true)]
async fn a_message_that_breaks_its_bound_is_refused_before_anybody_is_waited_for() {
    let long = || Brief {
        text: "more than 8 bytes".into(),
    };
    let lonely = Host::builder()
        .client_server(|channel| channel.client(ORDERS).connect("tcp://127.0.0.1:1"))
        .start()
        .await
        .unwrap();
    let begun = tokio::time::Instant::now();
    let end = orders_client(&lonely)
        .brief(long())
        .timeout(Duration::from_secs(3))
        .await;
    assert!(matches!(end, Err(CallError::Argument(_))), "{end:?}");
    assert!(begun.elapsed() < Duration::from_secs(1));
    let alone = node("c", |mesh| mesh.client(ORDERS)).start().await.unwrap();
    let end = orders_client(&alone).brief(long()).await;
    assert!(matches!(end, Err(CallError::Argument(_))), "{end:?}");
}

/// An intent for an endpoint leads to whoever listens there, also where the one it led to before is a peer still, over
/// another link.
///
/// REQ: NET-503
#[tokio::test]
async fn an_intent_leads_to_who_listens_there_now() {
    let b = node("b", |mesh| mesh).start().await.unwrap();
    let at = endpoint(&b);
    let a = node("a", |mesh| mesh.connect(&at)).start().await.unwrap();
    linked(&a, &rid_of(&b)).await;
    // It moves to another address, from where it dials; its former run ends, and another node takes the place.
    let to_a = endpoint(&a);
    let moved = node("b", |mesh| mesh.connect(&to_a)).start().await.unwrap();
    linked(&moved, &rid_of(&a)).await;
    b.shutdown().await.unwrap();
    until("the link of the new run", || connections(&a) > 0).await;
    let c = Host::builder().mesh("shop", |mesh| mesh.listen(&at).rid("c"));
    let c = c.start().await.unwrap();
    let c_rid = rid_of(&c);
    let seen = within(Duration::from_secs(20), async {
        while peer_state(&a, &c_rid) != Some(PeerState::Ready) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(
        seen.await.is_some(),
        "nobody dials {at}: {:?}",
        a.mesh("shop").unwrap().intents()
    );
    assert_eq!(peer_state(&a, &Rid::new("b").unwrap()), Some(PeerState::Ready));
}

/// REQ: NET-1006
#[tokio::test]
async fn more_workers_than_there_can_be_are_a_mistake_like_others() {
    let start = tokio::spawn(node("c", |mesh| mesh).workers(usize::MAX).start());
    let end = start.await;
    assert!(matches!(end, Ok(Err(_))), "{end:?}");
}

/// REQ: NET-410
#[tokio::test]
async fn the_largest_numbers_mean_no_bound() {
    let desk = Desk::new("s");
    let orders = orders_server(desk.clone()).dispatch_limit(usize::MAX);
    let s = node("s", |mesh| {
        mesh.serve(orders).link_budget(usize::MAX).receive_budget(usize::MAX)
    });
    let s = s.max_queued_jobs(i32::MAX as u32).start().await.unwrap();
    let at = endpoint(&s);
    let c = node("c", |mesh| {
        mesh.client(ORDERS)
            .connect(&at)
            .link_budget(usize::MAX)
            .receive_budget(usize::MAX)
    });
    let c = c.start().await.unwrap();
    linked(&c, &rid_of(&s)).await;
    for number in 0..10 {
        let reply = soon("a reply", orders_client(&c).ask(heavy(number, 1 << 20))).await;
        assert_eq!(reply.unwrap().number, number);
    }
    at_rest(&[&s, &c]).await;
}

/// What another host has put in its place is not its own to remove.
#[tokio::test]
async fn a_host_that_ends_leaves_the_socket_file_of_another() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("shop.sock");
    let at = format!("ipc://{}", path.display());
    let serve = |rid: &'static str| Host::builder().mesh("shop", |mesh| mesh.listen(&at).rid(rid)).start();
    let a = serve("a").await.unwrap();
    std::fs::remove_file(&path).unwrap();
    let b = serve("b").await.unwrap();
    a.shutdown().await.unwrap();
    assert!(path.exists(), "the socket of the second host is gone");
    let c = node("c", |mesh| mesh.connect(&at)).start().await.unwrap();
    linked(&c, &rid_of(&b)).await;
    b.shutdown().await.unwrap();
    assert!(!path.exists(), "its own file is left");
}

/// Where a file has been left, one of those that start there at once takes its place, and keeps it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_hosts_that_start_at_one_socket_file_one_has_it() {
    let folder = tempfile::TempDir::new().unwrap();
    for round in 0..20 {
        let path = folder.path().join(format!("{round}.sock"));
        // Dropping a listener of the system's leaves its file.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let at = format!("ipc://{}", path.display());
        let starts: Vec<_> = (0..4)
            .map(|number| {
                let builder = Host::builder().mesh("shop", |mesh| mesh.listen(&at).rid(format!("h{number}")));
                tokio::spawn(builder.start())
            })
            .collect();
        let mut started = Vec::new();
        for start in starts {
            started.extend(soon("an end", start).await.unwrap().ok());
        }
        assert_eq!(started.len(), 1, "round {round}");
        let c = node("c", |mesh| mesh.connect(&at)).start().await.unwrap();
        linked(&c, &rid_of(&started[0])).await;
    }
}

/// REQ: NET-1006
#[tokio::test]
async fn a_listener_that_may_hold_no_connection_is_a_mistake() {
    let config = LinkConfig {
        connections: 0,
        ..LinkConfig::default()
    };
    let end = node("c", |mesh| mesh)
        .transport(LinkTransport::new(config))
        .start()
        .await;
    assert!(end.is_err(), "it started, and nobody can ever link with it");
}

/// Credentials that no handshake can carry would keep every peer out.
///
/// REQ: NET-1006
#[tokio::test]
async fn credentials_that_cannot_be_sent_are_a_mistake() {
    let with = |username: usize, password: usize| {
        let config = LinkConfig {
            security: Security::Plain {
                username: "u".repeat(username),
                password: "p".repeat(password),
            },
            ..LinkConfig::default()
        };
        node("c", |mesh| mesh).transport(LinkTransport::new(config)).start()
    };
    assert!(with(255, 255).await.is_ok());
    for (username, password) in [(256, 1), (1, 256)] {
        let end = with(username, password).await;
        assert!(
            end.is_err(),
            "{username} and {password} bytes: it started, and nobody can ever link with it"
        );
    }
}

/// REQ: CH-304, NET-706
#[tokio::test]
async fn a_weight_that_is_set_while_a_host_drains_brings_it_no_call() {
    for way in WAYS {
        let desk = Desk::new("s");
        let s = serving(way, orders_server(desk.clone()), |host| host).await;
        let c = calling(way, "c", &s, |host| host).await;
        let held = spawn(orders_client(&c).ask(note("hold", 1)));
        desk.reached(1).await;
        let stopping = s.clone();
        let stop = tokio::spawn(async move { stopping.shutdown().await });
        until("no candidate", || candidates(&c) == 0).await;
        match way {
            Way::Mesh => s.mesh("shop").unwrap().set_weight(ORDERS, 500).unwrap(),
            Way::ClientServer => s.client_server("orders").unwrap().set_weight(500).unwrap(),
        }
        settle().await;
        assert_eq!(candidates(&c), 0, "{way:?}");
        desk.gate().open();
        soon("the reply", held).await.unwrap().unwrap();
        soon("the stop", stop).await.unwrap().unwrap();
    }
}

/// A path that no Unix socket can have is a wrong endpoint, whatever else is wrong, and wherever it stands.
///
/// REQ: NET-1006, NET-1003
#[tokio::test]
async fn a_path_that_no_socket_can_have_is_told_with_all_other_mistakes() {
    let long = format!("ipc:///tmp/{}", "x".repeat(200));
    let builder = Host::builder()
        .pressure(10, 20)
        .mesh("shop", |mesh| mesh.listen(&long))
        .mesh("other", |mesh| mesh.listen(ANY).connect(&long));
    let error = refused(builder).await;
    let all: Vec<_> = error.mistakes().iter().map(ToString::to_string).collect();
    for place in ["host", "mesh \"shop\"", "mesh \"other\""] {
        assert!(
            all.iter().any(|one| one.starts_with(place)),
            "{place} is missing: {error}"
        );
    }
}

/// Texts are for people: a name stands there as they wrote it.
///
/// REQ: ERR-104
#[tokio::test(start_paused = true)]
async fn failures_name_the_channel_as_its_users_do() {
    let c = node("c", |mesh| mesh.client(ORDERS)).start().await.unwrap();
    let nowhere = orders_client(&c).on(ChannelName::from_static("nowhere"));
    let second = Duration::from_secs(1);
    let texts = [
        orders_client(&c).ask(note("", 1)).await.unwrap_err().to_string(),
        nowhere.ask(note("", 1)).await.unwrap_err().to_string(),
        c.mesh("shop")
            .unwrap()
            .ready(ORDERS, 1, second)
            .await
            .unwrap_err()
            .to_string(),
    ];
    for text in texts {
        assert!(
            text.contains("channel \"orders\"") || text.contains("channel \"nowhere\""),
            "{text}"
        );
    }
}

/// A call that no server was there for says so, and of which channel: no reply was to be expected.
///
/// REQ: CH-308
#[tokio::test(start_paused = true)]
async fn a_call_that_found_no_server_in_time_says_so() {
    let builder = Host::builder().client_server(|channel| channel.client(ORDERS).connect("tcp://127.0.0.1:1"));
    let lonely = builder.start().await.unwrap();
    let call = orders_client(&lonely).ask(note("", 1)).timeout(Duration::from_secs(1));
    let text = call.await.unwrap_err().to_string();
    assert!(text.contains("no server") && text.contains("orders"), "{text}");
}

/// A handler that tells when it goes.
struct Held(#[allow(dead_code, reason = "it is only held")] std::sync::Arc<()>);

impl zlink_generated::contract::DeskHandler for Held {
    async fn ask(
        &self,
        _: &NodeContext<'_>,
        request: zlink_generated::contract::Note,
    ) -> Result<zlink_generated::contract::Note, HandlerError> {
        Ok(request)
    }
    async fn tell(&self, _: &NodeContext<'_>, _: zlink_generated::contract::Note) -> Result<(), HandlerError> {
        Ok(())
    }
}

/// With its host, a handler goes, and all that it holds: connections of a database, files, locks.
///
/// REQ: NET-1007
#[tokio::test]
async fn a_host_that_has_ended_lets_its_handlers_go() {
    for ends in ["shutdown", "drop"] {
        for linked_with_other in [false, true] {
            let held = std::sync::Arc::new(());
            let handler = Held(held.clone());
            let s = node("s", |mesh| {
                mesh.serve_node(zlink_generated::contract::desk_server(handler))
            });
            let s = s.start().await.unwrap();
            let other = node("c", |mesh| mesh).start().await.unwrap();
            if linked_with_other {
                other.mesh("shop").unwrap().connect(&endpoint(&s), None).unwrap();
                linked(&other, &rid_of(&s)).await;
                zlink_generated::contract::desk_client(&other, &SHOP, rid_of(&s))
                    .ask(note("", 1))
                    .await
                    .unwrap();
            }
            if ends == "shutdown" {
                s.shutdown().await.unwrap();
            }
            drop(s);
            let gone = within(Duration::from_secs(5), async {
                while std::sync::Arc::strong_count(&held) > 1 {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            });
            assert!(
                gone.await.is_some(),
                "{ends}, linked: {linked_with_other}: the handler lives on"
            );
        }
    }
}

/// The weights of the servers that calls to `orders` may go to, as that host knows them.
fn weights(host: &Host) -> Vec<u16> {
    let status = match host.client_server("orders") {
        Ok(channel) => channel.status(),
        Err(_) => host.mesh("shop").unwrap().status(),
    };
    let orders = status.channels.into_iter().find(|(name, _)| *name == ORDERS);
    let targets = orders.into_iter().flat_map(|(_, targets)| targets);
    targets.map(|target| target.weight).collect()
}

/// A caller under pressure hears of another weight, and that a server drains, like any other: what it calls from then on
/// goes elsewhere.
///
/// REQ: CH-304, NET-911, NET-914, PM-44
#[tokio::test]
async fn a_caller_under_pressure_leaves_a_server_that_drains() {
    for way in WAYS {
        let (one, two, own) = (Desk::new("one"), Desk::new("two"), Desk::new("c"));
        let serve = |rid: &str, desk: &Desk| {
            let orders = orders_server(desk.clone());
            match way {
                Way::Mesh => node(rid, |mesh| mesh.serve(orders)),
                Way::ClientServer => Host::builder().client_server(|channel| channel.serve(orders).listen(ANY)),
            }
        };
        let s = serve("one", &one).start().await.unwrap();
        let t = serve("two", &two).start().await.unwrap();
        let (at_s, at_t, direct) = (address(&s), address(&t), own.node().dispatch_limit(1));
        let c = match way {
            Way::Mesh => node("c", |mesh| {
                mesh.client(ORDERS).connect(at_s).connect(at_t).serve_node(direct)
            }),
            Way::ClientServer => node("c", |mesh| mesh.serve_node(direct))
                .client_server(|channel| channel.client(ORDERS).connect(at_s).connect(at_t)),
        };
        let c = c.max_queued_jobs(2).start().await.unwrap();
        until("two servers", || candidates(&c) == 2).await;
        let held: Vec<_> = (0..2).map(|_| spawn(orders_client(&c).ask(note("hold", 1)))).collect();
        one.reached(1).await;
        two.reached(1).await;
        // Its own jobs take every permit.
        let itself = zlink_generated::contract::desk_client(&c, &SHOP, rid_of(&c));
        let jobs: Vec<_> = (1..=4).map(|number| spawn(itself.tell(note("hold", number)))).collect();
        until("no permit to be free", || c.status().jobs.queued == 2).await;
        if way == Way::Mesh {
            until("the pause", || {
                s.mesh("shop").unwrap().status().peers.iter().any(|peer| peer.paused)
            })
            .await;
        }
        match way {
            Way::Mesh => t.mesh("shop").unwrap().set_weight(ORDERS, 7).unwrap(),
            Way::ClientServer => t.client_server("orders").unwrap().set_weight(7).unwrap(),
        }
        until("the other weight", || weights(&c).contains(&7)).await;
        let stopping = s.clone();
        let stop = spawn(async move { stopping.shutdown().await });
        until("one server less", || weights(&c) == [7]).await;
        two.gate().open();
        for number in 0..50 {
            let reply = soon("an end", orders_client(&c).ask(note("", 10 + number))).await;
            assert_eq!(reply.unwrap().text, "two");
        }
        assert_eq!(c.status().jobs.queued, 2, "it had a permit to spare: {way:?}");
        one.gate().open();
        own.gate().open();
        for call in held {
            soon("a reply", call).await.unwrap().unwrap();
        }
        for job in jobs {
            soon("a send", job).await.unwrap().unwrap();
        }
        soon("the stop", stop).await.unwrap().unwrap();
    }
}

/// As a node's does, the handler of a channel goes with its host: whether that was shut down or dropped, linked or alone,
/// with a call that has not ended, and whoever still holds something to call with.
///
/// REQ: NET-1007
#[tokio::test]
async fn a_channel_that_has_ended_lets_its_handler_go() {
    for (way, shut_down, called) in [
        (Way::ClientServer, true, false),
        (Way::ClientServer, false, false),
        (Way::ClientServer, true, true),
        (Way::ClientServer, false, true),
        (Way::Mesh, true, false),
        (Way::Mesh, false, false),
        (Way::Mesh, true, true),
        (Way::Mesh, false, true),
    ] {
        let desk = Desk::new("s");
        let s = serving(way, orders_server(desk.clone()), |host| {
            host.drain_timeout(Duration::from_millis(1))
        })
        .await;
        // It may outlive its host.
        let rid = Rid::new("nobody").unwrap();
        let left = zlink_generated::contract::desk_client(&s, &SHOP, rid);
        let mut caller = None;
        if called {
            let c = calling(way, "c", &s, |host| host).await;
            orders_client(&c).ask(note("", 1)).await.unwrap();
            let held = spawn(orders_client(&c).ask(note("hold", 2)));
            desk.reached(2).await;
            caller = Some((c, held));
        }
        if shut_down {
            // The call that waits is ended by force.
            assert_eq!(s.shutdown().await.is_err(), called);
        }
        drop(s);
        until("the handler to go", || desk.handles() == 1).await;
        drop(left);
        if let Some((_, held)) = caller {
            assert!(soon("its end", held).await.unwrap().is_err());
        }
    }
}
