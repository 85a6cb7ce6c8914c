//! One fanout of a host: its publisher, its subscriber, or both. It must not know how it was registered.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::error::ErrorKind;
use crate::id::{ChannelName, Generation, Rid};
use crate::mesh::{Announced, NodeInfo, Scope};
use crate::random::Random;
use crate::transport::{Connections, Endpoint, TransportError};

use super::feed::{Dialler, Feed, FeedStatus};
use super::found::Found;
use super::intake::Intake;
use super::outlet::{Outlet, OutletConfig};

/// What a [`Fanout`] is made of.
pub(crate) struct FanoutConfig {
    pub(crate) channel: ChannelName,
    pub(crate) connections: Connections,
    pub(crate) runtime: Handle,
    pub(crate) random: Random,
    /// What it subscribes with, if it does.
    pub(crate) intake: Option<Arc<Intake>>,
    pub(crate) automatic: Automatic,
}

/// Which of its roles go by the Location Store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Automatic {
    /// Its publisher is found there.
    pub(crate) publishes: bool,
    /// Its subscriber finds publishers there.
    pub(crate) subscribes: bool,
}

/// One fanout of a host.
pub(crate) struct Fanout {
    channel: ChannelName,
    connections: Connections,
    runtime: Handle,
    outlet: Option<Arc<Outlet>>,
    /// Where subscribers reach its publisher.
    endpoint: Option<Endpoint>,
    /// What the Location Store is told of it.
    announced: Option<Arc<Announced>>,
    dialler: Option<Dialler>,
    /// The publishers that the Location Store names, where it finds them there.
    found: Option<Arc<Found>>,
    automatic: Automatic,
    random: Random,
    sequence: AtomicU64,
    /// The publishers that its user names, by endpoint. `None` once nothing is taken any more.
    named: Mutex<Option<BTreeMap<String, (Endpoint, Feed)>>>,
}

impl Fanout {
    pub(crate) fn new(config: FanoutConfig) -> Self {
        let FanoutConfig {
            channel,
            connections,
            runtime,
            random,
            intake,
            automatic,
        } = config;
        let dialler = intake.map(|intake| Dialler {
            intake,
            connections: connections.clone(),
            random: random.clone(),
            runtime: runtime.clone(),
        });
        let searching = dialler.as_ref().filter(|_| automatic.subscribes);
        let found = searching.and_then(|dialler| Found::new(channel.clone(), dialler.clone()));
        Self {
            channel,
            connections,
            runtime,
            outlet: None,
            endpoint: None,
            announced: None,
            found: found.map(Arc::new),
            automatic,
            random,
            sequence: AtomicU64::new(0),
            dialler,
            named: Mutex::new(Some(BTreeMap::new())),
        }
    }

    /// Binds its publisher; subscribers are `told` where.
    ///
    /// # Errors
    /// Where the endpoint cannot be bound.
    pub(crate) async fn bind(
        &mut self,
        endpoint: &Endpoint,
        config: OutletConfig,
        told: impl FnOnce(&Endpoint) -> Endpoint,
    ) -> Result<(), TransportError> {
        let outlet = Outlet::bind(&self.connections, endpoint, config, &self.runtime).await?;
        let endpoint = told(outlet.endpoint());
        let rid = Rid::drawn("publisher", &self.random).ok();
        self.announced = rid.filter(|_| self.automatic.publishes).map(|rid| {
            let scope = Scope::Publisher(self.channel.clone());
            Arc::new(Announced::new(NodeInfo {
                endpoint: endpoint.to_string(),
                ..NodeInfo::begun(scope, rid, Generation::drawn(&self.random))
            }))
        });
        self.endpoint = Some(endpoint);
        self.outlet = Some(outlet);
        Ok(())
    }

    pub(crate) fn name(&self) -> &ChannelName {
        &self.channel
    }

    /// Where subscribers reach its publisher, if it has one.
    pub(crate) fn endpoint(&self) -> Option<&Endpoint> {
        self.endpoint.as_ref()
    }

    /// What the Location Store is to be told of it.
    pub(crate) fn announced(&self) -> Option<&Arc<Announced>> {
        self.announced.as_ref()
    }

    /// The publishers that the Location Store names, where it finds them there.
    pub(crate) fn found(&self) -> Option<&Arc<Found>> {
        self.found.as_ref()
    }

    /// Whether it publishes.
    pub(crate) fn publishes(&self) -> bool {
        self.outlet.is_some()
    }

    /// The number of its next status.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// How many subscribers are connected to its publisher.
    pub(crate) fn subscribers(&self) -> usize {
        self.outlet.as_ref().map_or(0, |outlet| outlet.subscribers())
    }

    /// Dials a publisher and stays with it; one that is there already stays as it is. `false` where nothing is taken any
    /// more; `None` where it does not subscribe, or finds its publishers.
    pub(crate) fn connect(&self, endpoint: Endpoint) -> Option<bool> {
        let dialler = self.dialler.as_ref().filter(|_| self.found.is_none())?;
        let mut named = self.named.lock();
        let Some(named) = &mut *named else { return Some(false) };
        let begin = || (endpoint.clone(), Feed::start(dialler, endpoint.clone(), None));
        named.entry(endpoint.to_string()).or_insert_with(begin);
        Some(true)
    }

    /// Leaves a publisher; `false` where it was not there.
    pub(crate) fn disconnect(&self, endpoint: &Endpoint) -> bool {
        let mut named = self.named.lock();
        let left = named.as_mut().and_then(|named| named.remove(endpoint.as_str()));
        left.is_some()
    }

    /// The publishers that its user names, and how they stand.
    pub(crate) fn named(&self) -> Vec<(Endpoint, FeedStatus)> {
        let named = self.named.lock();
        let all = named.iter().flat_map(BTreeMap::values);
        all.map(|(endpoint, feed)| (endpoint.clone(), feed.status())).collect()
    }

    /// Takes nothing more from publishers, and tells subscribers that it is going.
    pub(crate) fn seal(&self) {
        if let Some(announced) = &self.announced {
            announced.drain();
        }
        if let Some(found) = &self.found {
            found.stop();
        }
        drop(self.named.lock().take());
        if let Some(dialler) = &self.dialler {
            dialler.intake.seal();
        }
    }

    /// Waits until what was taken is handled; how many events were not, by then.
    pub(crate) async fn drain(&self, deadline: Instant) -> usize {
        match &self.dialler {
            Some(dialler) => dialler.intake.queue.drain(ErrorKind::ShuttingDown, deadline).await,
            None => 0,
        }
    }

    /// Ends its publisher, whatever that holds.
    pub(crate) async fn close(&self) {
        if let Some(outlet) = &self.outlet {
            outlet.close().await;
        }
    }

    /// Ends all at once.
    pub(crate) fn abandon(&self) {
        self.seal();
        if let Some(dialler) = &self.dialler {
            dialler.intake.queue.stop(ErrorKind::ShuttingDown);
        }
        if let Some(outlet) = &self.outlet {
            outlet.abandon();
        }
    }
}

impl fmt::Debug for Fanout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fanout({:?})", self.channel)
    }
}

impl Drop for Fanout {
    fn drop(&mut self) {
        self.abandon();
    }
}

/// What a host publishes through, by channel.
pub(crate) struct Outlets(HashMap<ChannelName, Option<Arc<Outlet>>>);

impl Outlets {
    pub(crate) fn new<'a>(fanouts: impl IntoIterator<Item = &'a Fanout>) -> Self {
        let of = |fanout: &Fanout| (fanout.channel.clone(), fanout.outlet.clone());
        Self(fanouts.into_iter().map(of).collect())
    }

    /// The publisher of a channel, where the host has one; `None` where the channel is not known.
    pub(super) fn of(&self, channel: &ChannelName) -> Option<Option<&Arc<Outlet>>> {
        self.0.get(channel).map(Option::as_ref)
    }
}
