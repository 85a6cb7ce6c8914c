//! The Rust type of each schema type, and which family of codec functions it belongs to.

use super::Context;
use crate::ir::{Int, Scalar, Type};

impl Context<'_> {
    /// The type of a value, where a field holds one, or a list or map many.
    pub(super) fn value_type(&self, ty: &Type) -> String {
        match ty {
            Type::Scalar(scalar) => self.scalar_type(*scalar).to_owned(),
            Type::List(item) => format!("rt::Vec<{}>", self.value_type(item)),
            Type::Optional(inner) => format!("rt::Option<{}>", self.value_type(inner)),
            Type::Map(value) => format!("rt::BTreeMap<rt::String, {}>", self.value_type(value)),
            Type::Enum(_) | Type::Struct(_) | Type::Union(_) | Type::Message(_) => self.path(ty),
        }
    }

    /// The type of a metadata key or of a scalar field.
    pub(super) fn scalar_type(&self, scalar: Scalar) -> &'static str {
        match scalar {
            Scalar::Bool => "bool",
            Scalar::Int(int) => int_type(int),
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
            Scalar::String => "rt::String",
            Scalar::Bytes => "rt::Vec<u8>",
            Scalar::Uuid => "rt::Uuid",
            Scalar::Timestamp => "rt::Timestamp",
            Scalar::Duration => "rt::SignedDuration",
            Scalar::SpotId => "rt::SpotId",
            Scalar::ActorId => "rt::ActorId",
            Scalar::SpotRef => "rt::SpotRef",
            Scalar::ActorRef => "rt::ActorRef",
        }
    }

    /// The path of a declaration, from the namespace at hand.
    pub(super) fn path(&self, ty: &Type) -> String {
        let at = match ty {
            Type::Enum(at) | Type::Struct(at) | Type::Union(at) | Type::Message(at) => *at,
            Type::Scalar(_) | Type::List(_) | Type::Optional(_) | Type::Map(_) => return String::new(),
        };
        let names = &self.names[at.namespace];
        let ident = names.of_type(ty).unwrap_or_default();
        if at.namespace == self.at {
            ident.to_owned()
        } else {
            format!("super::{}::{ident}", names.module)
        }
    }
}

pub(super) fn int_type(int: Int) -> &'static str {
    match int {
        Int::I8 => "i8",
        Int::I16 => "i16",
        Int::I32 => "i32",
        Int::I64 => "i64",
        Int::U8 => "u8",
        Int::U16 => "u16",
        Int::U32 => "u32",
        Int::U64 => "u64",
    }
}
