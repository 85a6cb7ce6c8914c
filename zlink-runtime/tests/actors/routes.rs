//! Which Actor a message reaches: that of its ID, in any mesh, as it is when the message comes; and nothing else.

use std::time::Duration;

use zlink_generated::contract::{DeskHandler, Note, desk_client, desk_server};
use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::location::{Fault, Operation};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{self, ActorCreated};

use crate::far;
use crate::kit::*;
use crate::players::*;

const SECOND: Duration = Duration::from_secs(1);

/// REQ: AC-002, AC-063, AC-067
#[tokio::test(start_paused = true)]
async fn an_id_is_one_in_all_meshes() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 260);
        let (with_store, shared) = (far::with_store(&cluster, "both"), world.clone());
        cluster.node("both", move |host| {
            let host = with_store(host).shared(shared.clone());
            let host = host.mesh("world", |mesh| mesh.listen("tcp://both:1").object_server(players));
            host.mesh("other", |mesh| mesh.listen("tcp://both:2").object_server(players))
        });
        start(&cluster).await?;
        let players = player_actors(&cluster.host("both"));
        let several = players.create("p", text("x")).await.unwrap_err();
        assert_eq!(several.kind(), Some(ErrorKind::InvalidOperation), "{several}");
        let made = players.create("p", text("x")).in_mesh("world").await?;
        let ActorCreated::Created(actor, _) = made else {
            panic!("{made:?}");
        };
        assert_eq!(actor.mesh.as_str(), "world");
        let again = players.create("p", text("x")).in_mesh("other").await.unwrap_err();
        assert_eq!(again.kind(), Some(ErrorKind::AlreadyExists), "{again}");
        let got = players.get_or_create("p", text("x")).in_mesh("other").await?;
        assert_eq!(got, ActorCreated::Existing(actor.clone()));
        assert_eq!(players.find("p").await?.as_ref(), Some(&actor));
        assert_eq!(
            said(&players.of("p"), "told").await?,
            "",
            "a mesh is no part of its address"
        );
        assert_eq!((world.count("make p"), world.count("hall decides")), (1, 1));
        assert!(players.destroy(&actor).await?);
        let moved = players.create("p", text("x")).in_mesh("other").await?;
        let moved = moved.reference().unwrap().clone();
        assert_eq!(
            (moved.mesh.as_str(), moved.generation > actor.generation),
            ("other", true)
        );
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Its generation is no part of its address: who has the ID as the message comes is called.
///
/// REQ: AC-052
#[tokio::test(start_paused = true)]
async fn one_that_is_made_anew_meanwhile_answers_what_was_meant_for_the_old_one() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = player_world(place, 261).await?;
        calls(&cluster, "another");
        cluster.start("another").await?;
        cluster.advance(3 * SECOND).await;
        let another = cluster.host("another");
        let (_, actor) = player(&another, "p").await?;
        let faults = cluster.store_faults(place.caller());
        faults.every(Operation::Read, Fault::DelayAnswer(2 * SECOND));
        let p = player_actors(&host).of("p");
        let asked = tokio::spawn(p.info(text("generation")).timeout(60 * SECOND).into_future());
        cluster.advance(SECOND / 4).await;
        faults.heal();
        assert!(player_actors(&another).destroy(&actor).await?);
        let (_, anew) = player(&another, "p").await?;
        assert!(anew.generation > actor.generation);
        assert!(!asked.is_finished(), "it knows where the old one was by now");
        let answer = asked.await??;
        assert_eq!(answer.text, anew.generation.get().to_string(), "{place:?}");
        assert_eq!(world.count("make p"), 2);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A way that is wrong costs the call that takes it, which is told and goes nowhere else.
///
/// REQ: AC-053, AC-051
#[tokio::test(start_paused = true)]
async fn a_call_to_who_has_it_no_more_is_not_sent_on() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = player_world(place, 262).await?;
        serves_with(&cluster, &world, "other", players);
        calls(&cluster, "another");
        let (p, actor) = player(&host, "p").await?;
        assert!(said(&p, "where").await?.starts_with("owner"));
        for name in ["other", "another"] {
            cluster.start(name).await?;
        }
        cluster.host("owner").mesh("world")?.set_placement_weight(0)?;
        cluster.advance(3 * SECOND).await;
        let another = cluster.host("another");
        assert!(player_actors(&another).destroy(&actor).await?);
        let (there, anew) = player(&another, "p").await?;
        assert!(anew.node.to_string().starts_with("other"));
        let stale = p.info(text("count")).await.unwrap_err();
        assert_eq!(
            (stale.kind(), stale.execution()),
            (Some(ErrorKind::Unavailable), Execution::NotExecuted),
            "{stale}"
        );
        cluster.advance(3 * SECOND).await;
        assert_eq!(
            world.count("asked for count"),
            0,
            "nobody has sent it on, then or later"
        );
        assert!(said(&p, "where").await?.starts_with("other"), "the next call asks anew");
        p.info(text("count")).await?;
        there.info(text("count")).await?;
        assert_eq!(world.count("asked for count"), 2);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Who makes one does not send to where it was before: that would be lost, and nobody told.
///
/// REQ: AC-051
#[tokio::test(start_paused = true)]
async fn who_has_made_one_anew_reaches_it_with_the_next_send() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = player_world(place, 264).await?;
        serves_with(&cluster, &world, "other", players);
        calls(&cluster, "another");
        for name in ["other", "another"] {
            cluster.start(name).await?;
        }
        cluster.advance(3 * SECOND).await;
        let weight = |name: &str, weight| cluster.host(name).mesh("world")?.set_placement_weight(weight);
        weight("other", 0)?;
        cluster.advance(SECOND).await;
        let (p, actor) = player(&host, "p").await?;
        assert!(said(&p, "where").await?.starts_with("owner"));
        weight("other", 100)?;
        weight("owner", 0)?;
        cluster.advance(SECOND).await;
        assert!(player_actors(&cluster.host("another")).destroy(&actor).await?);
        let (p, anew) = player(&host, "p").await?;
        assert!(anew.node.to_string().starts_with("other"));
        p.go(text("on")).await?;
        cluster.advance(SECOND).await;
        assert_eq!(world.count("p went on"), 1, "{:?}", world.log());
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A way that was right before leads to one that is being made: nothing of it runs for that yet, or later.
///
/// REQ: AC-066, AC-054
#[tokio::test(start_paused = true)]
async fn a_known_way_does_not_lead_to_one_that_is_being_made() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = player_world(place, 265).await?;
        calls(&cluster, "another");
        cluster.start("another").await?;
        cluster.advance(3 * SECOND).await;
        let others = player_actors(&cluster.host("another"));
        let (p, actor) = player(&host, "p").await?;
        assert_eq!(said(&p, "told").await?, "");
        assert!(others.destroy(&actor).await?);
        world.holds("admit");
        let creating = tokio::spawn(others.create("p", text("x")).into_future());
        world.until("held in admit").await;
        let early = p.info(text("count")).await.unwrap_err();
        assert_eq!(
            (early.kind(), early.execution()),
            (Some(ErrorKind::NotFound), Execution::NotExecuted),
            "{early}"
        );
        world.open_build(1);
        assert!(matches!(creating.await??, ActorCreated::Created(..)));
        assert_eq!(said(&p, "told").await?, "");
        assert_eq!(world.count("asked for count"), 0);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// What is said to a node.
#[derive(Clone)]
struct Desk(World);

impl DeskHandler for Desk {
    async fn ask(&self, _: &NodeContext<'_>, request: Note) -> Result<Note, HandlerError> {
        self.0.note("a node is asked");
        Ok(request)
    }
    async fn tell(&self, _: &NodeContext<'_>, _: Note) -> Result<(), HandlerError> {
        self.0.note("a node is told");
        Ok(())
    }
}

const ASK: rt::Method = rt::Method::request("contract.desk.ask", None);

async fn ask_player(_: &mut Player, turn: &mut PlayerTurn<'_>, request: Note) -> Result<Note, HandlerError> {
    world_of(turn.shared())?.note("an Actor is asked");
    Ok(request)
}

async fn ask_hall(_: &mut Hall, turn: &mut HallTurn<'_>, request: Note) -> Result<Note, HandlerError> {
    world_of(turn.shared())?.note("a Spot is asked");
    Ok(request)
}

/// One packet name for a node, its Spot and an Actor there: each has its own.
///
/// REQ: AC-056, AC-011
#[tokio::test(start_paused = true)]
async fn what_is_said_to_a_node_or_a_spot_reaches_no_actor() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world) = on(place.1, 263);
        let (with_store, shared) = (far::with_store(&cluster, "owner"), world.clone());
        cluster.node("owner", move |host| {
            let host = with_store(host).shared(shared.clone());
            host.mesh("world", |mesh| {
                let mesh = mesh.rid_prefix("owner").listen("tcp://owner:1");
                mesh.serve_node(desk_server(Desk(shared.clone())))
                    .object_server(|objects| {
                        let hall = hall_builder().creates(PLAYER, Hall::on_create_player);
                        let player = player_builder().request("contract.desk.ask", ask_player);
                        objects
                            .entry(hall.request("contract.desk.ask", ask_hall).build())
                            .actor(player.relocation(rt::Relocation::Disabled).build())
                    })
            })
        });
        if place.0 == Placement::Remote {
            calls(&cluster, "caller");
        }
        start(&cluster).await?;
        let host = cluster.host(place.caller());
        let (p, actor) = player(&host, "p").await?;
        let hall = said(&p, "spot").await?;
        let counts = || ["a node is asked", "a Spot is asked", "an Actor is asked"].map(|text| world.count(text));
        let note = || Note {
            number: 7,
            ..Note::default()
        };
        let desk = desk_client(&host, &MeshName::from_static("world"), actor.node.clone());
        assert_eq!(desk.ask(note()).await?.number, 7);
        assert_eq!(counts(), [1, 0, 0]);
        let spot = rt::SpotRoute::new(&host, HALL).of(&hall);
        let _: Note = spot.request::<Note, Note>(ASK, note()).await?;
        assert_eq!(counts(), [1, 1, 0]);
        let _: Note = rt::ActorRoute::new(&host, PLAYER)
            .of("p")
            .request::<Note, Note>(ASK, note())
            .await?;
        assert_eq!(counts(), [1, 1, 1]);
        desk.tell(note()).await?;
        world.until("a node is told").await;
        assert_eq!(said(&p, "told").await?, "");
        cluster.shutdown().await?;
    }
    Ok(())
}
