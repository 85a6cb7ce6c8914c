//! The receive flow on its way from the permits of a host to its peers. It must not know who they are.

use crate::mesh::ReceiveFlow;
use crate::permit::HostPermits;

/// Tells every socket on which requests arrive whether this host wants more, whenever that changes, until the permits are
/// closed.
pub(super) async fn watch(permits: HostPermits, flow: ReceiveFlow) {
    let mut watch = permits.watch();
    while let Some(changed) = watch.changed().await {
        flow.tell(changed);
        tracing::info!(
            target: "zlink::runtime", event_id = "zlink.runtime.host.pressure_changed",
            state = if changed.paused { "paused" } else { "running" }, version = changed.version
        );
    }
}
