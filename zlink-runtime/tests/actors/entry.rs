//! The Entry Spot of a node: how it is called, what it may wait for, who waits for it, and that it comes back.

use std::time::Duration;

use zlink_runtime::SpotEntryState;
use zlink_runtime::error::ErrorKind;
use zlink_runtime::id::SpotKind;
use zlink_runtime::rt::{self, ActorCreated};

use crate::kit::*;
use crate::players::*;

const SECOND: Duration = Duration::from_secs(1);
/// Longer than it takes to see that a host is dead.
const PATIENCE: Duration = Duration::from_secs(120);

/// Whoever is linked with a node knows its Entry Spot, and can call it.
///
/// REQ: NET-106
#[tokio::test(start_paused = true)]
async fn every_node_tells_its_entry_spot() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 260);
        for name in ["north", "east"] {
            serves_with(&cluster, &world, name, players);
        }
        calls(&cluster, "caller");
        start(&cluster).await?;
        let own = |name: &str| {
            let host = cluster.host(name);
            let node = host.mesh("world").unwrap();
            (node.rid(), node.entry_spot())
        };
        let (north, east) = (own("north"), own("east"));
        assert_eq!(own("caller").1, None);
        for name in ["north", "east", "caller"] {
            let host = cluster.host(name);
            let known = host.mesh("world")?.entry_spots();
            let all = [&north, &east].map(|(node, entry)| (node.clone(), entry.clone().unwrap()));
            assert_eq!(known, all.into(), "{name}");
            for (node, entry) in &known {
                let greeted = hall_spots(&host).of(entry).greet(text(name)).await?;
                assert!(greeted.text.starts_with(&format!("hello {name}")), "{greeted:?}");
                let found = host.find_spot(entry).await?.unwrap();
                assert_eq!((&found.reference.node, found.kind), (node, SpotKind::Entry));
            }
        }
        cluster.stop("east").await?;
        let left = cluster.host("caller").mesh("world")?.entry_spots();
        assert_eq!(left.into_keys().collect::<Vec<_>>(), [north.0]);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Others take the Entry Spot of a host that cannot prove that it lives. It comes back with its host, under its ID; until
/// then nobody's Actor begins there.
///
/// REQ: SP-005, LS-052, AC-066
#[tokio::test(start_paused = true)]
async fn an_entry_spot_that_was_taken_comes_back_with_its_host() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = player_world(place, 261).await?;
        serves_with(&cluster, &world, "other", players);
        let (p, _) = player(&host, "p").await?;
        cluster.start("other").await?;
        cluster.advance(3 * SECOND).await;
        let entry = cluster.host("owner").mesh("world")?.entry_spot().unwrap();
        let found = async || host.find_spot(&entry).await;
        let before = found().await?.unwrap().reference;
        assert_eq!(said(&p, "spot").await?, entry.as_str());

        world.holds("start");
        cluster.store_faults("owner").cut();
        cluster.advance(60 * SECOND).await;
        assert_eq!(found().await?, None, "it was taken");
        cluster.store_faults("owner").heal();
        let make_some = async |prefix: &str| {
            for at in 0..10 {
                let created = player_actors(&host).create(format!("{prefix}{at}"), text("x")).await?;
                assert!(matches!(created, ActorCreated::Created(..)), "{created:?}");
            }
            Ok::<_, Failure>(world.count(" on owner"))
        };
        world.until("held in start").await;
        cluster.advance(3 * SECOND).await;
        assert_eq!(make_some("meanwhile").await?, 1, "only p: another node is asked");
        // It is tried until it is there.
        world.note("the next hall fails");
        world.open_build(1);
        cluster.advance(SECOND).await;
        assert_eq!((world.count("a hall failed"), found().await?), (1, None));
        assert_eq!(make_some("still").await?, 1);
        world.open_build(1);
        cluster.advance(10 * SECOND).await;

        let again = found().await?.unwrap();
        assert_eq!((again.state, again.kind), (SpotEntryState::Ready, SpotKind::Entry));
        assert!(again.reference.generation > before.generation, "it is another one");
        assert_eq!(world.count("held in start"), 2, "made once");
        assert_eq!(cluster.host("owner").mesh("world")?.entry_spot(), Some(entry.clone()));
        assert_eq!(
            hall_spots(&host).of(&entry).greet(text("you")).await?.text,
            "hello you, you are 1"
        );
        // Whoever was there is where it was.
        assert_eq!(said(&p, "spot").await?, entry.as_str());
        assert_eq!(said(&p, "greet").await?, "hello p, you are 2");
        assert!(make_some("then").await? > 1, "it takes new ones again");
        cluster.shutdown().await?;
        assert_eq!(world.count("the hall closes"), 2, "each once");
    }
    Ok(())
}

/// A new Actor needs a turn of the Entry Spot, which a turn of it would wait for in vain. Another node may have it.
///
/// REQ: EX-30
#[tokio::test(start_paused = true)]
async fn an_entry_spot_does_not_wait_for_itself() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = player_world(place, 262).await?;
        let entry = cluster.host("owner").mesh("world")?.entry_spot().unwrap();
        let hall = hall_spots(&host).of(&entry);
        let bring = async |id: &str| Ok::<_, Failure>(hall.greet(text(&format!("bring {id}"))).await?.text);
        let began = rt::Instant::now();
        let refused = bring("q").await?;
        assert!(
            refused.starts_with("InvalidOperation NotExecuted") && refused.contains("decides about every new Actor"),
            "{refused}"
        );
        assert!(began.elapsed() < SECOND, "at once");
        assert_eq!(world.count("make q"), 0);
        player(&host, "p").await?;
        assert!(bring("p").await?.starts_with("owner"), "what is there is found");
        // Somebody else's, which needs a turn of it as well.
        world.holds("create");
        let creating = tokio::spawn(player_actors(&host).create("r", text("x")).into_future());
        world.until("held in create").await;
        let began = rt::Instant::now();
        assert!(bring("r").await?.starts_with("InvalidOperation NotExecuted"));
        assert!(began.elapsed() < SECOND, "at once");
        world.open_build(3);
        creating.await??;
        serves_with(&cluster, &world, "other", players);
        cluster.start("other").await?;
        cluster.advance(3 * SECOND).await;
        for at in 0..2 {
            assert!(bring(&format!("q{at}")).await?.starts_with("other"));
        }
        cluster.shutdown().await?;
    }
    Ok(())
}

/// An admission that never ends keeps others waiting, each until its deadline; then it is as if it had never been asked for.
///
/// REQ: AC-062
#[tokio::test(start_paused = true)]
async fn who_waits_for_an_admission_waits_until_the_deadline() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = player_world(place, 263).await?;
        let players = player_actors(&host);
        let create = |id: &str, timeout| {
            let call = players.create(id, text("x")).timeout(timeout);
            tokio::spawn(call.into_future())
        };
        world.holds("admit");
        let first = create("first", PATIENCE);
        world.until("held in admit").await;
        // In all more than its lane has room for.
        for round in 0..3 {
            let began = rt::Instant::now();
            let late: Vec<_> = (0..100)
                .map(|at| create(&format!("late{round}-{at}"), 5 * SECOND))
                .collect();
            for late in late {
                let error = late.await?.unwrap_err();
                assert_eq!(error.kind(), Some(ErrorKind::DeadlineExceeded), "{error}");
            }
            let took = began.elapsed();
            assert!(took >= 5 * SECOND && took < 6 * SECOND, "{took:?}");
        }
        let then = create("late0-0", PATIENCE);
        cluster.advance(SECOND).await;
        assert_eq!(world.count("make late0-0 "), 2, "its ID is free again");
        world.open_build(2);
        for created in [first, then] {
            let created = created.await??;
            assert!(matches!(created, ActorCreated::Created(..)), "{created:?}");
        }
        assert_eq!(world.count("hall decides"), 2);
        assert_eq!(world.count("player dropped"), 300, "nothing is kept of them");
        cluster.shutdown().await?;
    }
    Ok(())
}
