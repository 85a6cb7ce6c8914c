//! The authority of Spots on every store: one suite, in real time; and in virtual time, while the store fails.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use zlink_runtime::id::{SpotId, SpotKind, SpotType};
use zlink_runtime::location::{BootClock, Faults, LocationStore, LocationTiming};
use zlink_runtime::testing::authority::{Ask, Owner, Reservation, Seen, Spot};

use crate::far::Far;
use crate::store::{PROVIDERS, Shared};

mod fenced;
mod ids;
mod model;
mod queries;
mod returned;

/// A host on that store, in real time.
async fn host_with(store: &Shared, number: u64, timing: LocationTiming) -> Arc<Owner> {
    let (store, node) = (store.open().open().await.unwrap(), format!("node-{number}"));
    let owner = Owner::start(store, timing, BootClock::system(), &node, number).await;
    Arc::new(owner.unwrap())
}

async fn host(store: &Shared, number: u64) -> Arc<Owner> {
    host_with(store, number, LocationTiming::default()).await
}

/// A host in virtual time.
async fn started(store: Arc<dyn LocationStore>, number: u64) -> Arc<Owner> {
    let (clock, node) = (BootClock::of_tokio(), format!("node-{number}"));
    let owner = Owner::start(store, LocationTiming::default(), clock, &node, number).await;
    Arc::new(owner.unwrap())
}

/// The same, with what goes wrong on its way to that store.
async fn troubled(far: &Far, faults: &Faults, number: u64) -> Arc<Owner> {
    let store = far.open(&format!("node-{number}"), faults).0;
    started(Arc::new(store), number).await
}

fn id(text: &str) -> SpotId {
    SpotId::new(text).unwrap()
}

fn reserved(seen: Seen) -> Reservation {
    match seen {
        Seen::Reserved(reservation) => reservation,
        other => panic!("not reserved: {other:?}"),
    }
}

fn ready(seen: Seen) -> Spot {
    match seen {
        Seen::Ready(spot) => spot,
        other => panic!("not ready: {other:?}"),
    }
}

/// SplitMix64: the same choices for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((bits ^ (bits >> 31)) % bound as u64).unwrap()
    }
}

/// REQ: LS-012, LS-020, LS-040, LS-042, LS-043, LS-060
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_life_of_a_spot() {
    for stores in Shared::every() {
        let (host, other) = (host(&stores, 1).await, host(&stores, 2).await);
        let cart = id("cart/7");
        let ask = Ask {
            kind: SpotKind::Instance,
            inbox: Bytes::from_static(b"first"),
            ..Ask::new(&cart, 1)
        };
        assert!(matches!(host.resolve(&cart).await, Seen::Missing));
        let reservation = reserved(host.reserve(ask.clone()).await);
        let spot = reservation.spot().unwrap();
        assert_eq!(
            spot.generation().get(),
            spot.version(),
            "the revision of its first batch"
        );
        assert!(matches!(other.resolve(&cart).await, Seen::Creating(seen) if seen == spot));
        assert!(matches!(host.reserve(ask.clone()).await, Seen::Issued(seen) if seen == spot));
        let differs = Ask {
            inbox: Bytes::new(),
            ..ask.clone()
        };
        assert!(matches!(host.reserve(differs).await, Seen::Conflict));
        let lost = other.reserve(Ask::new(&cart, 1)).await;
        assert!(matches!(lost, Seen::Other(seen) if seen == spot));
        assert_eq!(host.counted(None).await, Ok((0, 1)));
        assert!(matches!(host.preserve(&spot, Bytes::new()).await, Seen::Conflict));
        assert!(matches!(host.delete(&spot).await, Seen::Conflict), "it is not made yet");
        assert!(matches!(host.resolve(&cart).await, Seen::Creating(seen) if seen == spot));

        let made = ready(host.commit(reservation, b"here").await);
        assert!(matches!(other.resolve(&cart).await, Seen::Ready(seen) if seen == made));
        assert_eq!((made.generation(), made.owner_generation()), (spot.generation(), 1));
        assert_eq!(&*made.inbox(), b"first");
        assert_eq!(
            host.counted(Some((SpotKind::Instance, &ask.stable_type))).await,
            Ok((1, 0))
        );
        assert_eq!(host.answer(1).await, Ok(Some((true, Bytes::from_static(b"here")))));
        assert_eq!(other.answer(1).await, Ok(None), "an operation of somebody else");

        let done = ready(host.preserve(&made, Bytes::new()).await);
        assert_eq!(
            (done.generation(), done.owner_generation(), &*done.inbox()),
            (made.generation(), 1, &b""[..])
        );
        assert!(matches!(host.preserve(&made, Bytes::new()).await, Seen::Conflict));
        assert!(matches!(host.delete(&made).await, Seen::Other(seen) if seen == done));
        assert!(matches!(host.delete(&done).await, Seen::Removed));
        assert!(matches!(host.delete(&done).await, Seen::Missing));
        assert_eq!(host.counted(None).await, Ok((0, 0)));
        assert_eq!(host.owned().await, Ok(vec![]));

        let reservation = reserved(other.reserve(Ask::new(&cart, 2)).await);
        assert!(reservation.spot().unwrap().generation() > made.generation());
        assert!(matches!(other.abort(reservation, b"no").await, Seen::Removed));
        assert_eq!(other.answer(2).await, Ok(Some((false, Bytes::from_static(b"no")))));
        assert_eq!(other.counted(None).await, Ok((0, 0)));
    }
}

/// REQ: LS-042, LS-043, LS-060, AC-097
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_ended_is_not_begun_again() {
    for stores in Shared::every() {
        let (host, other) = (host(&stores, 1).await, host(&stores, 2).await);
        let room = id("room");
        let spot = ready(
            host.commit(reserved(host.reserve(Ask::new(&room, 1)).await), b"here")
                .await,
        );
        assert!(
            matches!(host.reserve(Ask::new(&room, 1)).await, Seen::Over),
            "it is there"
        );
        assert!(matches!(host.reserve(Ask::new(&room, 2)).await, Seen::Other(seen) if seen == spot));
        assert!(matches!(host.delete(&spot).await, Seen::Removed));
        assert!(
            matches!(host.reserve(Ask::new(&room, 1)).await, Seen::Over),
            "and so it is now"
        );
        assert!(matches!(host.resolve(&room).await, Seen::Missing));
        let theirs = reserved(other.reserve(Ask::new(&room, 1)).await);
        assert!(
            matches!(other.abort(theirs, b"no").await, Seen::Removed),
            "an operation of somebody else"
        );
        assert!(matches!(other.reserve(Ask::new(&room, 1)).await, Seen::Over));
        // A message is never asked for again, and has no answer in the store that it would have to go by.
        let cart = |operation| Ask {
            kind: SpotKind::Instance,
            ..Ask::new(&room, operation)
        };
        let first = ready(host.commit(reserved(host.reserve(cart(7)).await), b"").await);
        assert!(matches!(host.reserve(cart(7)).await, Seen::Other(seen) if seen == first));
    }
}

/// REQ: LS-041, LS-060, LS-010
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_64_racers_one_wins() {
    for stores in Shared::every() {
        let hosts = [host(&stores, 1).await, host(&stores, 2).await, host(&stores, 3).await];
        for round in 0..5 {
            let spot = id(&format!("room {round}"));
            let mut racers = JoinSet::new();
            for racer in 0..64_u128 {
                let host = hosts[usize::try_from(racer % 3).unwrap()].clone();
                let ask = Ask {
                    kind: [SpotKind::User, SpotKind::Instance][usize::try_from(racer % 2).unwrap()],
                    ..Ask::new(&spot, round * 64 + racer)
                };
                racers.spawn(async move {
                    match host.reserve(ask).await {
                        Seen::Reserved(reservation) => {
                            let generation = reservation.spot().unwrap().generation();
                            ready(host.commit(reservation, b"").await);
                            (1, generation)
                        }
                        Seen::Other(other) => (0, other.generation()),
                        other => panic!("{other:?}"),
                    }
                });
            }
            let ended = racers.join_all().await;
            assert_eq!(ended.iter().map(|(won, _)| won).sum::<u32>(), 1);
            let generations: BTreeSet<_> = ended.iter().map(|(_, generation)| generation.get()).collect();
            assert_eq!(generations.len(), 1, "all have seen the one that won");
        }
        let mut active = 0;
        for host in &hosts {
            active += host.counted(None).await.unwrap().0;
        }
        assert_eq!(active, 5);
    }
}

/// REQ: LS-015, LS-040, LS-060
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn capacity_is_never_exceeded() {
    const ROOMS: u32 = 6;
    const SPOTS: u32 = 9;
    for stores in Shared::every() {
        let (host, watcher) = (host(&stores, 1).await, host(&stores, 2).await);
        let highest = Arc::new(Mutex::new(BTreeMap::<&str, u32>::new()));
        let mut racers = JoinSet::new();
        for racer in 0..40_u128 {
            let (host, highest) = (host.clone(), highest.clone());
            let (name, of_type) = if racer % 2 == 0 { ("room", ROOMS) } else { ("hall", 0) };
            racers.spawn(async move {
                let mut random = Random(u64::try_from(racer).unwrap());
                let mut refused = 0;
                for round in 0..15 {
                    let ask = Ask {
                        stable_type: SpotType::new(name).unwrap(),
                        spots: SPOTS,
                        of_type,
                        ..Ask::new(&id(&format!("{racer} {round}")), racer * 100 + round)
                    };
                    match host.reserve(ask).await {
                        Seen::Reserved(reservation) => {
                            *highest.lock().entry(name).or_default() += 1;
                            let ended = |name| *highest.lock().get_mut(name).unwrap() -= 1;
                            let all: u32 = highest.lock().values().sum();
                            assert!(all <= SPOTS && highest.lock().get("room").is_none_or(|rooms| *rooms <= ROOMS));
                            if random.below(3) == 0 {
                                ended(name);
                                assert!(matches!(host.abort(reservation, b"").await, Seen::Removed));
                            } else {
                                let spot = ready(host.commit(reservation, b"").await);
                                ended(name);
                                assert!(matches!(host.delete(&spot).await, Seen::Removed));
                            }
                        }
                        Seen::NoCapacity => refused += 1,
                        other => panic!("{other:?}"),
                    }
                }
                refused
            });
        }
        let counting = async {
            loop {
                let (active, reserved) = host.counted(None).await.unwrap();
                assert!(active + reserved <= SPOTS);
                let room = SpotType::from_static("room");
                let (active, reserved) = host.counted(Some((SpotKind::User, &room))).await.unwrap();
                assert!(active + reserved <= ROOMS);
                tokio::task::yield_now().await;
            }
        };
        let refused: u32 = tokio::select! {
            refused = racers.join_all() => refused.into_iter().sum(),
            () = counting => unreachable!("it counts for ever"),
        };
        assert!(refused > 0, "there was room for all: nothing was shown");
        assert_eq!(host.counted(None).await, Ok((0, 0)));
        assert_eq!(watcher.counted(None).await, Ok((0, 0)));
    }
}

/// Whoever holds a Spot is the only one; what is dropped halfway is gone in the end.
///
/// REQ: LS-001, LS-007, LS-040, LS-044, LS-060
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_owned_twice_and_nothing_stays() {
    for stores in Shared::every() {
        let hosts = [host(&stores, 1).await, host(&stores, 2).await, host(&stores, 3).await];
        /// The host that holds each ID, and the last generation that was seen of it.
        type Held = Arc<Mutex<BTreeMap<usize, (bool, u64)>>>;
        let held = Held::default();
        let mut racers = JoinSet::new();
        for racer in 0..24_usize {
            let (host, held) = (hosts[racer % 3].clone(), held.clone());
            racers.spawn(async move {
                let mut random = Random(racer as u64);
                for round in 0..12 {
                    let at = random.below(4);
                    let ask = Ask::new(&id(&format!("spot {at}")), (racer * 1000 + round) as u128);
                    let asking = host.reserve(ask);
                    // Some do not wait for the answer.
                    let impatient = if random.below(6) == 0 { 300 } else { 60_000_000 };
                    let impatient = Duration::from_micros(impatient);
                    let reservation = match tokio::time::timeout(impatient, asking).await {
                        Ok(Seen::Reserved(reservation)) => reservation,
                        Ok(Seen::Other(_)) | Err(_) => continue,
                        Ok(other) => panic!("{other:?}"),
                    };
                    let generation = reservation.spot().unwrap().generation().get();
                    let hold = |holds: bool| {
                        let mut held = held.lock();
                        let entry = held.entry(at).or_default();
                        assert_ne!(entry.0, holds, "two have it");
                        assert!(!holds || generation > entry.1, "an old generation came back");
                        *entry = (holds, generation);
                    };
                    hold(true);
                    match random.below(4) {
                        0 => {
                            hold(false);
                            drop(reservation);
                        }
                        1 => {
                            hold(false);
                            let _ =
                                tokio::time::timeout(Duration::from_micros(300), host.abort(reservation, b"")).await;
                        }
                        _ => {
                            let spot = ready(host.commit(reservation, b"").await);
                            let spot = ready(host.preserve(&spot, Bytes::from_static(b"x")).await);
                            hold(false);
                            let _ = tokio::time::timeout(Duration::from_micros(300), host.delete(&spot)).await;
                        }
                    }
                }
            });
        }
        racers.join_all().await;
        for host in &hosts {
            let until = tokio::time::Instant::now() + Duration::from_secs(60);
            while host.counted(None).await != Ok((0, 0)) || host.owned().await != Ok(vec![]) {
                assert!(
                    tokio::time::Instant::now() < until,
                    "something stays: {:?}",
                    host.owned().await
                );
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        for at in 0..4 {
            assert!(matches!(
                hosts[0].resolve(&id(&format!("spot {at}"))).await,
                Seen::Missing
            ));
        }
    }
}

/// REQ: LS-013, LS-036, LS-104, LS-060
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_owner_had_can_be_released_and_made_again() {
    let timing = LocationTiming {
        renew_interval: Duration::from_millis(200),
        lease_ttl: Duration::from_secs(4),
        renew_timeout: Duration::from_secs(2),
        fencing_margin: Duration::from_secs(1),
        poll_interval: Duration::from_millis(100),
        ..LocationTiming::default()
    };
    let mut providers = JoinSet::new();
    for stores in Shared::every() {
        providers.spawn(async move {
            let dead = host_with(&stores, 1, timing).await;
            let hosts = [host_with(&stores, 2, timing).await, host_with(&stores, 3, timing).await];
            let (mut spots, mut held) = (Vec::new(), Vec::new());
            for (name, operation) in [("ready", 1), ("creating", 2)] {
                let reservation = reserved(dead.reserve(Ask::new(&id(name), operation)).await);
                spots.push(reservation.spot().unwrap());
                if name == "ready" {
                    spots[0] = ready(dead.commit(reservation, b"").await);
                } else {
                    held.push(reservation);
                }
            }
            dead.kill();
            let killed = tokio::time::Instant::now();
            for (at, spot) in (0..).zip(spots) {
                let reference = spot.reference();
                // A machine that stalls may keep a host from renewing its own lease in time; it goes on afterwards.
                let mut racers = JoinSet::new();
                for host in &hosts {
                    let (host, reference) = (host.clone(), reference.clone());
                    racers.spawn(async move {
                        loop {
                            match host.release(&reference).await {
                                Seen::Closed | Seen::Failed(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                                Seen::OwnerAlive => panic!("it was killed"),
                                other => return matches!(other, Seen::Removed),
                            }
                        }
                    });
                }
                let released = racers.join_all().await;
                assert_eq!(
                    released.iter().filter(|one| **one).count(),
                    1,
                    "one of them, and only one"
                );
                // Its last renewal was at most one interval, and one timeout, before it was killed; it was seen since then.
                let wait = timing.lease_ttl + timing.fencing_margin - timing.renew_interval - timing.renew_timeout;
                assert!(killed.elapsed() >= wait, "{:?}", killed.elapsed());
                let again = loop {
                    match hosts[0].reserve(Ask::new(&reference.id, 9 + at)).await {
                        Seen::Reserved(reservation) => break reservation,
                        Seen::Closed => tokio::time::sleep(Duration::from_millis(50)).await,
                        other => panic!("{other:?}"),
                    }
                };
                assert!(again.spot().unwrap().generation() > reference.generation);
                assert!(matches!(dead.delete(&spot).await, Seen::Closed | Seen::Conflict));
            }
        });
    }
    providers.join_all().await;
}
