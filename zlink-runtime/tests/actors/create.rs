//! How Actors begin: the factory makes one, the Entry Spot of its node decides, and then it is there for all, or never was.

use std::time::Duration;

use zlink_runtime::error::{CallError, ErrorKind, Execution};
use zlink_runtime::rt::{self, ActorCreated};

use crate::kit::*;
use crate::players::*;

const SECOND: Duration = Duration::from_secs(1);
/// Longer than it takes to see that a host is dead.
const PATIENCE: Duration = Duration::from_secs(120);

fn kind(error: &CallError) -> ErrorKind {
    error.kind().unwrap()
}

/// While it is made it is neither found nor messaged; then it is there, in its Entry Spot, with its context.
///
/// REQ: AC-065, AC-066, AC-100, AC-109
#[tokio::test(start_paused = true)]
async fn an_actor_is_there_once_its_entry_spot_has_admitted_it() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = player_world(place, 200).await?;
        let players = player_actors(&host);
        for held in ["create", "admit"] {
            world.holds(held);
        }
        let creating = tokio::spawn(players.create("p", text("x")).into_future());
        for held in ["held in create", "held in admit"] {
            world.until(held).await;
            assert_eq!(players.find("p").await?, None, "{held}");
            let early = players.of("p").info(text("told")).await.unwrap_err();
            assert_eq!(kind(&early), ErrorKind::NotFound, "{held}: {early}");
            assert_eq!(early.execution(), Execution::NotExecuted);
            world.open_build(1);
        }
        let ActorCreated::Created(actor, reply) = creating.await?? else {
            panic!("it is created");
        };
        assert_eq!(reply, text("welcome x"));
        assert_eq!(players.find("p").await?.as_ref(), Some(&actor));
        assert!(actor.node.to_string().starts_with("owner"));
        let p = players.of("p");
        assert_eq!(said(&p, "generation").await?, actor.generation.get().to_string());
        assert_eq!(said(&p, "context").await?, "true");
        let spot = said(&p, "spot").await?;
        assert!(spot.starts_with("owner-entry-"), "{spot}");
        assert_eq!(
            world.log()[..2],
            ["make p on owner in None".to_owned(), "held in create".to_owned()],
            "the factory knows of no Spot"
        );
        assert_eq!(world.count("hall decides on p"), 1);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: AC-016
#[tokio::test(start_paused = true)]
async fn an_actor_that_shows_another_context_is_never_there() -> Tested {
    for place in EVERYWHERE {
        let thieves = |objects: zlink_runtime::ObjectServerBuilder| objects.entry(den_spot()).actor(thief_actor());
        let (cluster, world, host) = player_world_with(place, 201, thieves).await?;
        let players = player_actors(&host);
        assert!(
            matches!(players.create("honest", text("x")).await, Ok(ActorCreated::Created(..)))
                || world.count("made") == 1
        );
        let refused = players.create("thief", text("x")).await.unwrap_err();
        assert_eq!(kind(&refused), ErrorKind::InternalFailure);
        assert_eq!(world.count("made a thief thief"), 1);
        assert_eq!(world.count("hall decides on thief"), 0, "nobody is asked about it");
        assert_eq!(players.find("thief").await?, None);
        // Nor one that shows what a former one of its ID was made with.
        let Some(honest) = players.find("honest").await? else {
            continue;
        };
        assert!(players.destroy(&honest).await?);
        let again = players.create("honest", text("x")).await.unwrap_err();
        assert_eq!(kind(&again), ErrorKind::InternalFailure, "{again}");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Whoever is not admitted was never there, and its room is free.
///
/// REQ: AC-069, AC-065, AC-121, AC-064
#[tokio::test(start_paused = true)]
async fn what_is_not_admitted_gives_its_room_back() -> Tested {
    for place in EVERYWHERE {
        for total in [false, true] {
            let objects = move |objects: zlink_runtime::ObjectServerBuilder| match total {
                true => players(objects).total_actor_capacity(1),
                false => players(objects).actor_capacity(PLAYER, 1),
            };
            let (cluster, world, host) = player_world_with(place, 202, objects).await?;
            let players = player_actors(&host);
            let rejected = players.create("a", text("reject")).await?;
            assert_eq!(rejected, ActorCreated::Rejected(text("no")));
            assert_eq!(rejected.reference(), None);
            for (id, request) in [("a", "fail"), ("a", "panic"), ("a", "long"), ("broken", "x")] {
                let failed = players.create(id, text(request)).await.unwrap_err();
                assert_eq!(kind(&failed), ErrorKind::InternalFailure, "{request}: {failed}");
                assert_eq!(players.find(id).await?, None, "{request}");
            }
            assert_eq!(world.count("player dropped"), 4, "each that was made is gone");
            let created = players.create("a", text("x")).await?;
            assert!(matches!(created, ActorCreated::Created(..)));
            let full = players.create("b", text("x")).await.unwrap_err();
            assert_eq!(kind(&full), ErrorKind::CapacityExceeded, "{full}");
            assert_eq!(world.count("make b on"), 0);
            assert!(players.destroy(created.reference().unwrap()).await?);
            assert!(matches!(
                players.create("b", text("x")).await?,
                ActorCreated::Created(..)
            ));
            cluster.shutdown().await?;
        }
    }
    Ok(())
}

/// REQ: AC-067, AC-071
#[tokio::test(start_paused = true)]
async fn one_that_is_there_is_not_made_again() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = player_world(place, 203).await?;
        let players = player_actors(&host);
        assert_eq!(players.find("p").await?, None);
        assert_eq!(world.count("make"), 0, "finding makes nothing");
        let (p, actor) = player(&host, "p").await?;
        let again = players.create("p", text("y")).await.unwrap_err();
        assert_eq!(kind(&again), ErrorKind::AlreadyExists);
        assert_eq!(again.to_string(), "AlreadyExists: there is an Actor \"p\" already");
        let got = players.get_or_create("p", text("y")).await?;
        assert_eq!(got.reference(), Some(&actor));
        assert_eq!(got, ActorCreated::Existing(actor.clone()));
        let stranger = rt::ActorRoute::new(&host, rt::ActorType::from_static("arena.stranger"));
        for error in [
            stranger.create::<_, ()>("p", text("y")).await.unwrap_err(),
            stranger.get_or_create::<_, ()>("p", text("y")).await.unwrap_err(),
            stranger.find("p").await.unwrap_err(),
            stranger.destroy(&actor).await.unwrap_err(),
        ] {
            assert_eq!(kind(&error), ErrorKind::TypeMismatch, "{error}");
        }
        assert_eq!((world.count("make"), world.count("hall decides")), (1, 1));
        p.go(text("on")).await?;
        assert_eq!(said(&p, "told").await?, "on", "it is as it was");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Of those who ask at once one makes it; those whose request was refused are no hindrance to the next.
///
/// REQ: AC-068, LS-041
#[tokio::test(start_paused = true)]
async fn of_many_that_ask_at_once_one_makes_it() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = player_world(place, 204).await?;
        let players = player_actors(&host);
        world.holds("admit");
        let first = tokio::spawn(
            players
                .get_or_create("p", text("reject"))
                .timeout(PATIENCE)
                .into_future(),
        );
        world.until("held in admit").await;
        let second = tokio::spawn(
            players
                .get_or_create("p", text("second"))
                .timeout(PATIENCE)
                .into_future(),
        );
        let third = tokio::spawn(players.create("p", text("third")).timeout(PATIENCE).into_future());
        cluster.advance(SECOND).await;
        assert_eq!(world.count("make p"), 1, "the others wait");
        assert!(!second.is_finished() && !third.is_finished());
        let stranger = rt::ActorRoute::new(&host, rt::ActorType::from_static("arena.stranger"));
        let other = stranger
            .create::<_, ()>("p", text("y"))
            .timeout(PATIENCE)
            .await
            .unwrap_err();
        assert_eq!(
            kind(&other),
            ErrorKind::TypeMismatch,
            "it has its type already: {other}"
        );
        world.open_build(3);
        assert_eq!(
            first.await??,
            ActorCreated::Rejected(text("no")),
            "each has its own reply"
        );
        let (second, third) = (second.await?, third.await?);
        match (second?, third) {
            (ActorCreated::Created(_, reply), Err(error)) => {
                assert_eq!(
                    (reply, kind(&error)),
                    (text("welcome second"), ErrorKind::AlreadyExists)
                );
            }
            (ActorCreated::Existing(actor), Ok(ActorCreated::Created(made, reply))) => {
                assert_eq!((actor, reply), (made, text("welcome third")));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(world.count("make p"), 2, "one after the other");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// More that wait for one Entry Spot than its lifecycle lane takes: each has its turn.
///
/// REQ: EX-46
#[tokio::test(start_paused = true)]
async fn a_crowd_is_admitted_one_after_the_other() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = player_world(place, 211).await?;
        let players = player_actors(&host);
        world.holds("admit");
        let calls = (0..600).map(|at| {
            players
                .create(format!("p{at}"), text("x"))
                .timeout(PATIENCE)
                .into_future()
        });
        let creating: Vec<_> = calls.map(tokio::spawn).collect();
        world.until("held in admit").await;
        cluster.advance(SECOND).await;
        assert_eq!(world.count("hall decides"), 1, "one at a time");
        world.open_build(600);
        for created in creating {
            let created = created.await??;
            assert!(matches!(created, ActorCreated::Created(..)), "{created:?}");
        }
        cluster.shutdown().await?;
    }
    Ok(())
}

/// An ID of an Actor is nobody else's; a Spot of the same ID is another thing.
///
/// REQ: AC-001, LS-011
#[tokio::test(start_paused = true)]
async fn ids_of_actors_are_their_own() -> Tested {
    for place in EVERYWHERE {
        let both = |objects: zlink_runtime::ObjectServerBuilder| all(players(objects));
        let (cluster, _, host) = player_world_with(place, 205, both).await?;
        let players = player_actors(&host);
        let (longest, long) = ("a".repeat(255), "a".repeat(256));
        for id in ["p", "P", " p", "p ", "ü", "u\u{308}", "%20", &longest] {
            assert!(
                matches!(players.create(id, text(id)).await?, ActorCreated::Created(..)),
                "{id}"
            );
            players.of(id).go(text(id)).await?;
        }
        for id in ["", &long, "a\0b"] {
            assert!(matches!(
                players.create(id, text("x")).await,
                Err(CallError::Argument(_))
            ));
            assert!(matches!(players.find(id).await, Err(CallError::Argument(_))));
            assert!(matches!(
                players.of(id).go(text("x")).await,
                Err(CallError::Argument(_))
            ));
            assert!(matches!(
                players.of(id).info(text("x")).await,
                Err(CallError::Argument(_))
            ));
        }
        for id in ["P", " p", "p "] {
            assert_eq!(said(&players.of(id), "told").await?, id);
        }
        let (spot, _) = room(&host, "p", "x").await?;
        assert_eq!(look(&spot, "lines").await?, "x");
        assert_eq!(said(&players.of("p"), "told").await?, "p");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: AC-061, AC-063
#[tokio::test(start_paused = true)]
async fn options_are_set_once_and_a_mesh_is_one_of_this_process() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = player_world(place, 206).await?;
        let players = player_actors(&host);
        let call = || players.create("p", text("x"));
        for call in [
            call().timeout(SECOND).timeout(SECOND),
            call().in_mesh("world").in_mesh("world"),
        ] {
            assert_eq!(kind(&call.await.unwrap_err()), ErrorKind::InvalidOperation);
        }
        assert!(matches!(
            call().timeout(Duration::ZERO).await,
            Err(CallError::Argument(_))
        ));
        assert!(matches!(call().in_mesh("").await, Err(CallError::Argument(_))));
        assert_eq!(kind(&call().in_mesh("other").await.unwrap_err()), ErrorKind::NotFound);
        let large = players.create("p", text(&"x".repeat(1_100_000))).await.unwrap_err();
        assert!(matches!(large, CallError::Argument(_)), "{large}");
        assert_eq!(world.count("make"), 0);
        assert!(matches!(call().in_mesh("world").await?, ActorCreated::Created(..)));
        let long = players.create("q", text(&"x".repeat(1_000_000))).await?;
        assert!(matches!(long, ActorCreated::Created(..)));
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: AC-062
#[tokio::test(start_paused = true)]
async fn one_deadline_is_for_all_of_it() -> Tested {
    for place in EVERYWHERE {
        for held in ["create", "admit"] {
            let (cluster, world, host) = player_world(place, 207).await?;
            let players = player_actors(&host);
            world.holds(held);
            let began = rt::Instant::now();
            let late = players.create("p", text("x")).timeout(5 * SECOND).await.unwrap_err();
            assert_eq!(kind(&late), ErrorKind::DeadlineExceeded, "{held}: {late}");
            let took = began.elapsed();
            assert!(took >= 5 * SECOND && took < 6 * SECOND, "{took:?}");
            assert_eq!(players.find("p").await?, None);
            // What the Entry Spot decides about already goes on for itself.
            cluster.advance(SECOND).await;
            world.open_build(1);
            cluster.advance(SECOND).await;
            let goes_on = held == "admit";
            assert_eq!(players.find("p").await?.is_some(), goes_on);
            assert_eq!(world.count("hall decides"), usize::from(goes_on));
            cluster.shutdown().await?;
        }
    }
    Ok(())
}

/// Nobody who could make it: nothing has begun.
///
/// REQ: AC-064, AC-084
#[tokio::test(start_paused = true)]
async fn only_nodes_that_have_its_type_and_take_new_work_make_one() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 208);
        serves_with(&cluster, &world, "plain", |objects| objects.entry(hall_spot()));
        serves_with(&cluster, &world, "idle", |objects| players(objects).placement_weight(0));
        serves_with(&cluster, &world, "owner", players);
        calls(&cluster, "caller");
        start(&cluster).await?;
        let host = cluster.host("caller");
        let players = player_actors(&host);
        for at in 0..10 {
            let made = players.create(format!("p{at}"), text("x")).await?;
            assert!(
                made.reference().unwrap().node.to_string().starts_with("owner"),
                "{made:?}"
            );
        }
        // It drains while one of its turns waits: that one goes on, and nothing new is made there.
        players.of("p0").go(text("gate")).await?;
        world.until("go waits").await;
        let stopping = tokio::spawn(cluster.stop("owner"));
        cluster.advance(SECOND).await;
        let none = players.create("late", text("x")).timeout(SECOND).await.unwrap_err();
        assert_eq!(kind(&none), ErrorKind::CapacityExceeded, "{none}");
        assert_eq!(world.count("make late"), 0);
        world.open(1);
        stopping.await??;
        assert_eq!(world.count("p0 went gate"), 1);
        let log = world.log();
        let at = |text: &str| log.iter().position(|line| line.contains(text)).unwrap();
        assert!(
            at("p0 went gate") < at("the hall closes"),
            "the Entry Spot ends after its Actors"
        );
        let stranger = rt::ActorRoute::new(&host, rt::ActorType::from_static("arena.stranger"));
        let nobody = stranger.create::<_, ()>("s", text("x")).await.unwrap_err();
        assert_eq!(kind(&nobody), ErrorKind::NotFound, "{nobody}");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A create whose answer is lost on its way happens once, and its caller gets the answer that it would have got.
///
/// REQ: AC-090
#[tokio::test(start_paused = true)]
async fn a_create_whose_answer_is_lost_is_answered_as_it_ended() -> Tested {
    for place in REMOTE {
        for request in ["hello", "reject", "fail"] {
            let (cluster, world, host) = player_world(place, 209).await?;
            world.holds("admit");
            let players = player_actors(&host);
            let creating = tokio::spawn(players.create("p", text(request)).timeout(PATIENCE).into_future());
            world.until("held in admit").await;
            cluster.network().partition(&["owner"], &["caller"]);
            assert!(cluster.network().break_connections("owner", "caller", false) > 0);
            world.open_build(1);
            cluster.advance(2 * SECOND).await;
            cluster.network().heal();
            let ended = creating.await?;
            assert_eq!(world.count("make p"), 1, "{:?}", world.log());
            match request {
                "hello" => {
                    let ActorCreated::Created(actor, reply) = ended? else {
                        panic!("it has created it");
                    };
                    assert_eq!(reply, text("welcome hello"));
                    assert_eq!(players.find("p").await?, Some(actor));
                }
                "reject" => assert_eq!(ended?, ActorCreated::Rejected(text("no"))),
                _ => {
                    let error = ended.unwrap_err();
                    assert_eq!(
                        (kind(&error), error.execution()),
                        (ErrorKind::InternalFailure, Execution::Unknown)
                    );
                }
            }
            cluster.shutdown().await?;
        }
    }
    Ok(())
}

/// A node that dies while it makes one leaves nothing that stands in the way.
///
/// REQ: AC-070, AC-090, LS-044
#[tokio::test(start_paused = true)]
async fn a_create_whose_node_dies_meanwhile_is_made_elsewhere() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = player_world(place, 210).await?;
        world.holds("admit");
        let call = player_actors(&host).create("p", text("hello")).timeout(PATIENCE);
        let creating = tokio::spawn(call.into_future());
        world.until("held in admit").await;
        serves_with(&cluster, &world, "other", players);
        cluster.start("other").await?;
        cluster.kill("owner");
        world.open_build(2);
        let ended = creating.await??;
        assert!(matches!(ended, ActorCreated::Created(..)), "{ended:?}");
        assert!(said(&player_actors(&host).of("p"), "where").await?.starts_with("other"));
        assert_eq!(world.count("make p"), 2, "once on each");
        assert_eq!(world.count(": hello"), 2, "with the same request");
        cluster.shutdown().await?;
    }
    Ok(())
}
