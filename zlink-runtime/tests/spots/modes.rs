//! How turns stand to each other in each kind of Spot: what waits in the queue, what may give its turn back.

use std::time::Duration;

use zlink_runtime::error::ErrorKind;
use zlink_runtime::id::SpotKind;
use zlink_runtime::prelude::*;
use zlink_runtime::rt;
use zlink_runtime::{SpotQuery, rt::SpotFactory};

use crate::arena::*;
use crate::kit::*;

const SECOND: Duration = Duration::from_secs(1);

/// A tick of a wide room has a gate of its own: it starts, and waits for the state. In others it waits in the room's queue.
///
/// REQ: SP-041, SP-130, EX-03
#[tokio::test(start_paused = true)]
async fn a_tick_starts_beside_a_turn_in_a_wide_room_alone() -> Tested {
    for provider in PROVIDERS {
        for is_wide in [false, true] {
            let (cluster, world) = on(provider, 190);
            serves_with(&cluster, &world, "owner", move |objects| match is_wide {
                true => objects.spot(wide_room_spot::<Room>()),
                false => objects.spot(room_spot::<Room>()),
            });
            start(&cluster).await?;
            let owner = cluster.host("owner");
            let (one, _) = room(&owner, "one", "ticks").await?;
            one.say(text("gate")).await?;
            world.until("say waits").await;
            cluster.advance(Duration::from_millis(1_500)).await;
            let queued = owner.status().jobs.queued;
            assert_eq!(queued, if is_wide { 0 } else { 1 }, "wide: {is_wide}");
            one.say(text("behind")).await?;
            assert_eq!(owner.status().jobs.queued, queued + 1);
            assert_eq!(world.count("ticks"), 0, "one at a time has the state");
            world.open(1);
            cluster.advance(Duration::from_millis(100)).await;
            let lines = look(&one, "lines").await?;
            assert_eq!((world.count("ticks"), &*lines), (1, "ticks,gate,behind"));
            cluster.shutdown().await?;
        }
    }
    Ok(())
}

/// Whatever else has been there: what comes to a room at rest is run for its own sake.
///
/// REQ: SP-123
#[tokio::test(start_paused = true)]
async fn each_message_wakes_its_room() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 192).await?;
        let (one, spot) = room(&host, "one", "x").await?;
        for number in 1..20 {
            one.say(text("hello")).await?;
            cluster.advance(Duration::from_millis(100)).await;
            assert_eq!(world.count("heard hello"), number, "{place:?}");
        }
        // What is refused is in no queue, then or later.
        one.say(text("gate")).await?;
        world.until("say waits").await;
        let closing = tokio::spawn(room_spots(&host).close(&spot).into_future());
        cluster.advance(SECOND).await;
        for _ in 0..3 {
            let refused = one.look(text("gate")).await.unwrap_err();
            assert_eq!(refused.kind(), Some(ErrorKind::Unavailable), "{refused}");
        }
        assert_eq!(cluster.host("owner").status().jobs.in_use(), 0);
        world.open(1);
        assert!(closing.await??);
        assert_eq!((world.count("look waits"), world.count("heard gate")), (0, 1));
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-043, EX-21
#[tokio::test(start_paused = true)]
async fn a_wide_room_and_a_lobby_keep_their_turns() -> Tested {
    async fn greet(
        turn: &mut rt::SpotYieldTurn<'_, Lobby, rt::EntrySpot>,
        request: Line,
    ) -> Result<Line, HandlerError> {
        let other = room_spots(turn).of(&request.text);
        let told = turn.yield_for(other.look(text("gate"))).await;
        Ok(text(&format!("{:?}", told.unwrap_err().kind())))
    }
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 191);
        serves_with(&cluster, &world, "owner", |objects| {
            let lobby = SpotFactory::entry(LOBBY, <Lobby as LobbySpot>::start);
            let lobby = lobby.request_yielding("arena.lobby.greet", greet).build();
            objects.spot(wide_room_spot::<Room>()).entry(lobby)
        });
        calls(&cluster, "caller");
        start(&cluster).await?;
        let host = cluster.host("caller");
        let (one, _) = room(&host, "one", "x").await?;
        room(&host, "two", "x").await?;
        let entries = host.list_spots(&SpotQuery::new(SpotKind::Entry), None).await?;
        let lobby = lobby_spots(&host).of(&entries.spots[0].reference.id);
        let refused = format!("{:?}", Some(ErrorKind::InvalidOperation));
        assert_eq!(one.settle(text("two")).await?.text, format!("1 then 1: {refused}"));
        assert_eq!(lobby.greet(text("two")).await?.text, refused);
        cluster.advance(SECOND).await;
        assert_eq!(world.count("look waits"), 0, "nothing was sent for it");
        cluster.shutdown().await?;
    }
    Ok(())
}
