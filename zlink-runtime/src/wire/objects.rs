//! Records for Spots and Actors: calls to one, control of one, and what goes to all that subscribe. Between nodes of a mesh only.
//!
//! It must not know what either is, nor who may be sent what.

use crate::id::Space;
use crate::message::codec::{ByteArray, Inline};

use super::write::{append, short};
use super::{
    Call, FLAG_ACTIVATION, Incoming, MAJOR, Malformed, NAMED, Parts, RecordKind, RequestHead, SendHead, Span,
    SpotTarget, fixed, malformed,
};

/// A one-way message or a request for a Spot or an Actor, found but not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectCall {
    pub(crate) space: Space,
    /// Named, without a channel.
    pub(crate) call: Call,
    pub(crate) generation: u64,
    pub(crate) owner_generation: u64,
    pub(crate) lease: u64,
    /// 1 to 255 bytes; whether it is a text is not checked yet.
    pub(crate) id: Span,
    /// An encoded `SpotActivation`; empty where it must not activate.
    pub(crate) activation: Span,
}

/// What a node is asked to do with its Spots or Actors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Control {
    pub(crate) kind: RecordKind,
    pub(crate) correlation: u64,
    pub(crate) timeout_ms: Option<u32>,
    pub(crate) payload: Span,
}

/// What goes to all Spots of a node that subscribe to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Publish {
    /// Named, with its channel.
    pub(crate) call: Call,
    pub(crate) topic: Span,
}

/// Reads the parts of a record of one of those kinds.
pub(super) fn parse(record: &[u8], kind: RecordKind) -> Result<Incoming, Malformed> {
    let is_request = !matches!(
        kind,
        RecordKind::SpotSend | RecordKind::SpotPublish | RecordKind::ActorSend
    );
    let space = match kind {
        RecordKind::ActorSend | RecordKind::ActorRequest => Space::Actors,
        _ => Space::Spots,
    };
    let (flags, operation, request, from) = if is_request {
        let (head, rest) = fixed::<RequestHead>(record)?;
        if head.correlation == 0 {
            return Err(malformed("a request has correlation 0"));
        }
        let timeout = (head.timeout_ms != 0).then_some(head.timeout_ms);
        (
            head.flags,
            head.operation,
            Some((head.correlation, timeout)),
            rest.len(),
        )
    } else {
        let (head, rest) = fixed::<SendHead>(record)?;
        (head.flags, head.operation, None, rest.len())
    };
    let correlation = request.map(|(correlation, _)| correlation);
    let bad = |what| Malformed { what, correlation };
    let mut parts = Parts {
        record,
        at: record.len() - from,
    };
    if operation != NAMED {
        return Err(bad("a record for objects names its packet by number"));
    }
    let activates = matches!(kind, RecordKind::SpotSend | RecordKind::SpotRequest) && flags & FLAG_ACTIVATION != 0;
    let common = if activates { flags & !FLAG_ACTIVATION } else { flags };
    let mut call = parts
        .head(kind == RecordKind::SpotPublish, common, operation)
        .map_err(bad)?;
    (call.correlation, call.timeout_ms) = (correlation, request.and_then(|(_, timeout)| timeout));
    Ok(match (kind, correlation) {
        (RecordKind::SpotSend | RecordKind::SpotRequest | RecordKind::ActorSend | RecordKind::ActorRequest, _) => {
            let target = parts.take(<SpotTarget as Inline>::Bytes::LEN).map_err(bad)?;
            let (target, _) = fixed::<SpotTarget>(target.of(record)).map_err(|error| bad(error.what))?;
            let id = parts.short().map_err(bad)?;
            if id.is_empty() {
                return Err(bad("the ID of an object is empty"));
            }
            let activation = if activates {
                parts.long().map_err(bad)?
            } else {
                Span::default()
            };
            if activates && activation.is_empty() {
                return Err(bad("an activation is empty"));
            }
            call.payload = parts.rest();
            Incoming::Object(ObjectCall {
                space,
                call,
                generation: target.generation,
                owner_generation: target.owner_generation,
                lease: target.lease,
                id,
                activation,
            })
        }
        (RecordKind::SpotPublish, _) => {
            let topic = parts.short().map_err(bad)?;
            if topic.is_empty() {
                return Err(bad("a topic is empty"));
            }
            call.payload = parts.rest();
            Incoming::Publish(Publish { call, topic })
        }
        (kind, Some(correlation)) => Incoming::Control(Control {
            kind,
            correlation,
            timeout_ms: call.timeout_ms,
            payload: parts.rest(),
        }),
        (_, None) => return Err(malformed("a control record is no request")),
    })
}

/// Appends everything of a publish but its payload. The names have at most 255 bytes, as their types check.
pub(crate) fn publish_head(out: &mut Vec<u8>, channel: &str, packet: &str, topic: &str, metadata: &[u8]) {
    let flags = if metadata.is_empty() { 0 } else { super::FLAG_METADATA };
    let kind = RecordKind::SpotPublish.to_wire();
    append(
        out,
        &SendHead {
            major: MAJOR,
            kind,
            flags,
            operation: NAMED,
        },
    );
    short(out, channel.as_bytes());
    short(out, packet.as_bytes());
    if !metadata.is_empty() {
        // At most 1024 bytes: metadata checks that when it is set.
        let length = u16::try_from(metadata.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(metadata);
    }
    short(out, topic.as_bytes());
}

#[cfg(test)]
mod tests;
