//! Waits with a deadline, for the tests that run against real sockets. It must not know what they wait for.

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

/// How long anything may take that should happen at once; only failing tests wait that long.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// Measures time as the test's own runtime gets it. A test beside many others gets a part of the machine, so it also
/// counts how often a short sleep came to its end: time is up where both are.
pub(crate) struct Stopwatch {
    begin: Instant,
    sleeps: Arc<AtomicU64>,
    counting: JoinHandle<()>,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        let sleeps = Arc::new(AtomicU64::new(0));
        let counted = sleeps.clone();
        let counting = tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(1)).await;
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self {
            begin: Instant::now(),
            sleeps,
            counting,
        }
    }

    /// Whether that much time has passed. A sleep of a millisecond takes up to two of them on an idle machine.
    pub(crate) fn is_past(&self, limit: Duration) -> bool {
        let sleeps = u128::from(self.sleeps.load(Ordering::Relaxed));
        self.begin.elapsed() >= limit && sleeps >= limit.as_millis() / 2
    }
}

impl Drop for Stopwatch {
    fn drop(&mut self) {
        self.counting.abort();
    }
}

/// The output of `future`, or `None` where it takes longer than `limit`. What it waits for has to wake it.
pub(crate) async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let watch = Stopwatch::start();
    let too_long = async {
        while !watch.is_past(limit) {
            tokio::time::sleep(limit / 10).await;
        }
    };
    tokio::select! {
        biased;
        output = future => Some(output),
        () = too_long => None,
    }
}

/// Waits until `condition` holds, and says what was missed where it does not in time.
#[track_caller]
pub(crate) fn until<F: FnMut() -> bool>(what: &str, condition: F) -> impl Future<Output = ()> + use<F> {
    until_within(SOON, what, condition)
}

#[track_caller]
pub(crate) fn until_within<F: FnMut() -> bool>(
    limit: Duration,
    what: &str,
    mut condition: F,
) -> impl Future<Output = ()> + use<F> {
    let at = Location::caller();
    let what = what.to_owned();
    async move {
        let watch = Stopwatch::start();
        while !condition() {
            assert!(!watch.is_past(limit), "{at}: not in time: {what}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
