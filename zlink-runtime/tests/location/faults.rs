//! What can be made to go wrong with a store, within the one in memory or around any other, on paused time. What is shown is
//! of the faults, so the store plays no part.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use zlink_runtime::location::{
    Condition, Fault, Faults, LocationStore, MemoryStore, Operation, Revision, Scan, Scanned, StoreError,
};
use zlink_runtime::testing::Faulty;

use crate::kit::{batch, key, put, value, write};

const SECOND: Duration = Duration::from_secs(1);

/// A namespace, a handle with trouble on it, and what steers the trouble.
fn troubled(seed: u64) -> (MemoryStore, MemoryStore, Faults) {
    let (store, faults) = (MemoryStore::new(), Faults::new(seed));
    let troubled = store.with_faults(faults.clone());
    (store, troubled, faults)
}

/// The same twice, with the trouble within and around.
fn troubles(seed: u64) -> [(MemoryStore, Arc<dyn LocationStore>, Faults); 2] {
    let (store, within, faults) = troubled(seed);
    let around = (MemoryStore::new(), Faults::new(seed));
    let faulty = Faulty::new(Arc::new(around.0.clone()), around.1.clone());
    [
        (store, Arc::new(within), faults),
        (around.0, Arc::new(faulty), around.1),
    ]
}

/// REQ: LS-066, LS-102
#[tokio::test(start_paused = true)]
async fn an_error_is_no_absence_and_concerns_one_handle() {
    for (store, troubled, faults) in troubles(1) {
        let change = batch([], [put("a", "1")]);
        write(&store, &change).await.unwrap();
        faults.cut();
        assert!(matches!(
            troubled.read(&key("a")).await,
            Err(StoreError::Unavailable(_))
        ));
        assert!(matches!(troubled.write(&change).await, Err(StoreError::Unavailable(_))));
        assert!(matches!(
            troubled.scan(&Scan::new("", 1).unwrap()).await,
            Err(StoreError::Unavailable(_))
        ));
        assert_eq!(value(&store, "a").await.unwrap().unwrap(), "1");
        faults.heal();
        assert_eq!(value(&troubled, "a").await.unwrap().unwrap(), "1");
        faults.next(Operation::Read, None);
        faults.next(Operation::Read, Fault::Error);
        assert!(troubled.read(&key("a")).await.is_ok());
        assert!(troubled.read(&key("a")).await.is_err());
        assert!(troubled.read(&key("a")).await.is_ok());
        assert_eq!(faults.begun(Operation::Read), 5);
        assert_eq!(faults.begun(Operation::Write), 1);
    }
}

/// REQ: LS-066
#[tokio::test(start_paused = true)]
async fn a_delay_stands_before_or_behind_what_is_done() {
    for (store, troubled, faults) in troubles(2) {
        let begun = Instant::now();
        faults.next(Operation::Write, Fault::Delay(SECOND));
        faults.next(Operation::Write, Fault::DelayAnswer(SECOND));
        let late = {
            let troubled = troubled.clone();
            tokio::spawn(async move { write(&troubled, &batch([], [put("late", "x")])).await })
        };
        tokio::task::yield_now().await;
        let early = tokio::spawn(async move { write(&troubled, &batch([], [put("early", "x")])).await });
        tokio::task::yield_now().await;
        assert_eq!(value(&store, "late").await.unwrap(), None);
        assert!(value(&store, "early").await.unwrap().is_some());
        assert!(!early.is_finished());
        let (late, early) = (late.await.unwrap().unwrap(), early.await.unwrap().unwrap());
        assert_eq!(begun.elapsed(), SECOND);
        assert!(early < late);
    }
}

/// REQ: LS-066, LS-100
#[tokio::test(start_paused = true)]
async fn after_a_lost_answer_only_repeating_the_batch_tells() {
    for (store, troubled, faults) in troubles(3) {
        let change = batch([Condition::Missing(key("a"))], [put("a", "nonce 1")]);
        faults.next(Operation::Write, Fault::LostAnswer);
        let lost = troubled.write(&change).await.unwrap_err();
        assert!(lost.may_be_applied(), "{lost}");
        assert_eq!(write(&troubled, &change).await.unwrap(), None);
        assert_eq!(value(&troubled, "a").await.unwrap().unwrap(), "nonce 1");
        // And where it lands later than a read that would have been believed.
        let change = batch([Condition::Missing(key("b"))], [put("b", "nonce 2")]);
        faults.next(Operation::Write, Fault::LateWrite(SECOND));
        assert!(troubled.write(&change).await.unwrap_err().may_be_applied());
        assert_eq!(value(&troubled, "b").await.unwrap(), None);
        tokio::time::sleep(2 * SECOND).await;
        assert_eq!(value(&store, "b").await.unwrap().unwrap(), "nonce 2");
        assert_eq!(write(&troubled, &change).await.unwrap(), None);
        // Repeated in time, the batch is applied, and the late one is in conflict.
        let change = batch([Condition::Missing(key("c"))], [put("c", "nonce 3")]);
        faults.next(Operation::Write, Fault::LateWrite(SECOND));
        assert!(troubled.write(&change).await.is_err());
        let applied = write(&troubled, &change).await.unwrap();
        tokio::time::sleep(2 * SECOND).await;
        let found = store.read(&key("c")).await.unwrap().found.unwrap();
        assert_eq!(Some(found.revision), applied);
        // What changes nothing has no unknown outcome.
        faults.next(Operation::Read, Fault::LostAnswer);
        let lost = troubled.read(&key("c")).await.unwrap_err();
        assert!(matches!(lost, StoreError::Unavailable(_)), "{lost}");
    }
}

/// REQ: LS-066
#[tokio::test(start_paused = true)]
async fn a_stale_read_is_whole_and_never_older_than_what_was_answered() {
    for seed in 0..50 {
        let (store, troubled, faults) = troubled(seed);
        faults.every(Operation::Read, Fault::Stale);
        faults.every(Operation::Scan, Fault::Stale);
        let pair = [key("a"), key("b")];
        let (mut last, mut newest) = (None, None);
        let mut stale = 0;
        for round in 0..20 {
            let change = batch([], [put("a", round.to_string()), put("b", round.to_string())]);
            // The handle's own writes are answers, too.
            let own = round % 7 == 0;
            newest = write(if own { &troubled } else { &store }, &change).await.unwrap();
            last = if own { newest } else { last };
            let found = troubled.read_many(&pair).await.unwrap().found;
            let versions: Vec<_> = found
                .iter()
                .map(|one| one.as_ref().map(|stored| stored.revision))
                .collect();
            assert_eq!(versions[0], versions[1], "seed {seed}: torn");
            assert!(versions[0] >= last, "seed {seed}: {:?} after {last:?}", versions[0]);
            last = versions[0];
            stale += u32::from(last < newest);
            let Scanned::Page(page) = troubled.scan(&Scan::new("", 10).unwrap()).await.unwrap() else {
                panic!("expired");
            };
            assert!(page.revision >= last, "seed {seed}: {:?} after {last:?}", page.revision);
            assert!(
                page.entries
                    .iter()
                    .all(|(_, stored)| Some(stored.revision) == page.revision)
            );
            last = page.revision;
        }
        assert!(stale > 0, "seed {seed}: every read was fresh");
        // A conflict is an answer: the state that decided it is seen.
        let condition = Condition::Version(key("a"), Revision::new(1).unwrap());
        write(&store, &batch([], [put("a", "last")])).await.unwrap();
        assert_eq!(
            write(&troubled, &batch([condition], [put("a", "x")])).await.unwrap(),
            None
        );
        assert_eq!(value(&troubled, "a").await.unwrap().unwrap(), "last");
        assert!(newest.is_some());
    }
}

/// REQ: LS-066
#[tokio::test(start_paused = true)]
async fn the_same_seed_meets_the_same_faults() {
    async fn history(seed: u64) -> Vec<(bool, Duration)> {
        let (_, troubled, faults) = troubled(seed);
        faults.sometimes(Operation::Write, Fault::Error, 200);
        faults.sometimes(Operation::Write, Fault::LostAnswer, 200);
        faults.sometimes(Operation::Write, Fault::Delay(SECOND), 500);
        let mut history = Vec::new();
        for round in 0..200 {
            let begun = Instant::now();
            let change = batch([], [put(format!("{round}"), "x")]);
            history.push((troubled.write(&change).await.is_ok(), begun.elapsed()));
        }
        history
    }
    let first = history(7).await;
    assert_eq!(first, history(7).await);
    assert_ne!(first, history(8).await);
    let failed = first.iter().filter(|(is_ok, _)| !is_ok).count();
    let waited = first.iter().filter(|(_, waited)| !waited.is_zero()).count();
    // 1,000 in a thousand would be 200: 36 % fail, and half of the others wait.
    assert!(
        (40..110).contains(&failed) && (30..100).contains(&waited),
        "{failed} failed, {waited} waited"
    );
}
