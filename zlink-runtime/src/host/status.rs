//! What is true now: complete values, read without walking objects.

use std::time::Duration;

use tokio::time::Instant;

use crate::channel::{DropCounts, Drops, HostState, Inbound, SelectionFailures};
use crate::clock;
use crate::id::{ChannelName, Rid};
use crate::mesh::{Links, PeerState};
use crate::transport::LinkProfile;

use super::location::{Location, LocationStatus};
use super::{Channel, Host, Inner, JobProfile, Mesh, pressure};

/// The lifecycle of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HostPhase {
    /// It takes work.
    Serving,
    /// It finishes what it accepted.
    Draining,
    /// It has ended.
    Stopped,
    /// Another run has its identity in the Location Store. It must be shut down and started anew.
    Error,
}

/// A host, at one moment.
#[derive(Clone, Debug)]
pub struct HostStatus {
    /// Where it is in its life.
    pub phase: HostPhase,
    /// Its job queue.
    pub jobs: JobQueueStatus,
    /// What its links were given to hold, where they were given nothing else.
    pub link_profile: LinkProfile,
    /// Requests of this host that wait for replies.
    pub waiting_requests: usize,
    /// Requests of this host that ended at their deadlines, since it started.
    pub request_timeouts: u64,
    /// How it stands with its Location Store, if it has one.
    pub location: Option<LocationStatus>,
    /// When this was observed.
    pub observed: Instant,
}

impl HostStatus {
    /// Whether it takes work.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.phase == HostPhase::Serving
    }
}

/// The permits of a host, at one moment: `in_use = reserved + queued`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobQueueStatus {
    /// The profile that the limit comes from, where it is none of the host's own.
    pub profile: Option<JobProfile>,
    /// Permits there are.
    pub limit: u32,
    /// How many of them are kept for what handlers send to objects of their own host.
    pub reserve: u32,
    /// Permits in use at which peers are asked to pause.
    pub pause_count: u32,
    /// Permits in use at which they are asked to go on.
    pub resume_count: u32,
    /// Permits held before a record is received.
    pub reserved: u32,
    /// Permits held by jobs that wait.
    pub queued: u32,
    /// Whether peers are asked to pause.
    pub paused: bool,
    /// How long they have been, in all.
    pub paused_total: Duration,
    /// How often that changed.
    pub transitions: u64,
    /// How often a link that lives could not be told.
    pub failed_applies: u64,
    /// Whether all permits but those of the reserve have been in use for 5 s without a job starting: handlers may be
    /// waiting for each other.
    pub stalled: bool,
}

impl JobQueueStatus {
    /// Permits in use.
    #[must_use]
    pub const fn in_use(&self) -> u32 {
        self.reserved + self.queued
    }
}

/// The state of one topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TopologyPhase {
    /// All that is wanted is there.
    Ready,
    /// Something that is wanted is missing.
    Degraded,
    /// The host drains.
    Stopping,
    /// The host has ended.
    Stopped,
}

/// A mesh or a ClientServer channel, at one moment.
#[derive(Clone, Debug)]
pub struct TopologyStatus {
    /// Its MeshName or ChannelName.
    pub name: String,
    /// Its state.
    pub phase: TopologyPhase,
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
    /// Whether it asks this host to hold requests back.
    pub paused: bool,
    /// How often it has.
    pub pauses: u64,
}

/// A server that selection has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetStatus {
    /// Its RID.
    pub rid: Rid,
    /// Its weight.
    pub weight: u16,
}

impl Host {
    /// The host at this moment.
    #[must_use]
    pub fn status(&self) -> HostStatus {
        let counts = self.0.permits.status();
        HostStatus {
            phase: match self.0.outbound.state() {
                HostState::Serving | HostState::Draining
                    if self.0.location.as_ref().is_some_and(Location::is_fenced) =>
                {
                    HostPhase::Error
                }
                HostState::Serving => HostPhase::Serving,
                HostState::Draining => HostPhase::Draining,
                HostState::Stopped => HostPhase::Stopped,
            },
            jobs: JobQueueStatus {
                profile: self.0.profiles.jobs,
                limit: counts.limits.max(),
                reserve: counts.limits.reserve(),
                pause_count: counts.limits.pause_count(),
                resume_count: counts.limits.resume_count(),
                reserved: counts.reserved,
                queued: counts.queued,
                paused: counts.flow.paused,
                paused_total: counts.paused_time,
                transitions: counts.flow.version,
                failed_applies: self.0.flow.failures(),
                stalled: pressure::is_stalled(&counts),
            },
            link_profile: self.0.profiles.links,
            waiting_requests: self.0.outbound.pending().len(),
            request_timeouts: self.0.outbound.pending().timeouts(),
            location: self.0.location.as_ref().map(Location::status),
            observed: clock::now(),
        }
    }
}

#[cfg(feature = "testing")]
impl Host {
    /// Every step of the selection for a channel.
    pub(crate) fn selections(&self, channel: &ChannelName) -> Vec<crate::channel::Selection> {
        let path = self.0.outbound.channels().find(|path| path.name == *channel);
        path.map(|path| path.history()).unwrap_or_default()
    }

    /// Whether each intent has led to a link that can be used, and whose nodes this host's nodes are linked with: mesh,
    /// own RID, theirs.
    pub(crate) fn linked(&self) -> (bool, Vec<(crate::id::MeshName, Rid, Vec<Rid>)>) {
        let ready = |links: &Links, rid: &Rid| matches!(links.find(rid), crate::mesh::Lookup::Ready(_));
        let wanted = |links: &Links| {
            links.intents().iter().all(|intent| match intent.rid() {
                _ if intent.state() == PeerState::NotRequired => true,
                Some(rid) => ready(links, &rid),
                None => false,
            })
        };
        let meshes = self.0.meshes.iter().map(|mesh| &mesh.links);
        let clients = self.0.channels.iter().filter_map(|channel| channel.client.as_ref());
        let all = meshes.chain(clients).all(wanted);
        let nodes = self.0.meshes.iter().map(|mesh| {
            let known = mesh.links.peers().into_iter().filter_map(|(rid, ..)| rid);
            let linked = known.filter(|rid| ready(&mesh.links, rid));
            (mesh.name.clone(), mesh.links.local().rid, linked.collect())
        });
        (all, nodes.collect())
    }

    /// Every mesh and every channel of the host, as its handles tell.
    pub(crate) fn topologies(&self) -> Vec<TopologyStatus> {
        let meshes = self.0.meshes.iter().map(|one| mesh(&self.0, one));
        meshes
            .chain(self.0.channels.iter().map(|one| channel(&self.0, one)))
            .collect()
    }
}

pub(super) fn mesh(host: &Inner, mesh: &Mesh) -> TopologyStatus {
    let is_ours = |path: &crate::channel::ChannelPath| match &path.kind {
        crate::channel::PathKind::RouteMesh(name) => *name == mesh.name,
        _ => false,
    };
    topology(
        host,
        mesh.name.as_str(),
        [Some(&mesh.links); 2],
        Some(&mesh.inbound),
        is_ours,
    )
}

pub(super) fn channel(host: &Inner, channel: &Channel) -> TopologyStatus {
    let is_ours = |path: &crate::channel::ChannelPath| path.name == channel.name;
    let server = channel.server.as_ref().map(|(links, _)| links);
    let (links, inbound) = ([channel.client.as_ref(), server], channel.inbound.as_deref());
    topology(host, channel.name.as_str(), links, inbound, is_ours)
}

/// `links`: those whose peers are called, and those whose peers call.
fn topology(
    host: &Inner,
    name: &str,
    [links, called]: [Option<&Links>; 2],
    inbound: Option<&Inbound>,
    is_ours: impl Fn(&crate::channel::ChannelPath) -> bool,
) -> TopologyStatus {
    let peers: Vec<_> = links.map(Links::peers).unwrap_or_default();
    let open = links.map(Links::links).unwrap_or_default();
    let peers: Vec<_> = peers
        .into_iter()
        .map(|(rid, state, failure)| {
            let own = open.iter().filter(|link| Some(link.rid()) == rid.as_ref());
            let (mut paused, mut pauses) = (false, 0);
            for link in own {
                paused |= link.link().held().by_peer;
                pauses += link.link().stats().pauses;
            }
            PeerStatus {
                rid,
                state,
                failure,
                paused,
                pauses,
            }
        })
        .collect();
    let missing = |peer: &PeerStatus| matches!(peer.state, PeerState::Connecting | PeerState::NotConnected);
    let phase = match host.outbound.state() {
        HostState::Draining => TopologyPhase::Stopping,
        HostState::Stopped => TopologyPhase::Stopped,
        HostState::Serving if peers.iter().any(missing) => TopologyPhase::Degraded,
        HostState::Serving => TopologyPhase::Ready,
    };
    let targets = |path: &crate::channel::ChannelPath| {
        path.targets()
            .into_iter()
            .map(|(rid, weight)| TargetStatus { rid, weight })
            .collect()
    };
    let mut ours: Vec<_> = host.outbound.channels().filter(|path| is_ours(path)).collect();
    ours.sort_by(|a, b| a.name.cmp(&b.name));
    let drops = inbound.map(Inbound::drops);
    // Those of a node are both.
    let others = called.filter(|called| !links.is_some_and(|links| std::ptr::eq(links, *called)));
    let all = links.into_iter().chain(others);
    TopologyStatus {
        name: name.to_owned(),
        phase,
        peers,
        pauses_peers: called.and_then(Links::told_flow).map(|flow| flow.paused),
        links: LinksStatus::of(all),
        channels: ours.iter().map(|path| (path.name.clone(), targets(path))).collect(),
        selection_failures: ours.iter().map(|path| (path.name.clone(), path.failures())).collect(),
        channel_drops: drops.map(Drops::of_channels).unwrap_or_default(),
        node_drops: drops.map(Drops::of_node).unwrap_or_default(),
        observed: clock::now(),
    }
}
