//! One link: its lanes and its life, as its tasks and its users share them; and the keeper of its time limits.
//!
//! It must not know how its connections came to be.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::Engine;
use super::deliver;
use super::lane::LaneIo;
use super::message::Message;
use crate::id::LinkId;
use crate::limit::{HANDSHAKE_TIME, PROBE_INTERVAL, PROBE_LIMIT};
use crate::permit::{Flow, HostPermits};
use crate::transport::sending::Sending;
use crate::transport::{
    BoxFuture, CloseReason, Held, Lane, Link, LinkStats, Offer, Peer, Record, Refused, Sink, SocketType,
};

/// What a link is made of.
pub(super) struct Parts {
    pub(super) peer: Peer,
    /// The data lane, then the completion lane where there is one.
    pub(super) lanes: Vec<Arc<LaneIo>>,
    /// When its handshake began.
    pub(super) since: Instant,
}

/// A link's life.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) admitted: bool,
    pub(super) started: bool,
    /// The peer has ended on some lane; what it sent before is still handed on.
    pub(super) ending: bool,
    /// This side has ended; what it took is still sent, until then.
    pub(super) lingers: Option<Instant>,
    pub(super) closed: bool,
    /// Lanes on which all that the peer sent was handed on.
    pub(super) delivered: usize,
    pub(super) reason: Option<CloseReason>,
}

pub(super) struct Shared {
    id: LinkId,
    pub(super) peer: Peer,
    pub(super) lanes: Vec<Arc<LaneIo>>,
    pub(super) permits: HostPermits,
    since: Instant,
    pub(super) received: AtomicU64,
    pub(super) for_permit: AtomicBool,
    peer_flow: Mutex<Flow>,
    announced: Mutex<Flow>,
    announces: bool,
    pub(super) state: watch::Sender<State>,
    pub(super) sink: Mutex<Option<Arc<dyn Sink>>>,
    /// The thread lives as long as a link does.
    _engine: Arc<Engine>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = &*self.state.borrow();
        f.debug_struct("Shared")
            .field("id", &self.id)
            .field("state", state)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn lane(&self, lane: Lane) -> &Arc<LaneIo> {
        match (lane, self.lanes.as_slice()) {
            (Lane::Completion, [_, completion]) => completion,
            (_, lanes) => &lanes[0],
        }
    }

    /// A flow that the peer told. An older one than is known changes nothing.
    pub(super) fn peer_told(&self, flow: Flow) {
        let mut known = self.peer_flow.lock();
        if flow.version > known.version {
            *known = flow;
            self.lane(Lane::Data).set_paused(flow.paused);
        }
    }

    fn tell(&self, flow: Flow) {
        let mut announced = self.announced.lock();
        if self.announces && flow.version > announced.version {
            *announced = flow;
            self.lane(Lane::Completion).control(Message::Flow(flow));
        }
    }

    /// The peer has ended on a lane: nothing more can be sent to it.
    pub(super) fn peer_ends(&self) {
        self.lanes.iter().for_each(|lane| lane.close(false));
        let first = self.state.send_if_modified(|state| {
            !state.closed && state.lingers.is_none() && !std::mem::replace(&mut state.ending, true)
        });
        let sink = self.sink.lock().clone();
        let follows = self.lanes.iter().any(|lane| lane.waiting_bytes() > 0);
        if let (true, true, Some(sink)) = (first, follows, sink) {
            sink.ending();
        }
        // The keeper looks whether that was the last it waited for.
        self.state.send_modify(|_| {});
    }

    /// Ends it at once. The first reason stays.
    pub(super) fn close(&self, reason: CloseReason) {
        self.state.send_modify(|state| {
            state.reason.get_or_insert(reason);
            state.closed = true;
        });
    }
}

/// Makes a link and starts its tasks; on the engine's thread.
pub(super) fn open(engine: &Arc<Engine>, parts: Parts, offer: &Offer) -> Arc<dyn Link> {
    let Parts { peer, lanes, since } = parts;
    let state = State {
        admitted: false,
        started: false,
        ending: false,
        lingers: None,
        closed: false,
        delivered: 0,
        reason: None,
    };
    let shared = Arc::new(Shared {
        id: engine.next_id(),
        announces: offer.socket == SocketType::Router,
        peer,
        lanes,
        permits: offer.permits.clone(),
        since,
        received: AtomicU64::new(0),
        for_permit: AtomicBool::new(false),
        peer_flow: Mutex::default(),
        announced: Mutex::default(),
        state: watch::Sender::new(state),
        sink: Mutex::new(None),
        _engine: engine.clone(),
    });
    for lane in &shared.lanes {
        // It is set once: a lane belongs to one link.
        let _ = lane.link.set(Arc::downgrade(&shared));
        let early = lane.inbox.lock().flow.take();
        early.into_iter().for_each(|flow| shared.peer_told(flow));
    }
    if shared.lanes.iter().any(|lane| lane.has_ended()) {
        shared.peer_ends();
    }
    shared.tell(offer.flow);
    engine.handle.spawn(keep(shared.clone()));
    Arc::new(OpenLink(shared))
}

/// Keeps the link's time limits, sends its PINGs, and ends all of it.
async fn keep(shared: Arc<Shared>) {
    let tasks: Vec<_> = (0..shared.lanes.len())
        .map(|lane| tokio::spawn(deliver::run(shared.clone(), lane)))
        .collect();
    let mut changes = shared.state.subscribe();
    let (mut heard, mut alive, mut pinged) = (0, shared.since, shared.since);
    loop {
        let state = changes.borrow_and_update().clone();
        let now = Instant::now();
        let lanes = shared.lanes.len();
        let next = if state.closed {
            break;
        } else if let Some(until) = state.lingers {
            let done = shared.lanes.iter().all(|lane| lane.ended() && lane.has_ended());
            if done || now >= until {
                break;
            }
            until
        } else if state.delivered == lanes {
            shared.close(CloseReason::PeerClosed);
            break;
        } else if !state.admitted {
            let until = shared.since + HANDSHAKE_TIME;
            if now >= until {
                shared.close(CloseReason::Timeout("it was not admitted within two seconds"));
                break;
            }
            until
        } else {
            let sum = shared.lanes.iter().map(|lane| lane.heard.load(Ordering::Relaxed)).sum();
            if heard != sum || state.ending {
                (heard, alive) = (sum, now);
            }
            if now >= alive + PROBE_LIMIT {
                shared.close(CloseReason::Timeout("it sent nothing, and answered no PING"));
                break;
            }
            if now >= pinged + PROBE_INTERVAL {
                pinged = now;
                shared.lane(Lane::Completion).control(Message::Ping);
            }
            pinged + PROBE_INTERVAL
        };
        // Time out or change: both are looked at above. The sender is here, so it is never gone.
        let _ = timeout_at(next, changes.changed()).await;
    }
    finish(&shared, tasks).await;
}

async fn finish(shared: &Shared, tasks: Vec<tokio::task::JoinHandle<()>>) {
    shared.close(CloseReason::PeerClosed);
    for task in &tasks {
        task.abort();
    }
    for task in tasks {
        // Cancelled, or done: either way nothing of it runs any more.
        let _ = task.await;
    }
    shared.lanes.iter().for_each(|lane| lane.close(true));
    let reason = shared.state.borrow().reason.clone().unwrap_or(CloseReason::PeerClosed);
    tracing::debug!(target: "zlink::link", link = shared.id.0, %reason, "closed");
    let sink = shared.sink.lock().take();
    if let Some(sink) = sink {
        sink.closed(&reason);
    }
}

/// A link as its users hold it. When the last of them drops it, it closes.
#[derive(Debug)]
struct OpenLink(Arc<Shared>);

impl Drop for OpenLink {
    fn drop(&mut self) {
        self.0.close(CloseReason::Local("nobody uses the link"));
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
        let mut place = self.0.sink.lock();
        let state = self.0.state.borrow().clone();
        if state.closed {
            drop(place);
            sink.closed(&state.reason.unwrap_or(CloseReason::PeerClosed));
            return;
        }
        *place = Some(sink);
        drop(place);
        self.0.state.send_modify(|state| state.started = true);
    }

    fn admit(&self, max_record: usize) {
        self.0.lanes.iter().for_each(|lane| lane.set_max_record(max_record));
        self.0.state.send_modify(|state| state.admitted = true);
    }

    fn try_send(&self, lane: Lane, record: Record<'_>) -> Result<(), Refused> {
        self.0.lane(lane).try_push(record)
    }

    fn send(&self, lane: Lane, record: Vec<u8>) -> BoxFuture<'static, Result<(), Refused>> {
        Box::pin(Sending::new(self.0.lane(lane).clone(), record))
    }

    fn announce(&self, flow: Flow) -> Result<(), Refused> {
        // A lane that has ended takes the value and tells nobody.
        self.0.tell(flow);
        Ok(())
    }

    fn held(&self) -> Held {
        Held {
            by_peer: self.0.lane(Lane::Data).paused(),
            by_us: self.0.announced.lock().paused,
            for_permit: self.0.for_permit.load(Ordering::Relaxed),
        }
    }

    fn close(&self, reason: CloseReason, linger: Duration) {
        if linger.is_zero() {
            self.0.close(reason);
        } else {
            self.0.state.send_modify(|state| {
                if !state.closed && state.lingers.is_none() {
                    state.reason.get_or_insert(reason);
                    state.lingers = Some(Instant::now() + linger);
                }
            });
        }
        self.0.lanes.iter().for_each(|lane| lane.close(linger.is_zero()));
    }

    fn stats(&self) -> LinkStats {
        let mut stats = LinkStats {
            received: self.0.received.load(Ordering::Relaxed),
            waiting_bytes: self.0.lanes.iter().map(|lane| lane.waiting_bytes()).sum(),
            ..LinkStats::default()
        };
        self.0.lanes.iter().for_each(|lane| lane.add_stats(&mut stats));
        stats
    }
}
