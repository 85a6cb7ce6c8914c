//! FlatBuffers into values, in one pass that checks what it reads, where it reads it.
//!
//! Nothing is trusted: every offset, length and count is proven against the bytes before it is used, every byte that
//! is visited is charged, and no allocation is larger than the bytes that stand for it allow. It must not know what
//! the bytes are for.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::error::{DecodeError, DecodeProblem};
use super::field::{BOXED, Field, INLINE_VALUE, KEY, MEMBER, TAG, VALUE};
use super::inline::{ByteArray, Inline};
use super::value::Value;
use super::{MAX_DEPTH, MAX_TABLES};

/// How often a message's bytes may be visited, on average. What is written here visits each at most once; other
/// writers share strings.
pub(super) const VISITS_PER_BYTE: usize = 4;
/// What may be visited beyond that, in bytes.
const VISITS_MORE: usize = 1024;
/// Items are reserved in advance up to this many bytes; a longer list grows as its items prove to be there.
const RESERVE_BYTES: usize = 64 << 10;

/// One message that is being read.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    /// Bytes that may still be visited.
    budget: usize,
    /// Tables that may still be visited.
    tables: u32,
}

#[cold]
fn fault(problem: DecodeProblem) -> DecodeError {
    DecodeError::new(problem)
}

impl<'a> Reader<'a> {
    /// Reads the message that `bytes` are.
    pub(super) fn message<V: Value>(bytes: &'a [u8]) -> Result<V, DecodeError> {
        let budget = bytes.len().saturating_mul(VISITS_PER_BYTE).saturating_add(VISITS_MORE);
        let mut reader = Reader {
            bytes,
            budget,
            tables: MAX_TABLES,
        };
        let pos = reader.u32_at(0)? as usize;
        V::read(At {
            reader: &mut reader,
            pos,
            depth: 0,
        })
    }

    #[inline]
    fn u32_at(&self, pos: usize) -> Result<u32, DecodeError> {
        match self.bytes.get(pos..).and_then(<[u8]>::first_chunk) {
            Some(bytes) => Ok(u32::from_le_bytes(*bytes)),
            None => Err(fault(DecodeProblem::OutOfBounds)),
        }
    }

    #[inline]
    fn charge(&mut self, bytes: usize) -> Result<(), DecodeError> {
        match self.budget.checked_sub(bytes) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err(fault(DecodeProblem::Inflated)),
        }
    }

    /// The bytes of the vector at `pos`, and its number of items.
    #[inline]
    fn vector(&mut self, pos: usize, item: usize, field: Option<Field>) -> Result<(&'a [u8], usize), DecodeError> {
        let count = self.u32_at(pos)? as usize;
        if let Some(max) = field.and_then(|field| field.exceeded(count)) {
            return Err(fault(DecodeProblem::TooLong { actual: count, max }));
        }
        let size = count.checked_mul(item);
        let bytes = size.and_then(|size| self.bytes.get(pos + 4..)?.get(..size));
        let Some(bytes) = bytes else {
            return Err(fault(DecodeProblem::OutOfBounds));
        };
        self.charge(bytes.len() + 4)?;
        Ok((bytes, count))
    }

    #[inline]
    fn string(&mut self, pos: usize, field: Option<Field>) -> Result<&'a str, DecodeError> {
        let (bytes, _) = self.vector(pos, 1, field)?;
        std::str::from_utf8(bytes).map_err(|_| fault(DecodeProblem::Utf8))
    }
}

/// The place of a value behind an offset.
#[derive(Debug)]
pub struct At<'r, 'a> {
    reader: &'r mut Reader<'a>,
    pos: usize,
    /// Tables around it.
    depth: u32,
}

impl<'r, 'a> At<'r, 'a> {
    /// The table that stands here.
    #[inline]
    pub fn table(self) -> Result<Table<'r, 'a>, DecodeError> {
        let At { reader, pos, depth } = self;
        if depth >= MAX_DEPTH {
            return Err(fault(DecodeProblem::TooDeep));
        }
        reader.tables = match reader.tables.checked_sub(1) {
            Some(left) => left,
            None => return Err(fault(DecodeProblem::TooManyTables)),
        };
        let back = i64::from(reader.u32_at(pos)?.cast_signed());
        let vtable = i64::try_from(pos).ok().and_then(|pos| usize::try_from(pos - back).ok());
        let vtable = vtable.and_then(|at| reader.bytes.get(at..));
        let Some((vtable, Some(&[v0, v1, t0, t1]))) = vtable.map(|vtable| (vtable, vtable.first_chunk::<4>())) else {
            return Err(fault(DecodeProblem::Vtable));
        };
        let vtable = vtable.get(..usize::from(u16::from_le_bytes([v0, v1])));
        let inline = reader
            .bytes
            .get(pos..)
            .and_then(|rest| rest.get(..usize::from(u16::from_le_bytes([t0, t1]))));
        match (vtable, inline) {
            (Some(vtable), Some(inline)) if vtable.len() >= 4 && inline.len() >= 4 => {
                reader.charge(inline.len())?;
                Ok(Table {
                    reader,
                    pos,
                    depth: depth + 1,
                    vtable,
                    inline,
                })
            }
            _ => Err(fault(DecodeProblem::Vtable)),
        }
    }

    /// The string that stands here.
    #[inline]
    pub fn string(self) -> Result<&'a str, DecodeError> {
        self.reader.string(self.pos, None)
    }

    /// The bytes that stand here.
    #[inline]
    pub fn bytes(self) -> Result<&'a [u8], DecodeError> {
        Ok(self.reader.vector(self.pos, 1, None)?.0)
    }

    /// The bytes in a table of their own that stands here.
    #[inline]
    pub(super) fn boxed_bytes(self) -> Result<Vec<u8>, DecodeError> {
        self.table()?.bytes(BOXED)
    }
}

/// A table that is being read.
#[derive(Debug)]
pub struct Table<'r, 'a> {
    reader: &'r mut Reader<'a>,
    pos: usize,
    depth: u32,
    vtable: &'a [u8],
    inline: &'a [u8],
}

impl<'a> Table<'_, 'a> {
    /// The inline bytes of a field, from its first on; `None` where it is absent.
    #[inline]
    fn slot(&self, field: Field) -> Result<Option<(usize, &'a [u8])>, DecodeError> {
        let at = match self
            .vtable
            .get(usize::from(field.slot())..)
            .and_then(<[u8]>::first_chunk)
        {
            Some(bytes) => usize::from(u16::from_le_bytes(*bytes)),
            None => 0,
        };
        match at {
            0 if field.required => Err(fault(DecodeProblem::Missing).inside(field.name)),
            0 => Ok(None),
            // The first four bytes are the way to the vtable.
            1..4 => Err(fault(DecodeProblem::OutOfBounds).inside(field.name)),
            _ => match self.inline.get(at..) {
                Some(bytes) => Ok(Some((at, bytes))),
                None => Err(fault(DecodeProblem::OutOfBounds).inside(field.name)),
            },
        }
    }

    /// The position that a field's offset leads to.
    #[inline]
    fn target(&self, field: Field) -> Result<Option<usize>, DecodeError> {
        let Some((at, bytes)) = self.slot(field)? else {
            return Ok(None);
        };
        match bytes.first_chunk() {
            Some(bytes) => Ok(Some(
                (self.pos + at).saturating_add(u32::from_le_bytes(*bytes) as usize),
            )),
            None => Err(fault(DecodeProblem::OutOfBounds).inside(field.name)),
        }
    }

    #[inline]
    fn at(&mut self, pos: usize) -> At<'_, 'a> {
        At {
            reader: &mut *self.reader,
            pos,
            depth: self.depth,
        }
    }

    /// A scalar or enum that may be absent.
    #[inline]
    pub fn optional<T: Inline>(&self, field: Field) -> Result<Option<T>, DecodeError> {
        match self.slot(field)? {
            Some((_, bytes)) => match T::Bytes::first(bytes) {
                Some(bytes) => Ok(Some(T::from_bytes(bytes))),
                None => Err(fault(DecodeProblem::OutOfBounds).inside(field.name)),
            },
            None => Ok(None),
        }
    }

    /// A scalar, enum or struct; its default where it is absent.
    #[inline]
    pub fn inline<T: Inline>(&self, field: Field) -> Result<T, DecodeError> {
        Ok(self.optional(field)?.unwrap_or_default())
    }

    /// A string; empty where it is absent.
    #[inline]
    pub fn string(&mut self, field: Field) -> Result<String, DecodeError> {
        match self.target(field)? {
            Some(pos) => match self.reader.string(pos, Some(field)) {
                Ok(text) => Ok(text.to_owned()),
                Err(error) => Err(error.inside(field.name)),
            },
            None => Ok(String::new()),
        }
    }

    /// Bytes; empty where they are absent.
    #[inline]
    pub fn bytes(&mut self, field: Field) -> Result<Vec<u8>, DecodeError> {
        match self.target(field)? {
            Some(pos) => match self.reader.vector(pos, 1, Some(field)) {
                Ok((bytes, _)) => Ok(bytes.to_vec()),
                Err(error) => Err(error.inside(field.name)),
            },
            None => Ok(Vec::new()),
        }
    }

    /// A list of scalars, enums or structs; empty where it is absent.
    #[inline]
    pub fn inlines<T: Inline>(&mut self, field: Field) -> Result<Vec<T>, DecodeError> {
        let Some(pos) = self.target(field)? else {
            return Ok(Vec::new());
        };
        match self.reader.vector(pos, T::Bytes::LEN, Some(field)) {
            Ok((bytes, _)) => Ok(bytes
                .chunks_exact(T::Bytes::LEN)
                .filter_map(T::Bytes::first)
                .map(T::from_bytes)
                .collect()),
            Err(error) => Err(error.inside(field.name)),
        }
    }

    /// A list of anything else; empty where it is absent.
    #[inline]
    pub fn list<V: Value>(&mut self, field: Field) -> Result<Vec<V>, DecodeError> {
        let (first, offsets) = self.offsets(field)?;
        let mut items = Vec::with_capacity(offsets.len().min(RESERVE_BYTES / size_of::<V>().max(1)));
        for (index, offset) in offsets.iter().enumerate() {
            match V::read_item(self.item(first, index, *offset)) {
                Ok(item) => items.push(item),
                Err(error) => return Err(error.at_item(index).inside(field.name)),
            }
        }
        Ok(items)
    }

    /// A map of scalars, enums or structs; empty where it is absent.
    #[inline]
    pub fn inline_map<T: Inline>(&mut self, field: Field) -> Result<BTreeMap<String, T>, DecodeError> {
        self.entries(field, |entry| entry.inline(INLINE_VALUE))
    }

    /// A map of anything else; empty where it is absent.
    #[inline]
    pub fn map<V: Value>(&mut self, field: Field) -> Result<BTreeMap<String, V>, DecodeError> {
        self.entries(field, |entry| entry.required(VALUE))
    }

    #[inline]
    fn entries<T>(
        &mut self,
        field: Field,
        mut read: impl FnMut(&mut Table<'_, 'a>) -> Result<T, DecodeError>,
    ) -> Result<BTreeMap<String, T>, DecodeError> {
        let (first, offsets) = self.offsets(field)?;
        let mut map = BTreeMap::new();
        for (index, offset) in offsets.iter().enumerate() {
            let mut entry = || {
                let mut entry = self.item(first, index, *offset).table()?;
                let key = entry.string(KEY)?;
                let value = read(&mut entry)?;
                match map.entry(key) {
                    Entry::Vacant(vacant) => {
                        vacant.insert(value);
                        Ok(())
                    }
                    Entry::Occupied(twice) => Err(fault(DecodeProblem::DuplicateKey(twice.key().clone()))),
                }
            };
            entry().map_err(|error| error.at_item(index).inside(field.name))?;
        }
        Ok(map)
    }

    /// Where the items of a vector of offsets begin, and these offsets.
    #[inline]
    fn offsets(&mut self, field: Field) -> Result<(usize, &'a [[u8; 4]]), DecodeError> {
        let Some(pos) = self.target(field)? else {
            return Ok((0, &[]));
        };
        match self.reader.vector(pos, 4, Some(field)) {
            Ok((bytes, _)) => Ok((pos + 4, bytes.as_chunks().0)),
            Err(error) => Err(error.inside(field.name)),
        }
    }

    #[inline]
    fn item(&mut self, first: usize, index: usize, offset: [u8; 4]) -> At<'_, 'a> {
        self.at((first + 4 * index).saturating_add(u32::from_le_bytes(offset) as usize))
    }

    /// A message, union, identity or reference that may be absent.
    #[inline]
    pub fn value<V: Value>(&mut self, field: Field) -> Result<Option<V>, DecodeError> {
        match self.target(field)? {
            Some(pos) => match V::read_optional(self.at(pos)) {
                Ok(None) if field.required => Err(fault(DecodeProblem::Missing).inside(field.name)),
                Ok(value) => Ok(value),
                Err(error) => Err(error.inside(field.name)),
            },
            None => Ok(None),
        }
    }

    /// A message, union, identity or reference that must be there.
    #[inline]
    pub fn required<V: Value>(&mut self, field: Field) -> Result<V, DecodeError> {
        match self.value(field)? {
            Some(value) => Ok(value),
            None => Err(fault(DecodeProblem::Missing).inside(field.name)),
        }
    }

    /// The tag of a union, where this is the table around one.
    #[inline]
    pub fn tag(&self) -> Result<u8, DecodeError> {
        self.inline(TAG)
    }

    /// The member of a union, where this is the table around one.
    #[inline]
    pub fn member<V: Value>(&mut self) -> Result<V, DecodeError> {
        match self.target(MEMBER)? {
            Some(pos) => V::read(self.at(pos)),
            None => Err(fault(DecodeProblem::NoMember)),
        }
    }
}
