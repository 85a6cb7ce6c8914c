//! Chapter 10: how many jobs may wait, who waits for whom, and how a host under pressure slows its peers.

mod completion;
mod count;
mod flood;
mod pressure;

use zlink_generated::contract::orders_server;
use zlink_runtime::Host;

use crate::kit::{Desk, Way, serving};

/// Serves `orders`, one handler at a time, with `jobs` permits; it pauses its peers when all are in use.
async fn narrow(way: Way, desk: &Desk, jobs: u32) -> Host {
    let orders = orders_server(desk.clone()).dispatch_limit(1);
    serving(way, orders, |host| host.max_queued_jobs(jobs).pressure(100, 99)).await
}
