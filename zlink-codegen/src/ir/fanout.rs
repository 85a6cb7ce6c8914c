//! What is published to whoever subscribes. It must not know how it travels.

use super::{DeclRef, Doc};

/// Events that go to every subscriber, and of which nobody knows who got them: no metadata, no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fanout {
    /// Its name: its ChannelName.
    pub name: String,
    /// Doc text.
    pub doc: Doc,
    /// Events, in the order of the file.
    pub events: Vec<Event>,
}

/// One event of a fanout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// Doc text.
    pub doc: Doc,
    /// The name on the wire, which selects the handler.
    pub packet: String,
    /// What decides who gets it: a subscriber names the first bytes of topics. Where the schema names none, it is the
    /// packet name.
    pub topic: Option<String>,
    /// What is published.
    pub message: DeclRef,
}

impl Event {
    /// The topic that it is published to where a call names no other.
    #[must_use]
    pub fn topic(&self) -> &str {
        self.topic.as_deref().unwrap_or(&self.packet)
    }
}
