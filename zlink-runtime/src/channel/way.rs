//! The way from one caller to a channel's servers or to a node: found once, shared by all calls that take it. It must not
//! know which server a call gets, nor what it carries.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::error::{ArgumentError, Error, ErrorKind};
use crate::id::{ChannelName, MeshName, Rid};
use crate::limit::GATED_SEND_TIMEOUT;
use crate::mesh::Hashed;

use crate::wire::RecordKind;

use super::objects::SpotTo;
use super::outbound::{LocalMesh, Outbound};
use super::path::ChannelPath;

/// Who calls, and where to: what all calls over one route have in common.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) outbound: Outbound,
    /// Alive as long as the turn of the caller, where that is a handler.
    turn: Option<Weak<()>>,
    /// Of a channel; none for Node direct.
    pub(super) channel: Option<Hashed<ChannelName>>,
    pub(super) target: Target,
}

/// Where an operation goes.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Channel(Arc<ChannelPath>),
    Node(LocalMesh, Rid),
    /// To wherever it lives.
    Spot(Arc<SpotTo>),
    /// To a node's own desk, which is asked to do something with its Spots.
    Control(LocalMesh, Rid, RecordKind),
    /// The name leads nowhere in this process; the error says which.
    Nowhere(Error),
    /// The call itself was made wrongly.
    Bad(ArgumentError),
}

/// Whether the handler that a call comes from runs; no handler, no turn.
pub(crate) fn is_running(turn: Option<&Weak<()>>) -> bool {
    turn.is_some_and(|turn| turn.strong_count() > 0)
}

impl Way {
    pub(super) fn to_channel(outbound: Outbound, turn: Option<Weak<()>>, channel: ChannelName) -> Self {
        let target = match outbound.channel(&channel) {
            Some(path) => Target::Channel(path),
            None => {
                let text = format!("channel {channel:?} is not registered in this process");
                Target::Nowhere(Error::not_executed(ErrorKind::NotFound, text))
            }
        };
        Self {
            outbound,
            turn,
            channel: Some(Hashed::new(channel)),
            target,
        }
    }

    pub(super) fn to_node(outbound: Outbound, turn: Option<Weak<()>>, mesh: &MeshName, rid: Rid) -> Self {
        let target = match outbound.mesh(mesh) {
            Some(mesh) => Target::Node(mesh, rid),
            None => {
                let text = format!("this process has no node in mesh {mesh:?}");
                Target::Nowhere(Error::not_executed(ErrorKind::NotFound, text))
            }
        };
        Self {
            outbound,
            turn,
            channel: None,
            target,
        }
    }

    pub(super) fn to_spot(outbound: Outbound, turn: Option<Weak<()>>, spot: SpotTo) -> Self {
        Self {
            outbound,
            turn,
            channel: None,
            target: Target::Spot(Arc::new(spot)),
        }
    }

    /// To the desk of a node.
    pub(super) fn to_control(
        outbound: Outbound,
        turn: Option<Weak<()>>,
        mesh: &MeshName,
        rid: Rid,
        kind: RecordKind,
    ) -> Self {
        let node = Self::to_node(outbound, turn, mesh, rid);
        let target = match node.target {
            Target::Node(mesh, rid) => Target::Control(mesh, rid, kind),
            other => other,
        };
        Self { target, ..node }
    }

    /// The same caller's way to that Spot instead.
    pub(super) fn instead(&self, spot: SpotTo) -> Self {
        Self::to_spot(self.outbound.clone(), self.turn.clone(), spot)
    }

    /// The same for a call that was made wrongly: it ends so.
    pub(super) fn bad(&self, error: ArgumentError) -> Self {
        Self {
            outbound: self.outbound.clone(),
            turn: self.turn.clone(),
            channel: None,
            target: Target::Bad(error),
        }
    }

    /// Whether a turn can be given back for a request there.
    pub(super) fn may_yield(&self) -> bool {
        self.channel.is_some() || matches!(self.target, Target::Spot(_))
    }

    /// Whether the caller is a handler that runs. A client that it leaves behind calls from outside.
    pub(super) fn in_turn(&self) -> bool {
        is_running(self.turn.as_ref())
    }

    /// The same caller's way to another channel.
    pub(super) fn on(&self, channel: ChannelName) -> Self {
        Self::to_channel(self.outbound.clone(), self.turn.clone(), channel)
    }

    /// The timeout of requests there where neither call nor schema gives one.
    pub(super) fn request_timeout(&self) -> Duration {
        let own = match &self.target {
            Target::Channel(path) => path.timeouts.request,
            Target::Node(mesh, _) | Target::Control(mesh, ..) => mesh.path.timeouts.request,
            Target::Spot(_) | Target::Nowhere(_) | Target::Bad(_) => None,
        };
        own.unwrap_or(self.outbound.request_timeout())
    }

    /// How long sends there may wait, where that is bounded.
    pub(super) fn send_timeout(&self) -> Option<Duration> {
        let own = match &self.target {
            Target::Channel(path) => path.timeouts.send,
            Target::Node(mesh, _) | Target::Control(mesh, ..) => mesh.path.timeouts.send,
            Target::Spot(_) | Target::Nowhere(_) | Target::Bad(_) => None,
        };
        // A turn that waits keeps its place: turns that wait for each other's, here or on other hosts, end by this alone.
        own.or(self.outbound.send_timeout())
            .or(self.in_turn().then_some(GATED_SEND_TIMEOUT))
    }
}
