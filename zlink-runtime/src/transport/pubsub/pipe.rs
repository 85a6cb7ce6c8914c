//! What a publisher holds for its subscribers: a queue for each, filled all at once or not at all where that is asked for.
//!
//! It must not know a socket or a task: whoever writes takes what is here, and says when it is written.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::topics::Topics;
use crate::limit::{ALONE_BYTES, COALESCE_BYTES, LINK_BUDGET_BYTES, PIPE_RECORDS};
use crate::transport::zmtp::{encode_pong, frame_head};

/// A message of two frames, its topic and its record, as it travels to everyone.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    bytes: Bytes,
    topic: (usize, usize),
}

impl Message {
    pub(crate) fn new(topic: &[u8], head: &[u8], payload: &[u8]) -> Self {
        let (first, from) = frame_head(topic.len(), true, false);
        let (second, second_from) = frame_head(head.len() + payload.len(), false, false);
        let (first, second) = (&first[from..], &second[second_from..]);
        let bytes = [first, topic, second, head, payload].concat();
        Self {
            bytes: bytes.into(),
            topic: (first.len(), first.len() + topic.len()),
        }
    }

    fn topic(&self) -> &[u8] {
        self.bytes.get(self.topic.0..self.topic.1).unwrap_or_default()
    }
}

/// Names a subscriber's pipe, or a message that waits; never used again, and greater than all before.
pub(super) type Id = u64;

/// What one subscriber wants, and what waits for it.
#[derive(Default)]
struct Pipe {
    topics: Topics,
    queue: VecDeque<Bytes>,
    /// With what is being written.
    records: usize,
    bytes: usize,
    /// The answer to its last PING.
    pong: Option<Vec<u8>>,
    writer: Option<Waker>,
    /// Of the message at hand.
    wanted: bool,
    /// The messages that wait for room here: what comes later waits behind them, however small.
    line: BTreeSet<Id>,
}

impl Pipe {
    /// A message larger than all that may wait goes alone.
    fn has_room(&self, message: &Message) -> bool {
        self.records < PIPE_RECORDS && (self.records == 0 || self.bytes + message.bytes.len() <= LINK_BUDGET_BYTES)
    }

    fn push(&mut self, message: &Message) {
        self.records += 1;
        self.bytes += message.bytes.len();
        self.queue.push_back(message.bytes.clone());
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }
}

/// A message that waits until all pipes that want it have room.
struct Waiting {
    message: Message,
    /// Those in whose lines it stands. At first that is one that has no room. Where another has none once that one has, it
    /// goes over to the other, so that the one goes on. From then on it leaves no line any more: else each could be filled
    /// by others while it stands at the other, for ever.
    on: BTreeSet<Id>,
    has_gone_over: bool,
    done: oneshot::Sender<()>,
}

/// What a writer has taken, and gives back once it is written.
#[derive(Debug, Default)]
pub(super) struct Batch {
    records: usize,
    bytes: usize,
    /// Small messages, joined.
    pub(super) joined: Vec<u8>,
    /// A large one, without a copy.
    pub(super) alone: Bytes,
}

/// All pipes of one publisher.
#[derive(Default)]
pub(super) struct Pipes {
    pipes: BTreeMap<Id, Pipe>,
    waiting: BTreeMap<Id, Waiting>,
    last: Id,
    closed: bool,
}

impl Pipes {
    fn next(&mut self) -> Id {
        self.last += 1;
        self.last
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Ends all: what waits is not published.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.waiting.clear();
        self.pipes.values_mut().for_each(Pipe::wake);
    }

    pub(super) fn enter(&mut self) -> Id {
        let id = self.next();
        self.pipes.insert(id, Pipe::default());
        id
    }

    /// Its subscriber is gone: nobody waits for it any more.
    pub(super) fn leave(&mut self, id: Id) {
        if let Some(pipe) = self.pipes.remove(&id) {
            self.let_go(id, pipe.line);
        }
    }

    /// How many subscribers there are.
    pub(super) fn len(&self) -> usize {
        self.pipes.len()
    }

    /// `false` where it wants more than may be.
    pub(super) fn subscribe(&mut self, id: Id, topic: &[u8]) -> bool {
        self.pipes.get_mut(&id).is_none_or(|pipe| pipe.topics.add(topic))
    }

    pub(super) fn cancel(&mut self, id: Id, topic: &[u8]) {
        let Some(pipe) = self.pipes.get_mut(&id) else { return };
        if pipe.topics.remove(topic) {
            // Any of them may not be wanted any more.
            let is_wanted = |id: &Id| {
                let waiting = self.waiting.get(id);
                waiting.is_some_and(|waiting| pipe.topics.matches(waiting.message.topic()))
            };
            let line = std::mem::take(&mut pipe.line);
            let (stay, let_go) = line.into_iter().partition(is_wanted);
            pipe.line = stay;
            self.let_go(id, let_go);
        }
    }

    pub(super) fn pong(&mut self, id: Id, context: &[u8]) {
        if let Some(pipe) = self.pipes.get_mut(&id) {
            let mut pong = Vec::new();
            encode_pong(&mut pong, context);
            pipe.pong = Some(pong);
            pipe.wake();
        }
    }

    /// To every pipe that wants it and has room.
    pub(super) fn offer(&mut self, message: &Message) {
        for pipe in self.pipes.values_mut() {
            if pipe.topics.matches(message.topic()) && pipe.has_room(message) {
                pipe.push(message);
            }
        }
    }

    /// To every pipe that wants it, or to none.
    ///
    /// # Errors
    /// One that wants it and has no room, or has others who wait.
    pub(super) fn offer_to_all(&mut self, message: &Message) -> Result<(), Id> {
        self.offer_as(Id::MAX, message)
    }

    /// The same for a message that has waited since it got that number: only who has waited longer goes before it.
    fn offer_as(&mut self, id: Id, message: &Message) -> Result<(), Id> {
        for (on, pipe) in &mut self.pipes {
            pipe.wanted = pipe.topics.matches(message.topic());
            let is_behind = pipe.line.first().is_some_and(|first| *first < id);
            if pipe.wanted && (is_behind || !pipe.has_room(message)) {
                return Err(*on);
            }
        }
        let wanted = self.pipes.values_mut().filter(|pipe| pipe.wanted);
        wanted.for_each(|pipe| pipe.push(message));
        Ok(())
    }

    /// The same once it can be, behind those that wait for the same pipe; the number withdraws it.
    pub(super) fn wait(&mut self, message: Message, on: Id) -> (Id, oneshot::Receiver<()>) {
        let (done, told) = oneshot::channel();
        let id = self.next();
        let waiting = Waiting {
            message,
            on: BTreeSet::new(),
            has_gone_over: false,
            done,
        };
        self.stand(id, on, waiting);
        (id, told)
    }

    /// It stands in that line, too.
    fn stand(&mut self, id: Id, on: Id, mut waiting: Waiting) {
        if let Some(pipe) = self.pipes.get_mut(&on) {
            pipe.line.insert(id);
            waiting.on.insert(on);
        }
        self.waiting.insert(id, waiting);
    }

    /// It stands in none of those lines any more.
    fn unline(&mut self, id: Id, lines: &BTreeSet<Id>) {
        for on in lines {
            if let Some(pipe) = self.pipes.get_mut(on) {
                pipe.line.remove(&id);
            }
        }
    }

    /// Whether it still waited.
    pub(super) fn withdraw(&mut self, id: Id) -> bool {
        let Some(Waiting { on, .. }) = self.waiting.remove(&id) else {
            return false;
        };
        self.unline(id, &on);
        // Others stood behind it, who may be smaller.
        self.go_on(on);
        true
    }

    /// A pipe is no matter any more to those, who stand in its line no more.
    fn let_go(&mut self, on: Id, those: BTreeSet<Id>) {
        let mut lines = BTreeSet::from([on]);
        for id in those {
            if let Some(waiting) = self.waiting.get_mut(&id) {
                waiting.on.remove(&on);
            }
            lines.extend(self.attempt(id));
        }
        self.go_on(lines);
    }

    /// There may be room in these pipes, or another first in their lines: looks at those that wait there, in their order,
    /// until one stays.
    fn go_on(&mut self, mut lines: BTreeSet<Id>) {
        while let Some(on) = lines.pop_first() {
            let first = |pipes: &Self| pipes.pipes.get(&on).and_then(|pipe| pipe.line.first().copied());
            while let Some(id) = first(self) {
                lines.extend(self.attempt(id));
                if first(self) == Some(id) {
                    break;
                }
            }
            // It has just been gone through.
            lines.remove(&on);
        }
    }

    /// Looks whether one that waits can go; if not, what it waits for now. Tells the lines that it has left.
    fn attempt(&mut self, id: Id) -> BTreeSet<Id> {
        let Some(mut waiting) = self.waiting.remove(&id) else {
            return BTreeSet::new();
        };
        let Err(on) = self.offer_as(id, &waiting.message) else {
            self.unline(id, &waiting.on);
            // Whoever waited and is gone has withdrawn it before.
            let _ = waiting.done.send(());
            return waiting.on;
        };
        let mut left = BTreeSet::new();
        if !waiting.has_gone_over && !waiting.on.is_empty() && !waiting.on.contains(&on) {
            waiting.has_gone_over = true;
            left = std::mem::take(&mut waiting.on);
            self.unline(id, &left);
        }
        self.stand(id, on, waiting);
        left
    }

    /// Gives back what was written, and takes what waits: at most so much that it is written soon. `None` at the end.
    pub(super) fn poll_take(&mut self, id: Id, batch: &mut Batch, cx: &mut Context<'_>) -> Poll<Option<()>> {
        let closed = self.closed;
        let Some(pipe) = self.pipes.get_mut(&id).filter(|_| !closed) else {
            return Poll::Ready(None);
        };
        let was_written = std::mem::take(&mut batch.records);
        pipe.records -= was_written;
        pipe.bytes -= std::mem::take(&mut batch.bytes);
        if was_written > 0 {
            self.go_on(BTreeSet::from([id]));
        }
        let Some(pipe) = self.pipes.get_mut(&id) else {
            return Poll::Ready(None);
        };
        batch.alone = Bytes::new();
        batch.joined.clear();
        batch.joined.extend(pipe.pong.take().into_iter().flatten());
        while let Some(next) = pipe.queue.front() {
            let (len, is_large) = (next.len(), next.len() >= ALONE_BYTES);
            if !batch.joined.is_empty() && (is_large || batch.joined.len() + len > COALESCE_BYTES) {
                break;
            }
            let Some(next) = pipe.queue.pop_front() else { break };
            batch.records += 1;
            batch.bytes += len;
            if is_large {
                batch.alone = next;
                break;
            }
            batch.joined.extend_from_slice(&next);
        }
        if batch.joined.is_empty() && batch.alone.is_empty() {
            batch.joined.shrink_to(0);
            pipe.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Some(()))
    }
}

#[cfg(test)]
mod tests;
