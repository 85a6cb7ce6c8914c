//! Values that stand inline, in a slot of a table or one after the other in a vector: scalars, enums and structs.
//!
//! It owns their byte layout, little-endian throughout. It must not know tables.

use flatbuffers::{FlatBufferBuilder, Push, PushAlignment};

/// The bytes of an inline value: an array of its size.
pub trait ByteArray: Copy {
    /// Its length.
    const LEN: usize;
    /// The first bytes of `bytes` as such an array; `None` where there are too few.
    fn first(bytes: &[u8]) -> Option<&Self>;
    /// All of it.
    fn as_slice(&self) -> &[u8];
}

impl<const N: usize> ByteArray for [u8; N] {
    const LEN: usize = N;
    #[inline]
    fn first(bytes: &[u8]) -> Option<&Self> {
        bytes.first_chunk()
    }
    #[inline]
    fn as_slice(&self) -> &[u8] {
        self
    }
}

/// A value of fixed size that stands inline: a scalar, an enum or a struct.
pub trait Inline: Copy + Default + 'static {
    /// Its bytes: `[u8; SIZE]`.
    type Bytes: ByteArray;
    /// What its first byte's position is a multiple of: 1, 2, 4 or 8.
    const ALIGN: usize;

    /// Its bytes, padding zeroed.
    fn to_bytes(&self) -> Self::Bytes;
    /// The value with these bytes. Every byte string is one.
    fn from_bytes(bytes: &Self::Bytes) -> Self;

    /// Whether a field may leave it out, since absence means the same, bit for bit. Structs are always written.
    #[inline]
    fn is_elided(&self) -> bool {
        false
    }

    /// Whether every value is canonical.
    const PLAIN: bool = true;

    /// Whether its bytes are read as the same value.
    #[inline]
    fn is_canonical(&self) -> bool {
        true
    }

    /// Writes a vector of them.
    #[doc(hidden)]
    #[inline]
    fn push_vector(items: &[Self], builder: &mut FlatBufferBuilder<'static>) -> u32 {
        builder
            .create_vector_from_iter(items.iter().map(|item| Pushed(*item)))
            .value()
    }

    /// Writes one into the table under construction.
    #[doc(hidden)]
    #[inline]
    fn push_slot(self, at: u16, builder: &mut FlatBufferBuilder<'static>) {
        builder.push_slot_always(at, Pushed(self));
    }
}

/// Writes `value` into a struct's bytes, from byte `at` on.
#[inline]
pub fn store<T: Inline>(to: &mut [u8], at: usize, value: &T) {
    // The generator's offsets lie inside; were one wrong, the golden tests of every struct would show zeros.
    if let Some(to) = to.get_mut(at..at + T::Bytes::LEN) {
        to.copy_from_slice(value.to_bytes().as_slice());
    }
}

/// Reads a value from a struct's bytes, from byte `at` on.
#[inline]
#[must_use]
pub fn load<T: Inline>(from: &[u8], at: usize) -> T {
    from.get(at..)
        .and_then(T::Bytes::first)
        .map(T::from_bytes)
        .unwrap_or_default()
}

/// Lets the official builder place any inline value.
struct Pushed<T>(T);

// The builder declares `push` as an unsafe function, so that implementations may write without a check; this one
// checks, and therefore needs nothing of what the builder promises. No other place in the crate needs the word.
#[allow(unsafe_code)]
impl<T: Inline> Push for Pushed<T> {
    type Output = Self;

    #[inline]
    unsafe fn push(&self, dst: &mut [u8], _written_len: usize) {
        store(dst, 0, &self.0);
    }
    #[inline]
    fn size() -> usize {
        T::Bytes::LEN
    }
    #[inline]
    fn alignment() -> PushAlignment {
        PushAlignment::new(T::ALIGN)
    }
}

macro_rules! scalar {
    ($($ty:ident: $size:literal, $value:ident => $elided:expr;)+) => {$(
        impl Inline for $ty {
            type Bytes = [u8; $size];
            const ALIGN: usize = $size;
            #[inline]
            fn to_bytes(&self) -> [u8; $size] {
                self.to_le_bytes()
            }
            #[inline]
            fn from_bytes(bytes: &[u8; $size]) -> Self {
                Self::from_le_bytes(*bytes)
            }
            #[inline]
            fn is_elided(&self) -> bool {
                let $value = *self;
                $elided
            }
            #[inline]
            fn push_vector(items: &[Self], builder: &mut FlatBufferBuilder<'static>) -> u32 {
                builder.create_vector(items).value()
            }
            #[inline]
            fn push_slot(self, at: u16, builder: &mut FlatBufferBuilder<'static>) {
                builder.push_slot_always(at, self);
            }
        }
    )+};
}

scalar! {
    i8: 1, value => value == 0;
    i16: 2, value => value == 0;
    i32: 4, value => value == 0;
    i64: 8, value => value == 0;
    u16: 2, value => value == 0;
    u32: 4, value => value == 0;
    u64: 8, value => value == 0;
    // Bits, not values: -0.0 equals 0.0 and is not the same.
    f32: 4, value => value.to_bits() == 0;
    f64: 8, value => value.to_bits() == 0;
}

impl Inline for u8 {
    type Bytes = [u8; 1];
    const ALIGN: usize = 1;
    #[inline]
    fn to_bytes(&self) -> [u8; 1] {
        [*self]
    }
    #[inline]
    fn from_bytes(bytes: &[u8; 1]) -> Self {
        bytes[0]
    }
    #[inline]
    fn is_elided(&self) -> bool {
        *self == 0
    }
    #[inline]
    fn push_vector(items: &[Self], builder: &mut FlatBufferBuilder<'static>) -> u32 {
        // One copy; the terminator it adds lies behind the vector and belongs to nobody.
        builder.create_byte_string(items).value()
    }
    #[inline]
    fn push_slot(self, at: u16, builder: &mut FlatBufferBuilder<'static>) {
        builder.push_slot_always(at, self);
    }
}

impl Inline for bool {
    type Bytes = [u8; 1];
    const ALIGN: usize = 1;
    #[inline]
    fn to_bytes(&self) -> [u8; 1] {
        [u8::from(*self)]
    }
    #[inline]
    fn from_bytes(bytes: &[u8; 1]) -> Self {
        bytes[0] != 0
    }
    #[inline]
    fn is_elided(&self) -> bool {
        !*self
    }
}

impl Inline for uuid::Uuid {
    type Bytes = [u8; 16];
    const ALIGN: usize = 1;
    #[inline]
    fn to_bytes(&self) -> [u8; 16] {
        self.into_bytes()
    }
    #[inline]
    fn from_bytes(bytes: &[u8; 16]) -> Self {
        Self::from_bytes(*bytes)
    }
}
