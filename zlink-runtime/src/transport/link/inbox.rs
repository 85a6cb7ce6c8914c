//! Received bytes of one lane, cut into records. What arrived decides how much is held, never what was announced.
//!
//! It must not know a socket, a permit, or what a record says.

use std::collections::VecDeque;

use bytes::{Buf, BufMut, Bytes};

use super::queue::PREFIX;
use crate::limit::{ALONE_BYTES, COALESCE_BYTES, ROTATION_RECORDS};
use crate::transport::zmtp::{Command, Decoder, FrameLimits, Head, ZmtpError};

/// Bytes that one read asks for: at first, and at most.
const READ_BYTES: (usize, usize) = (4 << 10, 64 << 10);
/// Records below this many bytes share one copy per rotation; larger ones own theirs.
const SHARED_BYTES: usize = 1 << 10;

/// A whole record.
enum Slot {
    /// In the buffer: where, and its length.
    Here(usize, usize),
    /// On its own.
    Own(Bytes),
}

/// A large record that arrives into a buffer of its own.
struct Large {
    data: Vec<u8>,
    len: usize,
}

/// What stands between records and is for the link itself.
#[derive(Debug)]
pub(super) enum Aside<'a> {
    /// A ZMTP command.
    Command(Command<'a>),
    /// A record that the filter took.
    Record(&'a [u8]),
}

/// The receive side of one lane.
pub(super) struct Inbox {
    buf: Vec<u8>,
    at: usize,
    read: usize,
    decoder: Decoder,
    frame_left: usize,
    large: Option<Large>,
    slots: VecDeque<Slot>,
    /// A copy of the part of the buffer that starts at `shared_at`.
    shared: Bytes,
    shared_at: usize,
    max_record: usize,
}

impl Inbox {
    /// Starts with what the handshake left over.
    pub(super) fn new(leftover: Vec<u8>, max_record: usize) -> Self {
        Self {
            buf: leftover,
            at: 0,
            read: READ_BYTES.0,
            decoder: Decoder::new(),
            frame_left: 0,
            large: None,
            slots: VecDeque::new(),
            shared: Bytes::new(),
            shared_at: 0,
            max_record,
        }
    }

    /// From now on records have at most that many bytes.
    pub(super) fn set_max_record(&mut self, max_record: usize) {
        self.max_record = max_record;
    }

    /// Whole records that wait.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.buf.len() - self.at.min(self.buf.len())
            + self.large.as_ref().map_or(0, |large| large.data.len())
            + self.slots.iter().map(|slot| self.slot(slot).len()).sum::<usize>()
    }

    /// The records that wait, oldest first.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &[u8]> {
        self.slots.iter().map(|slot| self.slot(slot))
    }

    fn slot<'a>(&'a self, slot: &'a Slot) -> &'a [u8] {
        match slot {
            Slot::Here(at, len) => &self.buf[*at..*at + *len],
            Slot::Own(bytes) => bytes,
        }
    }

    /// Drops every record that waits.
    pub(super) fn discard(&mut self) {
        self.slots.clear();
        self.shared = Bytes::new();
    }

    /// Cuts what is here until one rotation's records wait or the rest is incomplete. Commands, and the records
    /// that `filter` picks, go to `aside` at once. Returns whether it stopped for the number of steps.
    pub(super) fn scan(
        &mut self,
        filter: impl Fn(&[u8]) -> bool,
        mut aside: impl FnMut(Aside<'_>) -> Result<(), ZmtpError>,
    ) -> Result<bool, ZmtpError> {
        let mut steps = 4 * ROTATION_RECORDS;
        while self.slots.len() < ROTATION_RECORDS {
            steps -= 1;
            if steps == 0 {
                return Ok(true);
            }
            if let Some(large) = self.large.take_if(|large| large.data.len() == large.len) {
                self.slots.push_back(Slot::Own(large.data.into()));
            }
            if self.large.is_some() {
                break;
            }
            let input = &self.buf[self.at..];
            if self.frame_left == 0 {
                let limits = FrameLimits::new(self.max_record.max(COALESCE_BYTES) + PREFIX);
                match self.decoder.head(input, limits)? {
                    None => break,
                    Some((head, Head::Frame { len, .. })) => {
                        self.at += head;
                        self.frame_left = len;
                    }
                    Some((head, Head::Command { len })) => {
                        let Some(body) = input.get(head..head + len) else { break };
                        aside(Aside::Command(Command::decode(body)?))?;
                        self.at += head + len;
                    }
                }
                continue;
            }
            let Some((len, rest)) = input.split_first_chunk::<PREFIX>() else {
                if self.frame_left < PREFIX {
                    return Err(ZmtpError::Malformed("record length"));
                }
                break;
            };
            let declared = u32::from_le_bytes(*len);
            let len = declared as usize;
            if len == 0 || self.frame_left < PREFIX || len > self.frame_left - PREFIX {
                return Err(ZmtpError::Malformed("record length"));
            }
            if len > self.max_record {
                let limit = self.max_record as u64;
                return Err(ZmtpError::TooLarge {
                    what: "a record",
                    size: declared.into(),
                    limit,
                });
            }
            let start = self.at + PREFIX;
            if let Some(record) = rest.get(..len) {
                if filter(record) {
                    aside(Aside::Record(record))?;
                } else {
                    self.slots.push_back(Slot::Here(start, len));
                }
                self.at = start + len;
            } else if len >= ALONE_BYTES {
                let mut data = Vec::with_capacity(len.min(rest.len().max(READ_BYTES.1)));
                data.extend_from_slice(rest);
                self.large = Some(Large { data, len });
                // The next one is probably as large: what a read brings of it is copied, so it shall bring little.
                self.read = READ_BYTES.0;
                self.at = self.buf.len();
            } else {
                break;
            }
            self.frame_left -= PREFIX + len;
        }
        Ok(false)
    }

    /// Takes the oldest waiting record. `run` tells how many more will be taken at once, this one included: small
    /// ones among them share a copy.
    pub(super) fn pop(&mut self, run: usize) -> Option<Bytes> {
        let (start, len) = match self.slots.pop_front()? {
            Slot::Own(bytes) => return Some(bytes),
            Slot::Here(start, len) => (start, len),
        };
        if self.shared.is_empty() {
            let end = self
                .slots
                .iter()
                .take(run.saturating_sub(1))
                .map_while(|slot| match slot {
                    Slot::Here(start, len) if *len < SHARED_BYTES => Some(start + len),
                    _ => None,
                });
            let end = if len < SHARED_BYTES { end.last() } else { None };
            let Some(end) = end else {
                return Some(Bytes::copy_from_slice(&self.buf[start..start + len]));
            };
            self.shared = Bytes::copy_from_slice(&self.buf[start..end]);
            self.shared_at = start;
        }
        self.shared.advance(start - self.shared_at);
        self.shared_at = start + len;
        Some(self.shared.split_to(len))
    }

    /// Room for the next read. Only where no record waits.
    pub(super) fn room(&mut self) -> impl BufMut + '_ {
        if let Some(Large { data, len }) = &mut self.large {
            if data.len() == data.capacity() {
                data.reserve_exact(data.len().max(READ_BYTES.1).min(*len - data.len()));
            }
            let left = (*len - data.len()).min(data.capacity() - data.len());
            return data.limit(left);
        }
        if self.at == self.buf.len() {
            self.buf.clear();
        } else {
            self.buf.drain(..self.at);
        }
        self.at = 0;
        self.buf.reserve(self.read);
        let room = self.read;
        (&mut self.buf).limit(room)
    }

    /// Tells how much the read brought: a full one asks for more at the next.
    pub(super) fn filled(&mut self, count: usize) {
        if self.large.is_none() && count == self.read {
            self.read = (self.read * 4).min(READ_BYTES.1);
        }
    }
}
