//! Hands on what has come on one lane: with a permit where a record needs one, in rotations, in order.
//!
//! It must not know how it came.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use tokio::sync::watch;

use super::link::{Shared, State};
use crate::limit::ROTATION_RECORDS;
use crate::permit::{Permit, Source};
use crate::transport::{HANDSHAKE_RECORDS, Lane, Lanes};

/// Runs until the peer has ended and all it sent was handed on.
pub(super) async fn run(shared: Arc<Shared>, index: usize) {
    let mut changes = shared.state.subscribe();
    let mut source = shared.permits.source();
    let lane = &shared.lanes[index];
    let name = if index == 0 { Lane::Data } else { Lane::Completion };
    let (mut early, mut rotation) = (0, 0);
    loop {
        let state = changes.borrow_and_update().clone();
        let Some(needs) = lane.peek(|record| index == 0 && shared.peer.takes_permit(record)) else {
            if lane.has_ended() {
                break;
            }
            rotation = 0;
            tokio::select! {
                () = lane.arrived.notified() => {}
                _ = changes.changed() => {}
            }
            continue;
        };
        if state.lingers.is_some() {
            drop(lane.pop());
            continue;
        }
        let may = state.started && (state.admitted || (index == 0 && early < HANDSHAKE_RECORDS));
        let sink = shared.sink.lock().clone();
        let (true, Some(sink)) = (may, sink) else {
            // An error would say that the link is gone, and this task with it.
            let _ = changes.changed().await;
            continue;
        };
        let mut permit = None;
        if !state.admitted {
            early += 1;
        } else if needs {
            permit = permitted(&shared, &mut source, &mut changes).await;
            if permit.is_none() {
                continue;
            }
        }
        if let Some((record, at)) = lane.pop() {
            shared.received.fetch_add(1, Ordering::Relaxed);
            sink.record(name, record, permit, at);
        }
        rotation += 1;
        if rotation == ROTATION_RECORDS {
            rotation = 0;
            tokio::task::yield_now().await;
        }
    }
    shared.state.send_modify(|state| state.delivered += 1);
}

/// Waits for a permit, and until the peer takes the answers to what it has asked; `None` where the link changed first.
async fn permitted(shared: &Shared, source: &mut Source, changes: &mut watch::Receiver<State>) -> Option<Permit> {
    // What waits in the one lane of a link that this side dialled are its own calls.
    let own = shared.peer.lanes == Lanes::One && shared.peer.dialled;
    let granted = poll_fn(|cx| {
        if !own && shared.lane(Lane::Completion).poll_uncrowded(cx).is_pending() {
            // What was granted in the meantime is for those whose peers do read.
            source.cancel();
        } else if let Poll::Ready(Ok(mut grant)) = source.poll_acquire(cx, 1) {
            return Poll::Ready(grant.take());
        }
        // A host that has closed its permits ends its links next.
        shared.for_permit.store(true, Ordering::Relaxed);
        Poll::Pending
    });
    let permit = tokio::select! {
        biased;
        permit = granted => permit,
        _ = changes.changed() => None,
    };
    if permit.is_none() {
        source.cancel();
    }
    shared.for_permit.store(false, Ordering::Relaxed);
    permit
}
