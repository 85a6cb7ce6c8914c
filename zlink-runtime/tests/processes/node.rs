//! A process of these tests: a host with Spots that obeys what it reads, writes down what runs, and answers in lines.
//!
//! An order is `<number> <verb> <words>`; its answer bears the number. Orders are obeyed at once, beside each other.

use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use zlink_generated::arena::*;
use zlink_runtime::PeerState;
use zlink_runtime::error::{CallError, Execution};
use zlink_runtime::id::SpotId;
use zlink_runtime::location::LocationTiming;
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{self, SpotCreated};

use crate::objects::{Cart, Lobby, Room, SAID, World, items};
use crate::process::tell;

/// How long the hosts of a test believe each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    /// So long that no stalled machine ends a lease.
    Patient,
    /// A few seconds.
    Brief,
    /// A few more: whoever sees a lease end has seen more than a stalled machine.
    Calm,
}

impl Timing {
    /// How long a request may take.
    pub(crate) fn patience(self) -> Duration {
        match self {
            Timing::Patient => Duration::from_secs(90),
            Timing::Brief | Timing::Calm => Duration::from_secs(10),
        }
    }

    pub(crate) fn times(self) -> LocationTiming {
        match self {
            Timing::Patient => LocationTiming {
                renew_timeout: Duration::from_secs(10),
                lease_ttl: Duration::from_secs(60),
                ..LocationTiming::default()
            },
            Timing::Brief => LocationTiming {
                renew_interval: Duration::from_millis(400),
                lease_ttl: Duration::from_millis(3_000),
                renew_timeout: Duration::from_millis(800),
                fencing_margin: Duration::from_millis(1_000),
                poll_interval: Duration::from_millis(100),
                store_failure_grace: Duration::from_millis(2_000),
            },
            Timing::Calm => LocationTiming {
                renew_interval: Duration::from_millis(500),
                lease_ttl: Duration::from_millis(6_000),
                renew_timeout: Duration::from_millis(1_000),
                fencing_margin: Duration::from_millis(1_500),
                ..Timing::Brief.times()
            },
        }
    }
}

impl FromStr for Timing {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "Patient" => Ok(Timing::Patient),
            "Brief" => Ok(Timing::Brief),
            "Calm" => Ok(Timing::Calm),
            _ => Err(()),
        }
    }
}

/// The node `name`, found through `store`.
pub(crate) async fn run(arguments: &[String]) {
    let [name, store, journal, timing, held] = arguments else {
        panic!("no such node: {arguments:?}");
    };
    let world = World::new(Path::new(journal), held == "held");
    let timing: Timing = timing.parse().unwrap();
    let host = Host::builder()
        .location_store(store.as_str())
        .location_timing(timing.times())
        .shared(world.clone())
        .request_timeout(timing.patience())
        .mesh("world", |mesh| {
            let mesh = mesh.listen("tcp://127.0.0.1:0").rid_prefix(name);
            // What lobbies and rooms subscribe to.
            mesh.take_part(ChannelName::from_static("room-events"))
                .object_server(|objects| {
                    let objects = objects.entry(lobby_spot::<Lobby>());
                    objects.spot(room_spot::<Room>()).spot(cart_spot::<Cart>())
                })
        });
    let host = host.start().await.unwrap();
    tell("started");
    let (orders, mut given) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if orders.send(line).is_err() {
                return;
            }
        }
        // Whoever gives the orders is gone.
        std::process::exit(1);
    });
    while let Some(line) = given.recv().await {
        let (number, order) = line.split_once(' ').unwrap();
        let (number, order) = (number.to_owned(), order.to_owned());
        let (host, world) = (host.clone(), world.clone());
        let last = order == "shutdown";
        let obey = async move {
            let began = Instant::now();
            let ended = obey(&host, &world, timing.patience(), &order).await;
            let took = began.elapsed().as_millis();
            match ended {
                Ok(text) => tell(&format!("{number} {took} ok {text}")),
                Err(CallError::Failed(error)) => {
                    let ran = match error.execution() {
                        Execution::NotExecuted => "not_executed",
                        Execution::Unknown => "unknown",
                    };
                    tell(&format!("{number} {took} {:?} {ran} {error}", error.kind()));
                }
                Err(error) => tell(&format!("{number} {took} Argument not_executed {error}")),
            }
        };
        if last {
            return obey.await;
        }
        tokio::spawn(obey);
    }
}

async fn obey(host: &Host, world: &World, patience: Duration, order: &str) -> Result<String, CallError> {
    let words: Vec<&str> = order.split(' ').collect();
    let (rooms, carts) = (room_spots(host), cart_spots(host));
    Ok(match words[..] {
        ["create", id, motd] => {
            let settings = RoomSettings {
                motd: motd.to_owned(),
                ..RoomSettings::default()
            };
            match rooms.get_or_create(id, settings).await? {
                SpotCreated::Created(spot, _) => format!("created {}", spot.generation.get()),
                SpotCreated::Existing(spot) => format!("existing {}", spot.generation.get()),
                SpotCreated::Rejected(_) => "rejected".to_owned(),
            }
        }
        ["say", id, text] => {
            let text = text.to_owned();
            rooms.of(id).say(ChatLine { text }).await?;
            String::new()
        }
        ["look", id, said] => {
            let look = rooms.of(id).look(Look {}).metadata(SAID, said);
            let view = look.timeout(patience).await?;
            match said {
                "generation" => view.motd,
                _ => view.lines.join(","),
            }
        }
        ["add", id, item] => {
            let (item, count) = (item.to_owned(), 1);
            carts.of(id).add(AddItem { item, count }).activating().await?;
            String::new()
        }
        ["view", id, said] => {
            let peek = carts.of(id).peek(Look {}).metadata(SAID, said);
            items(&peek.activating().await?)
        }
        ["greet", id] => {
            let name = "hello".to_owned();
            let lookup = lobby_spots(host).of(id).lookup(Lookup { name });
            lookup.timeout(patience).await?;
            String::new()
        }
        ["release", id] => release(host, id).await?,
        ["open", count] => {
            world.open(count.parse().unwrap());
            String::new()
        }
        ["clock", ahead] => {
            crate::day::set(ahead.parse().unwrap());
            String::new()
        }
        ["unhold"] => {
            world.unhold();
            String::new()
        }
        ["status"] => {
            let admits = host.status().location.unwrap().admits_owned_work;
            let peers = host.mesh("world").unwrap().status().peers;
            let ready = peers.iter().filter(|peer| peer.state == PeerState::Ready).count();
            format!("admits={admits} peers={ready}")
        }
        ["crowd", first, step, callers, ids, messages] => {
            let numbers = [first, step, callers, ids, messages].map(|number| number.parse().unwrap());
            crate::crowd::call(host, numbers).await?
        }
        ["shutdown"] => {
            host.shutdown().await.unwrap();
            String::new()
        }
        _ => panic!("what is {order:?}?"),
    })
}

/// Frees what a dead host has, of whatever kind.
async fn release(host: &Host, id: &str) -> Result<String, CallError> {
    let entry = host.find_spot(&SpotId::new(id).unwrap()).await?;
    let Some(entry) = entry else {
        return Ok("none".to_owned());
    };
    let route = rt::SpotRoute::new(host, entry.stable_type);
    Ok(route.release(&entry.reference).await?.to_string())
}
