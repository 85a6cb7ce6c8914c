//! A host that is full, and Spots: who waits, who is told, who is passed over; and what is only counted.

use std::time::Duration;

use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::prelude::*;
use zlink_runtime::rt;
use zlink_runtime::testing::Cluster;

use crate::arena::*;
use crate::far;
use crate::kit::*;

const SECOND: Duration = Duration::from_secs(1);
const EVENTS: ChannelName = ChannelName::from_static("room-events");
/// How many jobs wait in the hosts of these tests, all kept ones included.
const JOBS: u32 = 8;

/// Makes `owner` a host of few jobs, whose rooms hear the news.
fn narrow(cluster: &Cluster, world: &World) {
    let (with_store, world) = (far::with_store(cluster, "owner"), world.clone());
    cluster.node("owner", move |host| {
        let host = with_store(host).shared(world.clone()).max_queued_jobs(JOBS);
        let served = rt::ChannelServer::builder(EVENTS, ()).build();
        host.mesh("world", |mesh| {
            let mesh = mesh.rid_prefix("owner").listen("tcp://owner:1").serve(served);
            mesh.object_server(|objects| objects.spot(hearing_room_spot::<Room>()))
        })
    });
}

fn queued(cluster: &Cluster) -> u32 {
    cluster.host("owner").status().jobs.in_use()
}

/// REQ: SP-120, SP-124, SP-127, SP-123, SP-104
#[tokio::test(start_paused = true)]
async fn sends_wait_requests_end_and_publishes_pass_by() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed_with(place, 120, narrow).await?;
        let (one, _) = room(&host, "one", "x").await?;
        room(&host, "other", "x").await?;
        one.say(text("gate")).await?;
        world.until("say waits").await;
        let sends: Vec<_> = (0..100)
            .map(|number| tokio::spawn(one.say(text(&number.to_string())).into_future()))
            .collect();
        cluster.advance(60 * SECOND).await;
        assert!(queued(&cluster) <= JOBS, "{} jobs", queued(&cluster));
        let done = sends.iter().filter(|send| send.is_finished()).count();
        // What goes to another node is done once its link has it.
        let most = if place.0 == Placement::Local {
            JOBS as usize
        } else {
            sends.len()
        };
        assert!(done <= most, "{done} are done, and none is kept beside the queue");
        let late = one.look(text("lines")).timeout(SECOND).await.unwrap_err();
        assert_eq!(late.kind(), Some(ErrorKind::DeadlineExceeded), "{late}");
        // Published on the full host itself: no Spot of it has room, and nobody is told.
        let began = tokio::time::Instant::now();
        for _ in 0..100 {
            room_spots(&cluster.host("owner")).publish_news(text("missed")).await?;
        }
        assert_eq!(began.elapsed(), Duration::ZERO, "none of them waited for room");
        world.open(1);
        for send in sends {
            send.await??;
        }
        cluster.advance(SECOND).await;
        let expected: Vec<_> = (0..100).map(|number| number.to_string()).collect();
        let lines = look(&one, "lines").await?;
        let mut heard: Vec<_> = lines.split(',').skip(2).map(str::to_owned).collect();
        if place.0 == Placement::Local {
            // Of many that wait side by side for room here, none has come before another.
            heard.sort_by_key(|line| line.parse::<u32>().ok());
        }
        assert_eq!(heard, expected, "all came, and none twice");
        assert_eq!(world.count("read missed"), 0);
        room_spots(&cluster.host("owner")).publish_news(text("next")).await?;
        cluster.advance(SECOND).await;
        assert_eq!(world.count("read next"), 2);
        assert_eq!(queued(&cluster), 0);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-122
#[tokio::test(start_paused = true)]
async fn every_job_of_a_room_has_a_permit_until_it_starts() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed_with(place, 121, narrow).await?;
        let owner = cluster.host("owner");
        let mut rooms = Vec::new();
        for number in 0..3 {
            rooms.push(room(&host, &format!("room-{number}"), "x").await?.0);
        }
        for one in &rooms {
            one.say(text("gate")).await?;
        }
        world.until("say waits").await;
        cluster.advance(SECOND).await;
        assert_eq!(queued(&cluster), 0, "what runs has given its permit back");
        room_spots(&owner).publish_news(text("sun")).await?;
        assert_eq!(queued(&cluster), 3, "one for each room that hears it");
        rooms[0].say(text("behind")).await?;
        cluster.advance(SECOND).await;
        assert_eq!(queued(&cluster), 4);
        assert_eq!(owner.status().jobs.transitions, 0);
        for one in &rooms {
            one.say(text("behind")).await?;
        }
        cluster.advance(SECOND).await;
        assert!(
            owner.status().jobs.paused,
            "a flood of the own host is one, too: {:?}",
            owner.status().jobs
        );
        world.open(3);
        cluster.advance(SECOND).await;
        assert_eq!(
            (queued(&cluster), world.count("read sun"), world.count("heard behind")),
            (0, 3, 4)
        );
        cluster.shutdown().await?;
    }
    Ok(())
}

/// What makes and closes Spots holds no permit, and is bounded all the same: for each node that asks, and beside what it sends.
///
/// REQ: SP-121, SP-120, ERR-503, ERR-504
#[tokio::test(start_paused = true)]
async fn a_flood_of_creations_is_refused_and_holds_nobody_else_up() -> Tested {
    /// As many as one node may have under way at another.
    const MOST: usize = 1024;
    for place in EVERYWHERE {
        let refused = match place.0 {
            Placement::Local => ErrorKind::CapacityExceeded,
            Placement::Remote => ErrorKind::Unavailable,
        };
        let (cluster, world, host) = placed(place, 125).await?;
        calls(&cluster, "stranger");
        cluster.start("stranger").await?;
        cluster.advance(3 * SECOND).await;
        let (one, spot) = room(&host, "one", "x").await?;
        world.holds("create");
        let creates =
            |host: &Host| tokio::spawn(room_spots(host).create(text("x")).timeout(600 * SECOND).into_future());
        let making: Vec<_> = (0..MOST).map(|_| creates(&host)).collect();
        cluster.advance(10 * SECOND).await;
        assert_eq!(world.count("held in create"), MOST);
        let told = creates(&host).await?.unwrap_err();
        assert_eq!(
            (told.kind(), told.execution()),
            (Some(refused), Execution::NotExecuted),
            "{told}"
        );
        let told = room_spots(&host).close(&spot).await.unwrap_err();
        assert_eq!(
            (told.kind(), told.execution()),
            (Some(refused), Execution::NotExecuted),
            "{told}"
        );
        assert_eq!(look(&one, "lines").await?, "x", "what is sent does not wait for it");
        assert_eq!(
            cluster.host("owner").status().jobs.in_use(),
            0,
            "nor does it hold permits"
        );
        let other = creates(&cluster.host("stranger"));
        cluster.advance(SECOND).await;
        assert_eq!(
            world.count("held in create"),
            MOST + 1,
            "others have a bound of their own"
        );
        world.open_build(MOST + 2);
        other.await??;
        for made in making {
            made.await??;
        }
        creates(&host).await??;
        assert!(room_spots(&host).close(&spot).await?);
        assert_eq!(
            world.count("create "),
            MOST + 3,
            "{place:?}: what was refused was not begun"
        );
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-054
#[tokio::test(start_paused = true)]
async fn a_send_that_finds_no_room_in_its_time_is_never_delivered() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 122);
        serves(&cluster, &world, "owner");
        calls_with(&cluster, "caller", |host| host.send_timeout(Duration::from_millis(200)));
        start(&cluster).await?;
        let host = cluster.host("caller");
        let (one, _) = room(&host, "one", "x").await?;
        cluster.network().isolate("owner");
        let long = "n".repeat(1 << 20);
        let mut accepted = 0;
        let refused = loop {
            let began = tokio::time::Instant::now();
            match one.say(text(&format!("{accepted:02} {long}"))).await {
                Ok(()) => accepted += 1,
                Err(error) => {
                    assert_eq!(began.elapsed(), Duration::from_millis(200));
                    break error;
                }
            }
            assert!(accepted < 64, "a link holds no more than its budget");
        };
        assert_eq!(
            (refused.kind(), refused.execution()),
            (Some(ErrorKind::DeadlineExceeded), Execution::NotExecuted),
            "{refused}"
        );
        cluster.network().heal();
        cluster.advance(10 * SECOND).await;
        assert_eq!(world.count("heard"), accepted);
        assert_eq!(world.count(&format!("heard {accepted:02}")), 0);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-125, SP-057
#[tokio::test(start_paused = true)]
async fn what_a_target_refuses_of_a_send_is_counted_there() -> Tested {
    for place in EVERYWHERE {
        let (cluster, _, host) = placed(place, 123).await?;
        let (one, spot) = room(&host, "one", "x").await?;
        one.hint(Nothing {}).await?;
        one.say_with(Count { value: 7 }).await?;
        cluster.advance(SECOND).await;
        let drops = cluster.host("owner").status().spot_drops;
        assert_eq!((drops.no_handler, drops.decode_error, drops.no_spot), (1, 1, 0));
        if place.0 == Placement::Remote {
            // Closed by somebody else: this host does not know.
            assert!(room_spots(&cluster.host("owner")).close(&spot).await?);
            one.say(text("late")).await?;
            cluster.advance(SECOND).await;
            assert_eq!(cluster.host("owner").status().spot_drops.no_spot, 1);
        }
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Many that are idle are closed a few at a time, while others are served.
///
/// REQ: SP-144, SP-140
#[tokio::test(start_paused = true)]
async fn many_idle_carts_go_while_calls_are_answered() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = placed_with(place, 124, |cluster, world| {
            serves_with(cluster, world, "owner", |objects| {
                all(objects).instance_idle_timeout(10 * SECOND)
            });
        })
        .await?;
        let (busy, _) = room(&host, "room", "x").await?;
        for number in 0..200 {
            cart_spots(&host)
                .of(format!("cart-{number}"))
                .view(text("a"))
                .activating()
                .await?;
        }
        let kept = cart_spots(&host).of("cart-7");
        let carts = world.clone();
        let all_at_once = tokio::spawn(async move {
            carts.until("IdleEvicted").await;
            carts.count("IdleEvicted")
        });
        for second in 0..30 {
            kept.add(text(&second.to_string())).activating().await?;
            busy.look(text("lines")).timeout(SECOND).await?;
            cluster.advance(SECOND).await;
        }
        assert_eq!(world.count("IdleEvicted"), 199, "all but the one that is used");
        let begun = all_at_once.await?;
        assert!((1..=64).contains(&begun), "{begun} in one look");
        assert_eq!(world.count("closing cart-7 "), 0);
        cluster.shutdown().await?;
    }
    Ok(())
}
