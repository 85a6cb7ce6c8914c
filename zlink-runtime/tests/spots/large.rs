//! First messages and requests to create that are too large for a record: kept elsewhere as long as the record points there.

use std::time::Duration;

use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::id::SpotId;
use zlink_runtime::location::{BlobRef, BootClock, Fault, LocationTiming, Operation};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::SpotCreated;
use zlink_runtime::testing::Cluster;
use zlink_runtime::testing::authority::{Owner, Seen};

use crate::arena::*;
use crate::far;
use crate::kit::*;
use crate::stores::on_every_store;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// More than a record holds.
fn long(start: &str) -> String {
    format!("{start}{}", "x".repeat(300_000))
}

/// Somebody who looks at the store of `cluster`.
async fn observer(cluster: &Cluster) -> Result<Owner, Failure> {
    let (store, _) = far::observer(cluster);
    Ok(Owner::start(store, LocationTiming::default(), BootClock::of_tokio(), "observer", 1).await?)
}

/// What the record of that Spot points at, of a Spot that is there.
async fn pointed(observer: &Owner, id: &str) -> Result<Option<BlobRef>, Failure> {
    match observer.resolve(&SpotId::new(id)?).await {
        Seen::Ready(spot) | Seen::Creating(spot) => {
            assert_eq!(spot.inbox().len(), 0, "it is here or there");
            Ok(spot.blob())
        }
        other => Err(format!("{other:?}").into()),
    }
}

async fn is_there(cluster: &Cluster, blob: &BlobRef) -> Result<bool, Failure> {
    Ok(far::observer(cluster).1.get(blob).await?.is_some())
}

/// REQ: LS-004, LS-071, SP-031, LS-014
#[tokio::test(start_paused = true)]
async fn a_large_first_message_is_kept_until_it_is_handled() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 140).await?;
        let observer = observer(&cluster).await?;
        world.holds("activate");
        let cart = cart_spots(&host).of("cart");
        cart.add(text(&long("gate"))).activating().await?;
        cart.add(text("second")).await?;
        world.until("held in activate").await;
        let blob = pointed(&observer, "cart").await?.unwrap();
        assert!(is_there(&cluster, &blob).await?, "what is pointed at is there");
        world.open_build(1);
        cluster.advance(SECOND).await;
        assert_eq!(
            pointed(&observer, "cart").await?,
            Some(blob.clone()),
            "it is being handled"
        );
        assert!(is_there(&cluster, &blob).await?);
        world.open(1);
        cluster.advance(SECOND).await;
        assert_eq!(pointed(&observer, "cart").await?, None);
        assert!(!is_there(&cluster, &blob).await?, "nothing is left behind");
        assert_eq!(cart.view(text("")).await?.text, format!("{},second", long("gate")));
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: LS-045
#[tokio::test(start_paused = true)]
async fn a_small_first_message_is_in_the_record_until_it_is_handled() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 182).await?;
        let observer = observer(&cluster).await?;
        let id = SpotId::new("cart")?;
        let kept = async || match observer.resolve(&id).await {
            Seen::Ready(spot) => Ok(!spot.inbox().is_empty()),
            other => Err(Failure::from(format!("{other:?}"))),
        };
        let cart = cart_spots(&host).of("cart");
        cart.add(text("gate")).activating().await?;
        cluster.advance(SECOND).await;
        assert!(kept().await?, "{place:?}: it is being handled");
        world.open(1);
        cart.add(text("second")).await?;
        cluster.advance(SECOND).await;
        assert!(!kept().await?, "{place:?}: it is done with");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// The store does not answer as the first message comes to its end: what was kept of it goes once it does again.
///
/// REQ: LS-045, LS-071
#[tokio::test(start_paused = true)]
async fn a_first_message_that_ends_while_the_store_fails_is_not_kept_for_ever() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 183).await?;
        let observer = observer(&cluster).await?;
        let cart = cart_spots(&host).of("cart");
        cart.add(text(&long("gate"))).activating().await?;
        cluster.advance(SECOND).await;
        let blob = pointed(&observer, "cart").await?.unwrap();
        let faults = cluster.store_faults("owner");
        faults.every(Operation::Write, Fault::Error);
        world.open(1);
        cluster.advance(SECOND).await;
        faults.heal();
        cluster.advance(5 * SECOND).await;
        assert_eq!(cart.view(text("")).await?.text, long("gate"));
        assert_eq!(pointed(&observer, "cart").await?, None, "{place:?}");
        assert!(!is_there(&cluster, &blob).await?, "{place:?}");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: LS-004, SP-081, MSG-507
#[tokio::test(start_paused = true)]
async fn a_large_request_creates_a_room() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 141).await?;
        let observer = observer(&cluster).await?;
        world.holds("create");
        let call = room_spots(&host).get_or_create("one", text(&long("")));
        let creating = tokio::spawn(call.into_future());
        world.until("held in create").await;
        let blob = pointed(&observer, "one").await?.unwrap();
        assert!(is_there(&cluster, &blob).await?);
        world.open_build(1);
        creating.await??;
        cluster.advance(SECOND).await;
        assert!(!is_there(&cluster, &blob).await?, "the request is done with");
        assert_eq!(look(&room_spots(&host).of("one"), "lines").await?, long(""));

        // Rejected or failed, it leaves nothing behind either: what is written is deleted.
        world.open_build(2);
        let written = cluster.store_faults("owner").begun(Operation::BlobWrite);
        let rejected = room_spots(&host).get_or_create("two", text(&long("reject"))).await?;
        assert_eq!(rejected, SpotCreated::Rejected(text("no")));
        let failed = room_spots(&host)
            .get_or_create("two", text(&long("fail")))
            .await
            .unwrap_err();
        assert_eq!(failed.kind(), Some(ErrorKind::InternalFailure), "{failed}");
        cluster.advance(SECOND).await;
        assert_eq!(cluster.store_faults("owner").begun(Operation::BlobWrite) - written, 4);
        let large = room_spots(&host).create(text(&"x".repeat(1 << 20))).await.unwrap_err();
        assert_eq!(large.kind(), None, "more than 1 MiB: {large}");
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: LS-004, LS-070, SP-060
#[tokio::test(start_paused = true)]
async fn what_cannot_be_kept_makes_nothing() -> Tested {
    for place in EVERYWHERE {
        let (cluster, world, host) = placed(place, 142).await?;
        let cart = cart_spots(&host).of("cart");
        let faults = cluster.store_faults("owner");
        for operation in [Operation::BlobWrite, Operation::BlobRead] {
            faults.every(operation, Fault::Error);
            let failed = cart.view(text(&long(""))).activating().await.unwrap_err();
            assert_eq!(
                (failed.kind(), failed.execution()),
                (Some(ErrorKind::Unavailable), Execution::NotExecuted),
                "{failed}"
            );
            faults.heal();
            assert_eq!(cart_spots(&host).find("cart").await?, None);
        }
        assert_eq!(world.count("activate"), 0);
        faults.next(Operation::BlobWrite, Fault::LostAnswer);
        assert_eq!(
            cart.view(text(&long(""))).activating().await?.text,
            long(""),
            "it was there all the same"
        );
        cluster.shutdown().await?;
    }
    Ok(())
}

/// REQ: LS-071, LS-004
#[tokio::test(start_paused = true)]
async fn what_nothing_points_at_goes_after_a_day_and_nothing_else_does() -> Tested {
    for provider in PROVIDERS {
        let (cluster, world) = on(provider, 143);
        let (with_store, shared) = (far::with_store(&cluster, "owner"), world.clone());
        cluster.node("owner", move |host| {
            let mut timing = LocationTiming::default();
            // So that days do not take long.
            (timing.renew_interval, timing.lease_ttl, timing.poll_interval) = (HOUR / 6, HOUR, HOUR / 6);
            let host = with_store(host).shared(shared.clone()).location_timing(timing);
            host.mesh("world", |mesh| mesh.listen("tcp://owner:1").object_server(all))
        });
        cluster.start_all().await?;
        let cart = cart_spots(&cluster.host("owner")).of("cart");
        cart.add(text(&long("gate"))).activating().await?;
        cluster.advance(SECOND).await;
        let eyes = observer(&cluster).await?;
        let blob = pointed(&eyes, "cart").await?.unwrap();
        eyes.kill();
        cluster.advance(40 * HOUR).await;
        assert!(is_there(&cluster, &blob).await?, "its message is not handled yet");
        cluster.kill("owner");
        cluster.advance(11 * HOUR).await;
        assert!(is_there(&cluster, &blob).await?);
        cluster.advance(25 * HOUR).await;
        assert!(!is_there(&cluster, &blob).await?, "nobody is left to handle it");
        world.open(1);
    }
    Ok(())
}

/// REQ: LS-003
#[tokio::test]
async fn a_store_of_blobs_is_the_stores_own_or_another_or_none() -> Tested {
    on_every_store(async |store| {
        for (own, registered) in [(true, 0), (false, 0), (false, 1), (false, 2)] {
            let world = World::new();
            let host = Host::builder().shared(world.clone());
            let mut host = match own {
                true => host.location_store(store.open()),
                // Not known to be both.
                false => host.location_store(store.open().open().await?),
            };
            for _ in 0..registered {
                host = host.relocation_store(store.blobs());
            }
            let host = host
                .mesh("world", |mesh| mesh.listen("tcp://127.0.0.1:0").object_server(all))
                .start()
                .await;
            if registered == 2 {
                let failed = host.unwrap_err();
                assert!(
                    failed.to_string().contains("relocation_store: is given twice"),
                    "{failed}"
                );
                continue;
            }
            let host = host?;
            let viewed = cart_spots(&host).of("cart").view(text(&long(""))).activating().await;
            if own || registered == 1 {
                assert_eq!(viewed?.text, long(""));
            } else {
                let failed = viewed.unwrap_err();
                assert_eq!(failed.kind(), Some(ErrorKind::NotConfigured), "{failed}");
                cart_spots(&host).of("cart").view(text("short")).activating().await?;
            }
            host.shutdown().await?;
        }
        Ok(())
    })
    .await
}
