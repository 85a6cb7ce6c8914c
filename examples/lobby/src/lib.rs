//! What lives on the plaza. Callers name a room or a cart by its ID; which node has it is zlink's business.

use zlink_runtime::prelude::*;
use zlink_runtime::{Created, MeshBuilder};

zlink_runtime::include_schema!("plaza");

use plaza::{
    Announcement, Basket, CartContext, CartSpot, CartTurn, Checkout, Greet, Greeting, Item, Line, LobbyContext,
    LobbySpot, LobbyTurn, Look, OpenRoom, Opened, RoomContext, RoomSpot, RoomTurn, View,
};

/// The channel that announcements go over: every node with rooms takes part.
pub const NEWS: ChannelName = ChannelName::from_static("plaza-news");

/// Makes a node one that has a lobby, rooms and carts.
pub fn serves(mesh: MeshBuilder) -> MeshBuilder {
    mesh.take_part(NEWS).object_server(|objects| {
        objects
            .entry(plaza::lobby_spot::<Lobby>())
            .spot(plaza::room_spot::<Room>())
            .spot(plaza::cart_spot::<Cart>())
    })
}

/// The lobby of one node; there as long as the node is.
#[derive(Debug)]
pub struct Lobby {
    guests: u32,
}

impl LobbySpot for Lobby {
    async fn start(_context: LobbyContext) -> Result<Self, HandlerError> {
        Ok(Self { guests: 0 })
    }

    async fn greet(&mut self, _turn: &mut LobbyTurn<'_>, greet: Greet) -> Result<Greeting, HandlerError> {
        self.guests += 1;
        let text = format!("Welcome, {}! You are guest {} here.", greet.guest, self.guests);
        Ok(Greeting { text })
    }
}

/// A room. One handler at a time has `self`, so there is nothing to lock.
#[derive(Debug)]
pub struct Room {
    topic: String,
    lines: Vec<String>,
    heard: Vec<String>,
}

impl RoomSpot for Room {
    async fn create(_context: RoomContext, open: OpenRoom) -> Result<Created<Self, Opened>, HandlerError> {
        let topic = open.topic;
        let room = Self {
            topic: topic.clone(),
            lines: Vec::new(),
            heard: Vec::new(),
        };
        Ok(Created::Accepted(room, Opened { topic }))
    }

    async fn say(&mut self, _turn: &mut RoomTurn<'_>, line: Line) -> Result<(), HandlerError> {
        self.lines.push(format!("{}: {}", line.guest, line.text));
        Ok(())
    }

    async fn look(&mut self, turn: &mut RoomTurn<'_>, _look: Look) -> Result<View, HandlerError> {
        Ok(View {
            topic: self.topic.clone(),
            lines: self.lines.clone(),
            heard: self.heard.clone(),
            node: turn.node().to_string(),
        })
    }

    async fn announced(&mut self, _turn: &mut RoomTurn<'_>, news: Announcement) -> Result<(), HandlerError> {
        self.heard.push(news.text);
        Ok(())
    }
}

/// A cart.
#[derive(Debug)]
pub struct Cart {
    items: Vec<String>,
    cents: i64,
}

impl CartSpot for Cart {
    async fn activate(_context: CartContext) -> Result<Self, HandlerError> {
        Ok(Self {
            items: Vec::new(),
            cents: 0,
        })
    }

    async fn add(&mut self, _turn: &mut CartTurn<'_>, item: Item) -> Result<(), HandlerError> {
        self.items.push(item.name);
        self.cents += item.cents;
        Ok(())
    }

    async fn view(&mut self, _turn: &mut CartTurn<'_>, _look: Look) -> Result<Basket, HandlerError> {
        Ok(self.basket())
    }

    async fn checkout(&mut self, _turn: &mut CartTurn<'_>, _checkout: Checkout) -> Result<Basket, HandlerError> {
        Ok(self.basket())
    }
}

impl Cart {
    fn basket(&self) -> Basket {
        Basket {
            items: self.items.clone(),
            cents: self.cents,
        }
    }
}
