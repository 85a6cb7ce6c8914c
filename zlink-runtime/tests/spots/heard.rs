//! Which of all that is published a room hears: that of its channel and topic, from whichever node, and nothing of a fanout.

use std::time::Duration;

use zlink_runtime::HostBuilder;
use zlink_runtime::prelude::*;
use zlink_runtime::rt;
use zlink_runtime::testing::Cluster;

use crate::arena::*;
use crate::events::Events;
use crate::far;
use crate::kit::*;

const SECOND: Duration = Duration::from_secs(1);
const EVENTS: ChannelName = ChannelName::from_static("room-events");
const OTHER: ChannelName = ChannelName::from_static("other-events");
const NEWS: &str = "arena.room.news";

/// Makes `name` a node that serves two channels with that weight, whose rooms hear the news of one.
fn hears(cluster: &Cluster, world: &World, name: &'static str, weight: u32) {
    let (with_store, world) = (far::with_store(cluster, name), world.clone());
    cluster.node(name, move |host: HostBuilder| {
        let host = with_store(host).shared(world.clone());
        let served = |channel| rt::ChannelServer::builder(channel, ()).build().weight(weight);
        host.mesh("world", |mesh| {
            let mesh = mesh.rid_prefix(name).listen(format!("tcp://{name}:1"));
            let mesh = mesh.serve(served(EVENTS)).serve(served(OTHER));
            mesh.object_server(|objects| objects.spot(hearing_room_spot::<Room>()))
        })
    });
}

fn publish(host: &Host, (channel, topic, packet): (&'static str, &'static str, &'static str)) -> rt::PublishCall<Line> {
    rt::SpotRoute::new(host, ROOM).publish(channel, topic, packet, text(&format!("{channel} {topic} {packet}")))
}

/// REQ: SP-100, SP-110
#[tokio::test(start_paused = true)]
async fn a_room_hears_its_own_channel_and_topic_alone() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 180);
        hears(&cluster, &world, "one", 100);
        let with_store = far::with_store(&cluster, "press");
        cluster.node("press", move |host| {
            with_store(host).mesh("world", |mesh| {
                mesh.rid_prefix("press")
                    .listen("tcp://press:1")
                    .client(EVENTS)
                    .client(OTHER)
            })
        });
        start(&cluster).await?;
        room(&cluster.host("one"), "room", "x").await?;
        for (round, from) in ["one", "press"].into_iter().enumerate() {
            let host = cluster.host(from);
            for other in [
                ("other-events", "news", NEWS),
                ("room-events", "weather", NEWS),
                ("room-events", "News", NEWS),
                ("room-events", "new", NEWS),
                ("room-events", "news ", NEWS),
                ("room-events", "news", "arena.room.say"),
            ] {
                publish(&host, other).await?;
            }
            publish(&host, ("room-events", "news", NEWS)).await?;
            cluster.advance(SECOND).await;
            assert_eq!(world.count("room read room-events news arena.room.news"), round + 1);
            let heard = world.count("read") + world.count("heard") + world.count("was told");
            assert_eq!(heard, round + 1, "from {from}: {:?}", world.log());
        }
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: SP-102, SP-106
#[tokio::test(start_paused = true)]
async fn the_rooms_of_a_node_that_takes_nothing_hear_what_it_publishes_itself() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 181);
        hears(&cluster, &world, "mute", 0);
        start(&cluster).await?;
        let mute = cluster.host("mute");
        for number in 0..3 {
            room(&mute, &format!("room-{number}"), "x").await?;
        }
        publish(&mute, ("room-events", "news", NEWS)).await?;
        cluster.advance(SECOND).await;
        assert_eq!(world.count("read room-events"), 3);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// A node without room and a room without room are passed over, and nothing anywhere tells of it.
///
/// REQ: SP-108, SP-107
#[tokio::test(start_paused = true)]
async fn what_is_passed_over_is_told_nobody() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 182);
        for name in ["one", "two"] {
            let (with_store, world) = (far::with_store(&cluster, name), world.clone());
            cluster.node(name, move |host: HostBuilder| {
                let host = with_store(host).shared(world.clone()).max_queued_jobs(4);
                let served = rt::ChannelServer::builder(EVENTS, ()).build();
                host.mesh("world", |mesh| {
                    let mesh = mesh.rid_prefix(name).listen(format!("tcp://{name}:1")).serve(served);
                    mesh.object_server(|objects| objects.spot(hearing_room_spot::<Room>()))
                })
            });
        }
        start(&cluster).await?;
        let one = cluster.host("one");
        let (room, _) = room(&one, "room", "x").await?;
        room.say(text("gate")).await?;
        world.until("say waits").await;
        cluster.network().isolate("two");
        let before = ["one", "two"].map(|name| cluster.host(name).status().spot_drops);
        let events = Events::collect();
        for _ in 0..40 {
            // Its end says that it has begun, and no more.
            let () = publish(&one, ("room-events", "news", NEWS)).await?;
        }
        // More than waits for a node that cannot be reached.
        let much = "much ".repeat(100_000);
        for _ in 0..100 {
            let () = rt::SpotRoute::new(&one, ROOM)
                .publish("room-events", "news", NEWS, text(&much))
                .await?;
        }
        cluster.advance(SECOND).await;
        assert_eq!(events.count(&["zlink::spot "]), 0);
        world.open(1);
        cluster.advance(SECOND).await;
        let heard = world.count("read room-events");
        assert!((1..40).contains(&heard), "some had no room: {heard}");
        assert_eq!(
            ["one", "two"].map(|name| cluster.host(name).status().spot_drops),
            before
        );
        cluster.network().heal();
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Hears the events of a fanout.
struct Ear(World);

impl Ear {
    async fn news(&self, _: &rt::FanoutContext<'_>, line: Line) -> Result<(), HandlerError> {
        self.0.note(format!("the fanout brought {}", line.text));
        Ok(())
    }
}

/// A fanout and a multicast of one name, with one packet, share nothing.
///
/// REQ: SP-010, CH-802
#[tokio::test(start_paused = true)]
async fn a_fanout_of_the_same_name_is_another_thing() -> Tested {
    const FLASH: rt::FanoutEvent = const { rt::FanoutEvent::new(NEWS, None) };
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 183);
        for (name, other) in [("one", "two"), ("two", "one")] {
            let (with_store, world) = (far::with_store(&cluster, name), world.clone());
            cluster.node(name, move |host: HostBuilder| {
                let host = with_store(host).shared(world.clone());
                let served = rt::ChannelServer::builder(EVENTS, ()).build();
                let host = host.mesh("world", |mesh| {
                    let mesh = mesh.rid_prefix(name).listen(format!("tcp://{name}:1")).serve(served);
                    mesh.object_server(|objects| objects.spot(hearing_room_spot::<Room>()))
                });
                let ear = rt::FanoutSubscriber::builder(EVENTS, Ear(world.clone())).event(NEWS, Ear::news);
                host.fanout(|fanout| {
                    fanout
                        .publisher(EVENTS)
                        .listen(format!("tcp://{name}:2"))
                        .subscriber(ear.build())
                        .connect(format!("tcp://{other}:2"))
                })
            });
        }
        start(&cluster).await?;
        cluster.advance(5 * SECOND).await;
        let (one, two) = (cluster.host("one"), cluster.host("two"));
        let connections = cluster.network().connections();
        for (at, host) in [&one, &two].into_iter().enumerate() {
            room(host, &format!("room-{at}"), "x").await?;
        }
        assert_eq!(two.fanout("room-events")?.subscribers(), 1);
        publish(&one, ("room-events", "news", NEWS)).await?;
        cluster.advance(SECOND).await;
        assert_eq!((world.count("read room-events"), world.count("the fanout")), (2, 0));
        rt::FanoutRoute::new(&one, EVENTS)
            .publish(FLASH, text("a flash"))
            .topic("news")
            .await?;
        rt::FanoutRoute::new(&two, EVENTS)
            .publish(FLASH, text("a flash"))
            .await?;
        cluster.advance(SECOND).await;
        assert_eq!((world.count("read"), world.count("the fanout brought a flash")), (2, 2));
        assert_eq!(cluster.network().connections(), connections);
        cluster.shutdown().await?;
    }
    Ok(())
}
