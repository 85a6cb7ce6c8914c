//! How Actors end: destroyed, left by a host that is dead, taken from one that cannot prove that it lives.

use std::time::Duration;

use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::rt::ActorCreated;

use crate::kit::*;
use crate::players::*;

const SECOND: Duration = Duration::from_secs(1);
/// Longer than it takes to see that a host is dead.
const PATIENCE: Duration = Duration::from_secs(120);

/// What it has accepted runs to its end, what comes later is refused; then its ID is free.
///
/// REQ: AC-080, AC-081, AC-082, AC-005
#[tokio::test(start_paused = true)]
async fn an_actor_ends_after_what_it_has_accepted() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = player_world(place, 240).await?;
        let players = player_actors(&host);
        let (p, actor) = player(&host, "p").await?;
        p.go(text("gate")).await?;
        world.until("go waits").await;
        p.go(text("accepted")).await?;
        cluster.advance(SECOND).await;
        let destroying = tokio::spawn(players.destroy(&actor).timeout(PATIENCE).into_future());
        cluster.advance(SECOND).await;
        let late = p.info(text("told")).await.unwrap_err();
        assert_eq!(
            (late.kind(), late.execution()),
            (Some(ErrorKind::Unavailable), Execution::NotExecuted)
        );
        let sealed = players.destroy(&actor).await.unwrap_err();
        assert_eq!(sealed.kind(), Some(ErrorKind::Unavailable), "{sealed}");
        assert!(!destroying.is_finished());
        world.open(1);
        assert!(destroying.await??);
        assert_eq!((world.count("p went accepted"), world.count("player dropped")), (1, 1));
        assert!(!players.destroy(&actor).await?, "it is gone");
        assert_eq!(players.find("p").await?, None);
        let (_, anew) = player(&host, "p").await?;
        assert!(anew.generation > actor.generation);
        let stale = players.destroy(&actor).await.unwrap_err();
        assert_eq!(stale.kind(), Some(ErrorKind::InvalidOperation), "{stale}");
        assert_eq!(players.find("p").await?.as_ref(), Some(&anew));
        assert!(players.destroy(&anew).await?);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// What a dead host has left is nobody's until somebody asks for it to be made, or for its end.
///
/// REQ: AC-082, LS-013, LS-104, AC-067
#[tokio::test(start_paused = true)]
async fn what_a_dead_host_has_left_is_taken_by_explicit_calls_only() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = player_world(place, 241).await?;
        serves_with(&cluster, &world, "other", players);
        let players = player_actors(&host);
        let mut actors = Vec::new();
        for id in ["made", "got", "destroyed", "released"] {
            actors.push(player(&host, id).await?.1);
        }
        cluster.start("other").await?;
        cluster.kill("owner");
        cluster.advance(60 * SECOND).await;
        for actor in &actors {
            let asked = players.of(&actor.id).info(text("told")).await.unwrap_err();
            assert_eq!(asked.kind(), Some(ErrorKind::Unavailable), "{asked}");
            assert_eq!(
                players.find(&actor.id).await?.as_ref(),
                Some(actor),
                "finding takes nothing"
            );
        }
        assert_eq!(world.count(" on other"), 0, "messages make nothing");
        let made = players.create("made", text("x")).timeout(PATIENCE).await?;
        let got = players.get_or_create("got", text("x")).timeout(PATIENCE).await?;
        for (now, before) in [(made, &actors[0]), (got, &actors[1])] {
            let ActorCreated::Created(now, _) = now else {
                panic!("{now:?}");
            };
            assert!(now.generation > before.generation && now.node.to_string().starts_with("other"));
            let stale = players.release(before).timeout(PATIENCE).await.unwrap_err();
            assert_eq!(stale.kind(), Some(ErrorKind::InvalidOperation), "{stale}");
        }
        assert!(players.destroy(&actors[2]).timeout(PATIENCE).await?);
        assert!(players.release(&actors[3]).timeout(PATIENCE).await?);
        for id in ["destroyed", "released"] {
            assert_eq!(players.find(id).await?, None);
        }
        assert_eq!(said(&players.of("made"), "told").await?, "");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: AC-082
#[tokio::test(start_paused = true)]
async fn nothing_is_released_from_a_host_that_lives() -> Tested {
    for place in EVERYWHERE {
        let (cluster, _, host) = player_world(place, 242).await?;
        let (p, actor) = player(&host, "p").await?;
        let alive = player_actors(&host)
            .release(&actor)
            .timeout(PATIENCE)
            .await
            .unwrap_err();
        assert_eq!(alive.kind(), Some(ErrorKind::InvalidOperation), "{alive}");
        assert_eq!(said(&p, "told").await?, "");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A host that cannot prove that it lives runs nothing of its Actors; what another has taken meanwhile never runs again.
///
/// REQ: AC-102, LS-032
#[tokio::test(start_paused = true)]
async fn a_host_that_cannot_prove_that_it_lives_runs_no_actor() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = player_world(place, 243).await?;
        serves_with(&cluster, &world, "other", players);
        let players = player_actors(&host);
        let (p, actor) = player(&host, "p").await?;
        cluster.start("other").await?;
        cluster.advance(3 * SECOND).await;
        p.go(text("gate")).await?;
        world.until("go waits").await;
        p.go(text("too late")).await?;
        cluster.advance(SECOND).await;
        cluster.store_faults("owner").cut();
        cluster.advance(60 * SECOND).await;
        world.open(1);
        cluster.advance(5 * SECOND).await;
        assert_eq!(world.count("p went"), 0, "its turn stands where it was");
        let fenced = p.go(text("fenced")).await;
        assert!(fenced.is_err() || world.count("p went") == 0);
        let made = players.create("p", text("x")).timeout(PATIENCE).await?;
        assert!(made.reference().unwrap().generation > actor.generation);
        cluster.store_faults("owner").heal();
        cluster.advance(60 * SECOND).await;
        assert_eq!(world.count("p went"), 0, "what was taken runs no more");
        assert!(said(&players.of("p"), "where").await?.starts_with("other"));
        assert_eq!(world.count("player dropped"), 1);
        cluster.shutdown().await?;
    }
    Ok(())
}
