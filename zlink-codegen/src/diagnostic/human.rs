//! One finding for people, drawn by `annotate-snippets`.
//!
//! It must not know what codes mean.

use std::borrow::Cow;
use std::collections::BTreeMap;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::{Diagnostic, Severity};
use crate::source::{Source, Sources, Span};

/// Places of one file farther apart than this many lines are drawn as two excerpts.
const WINDOW: usize = 200;
/// A line longer than this is named but not drawn: nobody reads it, and many such would take minutes.
const LINE_BYTES: u32 = 2000;

struct Mark<'a> {
    span: Span,
    text: &'a str,
    kind: AnnotationKind,
}

pub(super) fn render(sources: &Sources, item: &Diagnostic, colour: bool) -> String {
    let level = match item.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let mut group = Group::with_title(level.primary_title(item.message.as_str()).id(item.code.as_str()));
    // The file of the finding itself comes first.
    let mut files: BTreeMap<_, Vec<Mark<'_>>> = BTreeMap::new();
    let home = item.span.file;
    let main = Mark {
        span: item.span,
        text: &item.label,
        kind: AnnotationKind::Primary,
    };
    files.entry((false, home)).or_default().push(main);
    for label in &item.labels {
        let mark = Mark {
            span: label.span,
            text: &label.text,
            kind: AnnotationKind::Context,
        };
        files
            .entry((label.span.file != home, label.span.file))
            .or_default()
            .push(mark);
    }
    for ((_, file), marks) in files {
        if let Some(source) = sources.get(file) {
            group = draw(group, source, marks);
        }
    }
    if let Some(help) = &item.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group])
}

fn draw<'a>(mut group: Group<'a>, source: &'a Source, marks: Vec<Mark<'a>>) -> Group<'a> {
    let line_of = |mark: &Mark<'_>| source.position(mark.span.start).line;
    let path = source.path().display().to_string();
    let (first, last) = marks
        .iter()
        .map(line_of)
        .fold((usize::MAX, 0), |(a, b), at| (a.min(at), b.max(at)));
    let drawable = |line: usize| source.line_end(line).saturating_sub(source.line_start(line)) <= LINE_BYTES;
    if !source.text().is_empty() && last.saturating_sub(first) <= WINDOW && (first..=last).all(drawable) {
        return group.element(excerpt(source, path, first, last, &marks));
    }
    for mark in &marks {
        let line = line_of(mark);
        group = if !source.text().is_empty() && drawable(line) {
            group.element(excerpt(source, path.clone(), line, line, std::slice::from_ref(mark)))
        } else {
            let column = source.position(mark.span.start).column;
            let group = group.element(Origin::path(path.clone()).line(line).char_column(column));
            if mark.text.is_empty() {
                group
            } else {
                group.element(Level::NOTE.message(mark.text))
            }
        };
    }
    group
}

/// The lines `first..=last` with the marks on them, each cut to its first line.
fn excerpt<'a>(
    source: &'a Source,
    path: String,
    first: usize,
    last: usize,
    marks: &[Mark<'a>],
) -> Snippet<'a, Annotation<'a>> {
    let start = source.line_start(first);
    let end = source.line_end(last);
    let text = source.text().get(start as usize..end as usize).unwrap_or_default();
    // Who draws it knows fewer line breaks than YAML has. Byte for byte, so that places stay.
    let text = match text.contains('\r') {
        true => Cow::Owned(
            text.split("\r\n")
                .map(|part| part.replace('\r', "\n"))
                .collect::<Vec<_>>()
                .join("\r\n"),
        ),
        false => Cow::Borrowed(text),
    };
    let annotations = marks.iter().map(|mark| {
        let line_end = source.line_end(source.position(mark.span.start).line);
        let from = mark.span.start.min(line_end).saturating_sub(start) as usize;
        let to = mark.span.end.min(line_end).saturating_sub(start) as usize;
        let annotation = mark.kind.span(from..to.max(from));
        if mark.text.is_empty() {
            annotation
        } else {
            annotation.label(mark.text)
        }
    });
    Snippet::source(text)
        .line_start(first)
        .path(path)
        .fold(true)
        .annotations(annotations)
}
