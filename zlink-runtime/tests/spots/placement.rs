//! Where new Spots are made: on nodes by their placement weights, which change while they serve.

use std::time::Duration;

use zlink_runtime::error::ErrorKind;
use zlink_runtime::prelude::*;

use crate::arena::*;
use crate::kit::*;

const SECOND: Duration = Duration::from_secs(1);

fn weighs(host: &Host, weight: u32) {
    let node = host.mesh("world").unwrap();
    node.set_placement_weight(weight).unwrap();
}

/// The nodes, by the beginnings of their names, that new rooms and carts are made on for each of `hosts`.
async fn made_on(hosts: &[Host], round: &str) -> Result<Vec<String>, Failure> {
    let mut nodes = Vec::new();
    for (at, host) in hosts.iter().enumerate() {
        for number in 0..4 {
            let (one, _) = room(host, &format!("room-{round}-{at}-{number}"), "x").await?;
            nodes.push(look(&one, "where").await?);
            let cart = cart_spots(host).of(format!("cart-{round}-{at}-{number}"));
            nodes.push(cart.view(text("where")).activating().await?.text);
        }
    }
    let begin = |node: String| node.split('-').next().unwrap().to_owned();
    let mut nodes: Vec<_> = nodes.into_iter().map(begin).collect();
    nodes.sort_unstable();
    nodes.dedup();
    Ok(nodes)
}

/// Who is in the store and has no link is asked for nothing: no creation waits for one.
///
/// REQ: LS-005
#[tokio::test(start_paused = true)]
async fn a_node_without_a_link_gets_no_new_room() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 111);
        for name in ["one", "two"] {
            serves(&cluster, &world, name);
        }
        calls(&cluster, "caller");
        start(&cluster).await?;
        let host = cluster.host("caller");
        cluster.network().partition(&["caller"], &["one"]);
        // Until the link is known to be lost; the store names its node still.
        cluster.advance(60 * SECOND).await;
        let began = tokio::time::Instant::now();
        for number in 0..10 {
            let (one, _) = room(&host, &format!("room {number}"), "x").await?;
            assert!(look(&one, "where").await?.starts_with("two"));
        }
        assert!(began.elapsed() < SECOND, "{:?}", began.elapsed());
        cluster.network().heal();
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: LS-058, LS-052
#[tokio::test(start_paused = true)]
async fn a_weight_that_changes_moves_what_is_made_later_and_nothing_else() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 110);
        for name in ["one", "two"] {
            serves_with(&cluster, &world, name, move |objects| {
                all(objects).placement_weight(if name == "one" { 100 } else { 0 })
            });
        }
        calls(&cluster, "caller");
        start(&cluster).await?;
        let hosts = ["one", "two", "caller"].map(|name| cluster.host(name));
        let [one, two, caller] = &hosts;
        assert_eq!(made_on(&hosts, "first").await?, ["one"]);

        // Between its reservation and its end, one of its nodes comes to take none.
        world.holds("create");
        world.holds("activate");
        let creating = tokio::spawn(room_spots(caller).get_or_create("begun", text("x")).into_future());
        world.until("create begun on one").await;
        let cart = cart_spots(caller).of("begun-cart");
        cart.add(text("first")).activating().await?;
        world.until("activate begun-cart").await;
        weighs(one, 0);
        weighs(two, 100);
        cluster.advance(SECOND).await;
        world.open_build(1_000);
        let begun = creating.await??;
        assert!(
            begun.reference().unwrap().node.to_string().starts_with("one"),
            "{begun:?}"
        );
        assert_eq!(cart.view(text("")).await?.text, "first");
        assert!(cart.view(text("where")).await?.text.starts_with("one"));
        assert_eq!(made_on(&hosts, "second").await?, ["two"]);
        for host in &hosts {
            let old = room_spots(host).of("room-first-2-3");
            assert!(look(&old, "where").await?.starts_with("one"), "what it has, it keeps");
        }

        // Whoever links later is told as it is now.
        calls(&cluster, "late");
        cluster.start("late").await?;
        cluster.advance(3 * SECOND).await;
        assert_eq!(made_on(&[cluster.host("late")], "late").await?, ["two"]);

        weighs(two, 0);
        cluster.advance(SECOND).await;
        for host in &hosts {
            let full = room_spots(host).create(text("x")).await.unwrap_err();
            assert_eq!(full.kind(), Some(ErrorKind::CapacityExceeded), "{full}");
            let full = cart_spots(host)
                .of("never")
                .add(text("x"))
                .activating()
                .await
                .unwrap_err();
            assert_eq!(full.kind(), Some(ErrorKind::CapacityExceeded), "{full}");
        }
        weighs(one, 10_000);
        weighs(two, 10_000);
        cluster.advance(SECOND).await;
        assert_eq!(made_on(&hosts, "both").await?, ["one", "two"]);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: LS-058
#[tokio::test(start_paused = true)]
async fn only_a_node_that_can_have_spots_has_a_placement_weight() -> Tested {
    for place in REMOTE {
        let (cluster, _, host) = placed(place, 111).await?;
        let owner = cluster.host("owner");
        let wrong = owner.mesh("world")?.set_placement_weight(10_001).unwrap_err();
        assert!(
            wrong
                .to_string()
                .contains("placement_weight: a weight must be 0 to 10000"),
            "{wrong}"
        );
        let client = host.mesh("world")?.set_placement_weight(1).unwrap_err();
        assert!(client.to_string().contains("no Object Server"), "{client}");
        room(&host, "one", "x").await?;
        cluster.shutdown().await?;
    }
    Ok(())
}
