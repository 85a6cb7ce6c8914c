//! Writes records: heads and what stands before a payload, into a buffer that the caller uses again.

use crate::error::{Error, Execution};
use crate::id::Space;
use crate::message::codec::{ByteArray, Inline};

use super::{
    FLAG_ACTIVATION, FLAG_CONTENT_TYPE, FLAG_FLOW, FLAG_METADATA, FLOW_BYTES, FlowHead, MAJOR, NAMED, ProbeHead,
    RecordHead, RecordKind, ReplyHead, RequestHead, SendHead, SpotTarget,
};

/// Whom a call is for.
#[derive(Clone, Copy)]
pub(crate) enum To<'a> {
    Node,
    Channel,
    /// The ID has at most 255 bytes, as its type checks. An activation is encoded, of at most 2 KiB; no Actor has one.
    Object {
        space: Space,
        target: SpotTarget,
        id: &'a str,
        activation: Option<&'a [u8]>,
    },
    /// What a node is asked to do with its Spots or Actors: a request.
    Control(RecordKind),
    /// All that subscribe to a fanout.
    Subscribers,
}

impl To<'_> {
    fn kind(&self, request: bool) -> RecordKind {
        match (self, request) {
            (To::Node, false) => RecordKind::NodeSend,
            (To::Node, true) => RecordKind::NodeRequest,
            (To::Channel, false) => RecordKind::ChannelSend,
            (To::Channel, true) => RecordKind::ChannelRequest,
            (
                To::Object {
                    space: Space::Spots, ..
                },
                false,
            ) => RecordKind::SpotSend,
            (
                To::Object {
                    space: Space::Spots, ..
                },
                true,
            ) => RecordKind::SpotRequest,
            (
                To::Object {
                    space: Space::Actors, ..
                },
                false,
            ) => RecordKind::ActorSend,
            (
                To::Object {
                    space: Space::Actors, ..
                },
                true,
            ) => RecordKind::ActorRequest,
            (To::Control(kind), _) => *kind,
            (To::Subscribers, _) => RecordKind::FanoutEvent,
        }
    }
}

/// What a call's head says.
pub(crate) struct CallHead<'a> {
    pub(crate) to: To<'a>,
    /// Correlation and remaining milliseconds, for a request.
    pub(crate) request: Option<(u64, u32)>,
    pub(crate) operation: OperationRef<'a>,
    /// The encoded snapshot; empty for none.
    pub(crate) metadata: &'a [u8],
    /// Empty for FlatBuffers.
    pub(crate) content_type: &'a str,
    /// None where nobody traces.
    pub(crate) flow: Option<[u8; FLOW_BYTES]>,
}

/// How a call names what it is for.
#[derive(Clone, Copy)]
pub(crate) enum OperationRef<'a> {
    Number(u32),
    /// The channel is empty for Node direct. Both have at most 255 bytes, as their types check.
    Named {
        channel: &'a str,
        packet: &'a str,
    },
}

/// Appends everything of a call but its payload.
pub(crate) fn call(out: &mut Vec<u8>, head: &CallHead<'_>) {
    let mut flags = 0;
    if !head.metadata.is_empty() {
        flags |= FLAG_METADATA;
    }
    if !head.content_type.is_empty() {
        flags |= FLAG_CONTENT_TYPE;
    }
    if head.flow.is_some() {
        flags |= FLAG_FLOW;
    }
    if let To::Object {
        activation: Some(_), ..
    } = head.to
    {
        flags |= FLAG_ACTIVATION;
    }
    let operation = match head.operation {
        OperationRef::Number(number) => number,
        OperationRef::Named { .. } => NAMED,
    };
    let kind = head.to.kind(head.request.is_some()).to_wire();
    match head.request {
        None => {
            let head = SendHead {
                major: MAJOR,
                kind,
                flags,
                operation,
            };
            append(out, &head);
        }
        Some((correlation, timeout_ms)) => {
            append(
                out,
                &RequestHead {
                    major: MAJOR,
                    kind,
                    flags,
                    operation,
                    correlation,
                    timeout_ms,
                    reserved: 0,
                },
            );
        }
    }
    if flags == 0 && operation != NAMED && !matches!(head.to, To::Object { .. }) {
        return;
    }
    if let OperationRef::Named { channel, packet } = head.operation {
        short(out, channel.as_bytes());
        short(out, packet.as_bytes());
    }
    if !head.metadata.is_empty() {
        // At most 1024 bytes: metadata checks that when it is set.
        let length = u16::try_from(head.metadata.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(head.metadata);
    }
    if !head.content_type.is_empty() {
        short(out, head.content_type.as_bytes());
    }
    if let Some(flow) = &head.flow {
        out.extend_from_slice(flow);
    }
    if let To::Object {
        target, id, activation, ..
    } = head.to
    {
        append(out, &target);
        short(out, id.as_bytes());
        if let Some(activation) = activation {
            let length = u16::try_from(activation.len()).unwrap_or(u16::MAX);
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(activation);
        }
    }
}

pub(super) fn append<T: Inline>(out: &mut Vec<u8>, head: &T) {
    out.extend_from_slice(head.to_bytes().as_slice());
}

pub(super) fn short(out: &mut Vec<u8>, text: &[u8]) {
    let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
    out.push(length);
    out.extend_from_slice(text);
}

/// The head of a reply that carries a payload.
pub(crate) fn reply_head(correlation: u64) -> ReplyHead {
    let kind = RecordKind::Reply.to_wire();
    ReplyHead {
        major: MAJOR,
        kind,
        flags: 0,
        failed: 0,
        error: 0,
        executed: 0,
        reserved: 0,
        correlation,
    }
}

/// A whole reply that says what failed.
pub(crate) fn reply_failed(correlation: u64, error: &Error) -> Vec<u8> {
    let executed = u8::from(error.execution() == Execution::Unknown);
    let head = ReplyHead {
        failed: 1,
        error: error.kind().number(),
        executed,
        ..reply_head(correlation)
    };
    let mut out = Vec::new();
    append(&mut out, &head);
    out.extend_from_slice(error.message().as_bytes());
    out
}

/// A whole probe, or its answer.
pub(crate) fn probe(kind: RecordKind, id: u64) -> Vec<u8> {
    let mut out = Vec::new();
    append(
        &mut out,
        &ProbeHead {
            major: MAJOR,
            kind: kind.to_wire(),
            flags: 0,
            reserved: 0,
            id,
        },
    );
    out
}

/// A whole receive flow record.
pub(crate) fn flow(version: u64, paused: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let kind = RecordKind::Flow.to_wire();
    append(
        &mut out,
        &FlowHead {
            major: MAJOR,
            kind,
            flags: 0,
            paused: u32::from(paused),
            version,
        },
    );
    out
}

/// A whole service record: a head and its encoded message.
pub(crate) fn service(kind: RecordKind, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    append(
        &mut out,
        &RecordHead {
            major: MAJOR,
            kind: kind.to_wire(),
            flags: 0,
        },
    );
    out.extend_from_slice(message);
    out
}
