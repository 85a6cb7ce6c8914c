//! What is wrong with a schema: a stable code, where, why, and what to write instead.
//!
//! Findings are collected in a [`Sink`], all of a run, and shown in one of two forms. Nothing here knows what
//! a schema is.

mod code;
mod human;
#[cfg(feature = "cli")]
mod json;
mod sink;

use std::fmt;

pub use code::{Code, Level};
pub use sink::Sink;

use crate::source::{Sources, Span};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is generated.
    Error,
    /// Probably not meant.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// Another place that matters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What is there.
    pub text: String,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    /// What kind of finding.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// Where.
    pub span: Span,
    /// What is wrong, in one line.
    pub message: String,
    /// What the caret says; may be empty.
    pub label: String,
    /// Other places.
    pub labels: Vec<Label>,
    /// What to write instead, in one line.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A finding of `code`, with the severity of that code.
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.severity(),
            span,
            message: message.into(),
            label: String::new(),
            labels: Vec::new(),
            help: None,
        }
    }

    /// With a severity of its own.
    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// With words beside the caret.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = text.into();
        self
    }

    /// With another place.
    #[must_use]
    pub fn at(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label {
            span,
            text: text.into(),
        });
        self
    }

    /// With what to write instead.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }
}

/// Text of a schema as a message quotes it: on one line, and not endless.
pub(crate) fn shorten(text: &str) -> String {
    const CHARS: usize = 60;
    let mut short: String = text
        .chars()
        .take(CHARS)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(CHARS).is_some() {
        short.push('…');
    }
    short
}

/// The findings of a finished run, with the files they point into. Ordered by file and place.
#[derive(Clone, Default)]
pub struct Diagnostics {
    /// The files.
    pub sources: Sources,
    /// The findings.
    pub items: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Whether nothing can be generated.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.items.iter().any(|item| item.severity == Severity::Error)
    }

    /// For people: each finding with its source lines, caret and help. `colour` adds terminal colours.
    #[must_use]
    pub fn human(&self, colour: bool) -> String {
        let mut all = String::new();
        for item in &self.items {
            all.push_str(&human::render(&self.sources, item, colour));
            all.push_str("\n\n");
        }
        all
    }

    /// One finding for people, without colours.
    #[must_use]
    pub fn render(&self, item: &Diagnostic) -> String {
        human::render(&self.sources, item, false)
    }

    /// For programs: one JSON array of `{code, severity, level, file, line, column, end_line, end_column, message,
    /// labels, help}`. Lines and columns count from 1, columns in characters. The level is that of a change of a
    /// contract (`source`, `wire`, `state`), and null for anything else.
    #[cfg(feature = "cli")]
    #[must_use]
    pub fn json(&self) -> String {
        json::render(self)
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.human(false))
    }
}

impl std::error::Error for Diagnostics {}

impl fmt::Debug for Diagnostics {
    /// As people read it: a `main` that ends with `?` prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
