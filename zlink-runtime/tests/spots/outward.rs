//! What Spots call: channels of any path of their process, other Spots; and what becomes of answers to those that are gone.

use std::time::Duration;

use zlink_generated::billing::{self, BillingHandler, Charge, Receipt};
use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::prelude::*;
use zlink_runtime::rt;
use zlink_runtime::testing::Cluster;

use crate::arena::*;
use crate::events::Events;
use crate::far;
use crate::kit::*;

const SECOND: Duration = Duration::from_secs(1);
const TILL: ChannelName = ChannelName::from_static("till");

/// Takes money, and may take its time.
struct Till(World);

impl BillingHandler for Till {
    async fn charge(&self, _: &ChannelContext<'_>, charge: Charge) -> Result<Receipt, HandlerError> {
        self.0.note(format!("charged {}", charge.order));
        if charge.order.starts_with("gate") {
            self.0.gate().await;
        }
        let number = format!("R-{}", charge.order);
        Ok(Receipt { number })
    }
}

/// A node that has rooms in the mesh `world`, and a bank that is reached over another mesh and over ClientServer.
async fn with_bank(place: Place, seed: u64) -> Result<(Cluster, World, Host), Failure> {
    placed_with(place, seed, banks).await
}

fn banks(cluster: &Cluster, world: &World) {
    let (with_store, shared) = (far::with_store(cluster, "owner"), world.clone());
    cluster.node("owner", move |host| {
        let host = with_store(host).shared(shared.clone());
        let host = host.mesh("world", |mesh| mesh.listen("tcp://owner:1").object_server(all));
        let host = host.mesh("money", |mesh| {
            mesh.listen("tcp://owner:2")
                .connect("tcp://bank:1")
                .client(billing::BILLING)
        });
        host.client_server(|channel| channel.client(TILL).connect("tcp://bank:2"))
    });
    let shared = world.clone();
    cluster.node("bank", move |host| {
        let (one, two) = (Till(shared.clone()), Till(shared.clone()));
        let host = host.mesh("money", |mesh| mesh.listen("tcp://bank:1").serve(billing::server(one)));
        host.client_server(|channel| channel.serve(billing::server(two).on(TILL)).listen("tcp://bank:2"))
    });
}

/// REQ: SP-150, SP-151, SP-044, CH-701
#[tokio::test(start_paused = true)]
async fn a_room_calls_whatever_its_process_can() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = with_bank(place, 100).await?;
        let (one, _) = room(&host, "one", "x").await?;
        // The answer comes while its turn holds the room.
        assert_eq!(look(&one, "charge billing").await?, "R-tea");
        assert_eq!(look(&one, "charge till").await?, "R-tea");
        assert_eq!(look(&one, "charge nowhere").await?, "NotFound", "nobody else is asked");
        assert_eq!(look(&one, "lines").await?, "x,R-tea,R-tea", "each was applied once");
        assert_eq!(world.count("charged tea"), 2);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-152, RT-013, CH-702
#[tokio::test(start_paused = true)]
async fn an_answer_to_a_room_that_is_gone_is_for_nobody() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = with_bank(place, 101).await?;
        let (one, spot) = room(&host, "one", "x").await?;
        let looking = tokio::spawn(
            one.look(text("charge billing gate one"))
                .timeout(300 * SECOND)
                .into_future(),
        );
        world.until("charged gate one").await;
        let closing = tokio::spawn(room_spots(&host).close(&spot).timeout(100 * SECOND).into_future());
        // It gets thirty seconds to finish.
        assert!(closing.await??);
        let lost = looking.await?.unwrap_err();
        assert_eq!(lost.execution(), Execution::Unknown, "{lost}");
        let (again, _) = room(&host, "one", "new").await?;
        // Nor for the room that has its ID now, or for others, which wait for another.
        let mut rooms = vec![again];
        for number in 0..8 {
            rooms.push(room(&host, &number.to_string(), "new").await?.0);
        }
        let asks = |one: &RoomSpotClient| {
            let asked = one.look(text("charge billing gate two")).timeout(300 * SECOND);
            tokio::spawn(asked.into_future())
        };
        let asked: Vec<_> = rooms.iter().map(asks).collect();
        cluster.advance(SECOND).await;
        assert_eq!(world.count("charged gate two"), rooms.len());
        world.open(1);
        cluster.advance(SECOND).await;
        assert!(!asked.iter().any(tokio::task::JoinHandle::is_finished));
        world.open(rooms.len());
        for (one, asked) in rooms.iter().zip(asked) {
            assert_eq!(asked.await??.text, "R-gate two");
            assert_eq!(look(one, "lines").await?, "new,R-gate two");
        }
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-056
#[tokio::test(start_paused = true)]
async fn what_was_accepted_is_sent_to_nobody_else() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = placed(place, 102).await?;
        serves(&cluster, &world, "other");
        let (one, spot) = room(&host, "one", "x").await?;
        cluster.start("other").await?;
        cluster.advance(3 * SECOND).await;
        let looking = tokio::spawn(one.look(text("gate")).timeout(300 * SECOND).into_future());
        world.until("look waits").await;
        cluster.kill("owner");
        let lost = looking.await?.unwrap_err();
        assert_eq!(
            (lost.kind(), lost.execution()),
            (Some(ErrorKind::Unavailable), Execution::Unknown),
            "{lost}"
        );
        assert!(room_spots(&host).release(&spot).await?);
        room(&host, "one", "again").await?;
        cluster.advance(30 * SECOND).await;
        assert_eq!(world.count("look waits"), 1, "{:?}", world.log());
        world.open(2);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: RT-012
#[tokio::test(start_paused = true)]
async fn an_answer_to_nobody_is_dropped_and_recorded() -> Tested {
    for place in REMOTE {
        let events = Events::collect();
        let (cluster, world, host) = placed(place, 103).await?;
        let (one, _) = room(&host, "one", "x").await?;
        let looking = tokio::spawn(one.look(text("gate")).into_future());
        world.until("look waits").await;
        drop(host);
        cluster.kill("caller");
        drop(looking);
        cluster.advance(30 * SECOND).await;
        world.open(1);
        cluster.advance(SECOND).await;
        assert_eq!(events.count(&["reply_path_missing"]), 1);
        assert_eq!(world.count("activate"), 0);
        let one = room_spots(&cluster.host("owner")).of("one");
        assert_eq!(look(&one, "lines").await?, "x", "it goes on");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Hears under the name of what rooms hear.
struct Ear(World, &'static str);

impl Ear {
    async fn channel(&self, _: &ChannelContext<'_>, line: Line) -> Result<(), HandlerError> {
        self.0.note(format!("{} heard {}", self.1, line.text));
        Ok(())
    }

    async fn node(&self, _: &NodeContext<'_>, line: Line) -> Result<(), HandlerError> {
        self.0.note(format!("{} heard {}", self.1, line.text));
        Ok(())
    }
}

/// REQ: SP-163
#[tokio::test(start_paused = true)]
async fn one_name_on_three_surfaces_is_three_things() -> Tested {
    for place in EVERYWHERE {
        const SAY: rt::Method = rt::Method::send("arena.room.say");
        let talk = ChannelName::from_static("talk");
        let (cluster, world) = on(place.1, 104);
        let (with_store, shared, channel) = (far::with_store(&cluster, "owner"), world.clone(), talk.clone());
        cluster.node("owner", move |host| {
            let (one, two) = (Ear(shared.clone(), "channel"), Ear(shared.clone(), "node"));
            let served = rt::ChannelServer::builder(channel.clone(), one).send("arena.room.say", Ear::channel);
            let node = rt::NodeServer::builder(two).send("arena.room.say", Ear::node);
            let host = with_store(host).shared(shared.clone());
            host.mesh("world", |mesh| {
                let mesh = mesh
                    .listen("tcp://owner:1")
                    .serve(served.build())
                    .serve_node(node.build());
                mesh.object_server(all)
            })
        });
        let (with_store, channel) = (far::with_store(&cluster, "caller"), talk.clone());
        cluster.node("caller", move |host| {
            let host = with_store(host);
            host.mesh("world", |mesh| {
                mesh.listen("tcp://caller:1").client(channel.clone()).object_client()
            })
        });
        start(&cluster).await?;
        let host = cluster.host(place.caller());
        let (one, _) = room(&host, "one", "x").await?;
        // Of a channel that it serves, a node is no client.
        let client = cluster.host("caller");
        rt::ChannelRoute::new(&client, talk).send(SAY, text("a")).await?;
        let mesh = rt::MeshName::from_static("world");
        let rid = cluster.host("owner").mesh("world")?.rid();
        rt::NodeRoute::new(&host, &mesh, rid).send(SAY, text("b")).await?;
        one.say(text("c")).await?;
        cluster.advance(SECOND).await;
        let mut heard: Vec<_> = world.log().into_iter().filter(|line| line.contains("heard")).collect();
        heard.sort();
        assert_eq!(heard, ["channel heard a", "node heard b", "one heard c"]);
        cluster.shutdown().await?;
    }
    Ok(())
}
