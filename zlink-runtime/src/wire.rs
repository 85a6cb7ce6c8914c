//! Records: what travels on a link. The heads and messages are generated from `schemas/zlink/wire.yaml`; what a
//! schema cannot say, which parts the flags of a head bring and in which order, is written here, once.
//!
//! A record is a head, then text names where the head has no number for them, then one skippable block per optional
//! flag, then what the required flags bring, then the payload to its end. It must not know links, tables or handlers.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Execution, MAX_ERROR_TEXT};
use crate::limit::{METADATA_BYTES, PAYLOAD_BYTES};
use crate::message::codec::{ByteArray, Inline};

#[rustfmt::skip]
mod generated;
mod objects;
mod write;

pub(crate) use generated::{
    Blob, Capacity, ChannelServer, CreationOutcome, CreationTerminal, Descriptor, FlowHead, Hello, Lease, NodeState,
    ObjectRole, ObjectServer, ObjectState, ObjectType, Operation, OperationId, ProbeHead, RecordHead, RecordKind,
    Reject, RejectReason, ReplyHead, RequestHead, SendHead, SpotActivation, SpotClose, SpotClosed, SpotCreate,
    SpotCreated, SpotKind, SpotOutcome, SpotRecord, SpotTarget, Topology, Update,
};
pub(crate) use objects::{Control, ObjectCall, Publish, publish_head};
pub(crate) use write::{CallHead, OperationRef, To, call, flow, probe, reply_failed, reply_head, service};

/// The protocol major of this runtime.
pub(crate) const MAJOR: u8 = 1;
/// The protocol minor of this runtime, told in the hello.
pub(crate) const MINOR: u16 = 0;
/// The `operation` of a record whose names follow as text.
pub(crate) const NAMED: u32 = u32::MAX;

/// Metadata follows: `[u16 length][encoded snapshot]`.
pub(crate) const FLAG_METADATA: u16 = 1;
/// The payload is not FlatBuffers: `[u8 length][content type]`.
pub(crate) const FLAG_CONTENT_TYPE: u16 = 2;
/// The flow follows: `[16 bytes UUIDv7][u8 origin]`, where the origin is 1 inbound, 2 timer, 3 application or
/// 4 lifecycle.
pub(crate) const FLAG_FLOW: u16 = 4;
/// What that brings.
pub(crate) const FLOW_BYTES: usize = 17;
/// Of a record to a Spot: it may activate it, and says how.
pub(crate) const FLAG_ACTIVATION: u16 = 8;
const KNOWN_FLAGS: u16 = FLAG_METADATA | FLAG_CONTENT_TYPE | FLAG_FLOW;
const REQUIRED_FLAGS: u16 = 0x00ff;

/// Whether a record is known, before it is read, as the end of a request: it needs no permit.
#[must_use]
pub fn is_completion(record: &[u8]) -> bool {
    record.get(1).is_some_and(|kind| *kind == RecordKind::Reply.to_wire())
}

/// Whether a record is at least, by its head, a one-way message of this protocol.
pub(crate) fn is_one_way(record: &[u8]) -> bool {
    fixed::<SendHead>(record).is_ok_and(|(head, _)| {
        let kind = RecordKind::from_wire(head.kind);
        let one_way = [
            RecordKind::NodeSend,
            RecordKind::ChannelSend,
            RecordKind::SpotSend,
            RecordKind::SpotPublish,
            RecordKind::ActorSend,
        ];
        head.major == MAJOR && one_way.contains(&kind)
    })
}

/// Whether a record carries receive flow, which the link itself applies.
pub(crate) fn is_flow(record: &[u8]) -> bool {
    record.get(1).is_some_and(|kind| *kind == RecordKind::Flow.to_wire())
}

/// Whether a record is the link's own business: neither a call nor a reply.
#[must_use]
pub fn is_service(record: &[u8]) -> bool {
    record.get(1).is_some_and(|kind| *kind < FIRST_CALL_KIND)
}

/// Record kinds from here on belong to calls.
pub(crate) const FIRST_CALL_KIND: u8 = 16;

/// Takes off a request's remaining time what it has `waited` since its head was written, whole milliseconds of it, and
/// leaves it one. Other records have none.
pub fn spend(record: &mut [u8], waited: Duration) {
    let is_request = record.get(1).is_some_and(|kind| {
        matches!(
            RecordKind::from_wire(*kind),
            RecordKind::NodeRequest
                | RecordKind::ChannelRequest
                | RecordKind::SpotRequest
                | RecordKind::SpotCreate
                | RecordKind::SpotClose
                | RecordKind::ActorRequest
                | RecordKind::ActorCreate
                | RecordKind::ActorDestroy
        )
    });
    let Ok((mut head, _)) = fixed::<RequestHead>(record) else {
        return;
    };
    if !is_request || head.timeout_ms == 0 {
        return;
    }
    let waited = u32::try_from(waited.as_millis()).unwrap_or(u32::MAX);
    head.timeout_ms = head.timeout_ms.saturating_sub(waited).max(1);
    let head = head.to_bytes();
    if let Some(place) = record.get_mut(..head.as_slice().len()) {
        place.copy_from_slice(head.as_slice());
    }
}

/// A part of a record, by position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    from: u32,
    to: u32,
}

impl Span {
    fn new(range: Range<usize>) -> Self {
        // A record is at most 2 GiB, which `parse` has checked.
        let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self {
            from: narrow(range.start),
            to: narrow(range.end),
        }
    }

    /// The bytes, of the record that the span was made for.
    pub(crate) fn of(self, record: &[u8]) -> &[u8] {
        record.get(self.from as usize..self.to as usize).unwrap_or_default()
    }

    /// The same as a shared slice.
    pub(crate) fn share(self, record: &Bytes) -> Bytes {
        record.slice_ref(self.of(record))
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.from >= self.to
    }
}

/// What a received record is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// Something for a handler.
    Call(Call),
    /// Something for a Spot or an Actor.
    Object(ObjectCall),
    /// Something that a node is asked to do with one of those.
    Control(Control),
    /// Something for all Spots that subscribe to it.
    Publish(Publish),
    /// The end of a request of ours.
    Reply(Reply),
    /// Part of a handshake, or a live change; the payload is its message.
    Service(RecordKind, Span),
    /// Give the number back.
    Probe(u64),
    /// The number came back.
    ProbeAck(u64),
    /// The peer's receive flow.
    Flow { version: u64, paused: bool },
}

/// A one-way message or a request, found but not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Whether it goes to a channel's handlers, or to the node's.
    pub(crate) to_channel: bool,
    /// The correlation of a request; `None` for a one-way message.
    pub(crate) correlation: Option<u64>,
    /// What is left of the request's deadline, where it is told.
    pub(crate) timeout_ms: Option<u32>,
    pub(crate) operation: OperationName,
    pub(crate) metadata: Span,
    /// Empty for FlatBuffers.
    pub(crate) content_type: Span,
    /// Empty where its sender does not trace.
    pub(crate) flow: Span,
    pub(crate) payload: Span,
}

/// How a record says what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationName {
    /// By index into the receiver's list.
    Number(u32),
    /// By text; the channel is empty for Node direct.
    Named { channel: Span, packet: Span },
}

/// The end of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) correlation: u64,
    /// The payload, or the error that the target reported.
    pub(crate) result: Result<Span, Error>,
}

/// A record that cannot be used, and the request that it would have been, so that its caller can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) what: &'static str,
    /// The correlation of a request whose head could still be read.
    pub(crate) correlation: Option<u64>,
}

const fn malformed(what: &'static str) -> Malformed {
    Malformed {
        what,
        correlation: None,
    }
}

/// Reads the parts of a record. Nothing is copied and nothing is allocated but an error text.
///
/// # Errors
/// Where the head is short or of another major, a required flag or the kind is unknown, or lengths do not add up.
pub(crate) fn parse(record: &[u8]) -> Result<Incoming, Malformed> {
    if record.len() > PAYLOAD_BYTES {
        return Err(malformed("the record exceeds 2 GiB"));
    }
    let (head, _) = fixed::<RecordHead>(record)?;
    if head.major != MAJOR {
        return Err(malformed("the record is of another protocol major"));
    }
    match RecordKind::from_wire(head.kind) {
        kind @ (RecordKind::NodeSend | RecordKind::ChannelSend) => {
            let (head, rest) = fixed::<SendHead>(record)?;
            let mut parts = Parts {
                record,
                at: record.len() - rest.len(),
            };
            let call = parts.call(kind == RecordKind::ChannelSend, head.flags, head.operation);
            call.map(Incoming::Call).map_err(malformed)
        }
        kind @ (RecordKind::NodeRequest | RecordKind::ChannelRequest) => {
            let (head, rest) = fixed::<RequestHead>(record)?;
            if head.correlation == 0 {
                return Err(malformed("a request has correlation 0"));
            }
            let mut parts = Parts {
                record,
                at: record.len() - rest.len(),
            };
            match parts.call(kind == RecordKind::ChannelRequest, head.flags, head.operation) {
                Ok(call) => Ok(Incoming::Call(Call {
                    correlation: Some(head.correlation),
                    timeout_ms: (head.timeout_ms != 0).then_some(head.timeout_ms),
                    ..call
                })),
                Err(what) => Err(Malformed {
                    what,
                    correlation: Some(head.correlation),
                }),
            }
        }
        kind @ (RecordKind::SpotSend
        | RecordKind::SpotRequest
        | RecordKind::SpotCreate
        | RecordKind::SpotClose
        | RecordKind::SpotPublish
        | RecordKind::ActorSend
        | RecordKind::ActorRequest
        | RecordKind::ActorCreate
        | RecordKind::ActorDestroy) => objects::parse(record, kind),
        RecordKind::Reply => parse_reply(record),
        kind @ (RecordKind::Hello
        | RecordKind::Admit
        | RecordKind::Reject
        | RecordKind::NotRequired
        | RecordKind::Ready
        | RecordKind::Update
        | RecordKind::Retire) => {
            let (head, rest) = fixed::<RecordHead>(record)?;
            let mut parts = Parts {
                record,
                at: record.len() - rest.len(),
            };
            parts.blocks(head.flags).map_err(malformed)?;
            Ok(Incoming::Service(kind, parts.rest()))
        }
        kind @ (RecordKind::Probe | RecordKind::ProbeAck) => {
            let (head, rest) = fixed::<ProbeHead>(record)?;
            nothing_more(record, head.flags, rest)?;
            match (head.id, kind) {
                (0, _) => Err(malformed("a probe has id 0")),
                (id, RecordKind::Probe) => Ok(Incoming::Probe(id)),
                (id, _) => Ok(Incoming::ProbeAck(id)),
            }
        }
        RecordKind::Flow => {
            let (head, rest) = fixed::<FlowHead>(record)?;
            nothing_more(record, head.flags, rest)?;
            match head.paused {
                0 | 1 => Ok(Incoming::Flow {
                    version: head.version,
                    paused: head.paused == 1,
                }),
                _ => Err(malformed("a receive flow is neither 0 nor 1")),
            }
        }
        RecordKind::FanoutEvent => Err(malformed("an event of a fanout came over a link")),
        RecordKind::Unspecified | RecordKind::Unknown(_) => Err(malformed("the record is of an unknown kind")),
    }
}

/// Reads the parts of an event of a fanout, which names its channel and packet.
///
/// # Errors
/// As [`parse`], and where it is something else.
pub(crate) fn parse_event(record: &[u8]) -> Result<Call, Malformed> {
    let (head, rest) = fixed::<SendHead>(record)?;
    if head.major != MAJOR || RecordKind::from_wire(head.kind) != RecordKind::FanoutEvent {
        return Err(malformed("it is no event of a fanout"));
    }
    if head.operation != NAMED {
        return Err(malformed("an event names its packet by number"));
    }
    let mut parts = Parts {
        record,
        at: record.len() - rest.len(),
    };
    parts.call(true, head.flags, head.operation).map_err(malformed)
}

fn parse_reply(record: &[u8]) -> Result<Incoming, Malformed> {
    let (head, rest) = fixed::<ReplyHead>(record)?;
    let mut parts = Parts {
        record,
        at: record.len() - rest.len(),
    };
    let bad = |what| Malformed {
        what,
        correlation: Some(head.correlation),
    };
    parts.blocks(head.flags).map_err(bad)?;
    let payload = parts.rest();
    let result = match (head.failed, head.error, head.executed) {
        (0, 0, 0) => Ok(payload),
        (1, number, executed @ (0 | 1)) => {
            let kind = ErrorKind::from_number(number).ok_or(bad("a reply has an unknown error number"))?;
            let text = std::str::from_utf8(payload.of(record))
                .ok()
                .filter(|text| text.len() <= MAX_ERROR_TEXT);
            let text = text.ok_or(bad("the text of an error reply is not UTF-8 of at most 256 bytes"))?;
            let execution = if executed == 0 {
                Execution::NotExecuted
            } else {
                Execution::Unknown
            };
            Err(Error::new(kind, execution, text))
        }
        _ => return Err(bad("a reply combines its result fields in an undefined way")),
    };
    Ok(Incoming::Reply(Reply {
        correlation: head.correlation,
        result,
    }))
}

fn fixed<T: Inline>(record: &[u8]) -> Result<(T, &[u8]), Malformed> {
    let head = T::Bytes::first(record).ok_or(malformed("the record ends inside its head"))?;
    Ok((T::from_bytes(head), record.get(T::Bytes::LEN..).unwrap_or_default()))
}

fn nothing_more(record: &[u8], flags: u16, rest: &[u8]) -> Result<(), Malformed> {
    let mut parts = Parts {
        record,
        at: record.len() - rest.len(),
    };
    parts.blocks(flags).map_err(malformed)?;
    if parts.rest().is_empty() {
        Ok(())
    } else {
        Err(malformed("bytes follow a record that has no payload"))
    }
}

/// Whether those 17 bytes are a UUID of version 7 and the RFC's variant, and an origin there is.
fn is_flow_field(flow: &[u8]) -> bool {
    let at = |at: usize| flow.get(at).copied().unwrap_or_default();
    at(6) >> 4 == 7 && at(8) >> 6 == 2 && (1..=4).contains(&at(16))
}

/// Walks over what follows a head.
struct Parts<'a> {
    record: &'a [u8],
    at: usize,
}

impl Parts<'_> {
    #[inline]
    fn call(&mut self, to_channel: bool, flags: u16, operation: u32) -> Result<Call, &'static str> {
        let mut call = self.head(to_channel, flags, operation)?;
        call.payload = self.rest();
        Ok(call)
    }

    /// The same without what follows.
    #[inline]
    fn head(&mut self, to_channel: bool, flags: u16, operation: u32) -> Result<Call, &'static str> {
        if flags & REQUIRED_FLAGS & !KNOWN_FLAGS != 0 {
            return Err("the record has a required flag that is unknown here");
        }
        let operation = if operation == NAMED {
            OperationName::Named {
                channel: self.short()?,
                packet: self.short()?,
            }
        } else {
            OperationName::Number(operation)
        };
        self.optional(flags)?;
        let metadata = if flags & FLAG_METADATA == 0 {
            Span::default()
        } else {
            self.long()?
        };
        if metadata.of(self.record).len() > METADATA_BYTES {
            return Err("the metadata exceeds 1024 bytes");
        }
        let content_type = if flags & FLAG_CONTENT_TYPE == 0 {
            Span::default()
        } else {
            self.short()?
        };
        if flags & FLAG_CONTENT_TYPE != 0 && content_type.is_empty() {
            return Err("the content type is empty");
        }
        let flow = if flags & FLAG_FLOW == 0 {
            Span::default()
        } else {
            self.take(FLOW_BYTES)?
        };
        if flags & FLAG_FLOW != 0 && !is_flow_field(flow.of(self.record)) {
            return Err("the flow is no UUIDv7 with an origin");
        }
        Ok(Call {
            to_channel,
            correlation: None,
            timeout_ms: None,
            operation,
            metadata,
            content_type,
            flow,
            payload: Span::default(),
        })
    }

    /// The blocks of a record that has no required flag.
    fn blocks(&mut self, flags: u16) -> Result<(), &'static str> {
        if flags & REQUIRED_FLAGS != 0 {
            return Err("the record has a required flag that is unknown here");
        }
        self.optional(flags)
    }

    /// Skips what optional flags bring: a newer minor may have put it there.
    fn optional(&mut self, flags: u16) -> Result<(), &'static str> {
        for _ in 0..(flags & !REQUIRED_FLAGS).count_ones() {
            self.long()?;
        }
        Ok(())
    }

    fn take(&mut self, length: usize) -> Result<Span, &'static str> {
        let end = self.at + length;
        if end > self.record.len() {
            return Err("a length in the record exceeds what is left of it");
        }
        let span = Span::new(self.at..end);
        self.at = end;
        Ok(span)
    }

    fn short(&mut self) -> Result<Span, &'static str> {
        let length = self.take(1)?.of(self.record).first().copied().unwrap_or_default();
        self.take(usize::from(length))
    }

    fn long(&mut self) -> Result<Span, &'static str> {
        let length = self.take(2)?.of(self.record).first_chunk().copied().unwrap_or_default();
        self.take(usize::from(u16::from_le_bytes(length)))
    }

    fn rest(&mut self) -> Span {
        let span = Span::new(self.at..self.record.len());
        self.at = self.record.len();
        span
    }
}

#[cfg(test)]
mod tests;
