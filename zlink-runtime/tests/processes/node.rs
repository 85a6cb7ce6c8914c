//! A process of these tests: a host with Spots that obeys what it reads, writes down what runs, and answers in lines.
//!
//! An order is `<number> <verb> <words>`; its answer bears the number. Orders are obeyed at once, beside each other.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use zlink_runtime::PeerState;
use zlink_runtime::error::{CallError, Execution};
use zlink_runtime::id::SpotId;
use zlink_runtime::location::LocationTiming;
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{self, Created, SpotCreated, Tick};

use crate::arena::*;
use crate::journal::Journal;
use crate::process::tell;

/// How often a room ticks that is told to.
const TICK: Duration = Duration::from_millis(20);

/// How long the hosts of a test believe each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    /// So long that no stalled machine ends a lease.
    Patient,
    /// A few seconds.
    Brief,
}

impl Timing {
    /// How long a request may take.
    fn patience(self) -> Duration {
        match self {
            Timing::Patient => Duration::from_secs(90),
            Timing::Brief => Duration::from_secs(10),
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
        }
    }
}

impl FromStr for Timing {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "Patient" => Ok(Timing::Patient),
            "Brief" => Ok(Timing::Brief),
            _ => Err(()),
        }
    }
}

/// What the Spots of this process share.
#[derive(Clone)]
struct World(Arc<Inner>);

struct Inner {
    journal: Journal,
    /// A `say` or `add` that is told `gate` waits for one of these.
    gate: Semaphore,
    /// Factories wait for it where they are held.
    held: Semaphore,
}

impl World {
    fn write(&self, what: impl AsRef<str>) {
        self.0.journal.write(what.as_ref());
    }

    /// A handler begins; it may be one that is to wait.
    async fn handles(&self, id: &SpotId, what: &str) {
        self.write(format!("turn {id} {what}"));
        if what.starts_with("gate") {
            self.0.gate.acquire().await.unwrap().forget();
            self.write(format!("turn {id} goes on"));
        }
    }
}

fn world(shared: Option<&World>) -> Result<World, HandlerError> {
    shared.cloned().ok_or_else(|| HandlerError::new("no world is shared"))
}

struct Room {
    world: World,
    lines: Vec<String>,
}

impl RoomSpot for Room {
    async fn create(context: RoomContext, request: Line) -> Result<Created<Self, Line>, HandlerError> {
        let world = world(context.shared())?;
        world.write(format!("create {}", context.id()));
        drop(world.0.held.acquire().await);
        let lines = vec![request.text.clone()];
        Ok(Created::Accepted(Self { world, lines }, request))
    }

    async fn on_initialize(&mut self, turn: &mut RoomTurn<'_>) -> Result<(), HandlerError> {
        if self.lines[0] == "ticks" {
            turn.add_timer(ROOM_TICK, TICK)?;
        }
        Ok(())
    }

    async fn say(&mut self, turn: &mut RoomTurn<'_>, message: Line) -> Result<(), HandlerError> {
        self.world.handles(turn.id(), &message.text).await;
        self.lines.push(message.text);
        Ok(())
    }

    async fn look(&mut self, turn: &mut RoomTurn<'_>, request: Line) -> Result<Line, HandlerError> {
        self.world.handles(turn.id(), &request.text).await;
        let text = match request.text.as_str() {
            "generation" => turn.reference().generation.get().to_string(),
            _ => self.lines.join(","),
        };
        Ok(Line { text })
    }

    async fn tick(&mut self, turn: &mut RoomTurn<'_>, _: Tick) -> Result<(), HandlerError> {
        self.world.write(format!("tick {}", turn.id()));
        Ok(())
    }
}

struct Cart {
    world: World,
    items: Vec<String>,
}

impl CartSpot for Cart {
    async fn activate(context: CartContext) -> Result<Self, HandlerError> {
        let world = world(context.shared())?;
        world.write(format!("activate {}", context.id()));
        drop(world.0.held.acquire().await);
        let items = Vec::new();
        Ok(Self { world, items })
    }

    async fn add(&mut self, turn: &mut CartTurn<'_>, message: Line) -> Result<(), HandlerError> {
        self.world.handles(turn.id(), &message.text).await;
        self.items.push(message.text);
        Ok(())
    }

    async fn view(&mut self, turn: &mut CartTurn<'_>, request: Line) -> Result<Line, HandlerError> {
        self.world.handles(turn.id(), &request.text).await;
        let text = self.items.join(",");
        self.items.push(request.text);
        Ok(Line { text })
    }
}

struct Lobby {
    world: World,
}

impl LobbySpot for Lobby {
    async fn start(context: LobbyContext) -> Result<Self, HandlerError> {
        let world = world(context.shared())?;
        world.write(format!("start {}", context.id()));
        Ok(Self { world })
    }

    async fn greet(&mut self, turn: &mut LobbyTurn<'_>, request: Line) -> Result<Line, HandlerError> {
        self.world.handles(turn.id(), &request.text).await;
        Ok(request)
    }
}

/// The node `name`, found through `store`.
pub(crate) async fn run(arguments: &[String]) {
    let [name, store, journal, timing, held] = arguments else {
        panic!("no such node: {arguments:?}");
    };
    let world = World(Arc::new(Inner {
        journal: Journal::create(Path::new(journal)),
        gate: Semaphore::new(0),
        held: Semaphore::new(if held == "held" { 0 } else { 1 << 20 }),
    }));
    let timing: Timing = timing.parse().unwrap();
    let host = Host::builder()
        .location_store(store.as_str())
        .location_timing(timing.times())
        .shared(world.clone())
        .request_timeout(timing.patience())
        .mesh("world", |mesh| {
            mesh.listen("tcp://127.0.0.1:0")
                .rid_prefix(name)
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
            let ended = obey(&host, &world, &order).await;
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

fn line(text: &str) -> Line {
    Line { text: text.to_owned() }
}

async fn obey(host: &Host, world: &World, order: &str) -> Result<String, CallError> {
    let words: Vec<&str> = order.split(' ').collect();
    let (rooms, carts) = (room_spots(host), cart_spots(host));
    Ok(match words[..] {
        ["create", id, text] => match rooms.get_or_create(id, line(text)).await? {
            SpotCreated::Created(spot, _) => format!("created {}", spot.generation.get()),
            SpotCreated::Existing(spot) => format!("existing {}", spot.generation.get()),
            SpotCreated::Rejected(_) => "rejected".to_owned(),
        },
        ["say", id, text] => {
            rooms.of(id).say(line(text)).await?;
            String::new()
        }
        ["look", id, text] => rooms.of(id).look(line(text)).await?.text,
        ["add", id, text] => {
            carts.of(id).add(line(text)).activating().await?;
            String::new()
        }
        ["view", id, text] => carts.of(id).view(line(text)).activating().await?.text,
        ["greet", id] => lobby_spots(host).of(id).greet(line("hello")).await?.text,
        ["release", id] => release(host, id).await?,
        ["open", count] => {
            world.0.gate.add_permits(count.parse().unwrap());
            String::new()
        }
        ["unhold"] => {
            world.0.held.add_permits(1 << 20);
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
