//! A send that waits for room on a lane, whichever transport has the lane.
//!
//! It must not know what room is: a lane grants it, in its own order.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::Instant;

use super::Refused;
use crate::wire;

/// Where senders wait in line.
pub(super) trait Line: Unpin {
    /// Takes the record once there is room for it; until then `ticket` is its place in the line.
    fn poll_push(
        &self,
        cx: &mut Context<'_>,
        ticket: &mut Option<u64>,
        record: &mut Vec<u8>,
    ) -> Poll<Result<(), Refused>>;

    /// Gives a place in the line up; without effect where its record was taken.
    fn withdraw(&self, ticket: u64);
}

/// Waits in `line` until `record` is taken. Dropped before that, it withdraws the record.
pub(super) struct Sending<L: Line> {
    line: L,
    record: Vec<u8>,
    ticket: Option<u64>,
    /// Up to when a request's head knows how long it has waited.
    told: Instant,
}

impl<L: Line> Sending<L> {
    pub(super) fn new(line: L, record: Vec<u8>) -> Self {
        Self {
            line,
            record,
            ticket: None,
            told: Instant::now(),
        }
    }
}

impl<L: Line> Future for Sending<L> {
    type Output = Result<(), Refused>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            line,
            record,
            ticket,
            told,
        } = &mut *self;
        if ticket.is_some() {
            let waited = told.elapsed();
            *told += waited;
            wire::spend(record, waited);
        }
        line.poll_push(cx, ticket, record)
    }
}

impl<L: Line> Drop for Sending<L> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.line.withdraw(ticket);
        }
    }
}
