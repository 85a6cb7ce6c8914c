//! The simulated transport, in real time: the suite, without what needs the system's sockets or other processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zlink_runtime::testing::network::Network;
use zlink_runtime::testing::transport::Suite;

fn suite() -> Suite {
    let sides = AtomicUsize::new(0);
    let network = std::sync::OnceLock::new();
    Suite::over(move || {
        // Within the runtime of the case.
        let network: &Network = network.get_or_init(|| Network::new(1));
        let side = sides.fetch_add(1, Ordering::Relaxed);
        Arc::new(network.transport(&format!("side{side}")))
    })
    .left_out(
        "two_lanes_over_a_unix_socket",
        "it looks at the socket's file, and there is none",
    )
    .left_out(
        "slow_stopped_and_killed_peers_leave_sixteen_others_served",
        "its peers are other processes, which this network does not reach",
    )
    .left_out(
        "what_cannot_be_bound_or_dialled_says_so",
        "one of its listeners is a socket of the system, which this network does not reach",
    )
}

zlink_runtime::transport_conformance!(suite());
