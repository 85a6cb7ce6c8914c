//! The identifiers of one namespace in `.fbs`: as the schema writes them, with the helper tables beside them.

use crate::ir::{Message, Namespace, Schema, Type};
use crate::name::{Scope, assign, camel, snake};

/// The identifiers of one namespace, by kind and index.
pub(super) struct Names {
    pub(super) enums: Vec<String>,
    pub(super) structs: Vec<String>,
    pub(super) unions: Vec<String>,
    pub(super) messages: Vec<String>,
    /// The table around each union.
    pub(super) boxes: Vec<String>,
    /// The table of a map's entry, for each type of value that a map here has, in the order of their first use.
    pub(super) entries: Vec<(Type, String)>,
}

impl Names {
    pub(super) fn of(namespace: &Namespace, schema: &Schema) -> Self {
        let types = idents(&namespace.type_names());
        let mut scope = Scope::new(types.iter().map(String::as_str));
        let boxes = namespace
            .unions
            .iter()
            .map(|it| scope.claim(&format!("{}Box", camel(&it.name))))
            .collect();
        let mut entries: Vec<(Type, String)> = Vec::new();
        for field in namespace.messages.iter().flat_map(Message::fields) {
            let Type::Map(value) = &field.ty else { continue };
            if entries.iter().all(|(known, _)| known != value.as_ref()) {
                let name = scope.claim(&format!("{}Entry", camel(describe(value, schema))));
                entries.push((value.as_ref().clone(), name));
            }
        }
        let mut types = types.into_iter();
        let mut take = |count: usize| types.by_ref().take(count).collect::<Vec<_>>();
        Self {
            enums: take(namespace.enums.len()),
            structs: take(namespace.structs.len()),
            unions: take(namespace.unions.len()),
            messages: take(namespace.messages.len()),
            boxes,
            entries,
        }
    }
}

impl Names {
    /// The identifiers of the fields of a table or struct here: flatc refuses those that a table or struct has.
    pub(super) fn fields(&self, names: &[&str]) -> Vec<String> {
        let entries = self.entries.iter().map(|(_, name)| name);
        let taken = self
            .structs
            .iter()
            .chain(&self.messages)
            .chain(&self.boxes)
            .chain(entries);
        assign(names, identifier, taken.map(String::as_str))
    }
}

/// One identifier per name, all different: the name itself wherever it is one.
pub(super) fn idents(names: &[&str]) -> Vec<String> {
    assign(names, identifier, [])
}

fn identifier(name: &str) -> String {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = if name.chars().all(word) {
        name.to_owned()
    } else {
        snake(name)
    };
    match name.chars().next() {
        Some(first) if !first.is_ascii_digit() => name,
        _ => format!("_{name}"),
    }
}

/// What a map's entry is named after.
fn describe<'a>(value: &Type, schema: &'a Schema) -> &'a str {
    match value {
        Type::Enum(at) => &schema.enumeration(*at).name,
        Type::Struct(at) => &schema.structure(*at).name,
        Type::Union(at) => &schema.union(*at).name,
        Type::Message(at) => &schema.message(*at).name,
        Type::List(_) | Type::Map(_) | Type::Optional(_) => "value",
        Type::Scalar(scalar) => scalar.name(),
    }
}
