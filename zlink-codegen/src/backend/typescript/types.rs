//! The TypeScript type of each schema type, and the codec that writes and reads it.

use super::context::Namer;
use crate::ir::{Int, Scalar, Type};

/// Whether an absent one is `undefined`, and no default.
pub(super) fn has_no_default(ty: &Type) -> bool {
    match ty {
        Type::Message(_) | Type::Union(_) | Type::Optional(_) => true,
        Type::Scalar(scalar) => {
            matches!(
                scalar,
                Scalar::SpotId | Scalar::ActorId | Scalar::SpotRef | Scalar::ActorRef
            )
        }
        Type::List(_) | Type::Map(_) | Type::Enum(_) | Type::Struct(_) => false,
    }
}

impl Namer<'_> {
    /// The type of a value that is there; with `input`, as it is written.
    pub(super) fn value_type(&mut self, ty: &Type, input: bool) -> String {
        match ty {
            Type::Scalar(scalar) => scalar_type(*scalar).to_owned(),
            Type::List(item) => format!("readonly {}[]", self.value_type(item, input)),
            Type::Optional(inner) => self.value_type(inner, input),
            Type::Map(value) => format!("rt.StringMap<{}>", self.value_type(value, input)),
            Type::Enum(_) | Type::Struct(_) | Type::Union(_) | Type::Message(_) => self.path(ty, input),
        }
    }

    /// What writes and reads a value of that type, where a field holds one, or a map many.
    pub(super) fn codec(&mut self, ty: &Type) -> String {
        match ty {
            Type::Scalar(scalar) => format!("rt.{}", scalar_codec(*scalar)),
            Type::Enum(at) => format!("rt.{}", enum_codec(self.schema.enumeration(*at).repr)),
            Type::List(inner) | Type::Optional(inner) | Type::Map(inner) => self.codec(inner),
            Type::Struct(_) | Type::Union(_) | Type::Message(_) => self.path(ty, false),
        }
    }

    /// The same where a list holds many: FlatBuffers has no vector of vectors.
    pub(super) fn item_codec(&mut self, ty: &Type) -> String {
        match ty {
            Type::Scalar(Scalar::Bytes) => "rt.boxed".to_owned(),
            _ => self.codec(ty),
        }
    }
}

pub(super) fn scalar_type(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "boolean",
        Scalar::Int(int) => int_type(int),
        Scalar::F32 | Scalar::F64 => "number",
        Scalar::String => "string",
        Scalar::Bytes => "rt.Bytes",
        Scalar::Uuid => "rt.Uuid",
        Scalar::Timestamp => "rt.Timestamp",
        Scalar::Duration => "rt.Duration",
        Scalar::SpotId => "rt.SpotId",
        Scalar::ActorId => "rt.ActorId",
        Scalar::SpotRef => "rt.SpotRef",
        Scalar::ActorRef => "rt.ActorRef",
    }
}

/// Integers beyond 53 bits do not fit into a number.
pub(super) fn is_wide(int: Int) -> bool {
    int.size() == 8
}

fn int_type(int: Int) -> &'static str {
    if is_wide(int) { "bigint" } else { "number" }
}

fn scalar_codec(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Timestamp | Scalar::Duration => "i64",
        Scalar::SpotId => "spotId",
        Scalar::ActorId => "actorId",
        Scalar::SpotRef => "spotRef",
        Scalar::ActorRef => "actorRef",
        scalar => scalar.name(),
    }
}

/// A vector of the enums of one byte ends otherwise than one of bytes.
fn enum_codec(int: Int) -> &'static str {
    match int {
        Int::U8 => "enum8",
        int => int.name(),
    }
}

/// What makes a metadata key of that type.
pub(super) fn key_maker(scalar: Scalar) -> String {
    match scalar {
        Scalar::String | Scalar::SpotId | Scalar::ActorId => "rt.textKey".to_owned(),
        Scalar::Timestamp | Scalar::Duration => "rt.i64Key".to_owned(),
        scalar => format!("rt.{}Key", scalar.name()),
    }
}
