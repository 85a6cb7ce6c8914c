//! The default transport, watched: what it is told, and what becomes of the receive flow that its links shall tell.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use zlink_runtime::id::LinkId;
use zlink_runtime::transport::{
    Acceptor, BoxFuture, CloseReason, Endpoint, Flow, Held, Lane, Link, LinkConfig, LinkStats, LinkTransport, Listener,
    Offer, Peer, Record, Refused, Sink, Transport, TransportError,
};

/// What a link does that shall tell a change of the receive flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Telling {
    #[default]
    Works,
    /// Fails, though the link lives.
    Fails,
    /// Fails because the link closes at that moment.
    Closes,
    /// Does not come back before it works again.
    Hangs,
}

/// Clones share everything.
#[derive(Clone, Debug)]
pub(super) struct Watching {
    inner: LinkTransport,
    seen: Arc<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    budgets: Mutex<Vec<usize>>,
    telling: Mutex<Telling>,
    changed: Condvar,
    hanging: AtomicU64,
    told: Mutex<Vec<Flow>>,
}

impl Default for Watching {
    fn default() -> Self {
        Self {
            inner: LinkTransport::new(LinkConfig::default()),
            seen: Arc::default(),
        }
    }
}

impl Watching {
    /// The budgets of all offers, the smallest first.
    pub(super) fn budgets(&self) -> Vec<usize> {
        let mut budgets = self.seen.budgets.lock().clone();
        budgets.sort_unstable();
        budgets
    }

    pub(super) fn tell(&self, telling: Telling) {
        *self.seen.telling.lock() = telling;
        self.seen.changed.notify_all();
    }

    /// How many links hang in it now.
    pub(super) fn hanging(&self) -> u64 {
        self.seen.hanging.load(Ordering::SeqCst)
    }

    /// Every change that any link was to tell.
    pub(super) fn told(&self) -> Vec<Flow> {
        self.seen.told.lock().clone()
    }
}

impl Transport for Watching {
    fn bind<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        offer: Offer,
        acceptor: Arc<dyn Acceptor>,
    ) -> BoxFuture<'a, Result<Box<dyn Listener>, TransportError>> {
        self.seen.budgets.lock().push(offer.budget);
        let acceptor = Arc::new(Accepting(acceptor, self.seen.clone()));
        self.inner.bind(endpoint, offer, acceptor)
    }

    fn dial<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        offer: Offer,
    ) -> BoxFuture<'a, Result<Arc<dyn Link>, TransportError>> {
        self.seen.budgets.lock().push(offer.budget);
        Box::pin(async {
            let link = self.inner.dial(endpoint, offer).await?;
            let link: Arc<dyn Link> = Arc::new(Watched(link, self.seen.clone()));
            Ok(link)
        })
    }
}

struct Accepting(Arc<dyn Acceptor>, Arc<Seen>);

impl Acceptor for Accepting {
    fn accepted(&self, link: Arc<dyn Link>) {
        self.0.accepted(Arc::new(Watched(link, self.1.clone())));
    }
}

#[derive(Debug)]
struct Watched(Arc<dyn Link>, Arc<Seen>);

impl Link for Watched {
    fn id(&self) -> LinkId {
        self.0.id()
    }

    fn peer(&self) -> &Peer {
        self.0.peer()
    }

    fn start(&self, sink: Arc<dyn Sink>) {
        self.0.start(sink);
    }

    fn admit(&self, max_record: usize) {
        self.0.admit(max_record);
    }

    fn try_send(&self, lane: Lane, record: Record<'_>) -> Result<(), Refused> {
        self.0.try_send(lane, record)
    }

    fn send(&self, lane: Lane, record: Vec<u8>) -> BoxFuture<'static, Result<(), Refused>> {
        self.0.send(lane, record)
    }

    fn announce(&self, flow: Flow) -> Result<(), Refused> {
        if flow.version == 0 {
            return self.0.announce(flow);
        }
        self.1.told.lock().push(flow);
        let mut telling = self.1.telling.lock();
        match *telling {
            Telling::Works => {}
            Telling::Fails => return Err(Refused::Full),
            Telling::Closes => return Err(Refused::Closed),
            Telling::Hangs => {
                self.1.hanging.fetch_add(1, Ordering::SeqCst);
                self.1
                    .changed
                    .wait_while(&mut telling, |telling| *telling == Telling::Hangs);
                self.1.hanging.fetch_sub(1, Ordering::SeqCst);
            }
        }
        drop(telling);
        self.0.announce(flow)
    }

    fn held(&self) -> Held {
        self.0.held()
    }

    fn close(&self, reason: CloseReason, linger: Duration) {
        self.0.close(reason, linger);
    }

    fn stats(&self) -> LinkStats {
        self.0.stats()
    }
}
