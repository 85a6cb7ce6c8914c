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
    /// One that has none, and in whose line it stands.
    on: Id,
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
        for waiting in self.pipes.remove(&id).into_iter().flat_map(|pipe| pipe.line) {
            self.look_again(waiting);
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
            for waiting in std::mem::take(&mut pipe.line) {
                self.look_again(waiting);
            }
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
        self.stand(id, Waiting { message, on, done });
        (id, told)
    }

    fn stand(&mut self, id: Id, waiting: Waiting) {
        if let Some(pipe) = self.pipes.get_mut(&waiting.on) {
            pipe.line.insert(id);
        }
        self.waiting.insert(id, waiting);
    }

    /// Whether it still waited.
    pub(super) fn withdraw(&mut self, id: Id) -> bool {
        let Some(Waiting { on, .. }) = self.waiting.remove(&id) else {
            return false;
        };
        if let Some(pipe) = self.pipes.get_mut(&on) {
            let was_first = pipe.line.first() == Some(&id);
            pipe.line.remove(&id);
            if was_first {
                // Others stood behind it, who may be smaller.
                self.go_on(on);
            }
        }
        true
    }

    /// There may be room in a pipe: looks again at those that wait for it, in their order, until one has to wait for it
    /// still.
    fn go_on(&mut self, on: Id) {
        while let Some(id) = self.pipes.get_mut(&on).and_then(|pipe| pipe.line.pop_first()) {
            if self.look_again(id) == Some(on) {
                return;
            }
        }
    }

    /// Looks whether one that has left its line can go; if not, what it waits for now.
    fn look_again(&mut self, id: Id) -> Option<Id> {
        let waiting = self.waiting.remove(&id)?;
        match self.offer_as(id, &waiting.message) {
            Ok(()) => {
                // Whoever waited and is gone has withdrawn it before.
                let _ = waiting.done.send(());
                None
            }
            Err(on) => {
                self.stand(id, Waiting { on, ..waiting });
                Some(on)
            }
        }
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
            self.go_on(id);
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
