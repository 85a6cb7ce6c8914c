//! Time as the runtime reads it: tokio's clock, so that a test can pause it, and deadlines on it.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::ArgumentError;
use crate::limit::TIMEOUT_MILLIS;

/// The present, on the clock that tests may pause.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Checks a timeout given by a user and rounds it up to whole milliseconds.
///
/// # Errors
/// Where it is zero or longer than `i32::MAX` milliseconds.
pub(crate) fn timeout(argument: &'static str, value: Duration) -> Result<Duration, ArgumentError> {
    let millis = value.as_nanos().div_ceil(1_000_000);
    match u64::try_from(millis) {
        Ok(millis @ 1..=TIMEOUT_MILLIS) => Ok(Duration::from_millis(millis)),
        Ok(0) => Err(ArgumentError::new(argument, "0 is no timeout; give at least 1 ms")),
        _ => Err(ArgumentError::new(
            argument,
            format!("is longer than {TIMEOUT_MILLIS} ms, the most a timeout can be"),
        )),
    }
}
