//! Values of a message with every type, from a seed: the same in every language. `generated/python/tests/values.py` draws the
//! same numbers in the same order, and every other language must.

use std::collections::BTreeMap;

use zlink_generated::test_common::{Circle, Currency, Money, Point, Shape};
use zlink_generated::test_every_type::{All, Event, Kind, Mixed, Small, Vec2};
use zlink_runtime::id::{ActorId, ActorRef, MeshName, ObjectGeneration, Rid, SpotId, SpotRef};
use zlink_runtime::message::codec::Uuid;
use zlink_runtime::message::time::{SignedDuration, Timestamp};

const LETTERS: [&str; 8] = ["a", "ß", "€", "😀", "\"", "\\", " ", "0"];

/// The value of a seed.
pub(crate) fn value(seed: u64) -> All {
    Draw(seed).all(0)
}

/// A sequence of numbers from a seed: splitmix64.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = self.0;
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, count: u64) -> usize {
        usize::try_from(self.next() % count).expect("a small number")
    }

    fn unsigned(&mut self, bits: u32) -> u64 {
        let most = u64::MAX >> (64 - bits);
        match self.below(4) {
            0 => 0,
            1 => most,
            _ => self.next() & most,
        }
    }

    /// Sign-extended to 64 bits.
    fn signed(&mut self, bits: u32) -> i64 {
        let unused = 64 - bits;
        match self.below(4) {
            0 => 0,
            1 => i64::MAX >> unused,
            2 => i64::MIN >> unused,
            _ => (self.next() << unused).cast_signed() >> unused,
        }
    }

    fn small_signed<T: TryFrom<i64, Error: std::fmt::Debug>>(&mut self, bits: u32) -> T {
        self.signed(bits).try_into().expect("it has so many bits")
    }

    fn small_unsigned<T: TryFrom<u64, Error: std::fmt::Debug>>(&mut self, bits: u32) -> T {
        self.unsigned(bits).try_into().expect("it has so many bits")
    }

    fn real(&mut self) -> f32 {
        (f32::from(u16::try_from(self.below(2001)).expect("a small number")) - 1000.0) / 8.0
    }

    fn flag(&mut self) -> bool {
        self.below(2) == 1
    }

    fn text(&mut self) -> String {
        (0..self.below(5)).map(|_| LETTERS[self.below(8)]).collect()
    }

    fn blob(&mut self) -> Vec<u8> {
        (0..self.below(5)).map(|_| self.next().to_le_bytes()[0]).collect()
    }

    fn uuid(&mut self) -> Uuid {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.next().to_le_bytes());
        bytes[8..].copy_from_slice(&self.next().to_le_bytes());
        Uuid::from_bytes(bytes)
    }

    fn timestamp(&mut self) -> Timestamp {
        Timestamp::from_micros(self.signed(64))
    }

    fn duration(&mut self) -> SignedDuration {
        SignedDuration::from_micros(self.signed(64))
    }

    fn identity(&mut self) -> String {
        format!("i{}", self.text())
    }

    fn spot_id(&mut self) -> SpotId {
        SpotId::new(self.identity()).expect("a short text")
    }

    fn actor_id(&mut self) -> ActorId {
        ActorId::new(self.identity()).expect("a short text")
    }

    /// What follows the id of a reference.
    fn place(&mut self) -> (ObjectGeneration, MeshName, Rid) {
        let generation = 1 + self.next() % ((1 << 63) - 1);
        let mesh = format!("m{}", self.text());
        let mut rid = vec![1];
        rid.extend(self.blob());
        (
            ObjectGeneration::new(generation).expect("within its bounds"),
            MeshName::new(mesh).expect("a short text"),
            Rid::new(rid).expect("a few bytes"),
        )
    }

    fn spot_ref(&mut self) -> SpotRef {
        let id = self.spot_id();
        let (generation, mesh, node) = self.place();
        SpotRef {
            id,
            generation,
            mesh,
            node,
        }
    }

    fn actor_ref(&mut self) -> ActorRef {
        let id = self.actor_id();
        let (generation, mesh, node) = self.place();
        ActorRef {
            id,
            generation,
            mesh,
            node,
        }
    }

    fn kind(&mut self) -> Kind {
        Kind::from_wire([0, 1, 2, 9, 255][self.below(5)])
    }

    fn currency(&mut self) -> Currency {
        Currency::from_wire([0, 978, 840, 7][self.below(4)])
    }

    fn vec2(&mut self) -> Vec2 {
        Vec2 {
            x: self.real(),
            y: self.real(),
        }
    }

    fn point(&mut self) -> Point {
        Point {
            x: self.small_signed(32),
            y: self.small_signed(32),
        }
    }

    fn mixed(&mut self) -> Mixed {
        Mixed {
            flag: self.flag(),
            number: self.real().into(),
            kind: self.kind(),
            currency: self.currency(),
            id: self.uuid(),
            at: self.timestamp(),
            lasts: self.duration(),
            nested: self.vec2(),
            point: self.point(),
            tail: self.small_unsigned(8),
        }
    }

    fn small(&mut self) -> Small {
        Small { text: self.text() }
    }

    fn money(&mut self) -> Money {
        Money {
            cents: self.signed(64),
            currency: self.currency(),
        }
    }

    fn event(&mut self, depth: u32) -> Event {
        match self.below(3) {
            0 => Event::Money(self.money()),
            1 if depth < 2 => Event::All(self.all(depth + 1)),
            _ => Event::Small(self.small()),
        }
    }

    fn circle(&mut self) -> Circle {
        Circle {
            centre: self.point(),
            radius: self.real().into(),
        }
    }

    fn some<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| make(self))
    }

    fn many<T>(&mut self, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(3)).map(|_| make(self)).collect()
    }

    fn map<T>(&mut self, mut make: impl FnMut(&mut Self) -> T) -> BTreeMap<String, T> {
        (0..self.below(3))
            .map(|index| (format!("k{index}"), make(self)))
            .collect()
    }

    /// Fields are drawn in the order of their ids.
    fn all(&mut self, depth: u32) -> All {
        All {
            a_bool: self.flag(),
            an_i8: self.small_signed(8),
            an_i16: self.small_signed(16),
            an_i32: self.small_signed(32),
            an_i64: self.signed(64),
            a_u8: self.small_unsigned(8),
            a_u16: self.small_unsigned(16),
            a_u32: self.small_unsigned(32),
            a_u64: self.unsigned(64),
            an_f32: self.real(),
            an_f64: self.real().into(),
            a_string: self.text(),
            some_bytes: self.blob(),
            a_uuid: self.uuid(),
            a_timestamp: self.timestamp(),
            a_duration: self.duration(),
            a_spot_id: self.some(Self::spot_id),
            an_actor_id: self.some(Self::actor_id),
            a_spot_ref: self.some(Self::spot_ref),
            an_actor_ref: self.some(Self::actor_ref),
            an_enum: self.kind(),
            a_struct: self.mixed(),
            a_union: self.some(|draw| Box::new(draw.event(depth))),
            a_message: self.some(Self::small),
            required_string: self.text(),
            required_message: self.small(),
            required_union: Shape::Circle(self.circle()),
            bool_list: self.many(Self::flag),
            number_list: self.many(|draw| draw.small_unsigned(16)),
            string_list: self.many(Self::text),
            bytes_list: self.many(Self::blob),
            uuid_list: self.many(Self::uuid),
            timestamp_list: self.many(Self::timestamp),
            enum_list: self.many(Self::kind),
            struct_list: self.many(Self::vec2),
            union_list: self.many(|draw| draw.event(depth)),
            message_list: if depth < 1 {
                self.many(|draw| draw.all(depth + 1))
            } else {
                Vec::new()
            },
            spot_id_list: self.many(Self::spot_id),
            actor_ref_list: self.many(Self::actor_ref),
            maybe_bool: self.some(Self::flag),
            maybe_number: self.some(|draw| draw.signed(64)),
            maybe_float: self.some(Self::real),
            maybe_enum: self.some(Self::kind),
            maybe_uuid: self.some(Self::uuid),
            maybe_timestamp: self.some(Self::timestamp),
            number_map: self.map(|draw| draw.small_unsigned(32)),
            string_map: self.map(Self::text),
            enum_map: self.map(Self::kind),
            struct_map: self.map(Self::vec2),
            union_map: self.map(|draw| draw.event(depth)),
            message_map: self.map(Self::money),
        }
    }
}
