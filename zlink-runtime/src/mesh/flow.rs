//! The receive flow of a host on its way to its peers: the same value on every link over which requests come, and what
//! became of that.
//!
//! It must not know why the flow changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::id::LinkId;
use crate::permit::{Flow, Receiver, Receivers};
use crate::transport::{Link, Refused};

/// One per host; clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveFlow(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    receivers: Receivers<Told>,
    /// Times that a link that lives could not be told.
    failures: Arc<AtomicU64>,
}

/// A link over which requests come.
#[derive(Clone, Debug)]
struct Told {
    link: Arc<dyn Link>,
    failures: Arc<AtomicU64>,
}

impl Receiver for Told {
    fn apply(&self, flow: Flow) {
        match self.link.announce(flow) {
            // Its peer hears nothing any more, of this or of anything.
            Ok(()) | Err(Refused::Closed) => {}
            Err(refused) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(
                    target: "zlink::runtime", event_id = "zlink.runtime.host.receive_flow_failed", link = self.link.id().0,
                    peer = self.link.peer().identity.as_ref().map(tracing::field::display), paused = flow.paused,
                    version = flow.version, %refused
                );
            }
        }
    }
}

impl ReceiveFlow {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner {
            receivers: Receivers::new(),
            failures: Arc::default(),
        }))
    }

    /// What peers were told last.
    pub(crate) fn told(&self) -> Flow {
        self.0.receivers.flow()
    }

    /// How often a link that lives could not be told.
    pub(crate) fn failures(&self) -> u64 {
        self.0.failures.load(Ordering::Relaxed)
    }

    /// Tells every peer.
    pub(crate) fn tell(&self, flow: Flow) {
        self.0.receivers.apply(flow);
    }

    pub(super) fn enter(&self, link: &Arc<dyn Link>) {
        let told = Told {
            link: link.clone(),
            failures: self.0.failures.clone(),
        };
        self.0.receivers.enter(link.id().0, told);
    }

    pub(super) fn leave(&self, link: LinkId) {
        self.0.receivers.leave(link.0);
    }
}
