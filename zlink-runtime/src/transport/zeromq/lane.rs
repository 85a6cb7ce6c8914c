//! One lane: what waits to be sent on it within its byte budget, and what has come and waits to be handed on.
//!
//! It must not know sockets; one of `socket`'s tasks takes from it and gives to it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{OnceLock, Weak};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::link::Shared;
use super::message::{Message, PREFIX, RECORDS};
use super::socket::Work;
use crate::limit::{ALONE_BYTES, COALESCE_BYTES};
use crate::permit::Flow;
use crate::transport::sending::Line;
use crate::transport::{LinkStats, Offer, Record, Refused};

/// What goes out.
struct Out {
    /// In the order in which it was asked for, ahead of records. Every kind stands in it at most once.
    control: VecDeque<Message>,
    owed: u64,
    queue: VecDeque<Vec<u8>>,
    queued: usize,
    /// Sent, and not yet handed on by the peer.
    on_the_way: usize,
    waiting: VecDeque<(u64, Waker)>,
    tickets: u64,
    uncrowded: Option<Waker>,
    paused: bool,
    closed: bool,
    ended: bool,
    budget: usize,
    max_record: usize,
    stats: LinkStats,
}

/// What has come.
#[derive(Default)]
pub(super) struct In {
    records: VecDeque<(Bytes, Instant)>,
    bytes: usize,
    /// The peer has sent its last message, or its connection is gone.
    pub(super) ended: bool,
    /// A flow that came before there was a link.
    pub(super) flow: Option<Flow>,
}

pub(super) struct LaneIo {
    /// How the ROUTER calls its connection; a DEALER has one only.
    pub(super) identity: Bytes,
    work: mpsc::UnboundedSender<Work>,
    scheduled: AtomicBool,
    /// What the inbox holds at most.
    budget: usize,
    out: Mutex<Out>,
    pub(super) inbox: Mutex<In>,
    pub(super) arrived: Notify,
    pub(super) link: OnceLock<Weak<Shared>>,
    /// Rises with every message.
    pub(super) heard: AtomicU64,
}

impl std::fmt::Debug for LaneIo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LaneIo").finish_non_exhaustive()
    }
}

impl Drop for LaneIo {
    fn drop(&mut self) {
        // Where nobody listens the socket is gone, and the connection with it.
        let _ = self.work.send(Work::Close(self.identity.clone()));
    }
}

impl Out {
    fn room(&self, len: usize) -> bool {
        let held = self.queued + self.on_the_way;
        !self.paused && (held == 0 || held + len <= self.budget)
    }

    fn check(&self, len: usize) -> Result<(), Refused> {
        if self.closed {
            return Err(Refused::Closed);
        }
        if len > self.max_record {
            return Err(Refused::TooLarge);
        }
        Ok(())
    }

    fn push(&mut self, record: Vec<u8>) {
        self.queued += record.len();
        self.stats.sent += 1;
        self.queue.push_back(record);
    }

    /// Who may find room now.
    fn next_waker(&mut self) -> Option<Waker> {
        self.waiting.front().map(|(_, waker)| waker.clone())
    }
}

impl LaneIo {
    pub(super) fn new(identity: Bytes, work: mpsc::UnboundedSender<Work>, offer: &Offer) -> Self {
        let out = Out {
            control: VecDeque::new(),
            owed: 0,
            queue: VecDeque::new(),
            queued: 0,
            on_the_way: 0,
            waiting: VecDeque::new(),
            tickets: 0,
            uncrowded: None,
            paused: false,
            closed: false,
            ended: false,
            budget: offer.budget,
            max_record: offer.max_record,
            stats: LinkStats::default(),
        };
        Self {
            identity,
            work,
            scheduled: AtomicBool::new(false),
            budget: offer.receives(offer.budget),
            out: Mutex::new(out),
            inbox: Mutex::default(),
            arrived: Notify::new(),
            link: OnceLock::new(),
            heard: AtomicU64::new(0),
        }
    }

    /// Has the socket's task look here.
    fn serve(self: &std::sync::Arc<Self>) {
        if !self.scheduled.swap(true, Ordering::AcqRel) {
            // Where nobody listens the connection is gone, and the link is told so.
            let _ = self.work.send(Work::Serve(self.clone()));
        }
    }

    pub(super) fn try_push(self: &std::sync::Arc<Self>, record: Record<'_>) -> Result<(), Refused> {
        let mut out = self.out.lock();
        out.check(record.len())?;
        if !out.waiting.is_empty() || !out.room(record.len()) {
            return Err(Refused::Full);
        }
        out.push([record.head, record.payload].concat());
        drop(out);
        self.serve();
        Ok(())
    }

    /// Waits until nobody waits in line.
    pub(super) fn poll_uncrowded(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut out = self.out.lock();
        if out.waiting.is_empty() {
            return Poll::Ready(());
        }
        out.uncrowded = Some(cx.waker().clone());
        Poll::Pending
    }

    pub(super) fn set_paused(&self, paused: bool) {
        let mut out = self.out.lock();
        out.stats.pauses += u64::from(paused && !out.paused);
        out.paused = paused;
        let next = if paused { None } else { out.next_waker() };
        drop(out);
        next.into_iter().for_each(Waker::wake);
    }

    pub(super) fn paused(&self) -> bool {
        self.out.lock().paused
    }

    /// The peer takes in so many bytes only.
    pub(super) fn limit(&self, budget: u64) {
        let mut out = self.out.lock();
        out.budget = out.budget.min(usize::try_from(budget).unwrap_or(usize::MAX));
    }

    pub(super) fn set_max_record(&self, max_record: usize) {
        self.out.lock().max_record = max_record;
    }

    /// Sends it ahead of records, in the place of one of its kind that has not left yet.
    pub(super) fn control(self: &std::sync::Arc<Self>, message: Message) {
        let mut out = self.out.lock();
        let kind = std::mem::discriminant(&message);
        out.control.retain(|other| std::mem::discriminant(other) != kind);
        out.control.push_back(message);
        drop(out);
        self.serve();
    }

    /// The peer has handed on so many bytes.
    pub(super) fn room(&self, bytes: u64) {
        let mut out = self.out.lock();
        out.on_the_way = out
            .on_the_way
            .saturating_sub(usize::try_from(bytes).unwrap_or(usize::MAX));
        let next = out.next_waker();
        drop(out);
        next.into_iter().for_each(Waker::wake);
    }

    /// Takes nothing more; what was taken is sent, then an end. `clear` drops it instead.
    pub(super) fn close(self: &std::sync::Arc<Self>, clear: bool) {
        let mut out = self.out.lock();
        out.closed = true;
        if clear {
            out.queue.clear();
            out.queued = 0;
        }
        let waiting = std::mem::take(&mut out.waiting);
        let uncrowded = out.uncrowded.take();
        drop(out);
        waiting.into_iter().for_each(|(_, waker)| waker.wake());
        uncrowded.into_iter().for_each(Waker::wake);
        self.serve();
    }

    /// Whether the end was sent.
    pub(super) fn ended(&self) -> bool {
        self.out.lock().ended
    }

    pub(super) fn add_stats(&self, stats: &mut LinkStats) {
        let out = self.out.lock();
        stats.queued_bytes += out.queued;
        stats.waiting_senders += out.waiting.len();
        stats.sent += out.stats.sent;
        stats.messages_sent += out.stats.messages_sent;
        stats.pauses += out.stats.pauses;
    }

    /// The next message to send. Small records that wait go together, large ones alone.
    pub(super) fn take(&self) -> Option<Bytes> {
        self.scheduled.store(false, Ordering::Release);
        let mut out = self.out.lock();
        if let Some(control) = out.control.pop_front() {
            return Some(control.encode());
        }
        if out.owed > 0 {
            return Some(Message::Room(std::mem::take(&mut out.owed)).encode());
        }
        if out.queue.is_empty() {
            if !out.closed || std::mem::replace(&mut out.ended, true) {
                return None;
            }
            drop(out);
            // Its keeper may wait for just that.
            if let Some(link) = self.link.get().and_then(Weak::upgrade) {
                link.state.send_modify(|_| {});
            }
            return Some(Message::End.encode());
        }
        let mut batch = vec![RECORDS];
        while let Some(record) = out.queue.front() {
            let alone = record.len() >= ALONE_BYTES || batch.len() + PREFIX + record.len() > COALESCE_BYTES;
            if alone && batch.len() > 1 {
                break;
            }
            // Its length is within the greatest record's, which is below 2^31.
            batch.extend_from_slice(&u32::try_from(record.len()).unwrap_or(u32::MAX).to_le_bytes());
            batch.extend_from_slice(record);
            let len = record.len();
            out.queue.pop_front();
            out.queued -= len;
            out.on_the_way += len;
        }
        out.stats.messages_sent += 1;
        Some(batch.into())
    }

    /// Records that have come. What is wrong, where the peer does not keep to its bounds.
    pub(super) fn came(&self, mut records: Bytes) -> Result<(), &'static str> {
        let (budget, max_record) = (self.budget, self.out.lock().max_record);
        let now = Instant::now();
        let mut inbox = self.inbox.lock();
        while !records.is_empty() {
            let len = records.try_get_u32_le().map_err(|_| "record length")?;
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            if len == 0 || len > records.len() {
                return Err("record length");
            }
            if len > max_record {
                return Err("a record exceeds the greatest that is taken");
            }
            if inbox.bytes > 0 && inbox.bytes + len > budget {
                return Err("it sends beyond the budget");
            }
            inbox.bytes += len;
            // A copy: a small record must not pin the message it came in.
            inbox
                .records
                .push_back((Bytes::copy_from_slice(&records.split_to(len)), now));
        }
        drop(inbox);
        self.arrived.notify_one();
        Ok(())
    }

    /// Whether the oldest record fits `what`; `None` where there is none.
    pub(super) fn peek(&self, what: impl FnOnce(&[u8]) -> bool) -> Option<bool> {
        self.inbox.lock().records.front().map(|(record, _)| what(record))
    }

    /// The oldest record, and when it came; its bytes are the peer's again.
    pub(super) fn pop(self: &std::sync::Arc<Self>) -> Option<(Bytes, Instant)> {
        let mut inbox = self.inbox.lock();
        let (record, at) = inbox.records.pop_front()?;
        inbox.bytes -= record.len();
        drop(inbox);
        self.out.lock().owed += record.len() as u64;
        self.serve();
        Some((record, at))
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        self.inbox.lock().bytes
    }

    /// The peer has sent its last message on it.
    pub(super) fn end(&self) {
        let first = !std::mem::replace(&mut self.inbox.lock().ended, true);
        self.arrived.notify_one();
        if let (true, Some(link)) = (first, self.link.get().and_then(Weak::upgrade)) {
            link.peer_ends();
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.inbox.lock().ended
    }
}

impl Line for std::sync::Arc<LaneIo> {
    fn poll_push(
        &self,
        cx: &mut Context<'_>,
        ticket: &mut Option<u64>,
        record: &mut Vec<u8>,
    ) -> Poll<Result<(), Refused>> {
        let mut out = self.out.lock();
        if let Err(refused) = out.check(record.len()) {
            return Poll::Ready(Err(refused));
        }
        let first = match (*ticket, out.waiting.front()) {
            (_, None) => true,
            (Some(mine), Some((first, _))) => mine == *first,
            (None, Some(_)) => false,
        };
        if first && out.room(record.len()) {
            out.push(std::mem::take(record));
            if ticket.take().is_some() {
                out.waiting.pop_front();
            }
            let next = out.next_waker();
            let uncrowded = if next.is_none() { out.uncrowded.take() } else { None };
            drop(out);
            next.into_iter().chain(uncrowded).for_each(Waker::wake);
            self.serve();
            return Poll::Ready(Ok(()));
        }
        match *ticket {
            None => {
                out.tickets += 1;
                let mine = out.tickets;
                out.waiting.push_back((mine, cx.waker().clone()));
                *ticket = Some(mine);
            }
            Some(mine) => {
                if let Some((_, waker)) = out.waiting.iter_mut().find(|(ticket, _)| *ticket == mine) {
                    waker.clone_from(cx.waker());
                }
            }
        }
        Poll::Pending
    }

    fn withdraw(&self, ticket: u64) {
        let mut out = self.out.lock();
        out.waiting.retain(|(waiting, _)| *waiting != ticket);
        let next = out.next_waker();
        let uncrowded = if next.is_none() { out.uncrowded.take() } else { None };
        drop(out);
        next.into_iter().chain(uncrowded).for_each(Waker::wake);
    }
}
