//! The way from one caller to a channel's servers or to a node: found once, shared by all calls that take it. It must not
//! know which server a call gets, nor what it carries.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::id::{ChannelName, MeshName, Rid};
use crate::limit::GATED_SEND_TIMEOUT;
use crate::mesh::Hashed;

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
    /// The name leads nowhere in this process; the error says which.
    Nowhere(Error),
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

    /// Whether the caller is a handler that runs. A client that it leaves behind calls from outside.
    pub(super) fn in_turn(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.strong_count() > 0)
    }

    /// The same caller's way to another channel.
    pub(super) fn on(&self, channel: ChannelName) -> Self {
        Self::to_channel(self.outbound.clone(), self.turn.clone(), channel)
    }

    /// The timeout of requests there where neither call nor schema gives one.
    pub(super) fn request_timeout(&self) -> Duration {
        let own = match &self.target {
            Target::Channel(path) => path.timeouts.request,
            Target::Node(mesh, _) => mesh.path.timeouts.request,
            Target::Nowhere(_) => None,
        };
        own.unwrap_or(self.outbound.request_timeout())
    }

    /// How long sends there may wait, where that is bounded.
    pub(super) fn send_timeout(&self) -> Option<Duration> {
        let own = match &self.target {
            Target::Channel(path) => path.timeouts.send,
            Target::Node(mesh, _) => mesh.path.timeouts.send,
            Target::Nowhere(_) => None,
        };
        // A turn that waits keeps its place: turns that wait for each other's, here or on other hosts, end by this alone.
        own.or(self.outbound.send_timeout())
            .or(self.in_turn().then_some(GATED_SEND_TIMEOUT))
    }
}
