//! A set of topics, and what it matches: whatever begins with one of them, byte for byte. It must not know who wants them.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::id::MAX_ID_BYTES;
use crate::limit::SUBSCRIPTIONS;

/// Topics, each once. A longer one than any publisher takes is not kept, as it matches nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topics(BTreeSet<Box<[u8]>>);

impl Topics {
    /// Adds one; `false` where there are as many as there may be.
    pub(crate) fn add(&mut self, topic: &[u8]) -> bool {
        if topic.len() > MAX_ID_BYTES || self.0.contains(topic) {
            return true;
        }
        let has_room = self.0.len() < SUBSCRIPTIONS;
        if has_room {
            self.0.insert(topic.into());
        }
        has_room
    }

    /// Whether it was there.
    pub(crate) fn remove(&mut self, topic: &[u8]) -> bool {
        self.0.remove(topic)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// Whether the topic begins with one of them.
    pub(crate) fn matches(&self, topic: &[u8]) -> bool {
        let mut upto = topic;
        loop {
            let below = self.0.range::<[u8], _>((Bound::Unbounded, Bound::Included(upto)));
            let Some(last) = below.map(AsRef::as_ref).next_back() else {
                return false;
            };
            if topic.starts_with(last) {
                return true;
            }
            // What the topic begins with comes before this one, and so is no longer than what both begin with.
            let common = topic.iter().zip(last).take_while(|(one, other)| one == other).count();
            upto = &topic[..common];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn topics<'a>(all: impl IntoIterator<Item = &'a [u8]>) -> Topics {
        let mut topics = Topics::default();
        all.into_iter().for_each(|topic| assert!(topics.add(topic)));
        topics
    }

    /// REQ: CH-902
    #[test]
    fn a_topic_matches_what_begins_with_it() {
        let order = topics([&b"order"[..]]);
        for (topic, is) in [
            ("order", true),
            ("order.created", true),
            ("orders", true),
            ("payment", false),
            ("orde", false),
        ] {
            assert_eq!(order.matches(topic.as_bytes()), is, "{topic}");
        }
        assert!(topics([&b""[..]]).matches(b"") && topics([&b""[..]]).matches(b"any"));
        assert!(!Topics::default().matches(b""));
    }

    #[test]
    fn there_are_no_more_than_may_be() {
        let mut topics = Topics::default();
        for number in 0..SUBSCRIPTIONS {
            assert!(topics.add(number.to_string().as_bytes()));
        }
        assert!(topics.add(b"7"), "it is there");
        assert!(topics.add(&[7; MAX_ID_BYTES + 1]), "it matches nothing");
        assert!(!topics.add(b"one more"));
        assert!(topics.remove(b"7") && !topics.remove(b"7"));
        assert!(topics.add(b"one more"));
    }

    proptest! {
        /// REQ: CH-902, CH-904
        #[test]
        fn it_matches_as_a_look_at_each_does(
            all in proptest::collection::vec(proptest::collection::vec(0u8..3, 0..5), 0..8),
            topic in proptest::collection::vec(0u8..3, 0..6),
        ) {
            let naive = all.iter().any(|one| topic.starts_with(one));
            prop_assert_eq!(topics(all.iter().map(Vec::as_slice)).matches(&topic), naive);
        }
    }
}
