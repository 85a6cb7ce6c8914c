//! What the generator writes of a small schema, by hand: players, and a hall (Entry) in which they begin; and what both do.

#![allow(dead_code, missing_docs, unreachable_pub, reason = "as generated code")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use zlink_runtime::prelude::*;
use zlink_runtime::rt::{self, ActorCreated, ActorRef, Admission};
use zlink_runtime::testing::Cluster;
use zlink_runtime::{HostBuilder, ObjectServerBuilder};

use crate::arena::Line;
use crate::far;
use crate::kit::*;

pub const PLAYER: rt::ActorType = rt::ActorType::from_static("arena.player");
pub const HALL: rt::SpotType = rt::SpotType::from_static("arena.hall");

pub type PlayerContext = rt::ActorContext;
pub type PlayerTurn<'t> = rt::ActorTurn<'t>;
pub type PlayerYieldTurn<'t, A> = rt::ActorYieldTurn<'t, A>;
pub type HallContext = rt::SpotContext<rt::EntrySpot>;
pub type HallTurn<'t> = rt::SpotTurn<'t, rt::EntrySpot>;

/// Numbers the players that are made in this process, so that two are told apart.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// A player: it keeps what it was told.
pub struct Player {
    world: World,
    context: PlayerContext,
    number: usize,
    told: Vec<String>,
    active: usize,
}

impl Drop for Player {
    /// Panics where its ID says so.
    fn drop(&mut self) {
        self.world.note("player dropped");
        assert!(!self.context.id().as_str().starts_with("frail"), "as told");
    }
}

pub fn world_of(shared: Option<&World>) -> Result<World, HandlerError> {
    shared.cloned().ok_or_else(|| HandlerError::new("no world was shared"))
}

impl Player {
    pub async fn create(context: PlayerContext) -> Result<Self, HandlerError> {
        let world = world_of(context.shared::<World>())?;
        let node = context.node().to_string();
        let (id, on) = (context.id(), node.split('-').next().unwrap());
        world.note(format!("make {id} on {on} in {:?}", context.spot()));
        world.build_gate("create").await;
        if id.as_str().starts_with("broken") {
            return Err(HandlerError::new("as told"));
        }
        Ok(Self {
            world,
            number: MADE.fetch_add(1, Ordering::Relaxed),
            context,
            told: Vec::new(),
            active: 0,
        })
    }

    pub fn context(&self) -> &PlayerContext {
        &self.context
    }

    pub async fn go(&mut self, turn: &mut PlayerTurn<'_>, message: Line) -> Result<(), HandlerError> {
        self.active += 1;
        assert_eq!(self.active, 1, "one at a time");
        if message.text == "gate" {
            self.world.note("go waits");
            self.world.gate().await;
        }
        self.world.note(format!("{} went {}", turn.id(), message.text));
        self.told.push(message.text);
        self.active -= 1;
        Ok(())
    }

    pub async fn info(&mut self, turn: &mut PlayerTurn<'_>, request: Line) -> Result<Line, HandlerError> {
        self.active += 1;
        assert_eq!(self.active, 1, "one at a time");
        let text = match request.text.split_once(' ').unwrap_or((&request.text, "")) {
            ("told", _) => self.told.join(","),
            ("where", _) => turn.node().to_string(),
            ("generation", _) => turn.reference().generation.get().to_string(),
            ("number", _) => self.number.to_string(),
            ("count", _) => {
                self.world.note(format!("asked for count on {}", turn.node()));
                self.told.len().to_string()
            }
            ("spot", _) => turn.spot().map_or_else(String::new, |spot| spot.to_string()),
            ("metadata", key) => turn.metadata().get(key).unwrap_or("none").to_owned(),
            ("context", _) => {
                let same = turn.context().reference() == self.context.reference() && self.context.spot() == turn.spot();
                format!("{same}")
            }
            ("gate", _) => {
                self.world.note("info waits");
                self.world.gate().await;
                "passed".to_owned()
            }
            ("fail", _) => {
                self.active -= 1;
                return Err(HandlerError::new("as told"));
            }
            ("ask", id) => {
                let asked = player_actors(turn).of(id).info(text("told")).await;
                asked.map_or_else(|error| format!("{:?}", error.kind()), |line| line.text)
            }
            ("greet", _) => {
                let hall = turn.spot().unwrap();
                let asked = hall_spots(turn).of(&hall).greet(text(turn.id().as_str())).await;
                asked.map_or_else(|error| format!("{:?}", error.kind()), |line| line.text)
            }
            ("tick", _) => {
                turn.add_timer(rt::TimerName::from_static("tick"), Duration::from_secs(1))?;
                "ticks".to_owned()
            }
            (other, _) => format!("what is {other}?"),
        };
        self.active -= 1;
        Ok(Line { text })
    }

    pub async fn rest(turn: &mut PlayerYieldTurn<'_, Self>, request: Line) -> Result<Line, HandlerError> {
        let other = player_actors(turn).of(&request.text);
        let told = turn.yield_for(other.info(text("told"))).await;
        Ok(text(
            &told.map_or_else(|error| format!("{:?}", error.kind()), |line| line.text),
        ))
    }

    pub async fn on_tick(&mut self, turn: &mut PlayerTurn<'_>, _: rt::Tick) -> Result<(), HandlerError> {
        self.active += 1;
        assert_eq!(self.active, 1, "one at a time");
        self.world.note(format!("{} ticks", turn.id()));
        self.active -= 1;
        Ok(())
    }
}

pub fn player_builder() -> rt::ActorFactoryBuilder<Player> {
    rt::ActorFactory::new(PLAYER, Player::create, Player::context)
        .send("arena.player.go", Player::go)
        .request("arena.player.info", Player::info)
        .request_yielding("arena.player.rest", Player::rest)
        .timer("tick", Player::on_tick)
}

pub fn player_actor() -> rt::ActorFactory {
    player_builder().relocation(rt::Relocation::Disabled).build()
}

thread_local! {
    /// The context of the first of them that was made on this thread.
    static HONEST: std::cell::OnceCell<PlayerContext> = const { std::cell::OnceCell::new() };
}

/// A player that shows the context of another one.
pub struct Thief(PlayerContext);

impl Thief {
    async fn create(context: PlayerContext) -> Result<Self, HandlerError> {
        let world = world_of(context.shared::<World>())?;
        world.note(format!("made a thief {}", context.id()));
        // The first that is made here is honest.
        let honest = HONEST.with(|first| first.get_or_init(|| context.clone()).clone());
        Ok(Self(honest))
    }

    fn context(&self) -> &PlayerContext {
        &self.0
    }
}

pub fn thief_actor() -> rt::ActorFactory {
    rt::ActorFactory::new(PLAYER, Thief::create, Thief::context)
        .relocation(rt::Relocation::Disabled)
        .build()
}

/// The Entry Spot.
pub struct Hall {
    world: World,
    seen: usize,
}

impl Hall {
    pub async fn start(context: HallContext) -> Result<Self, HandlerError> {
        let world = world_of(context.shared::<World>())?;
        world.build_gate("start").await;
        if world.count("the next hall fails") > world.count("a hall failed") {
            world.note("a hall failed");
            return Err(HandlerError::new("as told"));
        }
        Ok(Self { world, seen: 0 })
    }

    pub async fn on_closing(
        &mut self,
        _: &mut HallTurn<'_>,
        _: rt::CloseReason,
        _: rt::Instant,
    ) -> Result<(), HandlerError> {
        self.world.note("the hall closes");
        Ok(())
    }

    pub async fn on_create_player(
        &mut self,
        turn: &mut HallTurn<'_>,
        player: &mut Player,
        request: Line,
    ) -> Result<Admission<Line>, HandlerError> {
        let player = player.context.reference().clone();
        let generation = player.generation.get();
        let short = request.text.get(..20).unwrap_or(&request.text);
        self.world
            .note(format!("hall decides on {} {generation}: {short}", player.id));
        self.world.build_gate("admit").await;
        assert_eq!(turn.node(), &player.node);
        match short {
            "reject" => Ok(Admission::Rejected(text("no"))),
            "fail" => Err(HandlerError::new("as told")),
            "panic" => panic!("as told"),
            "long" => Ok(Admission::Accepted(text(&"y".repeat(70_000)))),
            _ => Ok(Admission::Accepted(text(&format!("welcome {short}")))),
        }
    }

    pub async fn on_create_thief(
        &mut self,
        _: &mut HallTurn<'_>,
        thief: &mut Thief,
        request: Line,
    ) -> Result<Admission<Line>, HandlerError> {
        self.world.note(format!("hall decides on {}", thief.0.id()));
        Ok(Admission::Accepted(request))
    }

    pub async fn greet(&mut self, turn: &mut HallTurn<'_>, request: Line) -> Result<Line, HandlerError> {
        self.seen += 1;
        if let Some(id) = request.text.strip_prefix("bring ") {
            let brought = player_actors(turn).get_or_create(id, text("x")).await;
            return Ok(text(&match brought {
                Ok(brought) => brought.reference().unwrap().node.to_string(),
                Err(error) => format!("{:?} {:?}: {error}", error.kind().unwrap(), error.execution()),
            }));
        }
        if request.text == "gate" {
            self.world.note("the hall waits");
            self.world.gate().await;
        }
        self.world.note(format!("hall greets {}", request.text));
        Ok(text(&format!("hello {}, you are {}", request.text, self.seen)))
    }
}

pub fn hall_builder() -> rt::SpotFactoryBuilder<Hall, rt::EntrySpot> {
    rt::SpotFactory::entry(HALL, Hall::start)
        .closing(Hall::on_closing)
        .request("arena.hall.greet", Hall::greet)
}

/// One that decides about thieves, and admits them all.
pub fn den_spot() -> rt::SpotFactory {
    hall_builder().creates(PLAYER, Hall::on_create_thief).build()
}

pub fn hall_spot() -> rt::SpotFactory {
    hall_builder().creates(PLAYER, Hall::on_create_player).build()
}

pub struct HallSpots {
    route: rt::SpotRoute,
}
pub fn hall_spots(caller: &impl rt::Caller) -> HallSpots {
    HallSpots {
        route: rt::SpotRoute::new(caller, HALL),
    }
}
impl HallSpots {
    pub fn of(&self, id: impl AsRef<str>) -> HallClient {
        HallClient {
            spot: self.route.of(id),
        }
    }
}
pub struct HallClient {
    spot: rt::SpotClient,
}
impl HallClient {
    pub fn greet(&self, request: Line) -> rt::RequestCall<Line, Line> {
        self.spot
            .request(const { rt::Method::request("arena.hall.greet", None) }, request)
    }
}

pub fn player_actors(caller: &impl rt::Caller) -> PlayerActors {
    PlayerActors {
        route: rt::ActorRoute::new(caller, PLAYER),
    }
}
#[derive(Clone)]
pub struct PlayerActors {
    pub route: rt::ActorRoute,
}
impl PlayerActors {
    pub fn of(&self, id: impl AsRef<str>) -> PlayerClient {
        PlayerClient {
            actor: self.route.of(id),
        }
    }
    pub fn create(&self, id: impl AsRef<str>, request: Line) -> rt::CreateActorCall<Line, Line> {
        self.route.create(id, request)
    }
    pub fn get_or_create(&self, id: impl AsRef<str>, request: Line) -> rt::CreateActorCall<Line, Line> {
        self.route.get_or_create(id, request)
    }
    pub fn find(&self, id: impl AsRef<str>) -> rt::FindActorCall {
        self.route.find(id)
    }
    pub fn destroy(&self, actor: &ActorRef) -> rt::DestroyActorCall {
        self.route.destroy(actor)
    }
    pub fn release(&self, actor: &ActorRef) -> rt::ReleaseActorCall {
        self.route.release(actor)
    }
}
#[derive(Clone)]
pub struct PlayerClient {
    actor: rt::ActorClient,
}
impl PlayerClient {
    pub fn go(&self, message: Line) -> rt::SendCall<Line> {
        self.actor.send(const { rt::Method::send("arena.player.go") }, message)
    }
    pub fn info(&self, request: Line) -> rt::RequestCall<Line, Line> {
        self.actor
            .request(const { rt::Method::request("arena.player.info", None) }, request)
    }
    pub fn rest(&self, request: Line) -> rt::RequestCall<Line, Line> {
        self.actor
            .request(const { rt::Method::request("arena.player.rest", None) }, request)
    }
    pub fn unknown(&self, request: Line) -> rt::RequestCall<Line, Line> {
        self.actor
            .request(const { rt::Method::request("arena.player.unknown", None) }, request)
    }
    /// With another message than its handler takes.
    pub fn bad(&self, request: crate::arena::Count) -> rt::RequestCall<crate::arena::Count, Line> {
        self.actor
            .request(const { rt::Method::request("arena.player.info", None) }, request)
    }
}

/// All that a node of these tests can have.
pub fn players(objects: ObjectServerBuilder) -> ObjectServerBuilder {
    objects.entry(hall_spot()).actor(player_actor())
}

/// A cluster of that placement, and the host that calls.
pub(crate) async fn player_world(place: impl Into<Place>, seed: u64) -> Result<(Cluster, World, Host), Failure> {
    player_world_with(place, seed, players).await
}

pub(crate) async fn player_world_with(
    place: impl Into<Place>,
    seed: u64,
    objects: impl Fn(ObjectServerBuilder) -> ObjectServerBuilder + Send + Sync + 'static,
) -> Result<(Cluster, World, Host), Failure> {
    let Place(placement, provider) = place.into();
    let (cluster, world) = on(provider, seed);
    serves_with(&cluster, &world, "owner", objects);
    let caller = match placement {
        Placement::Local => "owner",
        Placement::Remote => {
            calls(&cluster, "caller");
            "caller"
        }
    };
    start(&cluster).await?;
    let host = cluster.host(caller);
    Ok((cluster, world, host))
}

/// A player of that ID.
pub(crate) async fn player(host: &Host, id: &str) -> Result<(PlayerClient, ActorRef), Failure> {
    let players = player_actors(host);
    match players.create(id, text("x")).await? {
        ActorCreated::Created(actor, _) => Ok((players.of(id), actor)),
        other => Err(format!("{other:?}").into()),
    }
}

/// What a player says.
pub(crate) async fn said(player: &PlayerClient, what: &str) -> Result<String, CallError> {
    Ok(player.info(text(what)).await?.text)
}

/// The mistakes that a host with those objects would start with.
pub(crate) fn mistakes(objects: fn(ObjectServerBuilder) -> ObjectServerBuilder) -> impl Future<Output = String> {
    let (cluster, world) = on(Provider::Memory, 1);
    let with_store = far::with_store(&cluster, "owner");
    cluster.node("owner", move |host: HostBuilder| {
        let host = with_store(host).shared(world.clone());
        host.mesh("world", |mesh| {
            mesh.rid_prefix("owner").listen("tcp://owner:1").object_server(objects)
        })
    });
    async move {
        match cluster.start("owner").await {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }
}
