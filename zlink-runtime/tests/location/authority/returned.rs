//! Hosts that were counted out and come back, in virtual time: to much that was taken from them.

use zlink_runtime::location::{Batch, Fault, Faults, Key, Mutation, Operation, Scan, Scanned, Written};

use super::*;

async fn made(host: &Owner, text: &str, operation: u128) -> Spot {
    let reservation = reserved(host.reserve(Ask::new(&id(text), operation)).await);
    ready(host.commit(reservation, b"").await)
}

/// The first entries below that prefix, at most 1,000.
async fn entries(store: &dyn LocationStore, prefix: &str) -> Vec<(Key, Bytes)> {
    let Scanned::Page(page) = store.scan(&Scan::new(prefix, 1000).unwrap()).await.unwrap() else {
        panic!("a first page is never expired");
    };
    let entries = page.entries.into_iter();
    entries.map(|(key, stored)| (key, stored.value)).collect()
}

/// It takes longer to read what was taken than its lease holds, and longer than others wait: its lease is renewed between,
/// and in the end it goes on.
///
/// REQ: LS-031, LS-033, LS-036
#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_while_a_long_list_is_read_from_a_slow_store() {
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
        let store = far.open("observer", &Faults::new(3)).0;
        let [(key, value)] = &entries(&store, "taken/").await[..] else {
            panic!("one was taken");
        };
        // As if there were 8,501 of them: nine pages of more than two seconds each.
        for thousand in 0..9 {
            let more = (0..1000 - 500 * (thousand / 8)).map(|number| format!("{key}~{thousand}{number:03}"));
            let more = more.map(|key| Mutation::put(Key::new(key).unwrap(), value.clone()));
            let written = store.write(&Batch::new([], more.collect::<Vec<_>>()).unwrap()).await;
            assert!(matches!(written, Ok(Written::Applied { .. })));
        }
        faults.heal();
        faults.every(Operation::Scan, Fault::Delay(Duration::from_millis(2_500)));
        while entries(&store, "lease/").await.len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let began = tokio::time::Instant::now();
        while !cut_off.admits() {
            let seen = other.release(&kept.reference()).await;
            assert!(matches!(seen, Seen::OwnerAlive), "{provider:?}: {seen:?}");
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "{provider:?}: it never goes on"
            );
        }
        assert!(
            began.elapsed() > Duration::from_secs(20),
            "it was quick: nothing is shown"
        );
        assert_eq!(cut_off.taken().len(), 8_501, "{provider:?}: it knows all, each once");
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(matches!(other.resolve(&id("kept")).await, Seen::Ready(seen) if seen == kept));
    }
}
