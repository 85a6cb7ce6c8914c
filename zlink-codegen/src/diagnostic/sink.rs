//! Where findings of a run are collected.
//!
//! It must not know how they are shown.

use std::collections::HashSet;

use super::{Code, Diagnostic, Diagnostics, Severity};
use crate::source::Sources;

/// More findings than anyone reads. A hostile file has no end of them.
const LIMIT: usize = 200;

/// All findings of a run, each once.
#[derive(Debug, Default)]
pub struct Sink {
    items: Vec<Diagnostic>,
    seen: HashSet<Diagnostic>,
    errors: usize,
    dropped: usize,
}

impl Sink {
    /// Adds a finding, unless it is there: a file that two schemas import is complained about once.
    pub fn report(&mut self, item: Diagnostic) {
        let error = item.severity == Severity::Error;
        self.errors += usize::from(error);
        if self.seen.contains(&item) {
            return;
        }
        if self.items.len() >= LIMIT {
            self.dropped += 1;
            return;
        }
        self.seen.insert(item.clone());
        self.items.push(item);
    }

    /// Whether further findings would not be shown, so that no work need go into their wording.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.items.len() >= LIMIT
    }

    /// How many errors were reported, repeated ones and those beyond the limit included. Compare two readings
    /// to learn whether a step failed.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// Ends the collection: findings by file and place, errors before notes at one place.
    #[must_use]
    pub fn finish(mut self, sources: Sources) -> Diagnostics {
        self.items.sort_by_key(|item| (item.span, item.severity, item.code));
        if let Some(last) = self.items.last().filter(|_| self.dropped > 0) {
            let more = format!("there are more findings, {} of them not shown", self.dropped);
            let severity = if self.errors > 0 {
                Severity::Error
            } else {
                Severity::Note
            };
            let span = last.span;
            self.items
                .push(Diagnostic::new(Code::TooManyFindings, span, more).severity(severity));
        }
        Diagnostics {
            sources,
            items: self.items,
        }
    }
}
