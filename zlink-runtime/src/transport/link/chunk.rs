//! One ZeroMQ message on its way out: joined records, or a large one alone.
//!
//! It must not know who waits to send, or when it is sent.

use crate::limit::COALESCE_BYTES;
use crate::transport::zmtp::{FRAME_HEAD, frame_head};

/// Before a record, its length.
pub(super) const PREFIX: usize = 4;
/// What a REQ peer expects before a reply: an empty frame.
const DELIMITER: [u8; 2] = [1, 0];
/// Room in front of joined records for the delimiter and the frame head, so that one write sends all.
const RESERVED: usize = DELIMITER.len() + FRAME_HEAD;
/// A buffer kept for the next message has at most this capacity, in bytes.
const SPARE_BYTES: usize = 2 * COALESCE_BYTES;

/// One ZeroMQ message to send.
pub(super) struct Chunk {
    bytes: Vec<u8>,
    records: u32,
    /// One record without its prefix, rather than joined ones after [`RESERVED`] bytes.
    alone: bool,
}

impl Chunk {
    /// A record that goes alone.
    pub(super) fn alone(record: Vec<u8>) -> Self {
        Self {
            bytes: record,
            records: 1,
            alone: true,
        }
    }

    /// None joined yet, into a buffer that is there.
    pub(super) fn joined(mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        buffer.resize(RESERVED, 0);
        Self {
            bytes: buffer,
            records: 0,
            alone: false,
        }
    }

    /// Whether a record of `len` bytes may join.
    pub(super) fn has_room(&self, len: usize) -> bool {
        !self.alone && self.charge() + PREFIX + len <= COALESCE_BYTES
    }

    /// Joins a record.
    pub(super) fn push(&mut self, head: &[u8], payload: &[u8]) {
        self.records += 1;
        self.bytes.extend_from_slice(&prefix(head.len() + payload.len()));
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(payload);
    }

    /// Its buffer for another one, where it is worth keeping: a burst's is not kept for a trickle.
    pub(super) fn into_spare(self) -> Option<Vec<u8>> {
        let capacity = self.bytes.capacity();
        let fitting = capacity <= SPARE_BYTES && self.bytes.len() >= capacity / 8;
        (!self.alone && fitting).then_some(self.bytes)
    }

    /// How many records it holds.
    pub(super) const fn records(&self) -> u32 {
        self.records
    }

    /// The bytes it counts in a budget.
    pub(super) fn charge(&self) -> usize {
        if self.alone {
            self.bytes.len() + PREFIX
        } else {
            self.bytes.len() - RESERVED
        }
    }

    /// The message as it travels: two parts, so that a large record is not copied.
    pub(super) fn wire(&mut self, delimiter: bool) -> ([u8; RESERVED + PREFIX], usize, &[u8]) {
        let (head, from) = frame_head(self.charge(), false, false);
        let head = &head[from..];
        let mut front = [0; RESERVED + PREFIX];
        let mut at = front.len();
        let mut put = |bytes: &[u8]| {
            at -= bytes.len();
            front[at..at + bytes.len()].copy_from_slice(bytes);
        };
        if self.alone {
            put(&prefix(self.bytes.len()));
        }
        put(head);
        if delimiter {
            put(&DELIMITER);
        }
        if self.alone {
            return (front, at, &self.bytes);
        }
        let front = &front[at..];
        let from = RESERVED - front.len();
        self.bytes[from..RESERVED].copy_from_slice(front);
        ([0; RESERVED + PREFIX], RESERVED + PREFIX, &self.bytes[from..])
    }
}

/// Records have at most [`crate::limit::PAYLOAD_BYTES`], which the queue's bound keeps.
pub(super) fn prefix(len: usize) -> [u8; PREFIX] {
    u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes()
}
