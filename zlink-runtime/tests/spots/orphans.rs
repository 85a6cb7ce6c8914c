//! What is left behind by hosts that died while they made it, or while they had it: nobody has to ask for it to go.

use std::collections::BTreeMap;
use std::time::Duration;

use zlink_runtime::error::ErrorKind;
use zlink_runtime::id::SpotId;
use zlink_runtime::location::{Batch, Condition, Faults, Key, LocationStore, Mutation, Scan, Scanned, Written};

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

/// All that is in the store, by what its keys begin with.
async fn all_keys(store: &dyn LocationStore) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for (key, _) in stored(store, "").await {
        let kind = key.as_str().split(['/', ':']).next().unwrap();
        *all.entry(kind.to_owned()).or_default() += 1;
    }
    all
}

/// However many hosts there were, and however they ended: nothing is left of them but what is Ready and was released by nobody.
/// Nor does whoever looks for what they have left look through all that ever were.
///
/// REQ: LS-057
#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_hosts_that_come_and_go() -> Tested {
    const HOSTS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 309);
        calls(&cluster, "caller");
        start(&cluster).await?;
        let host = cluster.host("caller");
        let (rooms, carts) = (room_spots(&host), cart_spots(&host));
        let (store, _) = far::observer(&cluster);
        for (at, name) in HOSTS.into_iter().enumerate() {
            serves_with(&cluster, &world, name, |objects| {
                all(objects).entry(lobby_spot::<Lobby>())
            });
            cluster.start(name).await?;
            cluster.advance(Duration::from_secs(3)).await;
            let (_, spot) = room(&host, &format!("room {at}"), "x").await?;
            carts.of(format!("cart {at}")).view(text("x")).activating().await?;
            let cart = carts.find(format!("cart {at}")).await?.unwrap();
            if at % 3 == 0 {
                assert!(rooms.close(&spot).await?);
                cluster.stop(name).await?;
                continue;
            }
            cluster.kill(name);
            assert!(rooms.release(&spot).timeout(Duration::from_secs(60)).await?);
            if at != 1 {
                assert!(carts.release(&cart).timeout(Duration::from_secs(60)).await?);
            }
            // Nobody is there who would have removed it.
            assert_ne!(stored(&*store, "taken/").await.len(), 0, "{name} has left nothing");
        }
        serves(&cluster, &world, "last");
        cluster.start("last").await?;
        // Answers to creations are kept for five minutes.
        cluster.advance(Duration::from_secs(600)).await;
        let mut left = all_keys(&*store).await;
        left.remove("stamp");
        // Of the host whose cart nobody has released all stays that is known of it: the cart, its entry in that host's list,
        // the room and the Entry Spot that were taken, and how the three are counted. The living have written, too.
        let expected = [
            ("capacity", 3),
            ("lease", 2),
            ("node", 2),
            ("r", 1),
            ("s", 1),
            ("taken", 2),
            ("writer", 3),
        ];
        let expected: BTreeMap<_, _> = expected.map(|(kind, count)| (kind.to_owned(), count)).into();
        assert_eq!(left, expected, "{provider:?}");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Whoever was away for so long that nothing says any more what was taken from it, or only a part, knows that all was.
///
/// REQ: LS-033, LS-034, LS-036
#[tokio::test(start_paused = true)]
async fn who_comes_back_after_all_that_it_had_is_forgotten_runs_nothing_of_it() -> Tested {
    // Of 300, 256 are removed first.
    for (provider, rest) in PROVIDERS
        .into_iter()
        .flat_map(|provider| [(provider, 0), (provider, 44)])
    {
        let (cluster, world, host) = placed(Place(Placement::Remote, provider), 310).await?;
        serves(&cluster, &world, "other");
        let mut spots = Vec::new();
        for number in 0..300 {
            spots.push(room(&host, &format!("room {number}"), "x").await?);
        }
        let one = &spots[0].0;
        one.say(text("gate")).await?;
        one.say(text("never")).await?;
        world.until("say waits").await;
        cluster.start("other").await?;
        cluster.advance(Duration::from_secs(3)).await;
        let (store, _) = far::observer(&cluster);
        cluster.store_faults("owner").cut();
        cluster.advance(Duration::from_secs(20)).await;
        let other = cluster.host("other");
        for (_, spot) in &spots {
            assert!(
                room_spots(&other)
                    .release(spot)
                    .timeout(Duration::from_secs(60))
                    .await?
            );
        }
        let (again, _) = room(&other, "room 0", "again").await?;
        while stored(&*store, "taken/").await.len() > rest {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(stored(&*store, "taken/").await.len(), rest);
        let away = ["other", "caller"].map(|name| cluster.store_faults(name));
        if rest > 0 {
            away.iter().for_each(Faults::cut);
        }
        world.open(1);
        cluster.store_faults("owner").heal();
        cluster.advance(Duration::from_secs(30)).await;
        away.iter().for_each(Faults::heal);
        cluster.advance(Duration::from_secs(10)).await;
        assert_eq!(world.count("room 0 heard"), 0, "{provider:?}: {:?}", world.log());
        assert_eq!(look(&again, "lines").await?, "again");
        // It goes on, and counts right.
        let owner = cluster.host("owner");
        assert!(owner.status().location.unwrap().admits_owned_work);
        for (_, spot) in &spots[1..] {
            room(&owner, spot.id.as_str(), "anew").await?;
        }
        for (_, spot) in &spots[1..] {
            let spot = room_spots(&owner).find(&spot.id).await?.unwrap();
            assert!(room_spots(&owner).close(&spot).await?);
        }
        let counters = stored(&*store, "capacity/").await;
        assert_eq!(counters.len(), 2, "{provider:?}: those of room 0: {counters:?}");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// Whoever finds that the store has lost all has lost what it owned, too: others may make it anew.
///
/// REQ: LS-067, LS-001
#[tokio::test(start_paused = true)]
async fn nothing_goes_on_of_which_the_store_has_lost_every_record() -> Tested {
    for place in REMOTE {
        let (cluster, world, host) = placed(place, 311).await?;
        let (_, spot) = room(&host, "room", "ticks").await?;
        world.until("ticks").await;
        let (store, _) = far::observer(&cluster);
        let all = stored(&*store, "").await;
        let all: Vec<_> = all.into_iter().map(|(key, _)| Mutation::Delete(key)).collect();
        let removed = store.write(&Batch::new([], all)?).await?;
        assert!(matches!(removed, Written::Applied { .. }));
        // By its next renewal it knows.
        cluster.advance(Duration::from_secs(10)).await;
        let ticks = world.count("ticks");
        cluster.advance(Duration::from_secs(20)).await;
        assert_eq!(world.count("ticks"), ticks, "{:?}", world.log());
        let (again, anew) = room(&host, "room", "again").await?;
        assert!(anew.generation > spot.generation);
        assert_eq!(look(&again, "lines").await?, "again");
        cluster.shutdown().await?;
    }
    Ok(())
}
