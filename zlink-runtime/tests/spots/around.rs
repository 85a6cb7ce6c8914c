//! What stands around the turns of Spots: filters, scopes, and what is told to whoever traces.

use std::sync::Arc;

use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::id::SpotKind;
use zlink_runtime::prelude::*;
use zlink_runtime::testing::Cluster;
use zlink_runtime::{Filter, FilterContext, HostBuilder, Next, SpotQuery};

use crate::arena::*;
use crate::events::Events;
use crate::far;
use crate::kit::*;

/// Notes what it sees, and lets through what is not forbidden.
struct Watch(World, &'static str);

/// Who a filter found out that it is.
struct User(String);

impl Filter for Watch {
    async fn handle(&self, context: &FilterContext<'_>, next: Next<'_>) -> Result<(), HandlerError> {
        let (spot, mesh) = (
            context.spot().map(ToString::to_string),
            context.mesh().map(ToString::to_string),
        );
        let what = context.packet_name().as_str().trim_start_matches("arena.");
        let about = format!(
            "{} {} {what} {} {mesh:?}",
            self.1,
            spot.unwrap_or_default(),
            context.kind()
        );
        assert!(context.channel().is_none() && context.source().is_none());
        self.0.note(format!("in {about}"));
        if context.metadata().get("tenant") == Some("nobody") {
            return Err(HandlerError::new("no tenant"));
        }
        context.scope().set(User(self.1.to_owned()));
        let ended = next.run().await;
        self.0.note(format!("out {about} {}", ended.is_ok()));
        ended
    }
}

/// A lobby that says who asks.
struct Greeter;

impl LobbySpot for Greeter {
    async fn start(_: LobbyContext) -> Result<Self, HandlerError> {
        Ok(Self)
    }

    async fn greet(&mut self, turn: &mut LobbyTurn<'_>, _: Line) -> Result<Line, HandlerError> {
        let user: Option<Arc<User>> = turn.scope().get();
        Ok(text(&user.map(|user| user.0.clone()).unwrap_or_default()))
    }
}

fn filtered(cluster: &Cluster, world: &World) {
    let (with_store, world) = (far::with_store(cluster, "owner"), world.clone());
    cluster.node("owner", move |host: HostBuilder| {
        let host = with_store(host).shared(world.clone());
        // That of the host is for other handlers.
        let host = host.filter(Watch(world.clone(), "host"));
        host.mesh("world", |mesh| {
            let mesh = mesh.rid_prefix("owner").listen("tcp://owner:1");
            mesh.object_server(|objects| {
                let objects = all(objects).entry(lobby_spot::<Greeter>());
                objects
                    .filter(Watch(world.clone(), "outer"))
                    .filter(Watch(world.clone(), "inner"))
            })
        })
    });
}

/// REQ: CH-606
#[tokio::test(start_paused = true)]
async fn filters_stand_around_what_spots_are_sent() -> Tested {
    for provider in PROVIDERS {
        for caller in ["owner", "caller"] {
            let (cluster, world) = on(provider, 130);
            filtered(&cluster, &world);
            calls(&cluster, "caller");
            start(&cluster).await?;
            let host = cluster.host(caller);
            let (one, _) = room(&host, "one", "ticks").await?;
            room(&host, "two", "x").await?;
            let through = |what: &str| {
                let around = |name: &str| format!("{name} one {what} Some(\"world\")");
                let (outer, inner) = (around("outer"), around("inner"));
                [
                    format!("in {outer}"),
                    format!("in {inner}"),
                    format!("out {inner} true"),
                    format!("out {outer} true"),
                ]
            };
            let passed = |from: usize| {
                let log = world.log();
                log[from..]
                    .iter()
                    .filter(|line| line.starts_with("in ") || line.starts_with("out "))
                    .cloned()
                    .collect::<Vec<_>>()
            };
            let from = world.log().len();
            assert_eq!(look(&one, "lines").await?, "ticks");
            assert_eq!(passed(from), through("room.look request"));
            let from = world.log().len();
            one.say(text("hello")).await?;
            world.until("one heard hello").await;
            cluster.advance(std::time::Duration::from_millis(1)).await;
            assert_eq!(passed(from), through("room.say send"));
            // A handler that gives its turn back does so within its filters.
            world.open(1);
            assert_eq!(one.settle(text("two")).await?.text, "2 then 2: passed");

            let rejected = one.look(text("lines")).metadata("tenant", "nobody").await.unwrap_err();
            assert_eq!(
                (rejected.kind(), rejected.execution()),
                (Some(ErrorKind::Rejected), Execution::NotExecuted),
                "{rejected}"
            );
            let gone = one.disband(Nothing {}).metadata("tenant", "nobody").await.unwrap_err();
            assert_eq!(gone.kind(), Some(ErrorKind::Rejected), "{gone}");
            one.say(text("never")).metadata("tenant", "nobody").await?;
            assert_eq!(look(&one, "lines").await?, "ticks,hello", "it lives, and heard no more");
            let failed = look(&one, "fail").await.unwrap_err();
            assert_eq!(failed.kind(), Some(ErrorKind::InternalFailure));
            assert_eq!(world.count("room.look request Some(\"world\") false"), 2);

            let all = cluster
                .host("owner")
                .list_spots(&SpotQuery::new(SpotKind::Entry), None)
                .await?;
            let lobby = lobby_spots(&host).of(&all.spots[0].reference.id);
            assert_eq!(
                lobby.greet(text("")).await?.text,
                "inner",
                "the handler has what its filters set"
            );
            cluster.advance(std::time::Duration::from_secs(3)).await;
            assert!(world.count("one ticks") > 0);
            assert_eq!(world.count("in outer one tick"), 0, "no message, no filter");
            assert_eq!(world.count("in host"), 0);
            cluster.shutdown().await?;
        }
    }
    Ok(())
}

/// REQ: SP-162
#[tokio::test(start_paused = true)]
async fn whoever_traces_sees_a_call_to_a_room_on_its_way() -> Tested {
    for place in EVERYWHERE {
        let events = Events::collect();
        let (cluster, world, host) = placed(place, 131).await?;
        let (one, _) = room(&host, "secret room", "x").await?;
        assert_eq!(look(&one, "lines").await?, "x");
        one.say(text("hello")).await?;
        world.until("heard hello").await;
        cluster.advance(std::time::Duration::from_secs(1)).await;
        for phase in ["selected", "submitted", "received", "admitted", "handled"] {
            let seen = events.count(&["zlink::flow", &format!("phase={phase}")]);
            assert!(seen >= 2, "{phase}: {seen}");
        }
        let look = ["zlink::flow", "packet_name=arena.room.look"];
        let at = |phase: &str, field: &str| {
            let phase = format!("phase={phase}");
            events.field(&[look[0], look[1], &phase], field)
        };
        assert_eq!(at("selected", "mesh_name"), [Some("world".to_owned())]);
        assert_eq!(at("received", "surface"), [Some("spot".to_owned())]);
        assert!(
            at("received", "source_rid")[0]
                .as_ref()
                .is_some_and(|rid| rid.starts_with(place.caller()))
        );
        assert_eq!(
            at("submitted", "flow_id"),
            at("admitted", "flow_id"),
            "one flow, from end to end"
        );
        // A Spot's ID and a topic are of no use where they are counted.
        assert_eq!(events.count(&["zlink::flow", "secret room"]), 0);
        cluster.shutdown().await?;
    }
    Ok(())
}
