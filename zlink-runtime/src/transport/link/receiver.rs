//! The receive side of a link without its socket, as fuzzing drives it: what a read brings goes in, records come out.

use bytes::BufMut;

use super::inbox::Inbox;
use crate::limit::RECEIVE_BUDGET_BYTES;
use crate::wire;

/// One lane's receive side.
#[allow(missing_debug_implementations, reason = "for fuzzing alone")]
pub struct Receiver {
    inbox: Inbox,
    fed: usize,
    records: usize,
}

impl Receiver {
    /// Before the first byte.
    #[must_use]
    pub fn new() -> Self {
        Self {
            inbox: Inbox::new(Vec::new(), 64 << 10, RECEIVE_BUDGET_BYTES),
            fed: 0,
            records: 0,
        }
    }

    /// Takes what a read brought; `false` where the link would be closed for it.
    ///
    /// # Panics
    /// Where more comes out than went in.
    pub fn receive(&mut self, mut bytes: &[u8]) -> bool {
        self.fed += bytes.len();
        while !bytes.is_empty() {
            let mut room = self.inbox.room();
            let count = bytes.len().min(room.remaining_mut());
            assert!(count > 0, "a read without room");
            room.put_slice(&bytes[..count]);
            drop(room);
            self.inbox.filled(count);
            bytes = &bytes[count..];
            loop {
                let Ok(many) = self.inbox.scan(wire::is_flow, |_| Ok(())) else {
                    return false;
                };
                let waiting = self.inbox.len();
                for left in (1..=waiting).rev() {
                    self.records += self.inbox.pop(left).map_or(0, |record| record.len());
                }
                if waiting == 0 && !many {
                    break;
                }
            }
            assert!(self.records + self.inbox.bytes() <= self.fed, "bytes from nowhere");
        }
        true
    }
}

impl Default for Receiver {
    fn default() -> Self {
        Self::new()
    }
}
