//! What one lane has to send: joined records, a byte budget, and those who wait for room in it.
//!
//! It must not know a socket or a task: a writer takes what is here, and says when it is written.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use super::chunk::{Chunk, PREFIX, prefix};
use crate::limit::ALONE_BYTES;
use crate::transport::zmtp::{encode_ping, encode_pong, frame_head};
use crate::transport::{Flow, Record, Refused};
use crate::wire;

/// Those that wait for room go on once this part of the budget is free.
const RESUME_PART: usize = 4;

/// A sender that waits for room. One with `granted` holds it already and has yet to be polled.
struct Waiting {
    id: u64,
    /// What it needs, and holds once it is granted, until that [lapses](SendQueue::lapse).
    charge: usize,
    granted: bool,
    waker: Waker,
}

/// What goes before any record, needs no room, and of which only the latest value counts.
#[derive(Default)]
struct Control {
    ping: Option<u16>,
    pong: Option<Vec<u8>>,
    flow: Option<Flow>,
}

struct Inner {
    chunks: VecDeque<Chunk>,
    queued_records: u32,
    /// Bytes of chunks, of what the writer holds, and of what is granted.
    used: usize,
    budget: usize,
    max_record: usize,
    paused: bool,
    closed: bool,
    waiting: VecDeque<Waiting>,
    next_waiter: u64,
    control: Control,
    writer: Option<Waker>,
    /// Who goes on once nobody waits in line.
    uncrowded: Option<Waker>,
    spare: Vec<u8>,
    figures: Figures,
}

/// What a queue has done and holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    pub(super) queued_bytes: usize,
    pub(super) waiting_senders: usize,
    pub(super) records: u64,
    pub(super) messages: u64,
    pub(super) pauses: u64,
}

/// What a writer finds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) records: u32,
    pub(super) bytes: usize,
}

/// The send side of one lane.
pub(super) struct SendQueue {
    delimiter: bool,
    inner: Mutex<Inner>,
}

impl std::fmt::Debug for SendQueue {
    /// Without what is in it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.figures().fmt(f)
    }
}

impl SendQueue {
    /// With `delimiter`, each message starts with the empty frame that a REQ peer expects.
    pub(super) fn new(budget: usize, max_record: usize, delimiter: bool) -> Self {
        let inner = Inner {
            chunks: VecDeque::new(),
            queued_records: 0,
            used: 0,
            budget,
            max_record,
            paused: false,
            closed: false,
            waiting: VecDeque::new(),
            next_waiter: 0,
            control: Control::default(),
            writer: None,
            uncrowded: None,
            spare: Vec::new(),
            figures: Figures::default(),
        };
        Self {
            delimiter,
            inner: Mutex::new(inner),
        }
    }

    /// Whether messages start with an empty frame.
    pub(super) const fn delimiter(&self) -> bool {
        self.delimiter
    }

    /// Takes a record if there is room and nobody waits for some. Whoever was granted room and has yet to come for it
    /// does not hold others back: else every sender in a crowd would wait for its turn with every record.
    pub(super) fn try_push(&self, record: Record<'_>) -> Result<(), Refused> {
        let mut inner = self.inner.lock();
        inner.check(record.len())?;
        let charge = record.len() + PREFIX;
        if inner.is_crowded() || !inner.fits(charge) {
            return Err(Refused::Full);
        }
        inner.used += charge;
        if record.len() >= ALONE_BYTES {
            inner.append_alone([record.head, record.payload].concat());
        } else {
            inner.append(record.head, record.payload);
        }
        let writer = inner.writer.take();
        drop(inner);
        wake(writer);
        Ok(())
    }

    /// The same, waiting in line, which the link's own business goes to the head of: it is little, and the link ends
    /// without it. `ticket` is `None` at the first call, and is to be [withdrawn](Self::withdraw)
    /// where it is `Some` and no result was seen.
    pub(super) fn poll_push(
        &self,
        cx: &mut Context<'_>,
        ticket: &mut Option<u64>,
        record: &mut Vec<u8>,
    ) -> Poll<Result<(), Refused>> {
        let mut inner = self.inner.lock();
        let charge = record.len() + PREFIX;
        let checked = inner.check(record.len());
        let mut uncrowded = None;
        if let Some(id) = *ticket {
            let Some(at) = inner.find(id) else {
                return Poll::Ready(Err(Refused::Closed));
            };
            if checked.is_ok() && !inner.waiting[at].granted {
                inner.waiting[at].waker.clone_from(cx.waker());
                return Poll::Pending;
            }
            *ticket = None;
            if checked.is_err() {
                let wakers = inner.leave(at);
                drop(inner);
                wake(wakers);
                return Poll::Ready(checked);
            }
            let held = inner.waiting.remove(at).map_or(0, |waiting| waiting.charge);
            inner.used += charge.saturating_sub(held);
            uncrowded = inner.now_uncrowded();
        } else {
            checked?;
            if inner.is_crowded() || !inner.fits(charge) {
                let id = inner.next_waiter;
                inner.next_waiter += 1;
                let at = if wire::is_service(record) {
                    inner.waiting.partition_point(|waiting| waiting.granted)
                } else {
                    inner.waiting.len()
                };
                let waiting = Waiting {
                    id,
                    charge,
                    granted: false,
                    waker: cx.waker().clone(),
                };
                inner.waiting.insert(at, waiting);
                *ticket = Some(id);
                return Poll::Pending;
            }
            inner.used += charge;
        }
        if record.len() >= ALONE_BYTES {
            inner.append_alone(std::mem::take(record));
        } else {
            inner.append(record, &[]);
        }
        let writer = inner.writer.take();
        drop(inner);
        wake(writer);
        wake(uncrowded);
        Poll::Ready(Ok(()))
    }

    /// Gives up a place in the line, and the room that was granted to it.
    pub(super) fn withdraw(&self, ticket: u64) {
        let mut inner = self.inner.lock();
        let Some(at) = inner.find(ticket) else { return };
        let wakers = inner.leave(at);
        drop(inner);
        wake(wakers);
    }

    /// Whether somebody holds room and has not come for it.
    pub(super) fn holds_for_senders(&self) -> bool {
        let inner = self.inner.lock();
        inner
            .waiting
            .iter()
            .any(|waiting| waiting.granted && waiting.charge > 0)
    }

    /// Gives the room of those who have not come for it to others. They may still come at any time, and then wait for
    /// none: what they bring they have held until then, so that a sender which is not polled costs nobody else's room.
    pub(super) fn lapse(&self) {
        let mut inner = self.inner.lock();
        let mut lapsed = 0;
        for waiting in inner.waiting.iter_mut().filter(|waiting| waiting.granted) {
            lapsed += std::mem::take(&mut waiting.charge);
        }
        inner.used -= lapsed;
        let wakers = inner.grant();
        drop(inner);
        wake(wakers);
    }

    /// Waits until nobody waits in line.
    pub(super) fn poll_uncrowded(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.inner.lock();
        if inner.waiting.is_empty() {
            return Poll::Ready(());
        }
        inner.uncrowded = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Asks for a PING; `ttl` in tenths of a second.
    pub(super) fn ping(&self, ttl: u16) {
        self.control(|control| control.ping = Some(ttl));
    }

    /// Answers a PING. A second one before the first is sent replaces it.
    pub(super) fn pong(&self, context: &[u8]) {
        self.control(|control| control.pong = Some(context.to_vec()));
    }

    /// Tells the peer a receive flow.
    pub(super) fn flow(&self, flow: Flow) {
        self.control(|control| control.flow = Some(flow));
    }

    fn control(&self, set: impl FnOnce(&mut Control)) {
        let mut inner = self.inner.lock();
        set(&mut inner.control);
        let writer = inner.writer.take();
        drop(inner);
        wake(writer);
    }

    /// The peer wants no more, or wants more again.
    pub(super) fn set_paused(&self, paused: bool) {
        let mut inner = self.inner.lock();
        if paused && !inner.paused {
            inner.figures.pauses += 1;
        }
        inner.paused = paused;
        let wakers = inner.grant();
        drop(inner);
        wake(wakers);
    }

    /// Whether the peer wants no more.
    pub(super) fn paused(&self) -> bool {
        self.inner.lock().paused
    }

    /// From now on records have at most that many bytes.
    pub(super) fn set_max_record(&self, max_record: usize) {
        self.inner.lock().max_record = max_record;
    }

    /// Takes no more; what was taken is still there for the writer.
    pub(super) fn close(&self) {
        let mut inner = self.inner.lock();
        inner.closed = true;
        let waiting = std::mem::take(&mut inner.waiting);
        for left in waiting.iter().filter(|waiting| waiting.granted) {
            inner.used -= left.charge;
        }
        let writer = inner.writer.take();
        let uncrowded = inner.now_uncrowded();
        drop(inner);
        wake(writer);
        wake(uncrowded);
        wake(waiting.into_iter().map(|waiting| waiting.waker));
    }

    /// Takes no more, and drops what was taken.
    pub(super) fn clear(&self) {
        self.close();
        let mut inner = self.inner.lock();
        inner.used = 0;
        inner.queued_records = 0;
        inner.chunks = VecDeque::new();
        inner.spare = Vec::new();
    }

    /// For the writer: waits until something is to be sent, and tells what; `None` where the queue is closed and
    /// empty. `written` is what the writer has sent since.
    pub(super) fn poll_work(&self, cx: &mut Context<'_>, written: &mut Option<Chunk>) -> Poll<Option<Work>> {
        let mut inner = self.inner.lock();
        let wakers = match written.take() {
            Some(chunk) => inner.written(chunk),
            None => Vec::new(),
        };
        let control = &inner.control;
        let urgent = control.ping.is_some() || control.pong.is_some() || control.flow.is_some();
        let poll = if !inner.chunks.is_empty() || urgent {
            Poll::Ready(Some(Work {
                records: inner.queued_records,
                bytes: inner.used,
            }))
        } else if inner.closed {
            Poll::Ready(None)
        } else {
            inner.writer = Some(cx.waker().clone());
            Poll::Pending
        };
        drop(inner);
        wake(wakers);
        poll
    }

    /// For the writer: the next message, and before it what must not wait, appended to `control`.
    pub(super) fn take(&self, control: &mut Vec<u8>) -> Option<Chunk> {
        let mut inner = self.inner.lock();
        if let Some(ttl) = inner.control.ping.take() {
            encode_ping(control, ttl, b"");
        }
        if let Some(context) = inner.control.pong.take() {
            encode_pong(control, &context);
        }
        if let Some(flow) = inner.control.flow.take() {
            let record = wire::flow(flow.version, flow.paused);
            let (head, from) = frame_head(PREFIX + record.len(), false, false);
            control.extend_from_slice(&head[from..]);
            control.extend_from_slice(&prefix(record.len()));
            control.extend_from_slice(&record);
        }
        let chunk = inner.chunks.pop_front()?;
        inner.queued_records -= chunk.records();
        inner.figures.records += u64::from(chunk.records());
        inner.figures.messages += 1;
        Some(chunk)
    }

    /// Its figures.
    pub(super) fn figures(&self) -> Figures {
        let inner = self.inner.lock();
        Figures {
            queued_bytes: inner.used,
            waiting_senders: inner.waiting.len(),
            ..inner.figures
        }
    }
}

impl Inner {
    fn check(&self, len: usize) -> Result<(), Refused> {
        if self.closed {
            Err(Refused::Closed)
        } else if len > self.max_record {
            Err(Refused::TooLarge)
        } else {
            Ok(())
        }
    }

    /// A record larger than the budget goes through an empty queue.
    fn fits(&self, charge: usize) -> bool {
        !self.paused && (self.used == 0 || self.used + charge <= self.budget)
    }

    /// Whether anybody waits for room. Room is granted in order, so the last in line tells.
    fn is_crowded(&self) -> bool {
        self.waiting.back().is_some_and(|last| !last.granted)
    }

    fn find(&self, id: u64) -> Option<usize> {
        // Those that are granted are polled next, and stand in front.
        self.waiting.iter().position(|waiting| waiting.id == id)
    }

    /// Removes a waiter that got nothing from it; returns who may go on.
    fn leave(&mut self, at: usize) -> Vec<Waker> {
        match self.waiting.remove(at) {
            Some(Waiting {
                granted: true, charge, ..
            }) => self.used -= charge,
            Some(_) => {}
            None => return Vec::new(),
        }
        let mut wakers = self.grant();
        wakers.extend(self.now_uncrowded());
        wakers
    }

    /// Who is to be told that nobody waits in line any more.
    fn now_uncrowded(&mut self) -> Option<Waker> {
        if self.waiting.is_empty() {
            self.uncrowded.take()
        } else {
            None
        }
    }

    /// Grants room in the order of the line; returns who is to be woken.
    fn grant(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        let granted = self.waiting.partition_point(|waiting| waiting.granted);
        for at in granted..self.waiting.len() {
            let charge = self.waiting[at].charge;
            if !self.fits(charge) {
                break;
            }
            self.used += charge;
            let waiting = &mut self.waiting[at];
            waiting.granted = true;
            wakers.push(waiting.waker.clone());
        }
        if !wakers.is_empty() {
            // It looks whether they come.
            wakers.extend(self.writer.take());
        }
        wakers
    }

    fn append_alone(&mut self, record: Vec<u8>) {
        self.queued_records += 1;
        self.chunks.push_back(Chunk::alone(record));
    }

    fn append(&mut self, head: &[u8], payload: &[u8]) {
        self.queued_records += 1;
        let len = head.len() + payload.len();
        if !self.chunks.back().is_some_and(|chunk| chunk.has_room(len)) {
            self.chunks.push_back(Chunk::joined(std::mem::take(&mut self.spare)));
        }
        if let Some(chunk) = self.chunks.back_mut() {
            chunk.push(head, payload);
        }
    }

    fn written(&mut self, chunk: Chunk) -> Vec<Waker> {
        self.used = self.used.saturating_sub(chunk.charge());
        if let Some(spare) = chunk
            .into_spare()
            .filter(|spare| spare.capacity() > self.spare.capacity())
        {
            self.spare = spare;
        }
        // Not with every message: then each would make room for one record of each sender that waits, and all of them
        // would wait again. A record that needs more room than this gets it a little later.
        if self.is_crowded() && self.used <= self.budget - self.budget / RESUME_PART {
            self.grant()
        } else {
            Vec::new()
        }
    }
}

fn wake(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}

#[cfg(test)]
mod tests;
