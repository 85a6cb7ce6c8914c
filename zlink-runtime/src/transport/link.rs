//! The default transport: links over ZMTP 3.1 on TCP and Unix sockets, with lanes, byte budgets and receive flow.
//!
//! It must not know who is admitted, what a record says beyond its kind, or what happens to it above.

mod chunk;
mod dial;
pub(super) mod greet;
mod inbox;
mod keeper;
pub(super) mod listener;
mod queue;
mod reader;
#[cfg(fuzzing)]
mod receiver;
pub(super) mod rotation;
mod shared;
pub(super) mod state;
pub(super) mod stream;
mod writer;

#[cfg(fuzzing)]
#[doc(hidden)]
pub use receiver::Receiver;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::pubsub::Connections;
use super::zmtp::Security;
use super::{Acceptor, BoxFuture, Endpoint, Link, Listener, Offer, Transport, TransportError};
use crate::error::ArgumentError;
use crate::id::LinkId;
use crate::limit::LISTENER_CONNECTIONS;

/// What a [`LinkTransport`] is made with.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// How connections prove who may use them; the same on both sides.
    pub security: Security,
    /// The most connections that one listener holds, at least two, as a link takes; others wait to be accepted.
    pub connections: usize,
}

impl Default for LinkConfig {
    /// No security, 4,096 connections.
    fn default() -> Self {
        Self {
            security: Security::Null,
            connections: LISTENER_CONNECTIONS,
        }
    }
}

/// The default transport. Clones share the numbering of links.
///
/// It must be used within a tokio runtime whose I/O and time are enabled; its tasks run there.
#[derive(Clone, Debug)]
pub struct LinkTransport {
    config: Arc<LinkConfig>,
    links: Arc<AtomicU64>,
    sockets: Arc<dyn stream::Sockets>,
}

impl LinkTransport {
    /// A transport with this configuration.
    #[must_use]
    pub fn new(config: LinkConfig) -> Self {
        Self::over(config, Arc::new(stream::System))
    }

    /// The same over other streams than the system's.
    pub(super) fn over(config: LinkConfig, sockets: Arc<dyn stream::Sockets>) -> Self {
        Self {
            config: Arc::new(config),
            links: Arc::default(),
            sockets,
        }
    }

    fn next_id(&self) -> LinkId {
        LinkId(self.links.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl Transport for LinkTransport {
    fn check(&self) -> Result<(), ArgumentError> {
        let few = self.config.connections;
        if few < 2 {
            let problem = format!("a listener may hold {few}, and a link takes two; give at least 2");
            return Err(ArgumentError::new("connections", problem));
        }
        self.config
            .security
            .check()
            .map_err(|problem| ArgumentError::new("security", problem))
    }

    fn bind<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        offer: Offer,
        acceptor: Arc<dyn Acceptor>,
    ) -> BoxFuture<'a, Result<Box<dyn Listener>, TransportError>> {
        Box::pin(listener::bind(self, endpoint, offer, acceptor))
    }

    fn dial<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        offer: Offer,
    ) -> BoxFuture<'a, Result<Arc<dyn Link>, TransportError>> {
        Box::pin(dial::dial(self, endpoint, offer))
    }

    fn connections(&self) -> Option<Connections> {
        Some(Connections::new(self.sockets.clone(), self.config.clone()))
    }
}
