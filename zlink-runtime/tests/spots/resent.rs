//! A create whose answer is lost on its way is asked for again as what it is, the same operation: it happens once, and its
//! caller gets the answer that it would have got.

use std::time::Duration;

use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::rt::SpotCreated;

use crate::arena::*;
use crate::kit::*;

/// Longer than it takes to see that a host is dead.
const PATIENCE: Duration = Duration::from_secs(120);

/// REQ: SP-085, LS-043, AC-090, AC-097
#[tokio::test(start_paused = true)]
async fn a_create_whose_answer_is_lost_is_answered_as_it_ended() -> Tested {
    for place in REMOTE {
        for (at, motd) in ["hello", "reject", "fail"].into_iter().enumerate() {
            for named in [true, false] {
                // Whether it ends before its caller can ask again, or after.
                for early in [true, false] {
                    // All of them in memory, half of them elsewhere.
                    if place.1 != Provider::Memory && early != named {
                        continue;
                    }
                    let (cluster, world, host) = placed(place, 80 + at as u64).await?;
                    world.holds("create");
                    let rooms = room_spots(&host);
                    let call = if named {
                        rooms.get_or_create("room", text(motd))
                    } else {
                        rooms.create(text(motd))
                    };
                    let creating = tokio::spawn(call.timeout(PATIENCE).into_future());
                    world.until("held in create").await;
                    if early {
                        cluster.network().partition(&["owner"], &["caller"]);
                    }
                    assert!(cluster.network().break_connections("owner", "caller", false) > 0);
                    if early {
                        world.open_build(1);
                        cluster.advance(Duration::from_secs(2)).await;
                        cluster.network().heal();
                    } else {
                        cluster.advance(Duration::from_secs(10)).await;
                        world.open_build(1);
                    }
                    let ended = creating.await?;
                    assert_eq!(world.count("create "), 1, "{:?}", world.log());
                    let found = match motd {
                        "hello" => {
                            let SpotCreated::Created(spot, reply) = ended? else {
                                panic!("it has created it");
                            };
                            assert_eq!(reply, text("created with hello"));
                            assert_eq!(look(&rooms.of(&spot.id), "lines").await?, "hello");
                            rooms.find(&spot.id).await? == Some(spot)
                        }
                        "reject" => ended? == SpotCreated::Rejected(text("no")),
                        _ => {
                            let error = ended.unwrap_err();
                            error.execution() == Execution::Unknown && error.kind() == Some(ErrorKind::InternalFailure)
                        }
                    };
                    assert!(found, "{motd}, {named}, {early}");
                    cluster.shutdown().await?;
                }
            }
        }
    }
    Ok(())
}

/// What it made may be gone by the time its caller can ask again, and another in its place: that is not what it has made.
///
/// REQ: SP-085, AC-090
#[tokio::test(start_paused = true)]
async fn a_create_whose_answer_is_lost_is_told_its_own_end_where_another_made_the_next() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = placed(place, 95).await?;
        calls(&cluster, "third");
        start(&cluster).await?;
        world.holds("create");
        let (rooms, others) = (room_spots(&host), room_spots(&cluster.host("third")));
        let call = rooms.get_or_create("room", text("hello")).timeout(PATIENCE);
        let creating = tokio::spawn(call.into_future());
        world.until("held in create").await;
        cluster.network().partition(&["owner"], &["caller"]);
        assert!(cluster.network().break_connections("owner", "caller", false) > 0);
        // Of this one and of the next.
        world.open_build(2);
        world.until("initialize room").await;
        let first = loop {
            if let Some(spot) = others.find("room").await? {
                break spot;
            }
            cluster.advance(Duration::from_millis(1)).await;
        };
        assert!(others.close(&first).await?);
        let next = others.get_or_create("room", text("again")).await?;
        assert!(matches!(&next, SpotCreated::Created(..)), "{next:?}");
        cluster.network().heal();

        let SpotCreated::Created(spot, reply) = creating.await?? else {
            panic!("it has created one");
        };
        assert_eq!((&spot, reply), (&first, text("created with hello")));
        assert_eq!(
            look(&rooms.of("room"), "lines").await?,
            "again",
            "whoever calls by ID finds the next"
        );
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-085, LS-044, AC-090
#[tokio::test(start_paused = true)]
async fn a_create_whose_node_dies_meanwhile_is_made_elsewhere() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = placed(place, 90).await?;
        world.holds("create");
        let call = room_spots(&host).get_or_create("room", text("hello")).timeout(PATIENCE);
        let creating = tokio::spawn(call.into_future());
        world.until("held in create").await;
        serves(&cluster, &world, "other");
        cluster.start("other").await?;
        cluster.kill("owner");
        world.open_build(2);
        let ended = creating.await??;
        assert!(matches!(ended, SpotCreated::Created(..)), "{ended:?}");
        let room = room_spots(&host).of("room");
        assert!(look(&room, "where").await?.starts_with("other"));
        assert_eq!(world.count("create "), 2, "once on each");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: AC-094, AC-095
#[tokio::test(start_paused = true)]
async fn a_create_whose_node_dies_and_has_no_other_says_that_it_may_have_run() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 91);
        serves(&cluster, &world, "owner");
        calls(&cluster, "caller");
        start(&cluster).await?;
        world.holds("create");
        let call = room_spots(&cluster.host("caller"))
            .create(text("hello"))
            .timeout(PATIENCE);
        let creating = tokio::spawn(call.into_future());
        world.until("held in create").await;
        let killed = tokio::time::Instant::now();
        cluster.kill("owner");
        let error = creating.await?.unwrap_err();
        assert_eq!(
            (error.kind(), error.execution()),
            (Some(ErrorKind::Unavailable), Execution::Unknown),
            "{error}"
        );
        assert!(killed.elapsed() < Duration::from_secs(60), "{:?}", killed.elapsed());
        cluster.shutdown().await?;
    }
    Ok(())
}
