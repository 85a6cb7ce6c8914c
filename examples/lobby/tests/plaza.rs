//! The plaza on two and on three nodes, in virtual time, without a socket.

use std::time::Duration;

use lobby::plaza::{self, Announcement, Checkout, Item, Line, Look, OpenRoom};
use zlink_runtime::HostBuilder;
use zlink_runtime::prelude::*;
use zlink_runtime::testing::Cluster;

const NAMES: [&str; 3] = ["north", "east", "west"];

/// The hosts of `nodes` nodes, the last of which is told nothing of where anything is.
async fn open(nodes: usize) -> Result<Cluster, Box<dyn std::error::Error>> {
    let cluster = Cluster::new(7);
    for name in NAMES.into_iter().take(nodes) {
        let store = cluster.store(name);
        cluster.node(name, move |host: HostBuilder| {
            let host = host.location_store(store.clone());
            host.mesh("plaza", |mesh| {
                lobby::serves(mesh.rid_prefix(name).listen(format!("tcp://{name}:1")))
            })
        });
    }
    cluster.start_all().await?;
    cluster.advance(Duration::from_secs(3)).await;
    Ok(cluster)
}

#[tokio::test(start_paused = true)]
async fn rooms_are_the_same_from_every_node() -> Result<(), Box<dyn std::error::Error>> {
    for nodes in [2, 3] {
        let cluster = open(nodes).await?;
        let hosts: Vec<_> = NAMES.iter().take(nodes).map(|name| cluster.host(name)).collect();
        for (at, host) in hosts.iter().enumerate() {
            // Every node opens every room; the first one to do so makes it.
            for room in ["chess", "tea"] {
                let open = OpenRoom { topic: room.into() };
                plaza::room_spots(host).get_or_create(room, open).await?;
                let line = Line {
                    guest: format!("guest {at}"),
                    text: "hello".into(),
                };
                plaza::room_spots(host).of(room).say(line).await?;
                // A look from the same node comes after what it said.
                let view = plaza::room_spots(host).of(room).look(Look {}).await?;
                assert_eq!(view.lines.len(), at + 1, "{room} on {nodes} nodes");
            }
        }
        let text = "closing".to_owned();
        plaza::room_spots(&hosts[0])
            .publish_announced(Announcement { text })
            .await?;
        cluster.advance(Duration::from_secs(1)).await;
        for host in &hosts {
            for room in ["chess", "tea"] {
                let view = plaza::room_spots(host).of(room).look(Look {}).await?;
                assert_eq!(view.heard, ["closing"], "once, wherever {room} is");
            }
        }
        cluster.shutdown().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_cart_begins_with_its_first_item_and_ends_with_the_checkout() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = open(3).await?;
    let cart = |name: &str| plaza::cart_spots(&cluster.host(name)).of("cart-42");
    let item = |name: &str, cents| Item {
        name: name.into(),
        cents,
    };
    let none = cart("north").view(Look {}).await.unwrap_err();
    assert_eq!(none.kind(), Some(ErrorKind::NotFound), "looking makes no cart");
    for (from, what, cents) in [("north", "scones", 350), ("east", "tea", 220), ("west", "jam", 90)] {
        // Each waits for the one before: a request is answered behind what was sent first.
        cart(from).add(item(what, cents)).activating().await?;
        cart(from).view(Look {}).activating().await?;
    }
    let basket = cart("west").checkout(Checkout {}).activating().await?;
    assert_eq!(
        (basket.items.join(" "), basket.cents),
        ("scones tea jam".to_owned(), 660)
    );
    cluster.advance(Duration::from_secs(1)).await;
    let gone = cart("north").view(Look {}).await.unwrap_err();
    assert_eq!(gone.kind(), Some(ErrorKind::NotFound), "{gone}");
    cluster.shutdown().await?;
    Ok(())
}

#[test]
fn the_program_ends_well() {
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_lobby")).output();
    let ran = ran.expect("the example runs");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(said.contains("Ada pays 570 cents"), "{said}");
}
