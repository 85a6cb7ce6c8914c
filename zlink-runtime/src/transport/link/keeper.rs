//! The keeper of one link: its time limits, its PINGs, and its end. It never reads or writes a record.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::queue::SendQueue;
use super::shared::Shared;
use super::state::{Now, Phase, Watcher};
use crate::limit::{HANDSHAKE_TIME, PROBE_INTERVAL, PROBE_LIMIT};
use crate::transport::{CloseReason, Lane, Lanes};

/// Silent PING intervals after which a peer is dead.
const SILENT_TICKS: u32 = 3;
/// A peer's TTL counts as at least this: it is told in tenths of a second.
const SHORTEST_TTL: Duration = Duration::from_millis(100);

/// How often a plain ZeroMQ peer is looked after: its patience with us is not told, and often a second or less.
const PLAIN_TICK: Duration = Duration::from_millis(300);

/// Runs until the link is closed, then ends everything that belongs to it, and tells the sink.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut pulse = Pulse::new(shared.since);
    let mut seen = 0;
    loop {
        let now = shared.state.now();
        let Some(next) = next(&shared, &now, &mut pulse) else {
            break;
        };
        let mut timer = std::pin::pin!(sleep_until(next));
        poll_fn(|cx| match shared.state.poll_change(Watcher::Keeper, &mut seen, cx) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => timer.as_mut().poll(cx),
        })
        .await;
    }
    finish(&shared).await;
}

/// Does what is due; when it is to be called again, or `None` at the end.
fn next(shared: &Shared, state: &Now, pulse: &mut Pulse) -> Option<Instant> {
    let now = Instant::now();
    match state.phase {
        Phase::Closed => return None,
        Phase::Lingering(until) => {
            let lanes = shared.queues.len();
            let done = state.written_lanes == lanes && state.ended_lanes == lanes;
            return (!done && now < until).then_some(until);
        }
        Phase::Open | Phase::Ending => {}
    }
    let admission = shared.since + HANDSHAKE_TIME;
    if !state.admitted {
        if now >= admission {
            shared
                .state
                .close(CloseReason::Timeout("it was not admitted within two seconds"));
            return None;
        }
        return Some(admission);
    }
    pulse.next(shared, state, now)
}

/// The beat of PINGs on the lane that is always read, or on the only one.
struct Pulse {
    /// When a PING was sent.
    pinged: Instant,
    /// When something had come, as far as is known.
    alive: Instant,
    heard: u64,
    silent: u32,
}

impl Pulse {
    fn new(since: Instant) -> Self {
        Self {
            pinged: since,
            alive: since,
            heard: 0,
            silent: 0,
        }
    }

    fn next(&mut self, shared: &Shared, state: &Now, now: Instant) -> Option<Instant> {
        let limit = state
            .ttl
            .map_or(PROBE_LIMIT, |ttl| ttl.clamp(SHORTEST_TTL, PROBE_LIMIT));
        let between = PROBE_INTERVAL.min(limit / SILENT_TICKS);
        // What a plain peer sends while its records wait for permits is not seen, its PINGs among it.
        let unread = shared.peer.lanes == Lanes::One && shared.for_permit.load(Ordering::Relaxed);
        let plain = shared.peer.generation.is_none();
        let heard = shared.heard.load(Ordering::Relaxed);
        if heard != self.heard || unread || !shared.pings {
            (self.heard, self.alive, self.silent) = (heard, now, 0);
        } else {
            self.silent += 1;
        }
        if self.silent > SILENT_TICKS && now >= self.alive + limit {
            shared
                .state
                .close(CloseReason::Timeout("it sent nothing, and answered no PING"));
            return None;
        }
        if shared.pings && (unread || now >= self.pinged + between) {
            self.pinged = now;
            let tenths = PROBE_LIMIT.as_millis() / 100;
            shared
                .queue(Lane::Completion)
                .ping(u16::try_from(tenths).unwrap_or(u16::MAX));
        }
        Some(now + if plain { between.min(PLAIN_TICK) } else { between })
    }
}

async fn finish(shared: &Shared) {
    let reason = match shared.state.now().phase {
        Phase::Lingering(_) => {
            shared.state.close(CloseReason::PeerClosed);
            shared.state.reason()
        }
        _ => shared.state.reason(),
    };
    shared.queues.iter().for_each(SendQueue::close);
    let (tasks, sink) = {
        let mut life = shared.life.lock();
        life.finished = true;
        life.readers.clear();
        life.places.clear();
        (std::mem::take(&mut life.tasks), life.sink.take())
    };
    for task in &tasks {
        task.abort();
    }
    for task in tasks {
        // Cancelled, or done: either way nothing of it runs any more.
        let _ = task.await;
    }
    shared.queues.iter().for_each(SendQueue::clear);
    tracing::debug!(target: "zlink::link", link = shared.id.0, %reason, "closed");
    if let Some(sink) = sink {
        sink.closed(&reason);
    }
}
