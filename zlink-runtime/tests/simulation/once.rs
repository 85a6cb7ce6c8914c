//! Nothing runs twice, and what is said not to have run has not.

use zlink_runtime::error::Execution;

use crate::work::{Entry, Outcome};

pub(crate) fn check(entries: &[(u64, Entry)]) {
    for (number, entry) in entries {
        assert!(entry.ran.len() <= 1, "{number} ran at {:?}: {entry:?}", entry.ran);
        for (_, outcome) in &entry.ended {
            if let Outcome::Failed(_, Execution::NotExecuted, _) = outcome {
                assert!(entry.ran.is_empty(), "{number} was said not to have run: {entry:?}");
            }
        }
    }
}
