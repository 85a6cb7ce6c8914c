//! The connections of a network and what is under way on them. Pure but for its draws: time is handed in, and what
//! must be woken is returned.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::time::Instant;

use super::Conditions;
use super::trace::{Happened, Trace, TraceEvent};
use crate::random::Random;

/// What one direction of a connection holds, under way or unread, before its writer waits: about what two kernels do.
const WINDOW: usize = 256 * 1024;

/// A node, by the order in which it came.
pub(super) type NodeId = usize;

/// One end of one connection: the dialler's is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndId {
    pub(super) connection: u64,
    pub(super) side: usize,
}

impl EndId {
    pub(super) const fn other(self) -> Self {
        Self {
            side: 1 - self.side,
            ..self
        }
    }
}

/// Woken after the lock is released.
pub(super) type Wakes = Vec<Waker>;

#[derive(Debug)]
enum Piece {
    Bytes(Bytes),
    End,
    Reset,
}

/// What an end sees, and what is on the way to it.
#[derive(Debug)]
struct End {
    node: NodeId,
    flying: VecDeque<(Instant, Piece)>,
    /// Bytes of `flying` and `arrived`.
    held: usize,
    /// For when its front has a place in the schedule.
    armed: Option<Instant>,
    /// Nothing that is sent later arrives before this.
    latest: Instant,
    arrived: BytesMut,
    ended: bool,
    broken: Option<io::ErrorKind>,
    reads: bool,
    writes: bool,
    waiting: Vec<Waker>,
}

impl End {
    fn new(node: NodeId, now: Instant) -> Self {
        Self {
            node,
            flying: VecDeque::new(),
            held: 0,
            armed: None,
            latest: now,
            arrived: BytesMut::new(),
            ended: false,
            broken: None,
            reads: true,
            writes: true,
            waiting: Vec::new(),
        }
    }

    fn wait(&mut self, cx: &Context<'_>) {
        if !self.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.waiting.push(cx.waker().clone());
        }
    }

    fn is_closed(&self) -> bool {
        !self.reads && !self.writes
    }
}

/// Where a connection of that number is kept.
fn place(connection: u64) -> usize {
    usize::try_from(connection).map_or(usize::MAX, |number| number.wrapping_sub(1))
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) random: Random,
    pub(super) usual: Conditions,
    pub(super) paths: BTreeMap<(NodeId, NodeId), Conditions>,
    cut: BTreeSet<(NodeId, NodeId)>,
    /// By their numbers, from 1 on; those that nobody holds an end of are gone.
    connections: Vec<Option<Box<[End; 2]>>>,
    open: usize,
    schedule: BTreeMap<(Instant, u64), EndId>,
    scheduled: u64,
    began: Instant,
    pub(super) trace: Trace,
}

impl State {
    pub(super) fn new(random: Random, now: Instant) -> Self {
        Self {
            random,
            usual: Conditions::default(),
            paths: BTreeMap::new(),
            cut: BTreeSet::new(),
            connections: Vec::new(),
            open: 0,
            schedule: BTreeMap::new(),
            scheduled: 0,
            began: now,
            trace: Trace::default(),
        }
    }

    pub(super) fn note(&mut self, now: Instant, happened: Happened) {
        let at = now.saturating_duration_since(self.began);
        self.trace.push(TraceEvent { at, happened });
    }

    pub(super) fn conditions(&self, from: NodeId, to: NodeId) -> &Conditions {
        self.paths.get(&(from, to)).unwrap_or(&self.usual)
    }

    /// Whether something of that probability happens.
    pub(super) fn happens(&self, probability: f64) -> bool {
        #[allow(clippy::cast_precision_loss, reason = "53 bits are exact")]
        let drawn = (self.random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        drawn < probability
    }

    /// How long something small takes now.
    pub(super) fn delay(&self, from: NodeId, to: NodeId) -> Duration {
        let conditions = self.conditions(from, to);
        let spread = u64::try_from(conditions.jitter.as_nanos()).unwrap_or(u64::MAX);
        let more = if spread == 0 { 0 } else { self.random.bits() % spread };
        conditions.latency + Duration::from_nanos(more)
    }

    pub(super) fn is_cut(&self, from: NodeId, to: NodeId) -> bool {
        self.cut.contains(&(from, to))
    }

    pub(super) fn cut(&mut self, from: NodeId, to: NodeId, now: Instant) {
        if from != to && self.cut.insert((from, to)) {
            self.note(now, Happened::Cut(from, to));
        }
    }

    /// Heals a cut; what was held on the way sets out again.
    pub(super) fn heal(&mut self, from: NodeId, to: NodeId, now: Instant) {
        if !self.cut.remove(&(from, to)) {
            return;
        }
        self.note(now, Happened::Healed(from, to));
        for connection in self.between(|_, _| true) {
            for side in 0..2 {
                let at = EndId { connection, side };
                if self.way_to(at) == Some((from, to)) {
                    let again = now + self.delay(from, to);
                    if let Some(end) = self.end(at)
                        && let Some((due, _)) = end.flying.front_mut()
                        && end.armed.is_none()
                    {
                        *due = again.max(*due);
                        self.arm(at);
                    }
                }
            }
        }
    }

    /// Takes back all conditions; what is under way arrives at the usual time.
    pub(super) fn calm(&mut self, now: Instant) {
        self.usual = Conditions::default();
        self.paths.clear();
        let soon = now + self.usual.latency;
        for connection in self.between(|_, _| true) {
            for side in 0..2 {
                let at = EndId { connection, side };
                let Some(end) = self.end(at) else { continue };
                end.latest = end.latest.min(soon);
                for (due, _) in &mut end.flying {
                    *due = soon.min(*due);
                }
                if end.armed.is_some() {
                    self.arm(at);
                }
            }
        }
    }

    pub(super) fn cuts(&self) -> Vec<(NodeId, NodeId)> {
        self.cut.iter().copied().collect()
    }

    /// Makes a connection.
    pub(super) fn connect(&mut self, from: NodeId, to: NodeId, now: Instant) -> u64 {
        self.connections
            .push(Some(Box::new([End::new(from, now), End::new(to, now)])));
        self.open += 1;
        let connection = self.connections.len() as u64;
        self.note(now, Happened::Connected { connection, from, to });
        connection
    }

    fn end(&mut self, id: EndId) -> Option<&mut End> {
        let ends = self.connections.get_mut(place(id.connection))?.as_mut()?;
        ends.get_mut(id.side)
    }

    /// From whom to whom what reaches that end travels.
    fn way_to(&self, id: EndId) -> Option<(NodeId, NodeId)> {
        let ends = self.connections.get(place(id.connection))?.as_ref()?;
        Some((ends.get(1 - id.side)?.node, ends.get(id.side)?.node))
    }

    /// Sends a piece to an end, behind all that is on the way there.
    fn send(&mut self, to: EndId, piece: Piece, now: Instant) {
        let Some((from, node)) = self.way_to(to) else { return };
        let arrival = now + self.delay(from, node);
        let rate = self.conditions(from, node).bytes_per_second;
        let Some(end) = self.end(to) else { return };
        let mut due = arrival.max(end.latest);
        if let (Piece::Bytes(bytes), Some(rate)) = (&piece, rate) {
            let nanos = (bytes.len() as u128 * 1_000_000_000) / u128::from(rate.max(1));
            due += Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        }
        if let Piece::Bytes(bytes) = &piece {
            end.held += bytes.len();
        }
        end.latest = due;
        end.flying.push_back((due, piece));
        self.arm(to);
    }

    /// Gives the front of what flies to an end its place in the schedule.
    fn arm(&mut self, at: EndId) {
        let Some(end) = self.end(at) else { return };
        let Some((due, _)) = end.flying.front() else { return };
        let due = *due;
        if end.armed.is_none_or(|armed| due < armed) {
            end.armed = Some(due);
            self.scheduled += 1;
            self.schedule.insert((due, self.scheduled), at);
        }
    }

    /// When something is to arrive next.
    pub(super) fn next(&self) -> Option<Instant> {
        self.schedule.keys().next().map(|(due, _)| *due)
    }

    /// Lets everything arrive that is due.
    pub(super) fn arrive(&mut self, now: Instant, wakes: &mut Wakes) {
        while let Some(entry) = self.schedule.first_entry() {
            let due = entry.key().0;
            if due > now {
                return;
            }
            let at = entry.remove();
            let cut = self.way_to(at).is_some_and(|(from, to)| self.is_cut(from, to));
            let Some(end) = self.end(at) else { continue };
            if end.armed != Some(due) {
                // What it was scheduled for was dropped, and what came in its place has a time of its own.
                continue;
            }
            end.armed = None;
            let due = end.flying.front().is_some_and(|(due, _)| *due <= now);
            if cut && due {
                continue;
            }
            let piece = if due { end.flying.pop_front() } else { None };
            self.arm(at);
            if let Some((_, piece)) = piece {
                self.arrived(at, piece, now, wakes);
            }
        }
    }

    fn arrived(&mut self, at: EndId, piece: Piece, now: Instant, wakes: &mut Wakes) {
        let connection = at.connection;
        let Some(end) = self.end(at) else { return };
        let node = end.node;
        wakes.append(&mut end.waiting);
        let happened = match piece {
            Piece::Bytes(bytes) if end.is_closed() => {
                end.held -= bytes.len();
                // A closed socket answers whatever comes with a reset.
                self.send(at.other(), Piece::Reset, now);
                return;
            }
            Piece::Bytes(bytes) => {
                end.arrived.extend_from_slice(&bytes);
                Happened::Arrived {
                    connection,
                    at: node,
                    bytes: bytes.len(),
                }
            }
            Piece::End => {
                end.ended = true;
                Happened::Ended { connection, at: node }
            }
            Piece::Reset => {
                end.broken.get_or_insert(io::ErrorKind::ConnectionReset);
                end.flying.clear();
                end.held = end.arrived.len();
                Happened::Reset { connection, at: node }
            }
        };
        self.note(now, happened);
        self.forget(connection);
    }

    /// Breaks a connection: what is under way is lost, and both ends hear of it.
    pub(super) fn break_connection(&mut self, connection: u64, now: Instant) {
        self.note(now, Happened::Broke { connection });
        for side in 0..2 {
            let at = EndId { connection, side };
            if let Some(end) = self.end(at) {
                end.flying.clear();
                end.held = end.arrived.len();
                end.latest = now;
            }
            self.send(at, Piece::Reset, now);
        }
    }

    /// The connections between two nodes, in either direction.
    pub(super) fn between(&self, between: impl Fn(NodeId, NodeId) -> bool) -> Vec<u64> {
        let chosen = |ends: &[End; 2]| between(ends[0].node, ends[1].node) || between(ends[1].node, ends[0].node);
        let numbered = (1..).zip(&self.connections);
        let chosen = numbered.filter(|(_, ends)| ends.as_ref().is_some_and(|ends| chosen(ends)));
        chosen.map(|(connection, _)| connection).collect()
    }

    pub(super) fn poll_readable(&mut self, id: EndId, cx: &Context<'_>) -> Poll<io::Result<()>> {
        match self.end(id) {
            Some(end) if end.arrived.is_empty() && !end.ended && end.broken.is_none() => {
                end.wait(cx);
                Poll::Pending
            }
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Whether the other end has ended or the connection is broken, and then whether anything is left to read.
    pub(super) fn poll_ended(&mut self, id: EndId, cx: &Context<'_>) -> Poll<bool> {
        match self.end(id) {
            Some(end) if !end.ended && end.broken.is_none() => {
                end.wait(cx);
                Poll::Pending
            }
            Some(end) => Poll::Ready(!end.arrived.is_empty()),
            None => Poll::Ready(false),
        }
    }

    pub(super) fn poll_read(
        &mut self,
        id: EndId,
        cx: &Context<'_>,
        most: usize,
        wakes: &mut Wakes,
    ) -> Poll<io::Result<Bytes>> {
        let Some(end) = self.end(id) else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        if end.arrived.is_empty() {
            return match (end.broken, end.ended) {
                (Some(kind), _) => Poll::Ready(Err(kind.into())),
                (None, true) => Poll::Ready(Ok(Bytes::new())),
                (None, false) => {
                    end.wait(cx);
                    Poll::Pending
                }
            };
        }
        let count = most.min(end.arrived.remaining());
        end.held -= count;
        let bytes = end.arrived.split_to(count).freeze();
        if let Some(writer) = self.end(id.other()) {
            wakes.append(&mut writer.waiting);
        }
        Poll::Ready(Ok(bytes))
    }

    pub(super) fn poll_write(
        &mut self,
        id: EndId,
        cx: &Context<'_>,
        bytes: &[u8],
        now: Instant,
    ) -> Poll<io::Result<usize>> {
        let Some(end) = self.end(id) else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        if let Some(kind) = end.broken {
            return Poll::Ready(Err(kind.into()));
        }
        if !end.writes {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let to = id.other();
        let room = self.end(to).map_or(0, |other| WINDOW.saturating_sub(other.held));
        if room == 0 {
            if let Some(end) = self.end(id) {
                end.wait(cx);
            }
            return Poll::Pending;
        }
        let count = bytes.len().min(room);
        let breaks = self
            .way_to(to)
            .map_or(0.0, |(from, node)| self.conditions(from, node).breaks);
        if self.happens(breaks) {
            // Its writer learns it as any other: later.
            self.break_connection(id.connection, now);
        } else {
            self.send(to, Piece::Bytes(Bytes::copy_from_slice(&bytes[..count])), now);
        }
        Poll::Ready(Ok(count))
    }

    /// That end sends nothing more.
    pub(super) fn close_write(&mut self, id: EndId, now: Instant) {
        let Some(end) = self.end(id) else { return };
        if std::mem::replace(&mut end.writes, false) && end.broken.is_none() {
            self.send(id.other(), Piece::End, now);
        }
        self.closed(id, now);
    }

    /// That end reads nothing more.
    pub(super) fn close_read(&mut self, id: EndId, now: Instant) {
        let Some(end) = self.end(id) else { return };
        end.reads = false;
        self.closed(id, now);
    }

    /// A socket closed over unread bytes tells so with a reset, and loses what it has sent.
    fn closed(&mut self, id: EndId, now: Instant) {
        let Some(end) = self.end(id) else { return };
        if end.is_closed() && end.broken.is_none() && !end.arrived.is_empty() {
            // What is still on the way to it stays counted until it arrives.
            end.held -= end.arrived.len();
            end.arrived.clear();
            if let Some(other) = self.end(id.other()) {
                other
                    .flying
                    .retain(|(_, piece)| !matches!(piece, Piece::Bytes(_) | Piece::End));
                other.held = other.arrived.len();
            }
            self.send(id.other(), Piece::Reset, now);
        }
        self.forget(id.connection);
    }

    /// Forgets a connection that nobody holds an end of.
    fn forget(&mut self, connection: u64) {
        let Some(ends) = self.connections.get_mut(place(connection)) else {
            return;
        };
        if ends.as_ref().is_some_and(|ends| ends.iter().all(End::is_closed)) {
            *ends = None;
            self.open -= 1;
        }
    }

    /// Every end at that node closes as the end of a process closes it; what still holds one finds it broken.
    pub(super) fn kill(&mut self, node: NodeId, now: Instant, wakes: &mut Wakes) {
        for connection in self.between(|_, _| true) {
            for side in 0..2 {
                let id = EndId { connection, side };
                if self.end(id).is_none_or(|end| end.node != node) {
                    continue;
                }
                self.close_read(id, now);
                self.close_write(id, now);
                if let Some(end) = self.end(id) {
                    end.broken = Some(io::ErrorKind::ConnectionAborted);
                    wakes.append(&mut end.waiting);
                }
            }
        }
    }

    /// How many connections have an end that is open.
    pub(super) fn len(&self) -> usize {
        self.open
    }
}
