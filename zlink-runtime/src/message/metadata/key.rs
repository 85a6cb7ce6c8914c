//! Keys of the metadata snapshot with a type: what a schema declares under `metadata:`.
//!
//! It owns the text form of each type. It must not know the layout of the snapshot.

use std::borrow::{Borrow, Cow};
use std::marker::PhantomData;

use crate::id::{ActorId, SpotId};
use crate::message::time::{SignedDuration, Timestamp};

/// A key with the type that its value's text stands for.
pub struct MetadataKey<T: MetadataText> {
    name: &'static str,
    relay: bool,
    value: PhantomData<fn() -> T>,
}

impl<T: MetadataText> MetadataKey<T> {
    /// The key with this name, which stays on this side of a relay between a session and an Actor.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            relay: false,
            value: PhantomData,
        }
    }

    /// The same key, crossing relays.
    #[must_use]
    pub const fn relayed(self) -> Self {
        Self { relay: true, ..self }
    }

    /// Its name, as it travels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.name
    }

    /// Whether it may cross a relay between a session and an Actor.
    #[must_use]
    pub const fn is_relayed(self) -> bool {
        self.relay
    }
}

impl<T: MetadataText> Clone for MetadataKey<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: MetadataText> Copy for MetadataKey<T> {}

impl<T: MetadataText> std::fmt::Debug for MetadataKey<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MetadataKey({:?})", self.name)
    }
}

/// What names an entry: a declared key, whose values have its type, or any text, whose values are text.
pub trait Key {
    /// The type of its values: `str` for text.
    type Value: MetadataText + ?Sized;
    /// Its name, as it travels.
    fn name(&self) -> &str;
}

impl Key for &str {
    type Value = str;
    fn name(&self) -> &str {
        self
    }
}

impl Key for MetadataKey<String> {
    type Value = str;
    fn name(&self) -> &str {
        self.name
    }
}

/// A type whose values have a text form, the same in every language.
pub trait MetadataText: 'static {
    /// What reading gives.
    type Owned: Borrow<Self>;
    /// Its text.
    fn to_text(&self) -> Cow<'_, str>;
    /// The value with this text, if there is one.
    fn from_text(text: &str) -> Option<Self::Owned>;
}

impl MetadataText for str {
    type Owned = String;
    fn to_text(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
    fn from_text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }
}

impl MetadataText for String {
    type Owned = String;
    fn to_text(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
    fn from_text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }
}

macro_rules! text {
    ($($ty:ty: |$value:ident| $to:expr, |$text:ident| $from:expr;)+) => {$(
        impl Key for MetadataKey<$ty> {
            type Value = $ty;
            fn name(&self) -> &str {
                self.name
            }
        }

        impl MetadataText for $ty {
            type Owned = $ty;
            fn to_text(&self) -> Cow<'_, str> {
                let $value = self;
                $to.into()
            }
            fn from_text($text: &str) -> Option<$ty> {
                $from
            }
        }
    )+};
}

macro_rules! displayed {
    ($($ty:ty),+) => {
        text! { $($ty: |value| value.to_string(), |text| text.parse().ok();)+ }
    };
}

// Numbers in decimal (floats in the shortest form that reads back the same), `true` and `false`, UUIDs hyphenated.
displayed!(bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, uuid::Uuid);

text! {
    // Times as their microseconds.
    Timestamp: |value| value.as_micros().to_string(), |text| text.parse().ok().map(Timestamp::from_micros);
    SignedDuration: |value| value.as_micros().to_string(), |text| text.parse().ok().map(SignedDuration::from_micros);
    SpotId: |value| value.as_str(), |text| SpotId::new(text).ok();
    ActorId: |value| value.as_str(), |text| ActorId::new(text).ok();
}
