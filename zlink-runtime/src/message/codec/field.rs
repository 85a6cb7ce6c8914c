//! What generated code says about one field, to the writer and to the reader alike.

/// One field of a message: its name for errors, its place and its rules.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub(super) name: &'static str,
    id: u16,
    pub(super) required: bool,
    pub(super) max: u32,
}

impl Field {
    /// The field with this name and id.
    ///
    /// # Panics
    /// Where the id is beyond what a vtable can hold: in a constant, that is a compile error.
    #[must_use]
    #[inline]
    pub const fn new(id: u16, name: &'static str) -> Self {
        assert!(id < 32_766, "a field id must be below 32766");
        Self {
            name,
            id,
            required: false,
            max: u32::MAX,
        }
    }

    /// Its place in the vtable, whose first four bytes are sizes.
    #[inline]
    pub(super) const fn slot(self) -> u16 {
        4 + 2 * self.id
    }

    /// It must be on the wire.
    #[must_use]
    #[inline]
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// At most this many bytes or items.
    #[must_use]
    #[inline]
    pub const fn max(mut self, max: u32) -> Self {
        self.max = max;
        self
    }

    /// What `actual` exceeds, if it does.
    #[inline]
    pub(super) fn exceeded(self, actual: usize) -> Option<u32> {
        (actual > self.max as usize).then_some(self.max)
    }
}

/// The two fields of a map's entry; a value that is inline may be elided.
pub(super) const KEY: Field = Field::new(0, "key").required();
pub(super) const VALUE: Field = Field::new(1, "value").required();
pub(super) const INLINE_VALUE: Field = Field::new(1, "value");
/// The two fields of the table around a union: its tag, and its member.
pub(super) const TAG: Field = Field::new(0, "tag");
pub(super) const MEMBER: Field = Field::new(1, "value");
/// The one field of the table around bytes in a list.
pub(super) const BOXED: Field = Field::new(0, "value");
