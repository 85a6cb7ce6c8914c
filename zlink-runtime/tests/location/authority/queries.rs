//! What a host is told of the Spots in its Location Store, by itself and in pages.

use zlink_runtime::error::{CallError, ErrorKind};
use zlink_runtime::id::MeshName;
use zlink_runtime::location::{Fault, Faults, Operation};
use zlink_runtime::{Host, SpotEntryState, SpotQuery};

use super::*;

async fn asking(far: &Far, faults: &Faults) -> Host {
    let host = Host::builder()
        .location_store(far.open("asking", faults).0)
        .boot_clock(BootClock::of_tokio());
    host.start().await.unwrap()
}

async fn owner(far: &Far) -> Arc<Owner> {
    troubled(far, &Faults::new(2), 1).await
}

async fn made(owner: &Owner, ask: Ask) -> Spot {
    let reservation = reserved(owner.reserve(ask).await);
    ready(owner.commit(reservation, b"").await)
}

/// All pages of one round.
async fn listed(host: &Host, query: &SpotQuery) -> Result<Vec<zlink_runtime::SpotEntry>, CallError> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = host.list_spots(query, after.as_ref()).await?;
        all.extend(page.spots);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(all),
        }
    }
}

/// REQ: LS-110
#[tokio::test(start_paused = true)]
async fn pages_of_every_size_show_every_spot_once() {
    for provider in PROVIDERS {
        let far = Far::new(provider);
        let (host, owner) = (asking(&far, &Faults::new(1)).await, owner(&far).await);
        for number in 0..1001 {
            made(&owner, Ask::new(&id(&format!("user {number}")), number)).await;
        }
        for (number, stable_type) in [(2001, "cart"), (2002, "cart"), (2003, "box")] {
            let ask = Ask {
                kind: SpotKind::Instance,
                stable_type: SpotType::from_static(stable_type),
                ..Ask::new(&id(&format!("instance {number}")), number)
            };
            made(&owner, ask).await;
        }
        let users = SpotQuery::new(SpotKind::User);
        for size in [1, 100, 1000] {
            let all = listed(&host, &users.clone().page_size(size)).await.unwrap();
            let distinct: BTreeSet<_> = all.iter().map(|entry| entry.reference.id.clone()).collect();
            assert_eq!((all.len(), distinct.len()), (1001, 1001), "{size} on a page");
            assert!(all.iter().all(|entry| entry.state == SpotEntryState::Ready));
        }
        let page = host.list_spots(&users, None).await.unwrap();
        assert_eq!((page.spots.len(), page.next.is_some()), (100, true));
        let carts = SpotQuery::new(SpotKind::Instance).of_type(SpotType::from_static("cart"));
        assert_eq!(listed(&host, &carts).await.unwrap().len(), 2);
        let elsewhere = carts.in_mesh(MeshName::from_static("elsewhere"));
        assert_eq!(listed(&host, &elsewhere).await, Ok(vec![]));
        for size in [0, 1001] {
            let refused = host.list_spots(&users.clone().page_size(size), None).await;
            assert!(matches!(refused, Err(CallError::Argument(_))), "{refused:?}");
        }
    }
}

/// REQ: LS-110, LS-104
#[tokio::test(start_paused = true)]
async fn one_spot_and_how_it_stands() {
    for provider in PROVIDERS {
        let far = Far::new(provider);
        let (host, owner) = (asking(&far, &Faults::new(1)).await, owner(&far).await);
        assert_eq!(host.find_spot(&id("a")).await, Ok(None));
        let reservation = reserved(owner.reserve(Ask::new(&id("a"), 1)).await);
        let entry = host.find_spot(&id("a")).await.unwrap().unwrap();
        assert_eq!(entry.state, SpotEntryState::Creating);
        let spot = ready(owner.commit(reservation, b"").await);
        let entry = host.find_spot(&id("a")).await.unwrap().unwrap();
        assert_eq!(
            (entry.reference, entry.state),
            (spot.reference(), SpotEntryState::Ready)
        );
        owner.kill();
        // It is asked for now and then, as an operator would.
        let begun = tokio::time::Instant::now();
        let dead = loop {
            let entry = host.find_spot(&id("a")).await.unwrap().unwrap();
            if entry.state == SpotEntryState::Unavailable {
                break entry;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{entry:?}");
            tokio::time::sleep(Duration::from_secs(1)).await;
        };
        assert_eq!(dead.reference, spot.reference(), "and can be released by it");
        let all = listed(&host, &SpotQuery::new(SpotKind::User)).await.unwrap();
        assert_eq!(all, [dead], "it stays");
    }
}

/// REQ: LS-111, LS-102
#[tokio::test(start_paused = true)]
async fn a_page_that_fails_shows_nothing() {
    for provider in PROVIDERS {
        let far = Far::new(provider);
        let faults = Faults::new(1);
        let (host, owner) = (asking(&far, &faults).await, owner(&far).await);
        for number in 0..30 {
            made(&owner, Ask::new(&id(&format!("{number}")), number)).await;
        }
        let query = SpotQuery::new(SpotKind::User).page_size(20);
        // What there is can be listed, whether its owner lives cannot be known.
        faults.every(Operation::Read, Fault::Error);
        let failed = host.list_spots(&query, None).await.unwrap_err();
        assert_eq!(failed.kind(), Some(ErrorKind::Unavailable));
        faults.heal();
        let first = host.list_spots(&query, None).await.unwrap();
        faults.next(Operation::Scan, Fault::Error);
        let failed = host.list_spots(&query, first.next.as_ref()).await.unwrap_err();
        assert_eq!(failed.kind(), Some(ErrorKind::Unavailable));
        let second = host.list_spots(&query, first.next.as_ref()).await.unwrap();
        assert_eq!((first.spots.len(), second.spots.len(), second.next), (20, 10, None));
        faults.every(Operation::Read, Fault::Error);
        let failed = host.find_spot(&id("1")).await.unwrap_err();
        assert_eq!(failed.kind(), Some(ErrorKind::Unavailable));

        let without = Host::builder().start().await.unwrap();
        let refused = without.find_spot(&id("1")).await.unwrap_err();
        assert_eq!(refused.kind(), Some(ErrorKind::NotConfigured));
    }
}

/// REQ: LS-112
#[tokio::test(start_paused = true)]
async fn what_changes_during_a_round_is_not_shown_twice() {
    for provider in PROVIDERS {
        let far = Far::new(provider);
        let (host, owner) = (asking(&far, &Faults::new(1)).await, owner(&far).await);
        let mut random = Random(5);
        let mut there = BTreeMap::new();
        for number in 0..60_u128 {
            let name = id(&format!("{number}"));
            there.insert(number, made(&owner, Ask::new(&name, number)).await);
        }
        let stays: BTreeSet<_> = (0..20).map(|number| id(&format!("{number}"))).collect();
        let query = SpotQuery::new(SpotKind::User).page_size(7);
        let (mut seen, mut after, mut operation) = (Vec::new(), None, 1000);
        loop {
            let page = host.list_spots(&query, after.as_ref()).await.unwrap();
            seen.extend(page.spots.into_iter().map(|entry| entry.reference.id));
            for _ in 0..5 {
                let number = 20 + random.below(60) as u128;
                operation += 1;
                match there.remove(&number) {
                    Some(spot) => assert!(matches!(owner.delete(&spot).await, Seen::Removed)),
                    None => {
                        let ask = Ask::new(&id(&format!("{number}")), operation);
                        there.insert(number, made(&owner, ask).await);
                    }
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        let distinct: BTreeSet<_> = seen.iter().cloned().collect();
        assert_eq!(distinct.len(), seen.len());
        assert!(distinct.is_superset(&stays), "what stays is shown");
    }
}
