//! Random use by three hosts against an oracle that knows no store, while the store delays, fails and loses answers.
//!
//! The oracle is exact: whatever goes wrong, a step that ends has changed everything or nothing, and says which.

use std::collections::{BTreeMap, BTreeSet};

use zlink_runtime::location::{Fault, Faults, MemoryStore, Operation};

use crate::store::Provider;

use super::*;

const HOSTS: usize = 3;
const IDS: usize = 4;
const SPOTS: u32 = 3;
const OF_TYPE: u32 = 2;

/// A Spot, as the oracle knows it.
#[derive(Clone, Debug)]
struct Entry {
    /// The run of a host that owns it.
    run: usize,
    operation: u128,
    kind: SpotKind,
    stable_type: &'static str,
    inbox: Bytes,
    ready: bool,
    /// What the store said of it last.
    spot: Spot,
}

struct Run {
    owner: Arc<Owner>,
    faults: Faults,
}

enum Store {
    Near(MemoryStore),
    Far(Arc<Far>),
}

struct World {
    store: Store,
    random: Random,
    stale: bool,
    /// Every run there was; the living ones by host.
    runs: Vec<Run>,
    living: [usize; HOSTS],
    oracle: BTreeMap<usize, Entry>,
    last_generation: [u64; IDS],
    reservations: Vec<(usize, usize, Reservation)>,
    /// What was Ready once: by run, ID, and what the store said.
    spots: Vec<(usize, usize, Spot)>,
    operations: u128,
    /// What has an answer in the store.
    ended: BTreeSet<(usize, u128)>,
}

fn name(at: usize) -> SpotId {
    id(&format!("spot {at}"))
}

impl World {
    async fn new(store: Store, seed: u64) -> Self {
        // Of those out of this process nobody knows the past.
        let stale = matches!(store, Store::Near(_)) && seed.is_multiple_of(2);
        let mut world = Self {
            store,
            random: Random(seed),
            stale,
            runs: Vec::new(),
            living: [0; HOSTS],
            oracle: BTreeMap::new(),
            last_generation: [0; IDS],
            reservations: Vec::new(),
            spots: Vec::new(),
            operations: 0,
            ended: BTreeSet::new(),
        };
        for host in 0..HOSTS {
            world.start(host).await;
        }
        world
    }

    /// A new run of that host, whose way to the store is a bad one.
    async fn start(&mut self, host: usize) {
        let run = self.runs.len();
        let faults = Faults::new(self.random.below(usize::MAX) as u64);
        let owner = match &self.store {
            Store::Near(store) => started(Arc::new(store.with_faults(faults.clone())), run as u64).await,
            Store::Far(far) => troubled(far, &faults, run as u64).await,
        };
        let millis = Duration::from_millis;
        for (fault, chance) in [
            (Fault::LostAnswer, 60),
            (Fault::LateWrite(millis(400)), 60),
            (Fault::Delay(millis(300)), 60),
            (Fault::DelayAnswer(millis(300)), 60),
            (Fault::Error, 60),
        ] {
            faults.sometimes(Operation::Write, fault, chance);
        }
        faults.sometimes(Operation::Read, Fault::Error, 50);
        faults.sometimes(Operation::Read, Fault::Delay(millis(200)), 50);
        if self.stale {
            faults.sometimes(Operation::Read, Fault::Stale, 200);
        }
        self.runs.push(Run { owner, faults });
        self.living[host] = run;
    }

    fn owner(&self, run: usize) -> &Owner {
        &self.runs[run].owner
    }

    fn some_run(&mut self) -> usize {
        self.living[self.random.below(HOSTS)]
    }

    fn held(&self, run: usize, of_type: Option<(SpotKind, &str)>) -> u32 {
        let of_run = self.oracle.values().filter(|entry| entry.run == run);
        let counted = of_run.filter(|entry| of_type.is_none_or(|of_type| of_type == (entry.kind, entry.stable_type)));
        u32::try_from(counted.count()).unwrap()
    }

    async fn step(&mut self) {
        match self.random.below(24) {
            0..8 => self.reserve().await,
            8..12 => self.commit().await,
            12..14 => self.abort().await,
            14..16 => self.preserve().await,
            16..19 => self.delete().await,
            19..22 => self.resolve().await,
            22 => self.let_go().await,
            _ if self.random.below(3) == 0 => self.crash().await,
            _ => self.release_of_a_living_one().await,
        }
    }

    async fn reserve(&mut self) {
        let (run, at) = (self.some_run(), self.random.below(IDS));
        let again = self.oracle.get(&at).map(|entry| entry.operation);
        let operation = match again {
            Some(operation) if self.random.below(2) == 0 => operation,
            _ => {
                self.operations += 1;
                self.operations
            }
        };
        let ask = Ask {
            kind: [SpotKind::User, SpotKind::Instance][self.random.below(2)],
            stable_type: SpotType::from_static(["room", "hall"][self.random.below(2)]),
            inbox: Bytes::from_static([&b"a"[..], b"b"][self.random.below(2)]),
            spots: SPOTS,
            of_type: OF_TYPE,
            ..Ask::new(&name(at), operation)
        };
        let stable_type = if ask.stable_type.as_str() == "room" {
            "room"
        } else {
            "hall"
        };
        let seen = self.owner(run).reserve(ask.clone()).await;
        let full = self.held(run, None) >= SPOTS || self.held(run, Some((ask.kind, stable_type))) >= OF_TYPE;
        let over = ask.kind == SpotKind::User && self.ended.contains(&(run, operation));
        match (seen, self.oracle.get(&at)) {
            // Nothing was changed; the oracle goes on to know.
            (Seen::Failed(_) | Seen::Closed, _) => {}
            (Seen::Over, _) => assert!(over, "it has not ended"),
            (seen, _) if over && !full && !self.stale => panic!("{seen:?}, and it has ended"),
            // Without room, what is there is only read, and that may be what once was.
            (Seen::Other(_) | Seen::NoCapacity, _) if full && self.stale => {}
            (Seen::Reserved(reservation), None) => {
                assert!(!full, "more than there is room for");
                let spot = reservation.spot().unwrap();
                assert!(
                    spot.generation().get() > self.last_generation[at],
                    "an old generation came back"
                );
                self.last_generation[at] = spot.generation().get();
                let entry = Entry {
                    run,
                    operation,
                    kind: ask.kind,
                    stable_type,
                    inbox: ask.inbox,
                    ready: false,
                    spot,
                };
                self.oracle.insert(at, entry);
                self.reservations.push((run, at, reservation));
            }
            (Seen::NoCapacity, None) => assert!(full, "there was room"),
            (seen, Some(entry)) => {
                let same = entry.run == run && !entry.ready && entry.operation == operation;
                let alike = (entry.kind, entry.stable_type, &entry.inbox) == (ask.kind, stable_type, &ask.inbox);
                match seen {
                    Seen::Issued(spot) => assert!(same && alike && spot == entry.spot),
                    Seen::Conflict => assert!(same && !alike),
                    // Where there is no room, the content is not compared.
                    Seen::Other(spot) => assert!((!same || full) && spot == entry.spot),
                    other => panic!("{other:?} where there is {entry:?}"),
                }
            }
            (other, None) => panic!("{other:?} where there is none"),
        }
    }

    fn some_reservation(&mut self) -> Option<(usize, usize, Reservation)> {
        let count = self.reservations.len();
        (count > 0).then(|| self.reservations.swap_remove(self.random.below(count)))
    }

    async fn commit(&mut self) {
        let Some((run, at, reservation)) = self.some_reservation() else {
            return;
        };
        let answer = self.operations.to_le_bytes();
        let made = ready(self.owner(run).commit(reservation, &answer).await);
        let entry = self.oracle.get_mut(&at).unwrap();
        assert_eq!(made.generation(), entry.spot.generation());
        assert!(made.version() > entry.spot.version());
        entry.ready = true;
        if entry.kind == SpotKind::User {
            entry.inbox = Bytes::new();
        }
        assert_eq!(made.inbox(), entry.inbox);
        entry.spot = made.clone();
        let operation = entry.operation;
        self.spots.push((run, at, made));
        self.told(run, operation, true, &answer).await;
    }

    async fn abort(&mut self) {
        let Some((run, at, reservation)) = self.some_reservation() else {
            return;
        };
        let seen = self.owner(run).abort(reservation, b"aborted").await;
        assert!(matches!(seen, Seen::Removed), "{seen:?}");
        let entry = self.oracle.remove(&at).unwrap();
        self.told(run, entry.operation, false, b"aborted").await;
    }

    async fn told(&mut self, run: usize, operation: u128, created: bool, body: &[u8]) {
        self.ended.insert((run, operation));
        if self.stale {
            return;
        }
        let answer = loop {
            if let Ok(answer) = self.owner(run).answer(operation).await {
                break answer;
            }
        };
        assert_eq!(answer, Some((created, Bytes::copy_from_slice(body))));
    }

    /// Something that was Ready once, whose host lives.
    fn some_spot(&mut self) -> Option<(usize, usize, Spot)> {
        self.spots.retain(|(run, ..)| self.living.contains(run));
        let count = self.spots.len();
        (count > 0).then(|| self.spots[self.random.below(count)].clone())
    }

    async fn preserve(&mut self) {
        let Some((run, at, spot)) = self.some_spot() else {
            return;
        };
        let inbox = Bytes::from(vec![7; self.random.below(3)]);
        let seen = self.owner(run).preserve(&spot, inbox.clone()).await;
        let current = self.oracle.get_mut(&at).filter(|entry| entry.spot == spot);
        match (seen, current) {
            (Seen::Failed(_) | Seen::Closed, _) => {}
            (Seen::Ready(made), Some(entry)) => {
                assert_eq!(
                    (made.generation(), made.owner_generation(), made.inbox()),
                    (spot.generation(), 1, inbox.clone())
                );
                entry.inbox = inbox;
                entry.spot = made.clone();
                self.spots.push((run, at, made));
            }
            (Seen::Conflict, None) => {}
            (other, current) => panic!("{other:?} with {current:?}"),
        }
    }

    async fn delete(&mut self) {
        let Some((run, at, spot)) = self.some_spot() else {
            return;
        };
        let seen = self.owner(run).delete(&spot).await;
        match (seen, self.oracle.get(&at)) {
            (Seen::Removed, Some(entry)) => {
                assert_eq!(entry.spot, spot);
                self.oracle.remove(&at);
            }
            (Seen::Missing, None) => {}
            (Seen::Other(other), Some(entry)) => assert!(other == entry.spot && other != spot),
            (other, current) => panic!("{other:?} with {current:?}"),
        }
    }

    async fn resolve(&mut self) {
        let (run, at) = (self.some_run(), self.random.below(IDS));
        self.resolves(run, at).await;
    }

    /// What the ID leads to is what the oracle knows: at once, or, where reads show older states, in the end.
    async fn resolves(&self, run: usize, at: usize) {
        for _ in 0..500 {
            let seen = self.owner(run).resolve(&name(at)).await;
            let right = match (&seen, self.oracle.get(&at)) {
                (Seen::Missing, None) => true,
                (Seen::Creating(spot), Some(entry)) => !entry.ready && *spot == entry.spot,
                (Seen::Ready(spot), Some(entry)) => entry.ready && *spot == entry.spot,
                _ => false,
            };
            let closed = !self.runs.iter().all(|run| run.owner.admits());
            assert!(
                right || self.stale || closed || matches!(seen, Seen::Failed(_)),
                "{seen:?} where there is {:?}",
                self.oracle.get(&at)
            );
            if right {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{at} does not become what it is");
    }

    /// A reservation that is dropped goes by itself.
    async fn let_go(&mut self) {
        let Some((run, at, reservation)) = self.some_reservation() else {
            return;
        };
        drop(reservation);
        self.oracle.remove(&at);
        let until = tokio::time::Instant::now() + Duration::from_secs(60);
        while !matches!(self.owner(run).resolve(&name(at)).await, Seen::Missing) {
            assert!(tokio::time::Instant::now() < until, "it stays");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn release_of_a_living_one(&mut self) {
        let run = self.some_run();
        let at = self.random.below(IDS);
        let Some(entry) = self.oracle.get(&at) else { return };
        let seen = self.owner(run).release(&entry.spot.reference()).await;
        let missed = self.stale && matches!(seen, Seen::Missing | Seen::Other(_));
        assert!(
            missed || matches!(seen, Seen::OwnerAlive | Seen::Failed(_) | Seen::Closed),
            "{seen:?}"
        );
    }

    /// A host dies; what it had is `Unavailable` in time, and released by another.
    async fn crash(&mut self) {
        let host = self.random.below(HOSTS);
        let (dead, other) = (self.living[host], self.living[(host + 1) % HOSTS]);
        self.owner(dead).kill();
        while self.owner(dead).admits() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.reservations.retain(|(run, ..)| *run != dead);
        self.start(host).await;
        let left: Vec<_> = self.oracle.iter().filter(|(_, entry)| entry.run == dead).collect();
        let left: Vec<_> = left.into_iter().map(|(at, entry)| (*at, entry.spot.clone())).collect();
        for (at, spot) in left {
            let until = tokio::time::Instant::now() + Duration::from_secs(600);
            loop {
                assert!(tokio::time::Instant::now() < until, "it is never released");
                match self.owner(other).release(&spot.reference()).await {
                    Seen::Removed => break,
                    Seen::Missing | Seen::Other(_) if self.stale => {}
                    Seen::Failed(_) | Seen::Closed => {}
                    other => panic!("{other:?}"),
                }
            }
            self.oracle.remove(&at);
        }
    }

    /// All is as the oracle says.
    async fn check(&mut self) {
        self.runs.iter().for_each(|run| run.faults.heal());
        self.stale = false;
        tokio::time::sleep(Duration::from_secs(30)).await;
        for run in self.living {
            for at in 0..IDS {
                self.resolves(run, at).await;
            }
            let of_run: Vec<_> = self.oracle.values().filter(|entry| entry.run == run).collect();
            let ready = of_run.iter().filter(|entry| entry.ready).count();
            let counts = (ready, of_run.len() - ready);
            let counts = (u32::try_from(counts.0).unwrap(), u32::try_from(counts.1).unwrap());
            assert_eq!(self.owner(run).counted(None).await, Ok(counts));
            let owned = self.owner(run).owned().await.unwrap();
            assert_eq!(owned.len(), of_run.len());
            assert!(of_run.iter().all(|entry| owned.contains(&entry.spot)));
        }
    }
}

fn random_use_ends_as_the_oracle_says(seeds: u64, store: impl Fn() -> Store) {
    let seeds = std::env::var("ZLINK_AUTHORITY_SEEDS").map_or(seeds, |seeds| seeds.parse().unwrap());
    for seed in 0..seeds {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let run = std::panic::AssertUnwindSafe(|| {
            runtime.block_on(async {
                let mut world = World::new(store(), seed).await;
                for _ in 0..80 {
                    world.step().await;
                }
                world.check().await;
            });
        });
        if let Err(panic) = std::panic::catch_unwind(run) {
            println!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// REQ: LS-040, LS-041, LS-042, LS-043, LS-100, LS-020
#[test]
fn random_use_in_memory_ends_as_the_oracle_says() {
    random_use_ends_as_the_oracle_says(60, || Store::Near(MemoryStore::new()));
}

/// REQ: LS-040, LS-041, LS-042, LS-043, LS-100, LS-020
#[test]
fn random_use_on_sqlite_ends_as_the_oracle_says() {
    random_use_ends_as_the_oracle_says(8, || Store::Far(Far::new(Provider::Sqlite)));
}

/// REQ: LS-040, LS-041, LS-042, LS-043, LS-100, LS-020
#[test]
fn random_use_on_redis_ends_as_the_oracle_says() {
    random_use_ends_as_the_oracle_says(8, || Store::Far(Far::new(Provider::Redis)));
}
