//! The one send path of a ChannelName: which of its servers takes the next call. It must not know records.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::error::{Error, ErrorKind};
use crate::id::{ChannelName, LinkId, MeshName, Rid};
use crate::mesh::{PeerLink, PeerView, WeakLinks};
use crate::routing::select::{Candidate, Selector};

/// What leads to the servers.
#[derive(Clone, Debug)]
pub(crate) enum PathKind {
    /// The peers of a mesh.
    RouteMesh(MeshName),
    /// Links of its own, the local server's among them.
    ClientServer {
        /// Servers are also found through the Location Store, where one may come at any time.
        searches: bool,
    },
    /// This process only serves it.
    ServerOnly,
}

/// Picks in which selection may come to somebody whose link has not ended.
const PICKS: usize = 8;

/// What a MeshNode was told of time, where it was.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timeouts {
    /// Of requests where neither call nor schema gives one.
    pub(crate) request: Option<Duration>,
    /// Of sends, which wait as long as it takes otherwise.
    pub(crate) send: Option<Duration>,
}

/// A ChannelName in this process.
#[derive(Debug)]
pub(crate) struct ChannelPath {
    pub(crate) name: ChannelName,
    pub(crate) kind: PathKind,
    pub(crate) timeouts: Timeouts,
    selector: Selector<Arc<PeerLink>>,
    seen: Mutex<Seen>,
    changed: Notify,
    failures: [AtomicU64; 3],
    #[cfg(feature = "testing")]
    history: super::history::History,
}

/// Calls of a channel for which there was no server, since the host started. Those that wait for one in a ClientServer
/// channel are not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SelectionFailures {
    /// No server was known that may be selected, or each endpoint was something else.
    pub no_member: u64,
    /// Servers were known, and none had a ready link.
    pub not_ready: u64,
    /// The only ones that were known drain.
    pub draining: u64,
}

/// The candidates as last told.
#[derive(Debug, Default)]
struct Seen {
    version: u64,
    candidates: Vec<(Rid, u16, Arc<PeerLink>)>,
    /// Whether a server is known that only lacks its link.
    unreachable: bool,
    draining: bool,
    /// There is nobody to wait for: what all endpoints are instead.
    elsewhere: Option<Box<str>>,
}

impl ChannelPath {
    pub(crate) fn new(name: ChannelName, kind: PathKind, timeouts: Timeouts) -> Self {
        Self {
            name,
            kind,
            timeouts,
            selector: Selector::new(),
            seen: Mutex::new(Seen::default()),
            changed: Notify::new(),
            failures: Default::default(),
            #[cfg(feature = "testing")]
            history: super::history::History::default(),
        }
    }

    /// What leads there, as records and figures tell it.
    pub(super) fn route_kind(&self) -> &'static str {
        match self.kind {
            PathKind::RouteMesh(_) => "route_mesh",
            PathKind::ClientServer { .. } | PathKind::ServerOnly => "client_server",
        }
    }

    pub(super) fn mesh_name(&self) -> Option<&str> {
        match &self.kind {
            PathKind::RouteMesh(name) => Some(name.as_str()),
            PathKind::ClientServer { .. } | PathKind::ServerOnly => None,
        }
    }

    /// How often there was no server.
    pub(crate) fn failures(&self) -> SelectionFailures {
        let [no_member, not_ready, draining] = self.failures.each_ref().map(|count| count.load(Ordering::Relaxed));
        SelectionFailures {
            no_member,
            not_ready,
            draining,
        }
    }

    /// Takes the peers as they are now, and what all endpoints are where none is what is wanted. Selection is prepared
    /// again only where its candidates changed.
    pub(crate) fn peers_changed(&self, version: u64, peers: &[PeerView], elsewhere: Option<&str>) {
        let mut seen = self.seen.lock();
        if version <= seen.version {
            return;
        }
        seen.version = version;
        if matches!(self.kind, PathKind::ClientServer { searches: false }) && seen.elsewhere.as_deref() != elsewhere {
            seen.elsewhere = elsewhere.map(Into::into);
            // Who wakes finds the lock free again, and the candidates as they are by then.
            self.changed.notify_waiters();
        }
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

    /// The same without links that have ended, which selection hears of in a moment.
    pub(crate) fn pick_but(&self, ended: &[LinkId]) -> Option<Arc<PeerLink>> {
        let works = |peer: &Arc<PeerLink>| !ended.contains(&peer.id());
        let picked = (0..PICKS).find_map(|_| self.pick().filter(works));
        // A light one may not come for thousands of picks.
        picked.or_else(|| self.selector.other(works))
    }

    /// Waits for a server whose link is none of those that have ended. Dropping the future is harmless.
    ///
    /// # Errors
    /// `NotFound` where there is nobody to wait for.
    pub(crate) async fn pick_or_wait(self: Arc<Self>, ended: Vec<LinkId>) -> Result<Arc<PeerLink>, Error> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(peer) = self.pick_but(&ended) {
                return Ok(peer);
            }
            if let Some(error) = self.nobody() {
                return Err(error);
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

    /// Waits until selection has that many servers. Dropping the future is harmless.
    pub(crate) async fn until_servers(&self, count: usize) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.seen.lock().candidates.len() >= count {
                return;
            }
            changed.await;
        }
    }

    /// Why it is in vain to wait for a server of a ClientServer channel, where it is: each endpoint has answered that it is
    /// none.
    pub(crate) fn nobody(&self) -> Option<Error> {
        let seen = self.seen.lock();
        let text = format!(
            "no endpoint has a server of channel {:?}; {}",
            self.name,
            seen.elsewhere.as_deref()?
        );
        let [no_member, ..] = &self.failures;
        no_member.fetch_add(1, Ordering::Relaxed);
        Some(Error::not_executed(ErrorKind::NotFound, text))
    }

    /// Why there is none.
    pub(crate) fn no_server(&self) -> Error {
        let seen = self.seen.lock();
        let name = &self.name;
        let [no_member, not_ready, draining] = &self.failures;
        let (kind, reason, count) = if seen.unreachable {
            (ErrorKind::Unavailable, "not_ready", not_ready)
        } else if seen.draining {
            (ErrorKind::NotFound, "draining", draining)
        } else {
            (ErrorKind::NotFound, "no_member", no_member)
        };
        count.fetch_add(1, Ordering::Relaxed);
        let text = match kind {
            ErrorKind::Unavailable => format!("no server of channel {name:?} has a ready link"),
            _ => format!("no server of channel {name:?} can be selected"),
        };
        tracing::debug!(target: "zlink::flow", surface = "channel", channel_name = %name, channel_route_kind = self.route_kind(), mesh_name = self.mesh_name(), reason, "selection failed");
        Error::not_executed(kind, text)
    }

    /// All that can be selected; `None` where it leads through no mesh.
    pub(super) fn members(&self) -> Option<Vec<Arc<PeerLink>>> {
        let is_mesh = matches!(self.kind, PathKind::RouteMesh(_));
        is_mesh.then(|| {
            self.seen
                .lock()
                .candidates
                .iter()
                .map(|(.., link)| link.clone())
                .collect()
        })
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
    /// They hold, through what they tell, the calling side that this is a part of.
    pub(crate) links: WeakLinks,
    pub(crate) timeouts: Timeouts,
}
