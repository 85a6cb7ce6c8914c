//! What fuzzing reaches inside the runtime, past every door that is closed to applications.
//!
//! It only calls: what it finds wrong is wrong in the room that it calls. It is there with `--cfg fuzzing` and never
//! else.

#![allow(
    clippy::panic,
    missing_docs,
    reason = "a finding is a panic; nobody reads these pages"
)]

use crate::mesh::NodeInfo;
use crate::message::codec;
use crate::message::metadata::MetadataView;
use crate::wire::{self, CallHead, Incoming, OperationName, OperationRef, RecordKind};

pub use crate::transport::Receiver;

/// Reads a record as a link's user does, down to the messages of the handshake.
pub fn record(bytes: &[u8]) {
    match wire::parse(bytes) {
        Ok(Incoming::Call(call)) => called(bytes, &call),
        Ok(Incoming::Service(RecordKind::Hello | RecordKind::Admit, body)) => {
            for by_server in [false, true] {
                if let Ok(hello) = codec::decode::<wire::Hello>(body.of(bytes))
                    && let Ok(info) = NodeInfo::from_wire(hello, by_server)
                {
                    // What was let in can be told again.
                    drop(codec::encode(&info.to_wire(), <[u8]>::to_vec).expect("a description encodes"));
                }
            }
        }
        Ok(Incoming::Service(RecordKind::Update, body)) => drop(codec::decode::<wire::Update>(body.of(bytes))),
        Ok(Incoming::Service(RecordKind::Reject, body)) => drop(codec::decode::<wire::Reject>(body.of(bytes))),
        Ok(_) | Err(_) => {}
    }
}

/// Written again, a call says the same.
fn called(bytes: &[u8], call: &wire::Call) {
    let _ = MetadataView::parse(call.metadata.of(bytes));
    let text = |span: wire::Span| std::str::from_utf8(span.of(bytes));
    let operation = match call.operation {
        OperationName::Number(number) => OperationRef::Number(number),
        OperationName::Named { channel, packet } => match (text(channel), text(packet)) {
            (Ok(channel), Ok(packet)) => OperationRef::Named { channel, packet },
            _ => return,
        },
    };
    let Ok(content_type) = text(call.content_type) else {
        return;
    };
    let mut again = Vec::new();
    let head = CallHead {
        to: if call.to_channel {
            crate::wire::To::Channel
        } else {
            crate::wire::To::Node
        },
        request: call
            .correlation
            .map(|correlation| (correlation, call.timeout_ms.unwrap_or(0))),
        operation,
        metadata: call.metadata.of(bytes),
        content_type,
        flow: call.flow.of(bytes).first_chunk().copied(),
    };
    wire::call(&mut again, &head);
    again.extend_from_slice(call.payload.of(bytes));
    let Ok(Incoming::Call(second)) = wire::parse(&again) else {
        panic!("a call that was written does not parse");
    };
    assert_eq!(
        (second.to_channel, second.correlation),
        (call.to_channel, call.correlation)
    );
    assert_eq!(second.timeout_ms, call.timeout_ms);
    for (one, other) in [
        (second.metadata, call.metadata),
        (second.content_type, call.content_type),
        (second.flow, call.flow),
        (second.payload, call.payload),
    ] {
        assert_eq!(one.of(&again), other.of(bytes), "a part of a call changes on its way");
    }
}
