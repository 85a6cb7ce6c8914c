//! Received bytes of one lane, cut into records. What arrived decides how much is held, never what was announced.
//!
//! It must not know a socket, a permit, or what a record says.

use std::collections::VecDeque;

use bytes::{Buf, BufMut, Bytes};

use super::chunk::PREFIX;
use crate::limit::{ALONE_BYTES, COALESCE_BYTES, ROTATION_RECORDS};
use crate::transport::zmtp::{Command, Decoder, FrameLimits, Head, ZmtpError};

/// Bytes that the first read asks for.
const FIRST_READ: usize = 4 << 10;
/// Bytes that the buffer of a large record is made larger by, at least.
const GROW_BYTES: usize = 64 << 10;
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
    /// Bytes that one read asks for at most.
    most: usize,
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
    pub(super) fn new(leftover: Vec<u8>, max_record: usize, most: usize) -> Self {
        Self {
            buf: leftover,
            at: 0,
            read: FIRST_READ.min(most),
            most,
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

    /// Whether a large record has arrived in part.
    pub(super) fn is_amid_record(&self) -> bool {
        self.large.as_ref().is_some_and(|large| large.data.len() < large.len)
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
                let mut data = Vec::with_capacity(len.min(rest.len().max(GROW_BYTES)));
                data.extend_from_slice(rest);
                self.large = Some(Large { data, len });
                // The next one is probably as large: what a read brings of it is copied, so it shall bring little.
                self.read = FIRST_READ.min(self.most);
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
                data.reserve_exact(data.len().max(GROW_BYTES).min(*len - data.len()));
            }
            let left = (*len - data.len()).min(data.capacity() - data.len());
            return data.limit(left);
        }
        if self.at == self.buf.len() {
            self.buf.clear();
            if self.buf.capacity() > 8 * self.read {
                self.buf = Vec::new();
            }
        } else {
            self.buf.drain(..self.at);
        }
        self.at = 0;
        self.buf.reserve(self.read);
        let room = self.read;
        (&mut self.buf).limit(room)
    }

    /// Tells how much the read brought: the next one asks for more after a full one, and for less after a poor one.
    pub(super) fn filled(&mut self, count: usize) {
        if self.large.is_some() {
            return;
        }
        if count == self.read {
            self.read = (self.read * 4).min(self.most);
        } else if count < self.read / 4 {
            self.read = (self.read / 2).max(FIRST_READ.min(self.most));
        }
    }
}

/// Runs bytes through the receive side as a connection does, in chunks.
#[cfg(test)]
fn receive(bytes: &[u8], chunk: usize, max_record: usize) -> Result<Vec<Bytes>, ZmtpError> {
    let (mut inbox, mut records) = (Inbox::new(Vec::new(), max_record, GROW_BYTES), Vec::new());
    let mut left = bytes;
    loop {
        let many = inbox.scan(|record| record.get(1) == Some(&10), |_| Ok(()))?;
        let run = inbox.len().div_ceil(2);
        let handed = (0..run).map_while(|at| inbox.pop(run - at));
        records.extend(handed);
        if inbox.len() > 0 || many || run > 0 {
            continue;
        }
        if left.is_empty() {
            return Ok(records);
        }
        let mut room = inbox.room();
        let count = left.len().min(chunk).min(room.remaining_mut());
        room.put_slice(&left[..count]);
        drop(room);
        left = &left[count..];
        inbox.filled(count);
        let held = inbox.buf.capacity() + inbox.large.as_ref().map_or(0, |large| large.data.capacity());
        let come = bytes.len() - left.len();
        assert!(
            held <= 4 * come + 4 * GROW_BYTES,
            "{held} bytes are held for the {come} that came"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::zmtp::{encode_ping, frame_head};
    use proptest::prelude::*;

    /// Records as a peer may send them: some in a frame, some frames in a message, commands between.
    fn wire(messages: &[Vec<Vec<Vec<u8>>>]) -> Vec<u8> {
        let mut out = Vec::new();
        for frames in messages {
            encode_ping(&mut out, 1, b"x");
            for (at, records) in frames.iter().enumerate() {
                let len = records.iter().map(|record| PREFIX + record.len()).sum();
                let (head, from) = frame_head(len, at + 1 < frames.len(), false);
                out.extend_from_slice(&head[from..]);
                for record in records {
                    out.extend_from_slice(&u32::try_from(record.len()).unwrap().to_le_bytes());
                    out.extend_from_slice(record);
                }
            }
        }
        out
    }

    fn record() -> impl Strategy<Value = Vec<u8>> {
        let len =
            prop_oneof![8 => 2usize..40, 3 => 1000usize..1100, 1 => 16_000usize..17_000, 1 => 60_000usize..140_000];
        (len, any::<u8>()).prop_map(|(len, byte)| [vec![1, 16], vec![byte; len]].concat())
    }

    fn messages() -> impl Strategy<Value = Vec<Vec<Vec<Vec<u8>>>>> {
        use proptest::collection::vec;
        vec(vec(vec(record(), 0..8), 1..4), 0..8)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn records_arrive_whole_however_they_are_cut(messages in messages(), chunk in 1usize..100_000) {
            let all: Vec<_> = messages.iter().flatten().flatten().cloned().collect();
            let most = messages.iter().map(|message| wire(std::slice::from_ref(message)).len()).max().unwrap_or(0);
            let received = receive(&wire(&messages), chunk, most.max(1)).unwrap();
            prop_assert_eq!(received, all);
        }

        #[test]
        fn damage_is_refused_or_read_and_holds_no_more_than_came(
            messages in messages(),
            damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
            chunk in 1usize..5000,
        ) {
            let mut bytes = wire(&messages);
            for (at, byte) in damage {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
            }
            let _ = receive(&bytes, chunk, 1 << 30);
        }
    }

    /// What reaches a listener from anyone: the handshake's bytes, then a stream of records, damaged at random.
    #[test]
    #[ignore = "a soak: `make soak` runs it for ZLINK_SOAK_SECONDS"]
    fn soak_damaged_bytes() {
        use crate::transport::zmtp::{Handshake, Properties, Role, Security};
        use proptest::strategy::ValueTree;
        let seconds = std::env::var("ZLINK_SOAK_SECONDS").map_or(60, |seconds| seconds.parse().unwrap());
        let end = std::time::Instant::now() + std::time::Duration::from_secs(seconds);
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::default());
        let damage = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..9);
        let input = (messages(), damage, 1usize..5000, any::<bool>());
        let (mut runs, mut refused) = (0u64, 0u64);
        while std::time::Instant::now() < end {
            let (messages, damage, chunk, plain) = input.new_tree(&mut runner).unwrap().current();
            let security = match plain {
                true => Security::Plain {
                    username: "a".into(),
                    password: "b".into(),
                },
                false => Security::Null,
            };
            let mut client = Handshake::new(
                Role::Client,
                security.clone(),
                &Properties::new().with("Identity", *b"x"),
            );
            let mut bytes = client.take_output();
            let greeted = bytes.len();
            bytes.extend(wire(&messages));
            for (n, (at, byte)) in damage.into_iter().enumerate() {
                let within = if n % 2 == 0 { greeted + 50 } else { bytes.len() };
                let at = at.index(within.min(bytes.len()));
                bytes[at] = byte;
            }
            let mut server = Handshake::new(Role::Server, security, &Properties::new());
            for piece in bytes.chunks(chunk) {
                if server.feed(piece).is_err() || server.take_ready().is_some() {
                    break;
                }
            }
            refused += u64::from(receive(&bytes[greeted..], chunk, 1 << 20).is_err());
            runs += 1;
        }
        println!("{runs} inputs, {refused} refused, no panic, nothing held beyond what came");
    }

    #[test]
    fn a_small_record_pins_no_large_buffer() {
        let small = vec![1u8, 16, 7];
        let frames = vec![vec![vec![
            small.clone(),
            vec![1; 15_000],
            small.clone(),
            vec![1; 40_000],
            small,
        ]]];
        let records = receive(&wire(&frames), 100_000, 1 << 20).unwrap();
        let at = |n: usize| records[n].as_ptr() as usize;
        assert!(
            at(2).abs_diff(at(1)) > 15_000 || at(2) < at(1),
            "it is no part of its neighbour's buffer"
        );
        assert_eq!(records.len(), 5);
    }
}
