//! Messages and requests to a Spot: order, turns, waits, failures, routes; the same for both placements.

use std::time::Duration;

use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::location::{Fault, Operation};

use crate::arena::*;
use crate::kit::*;

/// REQ: SP-053, SP-127, EX-04
#[tokio::test(start_paused = true)]
async fn a_send_is_done_before_its_handler_and_all_run_in_order() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 20).await?;
        let (room, _) = room(&host, "room", "x").await?;
        room.say(text("gate")).await?;
        world.until("say waits").await;
        let began = tokio::time::Instant::now();
        for number in 0..500 {
            room.say(text(&number.to_string())).await?;
        }
        assert_eq!((began.elapsed(), world.count("heard")), (Duration::ZERO, 0));
        world.open(1);
        let lines = look(&room, "lines").await?;
        let expected: Vec<_> = (0..500).map(|number| number.to_string()).collect();
        assert_eq!(lines, format!("x,gate,{}", expected.join(",")));
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-041, EX-03
#[tokio::test(start_paused = true)]
async fn one_thing_at_a_time_happens_in_a_room() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 21).await?;
        let (room, _) = room(&host, "room", "x").await?;
        world.open(50);
        let looks: Vec<_> = (0..50)
            .map(|_| tokio::spawn(room.look(text("gate")).into_future()))
            .collect();
        for look in looks {
            assert_eq!(look.await??.text, "passed", "the handler asserts that it is alone");
        }
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-057, EX-75
#[tokio::test(start_paused = true)]
async fn what_fails_is_told_and_the_room_goes_on() -> Tested {
    for place in EVERYWHERE {
        let (cluster, _, host) = placed(place, 22).await?;
        let (room, _) = room(&host, "room", "x").await?;
        let unknown = room.unheard_of(Nothing {}).await.unwrap_err();
        assert_eq!(
            (unknown.kind(), unknown.execution()),
            (Some(ErrorKind::NotFound), Execution::NotExecuted)
        );
        let wrong = room.look_with(Count { value: 7 }).await.unwrap_err();
        assert_eq!(
            (wrong.kind(), wrong.execution()),
            (Some(ErrorKind::ProtocolError), Execution::NotExecuted)
        );
        for how in ["fail", "panic"] {
            let failed = look(&room, how).await.unwrap_err();
            assert_eq!(
                (failed.kind(), failed.execution()),
                (Some(ErrorKind::InternalFailure), Execution::Unknown)
            );
        }
        room.say(text("fail")).await?;
        room.say(text("panic")).await?;
        room.say(text("one")).await?;
        let lines = look(&room, "lines").await?;
        assert_eq!(lines, "x,one", "its state is as the panic left it");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-161
#[tokio::test(start_paused = true)]
async fn metadata_comes_along() -> Tested {
    for place in EVERYWHERE {
        let (cluster, _, host) = placed(place, 23).await?;
        let (room, _) = room(&host, "room", "x").await?;
        let told = room.look(text("metadata tenant")).metadata("tenant", "acme").await?;
        assert_eq!(told.text, "acme");
        assert_eq!(look(&room, "metadata tenant").await?, "none");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-043, EX-21, EX-24, EX-25
#[tokio::test(start_paused = true)]
async fn a_turn_that_is_given_back_lets_others_in() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 24).await?;
        let (one, _) = room(&host, "one", "x").await?;
        room(&host, "two", "y").await?;
        let settling = tokio::spawn(one.settle(text("two")).into_future());
        world.until("look waits").await;
        one.say(text("meanwhile")).await?;
        world.until("one heard meanwhile").await;
        world.open(1);
        assert_eq!(settling.await??.text, "1 then 2: passed");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-045, EX-30, EX-33
#[tokio::test(start_paused = true)]
async fn a_room_cannot_wait_for_itself_but_tell_itself_something() -> Tested {
    for place in EVERYWHERE {
        let (cluster, _, host) = placed(place, 25).await?;
        let (room, _) = room(&host, "room", "x").await?;
        assert_eq!(
            look(&room, "ask room").await?,
            "InvalidOperation 1",
            "nothing ran for it"
        );
        assert_eq!(look(&room, "tell room").await?, "told");
        assert_eq!(look(&room, "lines").await?, "x,told");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-055, EX-34, EX-88
#[tokio::test(start_paused = true)]
async fn a_request_ends_at_its_deadline_wherever_it_is() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 26).await?;
        let (one, _) = room(&host, "one", "x").await?;
        let began = tokio::time::Instant::now();
        let second = Duration::from_secs(1);
        let late = one.look(text("gate")).timeout(second).await.unwrap_err();
        assert_eq!(
            (late.kind(), late.execution()),
            (Some(ErrorKind::DeadlineExceeded), Execution::Unknown)
        );
        assert_eq!(began.elapsed(), second);
        let behind = one.look(text("lines")).timeout(second).await.unwrap_err();
        assert_eq!(behind.kind(), Some(ErrorKind::DeadlineExceeded), "{behind}");
        world.open(1);
        assert_eq!(
            look(&one, "lines").await?,
            "x",
            "both have one end, and the room serves"
        );
        cluster.shutdown().await?;
    }
    Ok(())
}

/// The look for its owner and its handler have one time together.
///
/// REQ: SP-055, MSG-107
#[tokio::test(start_paused = true)]
async fn what_the_look_for_a_room_takes_its_handler_has_not() -> Tested {
    const LIMIT: Duration = Duration::from_secs(2);
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 31).await?;
        let (one, _) = room(&host, "one", "x").await?;
        // So that it is looked for again.
        cluster.advance(Duration::from_secs(16)).await;
        let faults = cluster.store_faults(place.caller());
        let slow = Fault::DelayAnswer(Duration::from_millis(700));
        faults.every(Operation::Read, slow);
        let began = tokio::time::Instant::now();
        let late = one.look(text("gate")).timeout(LIMIT).await.unwrap_err();
        assert_eq!(
            (late.kind(), late.execution()),
            (Some(ErrorKind::DeadlineExceeded), Execution::Unknown)
        );
        assert_eq!((began.elapsed(), world.count("look waits")), (LIMIT, 1));
        // And where the look alone takes as long, nothing is sent.
        cluster.advance(Duration::from_secs(16)).await;
        faults.every(Operation::Read, Fault::DelayAnswer(3 * LIMIT));
        let began = tokio::time::Instant::now();
        let late = one.look(text("gate")).timeout(LIMIT).await.unwrap_err();
        assert_eq!(
            (late.kind(), late.execution()),
            (Some(ErrorKind::DeadlineExceeded), Execution::NotExecuted)
        );
        assert_eq!(began.elapsed(), LIMIT);
        faults.heal();
        world.open(1);
        cluster.advance(3 * LIMIT).await;
        assert_eq!(world.count("look waits"), 1);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-069, LS-104
#[tokio::test(start_paused = true)]
async fn the_room_of_a_dead_host_is_unavailable_until_it_is_released() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = placed(place, 28).await?;
        let (one, spot) = room(&host, "one", "x").await?;
        serves(&cluster, &world, "other");
        cluster.start("other").await?;
        cluster.advance(Duration::from_secs(3)).await;
        cluster.kill("owner");
        let began = tokio::time::Instant::now();
        for _ in 0..30 {
            let lost = one
                .look(text("lines"))
                .timeout(Duration::from_secs(5))
                .await
                .unwrap_err();
            assert_eq!(
                lost.kind(),
                Some(ErrorKind::Unavailable),
                "{lost} after {:?}",
                began.elapsed()
            );
            cluster.advance(Duration::from_secs(1)).await;
        }
        assert_eq!(world.count("create"), 1, "nobody took over: {:?}", world.log());
        assert!(room_spots(&host).release(&spot).await?);
        assert!(!room_spots(&host).release(&spot).await?);
        let (again, new) = room(&host, "one", "again").await?;
        assert!(new.generation > spot.generation);
        assert_eq!(look(&again, "lines").await?, "again");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-160, SP-036, EX-104
#[tokio::test(start_paused = true)]
async fn a_host_that_stops_closes_its_rooms_in_order() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 29).await?;
        let (one, _) = room(&host, "one", "x").await?;
        one.say(text("gate")).await?;
        world.until("say waits").await;
        let stopping = tokio::spawn(cluster.stop("owner"));
        cluster.advance(Duration::from_secs(5)).await;
        let refused = one
            .look(text("lines"))
            .timeout(Duration::from_secs(5))
            .await
            .unwrap_err();
        assert_eq!(refused.execution(), Execution::NotExecuted, "{refused}");
        world.open(1);
        stopping.await??;
        // The own host refuses at once; to another the call is on its way for a moment.
        let left = if place.0 == Placement::Local { 25 } else { 24 };
        let closing = format!("closing one HostShutdown within {left}");
        assert_eq!(
            world.log()[3..],
            ["one heard gate", &closing, "room dropped"],
            "with what is left of thirty seconds"
        );
        if place.0 == Placement::Remote {
            assert_eq!(room_spots(&host).find("one").await?, None, "its ID is free");
        }
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-036
#[tokio::test(start_paused = true)]
async fn a_room_that_does_not_close_well_makes_the_stop_an_error() -> Tested {
    for place in LOCAL {
        let (cluster, _, host) = placed(place, 30).await?;
        room(&host, "one", "fails to close").await?;
        let failed = cluster.stop("owner").await.unwrap_err();
        assert_eq!((failed.failed_spots(), failed.unfinished_jobs()), (1, 0), "{failed}");
    }
    Ok(())
}
