//! One link: its state and queues, as its tasks and its users share them.
//!
//! It must not know how its connections came to be.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::greet::Greeted;
use super::queue::SendQueue;
use super::reader::{self, Reader};
use super::state::{Phase, State};
use super::{keeper, writer};
use crate::id::LinkId;
use crate::limit::RECEIVE_BUDGET_BYTES;
use crate::permit::{HostPermits, Permit};
use crate::transport::sending::{Line, Sending};
use crate::transport::{
    BoxFuture, CloseReason, Flow, Held, Lane, Lanes, Link, LinkStats, Offer, Peer, Record, Refused, Sink, SocketType,
};

/// What a link is made of.
pub(super) struct Parts {
    pub(super) id: LinkId,
    pub(super) peer: Peer,
    /// The data lane, then the completion lane where there is one.
    pub(super) lanes: Vec<Greeted>,
    /// When its handshake began.
    pub(super) since: Instant,
    /// The places it takes among its listener's connections.
    pub(super) places: Vec<OwnedSemaphorePermit>,
}

/// What the link's tasks share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) id: LinkId,
    pub(super) peer: Peer,
    pub(super) state: State,
    /// The data lane, then the completion lane where there is one.
    pub(super) queues: Vec<SendQueue>,
    pub(super) permits: HostPermits,
    pub(super) pings: bool,
    pub(super) since: Instant,
    pub(super) max_record: AtomicUsize,
    pub(super) admitted: AtomicBool,
    pub(super) received: AtomicU64,
    /// Times that received records were handed on.
    pub(super) batches: AtomicU64,
    /// Rises with every read of the lane that carries PING and PONG.
    pub(super) heard: AtomicU64,
    /// Rises with every piece of a record that is read or written before its last.
    pub(super) moved: AtomicU64,
    pub(super) waiting_bytes: AtomicUsize,
    pub(super) for_permit: AtomicBool,
    /// Records of the last read: more than one means that the peer sends batches, and is served by batches.
    pub(super) last_batch: AtomicU32,
    /// The newest flow that the peer told.
    pub(super) peer_flow: Mutex<Flow>,
    announced: Mutex<Flow>,
    announces: bool,
    pub(super) life: Mutex<Life>,
    runtime: Handle,
}

/// What is made at the start and given up at the end.
#[derive(Default)]
pub(super) struct Life {
    pub(super) readers: Vec<reader::Unstarted>,
    pub(super) sink: Option<Arc<dyn Sink>>,
    pub(super) tasks: Vec<JoinHandle<()>>,
    pub(super) places: Vec<OwnedSemaphorePermit>,
    pub(super) finished: bool,
}

impl fmt::Debug for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Life")
            .field("started", &self.sink.is_some())
            .field("finished", &self.finished)
            .finish()
    }
}

impl Shared {
    /// The queue of a lane; links with one lane have one.
    pub(super) fn queue(&self, lane: Lane) -> &SendQueue {
        match (lane, self.queues.as_slice()) {
            (Lane::Completion, [_, completion]) => completion,
            (_, queues) => &queues[0],
        }
    }

    /// Waits until the peer takes the answers to what it has asked: one that asks and does not read its answers must
    /// not make this host keep ever more of them.
    pub(super) fn poll_answered(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self.peer.lanes {
            // What waits in the one lane of a link that this side dialled are its own calls.
            Lanes::One if self.peer.dialled => Poll::Ready(()),
            _ => self.queue(Lane::Completion).poll_uncrowded(cx),
        }
    }

    /// A flow that the peer told. An older one than is known changes nothing.
    pub(super) fn peer_told(&self, flow: Flow) {
        let mut known = self.peer_flow.lock();
        if flow.version > known.version {
            *known = flow;
            tracing::debug!(target: "zlink::link", link = self.id.0, paused = flow.paused, "the peer's receive flow");
            self.queue(Lane::Data).set_paused(flow.paused);
        }
    }

    /// Tells the peer this host's receive flow; `false` where the link has ended.
    pub(super) fn tell(&self, flow: Flow) -> bool {
        let mut announced = self.announced.lock();
        if self.announces && flow.version > announced.version {
            *announced = flow;
            self.queue(Lane::Completion).flow(flow);
        }
        drop(announced);
        self.state.now().phase != Phase::Closed
    }
}

/// Makes a link and starts its writers.
pub(super) fn open(parts: Parts, offer: &Offer) -> Arc<dyn Link> {
    let Parts {
        id,
        peer,
        lanes,
        since,
        places,
    } = parts;
    let delimiter = peer.socket == SocketType::Req;
    let queues = lanes
        .iter()
        .map(|_| SendQueue::new(offer.budget, offer.max_record, delimiter))
        .collect();
    let shared = Arc::new(Shared {
        id,
        state: State::new(),
        queues,
        permits: offer.permits.clone(),
        pings: lanes.iter().all(|lane| lane.pings),
        since,
        max_record: AtomicUsize::new(offer.max_record),
        admitted: AtomicBool::new(false),
        received: AtomicU64::new(0),
        batches: AtomicU64::new(0),
        heard: AtomicU64::new(0),
        moved: AtomicU64::new(0),
        waiting_bytes: AtomicUsize::new(0),
        for_permit: AtomicBool::new(false),
        last_batch: AtomicU32::new(0),
        peer_flow: Mutex::new(Flow::default()),
        announced: Mutex::new(Flow::default()),
        // Nobody sends requests to a DEALER, and a REQ peer would take the record for its reply.
        announces: offer.socket == SocketType::Router && peer.socket != SocketType::Req,
        life: Mutex::new(Life {
            places,
            ..Life::default()
        }),
        runtime: Handle::current(),
        peer,
    });
    shared.tell(offer.flow);
    let mut life = shared.life.lock();
    for (lane, greeted) in lanes.into_iter().enumerate() {
        let writer = writer::run(shared.clone(), lane, greeted.stream.write);
        life.tasks.push(tokio::spawn(writer));
        life.readers.push(reader::Unstarted {
            lane,
            read: greeted.stream.read,
            leftover: greeted.leftover,
            most: offer.receives(RECEIVE_BUDGET_BYTES),
        });
    }
    drop(life);
    tokio::spawn(keeper::run(shared.clone()));
    Arc::new(OpenLink(shared))
}

/// A link as its users hold it. When the last of them drops it, it closes.
#[derive(Debug)]
struct OpenLink(Arc<Shared>);

impl Drop for OpenLink {
    fn drop(&mut self) {
        self.0.state.close(CloseReason::Local("nobody uses the link"));
    }
}

impl Link for OpenLink {
    fn id(&self) -> LinkId {
        self.0.id
    }

    fn peer(&self) -> &Peer {
        &self.0.peer
    }

    fn start(&self, sink: Arc<dyn Sink>) {
        let mut life = self.0.life.lock();
        if life.finished {
            drop(life);
            sink.closed(&self.0.state.reason());
            return;
        }
        for unstarted in std::mem::take(&mut life.readers) {
            let reader = Reader::new(self.0.clone(), sink.clone(), unstarted);
            life.tasks.push(self.0.runtime.spawn(reader.run()));
        }
        life.sink = Some(sink);
    }

    fn admit(&self, max_record: usize) {
        self.0.max_record.store(max_record, Ordering::Release);
        for queue in &self.0.queues {
            queue.set_max_record(max_record);
        }
        self.0.admitted.store(true, Ordering::Release);
        self.0.state.change(|now| !std::mem::replace(&mut now.admitted, true));
    }

    fn try_send(&self, lane: Lane, record: Record<'_>) -> Result<(), Refused> {
        self.0.queue(lane).try_push(record)
    }

    fn send(&self, lane: Lane, record: Vec<u8>) -> BoxFuture<'static, Result<(), Refused>> {
        Box::pin(Sending::new(WaitingOn(self.0.clone(), lane), record))
    }

    fn announce(&self, flow: Flow) -> Result<(), Refused> {
        if self.0.tell(flow) {
            Ok(())
        } else {
            Err(Refused::Closed)
        }
    }

    fn held(&self) -> Held {
        Held {
            by_peer: self.0.queue(Lane::Data).paused(),
            by_us: self.0.announced.lock().paused,
            for_permit: self.0.for_permit.load(Ordering::Relaxed),
        }
    }

    fn close(&self, reason: CloseReason, linger: Duration) {
        if linger.is_zero() {
            self.0.state.close(reason);
        } else {
            // What the peer sends is read and dropped: a socket closed over unread bytes loses what it has sent.
            if self.0.life.lock().sink.is_none() {
                self.start(Arc::new(Nobody));
            }
            self.0.state.linger(reason, Instant::now() + linger);
        }
        self.0.queues.iter().for_each(SendQueue::close);
    }

    fn stats(&self) -> LinkStats {
        let mut stats = LinkStats {
            received: self.0.received.load(Ordering::Relaxed),
            batches: self.0.batches.load(Ordering::Relaxed),
            waiting_bytes: self.0.waiting_bytes.load(Ordering::Relaxed),
            moved: self.0.moved.load(Ordering::Relaxed),
            ..LinkStats::default()
        };
        for figures in self.0.queues.iter().map(SendQueue::figures) {
            stats.queued_bytes += figures.queued_bytes;
            stats.waiting_senders += figures.waiting_senders;
            stats.sent += figures.records;
            stats.messages_sent += figures.messages;
            stats.pauses += figures.pauses;
        }
        stats
    }
}

/// The sink of a link that is closed before it was started.
struct Nobody;

impl Sink for Nobody {
    fn record(&self, _: Lane, _: Bytes, _: Option<Permit>, _: Instant) {}
    fn closed(&self, _: &CloseReason) {}
}

/// A lane of a link, to wait on.
struct WaitingOn(Arc<Shared>, Lane);

impl Line for WaitingOn {
    fn poll_push(
        &self,
        cx: &mut Context<'_>,
        ticket: &mut Option<u64>,
        record: &mut Vec<u8>,
    ) -> Poll<Result<(), Refused>> {
        self.0.queue(self.1).poll_push(cx, ticket, record)
    }

    fn withdraw(&self, ticket: u64) {
        self.0.queue(self.1).withdraw(ticket);
    }
}
