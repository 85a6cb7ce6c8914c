//! The events of the YAML parser to one tree, within bounds.
//!
//! It must not know schemas. One pass with a stack of its own: no file can make it recurse.

use std::collections::HashMap;

use serde_yaml::granit_parser::{self as yaml, ErrorKind, Event, ScalarStyle};

use super::tree::{Entry, Kind, Node, Text};
use crate::diagnostic::{Code, Diagnostic, Sink, shorten};
use crate::source::{FileId, Source, Span};

/// Nested collections. The language itself needs seven.
const MAX_DEPTH: usize = 32;
/// Values in a tree, aliases expanded. A long text counts as several, one for each [`TEXT_UNIT`] bytes.
const MAX_NODES: usize = 400_000;
const TEXT_UNIT: usize = 64;

/// The tree of a file, or nothing where `sink` says why. Keys that occur twice are reported and dropped.
pub(crate) fn parse(file: FileId, source: &Source, sink: &mut Sink) -> Option<Node> {
    let options = yaml::options! {
        emit_comments: false,
        emit_unresolved_aliases: true,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut builder = Builder {
        file,
        sink,
        open: Vec::new(),
        anchors: HashMap::new(),
        nodes: 0,
        root: None,
    };
    for event in yaml::Parser::new_from_str_with_options(source.text(), options) {
        let step = match event {
            Ok((event, span)) => builder.event(event, builder.span(span)),
            Err(error) => Err(broken(file, source, &error)),
        };
        if let Err(item) = step {
            builder.sink.report(item);
            return None;
        }
    }
    if builder.root.is_none() {
        let item = Diagnostic::new(
            Code::NotOneDocument,
            Span { file, start: 0, end: 0 },
            "the file is empty",
        )
        .help("a schema starts with `zlink: 1` and `namespace: …`");
        builder.sink.report(item);
    }
    builder.root
}

fn broken(file: FileId, source: &Source, error: &yaml::ScanError) -> Diagnostic {
    let at = error
        .marker()
        .byte_offset()
        .unwrap_or_default()
        .min(source.text().len());
    let start = u32::try_from(at).unwrap_or(u32::MAX);
    let span = Span {
        file,
        start,
        end: start,
    };
    if *error.kind() == ErrorKind::RecursionLimitExceeded {
        return too_deep(span);
    }
    let item = Diagnostic::new(Code::Syntax, span, format!("this is not YAML: {}", error.info()));
    match advice(error.kind()) {
        Some(help) => item.help(help),
        None => item,
    }
}

/// What is probably meant where the parser says only what it did not find.
fn advice(kind: &ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::ExpectedBlockSequenceEntry
        | ErrorKind::InvalidIndentation
        | ErrorKind::MappingKeyNotAllowed => {
            "begin this line in the same column as those above that it stands beside; what belongs to a key is two spaces deeper"
        }
        ErrorKind::MappingValueNotAllowed => {
            "a text with `: ` in it needs quotes; if this is a key, it is indented too deep, or the line above lacks its `:`"
        }
        ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => {
            "indent with spaces, two a level"
        }
        ErrorKind::ExpectedFlowMappingSeparator
        | ErrorKind::ExpectedFlowSequenceSeparator
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofFlowSequence => {
            "a comma is missing here, or a `}` or `]` at the end of something that was opened above"
        }
        _ => return None,
    })
}

fn too_deep(span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::TooDeep,
        span,
        format!("collections are nested more than {MAX_DEPTH} deep"),
    )
}

enum Open {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        keys: HashMap<String, Span>,
        key: Option<Node>,
    },
}

struct Frame {
    start: Span,
    anchor: usize,
    /// Values in the tree when this one was opened.
    before: usize,
    open: Open,
}

struct Builder<'a> {
    file: FileId,
    sink: &'a mut Sink,
    open: Vec<Frame>,
    /// Finished anchored nodes, with the number of values in each.
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
    root: Option<Node>,
}

impl Builder<'_> {
    fn span(&self, span: yaml::Span) -> Span {
        let range = span.byte_range().unwrap_or_default();
        let clamp = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Span {
            file: self.file,
            start: clamp(range.start),
            end: clamp(range.end.max(range.start)),
        }
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Diagnostic> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.no_tag(tag.is_some(), span);
                let plain = style == ScalarStyle::Plain;
                let count = 1 + text.len() / TEXT_UNIT;
                let kind = Kind::Text(Text {
                    span,
                    text: text.into_owned(),
                    plain,
                });
                self.charge(count, span)?;
                self.finish(Node { span, kind }, anchor, count)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.no_tag(tag.is_some(), span);
                self.start(span, anchor, Open::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, tag) => {
                self.no_tag(tag.is_some(), span);
                self.start(
                    span,
                    anchor,
                    Open::Map {
                        entries: Vec::new(),
                        keys: HashMap::new(),
                        key: None,
                    },
                )
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
            Event::Alias(id) => {
                let Some(count) = self.anchors.get(&id).map(|(_, count)| *count) else {
                    self.sink.report(Diagnostic::new(
                        Code::UnknownAlias,
                        span,
                        "the alias stands inside its own anchor",
                    ));
                    self.charge(1, span)?;
                    return self.finish(nothing(span), 0, 1);
                };
                self.charge(count, span)?;
                let node = self
                    .anchors
                    .get(&id)
                    .map_or_else(|| nothing(span), |(node, _)| node.clone());
                self.finish(node, 0, count)
            }
            Event::UnresolvedAlias(name) => {
                let message = format!("no anchor `&{}` stands before this alias", shorten(&name));
                self.charge(1, span)?;
                self.sink.report(Diagnostic::new(Code::UnknownAlias, span, message));
                self.finish(nothing(span), 0, 1)
            }
            Event::DocumentStart(..) if self.root.is_some() => {
                let item = Diagnostic::new(Code::NotOneDocument, span, "a second document starts here");
                Err(item.help("one file is one namespace; put this into a file of its own"))
            }
            _ => Ok(()),
        }
    }

    fn no_tag(&mut self, tagged: bool, span: Span) {
        if tagged {
            let item = Diagnostic::new(Code::Tag, span, "this value has a YAML tag").help("remove the tag");
            self.sink.report(item);
        }
    }

    fn charge(&mut self, nodes: usize, span: Span) -> Result<(), Diagnostic> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes <= MAX_NODES {
            return Ok(());
        }
        let message = format!("the file holds more than {MAX_NODES} values, its aliases expanded");
        Err(Diagnostic::new(Code::TooManyNodes, span, message))
    }

    fn start(&mut self, start: Span, anchor: usize, open: Open) -> Result<(), Diagnostic> {
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(start));
        }
        let before = self.nodes;
        self.charge(1, start)?;
        self.open.push(Frame {
            start,
            anchor,
            before,
            open,
        });
        Ok(())
    }

    fn end(&mut self, end: Span) -> Result<(), Diagnostic> {
        let Some(frame) = self.open.pop() else { return Ok(()) };
        let span = Span {
            end: end.end.max(frame.start.end),
            ..frame.start
        };
        let kind = match frame.open {
            Open::List(items) => Kind::List(items),
            Open::Map { entries, .. } => Kind::Map(entries),
        };
        self.finish(Node { span, kind }, frame.anchor, self.nodes - frame.before)
    }

    /// Puts a finished value of `count` values to its place.
    fn finish(&mut self, node: Node, anchor: usize, count: usize) -> Result<(), Diagnostic> {
        if anchor != 0 {
            // The copy for later aliases is memory too: nested anchors would multiply it.
            self.charge(count, node.span)?;
            self.anchors.insert(anchor, (node.clone(), count));
        }
        match self.open.last_mut().map(|frame| &mut frame.open) {
            None => self.root = Some(node),
            Some(Open::List(items)) => items.push(node),
            Some(Open::Map { entries, keys, key }) => match key.take() {
                None => *key = Some(node),
                Some(name) => {
                    if let Some(item) = entry(entries, keys, name, node) {
                        self.sink.report(item);
                    }
                }
            },
        }
        Ok(())
    }
}

fn entry(entries: &mut Vec<Entry>, keys: &mut HashMap<String, Span>, key: Node, value: Node) -> Option<Diagnostic> {
    let what = key.describe();
    let Kind::Text(key) = key.kind else {
        return Some(Diagnostic::new(
            Code::WrongShape,
            key.span,
            format!("a key must be text, and this is {what}"),
        ));
    };
    if let Some(first) = keys.get(&key.text) {
        let item = Diagnostic::new(
            Code::DuplicateKey,
            key.span,
            format!("the key `{}` stands here twice", shorten(&key.text)),
        );
        return Some(item.label("again here").at(*first, "first here"));
    }
    keys.insert(key.text.clone(), key.span);
    entries.push(Entry { key, value });
    None
}

fn nothing(span: Span) -> Node {
    Node {
        span,
        kind: Kind::Text(Text {
            span,
            text: String::new(),
            plain: true,
        }),
    }
}
