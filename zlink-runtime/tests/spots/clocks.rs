//! Clocks of the day jump, and nobody owns anything else for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use zlink_runtime::HostBuilder;
use zlink_runtime::error::ErrorKind;
use zlink_runtime::location::{MemoryStore, StoreTime};
use zlink_runtime::testing::Cluster;

use crate::arena::*;
use crate::kit::*;

const HOUR: u64 = 3_600_000;

/// The store's clock is the only one of the day that hosts ever see.
///
/// REQ: LS-036, LS-031, LS-013, LS-001
#[tokio::test(start_paused = true)]
async fn when_the_clock_of_the_day_jumps_an_hour_everything_stays_where_it_is() -> Tested {
    let (cluster, world) = (Cluster::new(70), World::new());
    let day = Arc::new(AtomicU64::new(1_800_000_000_000));
    let (clock, begin) = (day.clone(), tokio::time::Instant::now());
    let store =
        MemoryStore::with_clock(move || StoreTime::from_millis(clock.load(Ordering::Relaxed)).after(begin.elapsed()));
    for name in ["one", "two"] {
        let (store, world) = (store.clone(), world.clone());
        cluster.node(name, move |host: HostBuilder| {
            let host = host.location_store(store.clone()).shared(world.clone());
            host.mesh("world", |mesh| {
                let mesh = mesh.rid_prefix(name).listen(format!("tcp://{name}:1"));
                mesh.object_server(all)
            })
        });
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
    let (forwards, backwards) = (HOUR, HOUR.wrapping_neg());
    for jump in [forwards, backwards, backwards, forwards, forwards] {
        day.fetch_add(jump, Ordering::Relaxed);
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
    Ok(())
}
