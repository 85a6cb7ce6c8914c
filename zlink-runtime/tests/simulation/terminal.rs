//! Every operation ends, once, and a request in time; a reply is the reply to its own request.

use std::time::Duration;

use crate::work::{Entry, Outcome};

/// A deadline is kept to the millisecond after it.
const SLACK: Duration = Duration::from_millis(2);

pub(crate) fn check(entries: &[(u64, Entry)]) {
    for (number, entry) in entries {
        let [(ended, outcome)] = entry.ended.as_slice() else {
            panic!("{number} has {} ends: {entry:?}", entry.ended.len());
        };
        if entry.kind.is_request() {
            let taken = *ended - entry.begun;
            assert!(taken <= entry.timeout + SLACK, "{number} took {taken:?}: {entry:?}");
        }
        if let Outcome::Reply(replied, by) = outcome {
            assert_eq!(replied, number, "it got another's reply: {entry:?}");
            assert!(
                entry.ran.iter().any(|ran| ran == by),
                "{number}: {by} replied and never ran it: {entry:?}"
            );
        }
    }
}
