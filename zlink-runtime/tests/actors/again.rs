//! Where a creation meets what else goes on: what its Entry Spot has to do, and links that break under it.

use std::time::Duration;

use zlink_runtime::PeerState;
use zlink_runtime::error::ErrorKind;
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{self, ActorCreated, Admission};

use crate::arena::{Count, Line};
use crate::kit::*;
use crate::players::*;

const SECOND: Duration = Duration::from_secs(1);
/// Longer than it takes to see that a host is dead.
const PATIENCE: Duration = Duration::from_secs(120);

/// New Actors are decided about before all that their Entry Spot was sent, and yet not only they come to their turn.
///
/// REQ: AC-020, AC-022, AC-023
#[tokio::test(start_paused = true)]
async fn an_admission_goes_before_what_its_spot_was_sent_and_holds_it_up_for_a_while_only() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = player_world(place, 280).await?;
        let (p, _) = player(&host, "p").await?;
        let hall = hall_spots(&host).of(said(&p, "spot").await?);
        let busy = tokio::spawn(hall.greet(text("gate")).into_future());
        world.until("the hall waits").await;
        let greeting: Vec<_> = (0..3)
            .map(|at| tokio::spawn(hall.greet(text(&format!("guest {at}"))).into_future()))
            .collect();
        cluster.advance(SECOND).await;
        let players = player_actors(&host);
        let creating: Vec<_> = (0..40)
            .map(|at| tokio::spawn(players.create(format!("new {at}"), text("x")).into_future()))
            .collect();
        cluster.advance(SECOND).await;
        assert_eq!(world.count("hall decides on new"), 0);
        assert_eq!(world.count("make new"), 40, "each is made meanwhile");
        world.open(1);
        busy.await??;
        for greeted in greeting {
            greeted.await??;
        }
        for created in creating {
            assert!(matches!(created.await??, ActorCreated::Created(..)));
        }
        let log = world.log();
        let before = |text: &str| {
            let at = log.iter().position(|line| line.contains(text)).unwrap();
            log[..at]
                .iter()
                .filter(|line| line.contains("hall decides on new"))
                .count()
        };
        let passed = ["guest 0", "guest 1", "guest 2"].map(|guest| before(&format!("hall greets {guest}")));
        assert!(passed[0] >= 16 && passed[0] <= 17, "{place:?}: {passed:?}");
        assert!(passed[1] > passed[0] && passed[1] <= passed[0] + 17, "{passed:?}");
        assert_eq!(world.count("hall greets"), 4, "and no message of an Actor");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// What is lost on its way is asked for again, as often as there is time for.
///
/// REQ: AC-091, AC-093, AC-094
#[tokio::test(start_paused = true)]
async fn a_create_that_is_lost_fifty_times_is_made_once() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = player_world(place, 281).await?;
        let network = cluster.network();
        let is_linked = |host: &zlink_runtime::Host| {
            let peers = host.mesh("world").unwrap().status().peers;
            peers.iter().any(|peer| peer.state == PeerState::Ready)
        };
        // What was asked for as a link came up has not arrived as it breaks.
        network.delay("caller", "owner", SECOND / 5);
        cluster.advance(SECOND).await;
        let call = player_actors(&host).create("p", text("hello")).timeout(3_600 * SECOND);
        let creating = tokio::spawn(call.into_future());
        for drops in 0..50 {
            cluster.until("a link", PATIENCE, || is_linked(&host)).await;
            cluster.advance(SECOND / 50).await;
            assert!(network.break_connections("owner", "caller", false) > 0);
            assert!(!creating.is_finished() && world.count("make") == 0, "{drops}");
            cluster.until("the loss", PATIENCE, || !is_linked(&host)).await;
        }
        let ActorCreated::Created(actor, reply) = creating.await?? else {
            panic!("it is created");
        };
        assert_eq!((reply, world.count("make p")), (text("welcome hello"), 1));
        assert_eq!(player_actors(&host).find("p").await?, Some(actor));
        cluster.shutdown().await?;
    }
    Ok(())
}

/// What was answered is never asked for again, whatever the answer is.
///
/// REQ: AC-091, AC-092
#[tokio::test(start_paused = true)]
async fn an_answer_ends_a_create_at_once() -> Tested {
    for place in EVERYWHERE {
        let one = |objects| players(objects).actor_capacity(PLAYER, 1);
        let (cluster, world, host) = player_world_with(place, 282, one).await?;
        let players = player_actors(&host);
        let began = rt::Instant::now();
        let call = |id: &str, request: &str| players.create(id, text(request)).timeout(PATIENCE);
        for (request, expected) in [("fail", 1), ("panic", 2), ("long", 3), ("reject", 4)] {
            let ended = call("p", request).await;
            match request {
                "reject" => assert_eq!(ended?, ActorCreated::Rejected(text("no"))),
                _ => assert_eq!(ended.unwrap_err().kind(), Some(ErrorKind::InternalFailure)),
            }
            assert_eq!(world.count("make"), expected, "{request}");
        }
        let strange = players
            .route
            .create::<_, Line>("p", Count { value: 7 })
            .timeout(PATIENCE);
        assert_eq!(strange.await.unwrap_err().kind(), Some(ErrorKind::ProtocolError));
        let stranger = rt::ActorRoute::new(&host, rt::ActorType::from_static("arena.stranger"));
        let nobody = stranger
            .create::<_, ()>("s", text("x"))
            .timeout(PATIENCE)
            .await
            .unwrap_err();
        assert_eq!(nobody.kind(), Some(ErrorKind::NotFound), "{nobody}");
        assert!(matches!(call("p", "x").await?, ActorCreated::Created(..)));
        let full = call("q", "x").await.unwrap_err();
        assert_eq!(full.kind(), Some(ErrorKind::CapacityExceeded), "{full}");
        assert_eq!(world.count("make"), 6);
        assert!(began.elapsed() < SECOND, "{:?}", began.elapsed());
        cluster.shutdown().await?;
    }
    Ok(())
}

async fn admits_strangers(
    _: &mut Hall,
    _: &mut HallTurn<'_>,
    _: &mut Player,
    _: Line,
) -> Result<Admission<Line>, HandlerError> {
    Ok(Admission::Accepted(text("hello, stranger")))
}

/// Each type has an admission of its own, and where there are several nodes each gets its share.
///
/// REQ: AC-064, AC-065, AC-003
#[tokio::test(start_paused = true)]
async fn each_type_has_its_admission_and_each_node_its_share() -> Tested {
    const STRANGER: rt::ActorType = rt::ActorType::from_static("arena.stranger");
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 283);
        for (name, weight) in [("light", 100), ("heavy", 300)] {
            serves_with(&cluster, &world, name, move |objects| {
                let hall = hall_builder().creates(PLAYER, Hall::on_create_player);
                let stranger = rt::ActorFactory::new(STRANGER, Player::create, Player::context);
                objects
                    .entry(hall.creates(STRANGER, admits_strangers).build())
                    .actor(stranger.relocation(rt::Relocation::Disabled).build())
                    .actor(player_actor())
                    .placement_weight(weight)
            });
        }
        calls(&cluster, "caller");
        start(&cluster).await?;
        let host = cluster.host("caller");
        let strangers = rt::ActorRoute::new(&host, STRANGER);
        for at in 0..10 {
            let made = strangers.create::<_, Line>(format!("s{at}"), text("x")).await?;
            assert!(matches!(made, ActorCreated::Created(_, reply) if reply.text == "hello, stranger"));
            let made = player_actors(&host).create(format!("p{at}"), text("x")).await?;
            assert!(matches!(made, ActorCreated::Created(_, reply) if reply.text == "welcome x"));
        }
        let mut heavy = 0;
        for at in 0..400 {
            let made = player_actors(&host).create(format!("more {at}"), text("x")).await?;
            heavy += usize::from(made.reference().unwrap().node.to_string().starts_with("heavy"));
        }
        assert!((260..=340).contains(&heavy), "{heavy} of 400");
        cluster.shutdown().await?;
    }
    Ok(())
}
