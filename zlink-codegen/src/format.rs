//! One form for the text of schemas, comments kept.
//!
//! It must not know what a schema means, beyond where the fields of a message stand, for ids that are missing. What it
//! writes is read again before anybody gets it: another meaning or a lost comment is refused, never written.

mod ids;
mod print;
mod tree;

use crate::diagnostic::{Code, Diagnostic, Sink};
use crate::load::{self, Kind, Node};
use crate::source::{FileId, Sources};

/// Ids that are in use although the schema does not say so, by message: what a lock file remembers.
pub(crate) type Known = std::collections::BTreeMap<String, Vec<(u16, String)>>;

/// The text of a file in the one form, or nothing where `sink` says what is wrong with it.
///
/// With `ids`, fields without an id get the one they had, or else the lowest that is free.
pub(crate) fn format(sources: &Sources, file: FileId, ids: Option<&Known>, sink: &mut Sink) -> Option<String> {
    let source = sources.get(file)?;
    let before = sink.errors();
    let meaning = load::parse(file, source, sink)?;
    if sink.errors() > before {
        return None;
    }
    let mut tree = tree::read(source.text())?;
    let mut text = print::print(&tree);
    let mut wrong = differs(&meaning, &tree, &text, false);
    if ids.is_some_and(|known| ids::assign(&mut tree.root, known)) {
        text = print::print(&tree);
        wrong = wrong.or_else(|| differs(&meaning, &tree, &text, true));
    }
    if let Some(what) = wrong {
        let message = format!("this file cannot be formatted: {what} would not be the same");
        let item = Diagnostic::new(Code::Syntax, Sources::top(file), message);
        sink.report(item.help("write it in a simpler way; the file is left as it is"));
        return None;
    }
    Some(text)
}

/// What of a file is not in its new text any more.
fn differs(meaning: &Node, tree: &tree::Tree<'_>, text: &str, assigned: bool) -> Option<&'static str> {
    let mut sources = Sources::default();
    let file = sources.add("formatted", text);
    let mut sink = Sink::default();
    let again = sources
        .get(file)
        .and_then(|source| load::parse(file, source, &mut sink));
    // Ids that were added are a difference, and the only one: without them, the text was the same.
    if sink.errors() > 0 || !again.is_some_and(|again| assigned || same(meaning, &again)) {
        return Some("its meaning");
    }
    let comments = |tree: &tree::Tree<'_>, text: &str| -> Vec<String> {
        let lines = tree
            .comments
            .iter()
            .filter_map(|comment| text.get(comment.start..comment.end));
        lines.map(|line| line.trim_end().to_owned()).collect()
    };
    let now = tree::read(text).map(|again| comments(&again, text));
    (now != Some(comments(tree, tree.text))).then_some("a comment")
}

/// Whether two trees hold the same. Files are bounded in depth, so this recursion is too.
fn same(one: &Node, other: &Node) -> bool {
    match (&one.kind, &other.kind) {
        (Kind::Text(one), Kind::Text(other)) => one.text == other.text && one.plain == other.plain,
        (Kind::List(one), Kind::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Kind::Map(one), Kind::Map(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len()
                && pairs.all(|(one, other)| one.key.text == other.key.text && same(&one.value, &other.value))
        }
        _ => false,
    }
}
