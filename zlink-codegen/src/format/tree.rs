//! A file as it is written: every value with its style and place, and the comments between them.
//!
//! It must not know how it is printed, nor what anything means.

use std::borrow::Cow;

use serde_yaml::granit_parser::{self as yaml, Event, ScalarStyle, StructureStyle};

/// A whole file.
pub(super) struct Tree<'s> {
    pub(super) text: &'s str,
    pub(super) root: Node<'s>,
    /// Comments in the order of the file.
    pub(super) comments: Vec<Comment>,
    /// Where values that are no collections begin, in the order of the file.
    pub(super) leaves: Vec<usize>,
}

/// A comment, from its `#` to the end of its line.
pub(super) struct Comment {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Whether nothing but white space stands before it on its line.
    pub(super) own_line: bool,
}

/// A value.
pub(super) struct Node<'s> {
    /// The byte it begins at.
    pub(super) start: usize,
    /// The byte after it.
    pub(super) end: usize,
    /// Its anchor, as written.
    pub(super) prefix: &'s str,
    pub(super) shape: Shape<'s>,
}

pub(super) enum Shape<'s> {
    /// A scalar on one line or several, or an alias, as written. Empty where there is nothing.
    Word(Cow<'s, str>),
    /// A block scalar.
    Block {
        /// From its `|` or `>` on.
        raw: &'s str,
        /// The spaces that its first line with words begins with, beyond its indentation.
        lead: usize,
    },
    List {
        flow: bool,
        items: Vec<Node<'s>>,
    },
    Map {
        flow: bool,
        entries: Vec<Entry<'s>>,
    },
}

pub(super) struct Entry<'s> {
    pub(super) key: Node<'s>,
    pub(super) value: Node<'s>,
}

impl Node<'_> {
    /// The first byte of its first leaf, or of its bracket: where what stands above it ends.
    pub(super) fn first(&self) -> usize {
        self.start
    }
}

impl<'s> Tree<'s> {
    /// The column of a byte, in bytes.
    pub(super) fn column(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or_default();
        before.len() - before.rfind('\n').map_or(0, |newline| newline + 1)
    }
}

/// The tree of a text that is one YAML document; nothing where it is not.
pub(super) fn read(text: &str) -> Option<Tree<'_>> {
    let mut reader = Reader {
        text,
        open: Vec::new(),
        root: None,
        leaves: Vec::new(),
    };
    let options = yaml::options! { emit_comments: false, emit_unresolved_aliases: true };
    for event in yaml::Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.ok()?;
        reader.event(&event, span.byte_range().unwrap_or_default());
    }
    let comments = comments(text, &reader.leaves);
    let leaves = reader.leaves.iter().map(|(start, _)| *start).collect();
    Some(Tree {
        text,
        root: reader.root?,
        comments,
        leaves,
    })
}

struct Reader<'s> {
    text: &'s str,
    open: Vec<Open<'s>>,
    root: Option<Node<'s>>,
    /// Where leaves begin and end.
    leaves: Vec<(usize, usize)>,
}

struct Open<'s> {
    start: usize,
    prefix: &'s str,
    flow: bool,
    /// Keys and values of a mapping by turns, or items.
    parts: Vec<Node<'s>>,
    map: bool,
}

impl<'s> Reader<'s> {
    fn event(&mut self, event: &Event<'_>, range: std::ops::Range<usize>) {
        match event {
            Event::Scalar(value, ScalarStyle::Literal | ScalarStyle::Folded, anchor, _) => {
                let start = self.header(range.start);
                let prefix = self.prefix(start, *anchor);
                let first = value.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                let lead = first.len() - first.trim_start_matches(' ').len();
                self.leaf(start, range.end, prefix, Some(lead));
            }
            Event::Scalar(_, _, anchor, _) => {
                let prefix = self.prefix(range.start, *anchor);
                self.leaf(range.start, range.end, prefix, None);
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) => self.leaf(range.start, range.end, "", None),
            Event::SequenceStart(style, anchor, _) | Event::MappingStart(style, anchor, _) => {
                let prefix = self.prefix(range.start, *anchor);
                self.open.push(Open {
                    start: range.start,
                    prefix,
                    flow: *style == StructureStyle::Flow,
                    parts: Vec::new(),
                    map: matches!(event, Event::MappingStart(..)),
                });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else { return };
                let flow = open.flow;
                let shape = if open.map {
                    let mut parts = open.parts.into_iter();
                    let mut entries = Vec::new();
                    while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
                        entries.push(Entry { key, value });
                    }
                    Shape::Map { flow, entries }
                } else {
                    Shape::List {
                        flow,
                        items: open.parts,
                    }
                };
                self.finish(Node {
                    start: open.start,
                    end: range.end.max(open.start),
                    prefix: open.prefix,
                    shape,
                });
            }
            _ => {}
        }
    }

    fn leaf(&mut self, start: usize, end: usize, prefix: &'s str, block: Option<usize>) {
        let raw = self.text.get(start..end).unwrap_or_default();
        // What is empty stands nowhere.
        if !raw.is_empty() {
            self.leaves.push((start, end));
        }
        let shape = match block {
            Some(lead) => Shape::Block { raw, lead },
            None => Shape::Word(Cow::Borrowed(raw.trim_end())),
        };
        self.finish(Node {
            start,
            end,
            prefix,
            shape,
        });
    }

    fn finish(&mut self, node: Node<'s>) {
        match self.open.last_mut() {
            Some(open) => open.parts.push(node),
            None => self.root = Some(node),
        }
    }

    /// Where the `|` or `>` of a block scalar stands, whose span may begin with its text.
    fn header(&self, start: usize) -> usize {
        if self.text.get(start..).is_some_and(|rest| rest.starts_with(['|', '>'])) {
            return start;
        }
        let before = self.text.get(..start).unwrap_or_default();
        before.rfind(['|', '>']).unwrap_or(start)
    }

    /// The anchor between the last leaf or bracket and a value, where it has one; tags are no part of the language.
    fn prefix(&self, start: usize, anchor: usize) -> &'s str {
        if anchor == 0 {
            return "";
        }
        let from = self.leaves.last().map_or(0, |(_, end)| *end).min(start);
        let gap = self.text.get(from..start).unwrap_or_default();
        // Names of anchors hold neither space nor bracket, and a comment before it may hold anything.
        let lines = gap.lines().map(|line| line.split(" #").next().unwrap_or_default());
        let words = lines
            .filter(|line| !line.trim_start().starts_with('#'))
            .flat_map(|line| line.split([' ', '\t', '[', '{', ',']));
        words.rev().find(|word| word.starts_with('&')).unwrap_or_default()
    }
}

/// The comments of a text: what stands between leaves from a `#` on.
fn comments(text: &str, leaves: &[(usize, usize)]) -> Vec<Comment> {
    let mut found = Vec::new();
    let mut from = 0;
    let ends = leaves.iter().copied().chain([(text.len(), text.len())]);
    for (start, end) in ends {
        let gap = text.get(from..start).unwrap_or_default();
        let mut line = from;
        for part in gap.split_inclusive('\n') {
            if let Some(at) = part.find('#') {
                let begin = line + at;
                let whole = text.get(..begin).unwrap_or_default();
                let before = whole.rsplit('\n').next().unwrap_or_default();
                found.push(Comment {
                    start: begin,
                    end: line + part.trim_end().len(),
                    own_line: before.trim().is_empty(),
                });
            }
            line += part.len();
        }
        from = end.max(from);
    }
    found
}
