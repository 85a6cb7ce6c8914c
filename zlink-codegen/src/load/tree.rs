//! The tree of one YAML document, every node with its span.
//!
//! It must not know how it was parsed.

use crate::source::Span;

/// A value.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) kind: Kind,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// A scalar, as its text.
    Text(Text),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order of the file. Keys are different.
    Map(Vec<Entry>),
}

/// A scalar.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) span: Span,
    pub(crate) text: String,
    /// Whether it stands without quotes, so that `null` is nothing and `4` a number.
    pub(crate) plain: bool,
}

/// One entry of a mapping.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Text,
    pub(crate) value: Node,
}

impl Node {
    /// Whether this is an empty value, as in `messages:` with nothing behind it.
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(&self.kind, Kind::Text(text) if text.plain && matches!(text.text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The value of a key, where this is a mapping that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        match &self.kind {
            Kind::Map(entries) => entries.iter().find(|entry| entry.key.text == key),
            _ => None,
        }
    }

    /// What this is, for a message.
    pub(crate) fn describe(&self) -> &'static str {
        match &self.kind {
            _ if self.is_nothing() => "nothing",
            Kind::Text(_) => "text",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }
}
