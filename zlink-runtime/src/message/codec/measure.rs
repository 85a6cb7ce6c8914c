//! What a message would be as bytes, without the bytes: whether it can be encoded, and at most how long that were.
//!
//! A message that stays in its process is handed on as the value it is, where this says that encoding and decoding it would
//! change nothing and break no limit. It has a function for each of the writer's, of the same name, so that generated code
//! says each field once. It never says what is wrong: whoever is told `None` encodes, and hears it there.

use std::collections::BTreeMap;

use super::field::{BOXED, Field, KEY, MEMBER, VALUE};
use super::inline::{ByteArray, Inline};
use super::value::{Message, Value};
use super::{MAX_DEPTH, MAX_TABLES};

/// What stands before and around a vector or a string: its length, an end, and what aligns it.
const VECTOR: usize = 16;
/// The way to a vtable, the two sizes that stand in it, and what aligns both.
const TABLE: usize = 20;
/// The way to something that stands elsewhere, and what aligns it.
const OFFSET: usize = 8;

/// The most bytes that `message` has, encoded. `None` where it may not be encoded, or would not come out as it went in.
#[inline]
pub(crate) fn measure<M: Message>(message: &M) -> Option<usize> {
    let mut measure = Measure {
        bytes: OFFSET,
        tables: 0,
        depth: 0,
    };
    measure.nested(message, M::measure)?;
    Some(measure.bytes)
}

/// One message that is being measured.
#[derive(Debug)]
pub struct Measure {
    bytes: usize,
    tables: u32,
    depth: u32,
}

impl Measure {
    #[inline]
    fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    #[inline]
    fn nested<T>(&mut self, value: T, measure: impl FnOnce(T, &mut Self) -> Option<()>) -> Option<()> {
        if self.depth > MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        measure(value, self)?;
        self.depth -= 1;
        Some(())
    }

    /// Bytes or items within what the field allows; `false` where they are left out.
    #[inline]
    fn stands(&mut self, field: Field, count: usize) -> Option<bool> {
        if count == 0 && !field.required {
            return Some(false);
        }
        field.exceeded(count).is_none().then_some(true)
    }

    /// A string or bytes that stand in a list or a map.
    #[inline]
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.add(VECTOR.saturating_add(bytes.len()));
    }

    /// A string field.
    #[inline]
    pub fn string(&mut self, field: Field, text: &str) -> Option<()> {
        self.bytes(field, text.as_bytes())
    }

    /// A bytes field.
    #[inline]
    pub fn bytes(&mut self, field: Field, bytes: &[u8]) -> Option<()> {
        if self.stands(field, bytes.len())? {
            self.add(OFFSET);
            self.raw(bytes);
        }
        Some(())
    }

    /// A list of scalars, enums or structs.
    #[inline]
    pub fn inlines<T: Inline>(&mut self, field: Field, items: &[T]) -> Option<()> {
        if self.stands(field, items.len())? {
            self.add(OFFSET + VECTOR);
            self.add(items.len().saturating_mul(T::Bytes::LEN));
        }
        (T::PLAIN || items.iter().all(Inline::is_canonical)).then_some(())
    }

    /// A list of anything else.
    #[inline]
    pub fn list<T: Value>(&mut self, field: Field, items: &[T]) -> Option<()> {
        self.vector(field, items, T::measure_item)
    }

    /// A map of scalars, enums or structs.
    #[inline]
    pub fn inline_map<T: Inline>(&mut self, field: Field, map: &BTreeMap<String, T>) -> Option<()> {
        self.vector(field, map, |(key, value), measure| {
            measure.string(KEY, key)?;
            measure.inline(VALUE, value)?;
            measure.table(&[0, 1])
        })
    }

    /// A map of anything else.
    #[inline]
    pub fn map<T: Value>(&mut self, field: Field, map: &BTreeMap<String, T>) -> Option<()> {
        self.vector(field, map, |(key, value), measure| {
            measure.string(KEY, key)?;
            measure.required(VALUE, value)?;
            measure.table(&[0, 1])
        })
    }

    #[inline]
    fn vector<T>(
        &mut self,
        field: Field,
        items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
        mut measure: impl FnMut(T, &mut Self) -> Option<()>,
    ) -> Option<()> {
        let mut items = items.into_iter();
        if self.stands(field, items.len())? {
            self.add(OFFSET + VECTOR);
            self.add(items.len().saturating_mul(4));
        }
        items.try_for_each(|item| self.nested(item, &mut measure))
    }

    /// A message, union, identity or reference that may be absent.
    #[inline]
    pub fn value<T: Value>(&mut self, field: Field, value: &Option<T>) -> Option<()> {
        match value {
            Some(value) => self.required(field, value),
            None => Some(()),
        }
    }

    /// A message, union, identity or reference that must be there.
    #[inline]
    pub fn required<T: Value>(&mut self, _: Field, value: &T) -> Option<()> {
        self.add(OFFSET);
        self.nested(value, T::measure)
    }

    /// A scalar, enum or struct.
    #[inline]
    pub fn inline<T: Inline>(&mut self, _: Field, value: &T) -> Option<()> {
        self.add(T::Bytes::LEN + T::ALIGN);
        value.is_canonical().then_some(())
    }

    /// A scalar or enum that may be absent.
    #[inline]
    pub fn optional<T: Inline>(&mut self, field: Field, value: &Option<T>) -> Option<()> {
        match value {
            Some(value) => self.inline(field, value),
            None => Some(()),
        }
    }

    /// A union: the table around it, and its member.
    #[inline]
    pub fn union<T: Value>(&mut self, tag: u8, member: &T) -> Option<()> {
        self.required(MEMBER, member)?;
        self.inline(MEMBER, &tag)?;
        self.table(&[0, 1])
    }

    /// The table around bytes in a list.
    #[inline]
    pub(super) fn boxed_bytes(&mut self, bytes: &[u8]) -> Option<()> {
        self.bytes(BOXED, bytes)?;
        self.table(&[0])
    }

    /// A table with fields of those numbers.
    #[inline]
    pub fn table(&mut self, ids: &[u16]) -> Option<()> {
        self.tables += 1;
        if self.depth > MAX_DEPTH || self.tables > MAX_TABLES {
            return None;
        }
        let slots = ids.iter().max().map_or(0, |last| usize::from(*last) + 1);
        self.add(TABLE + 2 * slots);
        Some(())
    }
}
