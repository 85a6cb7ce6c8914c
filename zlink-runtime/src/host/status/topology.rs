//! A mesh or a ClientServer channel at one moment: who is linked, who can be called, and what is missing.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

use crate::channel::{ChannelPath, DropCounts, Drops, HostState, Inbound, PathKind, SelectionFailures};
use crate::clock;
use crate::host::location::{Location, LocationState};
use crate::host::{Channel, Inner, Mesh};
use crate::id::{ChannelName, Rid};
use crate::mesh::{Links, PeerState};

/// What a topology is, and on which side of it this host stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TopologyKind {
    /// A mesh, of which this host is a node.
    RouteMesh,
    /// A ClientServer channel that this host calls.
    Client,
    /// One that it serves.
    Server,
    /// One that it does both with; its own server is a target like any other.
    ClientAndServer,
}

/// The state of one topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TopologyPhase {
    /// All that is wanted is there.
    Ready,
    /// Something that is wanted is missing; [`TopologyStatus::reason`] says what. What is there works.
    Degraded,
    /// The host drains.
    Stopping,
    /// The host has ended.
    Stopped,
    /// The host has to be started anew.
    Failed,
}

/// Why a topology is not ready. Where there are several reasons, the first of them in this order is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TopologyReason {
    /// The host has ended.
    RuntimeNotReady,
    /// Another run has the identity of the host.
    InternalFailure,
    /// The host drains.
    Draining,
    /// The Location Store cannot be read, or has not been yet, and peers are found through it.
    LocationUnavailable,
    /// A peer that is wanted has no ready link.
    NoReadyPeer,
    /// A channel that is called here has no server to choose.
    NoReadyTarget,
}

/// A mesh or a ClientServer channel, at one moment.
#[derive(Clone, Debug)]
pub struct TopologyStatus {
    /// Of all that were asked for of this topology, the later has the greater; other topologies count for themselves.
    pub sequence: u64,
    /// Its MeshName or ChannelName.
    pub name: String,
    /// What it is.
    pub kind: TopologyKind,
    /// Its state.
    pub phase: TopologyPhase,
    /// Why it is not ready, where it is not.
    pub reason: Option<TopologyReason>,
    /// Who is linked, and who should be.
    pub peers: Vec<PeerStatus>,
    /// Whether its peers were told to hold requests back; `None` where they send none, as those of a client.
    pub pauses_peers: Option<bool>,
    /// The bytes in its links. What waits for a handler is not among them.
    pub links: LinksStatus,
    /// For every channel that calls may go to, the servers that selection has.
    pub channels: Vec<(ChannelName, Vec<TargetStatus>)>,
    /// For the same channels, how often a call found no server.
    pub selection_failures: Vec<(ChannelName, SelectionFailures)>,
    /// One-way messages to channels that were not delivered here.
    pub channel_drops: DropCounts,
    /// One-way messages to this node that were not delivered here.
    pub node_drops: DropCounts,
    /// When this was observed.
    pub observed: Instant,
}

impl TopologyStatus {
    /// How many peers have a link that can be used. Those that need none are not among them.
    #[must_use]
    pub fn ready_peers(&self) -> usize {
        self.peers.iter().filter(|peer| peer.state == PeerState::Ready).count()
    }
}

/// What the links of one topology hold, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinksStatus {
    /// Links that have not ended.
    pub count: usize,
    /// Bytes that each of them holds per direction before senders, or the peer, wait.
    pub budget: usize,
    /// Bytes taken to be sent and not yet given to the system.
    pub queued_bytes: usize,
    /// Bytes received that wait for permits.
    pub waiting_bytes: usize,
    /// Senders that wait for room.
    pub waiting_senders: usize,
}

impl LinksStatus {
    fn of<'a>(links: impl Iterator<Item = &'a Links>) -> Self {
        let mut status = Self::default();
        for links in links {
            status.budget = links.budget();
            for stats in links.open_links().iter().map(|link| link.stats()) {
                status.count += 1;
                status.queued_bytes += stats.queued_bytes;
                status.waiting_bytes += stats.waiting_bytes;
                status.waiting_senders += stats.waiting_senders;
            }
        }
        status
    }
}

/// One peer of a topology.
#[derive(Clone, Debug)]
pub struct PeerStatus {
    /// Its RID, once it is known.
    pub rid: Option<Rid>,
    /// How it stands.
    pub state: PeerState,
    /// Why the last attempt to link with it failed, until one succeeds.
    pub failure: Option<String>,
    /// Whether it asks this host to hold requests back. It is as ready as before.
    pub paused: bool,
    /// How often it has.
    pub pauses: u64,
    /// Bytes that wait here to be sent to it.
    pub queued_bytes: usize,
    /// Bytes that were received from it and wait for permits.
    pub waiting_bytes: usize,
}

/// A server that selection has: linked, not draining, and with a weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetStatus {
    /// Its RID.
    pub rid: Rid,
    /// Its weight.
    pub weight: u16,
}

/// Numbers the statuses of one source.
#[derive(Debug, Default)]
pub(in crate::host) struct Sequence(AtomicU64);

impl Sequence {
    pub(super) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// What a topology consists of here.
struct Parts<'a> {
    sequence: &'a Sequence,
    name: &'a str,
    kind: TopologyKind,
    /// Whether peers are found through the store.
    automatic: bool,
    /// Those whose peers are called.
    links: Option<&'a Links>,
    /// Those whose peers call; for a node the same.
    called: Option<&'a Links>,
    inbound: Option<&'a Inbound>,
}

pub(in crate::host) fn mesh(host: &Inner, mesh: &Mesh) -> TopologyStatus {
    let parts = Parts {
        sequence: &mesh.sequence,
        name: mesh.name.as_str(),
        kind: TopologyKind::RouteMesh,
        automatic: mesh.automatic,
        links: Some(&mesh.links),
        called: Some(&mesh.links),
        inbound: Some(&mesh.inbound),
    };
    topology(
        host,
        &parts,
        |path| matches!(&path.kind, PathKind::RouteMesh(name) if *name == mesh.name),
    )
}

pub(in crate::host) fn channel(host: &Inner, channel: &Channel) -> TopologyStatus {
    let parts = Parts {
        sequence: &channel.sequence,
        name: channel.name.as_str(),
        kind: match (&channel.client, &channel.server) {
            (Some(_), None) => TopologyKind::Client,
            (Some(_), Some(_)) => TopologyKind::ClientAndServer,
            (None, _) => TopologyKind::Server,
        },
        automatic: channel.automatic && channel.client.is_some(),
        links: channel.client.as_ref(),
        called: channel.server.as_ref().map(|(links, _)| links),
        inbound: channel.inbound.as_deref(),
    };
    topology(host, &parts, |path| path.name == channel.name)
}

fn topology(host: &Inner, parts: &Parts<'_>, is_ours: impl Fn(&ChannelPath) -> bool) -> TopologyStatus {
    let peers = parts.links.map(peers).unwrap_or_default();
    let mut ours: Vec<_> = host.outbound.channels().filter(|path| is_ours(path)).collect();
    ours.sort_by(|a, b| a.name.cmp(&b.name));
    let targets = |path: &ChannelPath| {
        let targets = path.targets().into_iter();
        targets.map(|(rid, weight)| TargetStatus { rid, weight }).collect()
    };
    let channels: Vec<_> = ours.iter().map(|path| (path.name.clone(), targets(path))).collect();
    let (phase, reason) = match reason(host, parts, &peers, &channels) {
        None => (TopologyPhase::Ready, None),
        Some(reason) => (phase(reason), Some(reason)),
    };
    let drops = parts.inbound.map(Inbound::drops);
    let called = parts.called.filter(|_| parts.kind != TopologyKind::RouteMesh);
    TopologyStatus {
        sequence: parts.sequence.next(),
        name: parts.name.to_owned(),
        kind: parts.kind,
        phase,
        reason,
        peers,
        pauses_peers: parts.called.and_then(Links::told_flow).map(|flow| flow.paused),
        links: LinksStatus::of(parts.links.into_iter().chain(called)),
        channels,
        selection_failures: ours.iter().map(|path| (path.name.clone(), path.failures())).collect(),
        channel_drops: drops.map(Drops::of_channels).unwrap_or_default(),
        node_drops: drops.map(Drops::of_node).unwrap_or_default(),
        observed: clock::now(),
    }
}

fn peers(links: &Links) -> Vec<PeerStatus> {
    let open = links.links();
    let peers = links.peers().into_iter();
    let status = peers.map(|(rid, state, failure)| {
        let (mut paused, mut pauses, mut queued_bytes, mut waiting_bytes) = (false, 0, 0, 0);
        for link in open.iter().filter(|link| Some(link.rid()) == rid.as_ref()) {
            paused |= link.link().held().by_peer;
            let stats = link.link().stats();
            pauses += stats.pauses;
            queued_bytes += stats.queued_bytes;
            waiting_bytes += stats.waiting_bytes;
        }
        PeerStatus {
            rid,
            state,
            failure,
            paused,
            pauses,
            queued_bytes,
            waiting_bytes,
        }
    });
    status.collect()
}

/// Why nothing of the host can be ready, or nothing whose peers are found through the store.
pub(super) fn of_host(host: &Inner, automatic: bool) -> Option<TopologyReason> {
    match host.outbound.state() {
        HostState::Stopped => return Some(TopologyReason::RuntimeNotReady),
        _ if host.location.as_ref().is_some_and(Location::is_fenced) => return Some(TopologyReason::InternalFailure),
        HostState::Draining => return Some(TopologyReason::Draining),
        HostState::Serving => {}
    }
    let store = host.location.as_ref().filter(|_| automatic);
    let is_read = store.is_none_or(|store| store.status().state == LocationState::Ready);
    (!is_read).then_some(TopologyReason::LocationUnavailable)
}

fn reason(
    host: &Inner,
    parts: &Parts<'_>,
    peers: &[PeerStatus],
    channels: &[(ChannelName, Vec<TargetStatus>)],
) -> Option<TopologyReason> {
    if let Some(reason) = of_host(host, parts.automatic) {
        return Some(reason);
    }
    let missing = |peer: &PeerStatus| matches!(peer.state, PeerState::Connecting | PeerState::NotConnected);
    if peers.iter().any(missing) {
        return Some(TopologyReason::NoReadyPeer);
    }
    // What a node serves itself it need not find anywhere else; a server alone calls nobody.
    let own = parts.links.map(|links| links.local().channels).unwrap_or_default();
    let is_called = |name: &ChannelName| parts.links.is_some() && !own.iter().any(|(served, _)| served == name);
    let without = channels
        .iter()
        .any(|(name, targets)| targets.is_empty() && is_called(name));
    without.then_some(TopologyReason::NoReadyTarget)
}

pub(super) const fn phase(reason: TopologyReason) -> TopologyPhase {
    match reason {
        TopologyReason::RuntimeNotReady => TopologyPhase::Stopped,
        TopologyReason::InternalFailure => TopologyPhase::Failed,
        TopologyReason::Draining => TopologyPhase::Stopping,
        TopologyReason::LocationUnavailable | TopologyReason::NoReadyPeer | TopologyReason::NoReadyTarget => {
            TopologyPhase::Degraded
        }
    }
}
