//! What must hold of everything that was asked, once it is over.

use std::collections::BTreeMap;
use std::time::Duration;

use zlink_runtime::error::Execution;

use super::history::{Asked, History, Kind, Outcome};

/// A deadline is kept to the millisecond after it.
const SLACK: Duration = Duration::from_millis(2);

/// I-4: every operation ends once, in time, and what it is told is true.
pub(crate) fn ends(history: &History) {
    for (number, asked) in history.asked() {
        let [(ended, outcome)] = asked.ended.as_slice() else {
            panic!("I-4: {number} has {} ends: {asked:?}", asked.ended.len());
        };
        if !asked.kind.is_one_way() {
            let taken = *ended - asked.begun;
            assert!(
                taken <= asked.timeout + SLACK,
                "I-4: {number} took {taken:?}: {asked:?}"
            );
        }
        if asked.kind != Kind::Publish {
            assert!(asked.ran.len() <= 1, "{number} ran twice: {asked:?}");
        }
        match outcome {
            Outcome::Reply(said) | Outcome::Rejected(said) => {
                assert_eq!(*said, number.to_string(), "it got another's reply: {asked:?}");
                assert_eq!(
                    asked.ran.len(),
                    1,
                    "{number}: there is a reply, and it never ran: {asked:?}"
                );
            }
            Outcome::Created(spot, said) => {
                assert_eq!(*said, number.to_string(), "it got another's reply: {asked:?}");
                let made = [(spot.id.to_string(), spot.generation.get())];
                assert_eq!(asked.ran, made, "{number} is told of another Spot: {asked:?}");
            }
            Outcome::Existing(_) => assert!(asked.ran.is_empty(), "{number} found it, and made it: {asked:?}"),
            Outcome::Failed(_, Execution::NotExecuted, _) => {
                assert!(asked.ran.is_empty(), "{number} was said not to have run: {asked:?}");
            }
            _ => {}
        }
    }
}

/// For so long after a cart was made, some of what is sent to it may go by way of another node: one that lost the race to
/// make it, or had it before. By then whoever had sent there has asked anew.
const SETTLED: Duration = Duration::from_secs(50);

/// I-3: what one caller asks of one Spot, one thing after the other, begins there in that order, as long as it goes one way.
pub(crate) fn order(history: &History, one_way: bool) {
    let asked = history.asked();
    history.pasts(|one, past| {
        let mut last = BTreeMap::new();
        for number in &past.turns {
            let of = &asked[number];
            let settled = one_way || !one.0.starts_with("cart") || of.begun > past.made + SETTLED;
            if of.from.1.is_none() || !settled {
                continue;
            }
            let before = last.insert(&of.from, *number);
            assert!(
                before.is_none_or(|before| before < *number),
                "I-3: {one:?} ran {number} after {before:?}: {of:?}"
            );
        }
    });
}

/// With nothing to hinder it, what is accepted does run, once.
pub(crate) fn whole(history: &History, from: u64) {
    let is_lost = |asked: &Asked| {
        let accepted = matches!(asked.ended[0].1, Outcome::Accepted) && asked.kind != Kind::Publish;
        accepted && asked.ran.len() != 1
    };
    for (number, asked) in history.asked().range(from..) {
        assert!(!is_lost(asked), "{number} was accepted, and did not run: {asked:?}");
    }
}
