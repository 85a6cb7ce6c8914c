//! The declarations of one file by name.
//!
//! It must not know other files.

use std::collections::HashMap;

use crate::diagnostic::{Code, Diagnostic, Sink};
use crate::source::Span;
use crate::syntax::{File, Name};

/// What a name is declared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeclKind {
    Enum,
    Struct,
    Union,
    Message,
}

impl DeclKind {
    pub(super) fn describe(self) -> &'static str {
        match self {
            DeclKind::Enum => "an enum",
            DeclKind::Struct => "a struct",
            DeclKind::Union => "a union",
            DeclKind::Message => "a message",
        }
    }
}

/// A declaration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decl {
    pub(super) kind: DeclKind,
    /// Its index among those of its kind.
    pub(super) index: usize,
    pub(super) span: Span,
}

/// All declarations of a file that types can name.
pub(super) struct Names<'a> {
    by_name: HashMap<&'a str, Decl>,
    /// In the order of the file, for suggestions that do not depend on hashing.
    pub(super) order: Vec<&'a str>,
}

impl<'a> Names<'a> {
    pub(super) fn of(file: &'a File, sink: &mut Sink) -> Self {
        let mut names = Names {
            by_name: HashMap::new(),
            order: Vec::new(),
        };
        names.add(DeclKind::Enum, file.enums.iter().map(|it| &it.name), sink);
        names.add(DeclKind::Struct, file.structs.iter().map(|it| &it.name), sink);
        names.add(DeclKind::Union, file.unions.iter().map(|it| &it.name), sink);
        names.add(DeclKind::Message, file.messages.iter().map(|it| &it.name), sink);
        names
    }

    fn add(&mut self, kind: DeclKind, list: impl Iterator<Item = &'a Name>, sink: &mut Sink) {
        for (index, name) in list.enumerate() {
            if super::lookup::is_built_in(&name.value) {
                let message = format!("`{}` is a built-in type", name.value);
                sink.report(
                    Diagnostic::new(Code::BuiltInName, name.span, message).help("give the declaration another name"),
                );
            } else if let Some(other) = self.by_name.get(name.value.as_str()) {
                let message = format!("`{}` is declared twice", name.value);
                let item = Diagnostic::new(Code::DuplicateName, name.span, message)
                    .label(format!("{} here", kind.describe()))
                    .at(other.span, format!("{} here", other.kind.describe()))
                    .help("enums, structs, unions and messages of a file share one set of names");
                sink.report(item);
            } else {
                self.by_name.insert(
                    &name.value,
                    Decl {
                        kind,
                        index,
                        span: name.span,
                    },
                );
                self.order.push(&name.value);
            }
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<Decl> {
        self.by_name.get(name).copied()
    }
}
