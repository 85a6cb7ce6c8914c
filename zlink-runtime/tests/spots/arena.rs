//! What the generator writes of a small schema, by hand: a lobby (Entry), rooms (User), carts (Instance).
//!
//! `zlink_generated::arena` shows the real thing; `ids.rs`, `tests/simulation` and `tests/processes` use it. Here stands what
//! no schema gives: registrations that are wrong, calls that nothing handles or that carry another message, and rooms with
//! and without subscriptions under one trait.

#![allow(dead_code, missing_docs, unreachable_pub, reason = "as generated code")]

use zlink_runtime::rt;

rt::message! {
    #[derive(Default)]
    "arena.Line" => pub struct Line {
        text: rt::String => string(0, "text"),
    } slots [text]
}

rt::message! {
    #[derive(Default)]
    "arena.Count" => pub struct Count {
        value: i64 => inline(0, "value"),
    } slots [value]
}

rt::message! {
    #[derive(Default)]
    "arena.Nothing" => pub struct Nothing {
    } slots []
}

/// Where a room's `relay` sends: another room.
pub type RoomContext = rt::SpotContext<rt::UserSpot>;
pub type RoomTurn<'t> = rt::SpotTurn<'t, rt::UserSpot>;
pub type RoomYieldTurn<'t, S> = rt::SpotYieldTurn<'t, S, rt::UserSpot>;

pub const ROOM: rt::SpotType = rt::SpotType::from_static("arena.room");
pub const ROOM_TICK: rt::TimerName = rt::TimerName::from_static("tick");

pub trait RoomSpot: Sized + rt::Send + 'static {
    fn create(
        context: RoomContext,
        request: Line,
    ) -> impl rt::Future<Output = rt::Result<rt::Created<Self, Line>, rt::HandlerError>> + rt::Send;
    fn on_initialize(
        &mut self,
        turn: &mut RoomTurn<'_>,
    ) -> impl rt::Future<Output = rt::Result<(), rt::HandlerError>> + rt::Send {
        let _ = turn;
        async { rt::Ok(()) }
    }
    fn on_closing(
        &mut self,
        turn: &mut RoomTurn<'_>,
        reason: rt::CloseReason,
        deadline: rt::Instant,
    ) -> impl rt::Future<Output = rt::Result<(), rt::HandlerError>> + rt::Send {
        let _ = (turn, reason, deadline);
        async { rt::Ok(()) }
    }
    fn say(
        &mut self,
        turn: &mut RoomTurn<'_>,
        message: Line,
    ) -> impl rt::Future<Output = rt::Result<(), rt::HandlerError>> + rt::Send;
    fn look(
        &mut self,
        turn: &mut RoomTurn<'_>,
        request: Line,
    ) -> impl rt::Future<Output = rt::Result<Line, rt::HandlerError>> + rt::Send;
    fn settle(
        turn: &mut RoomYieldTurn<'_, Self>,
        request: Line,
    ) -> impl rt::Future<Output = rt::Result<Line, rt::HandlerError>> + rt::Send;
    fn disband(
        &mut self,
        turn: &mut RoomTurn<'_>,
        request: Nothing,
    ) -> impl rt::Future<Output = rt::Result<Line, rt::HandlerError>> + rt::Send;
    fn news(
        &mut self,
        turn: &mut RoomTurn<'_>,
        message: Line,
    ) -> impl rt::Future<Output = rt::Result<(), rt::HandlerError>> + rt::Send;
    fn gossip(
        &mut self,
        turn: &mut RoomTurn<'_>,
        message: Line,
    ) -> impl rt::Future<Output = rt::Result<(), rt::HandlerError>> + rt::Send {
        let _ = (turn, message);
        async { rt::Ok(()) }
    }
    fn tick(
        &mut self,
        turn: &mut RoomTurn<'_>,
        tick: rt::Tick,
    ) -> impl rt::Future<Output = rt::Result<(), rt::HandlerError>> + rt::Send;
}

/// Without a policy for relocation.
fn aimless_builder<S: RoomSpot>() -> rt::SpotFactoryBuilder<S, rt::UserSpot> {
    rt::SpotFactory::user(ROOM, <S as RoomSpot>::create)
        .initialize(<S as RoomSpot>::on_initialize)
        .closing(<S as RoomSpot>::on_closing)
        .send("arena.room.say", <S as RoomSpot>::say)
        .request("arena.room.look", <S as RoomSpot>::look)
        .request_yielding("arena.room.settle", <S as RoomSpot>::settle)
        .request_closing("arena.room.disband", <S as RoomSpot>::disband)
        .timer("tick", <S as RoomSpot>::tick)
}

fn room_builder<S: RoomSpot>() -> rt::SpotFactoryBuilder<S, rt::UserSpot> {
    aimless_builder().relocation(rt::Relocation::Recreate)
}

/// What no schema gives: no policy, or two of them, and a subscription that is there twice.
pub fn wrong_room_spots<S: RoomSpot>() -> [rt::SpotFactory; 3] {
    let twice = room_builder::<S>().subscribe("room-events", "news", "arena.room.news", <S as RoomSpot>::news);
    [
        aimless_builder::<S>().build(),
        room_builder::<S>().relocation(rt::Relocation::Disabled).build(),
        twice
            .subscribe("room-events", "news", "arena.room.news", <S as RoomSpot>::gossip)
            .build(),
    ]
}

pub fn room_spot<S: RoomSpot>() -> rt::SpotFactory {
    room_builder::<S>().build()
}

/// The same; their timers run beside what else they do.
pub fn wide_room_spot<S: RoomSpot>() -> rt::SpotFactory {
    room_builder::<S>().per_actor().build()
}

/// The same, and they hear the news.
pub fn hearing_room_spot<S: RoomSpot>() -> rt::SpotFactory {
    room_builder::<S>()
        .subscribe("room-events", "news", "arena.room.news", <S as RoomSpot>::news)
        .subscribe("room-events", "news", "arena.room.gossip", <S as RoomSpot>::gossip)
        .build()
}

pub fn room_spots(caller: &impl rt::Caller) -> RoomSpots {
    RoomSpots {
        route: rt::SpotRoute::new(caller, ROOM),
    }
}

#[derive(Clone, Debug)]
pub struct RoomSpots {
    route: rt::SpotRoute,
}

impl RoomSpots {
    pub fn of(&self, id: impl AsRef<str>) -> RoomSpotClient {
        RoomSpotClient {
            spot: self.route.of(id),
        }
    }
    pub fn create(&self, request: Line) -> rt::CreateCall<Line, Line> {
        self.route.create(request)
    }
    pub fn get_or_create(&self, id: impl AsRef<str>, request: Line) -> rt::CreateCall<Line, Line> {
        self.route.get_or_create(id, request)
    }
    pub fn find(&self, id: impl AsRef<str>) -> rt::FindCall {
        self.route.find(id)
    }
    pub fn close(&self, spot: &rt::SpotRef) -> rt::CloseCall {
        self.route.close(spot)
    }
    pub fn release(&self, spot: &rt::SpotRef) -> rt::ReleaseCall {
        self.route.release(spot)
    }
    pub fn publish_news(&self, message: Line) -> rt::PublishCall<Line> {
        self.route.publish("room-events", "news", "arena.room.news", message)
    }
    pub fn publish_gossip(&self, message: Line) -> rt::PublishCall<Line> {
        self.route.publish("room-events", "news", "arena.room.gossip", message)
    }
}

#[derive(Clone, Debug)]
pub struct RoomSpotClient {
    spot: rt::SpotClient,
}

impl RoomSpotClient {
    pub fn say(&self, message: Line) -> rt::SendCall<Line> {
        self.spot.send(const { rt::Method::send("arena.room.say") }, message)
    }
    pub fn look(&self, request: Line) -> rt::RequestCall<Line, Line> {
        self.spot
            .request(const { rt::Method::request("arena.room.look", rt::None) }, request)
    }
    pub fn settle(&self, request: Line) -> rt::RequestCall<Line, Line> {
        self.spot
            .request(const { rt::Method::request("arena.room.settle", rt::None) }, request)
    }
    pub fn disband(&self, request: Nothing) -> rt::RequestCall<Nothing, Line> {
        self.spot
            .request(const { rt::Method::request("arena.room.disband", rt::None) }, request)
    }
    /// What no room handles, one way.
    pub fn hint(&self, message: Nothing) -> rt::SendCall<Nothing> {
        self.spot.send(const { rt::Method::send("arena.room.hint") }, message)
    }
    /// What the handler cannot read as its own, one way.
    pub fn say_with(&self, message: Count) -> rt::SendCall<Count> {
        self.spot.send(const { rt::Method::send("arena.room.say") }, message)
    }
    /// Something that no room handles.
    pub fn unheard_of(&self, request: Nothing) -> rt::RequestCall<Nothing, Line> {
        self.spot.request(
            const { rt::Method::request("arena.room.unheard_of", rt::None) },
            request,
        )
    }
    /// What the handler cannot read as its own.
    pub fn look_with(&self, request: Count) -> rt::RequestCall<Count, Line> {
        self.spot
            .request(const { rt::Method::request("arena.room.look", rt::None) }, request)
    }
}

pub type CartContext = rt::SpotContext<rt::InstanceSpot>;
pub type CartTurn<'t> = rt::SpotTurn<'t, rt::InstanceSpot>;

pub const CART: rt::SpotType = rt::SpotType::from_static("arena.cart");

pub trait CartSpot: Sized + rt::Send + 'static {
    fn activate(context: CartContext) -> impl rt::Future<Output = rt::Result<Self, rt::HandlerError>> + rt::Send;
    fn on_initialize(
        &mut self,
        turn: &mut CartTurn<'_>,
    ) -> impl rt::Future<Output = rt::Result<(), rt::HandlerError>> + rt::Send {
        let _ = turn;
        async { rt::Ok(()) }
    }
    fn on_closing(
        &mut self,
        turn: &mut CartTurn<'_>,
        reason: rt::CloseReason,
        deadline: rt::Instant,
    ) -> impl rt::Future<Output = rt::Result<(), rt::HandlerError>> + rt::Send {
        let _ = (turn, reason, deadline);
        async { rt::Ok(()) }
    }
    fn add(
        &mut self,
        turn: &mut CartTurn<'_>,
        message: Line,
    ) -> impl rt::Future<Output = rt::Result<(), rt::HandlerError>> + rt::Send;
    fn view(
        &mut self,
        turn: &mut CartTurn<'_>,
        request: Line,
    ) -> impl rt::Future<Output = rt::Result<Line, rt::HandlerError>> + rt::Send;
}

pub fn cart_spot<S: CartSpot>() -> rt::SpotFactory {
    rt::SpotFactory::instance(CART, <S as CartSpot>::activate)
        .initialize(<S as CartSpot>::on_initialize)
        .closing(<S as CartSpot>::on_closing)
        .send("arena.cart.add", <S as CartSpot>::add)
        .request("arena.cart.view", <S as CartSpot>::view)
        .relocation(rt::Relocation::Disabled)
        .build()
}

pub fn cart_spots(caller: &impl rt::Caller) -> CartSpots {
    CartSpots {
        route: rt::SpotRoute::new(caller, CART),
    }
}

#[derive(Clone, Debug)]
pub struct CartSpots {
    route: rt::SpotRoute,
}

impl CartSpots {
    pub fn of(&self, id: impl AsRef<str>) -> CartSpotClient {
        CartSpotClient {
            spot: self.route.of(id),
        }
    }
    pub fn find(&self, id: impl AsRef<str>) -> rt::FindCall {
        self.route.find(id)
    }
    pub fn release(&self, spot: &rt::SpotRef) -> rt::ReleaseCall {
        self.route.release(spot)
    }
}

#[derive(Clone, Debug)]
pub struct CartSpotClient {
    spot: rt::SpotClient,
}

impl CartSpotClient {
    pub fn add(&self, message: Line) -> rt::Activates<rt::SendCall<Line>> {
        let call = self.spot.send(const { rt::Method::send("arena.cart.add") }, message);
        self.spot.activates(call)
    }
    pub fn view(&self, request: Line) -> rt::Activates<rt::RequestCall<Line, Line>> {
        let call = self
            .spot
            .request(const { rt::Method::request("arena.cart.view", rt::None) }, request);
        self.spot.activates(call)
    }
}

pub type LobbyContext = rt::SpotContext<rt::EntrySpot>;
pub type LobbyTurn<'t> = rt::SpotTurn<'t, rt::EntrySpot>;

pub const LOBBY: rt::SpotType = rt::SpotType::from_static("arena.lobby");

pub trait LobbySpot: Sized + rt::Send + 'static {
    fn start(context: LobbyContext) -> impl rt::Future<Output = rt::Result<Self, rt::HandlerError>> + rt::Send;
    fn on_initialize(
        &mut self,
        turn: &mut LobbyTurn<'_>,
    ) -> impl rt::Future<Output = rt::Result<(), rt::HandlerError>> + rt::Send {
        let _ = turn;
        async { rt::Ok(()) }
    }
    fn on_closing(
        &mut self,
        turn: &mut LobbyTurn<'_>,
        reason: rt::CloseReason,
        deadline: rt::Instant,
    ) -> impl rt::Future<Output = rt::Result<(), rt::HandlerError>> + rt::Send {
        let _ = (turn, reason, deadline);
        async { rt::Ok(()) }
    }
    fn greet(
        &mut self,
        turn: &mut LobbyTurn<'_>,
        request: Line,
    ) -> impl rt::Future<Output = rt::Result<Line, rt::HandlerError>> + rt::Send;
}

pub fn lobby_spot<S: LobbySpot>() -> rt::SpotFactory {
    rt::SpotFactory::entry(LOBBY, <S as LobbySpot>::start)
        .initialize(<S as LobbySpot>::on_initialize)
        .closing(<S as LobbySpot>::on_closing)
        .request("arena.lobby.greet", <S as LobbySpot>::greet)
        .build()
}

pub fn lobby_spots(caller: &impl rt::Caller) -> LobbySpots {
    LobbySpots {
        route: rt::SpotRoute::new(caller, LOBBY),
    }
}

#[derive(Clone, Debug)]
pub struct LobbySpots {
    route: rt::SpotRoute,
}

impl LobbySpots {
    pub fn of(&self, id: impl AsRef<str>) -> LobbySpotClient {
        LobbySpotClient {
            spot: self.route.of(id),
        }
    }
}

#[derive(Clone, Debug)]
pub struct LobbySpotClient {
    spot: rt::SpotClient,
}

impl LobbySpotClient {
    pub fn greet(&self, request: Line) -> rt::RequestCall<Line, Line> {
        self.spot
            .request(const { rt::Method::request("arena.lobby.greet", rt::None) }, request)
    }
}
