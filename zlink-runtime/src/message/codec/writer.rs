//! Values into FlatBuffers, over the official builder: children first, then the table that names them.
//!
//! It keeps what the builder only asserts in debug builds: nesting, required fields and the size limit. It must not
//! know what the bytes are for.

use std::collections::BTreeMap;

use flatbuffers::{FlatBufferBuilder, TableUnfinishedWIPOffset, UnionWIPOffset, WIPOffset};

use super::error::{EncodeError, EncodeProblem};
use super::field::{BOXED, Field, INLINE_VALUE, KEY, MEMBER, TAG, VALUE};
use super::inline::Inline;
use super::value::Value;
use super::{MAX_DEPTH, MAX_TABLES};
use crate::limit::PAYLOAD_BYTES;

/// A value that was written, to be named by the table around it.
#[derive(Clone, Copy)]
pub struct Offset(WIPOffset<UnionWIPOffset>);

impl Offset {
    #[inline]
    fn new(at: u32) -> Self {
        Self(WIPOffset::new(at))
    }
}

/// One message under construction.
#[derive(Default)]
pub struct Writer {
    builder: FlatBufferBuilder<'static>,
    /// Items of the lists under construction, the innermost last.
    items: Vec<WIPOffset<UnionWIPOffset>>,
    depth: u32,
    tables: u32,
}

impl Writer {
    /// Writes `root` and everything in it.
    pub(super) fn message<V: Value>(&mut self, root: &V) -> Result<&[u8], EncodeError> {
        let root = self.nested(root, V::write)?;
        self.builder.finish_minimal(root.0);
        let bytes = self.builder.finished_data();
        if bytes.len() > PAYLOAD_BYTES {
            return Err(EncodeError::new(EncodeProblem::TooLarge));
        }
        Ok(bytes)
    }

    /// Makes it ready for the next message, after one that was written whole.
    pub(super) fn reset(&mut self) {
        self.builder.reset();
        self.tables = 0;
    }

    #[inline]
    fn nested<T>(
        &mut self,
        value: T,
        write: impl FnOnce(T, &mut Self) -> Result<Offset, EncodeError>,
    ) -> Result<Offset, EncodeError> {
        // One more than tables may be deep, since leaves stand one below the innermost table.
        if self.depth > MAX_DEPTH {
            return Err(EncodeError::new(EncodeProblem::TooDeep));
        }
        self.depth += 1;
        let offset = write(value, self)?;
        self.depth -= 1;
        Ok(offset)
    }

    /// Refuses what would grow the builder beyond what a message can have: it would panic.
    #[inline]
    fn room(&self, more: usize) -> Result<(), EncodeError> {
        match self.builder.unfinished_data().len().saturating_add(more) > PAYLOAD_BYTES {
            true => Err(EncodeError::new(EncodeProblem::TooLarge)),
            false => Ok(()),
        }
    }

    #[inline]
    fn room_for(&self, field: Field, actual: usize, bytes: usize) -> Result<(), EncodeError> {
        if let Some(max) = field.exceeded(actual) {
            return Err(EncodeError::new(EncodeProblem::TooLong { actual, max }).inside(field.name));
        }
        self.room(bytes).map_err(|error| error.inside(field.name))
    }

    /// A string or bytes that stand in a list or a map.
    #[inline]
    pub(super) fn raw(&mut self, bytes: &[u8]) -> Result<Offset, EncodeError> {
        self.room(bytes.len())?;
        Ok(Offset::new(self.builder.create_byte_string(bytes).value()))
    }

    /// A string field.
    #[inline]
    pub fn string(&mut self, field: Field, text: &str) -> Result<Child, EncodeError> {
        self.bytes(field, text.as_bytes())
    }

    /// A bytes field.
    #[inline]
    pub fn bytes(&mut self, field: Field, bytes: &[u8]) -> Result<Child, EncodeError> {
        if bytes.is_empty() && !field.required {
            return Ok(Child::none());
        }
        self.room_for(field, bytes.len(), bytes.len())?;
        Ok(Child::new(
            field,
            Offset::new(self.builder.create_byte_string(bytes).value()),
        ))
    }

    /// A list of scalars, enums or structs.
    #[inline]
    pub fn inlines<T: Inline>(&mut self, field: Field, items: &[T]) -> Result<Child, EncodeError> {
        if items.is_empty() && !field.required {
            return Ok(Child::none());
        }
        self.room_for(field, items.len(), size_of_val(items))?;
        Ok(Child::new(field, Offset::new(T::push_vector(items, &mut self.builder))))
    }

    /// A list of anything else.
    #[inline]
    pub fn list<V: Value>(&mut self, field: Field, items: &[V]) -> Result<Child, EncodeError> {
        self.vector(field, items, V::write_item)
    }

    /// A map of scalars, enums or structs.
    #[inline]
    pub fn inline_map<T: Inline>(&mut self, field: Field, map: &BTreeMap<String, T>) -> Result<Child, EncodeError> {
        self.vector(field, map, |(key, value), writer| {
            let key = writer.string(KEY, key)?;
            let mut entry = writer.table()?;
            key.put(&mut entry);
            Inlined::new(INLINE_VALUE, *value).put(&mut entry);
            Ok(entry.end())
        })
    }

    /// A map of anything else.
    #[inline]
    pub fn map<V: Value>(&mut self, field: Field, map: &BTreeMap<String, V>) -> Result<Child, EncodeError> {
        self.vector(field, map, |(key, value), writer| {
            let key = writer.string(KEY, key)?;
            let value = writer.required(VALUE, value)?;
            let mut entry = writer.table()?;
            key.put(&mut entry);
            value.put(&mut entry);
            Ok(entry.end())
        })
    }

    #[inline]
    fn vector<T>(
        &mut self,
        field: Field,
        items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
        mut write: impl FnMut(T, &mut Self) -> Result<Offset, EncodeError>,
    ) -> Result<Child, EncodeError> {
        let items = items.into_iter();
        let count = items.len();
        if count == 0 && !field.required {
            return Ok(Child::none());
        }
        self.room_for(field, count, count.saturating_mul(4))?;
        let first = self.items.len();
        for (index, item) in items.enumerate() {
            let item = self
                .nested(item, &mut write)
                .map_err(|error| error.at_item(index).inside(field.name))?;
            self.items.push(item.0);
        }
        self.room(count.saturating_mul(4))?;
        let vector = self.builder.create_vector(self.items.get(first..).unwrap_or_default());
        self.items.truncate(first);
        Ok(Child::new(field, Offset::new(vector.value())))
    }

    /// A message, union, identity or reference that may be absent.
    #[inline]
    pub fn value<V: Value>(&mut self, field: Field, value: &Option<V>) -> Result<Child, EncodeError> {
        match value {
            Some(value) => self.required(field, value),
            None => Ok(Child::none()),
        }
    }

    /// A message, union, identity or reference that must be there.
    #[inline]
    pub fn required<V: Value>(&mut self, field: Field, value: &V) -> Result<Child, EncodeError> {
        match self.nested(value, V::write) {
            Ok(offset) => Ok(Child::new(field, offset)),
            Err(error) => Err(error.inside(field.name)),
        }
    }

    /// A scalar, enum or struct: nothing stands before its table.
    #[inline]
    pub fn inline<T: Inline>(&mut self, field: Field, value: &T) -> Result<Inlined<T>, EncodeError> {
        Ok(Inlined::new(field, *value))
    }

    /// A scalar or enum that may be absent: nothing stands before its table.
    #[inline]
    pub fn optional<T: Inline>(&mut self, field: Field, value: &Option<T>) -> Result<Maybe<T>, EncodeError> {
        Ok(Maybe {
            slot: field.slot(),
            value: *value,
        })
    }

    /// A union: the table around it, and its member.
    #[inline]
    pub fn union<V: Value>(&mut self, tag: u8, member: &V) -> Result<Offset, EncodeError> {
        let member = self.nested(member, V::write)?;
        let mut table = self.table()?;
        Child::new(MEMBER, member).put(&mut table);
        Inlined::new(TAG, tag).put(&mut table);
        Ok(table.end())
    }

    /// A union whose member is not known here.
    #[cold]
    pub fn unknown_union(&mut self, tag: u8) -> Result<Offset, EncodeError> {
        Err(EncodeError::new(EncodeProblem::UnknownTag { tag }))
    }

    /// The table around bytes in a list.
    #[inline]
    pub(super) fn boxed_bytes(&mut self, bytes: &[u8]) -> Result<Offset, EncodeError> {
        let bytes = self.bytes(BOXED, bytes)?;
        let mut table = self.table()?;
        bytes.put(&mut table);
        Ok(table.end())
    }

    /// Begins a table; everything it names has been written.
    #[inline]
    pub fn table(&mut self) -> Result<TableWriter<'_>, EncodeError> {
        if self.depth > MAX_DEPTH {
            return Err(EncodeError::new(EncodeProblem::TooDeep));
        }
        self.tables += 1;
        if self.tables > MAX_TABLES {
            return Err(EncodeError::new(EncodeProblem::TooManyTables));
        }
        self.room(0)?;
        let start = self.builder.start_table();
        Ok(TableWriter {
            builder: &mut self.builder,
            start,
        })
    }
}

/// A table under construction.
pub struct TableWriter<'w> {
    builder: &'w mut FlatBufferBuilder<'static>,
    start: WIPOffset<TableUnfinishedWIPOffset>,
}

impl TableWriter<'_> {
    /// Ends the table.
    #[inline]
    pub fn end(self) -> Offset {
        Offset::new(self.builder.end_table(self.start).value())
    }
}

/// What a field put before its table, or keeps until there is one.
pub trait Slot {
    /// Puts it into its slot.
    fn put(self, table: &mut TableWriter<'_>);
}

/// A field that stands behind an offset.
#[derive(Clone, Copy)]
pub struct Child {
    slot: u16,
    offset: Option<Offset>,
}

impl Child {
    #[inline]
    fn new(field: Field, offset: Offset) -> Self {
        Self {
            slot: field.slot(),
            offset: Some(offset),
        }
    }

    #[inline]
    const fn none() -> Self {
        Self { slot: 0, offset: None }
    }
}

impl Slot for Child {
    #[inline]
    fn put(self, table: &mut TableWriter<'_>) {
        if let Some(offset) = self.offset {
            table.builder.push_slot_always(self.slot, offset.0);
        }
    }
}

/// A scalar, enum or struct, left out where absence means the same.
#[derive(Clone, Copy)]
pub struct Inlined<T> {
    slot: u16,
    value: T,
}

impl<T> Inlined<T> {
    #[inline]
    fn new(field: Field, value: T) -> Self {
        Self {
            slot: field.slot(),
            value,
        }
    }
}

impl<T: Inline> Slot for Inlined<T> {
    #[inline]
    fn put(self, table: &mut TableWriter<'_>) {
        if !self.value.is_elided() {
            self.value.push_slot(self.slot, table.builder);
        }
    }
}

/// A scalar or enum that may be absent.
#[derive(Clone, Copy)]
pub struct Maybe<T> {
    slot: u16,
    value: Option<T>,
}

impl<T: Inline> Slot for Maybe<T> {
    #[inline]
    fn put(self, table: &mut TableWriter<'_>) {
        if let Some(value) = self.value {
            value.push_slot(self.slot, table.builder);
        }
    }
}
