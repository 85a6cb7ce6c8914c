//! What happened in a network, in order: to compare two runs, and to read what led to a failure.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use rustc_hash::FxHasher;

/// How many events are kept; of older ones only the fingerprint knows.
const KEPT: usize = 100_000;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TraceEvent {
    /// When, since the network was made.
    pub at: Duration,
    /// What.
    pub happened: Happened,
}

/// What happened. Nodes and connections are numbered in the order they came.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Happened {
    /// A run of a node began.
    Started(String),
    /// A run of a node ended without a word.
    Killed(String),
    /// A node tried to connect.
    Dialled {
        /// Who.
        from: usize,
        /// Where to.
        to: String,
    },
    /// An attempt to connect failed.
    Refused {
        /// Whose.
        from: usize,
        /// Where to.
        to: String,
    },
    /// A connection was made.
    Connected {
        /// Its number.
        connection: u64,
        /// Who dialled.
        from: usize,
        /// Who accepts.
        to: usize,
    },
    /// Bytes reached a node.
    Arrived {
        /// On which connection.
        connection: u64,
        /// Who got them.
        at: usize,
        /// How many.
        bytes: usize,
    },
    /// A node was told that nothing follows.
    Ended {
        /// On which connection.
        connection: u64,
        /// Who was told.
        at: usize,
    },
    /// A node was told that the connection is gone.
    Reset {
        /// Which.
        connection: u64,
        /// Who was told.
        at: usize,
    },
    /// A connection broke, and what was under way was lost.
    Broke {
        /// Which.
        connection: u64,
    },
    /// Nothing gets from one node to another any more.
    Cut(usize, usize),
    /// It does again.
    Healed(usize, usize),
    /// What a test noted.
    Note(String),
}

impl fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9.3} ", self.at.as_secs_f64())?;
        match &self.happened {
            Happened::Started(name) => write!(f, "{name} starts"),
            Happened::Killed(name) => write!(f, "{name} is killed"),
            Happened::Dialled { from, to } => write!(f, "#{from} dials {to}"),
            Happened::Refused { from, to } => write!(f, "#{from} is refused by {to}"),
            Happened::Connected { connection, from, to } => write!(f, "connection {connection} from #{from} to #{to}"),
            Happened::Arrived { connection, at, bytes } => write!(f, "{bytes} bytes on {connection} at #{at}"),
            Happened::Ended { connection, at } => write!(f, "end of {connection} at #{at}"),
            Happened::Reset { connection, at } => write!(f, "reset of {connection} at #{at}"),
            Happened::Broke { connection } => write!(f, "connection {connection} breaks"),
            Happened::Cut(from, to) => write!(f, "#{from} is cut off from #{to}"),
            Happened::Healed(from, to) => write!(f, "#{from} reaches #{to} again"),
            Happened::Note(text) => f.write_str(text),
        }
    }
}

/// The events, bounded.
#[derive(Debug, Default)]
pub(super) struct Trace {
    events: VecDeque<TraceEvent>,
    fingerprint: u64,
}

impl Trace {
    pub(super) fn push(&mut self, event: TraceEvent) {
        let mut hasher = FxHasher::default();
        (self.fingerprint, &event).hash(&mut hasher);
        self.fingerprint = hasher.finish();
        if self.events.len() == KEPT {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    pub(super) fn events(&self) -> Vec<TraceEvent> {
        self.events.iter().cloned().collect()
    }

    pub(super) const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}
