//! This host's own node as its callers see it: a peer that takes records like any other, without a link. It must not know
//! what the records ask for.
//!
//! Who finds no permit waits in a line, and its record with it: one task takes the permits and hands the records on, so
//! that a caller that is not polled keeps neither a permit nor a place before others.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::call::{Key, Pending};
use crate::clock;
use crate::error::Error;
use crate::id::{LinkId, Rid};
use crate::message::codec::Inline;
use crate::permit::{HostPermits, Permit, Source};
use crate::transport::{BoxFuture, Record, Refused};
use crate::wire::{self, Incoming};

use super::inbound::Inbound;
use super::objects::Arrived;

/// The link number that stands for this host itself.
pub(super) const LOCAL: LinkId = LinkId(0);

/// The own node of one mesh.
pub(crate) struct OwnPeer {
    rid: Rid,
    inbound: Weak<Inbound>,
    pending: Pending,
    /// The greatest record, as the mesh agrees on with others.
    max_record: usize,
    permits: HostPermits,
    source: Source,
    line: Mutex<Line>,
    runtime: Handle,
}

#[derive(Default)]
struct Line {
    next: u64,
    /// In the order they came.
    waiting: BTreeMap<u64, Waits>,
    /// A task takes permits for them.
    served: bool,
}

struct Waits {
    record: Bytes,
    taken: oneshot::Sender<()>,
}

/// A place in the line; dropping it withdraws the record.
struct Place {
    own: Arc<OwnPeer>,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let waits = self.own.line.lock().waiting.remove(&self.number);
        drop(waits);
    }
}

impl OwnPeer {
    /// Must be called on the host's runtime.
    pub(crate) fn new(rid: Rid, inbound: &Arc<Inbound>, max_record: usize, permits: HostPermits) -> Self {
        Self {
            rid,
            inbound: Arc::downgrade(inbound),
            pending: inbound.pending().clone(),
            max_record,
            source: permits.source(),
            permits,
            line: Mutex::new(Line::default()),
            runtime: Handle::current(),
        }
    }

    pub(super) fn rid(&self) -> &Rid {
        &self.rid
    }

    pub(super) fn max_record(&self) -> usize {
        self.max_record
    }

    /// Whether all permits have been in use for so long and no job has started.
    pub(super) fn is_stalled(&self, limit: Duration) -> bool {
        self.permits.status().stalled.is_some_and(|since| since >= limit)
    }

    /// Takes a record where a permit is free and nobody waits.
    pub(super) fn try_send(self: &Arc<Self>, record: Record<'_>) -> Result<(), Refused> {
        if record.len() > self.max_record {
            return Err(Refused::TooLarge);
        }
        if !self.line.lock().waiting.is_empty() {
            return Err(Refused::Full);
        }
        let mut granted = self.source.try_acquire(1).ok_or(Refused::Full)?;
        let permit = granted.take().ok_or(Refused::Full)?;
        let mut whole = Vec::with_capacity(record.len());
        whole.extend_from_slice(record.head);
        whole.extend_from_slice(record.payload);
        self.deliver(whole.into(), permit)
    }

    /// Waits for a permit, behind those that wait already. Dropping the future withdraws the record for good.
    pub(super) fn send(self: &Arc<Self>, record: Vec<u8>) -> BoxFuture<'static, Result<(), Refused>> {
        let (tell, taken) = oneshot::channel();
        let mut line = self.line.lock();
        let number = line.next;
        line.next += 1;
        let waits = Waits {
            record: record.into(),
            taken: tell,
        };
        line.waiting.insert(number, waits);
        let served = std::mem::replace(&mut line.served, true);
        drop(line);
        let own = self.clone();
        let place = Place { own, number };
        if !served {
            self.runtime.spawn(self.clone().serve());
        }
        Box::pin(async move {
            let _place = place;
            taken.await.map_err(|_| Refused::Closed)
        })
    }

    /// Takes a permit for each that waits, until nobody does.
    async fn serve(self: Arc<Self>) {
        let mut source = self.permits.source();
        loop {
            {
                let mut line = self.line.lock();
                if line.waiting.is_empty() {
                    line.served = false;
                    return;
                }
            }
            let granted = source.acquire(1).await;
            let Some(permit) = granted.ok().and_then(|mut grant| grant.take()) else {
                // The host stops; whoever waits hears of it as its record is dropped.
                let mut line = self.line.lock();
                line.served = false;
                let waiting = std::mem::take(&mut line.waiting);
                drop(line);
                drop(waiting);
                return;
            };
            let first = self.line.lock().waiting.pop_first();
            // Where nobody hears that it was taken, it was withdrawn a moment ago.
            if let Some((_, Waits { record, taken })) = first
                && taken.send(()).is_ok()
                && let Err(refused) = self.deliver(record, permit)
            {
                tracing::debug!(
                    target: "zlink::dispatch", event_id = "zlink.dispatch_error", %refused, reason = "shutdown",
                    outcome = "failed", action = "drop"
                );
            }
        }
    }

    fn deliver(self: &Arc<Self>, record: Bytes, permit: Permit) -> Result<(), Refused> {
        let inbound = self.inbound.upgrade().ok_or(Refused::Closed)?;
        match wire::parse(&record) {
            Ok(Incoming::Call(call)) => inbound.own_call(self, record, call, permit, clock::now()),
            Ok(incoming) => match Arrived::of(&incoming) {
                Some(what) => inbound.own_objects(self, record, what, permit, clock::now()),
                // Nothing else is sent here.
                None => return Err(Refused::Closed),
            },
            Err(_) => return Err(Refused::Closed),
        }
        Ok(())
    }

    /// Ends a request of this host with its reply, unless that is larger than any other node could send it.
    pub(super) fn reply(&self, correlation: u64, payload: &[u8]) -> Result<(), Refused> {
        let head = wire::reply_head(correlation).to_bytes();
        if head.as_slice().len() + payload.len() > self.max_record {
            return Err(Refused::TooLarge);
        }
        self.pending
            .reply(Key::from_wire(correlation), LOCAL, Bytes::copy_from_slice(payload));
        Ok(())
    }

    /// The same with an error.
    pub(super) fn fail(&self, correlation: u64, error: Error) {
        self.pending.fail(Key::from_wire(correlation), LOCAL, error);
    }
}

impl fmt::Debug for OwnPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnPeer({})", self.rid)
    }
}
