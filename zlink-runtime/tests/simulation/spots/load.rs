//! What the nodes ask of Spots: two callers on each ask one thing after the other, and sometimes many ask at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use zlink_generated::arena::*;
use zlink_runtime::error::CallError;
use zlink_runtime::prelude::*;
use zlink_runtime::rt::SpotCreated;

use super::history::{Caller, Kind, Outcome};
use super::objects::NUMBER;
use super::world::{Climate, World};
use crate::world::NODES;

/// Callers on each node that ask one thing after the other.
const CALLERS: usize = 2;

/// Asks, and notes how it ended. What is not over after `patience` is dropped.
pub(crate) async fn ask(
    world: &World,
    (from, host): (Caller, Host),
    kind: Kind,
    spot: &str,
    timeout: Duration,
    patience: Option<Duration>,
) -> Outcome {
    let number = world.history.begin(from.clone(), kind, spot, timeout);
    let call = async {
        match ended(world, &host, kind, spot, number, timeout).await {
            Ok(outcome) => outcome,
            Err(CallError::Failed(error)) => {
                Outcome::Failed(error.kind(), error.execution(), error.message().to_owned())
            }
            Err(error) => panic!("{kind:?} was made wrongly: {error}"),
        }
    };
    let outcome = match patience {
        None => call.await,
        Some(patience) => tokio::time::timeout(patience, call).await.unwrap_or(Outcome::Cancelled),
    };
    let network = world.cluster.network();
    network.note(format!("{:?} {number} {kind:?} {spot}: {outcome:?}", from.0));
    world.history.end(number, outcome.clone());
    outcome
}

async fn ended(
    world: &World,
    host: &Host,
    kind: Kind,
    spot: &str,
    number: u64,
    timeout: Duration,
) -> Result<Outcome, CallError> {
    let said = number.to_string();
    let (rooms, carts, lobbies) = (room_spots(host), cart_spots(host), lobby_spots(host));
    let (room, cart, lobby) = (rooms.of(spot), carts.of(spot), lobbies.of(spot));
    let settings = RoomSettings {
        motd: said.clone(),
        ..RoomSettings::default()
    };
    let created = |created: SpotCreated<RoomInfo>| match created {
        SpotCreated::Created(spot, info) => Outcome::Created(spot, info.motd),
        SpotCreated::Existing(spot) => Outcome::Existing(spot),
        SpotCreated::Rejected(info) => Outcome::Rejected(info.motd),
    };
    let replied = |view: CartView| Outcome::Reply(view.items.into_keys().collect());
    let reference = world.history.reference(spot);
    Ok(match (kind, reference) {
        (Kind::GetOrCreate, _) => created(rooms.get_or_create(spot, settings).timeout(timeout).await?),
        (Kind::Create, _) => created(rooms.create(settings).timeout(timeout).await?),
        (Kind::Close, Some(spot)) => Outcome::Did(rooms.close(&spot).timeout(timeout).await?),
        (Kind::Release, Some(spot)) => Outcome::Did(rooms.release(&spot).timeout(timeout).await?),
        (Kind::Find | Kind::Close | Kind::Release, _) if spot.starts_with("cart") => {
            Outcome::Found(carts.find(spot).timeout(timeout).await?)
        }
        (Kind::Find | Kind::Close | Kind::Release, _) => Outcome::Found(rooms.find(spot).timeout(timeout).await?),
        (Kind::Say, _) => accepted(room.say(ChatLine::default()).metadata(NUMBER, said.as_str()).await?),
        (Kind::Look, _) => {
            let call = room.look(Look {}).metadata(NUMBER, said.as_str());
            Outcome::Reply(call.timeout(timeout).await?.motd)
        }
        (Kind::Settle, _) => {
            let cents = i64::try_from(number).unwrap();
            let call = room.settle(Settle { cents }).metadata(NUMBER, said.as_str());
            Outcome::Reply(call.timeout(timeout).await?.number)
        }
        (Kind::Disband, _) => {
            let call = room.disband(Look {}).metadata(NUMBER, said.as_str());
            Outcome::Reply(call.timeout(timeout).await?.motd)
        }
        (Kind::Add, _) => {
            let call = cart.add(AddItem::default()).metadata(NUMBER, said.as_str());
            accepted(call.activating().await?)
        }
        (Kind::Peek, _) => {
            let call = cart.peek(Look {}).metadata(NUMBER, said.as_str());
            replied(call.activating().timeout(timeout).await?)
        }
        (Kind::View, _) => {
            let call = cart.view(Look {}).metadata(NUMBER, said.as_str());
            replied(call.timeout(timeout).await?)
        }
        (Kind::Checkout, _) => {
            let call = cart.checkout(Checkout {}).metadata(NUMBER, said.as_str());
            Outcome::Reply(call.timeout(timeout).await?.number)
        }
        (Kind::Drop, _) => accepted(cart.drop(Knock {}).metadata(NUMBER, said.as_str()).await?),
        (Kind::Greet, _) => accepted(lobby.greet(ChatLine::default()).metadata(NUMBER, said.as_str()).await?),
        (Kind::Lookup, _) => {
            let call = lobby.lookup(Lookup::default()).metadata(NUMBER, said.as_str());
            let found = call.timeout(timeout).await?.rooms;
            Outcome::Reply(found.iter().map(ToString::to_string).collect())
        }
        (Kind::Publish, _) => accepted(rooms.publish_announced(Announcement { text: said }).await?),
    })
}

fn accepted((): ()) -> Outcome {
    Outcome::Accepted
}

/// What somebody asks next.
fn choose(world: &World) -> (Kind, String) {
    let dice = &world.dice;
    let (room, cart) = (dice.below(world.rooms), dice.below(world.carts));
    let lobby = || {
        let lobbies = world.history.lobbies();
        // Of those that were last, some may be gone.
        lobbies[lobbies.len().saturating_sub(1 + dice.below(NODES.len()))].clone()
    };
    let (room, cart) = (format!("room-{room}"), format!("cart-{cart}"));
    let ends = world.climate == Climate::Rough;
    match dice.below(100) {
        0..=17 => (Kind::Add, cart),
        18..=32 => (Kind::Peek, cart),
        33..=37 => (Kind::View, cart),
        38 if ends => (Kind::Checkout, cart),
        39 if ends => (Kind::Drop, cart),
        40 | 41 if ends => (Kind::Release, if dice.percent(50) { cart } else { room }),
        42 if ends => (Kind::Close, room),
        43 if ends => (Kind::Disband, room),
        44 if ends => (Kind::Create, "new".to_owned()),
        45..=48 => (Kind::Find, if dice.percent(50) { cart } else { room }),
        49..=62 => (Kind::GetOrCreate, room),
        63..=66 => (Kind::Settle, room),
        67..=78 => (Kind::Say, room),
        79..=81 => (Kind::Publish, "all".to_owned()),
        82..=84 => (Kind::Greet, lobby()),
        85..=87 => (Kind::Lookup, lobby()),
        _ => (Kind::Look, room),
    }
}

/// The callers of all nodes, until they are told to stop.
pub(crate) struct Load {
    /// How long a caller rests at most, in milliseconds; 0 ends it.
    pause: Arc<AtomicUsize>,
    callers: Vec<JoinHandle<Vec<JoinHandle<()>>>>,
}

impl Load {
    pub(crate) fn start(world: &Arc<World>) -> Self {
        let pause = Arc::new(AtomicUsize::new(600));
        let callers = NODES
            .into_iter()
            .flat_map(|name| (0..CALLERS).map(move |number| (name, number)));
        let callers = callers.map(|(name, number)| tokio::spawn(drive(world.clone(), name, number, pause.clone())));
        Self {
            callers: callers.collect(),
            pause,
        }
    }

    /// How long a caller rests at most from here on.
    pub(crate) fn pause(&self, millis: usize) {
        self.pause.store(millis, Ordering::Relaxed);
    }

    /// Begins nothing more, and waits until all that was begun has ended. Whatever never ends hangs here, and is found.
    pub(crate) async fn stop(self) {
        self.pause(0);
        for caller in self.callers {
            for one in caller.await.unwrap() {
                one.await.unwrap();
            }
        }
    }
}

async fn drive(world: Arc<World>, name: &'static str, number: usize, pause: Arc<AtomicUsize>) -> Vec<JoinHandle<()>> {
    let (dice, mut crowd) = (world.dice.clone(), Vec::new());
    loop {
        let most = pause.load(Ordering::Relaxed);
        if most == 0 {
            return crowd;
        }
        world.cluster.advance(dice.millis(5, most)).await;
        if !world.cluster.is_running(name) {
            continue;
        }
        let (rid, host) = (world.rid(name), world.cluster.host(name));
        let count = if dice.percent(2) { 20 } else { 0 };
        for _ in 0..count {
            let (world, from, (kind, spot)) = (world.clone(), ((rid.clone(), None), host.clone()), choose(&world));
            let timeout = dice.millis(30, 4_000);
            crowd.push(tokio::spawn(async move {
                ask(&world, from, kind, &spot, timeout, None).await;
            }));
        }
        let (kind, spot) = choose(&world);
        let timeout = dice.millis(30, if dice.percent(10) { 40_000 } else { 4_000 });
        let patience = dice.percent(5).then(|| dice.millis(1, 60));
        ask(&world, ((rid, Some(number)), host), kind, &spot, timeout, patience).await;
    }
}
