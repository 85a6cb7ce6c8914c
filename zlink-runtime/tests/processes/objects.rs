//! The Spots of these processes, over generated code: they write down what runs in them, and wait where they are told to.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use zlink_generated::arena::*;
use zlink_runtime::MetadataView;
use zlink_runtime::id::SpotId;
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{Admission, Created, Tick};

use crate::journal::Journal;
use crate::players::NoPlayer;

/// How often a room ticks that is told to.
const TICK: Duration = Duration::from_millis(20);

/// Under which key a request says what is written down of it.
pub(crate) const SAID: &str = "said";

/// What the Spots of a process share.
#[derive(Clone)]
pub(crate) struct World(Arc<Inner>);

struct Inner {
    journal: Journal,
    /// A handler that is told `gate` waits for one of these.
    gate: Semaphore,
    /// Factories wait for it where they are held.
    held: Semaphore,
}

impl World {
    pub(crate) fn new(journal: &Path, is_held: bool) -> Self {
        Self(Arc::new(Inner {
            journal: Journal::create(journal),
            gate: Semaphore::new(0),
            held: Semaphore::new(if is_held { 0 } else { 1 << 20 }),
        }))
    }

    /// Lets so many handlers go on.
    pub(crate) fn open(&self, count: usize) {
        self.0.gate.add_permits(count);
    }

    /// Lets all factories go on.
    pub(crate) fn unhold(&self) {
        self.0.held.add_permits(1 << 20);
    }

    fn write(&self, what: impl AsRef<str>) {
        self.0.journal.write(what.as_ref());
    }

    fn of(shared: Option<&World>) -> Result<Self, HandlerError> {
        shared.cloned().ok_or_else(|| HandlerError::new("no world is shared"))
    }

    /// A factory runs.
    async fn makes(shared: Option<&World>, what: &str, id: &SpotId) -> Result<Self, HandlerError> {
        let world = Self::of(shared)?;
        world.write(format!("{what} {id}"));
        drop(world.0.held.acquire().await);
        Ok(world)
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

fn said(metadata: MetadataView<'_>) -> String {
    metadata.get(SAID).unwrap_or_default().to_owned()
}

fn never<T>() -> Result<T, HandlerError> {
    Err(HandlerError::new("nobody asks for that"))
}

pub(crate) struct Room {
    world: World,
    lines: Vec<String>,
}

impl RoomSpot for Room {
    async fn create(context: RoomContext, request: RoomSettings) -> Result<Created<Self, RoomInfo>, HandlerError> {
        let world = World::makes(context.shared(), "create", context.id()).await?;
        let lines = vec![request.motd.clone()];
        Ok(Created::Accepted(
            Self { world, lines },
            RoomInfo { motd: request.motd },
        ))
    }

    async fn on_initialize(&mut self, turn: &mut RoomTurn<'_>) -> Result<(), HandlerError> {
        if self.lines[0] == "ticks" {
            turn.add_timer(ROOM_TICK, TICK)?;
        }
        Ok(())
    }

    async fn say(&mut self, turn: &mut RoomTurn<'_>, message: ChatLine) -> Result<(), HandlerError> {
        self.world.handles(turn.id(), &message.text).await;
        self.lines.push(message.text);
        Ok(())
    }

    /// Its motd is the generation that answers.
    async fn look(&mut self, turn: &mut RoomTurn<'_>, _: Look) -> Result<RoomView, HandlerError> {
        self.world.handles(turn.id(), &said(turn.metadata())).await;
        Ok(RoomView {
            motd: turn.reference().generation.get().to_string(),
            lines: self.lines.clone(),
            ..RoomView::default()
        })
    }

    async fn settle(_: &mut RoomYieldTurn<'_, Self>, _: Settle) -> Result<Receipt, HandlerError> {
        never()
    }

    async fn record(_: &mut RoomYieldTurn<'_, Self>, _: Move) -> Result<(), HandlerError> {
        never()
    }

    async fn disband(&mut self, _: &mut RoomTurn<'_>, _: Look) -> Result<RoomView, HandlerError> {
        never()
    }

    async fn events(&mut self, _: &mut RoomTurn<'_>, _: RoomEvent) -> Result<(), HandlerError> {
        never()
    }

    async fn announced(_: &mut RoomYieldTurn<'_, Self>, _: Announcement) -> Result<(), HandlerError> {
        never()
    }

    async fn on_tick(&mut self, turn: &mut RoomTurn<'_>, _: Tick) -> Result<(), HandlerError> {
        self.world.write(format!("tick {}", turn.id()));
        Ok(())
    }

    async fn on_bill(_: &mut RoomYieldTurn<'_, Self>, _: Tick) -> Result<(), HandlerError> {
        never()
    }
}

pub(crate) struct Cart {
    world: World,
    items: Vec<String>,
}

impl Cart {
    /// What it has; a map has no order of its own, so each item bears its number.
    fn shown(&self) -> CartView {
        let items = self.items.iter().enumerate();
        CartView {
            items: items.map(|(at, item)| (format!("{at:06} {item}"), 1)).collect(),
        }
    }
}

/// The items that a cart has shown, in their order.
pub(crate) fn items(view: &CartView) -> String {
    let items = view.items.keys().filter_map(|item| Some(item.split_once(' ')?.1));
    items.collect::<Vec<_>>().join(",")
}

impl CartSpot for Cart {
    async fn activate(context: CartContext) -> Result<Self, HandlerError> {
        let world = World::makes(context.shared(), "activate", context.id()).await?;
        let items = Vec::new();
        Ok(Self { world, items })
    }

    async fn add(&mut self, turn: &mut CartTurn<'_>, message: AddItem) -> Result<(), HandlerError> {
        self.world.handles(turn.id(), &message.item).await;
        self.items.push(message.item);
        Ok(())
    }

    async fn view(&mut self, _: &mut CartTurn<'_>, _: Look) -> Result<CartView, HandlerError> {
        never()
    }

    /// What it had, before it keeps what is said.
    async fn peek(&mut self, turn: &mut CartTurn<'_>, _: Look) -> Result<CartView, HandlerError> {
        let item = said(turn.metadata());
        self.world.handles(turn.id(), &item).await;
        let view = self.shown();
        self.items.push(item);
        Ok(view)
    }

    async fn checkout(_: &mut CartYieldTurn<'_, Self>, _: Checkout) -> Result<Receipt, HandlerError> {
        never()
    }

    async fn drop(&mut self, _: &mut CartTurn<'_>, _: Knock) -> Result<(), HandlerError> {
        never()
    }

    async fn on_expire(_: &mut CartYieldTurn<'_, Self>, _: Tick) -> Result<(), HandlerError> {
        never()
    }
}

pub(crate) struct Lobby {
    world: World,
}

impl LobbySpot for Lobby {
    type Player = NoPlayer;

    async fn start(context: LobbyContext) -> Result<Self, HandlerError> {
        let world = World::of(context.shared())?;
        world.write(format!("start {}", context.id()));
        Ok(Self { world })
    }

    async fn on_create_player(
        &mut self,
        _: &mut LobbyTurn<'_>,
        _: &mut NoPlayer,
        _: EnterRoom,
    ) -> Result<Admission<()>, HandlerError> {
        Ok(Admission::Rejected(()))
    }

    async fn lookup(&mut self, turn: &mut LobbyTurn<'_>, request: Lookup) -> Result<Found, HandlerError> {
        self.world.handles(turn.id(), &request.name).await;
        Ok(Found::default())
    }

    async fn greet(&mut self, _: &mut LobbyTurn<'_>, _: ChatLine) -> Result<(), HandlerError> {
        never()
    }

    async fn announced(&mut self, _: &mut LobbyTurn<'_>, _: Announcement) -> Result<(), HandlerError> {
        never()
    }

    async fn on_sweep(&mut self, _: &mut LobbyTurn<'_>, _: Tick) -> Result<(), HandlerError> {
        never()
    }
}
