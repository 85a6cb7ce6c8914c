//! The transport's contract, on the default implementation: what travels, what is held back, what is refused.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test's own helpers may fail it, and its numbers are small"
)]

mod basics;
mod cancel;
mod crowd;
mod hostile;
mod interop;
mod kit;
mod pressure;

/// Not a test: what the child processes of tests run.
#[tokio::test]
#[ignore = "the other tests start it"]
async fn a_child_of_another_test() {
    if let Ok(told) = std::env::var("ZLINK_TEST_CHILD") {
        let (role, endpoint) = told.split_once(' ').unwrap();
        crowd::child(role, endpoint).await;
    }
}
