//! Three nodes with rooms and carts, and a guest who only calls: `cargo run -p lobby`. All four could be programs on
//! machines of their own; the store would then be Redis, and nothing else would change.

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use lobby::plaza::{self, Announcement, Basket, Checkout, Item, Line, Look, OpenRoom};
use zlink_runtime::location::MemoryStore;
use zlink_runtime::prelude::*;

const ROOMS: [&str; 6] = ["chess", "cooking", "gardens", "jazz", "sailing", "tea"];

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = MemoryStore::new();
    let mut nodes = Vec::new();
    for name in ["north", "east", "west"] {
        let host = Host::builder()
            .location_store(store.clone())
            .mesh("plaza", |mesh| lobby::serves(mesh.rid_prefix(name)));
        nodes.push(host.start().await?);
    }
    let guest = Host::builder().location_store(store.clone()).mesh("plaza", |mesh| {
        mesh.rid_prefix("guest").client(lobby::NEWS).object_client()
    });
    let guest = guest.start().await?;
    guest
        .mesh("plaza")?
        .ready(lobby::NEWS, 3, Duration::from_secs(10))
        .await?; // all three are found
    let rooms = plaza::room_spots(&guest);

    println!("-- six rooms, opened by name");
    for topic in ROOMS {
        rooms.get_or_create(topic, OpenRoom { topic: topic.into() }).await?;
        let line = Line {
            guest: "Ada".into(),
            text: "hello".into(),
        };
        rooms.of(topic).say(line).await?;
    }

    println!("-- one announcement, for whoever is there");
    let text = "The plaza closes at ten.".to_owned();
    rooms.publish_announced(Announcement { text }).await?;
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
    match carts.of("cart of Ada").view(Look {}).await {
        Err(error) => println!("and the cart is gone: {error}"),
        Ok(basket) => return Err(format!("the cart is still there: {basket:?}").into()),
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
