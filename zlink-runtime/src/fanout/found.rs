//! The publishers that the Location Store names, and the feeds of those that are to be heard. It must not know the store:
//! complete lists are handed in, and whether they are current.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::id::{ChannelName, Generation, Rid};
use crate::mesh::{Need, NodeInfo, PeerState, Scope, Searches, plan};
use crate::transport::Endpoint;

use super::feed::{Dialler, Feed};

/// The last complete list, as it concerns one subscriber.
pub(crate) struct Found {
    /// Who looks.
    local: NodeInfo,
    dialler: Dialler,
    /// `None` once nothing is taken any more.
    publishers: Mutex<Option<BTreeMap<Rid, Publisher>>>,
    current: watch::Sender<bool>,
}

/// A publisher that is named.
struct Publisher {
    info: NodeInfo,
    /// None of one that is going; or why there is none.
    feed: Result<Option<Feed>, String>,
}

impl Found {
    pub(super) fn new(channel: ChannelName, dialler: Dialler) -> Option<Self> {
        let rid = Rid::drawn("subscriber", &dialler.random).ok()?;
        let generation = Generation::drawn(&dialler.random);
        Some(Self {
            local: NodeInfo::begun(Scope::Subscriber(channel), rid, generation),
            dialler,
            publishers: Mutex::new(Some(BTreeMap::new())),
            current: watch::Sender::new(false),
        })
    }

    /// Hears nobody any more.
    pub(super) fn stop(&self) {
        drop(self.publishers.lock().take());
    }

    /// Those that are named, how each stands, and why it is not ready.
    pub(crate) fn publishers(&self) -> Vec<(Rid, PeerState, Option<String>)> {
        let publishers = self.publishers.lock();
        let all = publishers.iter().flatten();
        all.map(|(rid, publisher)| match &publisher.feed {
            Ok(Some(feed)) => {
                let status = feed.status();
                (rid.clone(), status.state(), status.failure)
            }
            Ok(None) => (rid.clone(), PeerState::Draining, None),
            Err(problem) => (rid.clone(), PeerState::NotConnected, Some(problem.clone())),
        })
        .collect()
    }

    fn feed(&self, info: &NodeInfo) -> Result<Option<Feed>, String> {
        let endpoint = Endpoint::of_peer(&info.endpoint).map_err(|error| error.to_string())?;
        Ok(Some(Feed::start(
            &self.dialler,
            endpoint,
            Some(self.current.subscribe()),
        )))
    }
}

impl Searches for Found {
    fn scope(&self) -> Scope {
        self.local.scope.clone()
    }

    fn discovered(&self, list: Vec<(u64, NodeInfo)>) {
        let mut publishers = self.publishers.lock();
        let Some(publishers) = &mut *publishers else { return };
        let mut before = std::mem::take(publishers);
        for (rid, (info, need)) in plan(&self.local, list) {
            let same =
                |known: &Publisher| known.info.generation == info.generation && known.info.endpoint == info.endpoint;
            let kept = before.remove(&rid).filter(same).map(|known| known.feed);
            let feed = match (need, kept) {
                (Need::Dial, Some(Ok(Some(feed)))) => Ok(Some(feed)),
                (Need::Dial, _) => self.feed(&info),
                // It takes nothing new to publish.
                (Need::Wait | Need::Leave | Need::NotRequired, _) => Ok(None),
            };
            publishers.insert(rid, Publisher { info, feed });
        }
    }

    fn list_is_current(&self, current: bool) {
        self.current
            .send_if_modified(|known| std::mem::replace(known, current) != current);
    }
}
