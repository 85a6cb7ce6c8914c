//! What generated code is written in: one macro per kind of type, which declares it together with its codec.
//!
//! So generated files stay about as long as their schemas, and whoever reads one sees fields and rules, not plumbing.
//! Each kind of field is a pair of functions of one name, on [`Writer`](super::Writer) and [`Table`](super::Table).

/// A message: `"<schema name>" => pub struct Name { field: Type => kind(id, "name")<rules>, … } slots [field …]`,
/// where the slots name all fields in the order they are written.
#[doc(hidden)]
#[macro_export]
macro_rules! __zlink_message {
    (
        $(#[$meta:meta])*
        $wire:literal => pub struct $name:ident {$(
            $(#[$field_meta:meta])*
            $field:ident: $ty:ty => $kind:ident($id:literal, $text:literal) $(.$rule:ident($($bound:literal)?))*,
        )*} slots [$($slot:ident)*]
    ) => {
        $(#[$meta])*
        #[derive(::core::clone::Clone, ::core::fmt::Debug, ::core::cmp::PartialEq)]
        pub struct $name {$(
            $(#[$field_meta])*
            #[doc = concat!("\n\nField ", $id, ".")]
            pub $field: $ty,
        )*}

        #[allow(unused_mut, unused_variables)]
        impl $crate::message::codec::Value for $name {
            fn write(
                &self,
                writer: &mut $crate::message::codec::Writer,
            ) -> $crate::message::codec::Result<$crate::message::codec::Offset, $crate::message::codec::EncodeError> {
                $(let $field = writer.$kind(
                    $crate::message::codec::Field::new($id, $text)$(.$rule($($bound)?))*,
                    &self.$field,
                )?;)*
                let mut table = writer.table()?;
                $($crate::message::codec::Slot::put($slot, &mut table);)*
                $crate::message::codec::Ok(table.end())
            }

            fn measure(
                &self,
                measure: &mut $crate::message::codec::Measure,
            ) -> $crate::message::codec::Option<()> {
                $(measure.$kind(
                    $crate::message::codec::Field::new($id, $text)$(.$rule($($bound)?))*,
                    &self.$field,
                )?;)*
                measure.table(&[$($id),*])
            }

            fn read(
                at: $crate::message::codec::At<'_, '_>,
            ) -> $crate::message::codec::Result<Self, $crate::message::codec::DecodeError> {
                let mut table = at.table()?;
                $crate::message::codec::Ok(Self {$(
                    $field: table.$kind(
                        $crate::message::codec::Field::new($id, $text)$(.$rule($($bound)?))*,
                    )?,
                )*})
            }
        }

        impl $crate::message::codec::Message for $name {
            const NAME: &'static str = $wire;
        }
    };
}

/// A struct: `pub struct Name [size, align] { field: Type => offset, … }`.
#[doc(hidden)]
#[macro_export]
macro_rules! __zlink_structure {
    (
        $(#[$meta:meta])*
        pub struct $name:ident [$size:literal, $align:literal] {$(
            $(#[$field_meta:meta])*
            $field:ident: $ty:ty => $offset:literal,
        )*}
    ) => {
        $(#[$meta])*
        #[derive(
            ::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug, ::core::default::Default,
            ::core::cmp::PartialEq,
        )]
        pub struct $name {$(
            $(#[$field_meta])*
            #[doc = concat!("\n\nAt byte ", $offset, ".")]
            pub $field: $ty,
        )*}

        impl $crate::message::codec::Inline for $name {
            type Bytes = [u8; $size];
            const ALIGN: usize = $align;
            const PLAIN: bool = true $(&& <$ty as $crate::message::codec::Inline>::PLAIN)*;

            #[inline]
            fn is_canonical(&self) -> bool {
                true $(&& $crate::message::codec::Inline::is_canonical(&self.$field))*
            }

            #[inline]
            fn to_bytes(&self) -> [u8; $size] {
                let mut bytes = [0; $size];
                $($crate::message::codec::store(&mut bytes, $offset, &self.$field);)*
                bytes
            }

            #[inline]
            fn from_bytes(bytes: &[u8; $size]) -> Self {
                Self { $($field: $crate::message::codec::load(bytes, $offset),)* }
            }
        }
    };
}

/// An enum: `pub enum Name: repr [size] { Value = number, … }`. It has the value 0.
#[doc(hidden)]
#[macro_export]
macro_rules! __zlink_enumeration {
    (
        $(#[$meta:meta])*
        pub enum $name:ident: $repr:ident [$size:literal] {$(
            $(#[$value_meta:meta])*
            $value:ident = $number:literal,
        )*}
    ) => {
        $(#[$meta])*
        #[derive(
            ::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug, ::core::cmp::PartialEq, ::core::cmp::Eq,
            ::core::hash::Hash,
        )]
        pub enum $name {
            $(
                $(#[$value_meta])*
                #[doc = concat!("\n\nNumber ", $number, ".")]
                $value,
            )*
            /// A number without a name here, as a newer program may send; it is kept.
            Unknown($repr),
        }

        impl $name {
            /// Its number on the wire.
            #[must_use]
            pub const fn to_wire(self) -> $repr {
                match self {
                    $(Self::$value => $number,)*
                    Self::Unknown(number) => number,
                }
            }

            /// The value with this number.
            #[must_use]
            #[allow(unreachable_patterns)]
            pub const fn from_wire(number: $repr) -> Self {
                match number {
                    $($number => Self::$value,)*
                    number => Self::Unknown(number),
                }
            }
        }

        impl ::core::default::Default for $name {
            fn default() -> Self {
                Self::from_wire(0)
            }
        }

        impl $crate::message::codec::Inline for $name {
            type Bytes = [u8; $size];
            const ALIGN: usize = $size;
            const PLAIN: bool = false;

            #[inline]
            fn is_canonical(&self) -> bool {
                match self {
                    // A number that has a name here is read as that.
                    Self::Unknown(number) => ::core::matches!(Self::from_wire(*number), Self::Unknown(_)),
                    _ => true,
                }
            }

            #[inline]
            fn to_bytes(&self) -> [u8; $size] {
                self.to_wire().to_le_bytes()
            }

            #[inline]
            fn from_bytes(bytes: &[u8; $size]) -> Self {
                Self::from_wire($repr::from_le_bytes(*bytes))
            }

            #[inline]
            fn is_elided(&self) -> bool {
                self.to_wire() == 0
            }
        }
    };
}

/// A union: `pub enum Name { Variant(Message) = tag, … }`.
#[doc(hidden)]
#[macro_export]
macro_rules! __zlink_union {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {$(
            $(#[$member_meta:meta])*
            $member:ident($ty:ty) = $tag:literal,
        )*}
    ) => {
        $(#[$meta])*
        #[derive(::core::clone::Clone, ::core::fmt::Debug, ::core::cmp::PartialEq)]
        pub enum $name {
            $(
                $(#[$member_meta])*
                #[doc = concat!("Tag ", $tag, ".")]
                $member($ty),
            )*
            /// A member that is not known here, as a newer program may send. Its content was not kept, so it cannot be
            /// encoded again.
            Unknown(u8),
        }

        impl $crate::message::codec::Value for $name {
            fn write(
                &self,
                writer: &mut $crate::message::codec::Writer,
            ) -> $crate::message::codec::Result<$crate::message::codec::Offset, $crate::message::codec::EncodeError> {
                match self {
                    $(Self::$member(member) => writer.union($tag, member),)*
                    Self::Unknown(tag) => writer.unknown_union(*tag),
                }
            }

            fn measure(
                &self,
                measure: &mut $crate::message::codec::Measure,
            ) -> $crate::message::codec::Option<()> {
                match self {
                    $(Self::$member(member) => measure.union($tag, member),)*
                    Self::Unknown(_) => $crate::message::codec::None,
                }
            }

            fn read(
                at: $crate::message::codec::At<'_, '_>,
            ) -> $crate::message::codec::Result<Self, $crate::message::codec::DecodeError> {
                match <Self as $crate::message::codec::Value>::read_optional(at)? {
                    $crate::message::codec::Some(union) => $crate::message::codec::Ok(union),
                    $crate::message::codec::None => $crate::message::codec::Err($crate::message::codec::no_member()),
                }
            }

            fn read_optional(
                at: $crate::message::codec::At<'_, '_>,
            ) -> $crate::message::codec::Result<
                $crate::message::codec::Option<Self>,
                $crate::message::codec::DecodeError,
            > {
                let mut table = at.table()?;
                $crate::message::codec::Ok($crate::message::codec::Some(match table.tag()? {
                    0 => return $crate::message::codec::Ok($crate::message::codec::None),
                    $($tag => Self::$member(table.member()?),)*
                    tag => Self::Unknown(tag),
                }))
            }
        }
    };
}
