//! Where findings of a run are collected.
//!
//! It must not know how they are shown.

use std::collections::{BTreeMap, HashSet};

use super::{Code, Diagnostic, Diagnostics, Severity};
use crate::source::{FileId, Sources, Span};

/// More errors of one file than anyone reads, and more of what is less than an error. A hostile file has no end of
/// them, and must not hide those of another.
const LIMIT: usize = 200;

/// What a limit holds for: a file, and whether it is its errors.
type Kind = (FileId, bool);

fn kind(item: &Diagnostic) -> Kind {
    (item.span.file, item.severity == Severity::Error)
}

/// All findings of a run, each once.
#[derive(Debug, Default)]
pub struct Sink {
    items: Vec<Diagnostic>,
    seen: HashSet<Diagnostic>,
    counts: BTreeMap<Kind, usize>,
    dropped: BTreeMap<FileId, Severity>,
    errors: usize,
}

impl Sink {
    /// Adds a finding, unless it is there: a file that two schemas import is complained about once.
    pub fn report(&mut self, item: Diagnostic) {
        self.errors += usize::from(item.severity == Severity::Error);
        if self.seen.contains(&item) {
            return;
        }
        let count = self.counts.entry(kind(&item)).or_default();
        if *count >= LIMIT {
            let worst = self.dropped.entry(item.span.file).or_insert(item.severity);
            *worst = item.severity.min(*worst);
            return;
        }
        *count += 1;
        self.seen.insert(item.clone());
        self.items.push(item);
    }

    /// Whether a further finding in a file would not be shown, so that no work need go into its wording.
    #[must_use]
    pub fn is_full(&self, file: FileId, severity: Severity) -> bool {
        let count = self.counts.get(&(file, severity == Severity::Error));
        count.is_some_and(|count| *count >= LIMIT)
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
        for (file, severity) in self.dropped {
            let end = sources
                .get(file)
                .map_or(0, |source| u32::try_from(source.text().len()).unwrap_or(u32::MAX));
            let span = Span { file, start: end, end };
            let item = Diagnostic::new(Code::TooManyFindings, span, "not all findings of this file are shown");
            self.items.push(item.severity(severity));
        }
        self.items.sort_by_key(|item| (item.span, item.severity, item.code));
        Diagnostics {
            sources,
            items: self.items,
        }
    }
}
