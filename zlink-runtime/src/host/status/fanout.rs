//! A fanout at one moment: which publishers were found, and what is missing.

use tokio::time::Instant;

use crate::clock;
use crate::error::ConfigError;
use crate::fanout::Fanout;
use crate::host::Inner;
use crate::id::Rid;
use crate::mesh::PeerState;

use super::topology::{of_host, phase};
use super::{TopologyPhase, TopologyReason};

/// A fanout, at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FanoutStatus {
    /// Of all that were asked for of this fanout, the later has the greater.
    pub sequence: u64,
    /// Its ChannelName.
    pub name: String,
    /// Its state.
    pub phase: TopologyPhase,
    /// Why it is not ready, where it is not.
    pub reason: Option<TopologyReason>,
    /// The publishers that were found, where this host subscribes.
    pub publishers: Vec<PublisherStatus>,
    /// How many subscribers are connected, where this host publishes.
    pub subscribers: Option<usize>,
    /// When this was observed.
    pub observed: Instant,
}

impl FanoutStatus {
    /// How many publishers have proved within the last 15 s that they publish.
    #[must_use]
    pub fn ready_publishers(&self) -> usize {
        let ready = self.publishers.iter().filter(|one| one.state == PeerState::Ready);
        ready.count()
    }
}

/// A publisher that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublisherStatus {
    /// Its RID.
    pub rid: Rid,
    /// How it stands: `Ready` where it has proved within the last 15 s that it publishes. One that is draining is heard no more.
    pub state: PeerState,
    /// Why the last attempt or connection ended, until it is ready again.
    pub failure: Option<String>,
}

pub(in crate::host) fn fanout(host: &Inner, fanout: &Fanout) -> Result<FanoutStatus, ConfigError> {
    let found = fanout.found();
    if found.is_none() && !fanout.publishes() {
        let place = format!("fanout {:?}", fanout.name().as_str());
        let problem = "only has publishers that are named by hand; intents() has those";
        return Err(ConfigError::new(place, problem));
    }
    let publishers = found.map(|found| found.publishers()).unwrap_or_default();
    let publishers: Vec<_> = publishers
        .into_iter()
        .map(|(rid, state, failure)| PublisherStatus { rid, state, failure })
        .collect();
    let missing = |one: &PublisherStatus| matches!(one.state, PeerState::Connecting | PeerState::NotConnected);
    let is_missing = publishers.iter().any(missing);
    let reason = of_host(host, found.is_some()).or_else(|| is_missing.then_some(TopologyReason::NoReadyPeer));
    Ok(FanoutStatus {
        sequence: fanout.next_sequence(),
        name: fanout.name().to_string(),
        phase: reason.map_or(TopologyPhase::Ready, phase),
        reason,
        publishers,
        subscribers: fanout.publishes().then(|| fanout.subscribers()),
        observed: clock::now(),
    })
}
