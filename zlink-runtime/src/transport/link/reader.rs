//! The reader of one lane: waits for bytes, takes a permit where one is needed, reads, and hands records on.
//!
//! It never reads without a permit what needs one, and never holds a permit while it waits for the peer.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::time::{Instant, Sleep, sleep};

use super::inbox::{Aside, Inbox};
use super::rotation::Rotation;
use super::shared::Shared;
use super::state::{Phase, Watcher, yield_once};
use super::stream::ReadHalf;
use crate::limit::HANDSHAKE_TIME;
use crate::permit::{Permit, Source};
use crate::transport::zmtp::{Command, ZmtpError};
use crate::transport::{BoxFuture, CloseReason, Flow, HANDSHAKE_RECORDS, Lane, Lanes, Sink, SocketType};
use crate::wire::{self, Incoming};

/// A lane's receiving half before the link is started.
pub(super) struct Unstarted {
    pub(super) lane: usize,
    pub(super) read: Box<dyn ReadHalf>,
    pub(super) leftover: Vec<u8>,
    /// Bytes that one read asks for at most.
    pub(super) most: usize,
}

/// Why a reader stops.
enum Stop {
    /// The peer has sent its last byte.
    End,
    /// The peer broke the protocol.
    Broken(ZmtpError),
    /// The connection broke.
    Lost(io::Error),
}

impl From<ZmtpError> for Stop {
    fn from(error: ZmtpError) -> Self {
        Stop::Broken(error)
    }
}

pub(super) struct Reader {
    shared: Arc<Shared>,
    sink: Arc<dyn Sink>,
    lane: Lane,
    read: Box<dyn ReadHalf>,
    inbox: Inbox,
    source: Source,
    /// Taken before the read that may bring its record.
    permit: Option<Permit>,
    admitted: bool,
    discards: bool,
    ending: bool,
    before_admission: usize,
    rotation: Rotation,
    seen: u64,
}

/// The peer has ended: nothing more can be sent to it.
pub(super) fn ending(shared: &Shared) {
    for queue in &shared.queues {
        queue.close();
    }
    let mut first = false;
    shared.state.change(|now| {
        first = now.phase == Phase::Open;
        if first {
            now.phase = Phase::Ending;
        }
        first
    });
    let sink = shared.life.lock().sink.clone();
    if let (true, Some(sink)) = (first, sink) {
        sink.ending();
    }
}

const fn watcher(lane: Lane) -> Watcher {
    match lane {
        Lane::Data => Watcher::DataReader,
        Lane::Completion => Watcher::CompletionReader,
    }
}

impl Reader {
    pub(super) fn new(shared: Arc<Shared>, sink: Arc<dyn Sink>, unstarted: Unstarted) -> Self {
        let lane = if unstarted.lane == 0 {
            Lane::Data
        } else {
            Lane::Completion
        };
        let inbox = Inbox::new(
            unstarted.leftover,
            shared.max_record.load(Ordering::Acquire),
            unstarted.most,
        );
        let source = shared.permits.source();
        Self {
            shared,
            sink,
            lane,
            read: unstarted.read,
            inbox,
            source,
            permit: None,
            admitted: false,
            discards: false,
            ending: false,
            before_admission: 0,
            rotation: Rotation::default(),
            seen: 0,
        }
    }

    /// Runs until the peer's last byte, or an error; being aborted is the third way to end.
    pub(super) async fn run(mut self) {
        let stop = match self.serve().await {
            Ok(never) => match never {},
            Err(stop) => stop,
        };
        match stop {
            Stop::End => {
                ending(&self.shared);
                let lanes = self.shared.queues.len();
                let mut all = false;
                self.shared.state.change(|now| {
                    now.ended_lanes += 1;
                    all = now.ended_lanes == lanes && !matches!(now.phase, Phase::Lingering(_));
                    true
                });
                if all {
                    self.shared.state.close(CloseReason::PeerClosed);
                }
            }
            Stop::Broken(error) => {
                tracing::warn!(target: "zlink::link", link = self.shared.id.0, %error, "the peer broke the protocol");
                self.shared.state.close(CloseReason::Protocol(error.to_string()));
            }
            Stop::Lost(error) => self.shared.state.close(CloseReason::Lost(error.to_string())),
        }
    }

    /// Whether bytes may be read before a permit is there: on the completion lane, and on a lane for everything,
    /// where only the head of the queue tells whether one is needed.
    fn reads_ahead(&self) -> bool {
        self.lane == Lane::Completion || self.shared.peer.lanes == Lanes::One || !self.admitted || self.discards
    }

    async fn serve(&mut self) -> Result<std::convert::Infallible, Stop> {
        loop {
            self.refresh();
            if self.lane == Lane::Completion && !self.admitted && !self.discards {
                self.changed().await;
                continue;
            }
            let many = self.scan()?;
            if self.inbox.len() > 0 {
                self.deliver().await?;
            } else if many {
                self.rotation.spend();
            } else {
                self.permit = None;
                self.fill().await?;
                continue;
            }
            self.rotate().await;
        }
    }

    /// Looks at what may have changed while it waited.
    fn refresh(&mut self) {
        if !self.admitted && self.shared.admitted.load(Ordering::Acquire) {
            self.admitted = true;
            self.inbox
                .set_max_record(self.shared.max_record.load(Ordering::Acquire));
        }
        if self.discards {
            self.inbox.discard();
        }
    }

    /// A change of the link's phase.
    fn note_phase(&mut self) {
        match self.shared.state.now().phase {
            Phase::Ending => self.ending = true,
            Phase::Lingering(_) if !self.discards => {
                self.discards = true;
                self.permit = None;
                self.source.cancel();
            }
            _ => {}
        }
    }

    fn scan(&mut self) -> Result<bool, Stop> {
        let shared = &self.shared;
        let many = self.inbox.scan(wire::is_flow, |aside| {
            match aside {
                Aside::Record(record) => match wire::parse(record) {
                    // Who takes no requests holds none back: it would only keep this side from noticing that it is gone.
                    _ if shared.peer.socket != SocketType::Router => {
                        return Err(ZmtpError::Malformed("receive flow of a peer that takes no requests"));
                    }
                    Ok(Incoming::Flow { version, paused }) => shared.peer_told(Flow { version, paused }),
                    _ => return Err(ZmtpError::Malformed("receive flow")),
                },
                Aside::Command(Command::Ping { ttl, context }) => {
                    shared.queue(Lane::Completion).pong(context);
                    let ttl = Some(Duration::from_millis(u64::from(ttl) * 100)).filter(|ttl| !ttl.is_zero());
                    shared.state.change(|now| std::mem::replace(&mut now.ttl, ttl) != ttl);
                }
                Aside::Command(Command::Error(reason)) => {
                    return Err(ZmtpError::Refused(reason.escape_ascii().to_string()));
                }
                Aside::Command(_) => {}
            }
            Ok(())
        })?;
        Ok(many)
    }

    /// Waits for bytes, takes a permit where one is needed first, and reads once.
    async fn fill(&mut self) -> Result<(), Stop> {
        self.readable().await?;
        self.refresh();
        if !self.reads_ahead() && !self.permitted().await? {
            return Ok(());
        }
        let mut room = self.inbox.room();
        let mut reading = pin!(self.read.read_buf(&mut room));
        // One attempt: where the readiness was no more than a rumour, the permit must not wait for the peer.
        let read = poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await;
        drop(room);
        match read {
            Poll::Pending => Ok(()),
            Poll::Ready(Ok(0)) => Err(Stop::End),
            Poll::Ready(Ok(count)) => {
                self.inbox.filled(count);
                if self.inbox.is_amid_record() {
                    self.shared.moved.fetch_add(1, Ordering::Relaxed);
                }
                if self.lane == Lane::Completion || self.shared.peer.lanes == Lanes::One {
                    self.shared.heard.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            }
            Poll::Ready(Err(error)) => Err(Stop::Lost(error)),
        }
    }

    /// Waits until a read brings something. Once the peer has begun to end, only as long as a handshake may take.
    async fn readable(&mut self) -> Result<(), Stop> {
        let mut patience: Option<Pin<Box<Sleep>>> = None;
        let mut waited = false;
        loop {
            let (read, shared, seen, watcher) = (&mut self.read, &self.shared, &mut self.seen, watcher(self.lane));
            let readable = poll_fn(|cx| {
                if let Poll::Ready(result) = read.poll_readable(cx) {
                    return Poll::Ready(Some(result));
                }
                waited = true;
                if shared.state.poll_change(watcher, seen, cx).is_ready() {
                    return Poll::Ready(None);
                }
                match &mut patience {
                    Some(patience) => patience
                        .as_mut()
                        .poll(cx)
                        .map(|()| Some(Err(io::ErrorKind::TimedOut.into()))),
                    None => Poll::Pending,
                }
            })
            .await;
            if std::mem::take(&mut waited) {
                self.rotation = Rotation::default();
            }
            match readable {
                Some(result) => return result.map_err(Stop::Lost),
                None => self.note_phase(),
            }
            if self.ending && patience.is_none() {
                patience = Some(Box::pin(sleep(HANDSHAKE_TIME)));
            }
            if self.discards {
                // It may have been told while bytes are there that nobody wants.
                self.refresh();
            }
        }
    }

    /// Makes sure of one permit; `false` where the link changed before there was one.
    async fn permitted(&mut self) -> Result<bool, Stop> {
        if self.permit.is_some() {
            return Ok(true);
        }
        let mut ended: Option<BoxFuture<'_, bool>> = None;
        let Self {
            read,
            shared,
            seen,
            source,
            inbox,
            lane,
            ..
        } = self;
        let watcher = watcher(*lane);
        let mut waited = false;
        let granted = poll_fn(|cx: &mut Context<'_>| {
            if shared.poll_answered(cx).is_pending() {
                // What was granted in the meantime is for those whose peers do read.
                source.cancel();
            } else if let Poll::Ready(Ok(mut grant)) = source.poll_acquire(cx, 1) {
                return Poll::Ready(Ok(grant.take()));
            }
            // A host that has closed its permits ends its links next: until then nothing is read.
            if !std::mem::replace(&mut waited, true) {
                shared.waiting_bytes.store(inbox.bytes(), Ordering::Relaxed);
                shared.for_permit.store(true, Ordering::Relaxed);
            }
            let watch = ended.get_or_insert_with(|| read.ended());
            if let Poll::Ready(unread) = watch.as_mut().poll(cx) {
                ending(shared);
                ended = Some(Box::pin(std::future::pending()));
                if !unread && inbox.len() == 0 {
                    return Poll::Ready(Err(Stop::End));
                }
            }
            shared.state.poll_change(watcher, seen, cx).map(|()| Ok(None))
        })
        .await;
        drop(ended);
        if waited {
            shared.for_permit.store(false, Ordering::Relaxed);
            shared.waiting_bytes.store(0, Ordering::Relaxed);
            self.rotation = Rotation::default();
        }
        self.permit = granted?;
        if self.permit.is_none() {
            self.note_phase();
        }
        Ok(self.permit.is_some())
    }

    /// Hands on what waits, as far as it may.
    async fn deliver(&mut self) -> Result<(), Stop> {
        let waiting = self.inbox.len();
        if self.discards {
            self.inbox.discard();
        } else if !self.admitted {
            if self.before_admission == HANDSHAKE_RECORDS {
                self.changed().await;
            } else {
                // One at a time: it may be the one that admits, and what stands behind it needs a permit.
                self.before_admission += 1;
                self.hand_on(1, 0);
            }
        } else {
            #[allow(clippy::cast_possible_truncation, reason = "at most one rotation's records")]
            self.shared.last_batch.store(waiting as u32, Ordering::Relaxed);
            let free = match self.lane {
                Lane::Completion => waiting,
                Lane::Data => self
                    .inbox
                    .waiting()
                    .take_while(|record| !self.needs_permit(record))
                    .count(),
            };
            if free > 0 {
                self.hand_on(free, 0);
            } else if self.permitted().await? {
                let ordinary = self.inbox.waiting().filter(|record| self.needs_permit(record)).count();
                self.hand_on(waiting, ordinary);
            }
        }
        Ok(())
    }

    fn needs_permit(&self, record: &[u8]) -> bool {
        self.admitted && self.shared.peer.takes_permit(record)
    }

    /// Hands on up to `count` records, of which `ordinary` need a permit: the one that is here already, and as many
    /// more as there are at once.
    fn hand_on(&mut self, count: usize, ordinary: usize) {
        let more = u32::try_from(ordinary.saturating_sub(1)).unwrap_or(u32::MAX);
        let mut grant = if more > 0 { self.source.try_acquire(more) } else { None };
        let (mut handed, at) = (0, Instant::now());
        self.rotation.begin(at);
        let all = ordinary == count;
        while handed < count && !(handed > 0 && self.rotation.is_spent()) {
            let mut permit = None;
            let next = || self.inbox.waiting().next();
            if ordinary > 0 && (all || next().is_some_and(|record| self.needs_permit(record))) {
                permit = self.permit.take().or_else(|| grant.as_mut()?.take());
                if permit.is_none() {
                    break;
                }
            }
            let Some(record) = self.inbox.pop(count - handed) else {
                break;
            };
            self.rotation.add(record.len(), Instant::now);
            self.sink.record(self.lane, record, permit, at);
            handed += 1;
        }
        self.shared.received.fetch_add(handed as u64, Ordering::Relaxed);
        self.shared.batches.fetch_add(u64::from(handed > 0), Ordering::Relaxed);
    }

    /// Lets others run where this lane has had its share.
    async fn rotate(&mut self) {
        if self.rotation.is_spent() {
            self.rotation = Rotation::default();
            yield_once().await;
        }
    }

    /// Waits for a change.
    async fn changed(&mut self) {
        let (shared, seen, watcher) = (&self.shared, &mut self.seen, watcher(self.lane));
        poll_fn(|cx| shared.state.poll_change(watcher, seen, cx)).await;
        self.note_phase();
    }
}
