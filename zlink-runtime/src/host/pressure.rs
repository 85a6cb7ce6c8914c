//! What the permits of a host make known: peers are told its receive flow, and people that it stands still.
//!
//! It must not know who the peers are.

use std::time::Duration;

use crate::limit::STALL_TIME;
use crate::mesh::ReceiveFlow;
use crate::permit::{Flow, HostPermits, PermitStatus};

/// How often a host under pressure is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Whether every permit has been in use for so long, without a job starting, that people should know.
pub(super) fn is_stalled(status: &PermitStatus) -> bool {
    status.stalled.is_some_and(|since| since >= STALL_TIME)
}

/// Tells every socket on which requests arrive whether this host wants more, whenever that changes; and warns once where
/// it stands still, each time it begins to.
pub(super) async fn watch(permits: HostPermits, flow: ReceiveFlow) {
    let mut watch = permits.watch();
    let (mut paused, mut warned) = (false, false);
    loop {
        tokio::select! {
            biased;
            changed = watch.changed() => {
                let Some(changed) = changed else { return };
                paused = changed.paused;
                flow.tell(changed);
                told(changed);
            }
            // Nothing stands still before peers were asked to pause.
            () = tokio::time::sleep(LOOK), if paused => {}
        }
        let status = permits.status();
        let stalled = is_stalled(&status);
        if stalled && !std::mem::replace(&mut warned, stalled) {
            tracing::warn!(
                target: "zlink::runtime", event_id = "zlink.runtime.host.saturation_stall", limit = status.limits.max(),
                reserved = status.reserved, queued = status.queued, lent = status.lent, waiting = status.waiting,
                "all permits are in use, and no job has started for {STALL_TIME:?}: handlers may be waiting for each other"
            );
        }
        warned &= stalled;
    }
}

fn told(flow: Flow) {
    tracing::info!(
        target: "zlink::runtime", event_id = "zlink.runtime.host.pressure_changed",
        state = if flow.paused { "paused" } else { "running" }, version = flow.version
    );
}
