//! What the records of hosts are called. The whole layout of keys stands here; no provider knows it.
//!
//! `lease/<owner>` · `node/<mesh>/<rid>` and `server/<channel>/<rid>` with their stamps `stamp/node/<mesh>` and
//! `stamp/server/<channel>`. Names are percent-encoded byte for byte, so no two of them ever meet in one key.
//!
//! `s:<length>:<id>` is the authority of a Spot, `a:<length>:<id>` that of an Actor, and of an owner: `r/<owner>/<that>` what
//! it has, `taken/<owner>/<that>` what was taken from it, `writer/<owner>` its last batch. `capacity/<rid>` counts the Spots
//! of a node, `capacity/<rid>/a` its Actors, `capacity/<rid>/<kind>/<type>` those of one type.
//! `terminal/<rid>/<lifecycle>/<operation>` is how a creation ended.

use std::fmt;

use super::Key;
use crate::error::ArgumentError;
use crate::id::{ObjectId, ObjectKind, Rid, Space, SpotType};

/// What the key of every lease begins with.
pub(crate) const LEASES: &str = "lease/";
/// What the key begins with that names the last batch of an owner.
pub(super) const WRITERS: &str = "writer/";

/// One run of one host, as the store knows it: 16 random bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct OwnerId([u8; 16]);

impl OwnerId {
    pub(crate) const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The owner that a value names, if it has the right length.
    pub(crate) fn from_wire(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    pub(crate) fn to_wire(self) -> Vec<u8> {
        self.0.to_vec()
    }

    /// Where its lease is.
    pub(crate) fn lease_key(self) -> Key {
        // 38 bytes: always a key.
        key(format!("{LEASES}{self}"))
    }

    /// The owner whose lease is there, if one is.
    pub(crate) fn of_lease(key: &Key) -> Option<Self> {
        // No other spelling of it is its key.
        Self::after(LEASES, key).filter(|owner| owner.lease_key() == *key)
    }

    /// The owner whose last batch is named there, if one is.
    pub(super) fn of_writer(key: &Key) -> Option<Self> {
        Self::after(WRITERS, key).filter(|owner| owner.writer_key() == *key)
    }

    fn after(prefix: &str, key: &Key) -> Option<Self> {
        let digits = key.as_str().strip_prefix(prefix)?.as_bytes();
        let mut bytes = [0; 16];
        if digits.len() != 2 * bytes.len() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// Names its last batch over authority: whoever reads it knows which of several attempts was applied.
    pub(super) fn writer_key(self) -> Key {
        key(format!("{WRITERS}{self}"))
    }

    /// What every key in the index of what it owns begins with.
    pub(super) fn index_prefix(self) -> String {
        format!("r/{self}/")
    }

    /// The entry of `authority` in that index.
    pub(super) fn index_key(self, authority: &Key) -> Key {
        let mut digits = [0; uuid::fmt::Simple::LENGTH];
        let digits = uuid::Uuid::from_bytes(self.0).simple().encode_lower(&mut digits);
        key(["r/", digits, "/", authority.as_str()].concat())
    }

    /// What every key of what was taken from it begins with.
    pub(super) fn taken_prefix(self) -> String {
        format!("taken/{self}/")
    }

    /// Says that `authority` was taken from it.
    pub(super) fn taken_key(self, authority: &Key) -> Key {
        key(format!("taken/{self}/{authority}"))
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; uuid::fmt::Simple::LENGTH];
        f.write_str(uuid::Uuid::from_bytes(self.0).simple().encode_lower(&mut digits))
    }
}

impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnerId({self})")
    }
}

/// A list of records that is read as a whole: the nodes of a mesh, the servers of a channel, or the publishers of a fanout.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ListName(String);

impl ListName {
    /// The nodes of a mesh.
    pub(crate) fn nodes(mesh: &str) -> Self {
        Self(format!("node/{}", encoded(mesh.as_bytes())))
    }

    /// The servers of a ClientServer channel.
    pub(crate) fn servers(channel: &str) -> Self {
        Self(format!("server/{}", encoded(channel.as_bytes())))
    }

    /// The publishers of a fanout.
    pub(crate) fn publishers(channel: &str) -> Self {
        Self(format!("publisher/{}", encoded(channel.as_bytes())))
    }

    /// What every key of the list begins with.
    pub(super) fn prefix(&self) -> String {
        format!("{}/", self.0)
    }

    /// Every batch that changes the list writes this key: while its revision stands, so does the list.
    pub(crate) fn stamp(&self) -> Key {
        // At most 6 + 10 + 3 × 255 bytes.
        key(format!("stamp/{}", self.0))
    }

    /// The record of one member.
    ///
    /// # Errors
    /// Where the names are too long for a key, which takes a RID of more than about 80 bytes that are no plain text.
    pub(crate) fn record(&self, rid: &[u8]) -> Result<Key, ArgumentError> {
        Key::new(format!("{}/{}", self.0, encoded(rid)))
    }
}

/// What the keys of all objects of a space begin with: an ID of one never meets an ID of the other.
pub(super) const fn space_prefix(space: Space) -> &'static str {
    match space {
        Space::Spots => "s:",
        Space::Actors => "a:",
    }
}

/// The authority of an object: at most 2 + 4 + 3 × 255 bytes.
pub(crate) fn object_key(id: &ObjectId) -> Key {
    let prefix = space_prefix(id.space());
    let id = id.as_str();
    let mut text = String::with_capacity(prefix.len() + "255:".len() + id.len());
    text.push_str(prefix);
    // At most 255.
    for unit in [100, 10, 1].into_iter().filter(|unit| id.len() >= *unit) {
        text.push(char::from(b"0123456789"[id.len() / unit % 10]));
    }
    text.push(':');
    encode(&mut text, id.as_bytes());
    key(text)
}

/// How many objects of that space the node has.
///
/// # Errors
/// Where the RID is so long that there is no key.
pub(super) fn capacity_key(node: &Rid, space: Space) -> Result<Key, ArgumentError> {
    let node = encoded(node.as_bytes());
    Key::new(match space {
        Space::Spots => format!("capacity/{node}"),
        Space::Actors => format!("capacity/{node}/a"),
    })
}

/// How many of them are of that type.
///
/// # Errors
/// Where RID and type are so long that there is no key.
pub(super) fn type_capacity_key(node: &Rid, kind: ObjectKind, of_type: &SpotType) -> Result<Key, ArgumentError> {
    let kind = match kind {
        ObjectKind::Entry => 'e',
        ObjectKind::User => 'u',
        ObjectKind::Instance => 'i',
        ObjectKind::Actor => 'a',
    };
    let (node, of_type) = (encoded(node.as_bytes()), encoded(of_type.as_str().as_bytes()));
    Key::new(format!("capacity/{node}/{kind}/{of_type}"))
}

/// How an operation ended that was to create something: at most 9 + 765 + 1 + 16 + 1 + 32 bytes.
pub(super) fn terminal_key(source: &Rid, lifecycle: u64, operation: [u8; 16]) -> Key {
    let operation = u128::from_be_bytes(operation);
    key(format!(
        "terminal/{}/{lifecycle:016x}/{operation:032x}",
        encoded(source.as_bytes())
    ))
}

fn key(text: String) -> Key {
    Key::new(&text).unwrap_or_else(|_| unreachable!("{text:?} is a key by construction"))
}

/// Letters, digits, `-`, `.`, `_` and `~` stay; every other byte becomes `%` and two uppercase hexadecimal digits.
fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    encode(&mut text, bytes);
    text
}

fn encode(text: &mut String, bytes: &[u8]) {
    let stays = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    // Most names are one such run.
    for run in bytes.chunk_by(|one, next| stays(one) && stays(next)) {
        match (run, std::str::from_utf8(run)) {
            ([first, ..], Ok(run)) if stays(first) => text.push_str(run),
            _ => run.iter().for_each(|byte| {
                text.push('%');
                text.extend([byte >> 4, byte & 15].map(|digit| char::from(b"0123456789ABCDEF"[usize::from(digit)])));
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_of_an_object_says_how_long_its_id_is() {
        for len in [1, 9, 10, 99, 100, 109, 255] {
            for (space, letter) in [(Space::Spots, 's'), (Space::Actors, 'a')] {
                let id = space.id("a".repeat(len)).unwrap();
                assert_eq!(object_key(&id).as_str(), format!("{letter}:{len}:{id}"));
            }
        }
        let owner = OwnerId::new([0x0b; 16]);
        let of = object_key(&Space::Spots.id("a b").unwrap());
        assert_eq!(owner.index_key(&of).as_str(), format!("r/{owner}/s:3:a%20b"));
    }

    #[test]
    fn the_longest_names_have_keys() {
        let long = "\u{1}".repeat(255);
        let rid = format!("{}-{}", "x".repeat(64), uuid::Uuid::nil());
        for list in [
            ListName::nodes(&long),
            ListName::servers(&long),
            ListName::publishers(&long),
        ] {
            assert!(list.stamp().as_str().len() <= 1024);
            assert!(list.record(rid.as_bytes()).is_ok());
        }
        assert_eq!(
            ListName::nodes("a b/ü").record(b"\xff~").unwrap().as_str(),
            "node/a%20b%2F%C3%BC/%FF~"
        );
        assert_eq!(OwnerId::new([0xa0; 16]).lease_key().as_str().len(), 38);
    }

    #[test]
    fn the_owner_of_a_lease_is_read_from_its_key_alone() {
        let owner = OwnerId::new([0xa0; 16]);
        let of = |key: &str| OwnerId::of_lease(&Key::new(key).unwrap());
        let text = "a0".repeat(16);
        assert_eq!(OwnerId::of_lease(&owner.lease_key()), Some(owner));
        for other in [
            format!("lease/{}", text.to_uppercase()),
            format!("lease/{text}0"),
            format!("lease/+{}", &text[1..]),
            format!("node/{text}"),
            "lease/".to_owned(),
        ] {
            assert_eq!(of(&other), None, "{other}");
        }
    }

    proptest! {
        /// REQ: LS-011
        #[test]
        fn no_two_names_share_a_key(a in prop::collection::vec(any::<u8>(), 1..6), b in prop::collection::vec(any::<u8>(), 1..6)) {
            prop_assert_eq!(encoded(&a) == encoded(&b), a == b);
            prop_assert!(!encoded(&a).contains('/'));
            // Nor does a name that reads as another one's key.
            let spelled = encoded(&a);
            prop_assert_eq!(encoded(spelled.as_bytes()) == spelled, spelled.as_bytes() == a);
        }
    }
}
