//! The Python type of each schema type, its codec, its default, and which pair of codec functions writes and reads it.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::names::{self, Names};
use crate::ir::{DeclRef, Field, Int, Scalar, Schema, Type};

/// What every item of a namespace is made from.
pub(super) struct Scene<'a> {
    pub(super) schema: &'a Schema,
    /// The identifiers of each namespace.
    pub(super) names: &'a [Names],
    /// The namespace at hand.
    pub(super) at: usize,
    /// The packages of other namespaces that were named.
    pub(super) used: RefCell<BTreeSet<String>>,
}

impl Scene<'_> {
    /// A declaration's name, from the namespace at hand.
    pub(super) fn path(&self, ty: &Type) -> String {
        let at = match ty {
            Type::Enum(at) | Type::Struct(at) | Type::Union(at) | Type::Message(at) => *at,
            Type::Scalar(_) | Type::List(_) | Type::Optional(_) | Type::Map(_) => return String::new(),
        };
        let names = &self.names[at.namespace];
        let ident = names.of_type(ty).unwrap_or_default();
        if at.namespace == self.at {
            return ident.to_owned();
        }
        self.used.borrow_mut().insert(names.module.clone());
        format!("_{}.{ident}", names.module)
    }

    /// What a field holds, or a list or map many of.
    pub(super) fn value_type(&self, ty: &Type) -> String {
        match ty {
            Type::Scalar(scalar) => scalar_type(*scalar).to_owned(),
            Type::List(item) => format!("list[{}]", self.value_type(item)),
            Type::Optional(inner) => format!("{} | None", self.value_type(inner)),
            Type::Map(value) => format!("dict[str, {}]", self.value_type(value)),
            Type::Enum(_) => format!("{} | int", self.path(ty)),
            Type::Struct(_) | Type::Union(_) | Type::Message(_) => self.path(ty),
        }
    }

    /// The type of a field, absence included.
    pub(super) fn field_type(&self, field: &Field) -> String {
        let ty = self.value_type(&field.ty);
        match has_no_default(&field.ty) && !field.required {
            true => format!("{ty} | None"),
            false => ty,
        }
    }

    /// What a field is where nobody sets it; nothing where somebody must.
    pub(super) fn field_default(&self, field: &Field) -> Option<String> {
        match () {
            () if field.required => None,
            () if has_no_default(&field.ty) => Some("None".to_owned()),
            () => Some(self.default(&field.ty)),
        }
    }

    /// The default of a type that has one.
    pub(super) fn default(&self, ty: &Type) -> String {
        let made = |what: &str| format!("_z.dataclasses.field(default_factory={what})");
        match ty {
            Type::Scalar(Scalar::Bool) => "False".to_owned(),
            Type::Scalar(Scalar::Int(_)) => "0".to_owned(),
            Type::Scalar(Scalar::F32 | Scalar::F64) => "0.0".to_owned(),
            Type::Scalar(Scalar::Bytes) => "b\"\"".to_owned(),
            Type::Scalar(Scalar::Uuid) => "_z.NIL".to_owned(),
            Type::Scalar(Scalar::Timestamp) => "_z.Timestamp()".to_owned(),
            Type::Scalar(Scalar::Duration) => "_z.datetime.timedelta()".to_owned(),
            Type::Scalar(_) => "\"\"".to_owned(),
            Type::List(_) => made("lambda: []"),
            Type::Map(_) => made("lambda: {}"),
            Type::Struct(_) => made(&format!("lambda: {}()", self.path(ty))),
            Type::Enum(at) => format!("{}.{}", self.path(ty), self.zero(*at)),
            Type::Optional(_) | Type::Union(_) | Type::Message(_) => "None".to_owned(),
        }
    }

    /// The member of an enum whose number is 0.
    fn zero(&self, at: DeclRef) -> String {
        let it = self.schema.enumeration(at);
        let place = it.values.iter().position(|value| value.number == 0);
        place
            .and_then(|place| names::values(it).into_iter().nth(place))
            .unwrap_or_default()
    }

    /// The codec of a value: inline, or behind an offset.
    pub(super) fn codec(&self, ty: &Type) -> String {
        match ty {
            Type::Scalar(scalar) => format!("_z.{}", scalar_codec(*scalar)),
            Type::Optional(inner) => self.codec(inner),
            Type::List(_) | Type::Map(_) => String::new(),
            Type::Enum(_) | Type::Struct(_) | Type::Union(_) | Type::Message(_) => {
                format!("{}__codec", self.path(ty))
            }
        }
    }
}

/// The pair of functions that writes and reads a field, and whether it stands inline in its table.
pub(super) fn kind(field: &Field) -> (&'static str, bool) {
    match &field.ty {
        Type::Scalar(Scalar::String) => ("string", false),
        Type::Scalar(Scalar::Bytes) => ("blob", false),
        Type::List(item) if item.is_inline() => ("inlines", false),
        Type::List(_) => ("values", false),
        Type::Map(value) if value.is_inline() => ("inline_map", false),
        Type::Map(_) => ("value_map", false),
        Type::Optional(_) => ("optional", true),
        ty if ty.is_inline() => ("inline", true),
        _ if field.required => ("required", false),
        _ => ("value", false),
    }
}

/// Whether absence is told by `None`.
fn has_no_default(ty: &Type) -> bool {
    match ty {
        Type::Message(_) | Type::Union(_) => true,
        Type::Scalar(scalar) => matches!(
            scalar,
            Scalar::SpotId | Scalar::ActorId | Scalar::SpotRef | Scalar::ActorRef
        ),
        Type::List(_) | Type::Optional(_) | Type::Map(_) | Type::Enum(_) | Type::Struct(_) => false,
    }
}

/// The type of a scalar.
pub(super) fn scalar_type(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "bool",
        Scalar::Int(_) => "int",
        Scalar::F32 | Scalar::F64 => "float",
        Scalar::String | Scalar::SpotId | Scalar::ActorId => "str",
        Scalar::Bytes => "bytes",
        Scalar::Uuid => "_z.uuid.UUID",
        Scalar::Timestamp => "_z.Timestamp",
        Scalar::Duration => "_z.datetime.timedelta",
        Scalar::SpotRef => "_z.SpotRef",
        Scalar::ActorRef => "_z.ActorRef",
    }
}

/// The codec of a scalar, and the text form of a metadata key of that type.
pub(super) fn scalar_codec(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "BOOL",
        Scalar::Int(int) => int_codec(int),
        Scalar::F32 => "F32",
        Scalar::F64 => "F64",
        Scalar::String => "STRING",
        Scalar::Bytes => "BYTES",
        Scalar::Uuid => "UUID",
        Scalar::Timestamp => "TIMESTAMP",
        Scalar::Duration => "DURATION",
        Scalar::SpotId | Scalar::ActorId => "IDENTITY",
        Scalar::SpotRef => "SPOT_REF",
        Scalar::ActorRef => "ACTOR_REF",
    }
}

/// The codec of an integer.
pub(super) fn int_codec(int: Int) -> &'static str {
    match int {
        Int::I8 => "I8",
        Int::I16 => "I16",
        Int::I32 => "I32",
        Int::I64 => "I64",
        Int::U8 => "U8",
        Int::U16 => "U16",
        Int::U32 => "U32",
        Int::U64 => "U64",
    }
}
