//! How identities and references are written and read with serde, so that an application keeps them where it likes: each as its
//! text, in every format.
//!
//! What is read is checked as if it came from anybody. The wire has its own form, and must not know this one.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    ActorId, ActorType, ChannelName, MeshName, ObjectGeneration, PacketName, Rid, SpotId, SpotType, TimerName, Topic,
};

macro_rules! as_text {
    ($($name:ident)*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(from)?).map_err(D::Error::custom)
            }
        }
    )*};
}

as_text!(ActorId ActorType ChannelName MeshName PacketName SpotId SpotType TimerName Topic);

/// A decimal text: many readers of JSON round numbers beyond 2^53.
impl Serialize for ObjectGeneration {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.get())
    }
}

impl<'de> Deserialize<'de> for ObjectGeneration {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        // Only as it is written: a sign or a zero before it would make two texts of one generation.
        let number = text.parse().ok().filter(|number: &u64| number.to_string() == text);
        number.and_then(Self::new).ok_or_else(|| {
            D::Error::custom(format!(
                "a generation is a decimal text of 1 to 9223372036854775807, and {text:?} is none"
            ))
        })
    }
}

/// Its text: what is no printable ASCII is escaped as in a byte string of Rust, and so is a backslash or a quotation mark.
impl Serialize for Rid {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rid {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let rid = unescaped(&text).map(Self::new).transpose().map_err(D::Error::custom)?;
        rid.filter(|rid| rid.to_string() == text).ok_or_else(|| {
            D::Error::custom(format!(
                "a RID is escaped as a byte string of Rust is, and {text:?} is not"
            ))
        })
    }
}

/// The bytes of an escaped text.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut all = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        all.push(match byte {
            b'\\' => match bytes.next()? {
                b't' => b'\t',
                b'r' => b'\r',
                b'n' => b'\n',
                b'x' => {
                    let mut digit = || char::from(bytes.next()?).to_digit(16);
                    u8::try_from(digit()? << 4 | digit()?).ok()?
                }
                escaped => escaped,
            },
            byte => byte,
        });
    }
    Some(all)
}
