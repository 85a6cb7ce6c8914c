//! Calls and replies as a peer may build them, well formed or not, and what comes back for them.

use bytes::Bytes;
use zlink_generated::zlink_wire::RecordKind;
use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::rt::{self, Message};

use super::{Raw, record};

/// A call, part by part.
#[derive(Clone)]
pub(crate) struct Craft {
    kind: RecordKind,
    correlation: Option<u64>,
    timeout_ms: u32,
    names: Vec<u8>,
    flags: u16,
    extra: Vec<u8>,
    body: Vec<u8>,
}

impl Craft {
    /// A request to a channel, or to the node where `channel` is empty, with 10 s to go.
    pub(crate) fn request(correlation: u64, channel: &str, packet: &str) -> Self {
        let kind = if channel.is_empty() {
            RecordKind::NodeRequest
        } else {
            RecordKind::ChannelRequest
        };
        Self {
            correlation: Some(correlation),
            ..Self::new(kind, channel, packet)
        }
    }

    /// The same one way.
    pub(crate) fn send(channel: &str, packet: &str) -> Self {
        let kind = if channel.is_empty() {
            RecordKind::NodeSend
        } else {
            RecordKind::ChannelSend
        };
        Self::new(kind, channel, packet)
    }

    /// A request to the Spot `id`, as whoever means that lease of its owner sends it; of nobody's with 0.
    pub(crate) fn to_spot(correlation: u64, packet: &str, id: &str, lease: u64) -> Self {
        let mut craft = Self::new(RecordKind::SpotRequest, "", packet);
        craft.correlation = Some(correlation);
        craft.extra.extend_from_slice(&[0; 16]);
        craft.extra.extend_from_slice(&lease.to_le_bytes());
        craft.extra.push(id.len() as u8);
        craft.extra.extend_from_slice(id.as_bytes());
        craft
    }

    /// The same to an exact incarnation, as the owner of that generation has it.
    pub(crate) fn owned(mut self, generation: u64, owner_generation: u64) -> Self {
        self.extra[..8].copy_from_slice(&generation.to_le_bytes());
        self.extra[8..16].copy_from_slice(&owner_generation.to_le_bytes());
        self
    }

    /// Asks a node to do something with its Spots.
    pub(crate) fn control(correlation: u64, kind: RecordKind, question: &impl Message) -> Self {
        let mut craft = Self::new(kind, "", "zlink.spot");
        craft.correlation = Some(correlation);
        craft.message(question)
    }

    fn new(kind: RecordKind, channel: &str, packet: &str) -> Self {
        let mut names = Vec::new();
        for name in [channel, packet] {
            names.push(name.len() as u8);
            names.extend_from_slice(name.as_bytes());
        }
        Self {
            kind,
            correlation: None,
            timeout_ms: 10_000,
            names,
            flags: 0,
            extra: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Sets a flag and what it brings. What flags bring stands in a fixed order, which is the caller's to keep.
    pub(crate) fn flag(mut self, flag: u16, brings: &[u8]) -> Self {
        self.flags |= flag;
        self.extra.extend_from_slice(brings);
        self
    }

    /// Carries `message`.
    pub(crate) fn message(mut self, message: &impl Message) -> Self {
        self.body = encoded(message);
        self
    }

    /// Carries these bytes.
    pub(crate) fn bytes(mut self, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self
    }

    /// What travels.
    pub(crate) fn record(&self) -> Vec<u8> {
        let mut whole = record(self.kind, &u32::MAX.to_le_bytes());
        whole[2..4].copy_from_slice(&self.flags.to_le_bytes());
        if let Some(correlation) = self.correlation {
            whole.extend_from_slice(&correlation.to_le_bytes());
            whole.extend_from_slice(&self.timeout_ms.to_le_bytes());
            whole.extend_from_slice(&[0; 4]);
        }
        for part in [&self.names, &self.extra, &self.body] {
            whole.extend_from_slice(part);
        }
        whole
    }
}

/// A message as its payload.
pub(crate) fn encoded(message: &impl Message) -> Vec<u8> {
    rt::encode(message, <[u8]>::to_vec).unwrap()
}

/// What the metadata flag brings: entries as they are given, in a block of their length.
pub(crate) fn metadata_block(entries: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut block = vec![0, entries.len() as u8];
    for (key, value) in entries {
        block.push(key.len() as u8);
        block.extend_from_slice(&(value.len() as u16).to_le_bytes());
        block.extend_from_slice(key);
        block.extend_from_slice(value);
    }
    sized(&block)
}

/// Bytes behind their length in two bytes.
pub(crate) fn sized(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_le_bytes(), bytes].concat()
}

/// The correlation of a request or a reply.
pub(crate) fn correlation_of(record: &[u8]) -> u64 {
    u64::from_le_bytes(record[8..16].try_into().unwrap())
}

/// How many milliseconds a request says are left.
pub(crate) fn timeout_of(request: &[u8]) -> u32 {
    u32::from_le_bytes(request[16..20].try_into().unwrap())
}

/// A reply to that request, with these four result bytes and this payload.
pub(crate) fn reply_to(request: &[u8], result: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let mut whole = record(RecordKind::Reply, &result);
    whole.extend_from_slice(&request[8..16]);
    whole.extend_from_slice(payload);
    whole
}

/// A reply as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) correlation: u64,
    pub(crate) flags: u16,
    pub(crate) failed: Option<(ErrorKind, Execution)>,
    /// The payload, or the text of the error.
    pub(crate) body: Bytes,
}

/// The next reply that comes to `raw`.
pub(crate) async fn answer(raw: &Raw) -> Answer {
    let record = raw.heard(RecordKind::Reply).await;
    let execution = if record[6] == 0 {
        Execution::NotExecuted
    } else {
        Execution::Unknown
    };
    let kind = ErrorKind::from_number(record[5]).unwrap();
    Answer {
        correlation: correlation_of(&record),
        flags: u16::from_le_bytes([record[2], record[3]]),
        failed: (record[4] == 1).then_some((kind, execution)),
        body: record.slice(16..),
    }
}
