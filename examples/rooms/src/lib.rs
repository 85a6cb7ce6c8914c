//! Rooms, carts and guests: what the pages of `docs` show of Spots and Actors, as code that is compiled and tested.
//!
//! Callers name a room, a cart or a guest by its ID; which node has it is zlink's business.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use zlink_runtime::id::SpotKind;
use zlink_runtime::prelude::*;
use zlink_runtime::{Admission, CloseReason, Created, HostBuilder, MeshBuilder, SpotQuery, StoreSource, Tick};

zlink_runtime::include_schema!("chat");

use chat::*;

/// The channel that announcements go over: every node with rooms takes part.
pub const NEWS: ChannelName = ChannelName::from_static("chat-news");

/// What is kept of rooms that closed: one value for all Spots of a host.
#[derive(Debug, Default)]
pub struct Archive(Mutex<Vec<String>>);

impl Archive {
    fn keep(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(line);
    }

    /// All lines.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A node that has a lobby, rooms, carts and guests.
pub fn node(host: HostBuilder, store: impl Into<StoreSource>, archive: Arc<Archive>) -> HostBuilder {
    host.location_store(store) // who has which ID
        .shared(archive) // for all Spots and Actors: `turn.shared::<Arc<Archive>>()`
        .mesh("chat", serves)
}

fn serves(mesh: MeshBuilder) -> MeshBuilder {
    mesh.take_part(NEWS).object_server(|objects| {
        objects
            .entry(chat::lobby_spot::<Lobby>())
            .spot(chat::room_spot::<Room>())
            .spot(chat::cart_spot::<Cart>())
            .actor(chat::guest_actor::<Guest>())
            .capacity(chat::ROOM, 1_000) // rooms here at most; further ones are made on other nodes
            .total_capacity(10_000) // rooms and carts
            .actor_capacity(chat::GUEST, 500)
            .placement_weight(100) // this node's share of what is new; 0 takes none
            .instance_idle_timeout(Duration::from_secs(600)) // closes carts that nobody uses
    })
}

/// The lobby of one node.
#[derive(Debug)]
pub struct Lobby {
    guests: u32,
}

impl LobbySpot for Lobby {
    type Guest = Guest;

    async fn start(_context: LobbyContext) -> Result<Self, HandlerError> {
        Ok(Self { guests: 0 })
    }

    async fn on_create_guest(
        &mut self,
        _turn: &mut LobbyTurn<'_>,
        guest: &mut Guest,
        enter: Enter,
    ) -> Result<Admission<Welcome>, HandlerError> {
        if enter.name == "nobody" {
            let text = "everybody has a name".to_owned();
            return Ok(Admission::Rejected(Welcome { text }));
        }
        self.guests += 1;
        let text = format!("welcome, {}", enter.name);
        guest.name = enter.name;
        Ok(Admission::Accepted(Welcome { text }))
    }

    async fn count(&mut self, _turn: &mut LobbyTurn<'_>, _ask: Ask) -> Result<Welcome, HandlerError> {
        let text = format!("{} guests began here", self.guests);
        Ok(Welcome { text })
    }
}

/// A room.
#[derive(Debug)]
pub struct Room {
    lines: Vec<String>,
    quiet: bool,
}

impl RoomSpot for Room {
    /// Makes the room, or refuses to.
    async fn create(_context: RoomContext, open: OpenRoom) -> Result<Created<Self, Opened>, HandlerError> {
        if open.topic.is_empty() {
            let text = "a room has a topic".to_owned();
            return Ok(Created::Rejected(Opened { text }));
        }
        let text = format!("let us talk about {}", open.topic);
        let (lines, quiet) = (Vec::new(), false);
        Ok(Created::Accepted(Self { lines, quiet }, Opened { text }))
    }

    /// Runs before anybody finds the room; need not be written.
    async fn on_initialize(&mut self, turn: &mut RoomTurn<'_>) -> Result<(), HandlerError> {
        turn.add_timer(chat::ROOM_QUIET, Duration::from_secs(60))?;
        Ok(())
    }

    /// Runs last; need not be written. What takes longer than the deadline is cut off.
    async fn on_closing(
        &mut self,
        turn: &mut RoomTurn<'_>,
        reason: CloseReason,
        _deadline: tokio::time::Instant,
    ) -> Result<(), HandlerError> {
        let archive = turn.shared::<Arc<Archive>>();
        archive.inspect(|archive| archive.keep(format!("{}: {reason:?}", turn.id())));
        Ok(())
    }

    async fn say(&mut self, turn: &mut RoomTurn<'_>, line: Line) -> Result<(), HandlerError> {
        self.lines.push(line.text);
        self.quiet = false;
        turn.add_timer(chat::ROOM_QUIET, Duration::from_secs(60))?; // takes the place of the one that runs
        Ok(())
    }

    async fn look(&mut self, _turn: &mut RoomTurn<'_>, _ask: Ask) -> Result<View, HandlerError> {
        Ok(self.view())
    }

    /// What yields has no `self`: its turn has the state, and gives it to others while it waits.
    async fn bill(turn: &mut RoomYieldTurn<'_, Self>, _ask: Ask) -> Result<Basket, HandlerError> {
        let cart = chat::cart_spots(turn).of(format!("cart:{}", turn.id()));
        let basket = turn.yield_for(cart.view(Ask {}).activating()).await?;
        turn.state().lines.push(format!("that is {} cents", basket.cents));
        Ok(basket)
    }

    async fn leave(&mut self, _turn: &mut RoomTurn<'_>, _ask: Ask) -> Result<View, HandlerError> {
        Ok(self.view())
    }

    async fn announced(&mut self, _turn: &mut RoomTurn<'_>, line: Line) -> Result<(), HandlerError> {
        self.lines.push(line.text);
        Ok(())
    }

    async fn on_quiet(&mut self, _turn: &mut RoomTurn<'_>, _tick: Tick) -> Result<(), HandlerError> {
        self.quiet = true;
        Ok(())
    }
}

impl Room {
    fn view(&self) -> View {
        View {
            lines: self.lines.clone(),
            quiet: self.quiet,
        }
    }
}

/// A cart.
#[derive(Debug, Default)]
pub struct Cart(Basket);

impl CartSpot for Cart {
    async fn activate(_context: CartContext) -> Result<Self, HandlerError> {
        Ok(Self::default())
    }

    async fn add(&mut self, _turn: &mut CartTurn<'_>, item: Item) -> Result<(), HandlerError> {
        self.0.items.push(item.name);
        self.0.cents += item.cents;
        Ok(())
    }

    async fn view(&mut self, _turn: &mut CartTurn<'_>, _ask: Ask) -> Result<Basket, HandlerError> {
        Ok(self.0.clone())
    }

    async fn checkout(&mut self, _turn: &mut CartTurn<'_>, _ask: Ask) -> Result<Basket, HandlerError> {
        Ok(self.0.clone())
    }

    async fn on_remind(_turn: &mut CartYieldTurn<'_, Self>, _tick: Tick) -> Result<(), HandlerError> {
        Ok(())
    }
}

/// A guest.
#[derive(Debug)]
pub struct Guest {
    context: GuestContext,
    name: String,
    lines: Vec<String>,
}

impl GuestActor for Guest {
    /// Makes the guest of its context and nothing else: what it was created with goes to the lobby.
    async fn create(context: GuestContext) -> Result<Self, HandlerError> {
        let (name, lines) = (String::new(), Vec::new());
        Ok(Self { context, name, lines })
    }

    fn context(&self) -> &GuestContext {
        &self.context
    }

    async fn hear(&mut self, _turn: &mut GuestTurn<'_>, line: Line) -> Result<(), HandlerError> {
        self.lines.push(line.text);
        Ok(())
    }

    async fn heard(&mut self, _turn: &mut GuestTurn<'_>, _ask: Ask) -> Result<View, HandlerError> {
        let lines = self.lines.iter().map(|line| format!("{} heard {line}", self.name));
        Ok(View {
            lines: lines.collect(),
            quiet: false,
        })
    }

    async fn on_rest(&mut self, _turn: &mut GuestTurn<'_>, _tick: Tick) -> Result<(), HandlerError> {
        Ok(())
    }
}

/// The IDs of all rooms, from any host of the store, page by page.
pub async fn all_rooms(host: &Host) -> Result<Vec<SpotId>, CallError> {
    let query = SpotQuery::new(SpotKind::User).of_type(chat::ROOM);
    let (mut rooms, mut after) = (Vec::new(), None);
    loop {
        let page = host.list_spots(&query, after.as_ref()).await?;
        rooms.extend(page.spots.into_iter().map(|spot| spot.reference.id));
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(rooms),
        }
    }
}
