//! Who owns a Spot, shown on real processes over real stores: many that race for one ID, owners that are stopped, killed,
//! and cut off from a store that is down. Each process writes down what runs in it; the tests read that.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail"
)]

mod away;
mod clocks;
mod crowd;
mod day;
mod down;
mod journal;
mod killed;
mod node;
mod objects;
#[path = "../shared/players.rs"]
mod players;
#[path = "../shared/process.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod process;
#[path = "../shared/redis.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod server;
mod stage;

/// What the other processes run; by itself it does nothing.
#[test]
#[ignore = "the other processes of these tests"]
fn child() {
    let Some((role, arguments)) = process::role() else {
        return;
    };
    assert_eq!(role, "node");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.unwrap().block_on(node::run(&arguments));
}
