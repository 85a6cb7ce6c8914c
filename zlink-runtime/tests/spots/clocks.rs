//! Clocks of the day jump, and nobody owns anything else for it.

use std::time::Duration;

use zlink_runtime::error::ErrorKind;

use crate::arena::*;
use crate::kit::*;

const HOUR: i64 = 3_600_000;

/// The store's clock is the only one of the day that hosts ever see, and in a file that of whoever writes is the store's. Both
/// of these hosts have Spots and call them, so each is the owner and the other the caller.
///
/// REQ: LS-036, LS-031, LS-013, LS-001
#[tokio::test(start_paused = true)]
async fn when_the_clock_of_the_day_jumps_an_hour_everything_stays_where_it_is() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on_a_clock(provider, 70);
        for name in ["one", "two"] {
            serves(&cluster, &world, name);
        }
        start(&cluster).await?;
        let hosts = ["one", "two"].map(|name| cluster.host(name));
        let mut spots = Vec::new();
        for (at, id) in ["a", "b", "c", "d"].into_iter().enumerate() {
            let (_, spot) = room(&hosts[at % 2], id, "ticks").await?;
            spots.push(spot);
            cart_spots(&hosts[at % 2])
                .of(format!("cart-{id}"))
                .view(text("first"))
                .activating()
                .await?;
        }
        for (whose, jump) in [
            ("one", HOUR),
            ("two", -HOUR),
            ("one", -HOUR),
            ("two", HOUR),
            ("two", HOUR),
        ] {
            world.jump(whose, jump);
            let ticks = world.count("ticks");
            // Longer than it takes to count out whoever does not renew.
            cluster.advance(Duration::from_secs(45)).await;
            assert!(world.count("ticks") >= ticks + 4 * 44, "nobody stood still");
            for host in &hosts {
                assert!(host.status().location.unwrap().admits_owned_work);
                for spot in &spots {
                    let (rooms, id) = (room_spots(host), &spot.id);
                    assert_eq!(look(&rooms.of(id), "where").await?, spot.node.to_string());
                    assert_eq!(rooms.find(id).await?.as_ref(), Some(spot));
                    let refused = rooms.release(spot).await.unwrap_err();
                    assert_eq!(refused.kind(), Some(ErrorKind::InvalidOperation), "its host lives");
                    let items = cart_spots(host).of(format!("cart-{id}")).view(text("")).await?;
                    assert_eq!(items.text, "first");
                }
            }
            // And new ones are made as ever.
            assert!(room_spots(&hosts[0]).create(text("x")).await?.reference().is_some());
        }
        assert_eq!(world.count("activate"), 4, "{:?}", world.log());
        cluster.shutdown().await?;
    }
    Ok(())
}
