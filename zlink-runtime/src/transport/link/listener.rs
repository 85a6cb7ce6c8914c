//! A bound endpoint: accepts connections within a cap, runs their handshakes, and pairs lanes to links.
//!
//! It must not know what becomes of a link it has handed over.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

use super::LinkTransport;
use super::greet::{Greeted, Nonce, Part, greet};
use super::shared::{Parts, open};
use super::stream::{Socket, Stream};
use crate::limit::HANDSHAKE_TIME;
use crate::transport::zmtp::Role;
use crate::transport::{Acceptor, BoxFuture, Endpoint, Lanes, Listener, Offer, Peer, TransportError};

/// Between two attempts to accept where the system refuses: at first, and at most.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// A connection that is greeted, and the place it takes.
type Arrived = (Greeted, OwnedSemaphorePermit);

struct Accepting {
    transport: LinkTransport,
    offer: Offer,
    acceptor: Arc<dyn Acceptor>,
    open: AtomicBool,
    /// Lanes whose other lane has yet to come. Each has a task that removes it in time.
    halves: Mutex<HashMap<Nonce, Half>>,
}

struct Half {
    part: Part,
    other: oneshot::Sender<Arrived>,
}

#[derive(Debug)]
struct Bound {
    endpoint: Endpoint,
    task: JoinHandle<()>,
    accepting: std::sync::Weak<Accepting>,
}

impl Listener for Bound {
    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn close(mut self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.task.abort();
            // Cancelled, which is what was asked for; with the task its socket is gone.
            let _ = (&mut self.task).await;
        })
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if let Some(accepting) = self.accepting.upgrade() {
            accepting.open.store(false, Ordering::Release);
        }
        self.task.abort();
    }
}

impl std::fmt::Debug for Accepting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Accepting")
            .field("offer", &self.offer)
            .finish_non_exhaustive()
    }
}

pub(super) async fn bind(
    transport: &LinkTransport,
    endpoint: &Endpoint,
    offer: Offer,
    acceptor: Arc<dyn Acceptor>,
) -> Result<Box<dyn Listener>, TransportError> {
    let bound = transport.sockets.bind(endpoint).await;
    let (socket, endpoint) = bound.map_err(|error| TransportError::bind(endpoint, &error))?;
    let places = Arc::new(Semaphore::new(transport.config.connections.min(Semaphore::MAX_PERMITS)));
    let accepting = Arc::new(Accepting {
        transport: transport.clone(),
        offer,
        acceptor,
        open: AtomicBool::new(true),
        halves: Mutex::default(),
    });
    let weak = Arc::downgrade(&accepting);
    let task = tokio::spawn(accept(socket, endpoint.clone(), places, move |stream, place| {
        tokio::spawn(serve(accepting.clone(), stream, place));
    }));
    Ok(Box::new(Bound {
        endpoint,
        task,
        accepting: weak,
    }))
}

/// Accepts as long as there are places, each connection with its own.
pub(in crate::transport) async fn accept(
    socket: Box<dyn Socket>,
    endpoint: Endpoint,
    places: Arc<Semaphore>,
    mut serve: impl FnMut(Stream, OwnedSemaphorePermit) + Send,
) {
    let mut back_off = BACK_OFF.0;
    // The semaphore is never closed, so this ends with its task only.
    while let Ok(place) = places.clone().acquire_owned().await {
        match socket.accept().await {
            Ok(stream) => {
                back_off = BACK_OFF.0;
                serve(stream, place);
            }
            Err(error) => {
                tracing::warn!(target: "zlink::link", %endpoint, %error, "cannot accept; trying again");
                sleep(back_off).await;
                back_off = (back_off * 2).min(BACK_OFF.1);
            }
        }
    }
}

async fn serve(accepting: Arc<Accepting>, stream: Stream, place: OwnedSemaphorePermit) {
    let since = Instant::now();
    let address = stream.address;
    let config = &accepting.transport.config;
    let greeted = timeout_at(
        since + HANDSHAKE_TIME,
        greet(stream, Role::Server, &config.security, &accepting.offer, None),
    );
    let problem = match greeted.await {
        Ok(Ok(greeted)) => match accepting.arrived(greeted, place, since).await {
            Ok(()) => return,
            Err(problem) => problem.to_owned(),
        },
        Ok(Err(problem)) => problem,
        Err(_) => "the handshake took longer than two seconds".to_owned(),
    };
    tracing::info!(target: "zlink::link", ?address, problem, "refused a connection");
}

impl Accepting {
    async fn arrived(&self, greeted: Greeted, place: OwnedSemaphorePermit, since: Instant) -> Result<(), &'static str> {
        let (part, nonce) = match greeted.ours.as_ref().and_then(|ours| ours.part) {
            None | Some((Part::Whole, _)) => {
                self.accepted(vec![(greeted, place)], since);
                return Ok(());
            }
            Some(lane) => lane,
        };
        let waiting = {
            let mut halves = self.halves.lock();
            match halves.entry(nonce) {
                Entry::Occupied(half) => {
                    let half = half.remove();
                    drop(halves);
                    if half.part == part {
                        return Err("the same lane twice");
                    }
                    // The other one's task may have given up just now; then both end here.
                    let _ = half.other.send((greeted, place));
                    return Ok(());
                }
                Entry::Vacant(entry) => {
                    let (other, waiting) = oneshot::channel();
                    entry.insert(Half { part, other });
                    waiting
                }
            }
        };
        let abandoned = greeted.abandoned();
        let joined = async {
            tokio::select! {
                biased;
                other = waiting => other.map_err(|_| "the same lane twice"),
                () = abandoned => Err("its dialler gave up"),
            }
        };
        let joined = timeout_at(since + HANDSHAKE_TIME, joined).await;
        let other = joined.unwrap_or(Err("its other lane did not come within two seconds"));
        let other = other.inspect_err(|_| drop(self.halves.lock().remove(&nonce)))?;
        let told = |greeted: &Greeted| {
            (
                greeted.identity.clone(),
                greeted.ours.as_ref().map(|ours| ours.generation),
            )
        };
        if told(&greeted) != told(&other.0) || greeted.socket != other.0.socket {
            return Err("its lanes come from two different peers");
        }
        let mut lanes = vec![(greeted, place), other];
        if part == Part::Completion {
            lanes.reverse();
        }
        self.accepted(lanes, since);
        Ok(())
    }

    fn accepted(&self, arrived: Vec<Arrived>, since: Instant) {
        let (lanes, places): (Vec<_>, Vec<_>) = arrived.into_iter().unzip();
        let Some(first) = lanes.first() else { return };
        if !self.open.load(Ordering::Acquire) {
            return;
        }
        let peer = Peer {
            identity: first.identity.clone(),
            generation: first.ours.as_ref().map(|ours| ours.generation),
            socket: first.socket,
            lanes: if lanes.len() == 2 { Lanes::Two } else { Lanes::One },
            dialled: false,
            address: first.stream.address,
        };
        let parts = Parts {
            id: self.transport.next_id(),
            peer,
            lanes,
            since,
            places,
        };
        self.acceptor.accepted(open(parts, &self.offer));
    }
}
