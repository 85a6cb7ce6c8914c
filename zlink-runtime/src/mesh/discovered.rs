//! The peers that the Location Store names: which of them are dialled, and what is known of those without a link.
//!
//! It must not know the store: complete lists are handed in, and whether they are current.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::clock;
use crate::id::Rid;
use crate::transport::Endpoint;
use crate::wire::RejectReason;

use super::info::{NodeInfo, Refusal};
use super::intent::{self, Intent};
use super::links::{Inner, Links, Lookup};
use super::plan::{Need, plan};
use super::{ObjectRole, PeerState, PeerView};

/// How a peer is listed: its RID where it is known, its state, and why no link could be made to it.
pub(crate) type Listed = (Option<Rid>, PeerState, Option<String>);

/// The last complete list, as it concerns one side.
pub(super) struct Discovered {
    peers: Mutex<BTreeMap<Rid, Peer>>,
    /// Whether the store was read completely when it was last looked at.
    current: watch::Sender<bool>,
}

struct Peer {
    info: NodeInfo,
    need: Need,
    dialling: Option<Dialling>,
}

/// An automatic intent; it ends when it is dropped, its link does not.
struct Dialling {
    intent: Arc<Intent>,
    task: JoinHandle<()>,
}

impl Drop for Dialling {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Default for Discovered {
    fn default() -> Self {
        Self {
            peers: Mutex::default(),
            current: watch::Sender::new(false),
        }
    }
}

impl Links {
    /// Takes a complete list: each description with the revision that published it. Peers that are new are dialled where
    /// that is this side's part; those that are gone are dialled no more, and their links live as long as they live.
    pub(crate) fn discovered(&self, list: Vec<(u64, NodeInfo)>) {
        let inner = &self.0;
        let plan = plan(&inner.local(), list);
        let manual = self.intents();
        let mut peers = inner.discovered.peers.lock();
        if inner.is_stopped() {
            return;
        }
        let mut before = std::mem::take(&mut *peers);
        for (rid, (info, need)) in plan {
            let kept = before.remove(&rid).and_then(|peer| {
                let same = peer.info.generation == info.generation && peer.info.endpoint == info.endpoint;
                peer.dialling.filter(|_| same)
            });
            let dialling = match need {
                Need::Dial => kept.or_else(|| inner.dial_automatically(&info, &manual)),
                Need::Wait | Need::Leave | Need::NotRequired => None,
            };
            peers.insert(rid, Peer { info, need, dialling });
        }
        let listed = peers.keys().cloned().collect();
        drop(peers);
        let mut table = inner.table.lock();
        table.listed(&listed);
        if !before.is_empty() {
            let gone = |rid: &Rid| before.contains_key(rid) && !inner.wants(rid);
            table.forget(clock::now(), |rid| !gone(rid));
        }
        drop(table);
        inner.publish();
    }

    /// Whether the list is current. While it is not, no automatic intent dials; links that are there stay.
    pub(crate) fn list_is_current(&self, current: bool) {
        self.0
            .discovered
            .current
            .send_if_modified(|known| std::mem::replace(known, current) != current);
    }
}

impl Inner {
    /// Dials those of the list that a manual intent led to, and none does any more.
    pub(super) fn dial_where_needed(self: &Arc<Self>) {
        let manual: Vec<_> = self.intents();
        let mut peers = self.discovered.peers.lock();
        if self.is_stopped() {
            return;
        }
        let left = |peer: &&mut Peer| peer.need == Need::Dial && peer.dialling.is_none();
        for peer in peers.values_mut().filter(left) {
            peer.dialling = self.dial_automatically(&peer.info, &manual);
        }
    }

    fn dial_automatically(self: &Arc<Self>, info: &NodeInfo, manual: &[Arc<Intent>]) -> Option<Dialling> {
        let endpoint = match Endpoint::of_peer(&info.endpoint) {
            Ok(endpoint) => endpoint,
            Err(error) => {
                tracing::warn!(
                    target: "zlink::runtime", peer = %info.rid, %error,
                    "the Location Store names an endpoint that nobody can dial"
                );
                return None;
            }
        };
        // A manual intent that leads there makes the link.
        if manual
            .iter()
            .any(|intent| intent.endpoint == endpoint || intent.expected.as_ref() == Some(&info.rid))
        {
            return None;
        }
        let intent = Intent::automatic(endpoint, info.rid.clone());
        let task = self.runtime.spawn(intent::run(self.clone(), intent.clone()));
        Some(Dialling { intent, task })
    }
}

impl Discovered {
    /// Waits until an intent may dial.
    pub(super) async fn may_dial(&self, intent: &Intent) {
        if intent.automatic {
            // The sender lives as long as this does.
            let _ = self.current.subscribe().wait_for(|current| *current).await;
        }
    }

    /// Why a peer that describes itself so is not the one that the store names, if it names one. `dialled` is where it
    /// was reached.
    pub(super) fn contradicts(&self, info: &NodeInfo, dialled: Option<&Endpoint>) -> Option<Refusal> {
        let peers = self.peers.lock();
        if let Some(named) = peers.get(&info.rid).map(|peer| &peer.info) {
            let refuse = |reason, what: &str| {
                let text = format!("the Location Store names another {what} of {}", info.rid);
                Some(Refusal::new(reason, text))
            };
            return match () {
                () if named.generation != info.generation => refuse(RejectReason::StaleGeneration, "run"),
                () if named.role != info.role => refuse(RejectReason::Identity, "object role"),
                () if named.endpoint != info.endpoint => refuse(RejectReason::Identity, "endpoint"),
                () if named.security_identity != info.security_identity => {
                    refuse(RejectReason::SecurityIdentity, "security identity")
                }
                () => None,
            };
        }
        let there = dialled?.as_str();
        let named = peers
            .values()
            .find(|peer| peer.info.endpoint == there && peer.info.role != ObjectRole::None)?;
        let text = format!(
            "the Location Store names {} at that endpoint, not {}",
            named.info.rid, info.rid
        );
        Some(Refusal::new(RejectReason::StaleGeneration, text))
    }

    /// Where a peer is that has never had a link.
    pub(super) fn find(&self, rid: &Rid) -> Lookup {
        match self.peers.lock().get(rid).map(|peer| peer.info.role) {
            Some(ObjectRole::Client) => Lookup::Client,
            Some(_) => Lookup::Known,
            None => Lookup::Unknown,
        }
    }

    pub(super) fn names(&self, rid: &Rid) -> bool {
        self.peers.lock().contains_key(rid)
    }

    /// Adds those that are known from the store alone.
    pub(super) fn add_to(&self, view: &mut Vec<PeerView>) {
        let peers = self.peers.lock();
        let linked = view.len();
        for peer in peers.values().filter(|peer| peer.need != Need::NotRequired) {
            if !view.iter().take(linked).any(|known| known.rid == peer.info.rid) {
                view.push(PeerView {
                    rid: peer.info.rid.clone(),
                    channels: peer.info.channels.clone(),
                    draining: peer.info.is_draining(),
                    link: None,
                });
            }
        }
    }

    /// Lists those that are known from the store alone, and tells why those could not be dialled that are listed.
    pub(super) fn list(&self, listed: &mut Vec<Listed>) {
        for (rid, peer) in &*self.peers.lock() {
            let intent = peer.dialling.as_ref().map(|dialling| &dialling.intent);
            let failure = intent.and_then(|intent| intent.failure());
            match listed.iter_mut().find(|(known, ..)| known.as_ref() == Some(rid)) {
                Some((_, PeerState::NotConnected, why)) => *why = failure.or(why.take()),
                Some(_) => {}
                None => {
                    let state = match (peer.need, intent) {
                        (Need::NotRequired, _) => PeerState::NotRequired,
                        (_, Some(intent)) if failure.is_none() => intent.state(),
                        // It leaves, and nobody misses the link.
                        (Need::Leave, _) => continue,
                        _ => PeerState::NotConnected,
                    };
                    listed.push((Some(rid.clone()), state, failure));
                }
            }
        }
    }

    /// Those that are dialled for it.
    pub(super) fn dialled(&self) -> Vec<Arc<Intent>> {
        let peers = self.peers.lock();
        let dialled = peers.values().filter_map(|peer| peer.dialling.as_ref());
        dialled.map(|dialling| dialling.intent.clone()).collect()
    }

    /// Dials nobody any more.
    pub(super) fn stop(&self) {
        self.peers.lock().clear();
    }
}

impl fmt::Debug for Discovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Discovered({} peers)", self.peers.lock().len())
    }
}
