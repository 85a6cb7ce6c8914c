//! The machine on the store in memory: each change by itself, and what is left of it.

use std::num::NonZeroU32;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::*;
use crate::id::{Generation, MeshName, ObjectKind, Rid, SpotType};
use crate::location::authority::capacity::Counts;
use crate::location::{
    BootClock, Fault, Faults, LeaseConfig, LocationStore, LocationTiming, MemoryStore, Operation, OwnerId, Scan,
    Scanned,
};

mod actors;

/// A host, as far as authority knows it.
struct Host {
    lease: Arc<HostLease>,
    authority: Authority,
    number: u8,
    taken: Arc<Mutex<Vec<SpotRecord>>>,
}

impl Host {
    async fn start(store: &MemoryStore, number: u8) -> Self {
        let config = LeaseConfig {
            store: Arc::new(store.clone()),
            timing: LocationTiming::default(),
            clock: BootClock::of_tokio(),
            owner: OwnerId::new([number; 16]),
            runtime: Handle::current(),
        };
        let lease = Arc::new(HostLease::take(config, vec![]).await.unwrap());
        let taken = Arc::<Mutex<Vec<_>>>::default();
        let told = taken.clone();
        let random = Random::seeded(number.into());
        let authority = Authority::new(lease.clone(), random, move |taken| match taken {
            Taken::One(record) => told.lock().push(*record),
            Taken::All(_) => unreachable!("nobody here removes what is left of others"),
        });
        Self {
            lease,
            authority,
            number,
            taken,
        }
    }

    fn node(&self) -> Rid {
        Rid::new(format!("node-{}", self.number)).unwrap()
    }

    fn reserve(&self, id: &str, kind: ObjectKind) -> Reserve {
        Reserve {
            id: id_of(id),
            kind,
            stable_type: SpotType::from_static("game.room"),
            mesh: MeshName::from_static("world"),
            node: self.node(),
            lifecycle: Generation::from_wire(u64::from(self.number) + 1).unwrap(),
            operation: operation(1),
            inbox: Bytes::from_static(b"first"),
            blob: None,
            spot: None,
            limits: Limits::default(),
        }
    }

    async fn won(&self, id: &str, kind: ObjectKind) -> Reservation {
        match self.authority.reserve(self.reserve(id, kind)).await {
            Ok(Reserving::Won(reservation)) => reservation,
            other => panic!("{other:?}"),
        }
    }

    async fn ready(&self, id: &str, kind: ObjectKind) -> SpotRecord {
        let reservation = self.won(id, kind).await;
        *self.authority.commit(reservation, None).await.unwrap()
    }
}

fn id_of(text: &str) -> ObjectId {
    crate::id::Space::Spots.id(text).unwrap()
}

fn operation(number: u8) -> OperationId {
    OperationId {
        source: Rid::new("caller").unwrap(),
        lifecycle: Generation::from_wire(9).unwrap(),
        id: [number; 16],
    }
}

/// The keys in the store without those of hosts.
async fn keys(store: &MemoryStore) -> Vec<String> {
    let Scanned::Page(page) = store.scan(&Scan::new("", 1000).unwrap()).await.unwrap() else {
        panic!("the memory store keeps its place");
    };
    let keys = page.entries.iter().map(|(key, _)| key.as_str().to_owned());
    keys.filter(|key| !key.starts_with("lease/") && !key.starts_with("writer/"))
        .collect()
}

async fn counts(store: &MemoryStore, key: &str) -> Counts {
    let found = store
        .read(&crate::location::Key::new(key).unwrap())
        .await
        .unwrap()
        .found;
    found.map_or(Counts::default(), |stored| Counts::read(&stored).unwrap())
}

const fn counted(active: u32, reserved: u32) -> Counts {
    Counts { active, reserved }
}

/// REQ: LS-012, LS-020, LS-040, LS-043, LS-045
#[tokio::test(start_paused = true)]
async fn a_spot_comes_and_goes() {
    let store = MemoryStore::new();
    let host = Host::start(&store, 1).await;
    let authority = &host.authority;
    assert_eq!(authority.resolve(&id_of("a")).await, Resolved::Missing);
    assert_eq!(authority.resolve(&id_of("a")).await, Resolved::Missing);

    let reservation = host.won("a", ObjectKind::User).await;
    let reserved = reservation.record().unwrap().clone();
    assert_eq!(reserved.generation.get(), reserved.version.get());
    assert_eq!(
        authority.resolve(&id_of("a")).await,
        Resolved::Creating(reserved.clone())
    );
    assert_eq!(counts(&store, "capacity/node-1").await, counted(0, 1));
    let owner = host.lease.config().owner;
    let index = format!("r/{owner}/s:1:a");
    let held = ["capacity/node-1", "capacity/node-1/u/game.room", &index, "s:1:a"];
    assert_eq!(keys(&store).await, held);

    let terminal = Terminal {
        outcome: CreationOutcome::Created,
        body: Bytes::from_static(b"welcome"),
        deadline: Instant::now() + Duration::from_secs(10),
    };
    let ready = *authority.commit(reservation, Some(terminal)).await.unwrap();
    assert_eq!(authority.resolve(&id_of("a")).await, Resolved::Ready(ready.clone()));
    assert_eq!((ready.generation, ready.owner_generation), (reserved.generation, 1));
    assert!(ready.version > reserved.version);
    assert_eq!(ready.inbox, Bytes::new(), "a User Spot has had its request");
    assert_eq!(counts(&store, "capacity/node-1").await, counted(1, 0));
    assert_eq!(counts(&store, "capacity/node-1/u/game.room").await, counted(1, 0));

    assert_eq!(authority.delete(&ready).await, Ok(Removal::Removed));
    assert_eq!(authority.delete(&ready).await, Ok(Removal::Missing));
    assert_eq!(counts(&store, "capacity/node-1").await, counted(0, 0));
    let asked_again = authority.reserve(host.reserve("a", ObjectKind::User)).await;
    assert!(matches!(asked_again, Ok(Reserving::Over(_))), "{asked_again:?}");
    let anew = Reserve {
        operation: operation(3),
        ..host.reserve("a", ObjectKind::User)
    };
    let Ok(Reserving::Won(anew)) = authority.reserve(anew).await else {
        panic!("it is free");
    };
    let again = *authority.commit(anew, None).await.unwrap();
    assert!(again.generation > ready.generation, "another incarnation");
    assert_eq!(authority.delete(&ready).await, Ok(Removal::Other(Box::new(again))));

    let ended = authority.ended(&operation(1)).await.unwrap().unwrap();
    assert_eq!(
        (ended.outcome, ended.generation, &*ended.body),
        (CreationOutcome::Created, ready.generation, &b"welcome"[..])
    );
    assert_eq!(
        authority.ended(&operation(2)).await,
        Ok(None),
        "another operation reads nothing"
    );
    let of_another_node = OperationId {
        source: Rid::new("other").unwrap(),
        ..operation(1)
    };
    let of_another_run = OperationId {
        lifecycle: Generation::from_wire(8).unwrap(),
        ..operation(1)
    };
    for other in [of_another_node, of_another_run] {
        assert_eq!(authority.ended(&other).await, Ok(None), "{other:?}");
    }
    tokio::time::sleep(Duration::from_secs(309)).await;
    assert!(authority.ended(&operation(1)).await.unwrap().is_some());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(
        authority.ended(&operation(1)).await,
        Ok(None),
        "five minutes after the deadline"
    );
}

/// REQ: LS-043
#[tokio::test(start_paused = true)]
async fn what_is_aborted_leaves_its_terminal_alone() {
    let store = MemoryStore::new();
    let host = Host::start(&store, 1).await;
    let reservation = host.won("a", ObjectKind::User).await;
    let terminal = Terminal {
        outcome: CreationOutcome::Rejected,
        body: Bytes::new(),
        deadline: Instant::now(),
    };
    host.authority.abort(reservation, Some(terminal)).await.unwrap();
    assert_eq!(host.authority.resolve(&id_of("a")).await, Resolved::Missing);
    assert_eq!(counts(&store, "capacity/node-1").await, counted(0, 0));
    let ended = host.authority.ended(&operation(1)).await.unwrap().unwrap();
    assert_eq!(ended.outcome, CreationOutcome::Rejected);
    assert!(keys(&store).await.iter().all(|key| key.starts_with("terminal/")));
}

/// REQ: LS-044
#[tokio::test(start_paused = true)]
async fn a_reservation_that_nobody_holds_is_aborted() {
    let store = MemoryStore::new();
    let host = Host::start(&store, 1).await;
    drop(host.won("a", ObjectKind::User).await);
    while host.authority.resolve(&id_of("a")).await != Resolved::Missing {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(counts(&store, "capacity/node-1").await, counted(0, 0));
}

/// Also where its commit was answered, and who made it did not look at that any more.
///
/// REQ: LS-044
#[tokio::test(start_paused = true)]
async fn what_became_ready_for_nobody_is_removed() {
    let store = MemoryStore::new();
    let host = Host::start(&store, 1).await;
    let reservation = host.won("a", ObjectKind::User).await;
    let mut commit = Box::pin(host.authority.commit(reservation, None));
    assert!(goes_on(&mut commit).await);
    while !matches!(host.authority.resolve(&id_of("a")).await, Resolved::Ready(_)) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // By now the answer is on its way.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(matches!(host.authority.resolve(&id_of("a")).await, Resolved::Ready(_)));
    drop(commit);
    let until = Instant::now() + Duration::from_secs(60);
    while host.authority.resolve(&id_of("a")).await != Resolved::Missing {
        assert!(Instant::now() < until, "it stays");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(counts(&store, "capacity/node-1").await, counted(0, 0));
}

/// Polls `work` once: whether it goes on.
async fn goes_on(work: &mut (impl Future + Unpin)) -> bool {
    std::future::poll_fn(|cx| std::task::Poll::Ready(std::pin::Pin::new(&mut *work).poll(cx).is_pending())).await
}

/// REQ: LS-042
#[tokio::test(start_paused = true)]
async fn the_same_operation_finds_its_reservation() {
    let store = MemoryStore::new();
    let host = Host::start(&store, 1).await;
    let reservation = host.won("a", ObjectKind::User).await;
    let same = host.reserve("a", ObjectKind::User);
    match host.authority.reserve(same.clone()).await {
        Ok(Reserving::Issued(record)) => assert_eq!(Some(&record), reservation.record()),
        other => panic!("{other:?}"),
    }
    let differs = Reserve {
        inbox: Bytes::from_static(b"other"),
        ..same.clone()
    };
    assert!(matches!(
        host.authority.reserve(differs).await,
        Err(AuthorityError::Conflict)
    ));
    let other = Reserve {
        operation: operation(2),
        ..same
    };
    assert!(matches!(host.authority.reserve(other).await, Ok(Reserving::Lost(_))));
}

/// REQ: LS-045
#[tokio::test(start_paused = true)]
async fn an_instance_keeps_its_first_message_until_it_is_done_with() {
    let store = MemoryStore::new();
    let host = Host::start(&store, 1).await;
    let ready = host.ready("cart", ObjectKind::Instance).await;
    assert_eq!(&*ready.inbox, b"first");
    let done = *host.authority.preserve(&ready, Bytes::new()).await.unwrap();
    assert_eq!((done.generation, done.owner_generation), (ready.generation, 1));
    assert_eq!(
        host.authority.resolve(&id_of("cart")).await,
        Resolved::Ready(done.clone())
    );
    assert_eq!(
        host.authority.preserve(&ready, Bytes::new()).await,
        Err(AuthorityError::Conflict)
    );
    assert_eq!(counts(&store, "capacity/node-1/i/game.room").await, counted(1, 0));
}

/// REQ: LS-015
#[tokio::test(start_paused = true)]
async fn no_more_are_reserved_than_there_is_room_for() {
    let store = MemoryStore::new();
    let host = Host::start(&store, 1).await;
    let limited = |id: &str, kind, spots, of_type| Reserve {
        limits: Limits {
            all: NonZeroU32::new(spots),
            of_type: NonZeroU32::new(of_type),
        },
        ..host.reserve(id, kind)
    };
    let racers = (0..20).map(|at| {
        host.authority
            .reserve(limited(&format!("{at}"), ObjectKind::User, 0, 7))
    });
    let ended: Vec<_> = futures_join(racers).await;
    let won = ended.iter().filter(|one| matches!(one, Ok(Reserving::Won(_)))).count();
    let refused = ended
        .iter()
        .filter(|one| matches!(one, Ok(Reserving::NoCapacity)))
        .count();
    assert_eq!((won, refused), (7, 13));
    assert_eq!(counts(&store, "capacity/node-1").await, counted(0, 7));
    // Another type has room of its own, within what the node has.
    let other = host.authority.reserve(limited("i", ObjectKind::Instance, 8, 7)).await;
    assert!(matches!(other, Ok(Reserving::Won(_))));
    let full = host.authority.reserve(limited("j", ObjectKind::Instance, 8, 7)).await;
    assert!(matches!(full, Ok(Reserving::NoCapacity)));
    let entry = host.authority.reserve(limited("e", ObjectKind::Entry, 1, 1)).await;
    assert!(matches!(entry, Ok(Reserving::Won(_))), "Entry Spots are not counted");
}

async fn futures_join<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut futures: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(move |context| {
        let mut pending = false;
        for (future, done) in &mut futures {
            if done.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(value) => *done = Some(value),
                    std::task::Poll::Pending => pending = true,
                }
            }
        }
        if pending {
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(futures.drain(..).filter_map(|(_, done)| done).collect())
    })
    .await
}

/// REQ: LS-036, LS-013
#[tokio::test(start_paused = true)]
async fn what_a_dead_host_owned_is_released_after_ttl_and_margin() {
    let store = MemoryStore::new();
    let (dead, host) = (Host::start(&store, 1).await, Host::start(&store, 2).await);
    let [first, second] = [
        dead.ready("a", ObjectKind::User).await,
        dead.ready("b", ObjectKind::User).await,
    ];
    assert_eq!(
        host.authority.release(&first.reference()).await,
        Ok(Removal::OwnerAlive)
    );
    dead.lease.kill();
    let begun = Instant::now();
    assert_eq!(host.authority.release(&first.reference()).await, Ok(Removal::Removed));
    // It had been renewed up to 5 s before, and was seen then; looks are 1 s apart.
    let took = begun.elapsed();
    assert!(
        took >= Duration::from_secs(14) && took <= Duration::from_secs(22),
        "{took:?}"
    );
    assert_eq!(host.authority.resolve(&id_of("a")).await, Resolved::Missing);
    assert_eq!(
        host.authority.resolve(&id_of("b")).await,
        Resolved::Unavailable(second.clone())
    );
    let begun = Instant::now();
    assert_eq!(host.authority.release(&second.reference()).await, Ok(Removal::Removed));
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "the owner is known to be dead"
    );
    let owner = dead.lease.config().owner;
    let taken: Vec<_> = keys(&store)
        .await
        .into_iter()
        .filter(|key| key.starts_with("taken/"))
        .collect();
    assert_eq!(taken, [format!("taken/{owner}/s:1:a"), format!("taken/{owner}/s:1:b")]);
    assert_eq!(host.authority.release(&second.reference()).await, Ok(Removal::Missing));
}

/// REQ: LS-100
#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_found_out() {
    let store = MemoryStore::new();
    for fault in [
        Fault::LostAnswer,
        Fault::LateWrite(Duration::from_millis(30)),
        Fault::LateWrite(Duration::from_secs(2)),
    ] {
        let faults = Faults::new(1);
        let host = Host::start(&store.with_faults(faults.clone()), 3).await;
        faults.next(Operation::Write, fault);
        let reservation = host.won("a", ObjectKind::User).await;
        faults.next(Operation::Write, fault);
        let ready = *host.authority.commit(reservation, None).await.unwrap();
        assert_eq!(
            host.authority.resolve(&id_of("a")).await,
            Resolved::Ready(ready.clone())
        );
        faults.next(Operation::Write, fault);
        assert_eq!(host.authority.delete(&ready).await, Ok(Removal::Removed));
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(host.authority.resolve(&id_of("a")).await, Resolved::Missing);
        assert_eq!(counts(&store, "capacity/node-3").await, counted(0, 0));
        host.lease.release(Duration::from_secs(1)).await;
    }
}

/// REQ: LS-100
#[tokio::test(start_paused = true)]
async fn a_write_that_lost_does_not_land_later() {
    let store = MemoryStore::new();
    let faults = Faults::new(1);
    let host = Host::start(&store.with_faults(faults.clone()), 1).await;
    let other = Host::start(&store, 2).await;
    let held = other.ready("a", ObjectKind::User).await;
    // Its reservation is on its way for long; the one who has the ID gives it up meanwhile.
    faults.next(Operation::Write, Fault::LateWrite(Duration::from_secs(2)));
    let Ok(Reserving::Lost(record)) = host.authority.reserve(host.reserve("a", ObjectKind::User)).await else {
        panic!("the other has it");
    };
    assert_eq!(record, held);
    assert_eq!(other.authority.delete(&held).await, Ok(Removal::Removed));
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(other.authority.resolve(&id_of("a")).await, Resolved::Missing);
    assert_eq!(counts(&store, "capacity/node-1").await, counted(0, 0));
}

/// REQ: LS-102
#[tokio::test(start_paused = true)]
async fn a_store_that_fails_is_no_absent_record() {
    let store = MemoryStore::new();
    let faults = Faults::new(1);
    let host = Host::start(&store.with_faults(faults.clone()), 1).await;
    faults.next(Operation::Read, Fault::Error);
    assert!(matches!(host.authority.resolve(&id_of("a")).await, Resolved::Failed(_)));
    assert_eq!(host.authority.resolve(&id_of("a")).await, Resolved::Missing);
    faults.next(Operation::Write, Fault::Error);
    let failed = host.authority.reserve(host.reserve("a", ObjectKind::User)).await;
    assert!(matches!(failed, Err(AuthorityError::Store(_))), "{failed:?}");
    host.ready("a", ObjectKind::User).await;
}

/// REQ: LS-032
#[tokio::test(start_paused = true)]
async fn past_the_deadline_nothing_is_begun() {
    let store = MemoryStore::new();
    let faults = Faults::new(1);
    let host = Host::start(&store.with_faults(faults.clone()), 1).await;
    let ready = host.ready("a", ObjectKind::User).await;
    faults.cut();
    tokio::time::sleep(Duration::from_secs(16)).await;
    assert!(!host.lease.admits());
    faults.heal();
    faults.every(Operation::Write, Fault::Error);
    let refused = host.authority.reserve(host.reserve("b", ObjectKind::User)).await;
    assert!(matches!(refused, Err(AuthorityError::Closed)), "{refused:?}");
    assert_eq!(
        host.authority.resolve(&id_of("a")).await,
        Resolved::Unavailable(ready.clone())
    );
    let deleting = host.authority.delete(&ready);
    tokio::pin!(deleting);
    assert!(
        tokio::time::timeout(Duration::from_secs(3), &mut deleting)
            .await
            .is_err()
    );
    faults.heal();
    assert_eq!(
        deleting.await,
        Ok(Removal::Removed),
        "what only takes away is done once it may be"
    );
}

/// REQ: LS-023
#[tokio::test(start_paused = true)]
async fn after_the_last_revision_nothing_is_reserved() {
    let store = MemoryStore::new();
    let host = Host::start(&store, 1).await;
    store.skip_revisions(Revision::MAX);
    for _ in 0..2 {
        let failed = host.authority.reserve(host.reserve("a", ObjectKind::User)).await;
        assert!(
            matches!(failed, Err(AuthorityError::Store(StoreError::Exhausted))),
            "{failed:?}"
        );
    }
    assert_eq!(host.authority.resolve(&id_of("a")).await, Resolved::Missing);
}

/// REQ: LS-041
#[tokio::test(start_paused = true)]
async fn one_of_many_racers_wins() {
    let store = MemoryStore::new();
    let hosts = [
        Host::start(&store, 1).await,
        Host::start(&store, 2).await,
        Host::start(&store, 3).await,
    ];
    let racers = (0..64_u8).map(|at| {
        let host = &hosts[usize::from(at) % hosts.len()];
        host.authority.reserve(Reserve {
            operation: operation(at),
            ..host.reserve("a", ObjectKind::User)
        })
    });
    let ended = futures_join(racers).await;
    let won: Vec<_> = ended
        .iter()
        .filter_map(|one| match one {
            Ok(Reserving::Won(reservation)) => reservation.record(),
            _ => None,
        })
        .collect();
    assert_eq!(won.len(), 1);
    assert_eq!(
        ended
            .iter()
            .filter(|one| matches!(one, Ok(Reserving::Lost(record)) if record == won[0]))
            .count(),
        63
    );
}

/// REQ: LS-033, LS-034, LS-036
#[tokio::test(start_paused = true)]
async fn who_was_counted_out_learns_what_was_taken_before_it_goes_on() {
    let store = MemoryStore::new();
    let faults = Faults::new(1);
    let cut_off = Host::start(&store.with_faults(faults.clone()), 1).await;
    let host = Host::start(&store, 2).await;
    let [taken, kept] = [
        cut_off.ready("a", ObjectKind::User).await,
        cut_off.ready("b", ObjectKind::User).await,
    ];
    faults.cut();
    assert_eq!(host.authority.release(&taken.reference()).await, Ok(Removal::Removed));
    let new = host.ready("a", ObjectKind::User).await;
    assert!(!cut_off.lease.admits());
    faults.heal();
    while !cut_off.lease.admits() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let told: Vec<_> = cut_off
        .taken
        .lock()
        .iter()
        .map(|record| (record.id.clone(), record.generation))
        .collect();
    assert_eq!(told, [(taken.id.clone(), taken.generation)]);
    assert_eq!(cut_off.authority.delete(&kept).await, Ok(Removal::Removed));
    assert_eq!(
        cut_off.authority.delete(&taken).await,
        Ok(Removal::Other(Box::new(new.clone())))
    );
    assert_eq!(
        cut_off.authority.preserve(&taken, Bytes::new()).await,
        Err(AuthorityError::Conflict)
    );
    assert_eq!(host.authority.resolve(&taken.id).await, Resolved::Ready(new));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        counts(&store, "capacity/node-1").await,
        counted(0, 0),
        "one was taken, the other deleted"
    );
    assert!(keys(&store).await.iter().all(|key| !key.starts_with("taken/")));
}

/// REQ: LS-110
#[tokio::test(start_paused = true)]
async fn pages_show_every_spot_once() {
    let store = MemoryStore::new();
    let (host, other) = (Host::start(&store, 1).await, Host::start(&store, 2).await);
    for at in 0..11 {
        host.ready(&format!("user {at}"), ObjectKind::User).await;
        other.ready(&format!("cart {at}"), ObjectKind::Instance).await;
    }
    let filter = Filter {
        kind: ObjectKind::User,
        stable_type: None,
        mesh: None,
    };
    for size in [1, 3, 1000] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let (listed, next) = other.authority.reader().page(&filter, size, after).await.unwrap();
            assert!(listed.len() <= size);
            seen.extend(listed.into_iter().map(|one| one.record.id));
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        let distinct: std::collections::BTreeSet<_> = seen.iter().collect();
        assert_eq!((seen.len(), distinct.len()), (11, 11));
    }
    let (mine, next) = host
        .authority
        .reader()
        .owned_by(host.lease.config().owner, None)
        .await
        .unwrap();
    assert_eq!((mine.len(), next), (11, None));
    assert!(host.authority.reader().page(&filter, 0, None).await.is_err());
}
