//! Stores at the ends of what they count: of revisions and of time.

use zlink_runtime::location::{Faults, LocationStore, StoreError};

use crate::far::Far;
use crate::kit::{batch, key, put, value, write};
use crate::store::PROVIDERS;

/// REQ: LS-023
#[tokio::test(start_paused = true)]
async fn after_the_last_revision_every_batch_fails_alike() {
    for provider in PROVIDERS {
        let far = Far::new(provider);
        let store = far.open("one", &Faults::new(0)).0;
        write(&store, &batch([], [put("a", "1")])).await.unwrap();
        far.skip_revisions();
        for _ in 0..2 {
            let answer = store.write(&batch([], [put("b", "1")])).await;
            assert_eq!(answer, Err(StoreError::Exhausted), "{provider:?}");
        }
        assert_eq!(value(&store, "b").await.unwrap(), None);
        assert!(value(&store, "a").await.unwrap().is_some());
    }
}

/// REQ: LS-066, LS-072
#[tokio::test(start_paused = true)]
async fn a_clock_that_goes_back_does_not_take_the_stores_time_back() {
    for provider in PROVIDERS {
        let far = Far::new(provider);
        let store = far.open("one", &Faults::new(0)).0;
        let now = async || store.read(&key("a")).await.unwrap().now;
        let first = now().await;
        far.jump("one", -5_000);
        assert_eq!(now().await, first, "{provider:?}");
        far.jump("one", 5_001);
        assert_eq!(now().await.as_millis(), first.as_millis() + 1, "{provider:?}");
    }
}
