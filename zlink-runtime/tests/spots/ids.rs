//! IDs of every kind, through generated stubs, on every store: each is an object of its own, wherever it is and whoever
//! calls it.

use std::collections::BTreeSet;

use zlink_generated::arena::*;
use zlink_runtime::error::ErrorKind;
use zlink_runtime::id::SpotId;
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{Created, SpotCreated, SpotRef, Tick};

use crate::kit::{Failure, Tested, World};
use crate::store::Shared;
use crate::stores::{Hosts, kind, on_every_store, soon};

/// What a store, its script or its statement might take for something else.
const AWKWARD: [&str; 20] = [
    "Room",
    "room",
    "n\u{e9}",
    "ne\u{301}",
    "\u{1f3e0}",
    "a/b",
    "a%2Fb",
    "a/",
    "/",
    "//",
    "%",
    "_",
    " ",
    "x",
    "{x}",
    "*",
    "[a-z]",
    "'; --",
    "\"\\",
    "\r\n",
];

/// These, and some as long as an ID can be: of one byte a letter, of four, of three as composed and as not.
pub(crate) fn ids() -> Vec<String> {
    let (long, wide) = ("x".repeat(255), format!("{}abc", "\u{1f3e0}".repeat(63)));
    let (composed, apart) = (
        format!("{}\u{e9}", "a".repeat(253)),
        format!("{}e\u{301}", "a".repeat(252)),
    );
    let escaped = format!("{}{}", "%".repeat(128), "/".repeat(127));
    let mut ids: Vec<String> = AWKWARD.map(str::to_owned).into();
    ids.extend([long[1..].to_owned(), long, wide, composed, apart, escaped]);
    ids
}

fn never<T>() -> Result<T, HandlerError> {
    Err(HandlerError::new("nobody asks for that"))
}

/// A factory runs.
fn made(shared: Option<&World>, id: &SpotId) {
    shared.unwrap().note(format!("made {id}"));
}

struct Room {
    lines: Vec<String>,
}

impl RoomSpot for Room {
    async fn create(context: RoomContext, request: RoomSettings) -> Result<Created<Self, RoomInfo>, HandlerError> {
        assert_eq!(context.id().as_str(), request.motd);
        made(context.shared(), context.id());
        let lines = Vec::new();
        Ok(Created::Accepted(Self { lines }, RoomInfo { motd: request.motd }))
    }

    async fn say(&mut self, _: &mut RoomTurn<'_>, message: ChatLine) -> Result<(), HandlerError> {
        self.lines.push(message.text);
        Ok(())
    }

    async fn look(&mut self, turn: &mut RoomTurn<'_>, _: Look) -> Result<RoomView, HandlerError> {
        Ok(RoomView {
            motd: turn.id().to_string(),
            lines: self.lines.clone(),
            ticks: 0,
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

    async fn on_tick(&mut self, _: &mut RoomTurn<'_>, _: Tick) -> Result<(), HandlerError> {
        never()
    }

    async fn on_bill(_: &mut RoomYieldTurn<'_, Self>, _: Tick) -> Result<(), HandlerError> {
        never()
    }
}

/// It says its own ID as the first of its items.
struct Cart(CartView);

impl CartSpot for Cart {
    async fn activate(context: CartContext) -> Result<Self, HandlerError> {
        made(context.shared(), context.id());
        let mut view = CartView::default();
        view.items.insert(format!("I am {}", context.id()), 0);
        Ok(Self(view))
    }

    async fn add(&mut self, _: &mut CartTurn<'_>, message: AddItem) -> Result<(), HandlerError> {
        *self.0.items.entry(message.item).or_default() += message.count;
        Ok(())
    }

    async fn view(&mut self, _: &mut CartTurn<'_>, _: Look) -> Result<CartView, HandlerError> {
        Ok(self.0.clone())
    }

    async fn peek(&mut self, _: &mut CartTurn<'_>, _: Look) -> Result<CartView, HandlerError> {
        Ok(self.0.clone())
    }

    async fn checkout(_: &mut CartYieldTurn<'_, Self>, _: Checkout) -> Result<Receipt, HandlerError> {
        never()
    }

    async fn drop(&mut self, _: &mut CartTurn<'_>, _: Knock) -> Result<(), HandlerError> {
        Ok(())
    }

    async fn on_expire(_: &mut CartYieldTurn<'_, Self>, _: Tick) -> Result<(), HandlerError> {
        never()
    }
}

async fn hosts(store: &Shared) -> Result<Hosts, Failure> {
    Hosts::start_with(store, 2, |objects| {
        objects.spot(room_spot::<Room>()).spot(cart_spot::<Cart>())
    })
    .await
}

fn settings(id: &str) -> RoomSettings {
    RoomSettings {
        motd: id.to_owned(),
        seats: 0,
    }
}

/// Makes a room of each ID, talks to each from every host, and closes them. Says which they were.
async fn rooms(hosts: &Hosts, ids: &[String]) -> Result<Vec<SpotRef>, Failure> {
    let mut spots = Vec::new();
    for (number, id) in ids.iter().enumerate() {
        let made = room_spots(hosts.any(number)).get_or_create(id, settings(id)).await?;
        let SpotCreated::Created(spot, info) = made else {
            return Err(format!("{id:?}: {made:?}").into());
        };
        assert_eq!((spot.id.as_str(), &info.motd), (&**id, id));
        spots.push(spot);
    }
    // Each is with one of two hosts, and each of three calls it: who has it, who has others, and who has none.
    let nodes: BTreeSet<_> = spots.iter().map(|spot| &spot.node).collect();
    assert_eq!(nodes.len(), 2);
    let mut said = Vec::new();
    for (at, host) in hosts.hosts.iter().enumerate() {
        said.push(at);
        for (id, spot) in ids.iter().zip(&spots) {
            assert_eq!(room_spots(host).find(id).await?.as_ref(), Some(spot));
            let room = room_spots(host).of(id);
            let text = format!("{at}: {id}");
            room.say(ChatLine { text }).await?;
            let view = room.look(Look {}).await?;
            let lines: Vec<_> = said.iter().map(|at| format!("{at}: {id}")).collect();
            assert_eq!((&view.motd, view.lines), (id, lines), "nothing of any other");
            let again = room_spots(host).get_or_create(id, settings("another")).await?;
            assert!(
                matches!(&again, SpotCreated::Existing(found) if found == spot),
                "{again:?}"
            );
        }
    }
    for (number, (id, spot)) in ids.iter().zip(&spots).enumerate() {
        assert!(room_spots(hosts.any(number)).close(spot).await?, "{id:?}");
        for host in &hosts.hosts {
            assert_eq!(room_spots(host).find(id).await?, None, "{id:?}");
            let gone = kind(room_spots(host).of(id).look(Look {}).await);
            assert_eq!(gone, Some(ErrorKind::NotFound), "{id:?}");
        }
    }
    Ok(spots)
}

/// The same with carts, which their first message makes, and their last one closes.
async fn carts(hosts: &Hosts, ids: &[String]) -> Result<Vec<SpotRef>, Failure> {
    let mut spots = Vec::new();
    for (number, id) in ids.iter().enumerate() {
        let host = hosts.any(number);
        let cold = kind(cart_spots(host).of(id).view(Look {}).await);
        assert_eq!(cold, Some(ErrorKind::NotFound), "{id:?}: it may not make one");
        let cart = cart_spots(host).of(id);
        let (item, count) = (id.clone(), 1);
        cart.add(AddItem { item, count }).activating().await?;
        let view = soon(cart.view(Look {})).await?;
        assert_eq!(view.items.len(), 2, "{id:?}: it is new: {view:?}");
        spots.push(cart_spots(host).find(id).await?.unwrap());
    }
    let nodes: BTreeSet<_> = spots.iter().map(|spot| &spot.node).collect();
    assert_eq!(nodes.len(), 2);
    for (at, host) in hosts.hosts.iter().enumerate() {
        for (id, spot) in ids.iter().zip(&spots) {
            assert_eq!(cart_spots(host).find(id).await?.as_ref(), Some(spot));
            let cart = cart_spots(host).of(id);
            let (item, count) = (id.clone(), 1);
            cart.add(AddItem { item, count }).activating().await?;
            let view = cart.peek(Look {}).activating().await?;
            let items: Vec<_> = view.items.iter().map(|(item, count)| (item.clone(), *count)).collect();
            let mut expected = vec![(format!("I am {id}"), 0), (id.clone(), u32::try_from(at)? + 2)];
            expected.sort_unstable();
            assert_eq!(items, expected, "nothing of any other");
        }
    }
    for (number, (id, spot)) in ids.iter().zip(&spots).enumerate() {
        cart_spots(hosts.any(number)).of(id).drop(Knock {}).await?;
        let caller = hosts.caller();
        let gone = soon(async {
            while cart_spots(caller).find(id).await?.as_ref() == Some(spot) {
                tokio::task::yield_now().await;
            }
            cart_spots(caller).find(id).await
        });
        assert_eq!(gone.await?, None, "{id:?}");
    }
    Ok(spots)
}

/// REQ: SP-001, SP-002, SP-060, LS-011
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_every_store_each_id_is_an_object_of_its_own_wherever_it_is() -> Tested {
    on_every_store(async |store| {
        let hosts = hosts(store).await?;
        let ids = ids();
        let mut rounds = Vec::new();
        for _ in 0..2 {
            rounds.push(soon(rooms(&hosts, &ids)).await?);
        }
        for _ in 0..2 {
            rounds.push(soon(carts(&hosts, &ids)).await?);
        }
        for (before, after) in rounds.iter().zip(&rounds[1..]) {
            for (old, new) in before.iter().zip(after) {
                assert!(new.generation > old.generation, "{store:?}: {old:?}, {new:?}");
            }
        }
        assert_eq!(hosts.world.log().len(), 4 * ids.len(), "{store:?}");
        hosts.stop().await?;
        Ok(())
    })
    .await
}

/// REQ: SP-001, SP-006
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_every_store_what_is_no_id_is_refused_before_anybody_is_asked() -> Tested {
    on_every_store(async |store| {
        let hosts = hosts(store).await?;
        let (long, wide) = ("x".repeat(256), "\u{1f3e0}".repeat(64));
        for bad in ["", "a\0b", "\0", &long, &wide] {
            for host in &hosts.hosts {
                let (rooms, carts) = (room_spots(host), cart_spots(host));
                let (room, cart) = (rooms.of(bad), carts.of(bad));
                let (text, item) = (String::new(), String::new());
                let refused = [
                    kind(rooms.get_or_create(bad, settings(bad)).await),
                    kind(rooms.find(bad).await),
                    kind(carts.find(bad).await),
                    kind(room.look(Look {}).await),
                    kind(room.say(ChatLine { text }).await),
                    kind(cart.add(AddItem { item, count: 1 }).activating().await),
                    kind(cart.peek(Look {}).activating().await),
                    kind(cart.drop(Knock {}).await),
                ];
                assert_eq!(refused, [None; 8], "{store:?}, {bad:?}: each is an argument error");
            }
        }
        let entry = "owner-entry-8f14e45f-ceea-467f-9b1d-3c5b4a1d2e3f";
        for host in &hosts.hosts {
            let room = kind(room_spots(host).get_or_create(entry, settings(entry)).await);
            let cart = kind(cart_spots(host).of(entry).peek(Look {}).activating().await);
            assert_eq!(
                (room, cart),
                (Some(ErrorKind::InvalidOperation), Some(ErrorKind::InvalidOperation))
            );
        }
        assert_eq!(hosts.world.log().len(), 0, "{store:?}");
        hosts.stop().await?;
        Ok(())
    })
    .await
}
