//! Two nodes with rooms and carts, then three, and a guest who only calls: `cargo run -p lobby`. All of them could be programs
//! on machines of their own; the store would then be Redis, and nothing else would change.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use lobby::plaza::{self, Announcement, Basket, Checkout, Greet, Item, Line, Look, OpenRoom};
use zlink_runtime::SpotCreated;
use zlink_runtime::location::MemoryStore;
use zlink_runtime::prelude::*;

const ROOMS: [&str; 6] = ["chess", "cooking", "gardens", "jazz", "sailing", "tea"];

/// What was promised, and how much of it was kept.
#[derive(Default)]
struct Kept {
    lobbies: usize,
    greeted: usize,
    rooms: usize,
    made_once: usize,
    heard_once: usize,
    carts: usize,
    emptied: usize,
}

impl Kept {
    fn is_all(&self) -> bool {
        self.greeted == self.lobbies
            && self.made_once == self.rooms
            && self.heard_once == self.rooms
            && self.emptied == self.carts
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "of {} lobbies {} greeted their guest; of {} rooms {} were made once, kept what was said and are found from everywhere, and {} heard the announcement \
             once; of {} carts {} had all their items and went with the checkout",
            self.lobbies, self.greeted, self.rooms, self.made_once, self.heard_once, self.carts, self.emptied
        )
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut kept = Kept::default();
    for names in [&["north", "east"][..], &["north", "east", "west"]] {
        println!("== {} nodes", names.len());
        plaza(names, &mut kept).await?;
    }
    println!("promised and kept, on two nodes and on three: {kept}");
    if kept.is_all() {
        Ok(())
    } else {
        Err("not all of that was kept".into())
    }
}

/// A day of the plaza on nodes of these names.
async fn plaza(names: &[&str], kept: &mut Kept) -> Result<(), Box<dyn Error>> {
    let store = MemoryStore::new();
    let mut nodes = Vec::new();
    for name in names {
        let host = Host::builder()
            .location_store(store.clone())
            .mesh("plaza", |mesh| lobby::serves(mesh.rid_prefix(*name)));
        nodes.push(host.start().await?);
    }
    let guest = Host::builder().location_store(store.clone()).mesh("plaza", |mesh| {
        mesh.rid_prefix("guest").client(lobby::NEWS).object_client()
    });
    let guest = guest.start().await?;
    guest
        .mesh("plaza")?
        .ready(lobby::NEWS, names.len(), Duration::from_secs(10))
        .await?; // all of them are found

    println!("-- a greeting in the lobby of each node");
    let lobbies = guest.mesh("plaza")?.entry_spots();
    kept.lobbies += names.len();
    for (node, lobby) in &lobbies {
        let guest_is = Greet { guest: "Ada".into() };
        let greeting = plaza::lobby_spots(&guest).of(lobby).greet(guest_is).await?;
        println!("{:8} {}", short(&node.to_string()), greeting.text);
        kept.greeted += usize::from(greeting.text == "Welcome, Ada! You are guest 1 here.");
    }

    let rooms = plaza::room_spots(&guest);
    println!("-- six rooms, opened by name");
    let mut made = BTreeSet::new();
    for topic in ROOMS {
        let open = || OpenRoom { topic: topic.into() };
        let opened = rooms.get_or_create(topic, open()).await?;
        let line = Line {
            guest: "Ada".into(),
            text: "hello".into(),
        };
        rooms.of(topic).say(line).await?;
        // Whoever comes later, and from elsewhere, finds the same one.
        let again = plaza::room_spots(&nodes[0]).get_or_create(topic, open()).await?;
        if let (SpotCreated::Created(one, _), SpotCreated::Existing(other)) = (opened, again)
            && one == other
        {
            made.insert(topic);
        }
    }

    println!("-- one announcement, for whoever is there");
    let text = "The plaza closes at ten.".to_owned();
    rooms.publish_announced(Announcement { text: text.clone() }).await?;
    let mut homes = BTreeSet::new();
    for topic in ROOMS {
        let mut view = rooms.of(topic).look(Look {}).await?;
        // To publish is to have sent it; rooms hear of it a moment later.
        while view.heard.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
            view = rooms.of(topic).look(Look {}).await?;
        }
        println!(
            "{topic:8} on {}: {:?}, heard {:?}",
            short(&view.node),
            view.lines,
            view.heard
        );
        kept.rooms += 1;
        kept.made_once += usize::from(made.contains(topic) && view.lines == ["Ada: hello"]);
        kept.heard_once += usize::from(view.heard == [text.as_str()]);
        homes.insert(view.node);
    }
    println!("   they live on {} nodes", homes.len());

    println!("-- a cart: its first item makes it, the checkout ends it");
    let basket = shop(&guest).await?;
    println!("Ada pays {} cents for {:?}", basket.cents, basket.items);
    let carts = plaza::cart_spots(&guest);
    // It closes behind its last message.
    while carts.find("cart of Ada").await?.is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    kept.carts += 1;
    match carts.of("cart of Ada").view(Look {}).await {
        Err(error) => {
            println!("and the cart is gone: {error}");
            kept.emptied += usize::from(basket.items == ["scones", "tea"] && basket.cents == 570);
        }
        Ok(basket) => println!("but the cart is still there: {basket:?}"),
    }

    guest.shutdown().await?;
    for node in nodes {
        node.shutdown().await?;
    }
    Ok(())
}

/// Ada shops, from wherever `host` is.
async fn shop(host: &Host) -> Result<Basket, CallError> {
    let cart = plaza::cart_spots(host).of("cart of Ada");
    for (name, cents) in [("scones", 350), ("tea", 220)] {
        let name = name.to_owned();
        cart.add(Item { name, cents }).activating().await?; // the first one makes the cart
    }
    cart.checkout(Checkout {}).activating().await
}

fn short(node: &str) -> &str {
    node.split('-').next().unwrap_or(node)
}
