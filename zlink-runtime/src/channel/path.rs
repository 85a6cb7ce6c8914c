//! The one send path of a ChannelName: which of its servers takes the next call. It must not know records.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::error::{Error, ErrorKind};
use crate::id::{ChannelName, LinkId, MeshName, Rid};
use crate::mesh::{Links, PeerLink, PeerView};
use crate::routing::select::{Candidate, Selector};

/// What leads to the servers.
#[derive(Clone, Debug)]
pub(crate) enum PathKind {
    /// The peers of a mesh.
    RouteMesh(MeshName),
    /// Links of its own, the local server's among them.
    ClientServer,
    /// This process only serves it.
    ServerOnly,
}

/// A ChannelName in this process.
#[derive(Debug)]
pub(crate) struct ChannelPath {
    pub(crate) name: ChannelName,
    pub(crate) kind: PathKind,
    /// The timeout of requests through it where neither call nor schema gives one.
    pub(crate) request_timeout: Option<Duration>,
    selector: Selector<Arc<PeerLink>>,
    seen: Mutex<Seen>,
    changed: Notify,
    #[cfg(feature = "testing")]
    history: super::history::History,
}

/// The candidates as last told.
#[derive(Debug, Default)]
struct Seen {
    version: u64,
    candidates: Vec<(Rid, u16, Arc<PeerLink>)>,
    /// Whether a server is known that only lacks its link.
    unreachable: bool,
    draining: bool,
}

impl ChannelPath {
    pub(crate) fn new(name: ChannelName, kind: PathKind, request_timeout: Option<Duration>) -> Self {
        Self {
            name,
            kind,
            request_timeout,
            selector: Selector::new(),
            seen: Mutex::new(Seen::default()),
            changed: Notify::new(),
            #[cfg(feature = "testing")]
            history: super::history::History::default(),
        }
    }

    /// Takes the peers as they are now. Selection is prepared again only where its candidates changed.
    pub(crate) fn peers_changed(&self, version: u64, peers: &[PeerView]) {
        let mut seen = self.seen.lock();
        if version <= seen.version {
            return;
        }
        seen.version = version;
        let members = peers.iter().filter_map(|peer| {
            let (_, weight) = peer.channels.iter().find(|(name, _)| *name == self.name)?;
            Some((peer, *weight))
        });
        let (mut candidates, mut unreachable, mut draining) = (Vec::new(), false, false);
        for (peer, weight) in members {
            match &peer.link {
                _ if peer.draining => draining = true,
                _ if weight == 0 => {}
                Some(link) => candidates.push((peer.rid.clone(), weight, link.clone())),
                None => unreachable = true,
            }
        }
        (seen.unreachable, seen.draining) = (unreachable, draining);
        let same = candidates.len() == seen.candidates.len()
            && candidates
                .iter()
                .zip(&seen.candidates)
                .all(|(new, old)| new.0 == old.0 && new.1 == old.1 && new.2.id() == old.2.id());
        if same {
            return;
        }
        #[cfg(feature = "testing")]
        self.history.push(super::history::Selection::Candidates(
            candidates
                .iter()
                .map(|(rid, weight, _)| (rid.clone(), *weight))
                .collect(),
        ));
        let list = candidates.iter().map(|(id, weight, link)| Candidate {
            id: id.clone(),
            weight: *weight,
            target: link.clone(),
        });
        self.selector.update(list.collect());
        tracing::debug!(
            target: "zlink::runtime", event_id = "zlink.runtime.mesh_node.channel_changed", channel_name = %self.name,
            ready_targets = candidates.len()
        );
        seen.candidates = candidates;
        drop(seen);
        self.changed.notify_waiters();
    }

    /// The server that takes the next call, if there is one.
    pub(crate) fn pick(&self) -> Option<Arc<PeerLink>> {
        let picked = self.selector.pick();
        #[cfg(feature = "testing")]
        self.history.push(super::history::Selection::Picked(
            picked.as_ref().map(|peer| peer.rid().clone()),
        ));
        picked
    }

    /// Every step of its selection so far.
    #[cfg(feature = "testing")]
    pub(crate) fn history(&self) -> Vec<super::history::Selection> {
        self.history.steps()
    }

    /// Waits for a server. Dropping the future is harmless.
    pub(crate) async fn pick_or_wait(self: Arc<Self>) -> Arc<PeerLink> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(peer) = self.pick() {
                return peer;
            }
            changed.await;
        }
    }

    /// Waits until selection has servers, and that link no more: it was lost, its server drains or has weight 0 now.
    /// Dropping the future is harmless.
    pub(crate) async fn passed_over(&self, link: LinkId) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let others = {
                let candidates = &self.seen.lock().candidates;
                !candidates.is_empty() && candidates.iter().all(|(.., peer)| peer.id() != link)
            };
            if others {
                return;
            }
            changed.await;
        }
    }

    /// Why there is none.
    pub(crate) fn no_server(&self) -> Error {
        let seen = self.seen.lock();
        let name = &self.name;
        let (kind, reason, text) = if seen.unreachable {
            let text = format!("no server of channel {name:?} has a ready link");
            (ErrorKind::Unavailable, "not_ready", text)
        } else {
            let reason = if seen.draining { "draining" } else { "no_member" };
            (
                ErrorKind::NotFound,
                reason,
                format!("no server of channel {name:?} can be selected"),
            )
        };
        tracing::debug!(target: "zlink::flow", surface = "channel", channel_name = %name, reason, "selection failed");
        Error::not_executed(kind, text)
    }

    /// The servers that selection has, and their weights.
    pub(crate) fn targets(&self) -> Vec<(Rid, u16)> {
        self.seen
            .lock()
            .candidates
            .iter()
            .map(|(rid, weight, _)| (rid.clone(), *weight))
            .collect()
    }
}

/// A mesh in this process, for Node direct.
#[derive(Debug)]
pub(crate) struct MeshPath {
    pub(crate) name: MeshName,
    pub(crate) links: Links,
    /// The timeout of requests through it where neither call nor schema gives one.
    pub(crate) request_timeout: Option<Duration>,
}
