//! What Actors are sent: to the ID, wherever it is, into the Actor's own queue.

use std::time::Duration;

use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::rt;

use crate::arena::Count;
use crate::kit::*;
use crate::players::*;

const SECOND: Duration = Duration::from_secs(1);

/// One after the other, in the order in which they were accepted, and none of them on the Spot.
///
/// REQ: AC-010, AC-011, AC-050, AC-012, EX-06
#[tokio::test(start_paused = true)]
async fn messages_run_in_order_on_the_actors_own_queue() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = player_world(place, 220).await?;
        let (p, _) = player(&host, "p").await?;
        let (q, _) = player(&host, "q").await?;
        p.go(text("gate")).await?;
        world.until("go waits").await;
        for at in 0..20 {
            p.go(text(&at.to_string())).await?;
        }
        let last = tokio::spawn(p.info(text("told")).into_future());
        cluster.advance(SECOND).await;
        // In an Entry Spot each has its own gate, and so has the Spot.
        assert_eq!(
            said(&q, "ask q").await?,
            "Some(InvalidOperation)",
            "it would wait for itself"
        );
        assert_eq!(said(&q, "greet").await?, "hello q, you are 1");
        let spot = said(&q, "spot").await?;
        let greeted = hall_spots(&host).of(&spot).greet(text("gate")).into_future();
        let greeted = tokio::spawn(greeted);
        world.until("the hall waits").await;
        assert_eq!(said(&q, "told").await?, "", "it waits for nobody else");
        assert_eq!(world.count("p went"), 0);
        world.open(2);
        greeted.await??;
        let expected: Vec<_> = ["gate".to_owned()]
            .into_iter()
            .chain((0..20).map(|at| at.to_string()))
            .collect();
        assert_eq!(last.await??.text, expected.join(","));
        assert_eq!(
            world.count("hall greets"),
            2,
            "the Spot has handled its own messages only"
        );
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: AC-015, EX-71
#[tokio::test(start_paused = true)]
async fn each_actor_is_an_object_of_its_own() -> Tested {
    for place in EVERYWHERE {
        let (cluster, _, host) = player_world(place, 221).await?;
        let (p, _) = player(&host, "p").await?;
        let (q, _) = player(&host, "q").await?;
        let number = said(&p, "number").await?;
        assert_ne!(number, said(&q, "number").await?);
        p.go(text("on")).await?;
        assert_eq!(
            (said(&p, "told").await?, said(&q, "told").await?),
            ("on".into(), String::new())
        );
        assert_eq!(said(&p, "number").await?, number, "the same for its life");
        assert_eq!(said(&p, "ask q").await?, "");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A turn is not given back in an Entry Spot: nothing was submitted.
///
/// REQ: AC-012, EX-22
#[tokio::test(start_paused = true)]
async fn nothing_yields_in_an_entry_spot() -> Tested {
    for place in EVERYWHERE {
        let (cluster, _, host) = player_world(place, 222).await?;
        let (p, _) = player(&host, "p").await?;
        player(&host, "q").await?;
        assert_eq!(p.rest(text("q")).await?.text, "Some(InvalidOperation)");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: AC-054, AC-055, AC-051
#[tokio::test(start_paused = true)]
async fn what_cannot_be_handled_is_an_error_and_no_more() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = player_world(place, 223).await?;
        let nobody = player_actors(&host).of("nobody");
        let asked = nobody.info(text("told")).await.unwrap_err();
        let sent = nobody.go(text("on")).await.unwrap_err();
        for error in [asked, sent] {
            assert_eq!(error.kind(), Some(ErrorKind::NotFound), "{error}");
            assert_eq!(error.execution(), Execution::NotExecuted);
        }
        assert_eq!(world.count("make"), 0, "messages make nothing");
        let (p, _) = player(&host, "nobody").await?;
        assert_eq!(said(&nobody, "told").await?, "", "that there was none is not kept");
        let unknown = p.unknown(text("x")).await.unwrap_err();
        assert_eq!(unknown.kind(), Some(ErrorKind::NotFound), "{unknown}");
        let bad = p.bad(Count { value: 7 }).await.unwrap_err();
        assert_eq!(bad.kind(), Some(ErrorKind::ProtocolError), "{bad}");
        assert_eq!(bad.execution(), Execution::NotExecuted);
        let failed = p.info(text("fail")).await.unwrap_err();
        assert_eq!(
            (failed.kind(), failed.execution()),
            (Some(ErrorKind::InternalFailure), Execution::Unknown)
        );
        assert_eq!(said(&p, "told").await?, "");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Where it was found is asked for once, and forgotten with the first sign that it is wrong.
///
/// REQ: AC-051
#[tokio::test(start_paused = true)]
async fn an_actor_that_was_made_anew_answers_by_the_old_way() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = player_world(place, 224).await?;
        let (p, actor) = player(&host, "p").await?;
        assert_eq!(said(&p, "told").await?, "");
        // From here on the store says nothing.
        let faults = match place.0 {
            Placement::Local => cluster.store_faults("owner"),
            Placement::Remote => cluster.store_faults("caller"),
        };
        faults.cut();
        for _ in 0..10 {
            assert_eq!(said(&p, "told").await?, "");
        }
        faults.heal();
        cluster.advance(SECOND).await;
        assert!(player_actors(&host).destroy(&actor).await?);
        let gone = p.info(text("told")).await.unwrap_err();
        assert_eq!(gone.kind(), Some(ErrorKind::NotFound), "{gone}");
        let (_, anew) = player(&host, "p").await?;
        assert!(anew.generation > actor.generation);
        assert_eq!(said(&p, "generation").await?, anew.generation.get().to_string());
        assert_eq!(world.count("make p"), 2);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: AC-057
#[tokio::test(start_paused = true)]
async fn an_owner_that_is_out_of_reach_is_not_an_actor_that_is_not_there() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = player_world(place, 225).await?;
        let (p, _) = player(&host, "p").await?;
        p.go(text("first")).await?;
        assert_eq!(said(&p, "told").await?, "first");
        cluster.network().partition(&["owner"], &["caller"]);
        cluster.network().break_connections("owner", "caller", false);
        let away = p.info(text("told")).timeout(3 * SECOND).await.unwrap_err();
        assert!(
            matches!(away.kind(), Some(ErrorKind::Unavailable | ErrorKind::DeadlineExceeded)),
            "{away}"
        );
        cluster.network().heal();
        cluster.advance(10 * SECOND).await;
        assert_eq!(said(&p, "told").await?, "first", "the same one");
        assert_eq!(world.count("make p"), 1);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: AC-019, PM-25
#[tokio::test(start_paused = true)]
async fn what_waits_for_an_actor_has_permits() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = player_world(place, 226).await?;
        let (p, _) = player(&host, "p").await?;
        p.go(text("gate")).await?;
        world.until("go waits").await;
        let owner = cluster.host("owner");
        assert_eq!(owner.status().jobs.in_use(), 0, "a turn that has started holds none");
        for _ in 0..30 {
            p.go(text("on")).await?;
        }
        cluster.advance(SECOND).await;
        assert_eq!(owner.status().jobs.in_use(), 30);
        world.open(1);
        cluster.advance(SECOND).await;
        assert_eq!(owner.status().jobs.in_use(), 0);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Its ticks are turns of its own queue.
///
/// REQ: EX-63
#[tokio::test(start_paused = true)]
async fn an_actor_has_its_timers() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = player_world(place, 227).await?;
        let (p, actor) = player(&host, "p").await?;
        assert_eq!(said(&p, "tick").await?, "ticks");
        cluster.advance(Duration::from_millis(3_500)).await;
        assert_eq!(world.count("p ticks"), 3);
        p.go(text("gate")).await?;
        cluster.advance(3 * SECOND).await;
        assert_eq!(world.count("p ticks"), 3, "a tick waits for the turn before it");
        world.open(1);
        cluster.advance(Duration::from_millis(100)).await;
        // What its Spot has to do is nothing to them.
        let hall = hall_spots(&host).of(said(&p, "spot").await?);
        let busy = tokio::spawn(hall.greet(text("gate")).into_future());
        world.until("the hall waits").await;
        let before = world.count("p ticks");
        cluster.advance(3 * SECOND).await;
        assert_eq!(world.count("p ticks"), before + 3);
        world.open(1);
        busy.await??;
        assert!(player_actors(&host).destroy(&actor).await?);
        let ticks = world.count("p ticks");
        cluster.advance(10 * SECOND).await;
        assert_eq!(world.count("p ticks"), ticks, "one that is gone has none");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: MSG-409
#[tokio::test(start_paused = true)]
async fn metadata_comes_with_a_message() -> Tested {
    const MARK: rt::MetadataKey<String> = rt::MetadataKey::new("mark");
    for place in EVERYWHERE {
        let (cluster, _, host) = player_world(place, 228).await?;
        let (p, _) = player(&host, "p").await?;
        let told = p.info(text("metadata mark")).metadata(MARK, "x".to_owned()).await?;
        assert_eq!(told.text, "x");
        cluster.shutdown().await?;
    }
    Ok(())
}
