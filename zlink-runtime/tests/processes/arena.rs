//! What the generator writes of a small schema, by hand, as far as these tests need it: a lobby (Entry), rooms (User),
//! carts (Instance).

#![allow(missing_docs, unreachable_pub, reason = "as generated code")]

use zlink_runtime::rt;

rt::message! {
    #[derive(Default)]
    "arena.Line" => pub struct Line {
        text: rt::String => string(0, "text"),
    } slots [text]
}

pub type RoomContext = rt::SpotContext<rt::UserSpot>;
pub type RoomTurn<'t> = rt::SpotTurn<'t, rt::UserSpot>;

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
    ) -> impl rt::Future<Output = rt::Result<(), rt::HandlerError>> + rt::Send;
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
    fn tick(
        &mut self,
        turn: &mut RoomTurn<'_>,
        tick: rt::Tick,
    ) -> impl rt::Future<Output = rt::Result<(), rt::HandlerError>> + rt::Send;
}

pub fn room_spot<S: RoomSpot>() -> rt::SpotFactory {
    rt::SpotFactory::user(ROOM, <S as RoomSpot>::create)
        .initialize(<S as RoomSpot>::on_initialize)
        .send("arena.room.say", <S as RoomSpot>::say)
        .request("arena.room.look", <S as RoomSpot>::look)
        .timer("tick", <S as RoomSpot>::tick)
        .relocation(rt::Relocation::Recreate)
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
    pub fn get_or_create(&self, id: impl AsRef<str>, request: Line) -> rt::CreateCall<Line, Line> {
        self.route.get_or_create(id, request)
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
}

pub type CartContext = rt::SpotContext<rt::InstanceSpot>;
pub type CartTurn<'t> = rt::SpotTurn<'t, rt::InstanceSpot>;

pub const CART: rt::SpotType = rt::SpotType::from_static("arena.cart");

pub trait CartSpot: Sized + rt::Send + 'static {
    fn activate(context: CartContext) -> impl rt::Future<Output = rt::Result<Self, rt::HandlerError>> + rt::Send;
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
    fn greet(
        &mut self,
        turn: &mut LobbyTurn<'_>,
        request: Line,
    ) -> impl rt::Future<Output = rt::Result<Line, rt::HandlerError>> + rt::Send;
}

pub fn lobby_spot<S: LobbySpot>() -> rt::SpotFactory {
    rt::SpotFactory::entry(LOBBY, <S as LobbySpot>::start)
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
