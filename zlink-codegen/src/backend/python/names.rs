//! The identifiers of one namespace in Python: each declaration's, all different, none a word of the language.
//!
//! Types, clients and constants share the one scope of a module. Names that begin with `_` or have `__` in them are the
//! generator's own: no form of a schema's name gives one.

use crate::ir::{Enum, Namespace, Type};
use crate::name::{assign, camel, upper};

/// Words that are no identifier.
const KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// The identifiers of one namespace, by kind and index.
#[allow(dead_code, reason = "messages come next")]
pub(super) struct Names {
    /// The package of the namespace.
    pub(super) module: String,
    pub(super) enums: Vec<String>,
    pub(super) structs: Vec<String>,
    pub(super) unions: Vec<String>,
    pub(super) messages: Vec<String>,
}

#[allow(dead_code, reason = "messages come next")]
impl Names {
    pub(super) fn of(namespace: &Namespace) -> Self {
        let enums = namespace.enums.iter().map(|it| &it.name);
        let structs = namespace.structs.iter().map(|it| &it.name);
        let unions = namespace.unions.iter().map(|it| &it.name);
        let messages = namespace.messages.iter().map(|it| &it.name);
        let all: Vec<&str> = enums
            .chain(structs)
            .chain(unions)
            .chain(messages)
            .map(String::as_str)
            .collect();
        let mut types = assign(&all, camel, []).into_iter().map(|name| ident(&name));
        let mut take = |count: usize| types.by_ref().take(count).collect::<Vec<_>>();
        Self {
            module: module(&namespace.name),
            enums: take(namespace.enums.len()),
            structs: take(namespace.structs.len()),
            unions: take(namespace.unions.len()),
            messages: take(namespace.messages.len()),
        }
    }

    /// The identifier of a declaration of this namespace; `ty` tells its kind.
    pub(super) fn of_type(&self, ty: &Type) -> Option<&str> {
        let (list, at) = match ty {
            Type::Enum(at) => (&self.enums, at),
            Type::Struct(at) => (&self.structs, at),
            Type::Union(at) => (&self.unions, at),
            Type::Message(at) => (&self.messages, at),
            Type::Scalar(_) | Type::List(_) | Type::Optional(_) | Type::Map(_) => return None,
        };
        list.get(at.index).map(String::as_str)
    }
}

/// The members of an enum.
pub(super) fn values(it: &Enum) -> Vec<String> {
    let names: Vec<&str> = it.values.iter().map(|value| value.name.as_str()).collect();
    assign(&names, upper, []).iter().map(|name| ident(name)).collect()
}

/// The package of a namespace. `zlink` is the package of what all of them need.
fn module(namespace: &str) -> String {
    match crate::name::module(namespace).as_str() {
        "zlink" => "zlink_".to_owned(),
        name => ident(name),
    }
}

/// An identifier: `class_` for a keyword, `_1st` before a digit.
pub(super) fn ident(name: &str) -> String {
    if KEYWORDS.contains(&name) || name.is_empty() {
        format!("{name}_")
    } else if name.starts_with(|c: char| c.is_ascii_digit()) {
        format!("_{name}")
    } else {
        name.to_owned()
    }
}
