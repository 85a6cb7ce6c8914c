//! At rest no host holds a permit or waits for a reply: those that run, those that stopped and those that were killed.

use std::time::Duration;

use crate::world::World;

pub(crate) async fn check(world: &World) {
    world.cluster.at_rest(Duration::from_secs(5)).await;
    for (name, host) in world.runs.lock().iter() {
        let status = host.status();
        assert_eq!(
            (status.jobs.in_use(), status.waiting_requests),
            (0, 0),
            "{name}, {:?}: permits, replies",
            status.phase
        );
    }
}

/// In the middle of a storm: what is held is bounded.
pub(crate) fn bounded(world: &World) {
    for (name, host) in world.hosts() {
        let jobs = host.status().jobs;
        assert!(jobs.in_use() <= jobs.limit, "{name}: {jobs:?}");
    }
}
