//! Tells of a host that stands still: all its permits are in use, and no job has started for a while. It changes nothing.

use std::time::Duration;

use crate::limit::STALL_TIME;
use crate::permit::{HostPermits, PermitStatus};

/// How often a full host is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Whether that is a stall.
pub(super) fn is_stalled(permits: &PermitStatus) -> bool {
    permits.stalled.is_some_and(|since| since >= STALL_TIME)
}

/// Warns once of each stall, until the permits are closed.
pub(super) async fn watch(permits: HostPermits) {
    let mut watch = permits.watch();
    let mut paused = permits.flow().paused;
    let mut told = false;
    loop {
        // Only a host that asks its peers to pause can be full: any other is not looked at.
        let changed = if paused {
            tokio::time::timeout(LOOK, watch.changed()).await
        } else {
            Ok(watch.changed().await)
        };
        match changed {
            Ok(Some(flow)) => paused = flow.paused,
            Ok(None) => return,
            Err(_) => {}
        }
        let status = permits.status();
        let stalled = is_stalled(&status);
        if stalled && !told {
            tracing::warn!(
                target: "zlink::runtime", event_id = "zlink.runtime.host.saturation_stall", limit = status.limits.max(),
                reserved = status.reserved, queued = status.queued, waiting_sources = status.waiting,
                "every permit is in use, and no job has started for {STALL_TIME:?}: handlers may be waiting for each other"
            );
        }
        told = stalled;
    }
}
