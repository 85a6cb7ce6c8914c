//! Waits with a deadline, for the tests that run against real sockets. It must not know what they wait for.

use std::future::Future;
use std::panic::Location;
use std::time::{Duration, Instant};

/// How long anything may take that should happen at once; only failing tests wait that long.
pub(crate) const SOON: Duration = Duration::from_secs(10);

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
        let deadline = Instant::now() + limit;
        while !condition() {
            assert!(Instant::now() < deadline, "{at}: not in time: {what}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
