//! The Spots of these scenarios: rooms, carts and lobbies that tell the history of each step that they take.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use zlink_generated::arena::*;
use zlink_runtime::MetadataView;
use zlink_runtime::error::HandlerError;
use zlink_runtime::id::SpotId;
use zlink_runtime::rt::{Admission, CloseReason, Created, Instant, Rid, SpotRef, Tick};
use zlink_runtime::testing::network::Network;

use super::history::{History, Incarnation};
use crate::dice::Dice;
use crate::players::NoPlayer;

/// Under which key a call says which one it is.
pub(crate) const NUMBER: &str = "number";

/// What all Spots share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) history: Arc<History>,
    pub(crate) dice: Dice,
    pub(crate) network: Network,
    /// Of a hundred, how many factories fail, and how many that may reject do.
    pub(crate) failing: usize,
    /// How many rooms a turn of one asks in its turn.
    pub(crate) rooms: usize,
}

impl Shared {
    /// Shown where a seed that fails is repeated.
    fn note(&self, text: String) {
        self.network.note(text);
    }
}

/// One incarnation: what it does is told and checked here.
#[derive(Clone)]
struct Life {
    shared: Shared,
    one: Incarnation,
    node: Rid,
}

impl Life {
    /// It is being made.
    fn begin(shared: Option<&Shared>, spot: &SpotRef, cause: Option<u64>) -> Result<Self, HandlerError> {
        let shared = shared.ok_or_else(|| HandlerError::new("nothing is shared"))?;
        let SpotRef {
            id, generation, node, ..
        } = spot;
        let life = Self {
            shared: shared.clone(),
            one: (id.to_string(), generation.get()),
            node: node.clone(),
        };
        life.shared.history.made(&life.one, &life.node, cause);
        life.shared.note(format!("{:?} is made on {}", life.one, life.node));
        Ok(life)
    }

    fn fails(&self) -> bool {
        self.shared.dice.percent(self.shared.failing)
    }

    /// Polls `work`, and tells of each time.
    async fn watched<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            self.shared.history.polled(&self.one, &self.node);
            work.as_mut().poll(context)
        })
        .await
    }

    /// A turn that has the Spot for itself.
    async fn alone<T>(&self, work: impl Future<Output = T>) -> T {
        self.shared.history.enter(&self.one);
        let _leaves = Leaves(self);
        self.watched(work).await
    }

    /// Takes its time.
    async fn nap(&self) {
        let dice = &self.shared.dice;
        match dice.below(200) {
            0 => tokio::time::sleep(dice.millis(1_000, 14_000)).await,
            1..=10 => tokio::time::sleep(dice.millis(1, 400)).await,
            11..=60 => tokio::time::sleep(dice.millis(1, 20)).await,
            _ => {}
        }
    }

    /// Handles a call. Returns what its reply says.
    async fn handles(&self, metadata: MetadataView<'_>) -> Result<String, HandlerError> {
        let seen = self.sees(metadata);
        self.alone(self.nap()).await;
        seen
    }

    /// Which call it is. Those of other Spots have no number, and nobody looks at what comes of them.
    fn sees(&self, metadata: MetadataView<'_>) -> Result<String, HandlerError> {
        let Some(number) = metadata.get(NUMBER) else {
            return Ok(String::new());
        };
        self.shared.history.ran(&self.one, parsed(number)?);
        self.shared
            .note(format!("{:?} on {} runs {number}", self.one, self.node));
        Ok(number.to_owned())
    }

    async fn hears(&self, message: Announcement) -> Result<(), HandlerError> {
        self.shared.history.heard(&self.one, parsed(&message.text)?);
        self.watched(self.nap()).await;
        Ok(())
    }

    /// Ends it.
    async fn closes(&self) {
        self.shared.history.closes(&self.one);
        let _leaves = Leaves(self);
        self.watched(self.nap()).await;
    }
}

struct Leaves<'a>(&'a Life);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.shared.history.leave(&self.0.one);
    }
}

fn parsed(text: &str) -> Result<u64, HandlerError> {
    text.parse()
        .map_err(|error| HandlerError::new(format!("{text:?}: {error}")))
}

fn never<T>() -> Result<T, HandlerError> {
    Err(HandlerError::new("nobody asks for that"))
}

pub(crate) struct Room(Life);

impl RoomSpot for Room {
    async fn create(context: RoomContext, request: RoomSettings) -> Result<Created<Self, RoomInfo>, HandlerError> {
        let life = Life::begin(context.shared(), context.reference(), Some(parsed(&request.motd)?))?;
        life.alone(life.nap()).await;
        if life.fails() {
            return Err(HandlerError::new("it was to fail"));
        }
        let info = RoomInfo { motd: request.motd };
        if life.fails() {
            return Ok(Created::Rejected(info));
        }
        Ok(Created::Accepted(Self(life), info))
    }

    async fn on_initialize(&mut self, turn: &mut RoomTurn<'_>) -> Result<(), HandlerError> {
        turn.add_timer(ROOM_TICK, Duration::from_secs(3))?;
        self.0.alone(self.0.nap()).await;
        Ok(())
    }

    async fn on_closing(&mut self, _: &mut RoomTurn<'_>, _: CloseReason, _: Instant) -> Result<(), HandlerError> {
        self.0.closes().await;
        Ok(())
    }

    async fn say(&mut self, turn: &mut RoomTurn<'_>, _: ChatLine) -> Result<(), HandlerError> {
        self.0.handles(turn.metadata()).await.map(drop)
    }

    async fn look(&mut self, turn: &mut RoomTurn<'_>, _: Look) -> Result<RoomView, HandlerError> {
        let motd = self.0.handles(turn.metadata()).await?;
        Ok(RoomView {
            motd,
            ..RoomView::default()
        })
    }

    /// Asks another room, or itself, without its own state meanwhile.
    async fn settle(turn: &mut RoomYieldTurn<'_, Self>, request: Settle) -> Result<Receipt, HandlerError> {
        let life = turn.state().0.clone();
        let number = life.sees(turn.metadata())?;
        life.alone(life.nap()).await;
        let other = request.cents.unsigned_abs() % life.shared.rooms as u64;
        let asked = room_spots(turn).of(format!("room-{other}")).look(Look {});
        let asked = asked.timeout(Duration::from_millis(500));
        let _ = life.watched(turn.yield_for(asked)).await;
        life.alone(life.nap()).await;
        Ok(Receipt { number })
    }

    async fn record(_: &mut RoomYieldTurn<'_, Self>, _: Move) -> Result<(), HandlerError> {
        never()
    }

    async fn disband(&mut self, turn: &mut RoomTurn<'_>, _: Look) -> Result<RoomView, HandlerError> {
        let motd = self.0.handles(turn.metadata()).await?;
        Ok(RoomView {
            motd,
            ..RoomView::default()
        })
    }

    async fn events(&mut self, _: &mut RoomTurn<'_>, _: RoomEvent) -> Result<(), HandlerError> {
        never()
    }

    async fn announced(turn: &mut RoomYieldTurn<'_, Self>, message: Announcement) -> Result<(), HandlerError> {
        let life = turn.state().0.clone();
        life.hears(message).await
    }

    async fn on_tick(&mut self, _: &mut RoomTurn<'_>, _: Tick) -> Result<(), HandlerError> {
        self.0.shared.history.ticked();
        self.0.alone(self.0.nap()).await;
        Ok(())
    }

    async fn on_bill(_: &mut RoomYieldTurn<'_, Self>, _: Tick) -> Result<(), HandlerError> {
        never()
    }
}

pub(crate) struct Cart(Life);

impl CartSpot for Cart {
    async fn activate(context: CartContext) -> Result<Self, HandlerError> {
        let life = Life::begin(context.shared(), context.reference(), None)?;
        life.alone(life.nap()).await;
        if life.fails() {
            return Err(HandlerError::new("it was to fail"));
        }
        Ok(Self(life))
    }

    async fn on_closing(&mut self, _: &mut CartTurn<'_>, _: CloseReason, _: Instant) -> Result<(), HandlerError> {
        self.0.closes().await;
        Ok(())
    }

    async fn add(&mut self, turn: &mut CartTurn<'_>, _: AddItem) -> Result<(), HandlerError> {
        self.0.handles(turn.metadata()).await.map(drop)
    }

    async fn view(&mut self, turn: &mut CartTurn<'_>, _: Look) -> Result<CartView, HandlerError> {
        self.0.handles(turn.metadata()).await.map(view)
    }

    async fn peek(&mut self, turn: &mut CartTurn<'_>, _: Look) -> Result<CartView, HandlerError> {
        self.0.handles(turn.metadata()).await.map(view)
    }

    async fn checkout(turn: &mut CartYieldTurn<'_, Self>, _: Checkout) -> Result<Receipt, HandlerError> {
        let life = turn.state().0.clone();
        let number = life.sees(turn.metadata())?;
        life.alone(life.nap()).await;
        Ok(Receipt { number })
    }

    async fn drop(&mut self, turn: &mut CartTurn<'_>, _: Knock) -> Result<(), HandlerError> {
        self.0.handles(turn.metadata()).await.map(drop)
    }

    async fn on_expire(_: &mut CartYieldTurn<'_, Self>, _: Tick) -> Result<(), HandlerError> {
        never()
    }
}

/// Says which call it saw.
fn view(number: String) -> CartView {
    CartView {
        items: [(number, 1)].into_iter().collect(),
    }
}

pub(crate) struct Lobby(Life);

impl LobbySpot for Lobby {
    type Player = NoPlayer;

    async fn start(context: LobbyContext) -> Result<Self, HandlerError> {
        let life = Life::begin(context.shared(), context.reference(), None)?;
        life.shared.history.lobby(context.id().to_string());
        life.alone(life.nap()).await;
        Ok(Self(life))
    }

    async fn on_create_player(
        &mut self,
        _: &mut LobbyTurn<'_>,
        _: &mut NoPlayer,
        _: EnterRoom,
    ) -> Result<Admission<()>, HandlerError> {
        Ok(Admission::Rejected(()))
    }

    async fn on_initialize(&mut self, turn: &mut LobbyTurn<'_>) -> Result<(), HandlerError> {
        turn.add_timer(LOBBY_SWEEP, Duration::from_secs(7))?;
        Ok(())
    }

    async fn on_closing(&mut self, _: &mut LobbyTurn<'_>, _: CloseReason, _: Instant) -> Result<(), HandlerError> {
        self.0.closes().await;
        Ok(())
    }

    async fn lookup(&mut self, turn: &mut LobbyTurn<'_>, _: Lookup) -> Result<Found, HandlerError> {
        let number = self.0.handles(turn.metadata()).await?;
        let rooms = SpotId::new(number).into_iter().collect();
        Ok(Found { room: None, rooms })
    }

    async fn greet(&mut self, turn: &mut LobbyTurn<'_>, _: ChatLine) -> Result<(), HandlerError> {
        self.0.handles(turn.metadata()).await.map(drop)
    }

    async fn announced(&mut self, _: &mut LobbyTurn<'_>, message: Announcement) -> Result<(), HandlerError> {
        self.0.hears(message).await
    }

    async fn on_sweep(&mut self, _: &mut LobbyTurn<'_>, _: Tick) -> Result<(), HandlerError> {
        self.0.shared.history.ticked();
        self.0.alone(self.0.nap()).await;
        Ok(())
    }
}
