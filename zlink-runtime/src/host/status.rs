//! What is true now: complete values, read without walking objects.
//!
//! A host can be asked as soon as it has started, so nobody ever sees one that prepares.

use std::time::Duration;

use tokio::time::Instant;

use crate::channel::{DropCounts, HostState};
use crate::clock;
use crate::spot::Spots;
use crate::transport::LinkProfile;

use super::Host;
use super::location::{Location, LocationStatus};
use super::shutdown::ShutdownError;
use super::{JobProfile, stall};

mod fanout;
#[cfg(feature = "testing")]
mod testing;
mod topology;

pub(super) use fanout::fanout;
pub use fanout::{FanoutStatus, PublisherStatus};
pub use topology::{
    LinksStatus, PeerStatus, TargetStatus, TopologyKind, TopologyPhase, TopologyReason, TopologyStatus,
};
pub(super) use topology::{Sequence, channel, mesh};

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
    /// Of all that were asked for of this host, the later has the greater. Other hosts, and other runs, count for
    /// themselves.
    pub sequence: u64,
    /// Where it is in its life.
    pub phase: HostPhase,
    /// Whether it takes calls and work from peers: until its stop begins.
    pub accepting_work: bool,
    /// Where its stop has begun: when accepted work is ended by force.
    pub deadline: Option<Instant>,
    /// How its stop ended, once it has.
    pub stopped: Option<Result<(), ShutdownError>>,
    /// Its job queue.
    pub jobs: JobQueueStatus,
    /// What its links were given to hold, where they were given nothing else.
    pub link_profile: LinkProfile,
    /// Requests of this host that wait for replies.
    pub waiting_requests: usize,
    /// Requests of this host that ended at their deadlines, since it started.
    pub request_timeouts: u64,
    /// One-way messages to Spots that came here and were not delivered, since it started.
    pub spot_drops: DropCounts,
    /// How it stands with its Location Store, if it has one.
    pub location: Option<LocationStatus>,
    /// When this was observed.
    pub observed: Instant,
}

impl HostStatus {
    /// Whether it serves, and nothing keeps it from it.
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
    /// Whether all permits but those of the reserve have been in use for 5 s and no job has started in that time: handlers may be waiting for each
    /// other. A warning with the event ID `zlink.runtime.host.saturation_stall` told of it.
    pub stalled: bool,
}

impl JobQueueStatus {
    /// Permits in use.
    #[must_use]
    pub const fn in_use(&self) -> u32 {
        self.reserved + self.queued
    }
}

impl Host {
    /// The host at this moment.
    #[must_use]
    pub fn status(&self) -> HostStatus {
        let counts = self.0.permits.status();
        let state = self.0.outbound.state();
        let (deadline, stopped) = self.0.stopping.status();
        HostStatus {
            sequence: self.0.sequence.next(),
            accepting_work: state == HostState::Serving,
            deadline,
            stopped,
            phase: match state {
                HostState::Serving | HostState::Draining
                    if self.0.location.as_ref().is_some_and(Location::is_fenced) =>
                {
                    HostPhase::Error
                }
                HostState::Serving => HostPhase::Serving,
                HostState::Draining => HostPhase::Draining,
                HostState::Stopped => HostPhase::Stopped,
            },
            spot_drops: self.0.spots.as_ref().map(Spots::drops).unwrap_or_default(),
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
                stalled: stall::is_stalled(&counts),
            },
            link_profile: self.0.profiles.links,
            waiting_requests: self.0.outbound.pending().len(),
            request_timeouts: self.0.outbound.pending().timeouts(),
            location: self.0.location.as_ref().map(Location::status),
            observed: clock::now(),
        }
    }
}
