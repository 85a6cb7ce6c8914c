//! The `.fbs` type of each schema type.

use super::File;
use crate::ir::{Int, Scalar, Type};

impl File<'_> {
    /// The type of a value: in a field, in a map's entry, in a struct.
    pub(super) fn inner(&mut self, ty: &Type) -> String {
        match ty {
            Type::Scalar(scalar) => self.scalar(*scalar),
            Type::List(item) => match item.as_ref() {
                // FlatBuffers has no vector of vectors.
                Type::Scalar(Scalar::Bytes) => format!("[{}]", self.own("Bytes")),
                item => format!("[{}]", self.inner(item)),
            },
            Type::Optional(inner) => self.inner(inner),
            Type::Map(value) => {
                let entries = &self.names[self.at].entries;
                let name = entries
                    .iter()
                    .find(|(known, _)| known == value.as_ref())
                    .map(|(_, name)| name.as_str());
                format!("[{}]", name.unwrap_or_default())
            }
            Type::Enum(at) => self.qualified(at.namespace, &self.names[at.namespace].enums[at.index]),
            Type::Struct(at) => self.qualified(at.namespace, &self.names[at.namespace].structs[at.index]),
            Type::Union(at) => self.qualified(at.namespace, &self.names[at.namespace].boxes[at.index]),
            Type::Message(at) => self.qualified(at.namespace, &self.names[at.namespace].messages[at.index]),
        }
    }

    fn qualified(&self, namespace: usize, name: &str) -> String {
        if namespace == self.at {
            name.to_owned()
        } else {
            format!("{}.{name}", self.schema.namespaces[namespace].name)
        }
    }

    /// A type of the built-in file.
    fn own(&mut self, name: &str) -> String {
        self.built_in = true;
        format!("zlink.types.{name}")
    }

    fn scalar(&mut self, scalar: Scalar) -> String {
        let name = match scalar {
            Scalar::Bool => "bool",
            Scalar::Int(repr) => int(repr),
            Scalar::F32 => "float",
            Scalar::F64 => "double",
            Scalar::String | Scalar::SpotId | Scalar::ActorId => "string",
            Scalar::Bytes => "[ubyte]",
            Scalar::Timestamp | Scalar::Duration => "long",
            Scalar::Uuid => return self.own("Uuid"),
            Scalar::SpotRef => return self.own("SpotRef"),
            Scalar::ActorRef => return self.own("ActorRef"),
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
