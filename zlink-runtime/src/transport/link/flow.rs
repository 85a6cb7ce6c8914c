//! The receive-flow record: the one record that a link writes and reads itself. It must not know when one is sent.

use crate::transport::Flow;

/// The protocol's major version, a record's first byte.
const MAJOR: u8 = 1;
/// The kind of a flow record, a record's second byte.
const KIND: u8 = 0x0f;
const LEN: usize = 16;

/// The record that tells `flow`.
pub(super) fn encode(flow: Flow) -> [u8; LEN] {
    let mut record = [0; LEN];
    record[0] = MAJOR;
    record[1] = KIND;
    record[4] = flow.paused.into();
    record[8..].copy_from_slice(&flow.version.to_le_bytes());
    record
}

/// Whether a record is one.
pub(super) fn is_flow(record: &[u8]) -> bool {
    record.get(1) == Some(&KIND)
}

/// What it tells; `None` where it is malformed.
pub(super) fn decode(record: &[u8]) -> Option<Flow> {
    let record: &[u8; LEN] = record.try_into().ok()?;
    let version = u64::from_le_bytes(*record[8..].first_chunk()?);
    let paused = match record[4] {
        0 => false,
        1 => true,
        _ => return None,
    };
    (record[0] == MAJOR).then_some(Flow { version, paused })
}
