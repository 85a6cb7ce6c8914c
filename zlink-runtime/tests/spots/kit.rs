//! Rooms, carts and lobbies that note what happens to them, and clusters that have them.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use zlink_generated::billing::{self, Charge};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{self, CloseReason, Created, Instant, SpotCreated, SpotRef, Tick};
use zlink_runtime::testing::Cluster;
use zlink_runtime::{HostBuilder, ObjectServerBuilder, Overrun};

use crate::arena::*;
use crate::far::{self, Far};
pub(crate) use crate::store::{PROVIDERS, Provider};

pub(crate) type Failure = Box<dyn std::error::Error>;
pub(crate) type Tested = Result<(), Failure>;

/// What happens on all hosts of a test, in order, and what holds it up.
#[derive(Clone)]
pub(crate) struct World(Arc<Inner>);

struct Inner {
    log: Mutex<Vec<String>>,
    /// A handler that is told `gate` waits for one of these.
    gate: Semaphore,
    /// So do factories and `on_initialize`, where they are told to.
    build_gate: Semaphore,
    waits: Mutex<Vec<&'static str>>,
    /// What must be there for as long as the test.
    far: Option<Arc<Far>>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(None)
    }

    fn with(far: Option<Arc<Far>>) -> Self {
        Self(Arc::new(Inner {
            log: Mutex::default(),
            gate: Semaphore::new(0),
            build_gate: Semaphore::new(0),
            waits: Mutex::default(),
            far,
        }))
    }

    pub(crate) fn note(&self, text: impl Into<String>) {
        self.0.log.lock().push(text.into());
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.0.log.lock().clone()
    }

    pub(crate) fn count(&self, text: &str) -> usize {
        self.0.log.lock().iter().filter(|line| line.contains(text)).count()
    }

    /// From now on, `what` (`create`, `initialize`, `activate`, `closing`) waits for [`World::open_build`].
    pub(crate) fn holds(&self, what: &'static str) {
        self.0.waits.lock().push(what);
    }

    pub(crate) fn open(&self, count: usize) {
        self.0.gate.add_permits(count);
    }

    pub(crate) fn open_build(&self, count: usize) {
        self.0.build_gate.add_permits(count);
    }

    pub(crate) async fn gate(&self) {
        self.0.gate.acquire().await.unwrap().forget();
    }

    pub(crate) async fn build_gate(&self, what: &'static str) {
        let waits = self.0.waits.lock().contains(&what);
        if waits {
            self.note(format!("held in {what}"));
            self.0.build_gate.acquire().await.unwrap().forget();
        }
    }

    /// Sets the clock of a store that [has one](on_a_clock), as the node `name` sees it, by so many milliseconds.
    pub(crate) fn jump(&self, name: &str, millis: i64) {
        self.0.far.as_ref().unwrap().jump(name, millis);
    }

    /// Waits, in virtual time, until something is noted.
    pub(crate) async fn until(&self, text: &str) {
        let deadline = Instant::now() + Duration::from_secs(600);
        while self.count(text) == 0 {
            assert!(Instant::now() < deadline, "{text:?} was not noted: {:?}", self.log());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn world(shared: Option<&World>) -> Result<World, HandlerError> {
    shared.cloned().ok_or_else(|| HandlerError::new("no world was shared"))
}

fn line(text: impl Into<String>) -> Line {
    Line { text: text.into() }
}

/// A room: it keeps the lines it hears.
pub(crate) struct Room {
    world: World,
    lines: Vec<String>,
    /// As its factory was told.
    reference: SpotRef,
    ticks: Vec<Tick>,
    /// How many of its callbacks are under way.
    active: usize,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.world.note("room dropped");
    }
}

impl RoomSpot for Room {
    async fn create(context: RoomContext, request: Line) -> Result<Created<Self, Line>, HandlerError> {
        let world = world(context.shared::<World>())?;
        world.note(format!(
            "create {} on {}",
            context.id(),
            context.node().to_string().split('-').next().unwrap()
        ));
        world.build_gate("create").await;
        // What is long ends in many of these.
        match request.text.trim_end_matches('x') {
            "reject" => return Ok(Created::Rejected(line("no"))),
            "fail" => return Err(HandlerError::new("as told")),
            "panic" => panic!("as told"),
            _ => {}
        }
        let room = Self {
            world,
            lines: vec![request.text.clone()],
            reference: context.reference().clone(),
            ticks: Vec::new(),
            active: 0,
        };
        let reply = match request.text.as_str() {
            "answer long" => "y".repeat(70_000),
            text => format!("created with {}", text.get(..100).unwrap_or(text)),
        };
        Ok(Created::Accepted(room, line(reply)))
    }

    async fn on_initialize(&mut self, turn: &mut RoomTurn<'_>) -> Result<(), HandlerError> {
        self.world.note(format!("initialize {}", turn.id()));
        self.world.build_gate("initialize").await;
        if self.lines[0] == "fail late" {
            return Err(HandlerError::new("as told"));
        }
        if self.lines[0] == "ticks" {
            turn.add_timer(ROOM_TICK, Duration::from_secs(1))?;
        }
        Ok(())
    }

    async fn on_closing(
        &mut self,
        turn: &mut RoomTurn<'_>,
        reason: CloseReason,
        deadline: Instant,
    ) -> Result<(), HandlerError> {
        let left = deadline.saturating_duration_since(Instant::now()).as_secs();
        self.world
            .note(format!("closing {} {reason:?} within {left}", turn.id()));
        self.world.build_gate("closing").await;
        if self.lines[0] == "fails to close" {
            return Err(HandlerError::new("as told"));
        }
        Ok(())
    }

    async fn say(&mut self, turn: &mut RoomTurn<'_>, message: Line) -> Result<(), HandlerError> {
        self.active += 1;
        assert_eq!(self.active, 1, "one at a time");
        if message.text == "gate" {
            self.world.note("say waits");
            self.world.gate().await;
        }
        if message.text == "panic" {
            self.active -= 1;
            panic!("as told");
        }
        if message.text == "close" {
            turn.close();
        }
        if message.text == "fail" {
            self.active -= 1;
            return Err(HandlerError::new("as told"));
        }
        self.world.note(format!("{} heard {}", turn.id(), message.text));
        self.lines.push(message.text);
        self.active -= 1;
        Ok(())
    }

    async fn look(&mut self, turn: &mut RoomTurn<'_>, request: Line) -> Result<Line, HandlerError> {
        self.active += 1;
        assert_eq!(self.active, 1, "one at a time");
        let answer = self.looked(turn, &request.text).await;
        self.active -= 1;
        answer.map(line)
    }

    async fn settle(turn: &mut RoomYieldTurn<'_, Self>, request: Line) -> Result<Line, HandlerError> {
        let before = turn.state().lines.len();
        let world = turn.state().world.clone();
        world.note("settle begins");
        let other = room_spots(turn).of(&request.text);
        let told = turn.yield_for(other.look(line("gate"))).await;
        world.note("settle goes on");
        let after = turn.state().lines.len();
        let told = match told {
            Ok(told) => told.text,
            Err(error) => format!("{:?}", error.kind()),
        };
        Ok(line(format!("{before} then {after}: {told}")))
    }

    async fn disband(&mut self, turn: &mut RoomTurn<'_>, _: Nothing) -> Result<Line, HandlerError> {
        Ok(line(format!("{} is no more", turn.id())))
    }

    async fn news(&mut self, turn: &mut RoomTurn<'_>, message: Line) -> Result<(), HandlerError> {
        self.world.note(format!("{} read {}", turn.id(), message.text));
        if let Some(mark) = turn.metadata().get("mark") {
            // Where it stands is where the record stands.
            self.world.note(format!("the mark is at {:p}", mark.as_ptr()));
        }
        Ok(())
    }

    async fn gossip(&mut self, turn: &mut RoomTurn<'_>, message: Line) -> Result<(), HandlerError> {
        self.world.note(format!("{} was told {}", turn.id(), message.text));
        Ok(())
    }

    async fn tick(&mut self, turn: &mut RoomTurn<'_>, tick: Tick) -> Result<(), HandlerError> {
        self.world.note(format!("{} ticks {}", turn.id(), tick.delivery_index));
        self.ticks.push(tick);
        Ok(())
    }
}

impl Room {
    async fn looked(&mut self, turn: &mut RoomTurn<'_>, what: &str) -> Result<String, HandlerError> {
        Ok(match what.split_once(' ').unwrap_or((what, "")) {
            ("lines", _) => self.lines.join(","),
            ("where", _) => turn.node().to_string(),
            ("generation", _) => turn.reference().generation.get().to_string(),
            ("metadata", key) => turn.metadata().get(key).unwrap_or("none").to_owned(),
            ("ticks", _) => format!("{:?}", self.ticks.len()),
            ("gate", _) => {
                self.world.note("look waits");
                self.world.gate().await;
                "passed".to_owned()
            }
            ("panic", _) => {
                self.active -= 1;
                panic!("as told");
            }
            ("fail", _) => return Err(HandlerError::new("as told")),
            ("ask", id) => {
                let asked = room_spots(turn).of(id).look(line("lines")).await;
                match asked {
                    Ok(answer) => answer.text,
                    Err(error) => format!("{:?} {}", error.kind().unwrap(), self.active),
                }
            }
            ("tell", id) => {
                room_spots(turn).of(id).say(line("told")).await?;
                "told".to_owned()
            }
            ("publish", text) => {
                room_spots(turn).publish_news(line(text)).await?;
                "published".to_owned()
            }
            ("charge", whom) => {
                let (channel, order) = whom.split_once(' ').unwrap_or((whom, "tea"));
                let order = order.to_owned();
                let client = billing::client(turn).on(rt::ChannelName::new(channel)?);
                match client
                    .charge(Charge { order, cents: 1 })
                    .timeout(Duration::from_secs(300))
                    .await
                {
                    Ok(receipt) => {
                        self.lines.push(receipt.number.clone());
                        receipt.number
                    }
                    Err(error) => format!("{:?}", error.kind().unwrap()),
                }
            }
            ("same", _) => {
                let context = turn.context();
                let told = (context.reference(), context.mesh(), context.node());
                format!(
                    "{}",
                    told == (&self.reference, &self.reference.mesh, &self.reference.node)
                )
            }
            ("overrun", how) => {
                let overrun = match how {
                    "skip" => Overrun::SkipLateTicks,
                    "catch up" => Overrun::CatchUpBounded(1),
                    _ => Overrun::DelayNextTick,
                };
                turn.add_timer_with(ROOM_TICK, Duration::from_secs(1), overrun)?;
                "started".to_owned()
            }
            ("indices", _) => {
                let ticks = self.ticks.iter();
                let shown = ticks.map(|tick| (tick.delivery_index, tick.scheduled_index, tick.skipped_ticks));
                format!("{:?}", shown.collect::<Vec<_>>())
            }
            ("timer", name) => match turn.add_timer(rt::TimerName::new(name)?, Duration::from_secs(1)) {
                Ok(timer) => format!("{} {}", timer.name(), timer.cancel()),
                Err(error) => error.to_string(),
            },
            (other, _) => format!("what is {other}?"),
        })
    }
}

/// A cart: it keeps the items it is given.
pub(crate) struct Cart {
    world: World,
    items: Vec<String>,
}

impl Drop for Cart {
    fn drop(&mut self) {
        self.world.note("cart dropped");
    }
}

impl CartSpot for Cart {
    async fn activate(context: CartContext) -> Result<Self, HandlerError> {
        let world = world(context.shared::<World>())?;
        world.note(format!("activate {}", context.id()));
        world.build_gate("activate").await;
        if context.id().as_str().starts_with("broken") {
            return Err(HandlerError::new("as told"));
        }
        if context.id().as_str().starts_with("panics") {
            panic!("as told");
        }
        Ok(Self {
            world,
            items: Vec::new(),
        })
    }

    async fn on_closing(
        &mut self,
        turn: &mut CartTurn<'_>,
        reason: CloseReason,
        _: Instant,
    ) -> Result<(), HandlerError> {
        self.world.note(format!("closing {} {reason:?}", turn.id()));
        self.world.build_gate("closing").await;
        Ok(())
    }

    async fn add(&mut self, turn: &mut CartTurn<'_>, message: Line) -> Result<(), HandlerError> {
        if message.text.starts_with("gate") {
            self.world.gate().await;
        }
        if message.text == "close" {
            turn.close();
        }
        self.world.note(format!("{} has {}", turn.id(), message.text));
        self.items.push(message.text);
        Ok(())
    }

    async fn view(&mut self, turn: &mut CartTurn<'_>, request: Line) -> Result<Line, HandlerError> {
        Ok(line(match request.text.as_str() {
            "where" => turn.node().to_string(),
            "generation" => turn.reference().generation.get().to_string(),
            "" => self.items.join(","),
            item => {
                self.world.note(format!("{} has {item}", turn.id()));
                self.items.push(item.to_owned());
                self.items.join(",")
            }
        }))
    }
}

/// A lobby.
pub(crate) struct Lobby {
    world: World,
}

impl LobbySpot for Lobby {
    async fn start(context: LobbyContext) -> Result<Self, HandlerError> {
        let world = world(context.shared::<World>())?;
        world.note(format!("start {}", context.id()));
        Ok(Self { world })
    }

    async fn on_initialize(&mut self, turn: &mut LobbyTurn<'_>) -> Result<(), HandlerError> {
        self.world.note(format!("initialize {}", turn.id()));
        self.world.build_gate("initialize").await;
        Ok(())
    }

    async fn on_closing(
        &mut self,
        turn: &mut LobbyTurn<'_>,
        reason: CloseReason,
        _: Instant,
    ) -> Result<(), HandlerError> {
        self.world.note(format!("closing {} {reason:?}", turn.id()));
        Ok(())
    }

    async fn greet(&mut self, turn: &mut LobbyTurn<'_>, request: Line) -> Result<Line, HandlerError> {
        Ok(line(format!("{} greets {}", turn.id(), request.text)))
    }
}

/// How the nodes of a test stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Whoever calls has the Spots.
    Local,
    /// Another node has them.
    Remote,
}

/// A placement, on a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(pub(crate) Placement, pub(crate) Provider);

impl Place {
    /// The node that calls; the Spots are on the node `owner`.
    pub(crate) fn caller(self) -> &'static str {
        match self.0 {
            Placement::Local => "owner",
            Placement::Remote => "caller",
        }
    }
}

/// Each placement on each store.
pub(crate) const EVERYWHERE: [Place; 6] = [
    Place(Placement::Local, Provider::Memory),
    Place(Placement::Remote, Provider::Memory),
    Place(Placement::Local, Provider::Sqlite),
    Place(Placement::Remote, Provider::Sqlite),
    Place(Placement::Local, Provider::Redis),
    Place(Placement::Remote, Provider::Redis),
];

/// What only makes sense within one node, on each store.
pub(crate) const LOCAL: [Place; 3] = [EVERYWHERE[0], EVERYWHERE[2], EVERYWHERE[4]];

/// What only makes sense between two nodes, on each store.
pub(crate) const REMOTE: [Place; 3] = [EVERYWHERE[1], EVERYWHERE[3], EVERYWHERE[5]];

/// A cluster whose nodes share a store of that kind.
pub(crate) fn on(provider: Provider, seed: u64) -> (Cluster, World) {
    cluster(provider, seed, provider != Provider::Memory)
}

/// The same, and the clock of the store can be set, of each of them.
pub(crate) fn on_a_clock(provider: Provider, seed: u64) -> (Cluster, World) {
    cluster(provider, seed, true)
}

fn cluster(provider: Provider, seed: u64, is_far: bool) -> (Cluster, World) {
    // A failure is told with what was printed last.
    println!("{provider:?}");
    let far = is_far.then(|| Far::new(provider));
    (Cluster::new(seed), World::with(far::choose(far)))
}

/// All that a node of these tests can have.
pub(crate) fn all(objects: ObjectServerBuilder) -> ObjectServerBuilder {
    objects.spot(room_spot::<Room>()).spot(cart_spot::<Cart>())
}

/// Makes `name` a node of the mesh `world` that has rooms and carts.
pub(crate) fn serves(cluster: &Cluster, world: &World, name: &'static str) {
    serves_with(cluster, world, name, all);
}

pub(crate) fn serves_with(
    cluster: &Cluster,
    world: &World,
    name: &'static str,
    objects: impl Fn(ObjectServerBuilder) -> ObjectServerBuilder + Send + Sync + 'static,
) {
    serves_on(cluster, world, name, |host| host, objects);
}

/// The same, on a host of its own kind.
pub(crate) fn serves_on(
    cluster: &Cluster,
    world: &World,
    name: &'static str,
    configure: impl Fn(HostBuilder) -> HostBuilder + Send + Sync + 'static,
    objects: impl Fn(ObjectServerBuilder) -> ObjectServerBuilder + Send + Sync + 'static,
) {
    let (with_store, world) = (far::with_store(cluster, name), world.clone());
    cluster.node(name, move |host: HostBuilder| {
        let host = configure(with_store(host)).shared(world.clone());
        host.mesh("world", |mesh| {
            mesh.rid_prefix(name)
                .listen(format!("tcp://{name}:1"))
                .object_server(&objects)
        })
    });
}

/// Makes `name` a node that only calls.
pub(crate) fn calls(cluster: &Cluster, name: &'static str) {
    calls_with(cluster, name, |host| host);
}

pub(crate) fn calls_with(
    cluster: &Cluster,
    name: &'static str,
    configure: impl Fn(HostBuilder) -> HostBuilder + Send + Sync + 'static,
) {
    let with_store = far::with_store(cluster, name);
    cluster.node(name, move |host: HostBuilder| {
        let host = configure(with_store(host));
        host.mesh("world", |mesh| {
            mesh.rid_prefix(name).listen(format!("tcp://{name}:1")).object_client()
        })
    });
}

/// Starts all nodes, and waits until they are linked.
pub(crate) async fn start(cluster: &Cluster) -> Tested {
    cluster.start_all().await?;
    cluster.advance(Duration::from_secs(3)).await;
    Ok(())
}

/// A cluster of that placement, and the host that calls.
pub(crate) async fn placed(place: Place, seed: u64) -> Result<(Cluster, World, Host), Failure> {
    placed_with(place, seed, |cluster, world| serves(cluster, world, "owner")).await
}

/// The same, with an `owner` of its own kind.
pub(crate) async fn placed_with(
    place: Place,
    seed: u64,
    owner: impl FnOnce(&Cluster, &World),
) -> Result<(Cluster, World, Host), Failure> {
    let (cluster, world) = on(place.1, seed);
    owner(&cluster, &world);
    if place.0 == Placement::Remote {
        calls(&cluster, place.caller());
    }
    start(&cluster).await?;
    let host = cluster.host(place.caller());
    Ok((cluster, world, host))
}

/// A room of that ID.
pub(crate) async fn room(host: &Host, id: &str, motd: &str) -> Result<(RoomSpotClient, SpotRef), Failure> {
    let rooms = room_spots(host);
    match rooms.get_or_create(id, line(motd)).await? {
        SpotCreated::Created(spot, _) => Ok((rooms.of(id), spot)),
        other => Err(format!("{other:?}").into()),
    }
}

pub(crate) fn text(text: &str) -> Line {
    line(text)
}

/// A look at a room.
pub(crate) async fn look(room: &RoomSpotClient, what: &str) -> Result<String, CallError> {
    Ok(room.look(line(what)).await?.text)
}
