//! All links of one MeshNode, ClientServer server or client: it ties admission, table, liveness and intents together.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::clock;
use crate::id::{ChannelName, Generation, LinkId, Rid, SpotId};
use crate::limit::{DESCRIPTOR_BYTES, REQUEST_TIMEOUT};
use crate::message::codec;
use crate::permit::HostPermits;
use crate::random::Random;
use crate::transport::{
    Acceptor, CloseReason, Endpoint, Flow, Lane, Lanes, Link, Listener, Offer, Record, SocketType, Transport,
    TransportError,
};
use crate::wire::{self, NodeState, RecordKind};

use super::discovered::{Discovered, Listed};
use super::flow::ReceiveFlow;
use super::info::{NodeInfo, Scope};
use super::intent::{self, Intent};
use super::peer::PeerLink;
use super::sink::LinkSink;
use super::table::{Placed, Table};
use super::{ObjectRole, PeerState, Placement, Upcall};

/// How often links are looked at.
pub(super) const TICK: Duration = Duration::from_secs(1);
/// How long a peer that was lost is still known, so that a call is told `Unavailable` rather than `NotFound`.
pub(super) const PEER_MEMORY: Duration = REQUEST_TIMEOUT;

/// What a [`Links`] is made of.
pub(crate) struct LinksConfig {
    pub(crate) info: NodeInfo,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) permits: HostPermits,
    /// What peers are told, where they send requests.
    pub(crate) flow: Option<ReceiveFlow>,
    pub(crate) budget: usize,
    pub(crate) receive_budget: Option<usize>,
    pub(crate) upcall: Arc<dyn Upcall>,
    pub(crate) runtime: Handle,
    /// Where the pauses between attempts to link come from.
    pub(crate) random: Random,
}

/// All links of one scope.
#[derive(Clone)]
pub(crate) struct Links(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) this: Weak<Inner>,
    pub(super) local: Mutex<NodeInfo>,
    transport: Arc<dyn Transport>,
    permits: HostPermits,
    budget: usize,
    receive_budget: Option<usize>,
    pub(super) upcall: Arc<dyn Upcall>,
    pub(super) runtime: Handle,
    random: Random,
    pub(super) table: Mutex<Table>,
    /// Every link that has not ended, admitted or not.
    open: Mutex<BTreeMap<LinkId, Arc<dyn Link>>>,
    flow: Option<ReceiveFlow>,
    intents: Mutex<Vec<(Arc<Intent>, JoinHandle<()>)>>,
    pub(super) discovered: Discovered,
    /// Counts the changes of what this side publishes.
    revision: watch::Sender<u64>,
    /// No link is dialled or accepted any more.
    stopped: AtomicBool,
    listener: Mutex<Option<Box<dyn Listener>>>,
    ticker: Mutex<Option<JoinHandle<()>>>,
    changed: Notify,
    /// Peers have changed, and the floor above is told soon.
    stale: AtomicBool,
    /// Links that were accepted before this side is [open](Links::open); `None` from then on.
    early: Mutex<Option<Vec<Arc<dyn Link>>>>,
}

/// The same for who must not keep them alive.
#[derive(Clone)]
pub(crate) struct WeakLinks(Weak<Inner>);

/// Where a peer is.
#[derive(Clone, Debug)]
pub(crate) enum Lookup {
    Ready(Arc<PeerLink>),
    /// It is known, and its link is not there now.
    Known,
    /// It is an Object Client, which nothing is sent to by RID.
    Client,
    Unknown,
}

impl Links {
    pub(crate) fn new(config: LinksConfig) -> Self {
        let keyed_by_link = matches!(config.info.scope, Scope::ChannelServer(_));
        let revision = watch::Sender::new(config.info.revision);
        let inner = Arc::new_cyclic(|this| Inner {
            this: this.clone(),
            local: Mutex::new(config.info),
            transport: config.transport,
            permits: config.permits,
            budget: config.budget,
            receive_budget: config.receive_budget,
            upcall: config.upcall,
            runtime: config.runtime,
            random: config.random,
            table: Mutex::new(Table::new(keyed_by_link)),
            open: Mutex::new(BTreeMap::new()),
            flow: config.flow,
            intents: Mutex::new(Vec::new()),
            discovered: Discovered::default(),
            revision,
            stopped: AtomicBool::new(false),
            listener: Mutex::new(None),
            ticker: Mutex::new(None),
            changed: Notify::new(),
            stale: AtomicBool::new(false),
            early: Mutex::new(Some(Vec::new())),
        });
        let ticking = inner.this.clone();
        *inner.ticker.lock() = Some(inner.runtime.spawn(async move {
            loop {
                tokio::time::sleep(TICK).await;
                let Some(inner) = ticking.upgrade() else { return };
                inner.tick(clock::now());
            }
        }));
        Self(inner)
    }

    pub(crate) fn downgrade(&self) -> WeakLinks {
        WeakLinks(self.0.this.clone())
    }

    /// Binds. Links are accepted, and wait for [`Links::open`]. `advertise` makes, of what was bound, the endpoint that peers are told.
    ///
    /// # Errors
    /// Where the endpoint cannot be bound.
    pub(crate) async fn listen(
        &self,
        endpoint: &Endpoint,
        advertise: impl FnOnce(&Endpoint) -> Endpoint + Send,
    ) -> Result<Endpoint, TransportError> {
        let acceptor = Arc::new(Accepting(self.0.this.clone()));
        let listener = self.0.transport.bind(endpoint, self.0.offer(), acceptor).await?;
        let advertised = advertise(listener.endpoint());
        advertised.as_str().clone_into(&mut self.0.local.lock().endpoint);
        *self.0.listener.lock() = Some(listener);
        Ok(advertised)
    }

    /// Lets peers in: everything that they may ask for is there.
    pub(crate) fn open(&self) {
        let early = self.0.early.lock().take();
        early.into_iter().flatten().for_each(|link| self.0.accept(link));
    }

    /// Adds an intent and begins to dial; `false` where all has stopped. One for the same endpoint and RID that is there
    /// already stays, and dials now where it would have waited.
    pub(crate) fn connect(&self, endpoint: Endpoint, expected: Option<Rid>) -> bool {
        let mut intents = self.0.intents.lock();
        if self.0.stopped.load(Ordering::Acquire) {
            return false;
        }
        let same = |intent: &Intent| intent.endpoint == endpoint && intent.expected == expected;
        if let Some((known, _)) = intents.iter().find(|(intent, _)| same(intent)) {
            known.ask();
            return true;
        }
        // A changed expectation is a new intent; the one before must not keep dialling.
        let former = take(&mut intents, &endpoint);
        let intent = Intent::new(endpoint, expected.clone());
        let task = self.0.runtime.spawn(intent::run(self.0.clone(), intent.clone()));
        intents.push((intent, task));
        drop(intents);
        self.0.publish();
        for intent in former {
            intent.release("another peer is expected at its endpoint", |rid| {
                expected.as_ref().is_none_or(|expected| expected == rid)
            });
        }
        true
    }

    /// Releases the intent for that endpoint, and closes the link that it made. Returns whether there was one.
    pub(crate) fn disconnect(&self, endpoint: &Endpoint) -> bool {
        let released = take(&mut self.0.intents.lock(), endpoint);
        for intent in &released {
            intent.release("its intent was released", |_| false);
        }
        if !released.is_empty() {
            self.0.dial_where_needed();
            self.0.publish();
        }
        !released.is_empty()
    }

    /// The intents as they stand.
    pub(crate) fn intents(&self) -> Vec<Arc<Intent>> {
        self.0.intents()
    }

    /// Where that peer is.
    pub(crate) fn find(&self, rid: &Rid) -> Lookup {
        let table = self.0.table.lock();
        match table.find(rid) {
            Some(_)
                if table
                    .info(rid)
                    .is_some_and(|info| info.role == super::ObjectRole::Client) =>
            {
                Lookup::Client
            }
            Some(Some(peer)) => Lookup::Ready(peer.clone()),
            Some(None) => Lookup::Known,
            None => match self.0.discovered.find(rid) {
                Lookup::Unknown if self.0.wants(rid) => Lookup::Known,
                found => found,
            },
        }
    }

    /// Whether there is a link to that peer, or one may come: the store lists it, or somebody wants it.
    pub(crate) fn expects(&self, rid: &Rid) -> bool {
        matches!(self.find(rid), Lookup::Ready(_) | Lookup::Known)
    }

    /// Waits until a link to that peer is ready that is none of those that have `ended`. Dropping the future is harmless.
    pub(crate) async fn ready(&self, rid: &Rid, ended: &[LinkId]) -> Arc<PeerLink> {
        loop {
            let changed = self.0.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Lookup::Ready(peer) = self.find(rid)
                && !ended.contains(&peer.id())
            {
                return peer;
            }
            changed.await;
        }
    }

    /// The nodes that can have Spots and may be given new ones now, by RID; this one is not among them.
    pub(crate) fn placements(&self) -> Vec<Placement> {
        self.0.table.lock().placements()
    }

    /// From here on this node has that Entry Spot. Told before it is open: no peer was told anything yet.
    pub(crate) fn set_entry(&self, id: SpotId) {
        self.change(|info| {
            info.objects.entry = Some(id);
            true
        });
    }

    /// The Entry Spots of this node, and of those that it is linked with and that take new work.
    pub(crate) fn entries(&self) -> BTreeMap<Rid, SpotId> {
        let local = self.0.local();
        let own = local.objects.entry.map(|entry| (local.rid, entry));
        self.0.table.lock().entries().chain(own).collect()
    }

    /// What this side says of itself.
    pub(crate) fn local(&self) -> NodeInfo {
        self.0.local()
    }

    /// Follows the revision of what this side says of itself.
    pub(crate) fn revisions(&self) -> watch::Receiver<u64> {
        self.0.revision.subscribe()
    }

    /// Changes the weight of a Server membership and tells all peers. Returns whether there is that membership.
    pub(crate) fn set_weight(&self, channel: &ChannelName, weight: u16) -> bool {
        self.change(
            |info| match info.channels.iter_mut().find(|(name, _)| name == channel) {
                Some((_, known)) => {
                    *known = weight;
                    true
                }
                None => false,
            },
        )
    }

    /// The share of new Spots that this node takes.
    pub(crate) fn placement_weight(&self) -> u16 {
        self.0.local.lock().objects.placement_weight
    }

    /// Changes it and tells all peers. Returns whether this node can have Spots.
    pub(crate) fn set_placement_weight(&self, weight: u16) -> bool {
        self.change(|info| {
            let serves = info.role == ObjectRole::Server;
            if serves {
                info.objects.placement_weight = weight;
            }
            serves
        })
    }

    /// Tells all peers that this side takes no new work. Links stay.
    pub(crate) fn drain(&self) {
        self.change(|info| {
            info.state = NodeState::Draining;
            true
        });
    }

    fn change(&self, change: impl FnOnce(&mut NodeInfo) -> bool) -> bool {
        {
            let mut local = self.0.local.lock();
            if !change(&mut local) {
                return false;
            }
            local.revision += 1;
            self.0.revision.send_replace(local.revision);
        }
        let links: Vec<_> = self.0.table.lock().links().cloned().collect();
        for peer in links {
            self.0.owe(&peer, |_| {});
        }
        true
    }

    /// Bytes that each link holds per direction.
    pub(crate) fn budget(&self) -> usize {
        self.0.budget
    }

    /// Every link that has not ended.
    pub(crate) fn open_links(&self) -> Vec<Arc<dyn Link>> {
        self.0.open.lock().values().cloned().collect()
    }

    /// The flow that peers were told last; `None` where they send no requests.
    pub(crate) fn told_flow(&self) -> Option<Flow> {
        self.0.flow.as_ref().map(ReceiveFlow::told)
    }

    /// The peers that are listed: who is linked, and who is wanted.
    pub(crate) fn peers(&self) -> Vec<Listed> {
        let mut peers: Vec<_> = {
            let view = self.0.table.lock().view();
            let state = |peer: &super::PeerView| match (&peer.link, peer.draining) {
                (Some(_), false) => PeerState::Ready,
                (Some(_), true) => PeerState::Draining,
                (None, _) => PeerState::NotConnected,
            };
            view.iter()
                .map(|peer| (Some(peer.rid.clone()), state(peer), None))
                .collect()
        };
        for intent in self.intents() {
            let rid = intent.rid();
            match peers.iter_mut().find(|(known, ..)| rid.is_some() && *known == rid) {
                Some((_, PeerState::NotConnected, why)) => *why = why.take().or_else(|| intent.failure()),
                Some(_) => {}
                None => peers.push((rid, intent.state(), intent.failure())),
            }
        }
        self.0.discovered.list(&mut peers);
        peers
    }

    /// What is dialled because the Location Store names it.
    pub(crate) fn found(&self) -> Vec<Arc<Intent>> {
        self.0.discovered.dialled()
    }

    /// Admitted links, for status.
    pub(crate) fn links(&self) -> Vec<Arc<PeerLink>> {
        self.0.table.lock().links().cloned().collect()
    }

    /// Ends everything at once, and waits for nothing.
    pub(crate) fn abandon(&self) {
        for link in self.stop() {
            link.close(CloseReason::Local("the host stops"), Duration::ZERO);
        }
    }

    /// Stops accepting, dialling and looking after links. Returns the links that are open.
    fn stop(&self) -> Vec<Arc<dyn Link>> {
        self.0.stopped.store(true, Ordering::Release);
        self.0.listener.lock().take();
        for link in self.0.early.lock().take().into_iter().flatten() {
            link.close(CloseReason::Local("the host stops"), Duration::ZERO);
        }
        for (_, task) in self.0.intents.lock().drain(..) {
            task.abort();
        }
        self.0.discovered.stop();
        if let Some(ticker) = self.0.ticker.lock().take() {
            ticker.abort();
        }
        self.0.open.lock().values().cloned().collect()
    }

    /// Stops accepting and dialling, lets every link send what it holds for at most `linger`, and closes them all.
    pub(crate) async fn close(&self, linger: Duration) {
        let listener = self.0.listener.lock().take();
        if let Some(listener) = listener {
            listener.close().await;
        }
        for link in self.stop() {
            link.close(CloseReason::Local("the host stops"), linger);
        }
        let deadline = clock::now() + linger + Duration::from_secs(1);
        loop {
            let changed = self.0.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.0.open.lock().is_empty() || tokio::time::timeout_at(deadline, changed).await.is_err() {
                return;
            }
        }
    }
}

/// Takes the intents for that endpoint out, and ends their dialling.
fn take(intents: &mut Vec<(Arc<Intent>, JoinHandle<()>)>, endpoint: &Endpoint) -> Vec<Arc<Intent>> {
    let taken = intents.extract_if(.., |(intent, _)| intent.endpoint == *endpoint);
    taken
        .map(|(intent, task)| {
            task.abort();
            intent
        })
        .collect()
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Links").field(&self.0.local.lock().scope).finish()
    }
}

impl WeakLinks {
    /// `None` once their host is gone.
    pub(crate) fn upgrade(&self) -> Option<Links> {
        self.0.upgrade().map(Links)
    }
}

impl fmt::Debug for WeakLinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WeakLinks").finish_non_exhaustive()
    }
}

/// Of the listener, which must not keep alive what holds it.
struct Accepting(Weak<Inner>);

impl Acceptor for Accepting {
    fn accepted(&self, link: Arc<dyn Link>) {
        let Some(inner) = self.0.upgrade() else { return };
        // The listener bounds how many there can be.
        if let Some(early) = &mut *inner.early.lock() {
            return early.push(link);
        }
        inner.accept(link);
    }
}

impl Inner {
    fn accept(self: &Arc<Self>, link: Arc<dyn Link>) {
        let sink = LinkSink::accepted(self.clone(), link.clone());
        self.remember(&link);
        link.start(sink);
        if self.stopped.load(Ordering::Acquire) {
            // It came while the listener was closing; who closes the others may not have seen it.
            link.close(CloseReason::Local("the host stops"), Duration::ZERO);
        }
    }

    pub(super) fn local(&self) -> NodeInfo {
        self.local.lock().clone()
    }

    pub(super) fn intents(&self) -> Vec<Arc<Intent>> {
        self.intents.lock().iter().map(|(intent, _)| intent.clone()).collect()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub(super) fn transport(&self) -> &dyn Transport {
        &*self.transport
    }

    pub(super) fn random(&self) -> &Random {
        &self.random
    }

    pub(super) fn upcall(&self) -> &dyn Upcall {
        &*self.upcall
    }

    pub(super) fn offer(&self) -> Offer {
        let local = self.local.lock();
        let (socket, lanes) = match local.scope {
            Scope::Mesh(_) => (SocketType::Router, Lanes::Two),
            Scope::ChannelServer(_) => (SocketType::Router, Lanes::One),
            // Those of a fanout have no links, and no offer is asked of them.
            Scope::ChannelClient(_) | Scope::Publisher(_) | Scope::Subscriber(_) => (SocketType::Dealer, Lanes::One),
        };
        Offer {
            socket,
            identity: local.rid.clone(),
            generation: local.generation,
            lanes,
            max_record: DESCRIPTOR_BYTES,
            budget: self.budget,
            receive_budget: self.receive_budget,
            permits: self.permits.clone(),
            flow: self.flow.as_ref().map(ReceiveFlow::told).unwrap_or_default(),
        }
    }

    pub(super) fn remember(&self, link: &Arc<dyn Link>) {
        self.open.lock().insert(link.id(), link.clone());
        if let Some(flow) = &self.flow {
            flow.enter(link);
        }
    }

    pub(super) fn forget_sink(&self, link: LinkId) {
        if let Some(flow) = &self.flow {
            flow.leave(link);
        }
        self.open.lock().remove(&link);
        self.changed.notify_waiters();
    }

    /// Says something of a handshake.
    pub(super) fn say<M: codec::Message>(&self, link: &Arc<dyn Link>, kind: RecordKind, message: &M) {
        let said = codec::encode(message, |body| {
            let record = wire::service(kind, body);
            let (head, payload) = (record.as_slice(), [].as_slice());
            // The first records of a link always find room; a link that has ended tells its sink.
            let _ = link.try_send(Lane::Data, Record { head, payload });
        });
        if let Err(error) = said {
            tracing::error!(target: "zlink::runtime", ?kind, %error, "a service record cannot be encoded");
            link.close(CloseReason::Local("a service record cannot be encoded"), Duration::ZERO);
        }
    }

    /// Places a link. `admitted` runs before anybody can find it: its calls go behind what that says.
    pub(super) fn place(&self, link: &Arc<PeerLink>, info: NodeInfo, admitted: impl FnOnce()) -> Placed {
        let local = self.local.lock().rid.clone();
        let mut table = self.table.lock();
        let placed = table.place(&local, link, info);
        if !matches!(placed, Placed::Refused(_)) {
            admitted();
        }
        placed
    }

    /// Closes links that retire once `peer` is the newest to its node: those of earlier runs, and all but the newest of
    /// its own run. Else one that never says that it needs them no more could keep any number of them.
    pub(super) fn close_outlived(&self, peer: &PeerLink) {
        for old in self.table.lock().outlived(peer) {
            old.close(CloseReason::Local("replaced by newer links"), Duration::ZERO);
        }
    }

    /// Forgets a peer that an intent led to before it led to somebody else, unless somebody still wants it.
    pub(super) fn forget_former(&self, rid: &Rid) {
        if !self.wants(rid) {
            self.table.lock().forget(clock::now(), |known| known != rid);
        }
    }

    /// Tells the floor above how the peers stand now.
    pub(super) fn publish(&self) {
        let (version, mut view) = self.table.lock().next_view();
        self.discovered.add_to(&mut view);
        // Asked behind the version: whatever has changed by then, nobody tells it with an earlier one.
        let elsewhere = intent::elsewhere(&self.intents());
        self.upcall.peers_changed(version, &view, elsewhere.as_deref());
        self.changed.notify_waiters();
    }

    /// Takes a live change of a peer. The floor above is told on a task of its own, once for all that came meanwhile:
    /// what it does with it takes long enough that one peer could hold a thread with it.
    pub(super) fn update(&self, from: &PeerLink, update: wire::Update) -> Result<(), String> {
        if self.table.lock().update(from, update)? && !self.stale.swap(true, Ordering::AcqRel) {
            let this = self.this.clone();
            self.runtime.spawn(async move {
                if let Some(inner) = this.upgrade() {
                    inner.stale.store(false, Ordering::Release);
                    inner.publish();
                }
            });
        }
        Ok(())
    }

    /// Nothing more can be sent to that peer on its link.
    pub(super) fn ending(&self, peer: &PeerLink) {
        if self.table.lock().ending(peer, clock::now()) {
            self.publish();
        }
    }

    pub(super) fn lost(&self, peer: &Arc<PeerLink>, reason: &CloseReason) {
        let in_order = matches!(reason, CloseReason::PeerClosed | CloseReason::Local(_));
        let used = self.table.lock().remove(peer, in_order, clock::now());
        tracing::info!(
            target: "zlink::runtime", event_id = "zlink.runtime.mesh_node.peer_changed", peer = %peer.rid(), %reason,
            state = "not_connected"
        );
        if used {
            self.publish();
        }
        self.upcall.link_closed(peer, reason);
    }

    /// Whether an intent leads, or is expected to lead, to that peer, or the Location Store names it.
    pub(super) fn wants(&self, rid: &Rid) -> bool {
        let manual = |rid| {
            let intents = self.intents.lock();
            intents.iter().any(|(intent, _)| intent.rid().as_ref() == Some(rid))
        };
        manual(rid) || self.discovered.names(rid)
    }

    /// Waits until no link to that run of a peer is in use. One that retires takes nothing new, and may take as long to
    /// end as a peer likes: nobody is to wait for a link meanwhile.
    pub(super) async fn until_no_link_to(&self, rid: &Rid, run: Generation) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let linked = matches!(self.table.lock().find(rid), Some(Some(used)) if used.generation() == run);
            if !linked {
                return;
            }
            changed.await;
        }
    }
}
