//! Ends that meet something else: another end, an Actor that panics as it is dropped, a handler that does not come back.

use std::sync::mpsc;
use std::time::Duration;

use parking_lot::Mutex;
use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::location::MemoryStore;
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{self, ActorCreated};

use crate::arena::{Count, Line};
use crate::kit::*;
use crate::players::*;

const SECOND: Duration = Duration::from_secs(1);
/// Longer than it takes to see that a host is dead.
const PATIENCE: Duration = Duration::from_secs(120);

/// Of those that destroy one at once, one does; to the others it ends already.
///
/// REQ: AC-082
#[tokio::test(start_paused = true)]
async fn of_many_that_destroy_one_at_once_one_does() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = player_world(place, 250).await?;
        let (p, actor) = player(&host, "p").await?;
        p.go(text("gate")).await?;
        world.until("go waits").await;
        let players = player_actors(&host);
        let calls = (0..10).map(|_| players.destroy(&actor).timeout(PATIENCE).into_future());
        let destroying: Vec<_> = calls.map(tokio::spawn).collect();
        cluster.advance(SECOND).await;
        world.open(1);
        let mut destroyed = 0;
        for ended in destroying {
            match ended.await? {
                Ok(done) => {
                    assert!(done, "{place:?}: it was told that it is gone, and it was not");
                    destroyed += 1;
                }
                Err(error) => assert_eq!(error.kind(), Some(ErrorKind::Unavailable), "{error}"),
            }
        }
        assert_eq!((destroyed, world.count("player dropped")), (1, 1));
        assert!(!players.destroy(&actor).await?, "now it is");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// What an Actor does as it is dropped changes nothing of what its creation came to.
///
/// REQ: AC-069, AC-121
#[tokio::test(start_paused = true)]
async fn an_actor_that_panics_as_it_is_dropped_is_told_as_what_it_was() -> Tested {
    for place in EVERYWHERE {
        let one = |objects| players(objects).actor_capacity(PLAYER, 1);
        let (cluster, world, host) = player_world_with(place, 251, one).await?;
        let players = player_actors(&host);
        let rejected = players.create("frail", text("reject")).await;
        assert_eq!(rejected?, ActorCreated::Rejected(text("no")), "{place:?}");
        for request in ["fail", "panic", "long"] {
            let failed = players.create("frail", text(request)).await.unwrap_err();
            assert_eq!(failed.kind(), Some(ErrorKind::InternalFailure), "{request}: {failed}");
            let says_why = failed.to_string().contains("at most 65536");
            assert_eq!(says_why, request == "long", "{failed}");
        }
        let strange = players.route.create::<_, Line>("frail", Count { value: 7 });
        let strange = strange.await.unwrap_err();
        assert_eq!(strange.kind(), Some(ErrorKind::ProtocolError), "{strange}");
        assert_eq!(world.count("player dropped"), 5);
        let (_, frail) = player(&host, "frail").await?;
        assert!(players.destroy(&frail).await?);
        assert_eq!(players.find("frail").await?, None);
        let (p, _) = player(&host, "p").await?;
        assert_eq!(said(&p, "told").await?, "");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A type that no mesh but this test's has: its Actors are players.
const STRANGER: rt::ActorType = rt::ActorType::from_static("arena.stranger");

/// An ID stays what it is as long as its authority says so, also where that outlives its host. What was never there
/// has no type yet.
///
/// REQ: AC-067, AC-082, LS-013
#[tokio::test(start_paused = true)]
async fn what_a_dead_host_has_left_keeps_its_type() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = player_world(place, 252).await?;
        let (_, actor) = player(&host, "p").await?;
        world.holds("admit");
        let late = player_actors(&host).create("q", text("x")).timeout(SECOND).await;
        assert!(late.is_err(), "it is being made: {late:?}");
        serves_with(&cluster, &world, "other", |objects| {
            let builder = rt::ActorFactory::new(STRANGER, Player::create, Player::context);
            let stranger = builder.request("arena.player.info", Player::info);
            let hall = hall_builder().creates(PLAYER, Hall::on_create_player);
            objects
                .entry(hall.creates(STRANGER, Hall::on_create_player).build())
                .actor(player_actor())
                .actor(stranger.relocation(rt::Relocation::Disabled).build())
        });
        cluster.start("other").await?;
        cluster.kill("owner");
        cluster.advance(60 * SECOND).await;
        world.open_build(10);
        let strangers = rt::ActorRoute::new(&host, STRANGER);
        let line = || text("x");
        for refused in [
            strangers
                .create::<_, Line>("p", line())
                .timeout(PATIENCE)
                .await
                .unwrap_err(),
            strangers
                .get_or_create::<_, Line>("p", line())
                .timeout(PATIENCE)
                .await
                .unwrap_err(),
        ] {
            let told = (refused.kind(), refused.execution());
            assert_eq!(
                told,
                (Some(ErrorKind::TypeMismatch), Execution::NotExecuted),
                "{refused}"
            );
        }
        assert_eq!(
            player_actors(&host).find("p").await?,
            Some(actor.clone()),
            "it is as it was"
        );
        assert_eq!(world.count("make p"), 1);
        let found = player_actors(&host).find("q").await?;
        assert_eq!(found, None, "it was never there");
        let never = strangers.create::<_, Line>("q", line()).timeout(PATIENCE).await?;
        assert!(matches!(never, ActorCreated::Created(..)), "{never:?}");
        let again = player_actors(&host).create("p", line()).timeout(PATIENCE).await?;
        assert!(again.reference().unwrap().generation > actor.generation);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// What a handler that blocks its thread waits for.
static BLOCK: Mutex<Option<mpsc::Receiver<()>>> = Mutex::new(None);

async fn blocks(_: &mut Player, turn: &mut PlayerTurn<'_>, _: Line) -> Result<(), HandlerError> {
    let gate = BLOCK.lock().take();
    if let (Some(gate), Some(world)) = (gate, turn.shared::<World>()) {
        world.note("it blocks");
        // Until the other end is dropped.
        let _ = gate.recv();
    }
    Ok(())
}

/// REQ: AC-084
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_stop_tells_how_much_it_had_to_end_and_counts_nothing_twice() -> Tested {
    let world = World::new();
    let builder = rt::ActorFactory::new(PLAYER, Player::create, Player::context);
    let builder = builder.send("arena.player.go", blocks).timer("tick", Player::on_tick);
    let builder = builder.request("arena.player.info", Player::info);
    let actor = builder.relocation(rt::Relocation::Disabled).build();
    let host = Host::builder().location_store(MemoryStore::new()).shared(world.clone());
    let host = host.drain_timeout(Duration::from_millis(200)).mesh("world", |mesh| {
        let mesh = mesh.rid_prefix("owner").listen("tcp://127.0.0.1:0");
        mesh.object_server(|objects| objects.entry(hall_spot()).actor(actor))
    });
    let host = host.start().await?;
    let (p, _) = player(&host, "p").await?;
    assert_eq!(said(&p, "tick").await?, "ticks");
    let (open, gate) = mpsc::channel();
    *BLOCK.lock() = Some(gate);
    p.go(text("x")).await?;
    world.until("it blocks").await;
    let forced = host.shutdown().await.unwrap_err();
    drop(open);
    assert_eq!(forced.unfinished_jobs(), 1, "{forced}");
    Ok(())
}
