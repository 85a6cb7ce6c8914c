//! What a topic may be, and the beacon's, which nobody else may use. It must not know who publishes or subscribes.

use crate::error::ArgumentError;
use crate::id::MAX_ID_BYTES;
use crate::transport::{Message, Topics};

/// The topic of the beacon, and what no other topic may begin with.
pub(super) const BEACON_TOPIC: &[u8] = b"\x01ZLF1";
/// What a beacon says.
pub(super) const BEACON: &[u8] = b"ZF\x01\x01";

/// What proves that a publisher is alive.
pub(super) fn beacon() -> Message {
    Message::new(BEACON_TOPIC, BEACON, &[])
}

/// Whether it may be the topic of an event: 0 to 255 bytes that do not begin as a beacon does.
pub(super) const fn is_topic(topic: &str) -> bool {
    topic.len() <= MAX_ID_BYTES && !is_reserved(topic.as_bytes())
}

/// Whether it begins as a beacon does.
pub(super) const fn is_reserved(topic: &[u8]) -> bool {
    let mut at = 0;
    while at < BEACON_TOPIC.len() {
        if at >= topic.len() || topic[at] != BEACON_TOPIC[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// Checks what a user gave as a topic.
///
/// # Errors
/// Where it is too long, or reserved.
pub(crate) fn check(topic: &str) -> Result<(), ArgumentError> {
    let problem = if is_topic(topic) {
        return Ok(());
    } else if topic.len() > MAX_ID_BYTES {
        format!("has {} bytes; at most {MAX_ID_BYTES} are allowed", topic.len())
    } else {
        format!("{topic:?} begins with \"\\u{{1}}ZLF1\", which is reserved")
    };
    Err(ArgumentError::new("topic", problem))
}

/// What a subscriber wants.
#[derive(Debug)]
pub(crate) struct Subscribed {
    /// What is for its handlers.
    events: Topics,
    /// With the beacon.
    all: Topics,
}

impl Subscribed {
    /// Those topics, or all where there are none; `None` where they are too many. They were checked.
    pub(crate) fn new<'a>(topics: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut all = Topics::default();
        let mut any = false;
        for topic in topics {
            any = true;
            if !all.add(topic.as_bytes()) {
                return None;
            }
        }
        if !any {
            all.add(b"");
        }
        let events = all.clone();
        all.add(BEACON_TOPIC).then_some(Self { events, all })
    }

    pub(super) fn wants(&self, topic: &[u8]) -> bool {
        self.events.matches(topic)
    }

    pub(super) fn all(&self) -> &Topics {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// REQ: CH-906, MSG-705
    #[test]
    fn what_begins_as_a_beacon_is_no_topic() {
        for (topic, is) in [
            ("\u{1}ZLF1", false),
            ("\u{1}ZLF1.more", false),
            ("\u{1}ZLF", true),
            ("\u{1}ZLF2", true),
            ("", true),
        ] {
            assert_eq!(check(topic).is_ok(), is, "{topic:?}");
        }
        assert!(check(&"x".repeat(255)).is_ok());
        assert!(check(&"x".repeat(256)).is_err());
    }
}
