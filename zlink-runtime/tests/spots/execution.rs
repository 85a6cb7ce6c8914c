//! What chapter 9 says of lifecycle operations and of publishing, as far as it takes Spots to see it.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use zlink_runtime::HostBuilder;
use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{self, Instant, SpotCreated};
use zlink_runtime::testing::Cluster;

use crate::arena::*;
use crate::far;
use crate::kit::*;

const SECOND: Duration = Duration::from_secs(1);
const EVENTS: ChannelName = ChannelName::from_static("room-events");

/// Whether it took so long, as a clock of whole milliseconds sees it.
fn took(began: Instant, time: Duration) -> bool {
    let more = began.elapsed().checked_sub(time);
    more.is_some_and(|more| more < Duration::from_millis(5))
}

/// The links break while the factory runs. The owner and its Spot are well, and only the answer is gone.
///
/// REQ: EX-93, SP-085
#[tokio::test(start_paused = true)]
async fn a_create_whose_answer_is_lost_goes_on_as_the_same_operation() -> Tested {
    for place in REMOTE {
        for (seed, named, motd) in [(120, true, "hello"), (121, false, "hello"), (122, true, "reject")] {
            let (cluster, world, host) = placed(place, seed).await?;
            world.holds("create");
            let rooms = room_spots(&host);
            let call = match named {
                true => rooms.get_or_create("room", text(motd)),
                false => rooms.create(text(motd)),
            };
            let creating = tokio::spawn(call.into_future());
            world.until("held in create").await;
            for _ in 0..3 {
                assert!(cluster.network().break_connections("caller", "owner", false) > 0);
                cluster.advance(3 * SECOND).await;
            }
            world.open_build(1);
            match creating.await?? {
                SpotCreated::Created(spot, reply) if motd == "hello" => {
                    assert_eq!(reply.text, "created with hello");
                    assert_eq!(rooms.find(&spot.id).await?, Some(spot.clone()), "it is that one");
                }
                SpotCreated::Rejected(reply) if motd == "reject" => assert_eq!(reply.text, "no"),
                other => panic!("{motd}: {other:?}"),
            }
            assert_eq!(world.count("create "), 1, "{:?}", world.log());
            cluster.shutdown().await?;
        }
    }
    Ok(())
}

/// REQ: EX-93
#[tokio::test(start_paused = true)]
async fn a_create_that_was_admitted_and_never_answered_ends_at_its_deadline() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = placed(place, 123).await?;
        world.holds("create");
        let began = Instant::now();
        let call = room_spots(&host)
            .get_or_create("room", text("hello"))
            .timeout(40 * SECOND);
        let creating = tokio::spawn(call.into_future());
        world.until("held in create").await;
        cluster.network().isolate("owner");
        let error = creating.await?.unwrap_err();
        assert_eq!(
            (error.kind(), error.execution()),
            (Some(ErrorKind::DeadlineExceeded), Execution::Unknown),
            "{error}"
        );
        assert!(took(began, 40 * SECOND), "{:?}", began.elapsed());
        cluster.network().heal();
        world.open_build(1);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: EX-93
#[tokio::test(start_paused = true)]
async fn a_create_that_fails_is_not_tried_again() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 124).await?;
        for motd in ["fail", "panic"] {
            let began = Instant::now();
            let error = room_spots(&host).get_or_create("room", text(motd)).await.unwrap_err();
            assert_eq!(error.kind(), Some(ErrorKind::InternalFailure), "{error}");
            assert!(began.elapsed() < SECOND, "at once: {:?}", began.elapsed());
        }
        assert_eq!(world.count("create "), 2);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// The owner's host is full and has paused its peers: the request waits for room, and the deadline of the operation is the
/// only one.
///
/// REQ: EX-93, EX-88
#[tokio::test(start_paused = true)]
async fn a_create_that_no_node_takes_is_unavailable() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 125);
        serves_on(&cluster, &world, "owner", |host| host.max_queued_jobs(2), all);
        calls(&cluster, "caller");
        start(&cluster).await?;
        let host = cluster.host("caller");
        let (held, _) = room(&host, "held", "x").await?;
        held.say(text("gate")).await?;
        world.until("say waits").await;
        for number in 0..2 {
            held.say(text(&number.to_string())).await?;
        }
        cluster.advance(SECOND).await;
        let began = Instant::now();
        let create = room_spots(&host).get_or_create("room", text("x")).timeout(3 * SECOND);
        let error = create.await.unwrap_err();
        assert_eq!(
            (error.kind(), error.execution()),
            (Some(ErrorKind::Unavailable), Execution::NotExecuted),
            "{error}"
        );
        assert!(took(began, 3 * SECOND), "{:?}", began.elapsed());
        world.open(1);
        room(&host, "room", "x").await?;
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Makes `name` a node whose rooms hear the news, and which holds at most so many jobs.
fn hears(cluster: &Cluster, world: &World, name: &'static str, jobs: u32) {
    let (with_store, world) = (far::with_store(cluster, name), world.clone());
    cluster.node(name, move |host: HostBuilder| {
        let host = with_store(host).shared(world.clone());
        let served = rt::ChannelServer::builder(EVENTS, ()).build();
        host.max_queued_jobs(jobs).mesh("world", |mesh| {
            let mesh = mesh.rid_prefix(name).listen(format!("tcp://{name}:1")).serve(served);
            mesh.object_server(|objects| objects.spot(hearing_room_spot::<Room>()))
        })
    });
}

/// Three rooms on each of two nodes, those of "one" first. Each node holds at most so many jobs.
async fn two_nodes(
    provider: Provider,
    seed: u64,
    jobs: [u32; 2],
) -> Result<(Cluster, World, Vec<RoomSpotClient>), Failure> {
    let (cluster, world) = on(provider, seed);
    let mut rooms = Vec::new();
    for (name, jobs) in ["one", "two"].into_iter().zip(jobs) {
        hears(&cluster, &world, name, jobs);
    }
    start(&cluster).await?;
    let host = cluster.host("one");
    let mut number = 0;
    let (mut here, mut there) = (Vec::new(), Vec::new());
    while here.len() < 3 || there.len() < 3 {
        let id = format!("room-{number}");
        number += 1;
        let (made, spot) = room(&host, &id, "x").await?;
        let node = look(&made, "where").await?;
        let list = if node.starts_with("one") { &mut here } else { &mut there };
        if list.len() < 3 {
            list.push(made);
        } else {
            assert!(room_spots(&host).close(&spot).await?);
        }
    }
    rooms.append(&mut here);
    rooms.append(&mut there);
    Ok((cluster, world, rooms))
}

/// REQ: EX-94
#[tokio::test(start_paused = true)]
async fn a_publish_waits_for_no_handler_and_a_held_one_delays_no_other() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world, rooms) = two_nodes(provider, 126, [1_000; 2]).await?;
        let one = room_spots(&cluster.host("one"));
        for held in [&rooms[0], &rooms[3]] {
            held.say(text("gate")).await?;
        }
        cluster.advance(SECOND).await;
        assert_eq!(world.count("say waits"), 2);
        let began = Instant::now();
        one.publish_news(text("sun")).await?;
        assert!(took(began, Duration::ZERO), "it has begun, and that is its end");
        cluster.advance(SECOND).await;
        assert_eq!(world.count("read sun"), 4, "{:?}", world.log());
        world.open(2);
        cluster.advance(SECOND).await;
        assert_eq!(world.count("read sun"), 6, "each once");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: EX-94
#[tokio::test(start_paused = true)]
async fn an_own_room_without_a_free_permit_is_skipped_and_no_other() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world, _) = two_nodes(provider, 127, [2, 1_000]).await?;
        let one = room_spots(&cluster.host("one"));
        // Nothing else runs while it begins, so that two of three get the two permits.
        one.publish_news(text("sun")).await?;
        cluster.advance(SECOND).await;
        assert_eq!(world.count("read sun"), 2 + 3, "{:?}", world.log());
        cluster.advance(60 * SECOND).await;
        assert_eq!(world.count("read sun"), 5, "what was skipped is not made up for");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A record of another node is for all rooms that hear it: each of them has a permit of its own, waits for that, and none
/// is skipped.
///
/// REQ: PM-21, PM-22, PM-33
#[tokio::test(start_paused = true)]
async fn what_comes_in_is_handed_to_each_room_with_a_permit_of_its_own() -> Tested {
    for provider in PROVIDERS {
        for jobs in [1, 2, 10] {
            let (cluster, world, rooms) = two_nodes(provider, 130, [1_000, jobs]).await?;
            for held in &rooms[3..] {
                held.say(text("gate")).await?;
            }
            cluster.advance(SECOND).await;
            let two = cluster.host("two");
            let queued = || two.status().jobs.queued;
            assert_eq!((world.count("say waits"), queued()), (3, 0));
            room_spots(&cluster.host("one")).publish_news(text("sun")).await?;
            cluster.advance(SECOND).await;
            assert_eq!((world.count("read sun"), queued()), (3, jobs.min(3)), "{jobs}");
            world.open(3);
            cluster.advance(SECOND).await;
            assert_eq!((world.count("read sun"), queued()), (6, 0), "{jobs}: {:?}", world.log());
            drop(two);
            cluster.shutdown().await?;
        }
    }
    Ok(())
}

/// REQ: EX-94
#[tokio::test(start_paused = true)]
async fn a_publish_to_nobody_is_one() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 128);
        hears(&cluster, &world, "one", 10);
        start(&cluster).await?;
        room_spots(&cluster.host("one")).publish_news(text("sun")).await?;
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: EX-102
#[tokio::test(start_paused = true)]
async fn what_has_begun_is_published_to_all_and_what_has_not_to_nobody() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world, _) = two_nodes(provider, 129, [1_000; 2]).await?;
        let host = cluster.host("one");
        drop(room_spots(&host).publish_news(text("never")).into_future());
        let mut begun = Box::pin(room_spots(&host).publish_news(text("begun")).into_future());
        let _ = poll_fn(|cx| Poll::Ready(begun.as_mut().poll(cx))).await;
        drop(begun);
        cluster.advance(SECOND).await;
        assert_eq!((world.count("read never"), world.count("read begun")), (0, 6));
        // Its host stops at once behind it: what was begun arrives all the same.
        room_spots(&host).publish_news(text("last")).await?;
        cluster.stop("one").await?;
        let refused = room_spots(&host).publish_news(text("late")).await.unwrap_err();
        assert_eq!(refused.kind(), Some(ErrorKind::ShuttingDown), "{refused}");
        cluster.advance(SECOND).await;
        assert_eq!(
            (world.count("read last"), world.count("read late")),
            (6, 0),
            "{:?}",
            world.log()
        );
        cluster.shutdown().await?;
    }
    Ok(())
}
