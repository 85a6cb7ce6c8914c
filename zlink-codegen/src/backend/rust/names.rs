//! The identifiers of one namespace: each declaration's, all different.

use proc_macro2::{Ident, Span};

use crate::ir::{DeclRef, Namespace, Type};
use crate::name::{assign, camel, rust_ident};

/// The identifiers of one namespace, by kind and index.
pub(super) struct Names {
    pub(super) module: Ident,
    pub(super) enums: Vec<Ident>,
    pub(super) structs: Vec<Ident>,
    pub(super) unions: Vec<Ident>,
    pub(super) messages: Vec<Ident>,
    pub(super) metadata: Vec<Ident>,
}

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
        let mut types = idents(&all, camel, &[]).into_iter();
        let mut take = |count: usize| types.by_ref().take(count).collect::<Vec<_>>();
        let metadata: Vec<&str> = namespace.metadata.iter().map(|it| it.name.as_str()).collect();
        Self {
            module: module(&namespace.name),
            enums: take(namespace.enums.len()),
            structs: take(namespace.structs.len()),
            unions: take(namespace.unions.len()),
            messages: take(namespace.messages.len()),
            metadata: idents(&metadata, crate::name::upper, &[]),
        }
    }

    /// The identifier of a declaration of this namespace; `ty` tells its kind.
    pub(super) fn of_type(&self, ty: &Type) -> Option<(DeclRef, &Ident)> {
        let (list, at) = match ty {
            Type::Enum(at) => (&self.enums, *at),
            Type::Struct(at) => (&self.structs, *at),
            Type::Union(at) => (&self.unions, *at),
            Type::Message(at) => (&self.messages, *at),
            Type::Scalar(_) | Type::List(_) | Type::Optional(_) | Type::Map(_) => return None,
        };
        list.get(at.index).map(|ident| (at, ident))
    }
}

/// One Rust identifier per name, all different, none of `reserved`.
pub(super) fn idents(names: &[&str], form: impl Fn(&str) -> String, reserved: &[&str]) -> Vec<Ident> {
    assign(names, form, reserved.iter().copied())
        .iter()
        .map(|name| ident(name))
        .collect()
}

/// The module of a namespace.
pub(super) fn module(namespace: &str) -> Ident {
    ident(&crate::name::module(namespace))
}

/// A name in its final form as an identifier.
pub(super) fn ident(name: &str) -> Ident {
    let name = if name.is_empty() {
        "unnamed".to_owned()
    } else {
        rust_ident(name)
    };
    match name.strip_prefix("r#") {
        Some(keyword) => Ident::new_raw(keyword, Span::call_site()),
        None => Ident::new(&name, Span::call_site()),
    }
}
