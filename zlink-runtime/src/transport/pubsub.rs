//! PUB and SUB sockets over ZMTP: what classic fanout travels on, beside links and without anything of theirs.
//!
//! It knows topics as bytes that a message begins with. It must not know what is published, nor who wants to know it.

mod pipe;
mod publisher;
mod subscriber;
mod topics;

pub(crate) use pipe::Message;
pub(crate) use publisher::{Publisher, Unpublished};
pub(crate) use subscriber::{Incoming, Received};
pub(crate) use topics::Topics;

use std::fmt;
use std::sync::Arc;

use super::link::LinkConfig;
use super::link::stream::Sockets;

/// Where connections come from that are no links. What a transport of one's own takes from one of ours, or does not have.
#[derive(Clone)]
pub struct Connections {
    sockets: Arc<dyn Sockets>,
    config: Arc<LinkConfig>,
}

impl Connections {
    pub(super) fn new(sockets: Arc<dyn Sockets>, config: Arc<LinkConfig>) -> Self {
        Self { sockets, config }
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").finish_non_exhaustive()
    }
}
