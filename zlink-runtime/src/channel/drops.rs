//! How many one-way messages a scope took and did not deliver, by why. Nobody is told of these but by figures and records.

use std::sync::atomic::{AtomicU64, Ordering};

/// One-way messages that arrived and were not delivered, since the host started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DropCounts {
    /// Nothing handles them.
    pub no_handler: u64,
    /// Their metadata, content type or payload is unusable.
    pub decode_error: u64,
    /// The host stops.
    pub shutdown: u64,
    /// Of Spots and Actors: it is not there, or takes nothing.
    pub no_spot: u64,
    /// Of Spots and Actors: the host could not prove that it has it.
    pub fenced: u64,
}

/// The counts of the channels and of the node of one scope; or of the Spots and Actors of a host.
#[derive(Debug, Default)]
pub(crate) struct Drops {
    channel: Counts,
    node: Counts,
    spot: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    no_handler: AtomicU64,
    decode_error: AtomicU64,
    shutdown: AtomicU64,
    no_spot: AtomicU64,
    fenced: AtomicU64,
}

impl Counts {
    fn read(&self) -> DropCounts {
        DropCounts {
            no_handler: self.no_handler.load(Ordering::Relaxed),
            decode_error: self.decode_error.load(Ordering::Relaxed),
            shutdown: self.shutdown.load(Ordering::Relaxed),
            no_spot: self.no_spot.load(Ordering::Relaxed),
            fenced: self.fenced.load(Ordering::Relaxed),
        }
    }
}

impl Drops {
    /// Counts one. What is no message at all is recorded, and not counted.
    pub(super) fn count(&self, surface: &str, reason: &str) {
        let counts = match surface {
            "node" => &self.node,
            "spot" | "actor" => &self.spot,
            _ => &self.channel,
        };
        let count = match reason {
            "no_handler" => &counts.no_handler,
            "decode_error" => &counts.decode_error,
            "shutdown" => &counts.shutdown,
            "no_spot" | "late" | "not_forwarded" => &counts.no_spot,
            "fenced" => &counts.fenced,
            _ => return,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn of_channels(&self) -> DropCounts {
        self.channel.read()
    }

    pub(crate) fn of_spots(&self) -> DropCounts {
        self.spot.read()
    }

    pub(crate) fn of_node(&self) -> DropCounts {
        self.node.read()
    }
}
