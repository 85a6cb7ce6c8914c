//! The `.fbs` type of each schema type.

use std::cell::Cell;

use super::names::Names;
use crate::ir::{DeclRef, Int, Scalar, Schema, Type};

/// The namespace at hand among the others.
pub(super) struct Scene<'a> {
    schema: &'a Schema,
    /// The identifiers of each namespace.
    names: &'a [Names],
    at: usize,
    /// Whether a built-in type was named.
    built_in: Cell<bool>,
}

impl<'a> Scene<'a> {
    pub(super) fn of(schema: &'a Schema, names: &'a [Names], at: usize) -> Self {
        Self {
            schema,
            names,
            at,
            built_in: Cell::new(false),
        }
    }

    /// The identifiers of the namespace at hand.
    pub(super) fn own(&self) -> &'a Names {
        &self.names[self.at]
    }

    /// Whether a type of the file of built-in ones was named so far.
    pub(super) fn uses_built_in(&self) -> bool {
        self.built_in.get()
    }

    /// The name of a message, as the schema has it.
    pub(super) fn name_of(&self, message: DeclRef) -> &'a str {
        &self.schema.message(message).name
    }

    /// The type of a value: in a field, in a map's entry, in a struct.
    pub(super) fn ty(&self, ty: &Type) -> String {
        match ty {
            Type::Scalar(scalar) => self.scalar(*scalar),
            Type::List(item) => match item.as_ref() {
                // FlatBuffers has no vector of vectors.
                Type::Scalar(Scalar::Bytes) => format!("[{}]", self.provided("Bytes")),
                item => format!("[{}]", self.ty(item)),
            },
            Type::Optional(inner) => self.ty(inner),
            Type::Map(value) => {
                let mut entries = self.own().entries.iter();
                let known = entries.find(|(known, _)| known == value.as_ref());
                format!("[{}]", known.map(|(_, name)| name.as_str()).unwrap_or_default())
            }
            Type::Enum(at) => self.qualified(*at, |names| &names.enums),
            Type::Struct(at) => self.qualified(*at, |names| &names.structs),
            Type::Union(at) => self.qualified(*at, |names| &names.boxes),
            Type::Message(at) => self.qualified(*at, |names| &names.messages),
        }
    }

    fn qualified(&self, at: DeclRef, kind: impl Fn(&Names) -> &Vec<String>) -> String {
        let name = &kind(&self.names[at.namespace])[at.index];
        if at.namespace == self.at {
            name.clone()
        } else {
            format!("{}.{name}", self.schema.namespaces[at.namespace].name)
        }
    }

    /// A type of the built-in file.
    fn provided(&self, name: &str) -> String {
        self.built_in.set(true);
        format!("zlink.types.{name}")
    }

    fn scalar(&self, scalar: Scalar) -> String {
        let name = match scalar {
            Scalar::Bool => "bool",
            Scalar::Int(repr) => int(repr),
            Scalar::F32 => "float",
            Scalar::F64 => "double",
            Scalar::String | Scalar::SpotId | Scalar::ActorId => "string",
            Scalar::Bytes => "[ubyte]",
            Scalar::Timestamp | Scalar::Duration => "long",
            Scalar::Uuid => return self.provided("Uuid"),
            Scalar::SpotRef => return self.provided("SpotRef"),
            Scalar::ActorRef => return self.provided("ActorRef"),
        };
        name.to_owned()
    }
}

pub(super) fn int(int: Int) -> &'static str {
    match int {
        Int::I8 => "byte",
        Int::I16 => "short",
        Int::I32 => "int",
        Int::I64 => "long",
        Int::U8 => "ubyte",
        Int::U16 => "ushort",
        Int::U32 => "uint",
        Int::U64 => "ulong",
    }
}
