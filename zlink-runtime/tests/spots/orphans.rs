//! What is left behind by hosts that died while they made it, or while they had it: nobody has to ask for it to go.

use std::time::Duration;

use zlink_runtime::error::ErrorKind;
use zlink_runtime::id::SpotId;
use zlink_runtime::location::{Batch, Condition, Key, LocationStore, Mutation, Scan, Scanned, Written};

use crate::arena::*;
use crate::far;
use crate::kit::*;

async fn stored(store: &dyn LocationStore, prefix: &str) -> Vec<(Key, Vec<u8>)> {
    let Scanned::Page(page) = store.scan(&Scan::new(prefix, 1000).unwrap()).await.unwrap() else {
        panic!("a first page is never expired");
    };
    let entries = page.entries.into_iter();
    entries.map(|(key, stored)| (key, stored.value.to_vec())).collect()
}

/// REQ: LS-044, LS-013, SP-005
#[tokio::test(start_paused = true)]
async fn creations_and_entry_spots_of_a_dead_host_go_by_themselves_and_what_was_ready_stays() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 95);
        serves_with(&cluster, &world, "owner", |objects| {
            all(objects).entry(lobby_spot::<Lobby>())
        });
        calls(&cluster, "caller");
        start(&cluster).await?;
        let host = cluster.host("caller");
        let entry = world.log()[0].strip_prefix("start ").unwrap().to_owned();
        let (_, ready) = room(&host, "ready", "x").await?;
        world.holds("create");
        world.holds("activate");
        let rooms = room_spots(&host);
        drop(tokio::spawn(
            rooms
                .get_or_create("room", text("x"))
                .timeout(Duration::from_secs(5))
                .into_future(),
        ));
        cart_spots(&host).of("cart").add(text("x")).activating().await?;
        cluster.advance(Duration::from_secs(10)).await;
        assert_eq!(world.count("held in"), 2, "{:?}", world.log());
        cluster.kill("owner");
        let find = async |id: &str| host.find_spot(&SpotId::new(id).unwrap()).await;
        cluster.advance(Duration::from_secs(5)).await;
        for id in ["room", "cart", &entry, "ready"] {
            assert!(
                find(id).await?.is_some(),
                "{id}: nobody knows yet that its host is dead"
            );
        }
        // TTL and margin until that is proved, and a TTL until all was looked through.
        cluster.advance(Duration::from_secs(45)).await;
        for id in ["room", "cart", &entry] {
            assert_eq!(find(id).await?.map(|found| found.state), None, "{id}");
        }
        assert_eq!(
            find("ready").await?.unwrap().reference,
            ready,
            "only who is asked to releases it"
        );
        let told = look(&rooms.of("ready"), "lines").await.unwrap_err();
        assert_eq!(told.kind(), Some(ErrorKind::Unavailable));
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: LS-044
#[tokio::test(start_paused = true)]
async fn what_dead_hosts_have_left_is_gone_before_the_next_one_serves() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = placed(place, 96).await?;
        world.holds("activate");
        cart_spots(&host).of("cart").add(text("x")).activating().await?;
        world.until("held in activate").await;
        let (store, _) = far::observer(&cluster);
        cluster.kill("owner");
        cluster.kill("caller");
        // As if somebody had counted it out, and had died, too.
        for (key, _) in stored(&*store, "lease/").await {
            let removed = store.write(&Batch::new([], [Mutation::Delete(key)])?).await;
            assert!(matches!(removed, Ok(Written::Applied { .. })), "{removed:?}");
        }
        assert_eq!(stored(&*store, "s:4:cart").await.len(), 1);
        serves(&cluster, &world, "next");
        cluster.start("next").await?;
        assert_eq!(stored(&*store, "s:4:cart").await.len(), 0);
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: LS-044
#[tokio::test(start_paused = true)]
async fn a_reservation_of_this_host_that_nobody_here_holds_is_aborted() -> Tested {
    for place in LOCAL {
        let (cluster, world, host) = placed(place, 97).await?;
        let (store, _) = far::observer(&cluster);
        world.holds("create");
        let rooms = room_spots(&host);
        let creating = tokio::spawn(rooms.get_or_create("room", text("x")).into_future());
        world.until("held in create").await;
        cluster.advance(Duration::from_secs(20)).await;
        let mut left = stored(&*store, "s:4:room").await;
        assert_eq!(left.len(), 1, "what is held stays");
        left.extend(stored(&*store, "r/").await);
        left.extend(stored(&*store, "capacity/").await);
        world.open_build(1);
        let spot = creating.await??.reference().unwrap().clone();
        assert!(rooms.close(&spot).await?);
        // It stands there again, as if it had never been ended.
        let conditions = [Condition::Missing(left[0].0.clone())];
        let mutations: Vec<_> = left.into_iter().map(|(key, value)| Mutation::put(key, value)).collect();
        let written = store.write(&Batch::new(conditions, mutations)?).await?;
        assert!(matches!(written, Written::Applied { .. }));
        cluster.advance(Duration::from_secs(40)).await;
        assert_eq!(stored(&*store, "s:4:room").await.len(), 0);
        assert_eq!(stored(&*store, "r/").await.len(), 0);
        world.open_build(1);
        room(&host, "room", "again").await?;
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Whoever looks for what dead hosts have left does not look through all that ever were.
#[tokio::test(start_paused = true)]
async fn no_host_that_has_gone_is_looked_through_for_ever() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = placed(place, 309).await?;
        let (store, _) = far::observer(&cluster);
        cart_spots(&host).of("cart").view(text("a")).activating().await?;
        let wrote = stored(&*store, "writer/").await;
        assert_eq!(wrote.len(), 1, "it has written what it owns");
        cluster.stop("owner").await?;
        serves(&cluster, &world, "next");
        cluster.start("next").await?;
        cluster.advance(Duration::from_secs(40)).await;
        let left = stored(&*store, "writer/").await;
        assert!(left.iter().all(|(key, _)| *key != wrote[0].0), "{left:?}");
        cluster.shutdown().await?;
    }
    Ok(())
}
