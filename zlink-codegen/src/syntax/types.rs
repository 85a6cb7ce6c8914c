//! Types and the names of declarations, as text.
//!
//! It must not know which names exist.

use super::file::NAMESPACE_BYTES;
use super::reader::{NAME_BYTES, Reader};
use super::{Name, Path, Type, TypeKind};
use crate::diagnostic::{Code, Diagnostic, shorten};
use crate::load::{Node, Text};

/// `list<…>` in `list<…>` is refused later anyway; this only keeps the parser from recursing without end.
const MAX_NESTING: usize = 4;
/// A namespace and a name.
const PATH_BYTES: usize = NAMESPACE_BYTES + 1 + NAME_BYTES;

impl Reader<'_> {
    /// A type.
    pub(super) fn ty(&mut self, node: &Node, what: &str) -> Option<Type> {
        let text = self.text(node, what)?;
        match self.ty_in(text, 0, text.text.len(), 0) {
            Some(ty) => Some(ty),
            None => {
                let item = Diagnostic::new(
                    Code::BadType,
                    text.span,
                    format!("`{}` is not written as types are", shorten(&text.text)),
                );
                self.report(item.help(
                    "a type is a name (`u32`, `Money`, `common.Money`) or `list<…>`, `optional<…>`, `map<…>` of one",
                ));
                None
            }
        }
    }

    fn ty_in(&self, text: &Text, start: usize, end: usize, depth: usize) -> Option<Type> {
        let (start, end) = trim(&text.text, start, end)?;
        let written = text.text.get(start..end)?;
        let span = self.part(text, start, end);
        let Some(open) = written.find('<') else {
            return Some(Type {
                span,
                kind: TypeKind::Named(self.path_in(text, start, end)?),
            });
        };
        if depth >= MAX_NESTING || !written.ends_with('>') {
            return None;
        }
        let (head_start, head_end) = trim(&text.text, start, start + open)?;
        let head = text.text.get(head_start..head_end).filter(|head| is_word(head))?;
        let head = Name {
            value: head.to_owned(),
            span: self.part(text, head_start, head_end),
        };
        let inner = self.ty_in(text, start + open + 1, end - 1, depth + 1)?;
        Some(Type {
            span,
            kind: TypeKind::Of(head, Box::new(inner)),
        })
    }

    /// The name of a declaration.
    pub(super) fn path(&mut self, node: &Node, what: &str) -> Option<Path> {
        let text = self.text(node, what)?;
        let path = self.path_in(text, 0, text.text.len());
        if path.is_none() {
            let item = Diagnostic::new(
                Code::BadType,
                text.span,
                format!("`{}` is not the name of a message", shorten(&text.text)),
            );
            self.report(item.help("write `Charge`, or `common.Charge` for one of an imported file"));
        }
        path
    }

    fn path_in(&self, text: &Text, start: usize, end: usize) -> Option<Path> {
        let (start, end) = trim(&text.text, start, end)?;
        let written = text.text.get(start..end)?;
        let part = |from: usize, to: usize| Name {
            value: written[from..to].to_owned(),
            span: self.part(text, start + from, start + to),
        };
        if written.len() > PATH_BYTES || !written.split('.').all(is_word) {
            return None;
        }
        let span = self.part(text, start, end);
        Some(match written.rfind('.') {
            Some(dot) => Path {
                span,
                namespace: Some(part(0, dot)),
                name: part(dot + 1, written.len()),
            },
            None => Path {
                span,
                namespace: None,
                name: part(0, written.len()),
            },
        })
    }
}

fn is_word(word: &str) -> bool {
    // A namespace has several words; each of them is far shorter than this.
    word.len() <= NAME_BYTES
        && word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// The range without white space at its ends, or nothing where nothing is left.
fn trim(text: &str, start: usize, end: usize) -> Option<(usize, usize)> {
    let part = text.get(start..end)?;
    let start = start + (part.len() - part.trim_start().len());
    let end = start + part.trim().len();
    (start < end).then_some((start, end))
}
