//! Rooms, carts and guests on two nodes, in virtual time: what `docs/objects.md` says of them.

use std::sync::Arc;
use std::time::Duration;

use rooms::chat::{self, Ask, Basket, Enter, Item, Line, OpenRoom, Opened};
use rooms::{Archive, all_rooms};
use zlink_runtime::prelude::*;
use zlink_runtime::testing::Cluster;
use zlink_runtime::{ActorCreated, HostBuilder, SpotCreated};

type Tested = Result<(), Box<dyn std::error::Error>>;

/// Two nodes with one store, and what both archive.
async fn open() -> Result<(Cluster, Arc<Archive>), Box<dyn std::error::Error>> {
    let (cluster, archive) = (Cluster::new(5), Arc::<Archive>::default());
    for name in ["north", "south"] {
        let (store, archive) = (cluster.store(name), archive.clone());
        cluster.node(name, move |host: HostBuilder| {
            rooms::node(host, store.clone(), archive.clone())
        });
    }
    cluster.start_all().await?;
    cluster.advance(Duration::from_secs(3)).await;
    let south = cluster.host("south").mesh("chat")?.rid();
    let north = cluster.host("north");
    north.mesh("chat")?.linked(&south, Duration::from_secs(5)).await?;
    Ok((cluster, archive))
}

fn topic(topic: &str) -> OpenRoom {
    OpenRoom { topic: topic.into() }
}

fn line(text: &str) -> Line {
    Line { text: text.into() }
}

#[tokio::test(start_paused = true)]
async fn a_room_hears_grows_quiet_and_closes() -> Tested {
    let (cluster, archive) = open().await?;
    let rooms = chat::room_spots(&cluster.host("north"));
    let refused = rooms.get_or_create("tea", topic("")).await?;
    let text = "a room has a topic".to_owned();
    assert_eq!(refused, SpotCreated::Rejected(Opened { text }));
    let opened = rooms.get_or_create("tea", topic("tea")).await?;
    let tea = rooms.of("tea");
    tea.say(line("hello")).await?;
    rooms.publish_announced(line("we close at ten")).await?;
    cluster.advance(Duration::from_secs(30)).await;
    let view = tea.look(Ask {}).await?;
    assert_eq!(
        (view.lines.join(", ").as_str(), view.quiet),
        ("hello, we close at ten", false)
    );
    cluster.advance(Duration::from_secs(31)).await;
    assert!(tea.look(Ask {}).await?.quiet);
    let other = rooms.create(topic("cats")).await?;
    let (Some(tea_room), Some(other)) = (opened.reference(), other.reference()) else {
        panic!("{opened:?}, {other:?}")
    };
    let mut all = vec![tea_room.id.clone(), other.id.clone()];
    let mut listed = all_rooms(&cluster.host("south")).await?;
    all.sort();
    listed.sort();
    assert_eq!(listed, all);
    tea.leave(Ask {}).await?;
    cluster.advance(Duration::from_secs(1)).await;
    assert_eq!(cluster.host("south").find_spot("tea").await?, None);
    assert!(rooms.close(other).await?);
    assert!(archive.lines().contains(&"tea: ExplicitClose".to_owned()));
    cluster.shutdown().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_cart_is_made_by_an_item_and_leaves_when_it_is_idle() -> Tested {
    let (cluster, _) = open().await?;
    let host = cluster.host("south");
    let (rooms, carts) = (chat::room_spots(&host), chat::cart_spots(&host));
    rooms.get_or_create("tea", topic("tea")).await?;
    let (name, cents) = ("scones".to_owned(), 350);
    carts.of("cart:tea").add(Item { name, cents }).activating().await?;
    assert_eq!(rooms.of("tea").bill(Ask {}).await?.cents, 350);
    assert_eq!(rooms.of("tea").look(Ask {}).await?.lines, ["that is 350 cents"]);
    cluster.advance(Duration::from_secs(700)).await;
    assert_eq!(carts.find("cart:tea").await?, None, "nobody used it for ten minutes");
    let none = carts.of("cart:tea").checkout(Ask {}).await.unwrap_err();
    assert_eq!(none.kind(), Some(ErrorKind::NotFound), "{none}");
    assert_eq!(rooms.of("tea").bill(Ask {}).await?, Basket::default(), "made anew");
    carts.of("cart:tea").checkout(Ask {}).await?;
    cluster.shutdown().await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_guest_is_admitted_by_the_lobby_of_its_node() -> Tested {
    let (cluster, _) = open().await?;
    let guests = chat::guest_actors(&cluster.host("north"));
    let enter = |name: &str| Enter { name: name.into() };
    let nobody = guests.create("nobody", enter("nobody")).await?;
    assert!(matches!(nobody, ActorCreated::Rejected(_)), "{nobody:?}");
    let ada = guests.create("ada", enter("Ada")).await?;
    assert!(matches!(ada, ActorCreated::Created(..)), "{ada:?}");
    guests.of("ada").hear(line("hello")).await?;
    assert_eq!(guests.of("ada").heard(Ask {}).await?.lines, ["Ada heard hello"]);
    cluster.shutdown().await?;
    Ok(())
}
