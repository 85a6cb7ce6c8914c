//! Hosts that are cut off and come back, in virtual time: what they may not do, and what they learn.

use std::sync::atomic::{AtomicU64, Ordering};

use zlink_runtime::location::{
    Batch, BoxFuture, Fault, Faults, Key, Mutation, Operation, ReadMany, Scan, Scanned, StoreError, Written,
};

use super::*;

async fn made(host: &Owner, text: &str, operation: u128) -> Spot {
    let reservation = reserved(host.reserve(Ask::new(&id(text), operation)).await);
    ready(host.commit(reservation, b"").await)
}

/// REQ: LS-034, LS-100
#[tokio::test(start_paused = true)]
async fn a_write_under_way_does_not_land_once_its_host_is_counted_out() {
    for provider in PROVIDERS {
        let far = Far::new(provider);
        let faults = Faults::new(1);
        let (cut_off, other) = (
            troubled(&far, &faults, 1).await,
            troubled(&far, &Faults::new(2), 2).await,
        );
        let held = made(&cut_off, "held", 1).await;
        // It is on its way for a minute; nothing else of this host arrives.
        faults.next(Operation::Write, Fault::LateWrite(Duration::from_secs(60)));
        faults.every(Operation::Write, Fault::Error);
        let late = cut_off.clone();
        let reserving = tokio::spawn(async move { late.reserve(Ask::new(&id("late"), 2)).await });
        assert!(matches!(other.release(&held.reference()).await, Seen::Removed));
        tokio::time::sleep(Duration::from_secs(70)).await;
        assert!(matches!(other.resolve(&id("late")).await, Seen::Missing), "it landed");
        assert!(!reserving.is_finished(), "nobody could know what would come of it");
        let taken = made(&other, "late", 3).await;
        faults.heal();
        let seen = reserving.await.unwrap();
        assert!(
            matches!(&seen, Seen::Other(seen) if *seen == taken),
            "{provider:?}: {seen:?}"
        );
        // What was taken is counted out by and by.
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(cut_off.counted(None).await, Ok((0, 0)));
    }
}

/// Whoever was counted out writes nothing, not even of what nobody took.
///
/// REQ: LS-034, LS-040, LS-100
#[tokio::test(start_paused = true)]
async fn a_commit_under_way_does_not_land_once_its_host_is_counted_out() {
    for provider in PROVIDERS {
        let far = Far::new(provider);
        let faults = Faults::new(1);
        let (cut_off, other) = (
            troubled(&far, &faults, 1).await,
            troubled(&far, &Faults::new(2), 2).await,
        );
        let held = made(&cut_off, "held", 1).await;
        let reservation = reserved(cut_off.reserve(Ask::new(&id("late"), 2)).await);
        faults.next(Operation::Write, Fault::LateWrite(Duration::from_secs(60)));
        faults.every(Operation::Write, Fault::Error);
        let late = cut_off.clone();
        let committing = tokio::spawn(async move { late.commit(reservation, b"").await });
        // With another Spot goes the lease, and this one stays as it is.
        assert!(matches!(other.release(&held.reference()).await, Seen::Removed));
        tokio::time::sleep(Duration::from_secs(70)).await;
        let seen = other.resolve(&id("late")).await;
        assert!(
            matches!(&seen, Seen::Unavailable(spot) if !spot.is_ready()),
            "it landed: {seen:?}"
        );
        faults.heal();
        let spot = ready(committing.await.unwrap());
        // Others look at its lease once a second.
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(
            matches!(other.resolve(&id("late")).await, Seen::Ready(seen) if seen == spot),
            "once it has its lease again"
        );
    }
}

/// A renewal whose answer was lost holds from before it was tried first, however often it was repeated.
///
/// REQ: LS-031, LS-100
#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_found_out_late_holds_no_longer_for_that() {
    for provider in PROVIDERS {
        let (far, faults) = (Far::new(provider), Faults::new(1));
        let owner = troubled(&far, &faults, 1).await;
        let begun = faults.begun(Operation::Write);
        faults.next(Operation::Write, Fault::LostAnswer);
        (0..12).for_each(|_| faults.next(Operation::Write, Fault::Error));
        while faults.begun(Operation::Write) == begun {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // It was applied now. It is repeated each half second, and found out after six; the next is due five seconds later.
        tokio::time::sleep(Duration::from_millis(9_900)).await;
        let tried = faults.begun(Operation::Write) - begun;
        assert!(owner.admits() && tried == 14, "{provider:?}: {tried}");
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!owner.admits(), "TTL less the margin since it was begun");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(owner.admits(), "renewed");
    }
}

/// A way to a store on which the batch that takes something from another host stands still, until it may go on.
#[derive(Debug)]
struct Late(Arc<dyn LocationStore>, tokio::sync::Semaphore, AtomicU64);

impl LocationStore for Late {
    fn read_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<ReadMany, StoreError>> {
        self.0.read_many(keys)
    }

    fn write<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Written, StoreError>> {
        Box::pin(async move {
            let taken = |mutation: &Mutation| mutation.key().as_str().starts_with("taken/");
            if batch.mutations().iter().any(taken) {
                self.2.fetch_add(1, Ordering::Relaxed);
                drop(self.1.acquire().await);
            }
            self.0.write(batch).await
        })
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Scanned, StoreError>> {
        self.0.scan(scan)
    }
}

/// Whoever renewed its lease before the batch came that counts it out was not dead, and keeps what it has.
///
/// REQ: LS-036
#[tokio::test(start_paused = true)]
async fn who_renews_while_it_is_counted_out_keeps_all_it_has() {
    for provider in PROVIDERS {
        let far = Far::new(provider);
        let faults = Faults::new(1);
        let owner = troubled(&far, &faults, 1).await;
        let spot = made(&owner, "a", 1).await;
        let store = Arc::new(far.open("node-2", &Faults::new(2)).0);
        let way = Arc::new(Late(store, tokio::sync::Semaphore::new(0), AtomicU64::new(0)));
        let timing = LocationTiming {
            // It waits for as long as that for an answer.
            renew_timeout: Duration::from_secs(4),
            ..LocationTiming::default()
        };
        let other = Owner::start(way.clone(), timing, BootClock::of_tokio(), "node-2", 2).await;
        let other = Arc::new(other.unwrap());
        faults.cut();
        let (asked, reference) = (other.clone(), spot.reference());
        let releasing = tokio::spawn(async move { asked.release(&reference).await });
        while way.2.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        faults.heal();
        while !owner.admits() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        way.1.add_permits(1);
        assert!(matches!(releasing.await.unwrap(), Seen::OwnerAlive));
        assert!(matches!(other.resolve(&id("a")).await, Seen::Ready(seen) if seen == spot));
        assert!(matches!(owner.delete(&spot).await, Seen::Removed));
    }
}

/// REQ: LS-033, LS-036
#[tokio::test(start_paused = true)]
async fn who_comes_back_knows_what_was_taken_before_it_goes_on() {
    for provider in PROVIDERS {
        let far = Far::new(provider);
        let faults = Faults::new(1);
        let (cut_off, other) = (
            troubled(&far, &faults, 1).await,
            troubled(&far, &Faults::new(2), 2).await,
        );
        let (taken, kept) = (made(&cut_off, "taken", 1).await, made(&cut_off, "kept", 2).await);
        faults.cut();
        assert!(matches!(other.release(&taken.reference()).await, Seen::Removed));
        assert!(matches!(other.resolve(&id("kept")).await, Seen::Unavailable(seen) if seen == kept));
        let new = made(&other, "taken", 3).await;
        assert!(!cut_off.admits() && cut_off.taken().is_empty());
        // What it wrote last cannot come between.
        faults.heal();
        faults.sometimes(Operation::Write, Fault::LostAnswer, 300);
        faults.sometimes(Operation::Scan, Fault::Error, 300);
        while !cut_off.admits() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let told = cut_off.taken();
        let told: BTreeSet<_> = told.iter().map(|spot| (spot.reference(), spot.generation())).collect();
        assert_eq!(told, BTreeSet::from([(taken.reference(), taken.generation())]));
        assert!(matches!(cut_off.delete(&taken).await, Seen::Other(seen) if seen == new));
        // What nobody took is its own as before: the same run, the same generations.
        // Others look at its lease once a second.
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(matches!(other.resolve(&id("kept")).await, Seen::Ready(seen) if seen == kept));
        assert!(matches!(cut_off.delete(&kept).await, Seen::Removed));
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(cut_off.counted(None).await, Ok((0, 0)), "one was taken, one deleted");
    }
}

/// REQ: LS-036
#[tokio::test(start_paused = true)]
async fn a_jump_of_the_stores_clock_changes_no_owner() {
    const HOUR: i64 = 3_600_000;
    for (provider, jump) in PROVIDERS.into_iter().flat_map(|one| [(one, HOUR), (one, -HOUR)]) {
        let far = Far::new(provider);
        // Of a file, the clock of whoever writes is the store's.
        let jumps = || ["node-1", "node-2"].iter().for_each(|node| far.jump(node, jump));
        let (owner, other) = (
            troubled(&far, &Faults::new(1), 1).await,
            troubled(&far, &Faults::new(2), 2).await,
        );
        let spot = made(&owner, "a", 1).await;
        jumps();
        assert!(matches!(other.release(&spot.reference()).await, Seen::OwnerAlive));
        assert!(matches!(other.resolve(&id("a")).await, Seen::Ready(seen) if seen == spot));
        owner.kill();
        // From here on it is seen to stand, and jumps again and again meanwhile.
        while owner.admits() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let begun = tokio::time::Instant::now();
        let reference = spot.reference();
        let releasing = other.release(&reference);
        tokio::pin!(releasing);
        let seen = loop {
            tokio::select! {
                biased;
                seen = &mut releasing => break seen,
                () = tokio::time::sleep(Duration::from_secs(2)) => jumps(),
            }
        };
        assert!(matches!(seen, Seen::Removed), "{provider:?}: {seen:?}");
        // It was renewed at most 5 s before it was killed, and seen so.
        let took = begun.elapsed();
        assert!(
            took >= Duration::from_secs(14) && took <= Duration::from_secs(22),
            "{provider:?}: {took:?}"
        );
    }
}

/// REQ: LS-043, AC-097
#[tokio::test(start_paused = true)]
async fn how_an_operation_ended_is_known_for_five_minutes_of_the_stores_time() {
    for provider in PROVIDERS {
        let far = Far::new(provider);
        let host = troubled(&far, &Faults::new(1), 1).await;
        let spot = made(&host, "a", 1).await;
        assert!(matches!(host.delete(&spot).await, Seen::Removed));
        // Its deadline was the moment of its end.
        far.jump("node-1", 299_000);
        assert!(
            matches!(host.reserve(Ask::new(&id("a"), 1)).await, Seen::Over),
            "{provider:?}"
        );
        far.jump("node-1", 2_000);
        assert_ne!(
            made(&host, "a", 1).await.generation(),
            spot.generation(),
            "{provider:?}: it is made anew"
        );
    }
}

/// REQ: LS-102, LS-032
#[tokio::test(start_paused = true)]
async fn a_store_that_fails_is_no_absence_and_no_leave_to_go_on() {
    for provider in PROVIDERS {
        let far = Far::new(provider);
        let faults = Faults::new(1);
        let host = troubled(&far, &faults, 1).await;
        let spot = made(&host, "a", 1).await;
        faults.next(Operation::Read, Fault::Error);
        assert!(matches!(host.resolve(&id("a")).await, Seen::Failed(_)));
        assert!(matches!(host.resolve(&id("a")).await, Seen::Ready(seen) if seen == spot));
        faults.next(Operation::Write, Fault::Error);
        assert!(matches!(host.reserve(Ask::new(&id("b"), 2)).await, Seen::Failed(_)));
        assert!(matches!(host.resolve(&id("b")).await, Seen::Missing));
        faults.every(Operation::Write, Fault::Error);
        while host.admits() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(matches!(host.reserve(Ask::new(&id("b"), 3)).await, Seen::Closed));
        assert!(matches!(host.preserve(&spot, Bytes::new()).await, Seen::Closed));
        assert!(matches!(host.resolve(&id("a")).await, Seen::Unavailable(_)));
        faults.heal();
        assert!(matches!(host.resolve(&id("b")).await, Seen::Missing));
        assert!(
            matches!(host.delete(&spot).await, Seen::Removed),
            "as soon as it may, and as it was"
        );
    }
}

/// Of a lease that cannot be read nobody says that it is there, nor that it is not.
///
/// REQ: LS-102, RT-006
#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_read_is_neither_alive_nor_dead() {
    for provider in PROVIDERS {
        let (far, faults) = (Far::new(provider), Faults::new(2));
        let (owner, other) = (
            troubled(&far, &Faults::new(1), 1).await,
            troubled(&far, &faults, 2).await,
        );
        let spot = made(&owner, "a", 1).await;
        for fault in [Fault::Error, Fault::LostAnswer] {
            // The record can be read, the lease of whoever owns it cannot.
            faults.next(Operation::Read, None);
            faults.next(Operation::Read, fault);
            let seen = other.resolve(&id("a")).await;
            assert!(matches!(seen, Seen::Failed(_)), "{provider:?}: {seen:?}");
        }
        assert!(matches!(other.resolve(&id("a")).await, Seen::Ready(seen) if seen == spot));
    }
}

/// The first write of a lease, whose answer was lost and which was repeated, arrives once its host was counted out: that host
/// knows it for its own.
///
/// REQ: LS-022, LS-100
#[tokio::test(start_paused = true)]
async fn a_first_write_that_lands_late_is_of_no_other_run() {
    for provider in PROVIDERS {
        let (far, faults) = (Far::new(provider), Faults::new(1));
        faults.next(Operation::Write, Fault::LateWrite(Duration::from_secs(40)));
        let owner = troubled(&far, &faults, 1).await;
        let other = troubled(&far, &Faults::new(2), 2).await;
        let (taken, kept) = (made(&owner, "taken", 1).await, made(&owner, "kept", 2).await);
        faults.cut();
        assert!(matches!(other.release(&taken.reference()).await, Seen::Removed));
        tokio::time::sleep(Duration::from_secs(20)).await;
        faults.heal();
        let began = tokio::time::Instant::now();
        while !owner.admits() {
            assert!(
                began.elapsed() < Duration::from_secs(10),
                "{provider:?}: it never goes on"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(owner.taken().len(), 1, "{provider:?}");
        // Others look at its lease once a second.
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(matches!(other.resolve(&id("kept")).await, Seen::Ready(seen) if seen == kept));
        assert!(matches!(owner.delete(&kept).await, Seen::Removed));
    }
}
