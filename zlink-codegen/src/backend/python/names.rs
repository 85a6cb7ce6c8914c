//! The identifiers of one namespace in Python: each declaration's, all different, none a word of the language.
//!
//! Types, clients and constants share the one scope of a module. Names that begin with `_` or have `__` in them are the
//! generator's own: no form of a schema's name gives one.

use crate::ir::{Enum, Namespace, Target, Type};
use crate::name::{Scope, assign, camel, snake, upper};

/// Words that are no identifier.
const KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// What the body of a generated class names itself, or hands to its own `__init__`.
const IN_CLASSES: &[&str] = &[
    "bool",
    "bytes",
    "classmethod",
    "cls",
    "dict",
    "float",
    "int",
    "list",
    "self",
    "str",
    "type",
];

/// What every client has.
const OF_CLIENTS: &[&str] = &["close", "ready", "servers"];

/// The identifiers of one namespace, by kind and index.
pub(super) struct Names {
    /// The package of the namespace.
    pub(super) module: String,
    pub(super) enums: Vec<String>,
    pub(super) structs: Vec<String>,
    pub(super) unions: Vec<String>,
    pub(super) messages: Vec<String>,
    pub(super) metadata: Vec<String>,
    /// The client of each service; empty for those that are called at a node.
    pub(super) clients: Vec<String>,
}

impl Names {
    pub(super) fn of(namespace: &Namespace) -> Self {
        let types = assign(&namespace.type_names(), camel, []);
        let mut scope = Scope::new(types.iter().map(String::as_str));
        let services: Vec<&str> = namespace.services.iter().map(|it| it.name.as_str()).collect();
        let clients = assign(&services, camel, []);
        let clients = clients
            .iter()
            .zip(&namespace.services)
            .map(|(name, it)| match it.target {
                Target::Channel => ident(&scope.claim(&format!("{name}Client"))),
                Target::Node => String::new(),
            });
        let clients = clients.collect();
        let keys: Vec<&str> = namespace.metadata.iter().map(|it| it.name.as_str()).collect();
        let keys = assign(&keys, upper, []);
        let metadata = keys.iter().map(|name| ident(&scope.claim(name))).collect();
        let mut types = types.iter().map(|name| ident(name));
        let mut take = |count: usize| types.by_ref().take(count).collect::<Vec<_>>();
        Self {
            module: module(&namespace.name),
            enums: take(namespace.enums.len()),
            structs: take(namespace.structs.len()),
            unions: take(namespace.unions.len()),
            messages: take(namespace.messages.len()),
            metadata,
            clients,
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

/// The fields of a class.
pub(super) fn fields(names: &[&str]) -> Vec<String> {
    members(names, IN_CLASSES)
}

/// The methods of a client.
pub(super) fn methods(names: &[&str]) -> Vec<String> {
    members(names, &[IN_CLASSES, OF_CLIENTS].concat())
}

/// No form of a name ends with `_`, so what is `taken` gets one.
fn members(names: &[&str], taken: &[&str]) -> Vec<String> {
    let own = assign(names, snake, []);
    let free = |name: &String| match taken.contains(&name.as_str()) {
        true => format!("{name}_"),
        false => ident(name),
    };
    own.iter().map(free).collect()
}

/// The package of a namespace. `zlink` is the package of what all of them need.
fn module(namespace: &str) -> String {
    match crate::name::module(namespace).as_str() {
        "zlink" => "zlink_".to_owned(),
        name => ident(name),
    }
}

/// An identifier: `class_` for a keyword, `_1st` before a digit.
fn ident(name: &str) -> String {
    if KEYWORDS.contains(&name) || name.is_empty() {
        format!("{name}_")
    } else if name.starts_with(|c: char| c.is_ascii_digit()) {
        format!("_{name}")
    } else {
        name.to_owned()
    }
}
