//! The Rust type of each schema type, and which family of codec functions it belongs to.

use proc_macro2::TokenStream;
use quote::quote;

use super::Context;
use crate::ir::{Int, Scalar, Type};

/// How a type is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    /// In the table itself: scalars, enums, structs.
    Inline,
    /// Behind an offset.
    Offset,
}

/// How a type is stored, and for what is inline its alignment.
impl Context<'_> {
    pub(super) fn storage(&self, ty: &Type) -> Storage {
        match ty {
            Type::Scalar(scalar) => match scalar {
                Scalar::String
                | Scalar::Bytes
                | Scalar::SpotId
                | Scalar::ActorId
                | Scalar::SpotRef
                | Scalar::ActorRef => Storage::Offset,
                Scalar::Bool | Scalar::Int(_) | Scalar::F32 | Scalar::F64 => Storage::Inline,
                Scalar::Uuid | Scalar::Timestamp | Scalar::Duration => Storage::Inline,
            },
            Type::Enum(_) | Type::Struct(_) => Storage::Inline,
            Type::Optional(inner) => self.storage(inner),
            Type::List(_) | Type::Map(_) | Type::Union(_) | Type::Message(_) => Storage::Offset,
        }
    }

    /// The alignment of a field in its table.
    pub(super) fn align(&self, ty: &Type) -> u32 {
        match ty {
            Type::Scalar(Scalar::Int(int)) => int.size(),
            Type::Scalar(Scalar::Bool | Scalar::Uuid) => 1,
            Type::Scalar(Scalar::F64 | Scalar::Timestamp | Scalar::Duration) => 8,
            Type::Enum(at) => self.schema.enumeration(*at).repr.size(),
            Type::Struct(at) => self.schema.structure(*at).align,
            Type::Optional(inner) => self.align(inner),
            Type::Scalar(_) | Type::List(_) | Type::Map(_) | Type::Union(_) | Type::Message(_) => 4,
        }
    }

    /// The type of a value, where a field holds one, or a list or map many.
    pub(super) fn value_type(&self, ty: &Type) -> TokenStream {
        match ty {
            Type::Scalar(scalar) => self.scalar_type(*scalar),
            Type::List(item) => {
                let item = self.value_type(item);
                quote!(rt::Vec<#item>)
            }
            Type::Optional(inner) => {
                let inner = self.value_type(inner);
                quote!(rt::Option<#inner>)
            }
            Type::Map(value) => {
                let value = self.value_type(value);
                quote!(rt::BTreeMap<rt::String, #value>)
            }
            Type::Enum(_) | Type::Struct(_) | Type::Union(_) | Type::Message(_) => self.path(ty),
        }
    }

    /// The type of a metadata key or of a scalar field.
    pub(super) fn scalar_type(&self, scalar: Scalar) -> TokenStream {
        match scalar {
            Scalar::Bool => quote!(bool),
            Scalar::Int(int) => int_type(int),
            Scalar::F32 => quote!(f32),
            Scalar::F64 => quote!(f64),
            Scalar::String => quote!(rt::String),
            Scalar::Bytes => quote!(rt::Vec<u8>),
            Scalar::Uuid => quote!(rt::Uuid),
            Scalar::Timestamp => quote!(rt::Timestamp),
            Scalar::Duration => quote!(rt::SignedDuration),
            Scalar::SpotId => quote!(rt::SpotId),
            Scalar::ActorId => quote!(rt::ActorId),
            Scalar::SpotRef => quote!(rt::SpotRef),
            Scalar::ActorRef => quote!(rt::ActorRef),
        }
    }

    /// The path of a declaration, from the namespace at hand.
    pub(super) fn path(&self, ty: &Type) -> TokenStream {
        self.names
            .iter()
            .enumerate()
            .find_map(|(namespace, names)| {
                let (at, ident) = names.of_type(ty)?;
                (at.namespace == namespace).then(|| {
                    let module = &names.module;
                    if namespace == self.at {
                        quote!(#ident)
                    } else {
                        quote!(super::#module::#ident)
                    }
                })
            })
            .unwrap_or_default()
    }
}

pub(super) fn int_type(int: Int) -> TokenStream {
    match int {
        Int::I8 => quote!(i8),
        Int::I16 => quote!(i16),
        Int::I32 => quote!(i32),
        Int::I64 => quote!(i64),
        Int::U8 => quote!(u8),
        Int::U16 => quote!(u16),
        Int::U32 => quote!(u32),
        Int::U64 => quote!(u64),
    }
}
