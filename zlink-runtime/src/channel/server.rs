//! What generated code registers: the handlers of one channel, or of one node, by kind and packet name.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use crate::error::HandlerError;
use crate::id::{ChannelName, PacketName};
use crate::limit::{DEFAULT_WEIGHT, DISPATCH_LIMIT};
use crate::message::codec::Message;

use super::context::{ChannelTurn, MessageKind, NodeTurn};
use super::dispatch::{Dispatch, Requests, Sends};

/// One handler: what it takes, and how it is run in turns of the type `T`.
pub(crate) struct Handler<T> {
    pub(crate) kind: MessageKind,
    pub(crate) packet: PacketName,
    pub(super) dispatch: Arc<dyn Dispatch<T>>,
}

impl<T> Clone for Handler<T> {
    fn clone(&self) -> Self {
        Self {
            kind: self.kind,
            packet: self.packet.clone(),
            dispatch: self.dispatch.clone(),
        }
    }
}

impl<T> fmt::Debug for Handler<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.kind, self.packet)
    }
}

/// The Server role of a channel: its handlers, and its weight in selection. A schema's `server(…)` makes one.
#[derive(Clone, Debug)]
#[must_use = "a server does nothing until it is registered with a host"]
pub struct ChannelServer {
    pub(crate) channel: ChannelName,
    pub(crate) weight: u32,
    pub(crate) dispatch_limit: usize,
    pub(crate) handlers: Vec<Handler<ChannelTurn>>,
}

impl ChannelServer {
    /// Begins a server of `channel` whose methods are handled by `handler`.
    pub fn builder<H: Send + Sync + 'static>(channel: ChannelName, handler: H) -> ChannelServerBuilder<H> {
        ChannelServerBuilder {
            handler: Arc::new(handler),
            channel,
            handlers: Vec::new(),
        }
    }

    /// Serves the channel under another name than its schema's.
    pub fn on(mut self, channel: ChannelName) -> Self {
        self.channel = channel;
        self
    }

    /// Its share in selection, 0 to 10,000, 100 where it is not set. 0 takes part in everything but selection.
    /// A greater one is a mistake that start reports.
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    /// How many of its handlers may run at once; 256 where it is not set. What exceeds it waits in order, and holds its
    /// permits.
    pub fn dispatch_limit(mut self, limit: usize) -> Self {
        self.dispatch_limit = limit;
        self
    }
}

/// Collects the handlers of a channel. Generated code uses it.
pub struct ChannelServerBuilder<H> {
    channel: ChannelName,
    handler: Arc<H>,
    handlers: Vec<Handler<ChannelTurn>>,
}

impl<H> fmt::Debug for ChannelServerBuilder<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChannelServerBuilder").field(&self.channel).finish()
    }
}

impl<H: Send + Sync + 'static> ChannelServerBuilder<H> {
    /// Handles requests named `packet`.
    pub fn request<Q, R, F, Fut>(mut self, packet: &'static str, call: F) -> Self
    where
        Q: Message,
        R: Message,
        F: Fn(Arc<H>, ChannelTurn, Q) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        let packet = PacketName::from_static(packet);
        let dispatch = Requests::new(self.handler.clone(), packet.clone(), call);
        self.handlers.push(Handler {
            kind: MessageKind::Request,
            packet,
            dispatch: Arc::new(dispatch),
        });
        self
    }

    /// Handles one-way messages named `packet`.
    pub fn send<M, F, Fut>(mut self, packet: &'static str, call: F) -> Self
    where
        M: Message,
        F: Fn(Arc<H>, ChannelTurn, M) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), HandlerError>> + Send + 'static,
    {
        let packet = PacketName::from_static(packet);
        let dispatch = Sends::new(self.handler.clone(), packet.clone(), call);
        self.handlers.push(Handler {
            kind: MessageKind::Send,
            packet,
            dispatch: Arc::new(dispatch),
        });
        self
    }

    /// The server.
    pub fn build(self) -> ChannelServer {
        ChannelServer {
            channel: self.channel,
            weight: u32::from(DEFAULT_WEIGHT),
            dispatch_limit: DISPATCH_LIMIT,
            handlers: self.handlers,
        }
    }
}

/// The handlers of a node, which callers address by mesh and RID. A schema's `<service>_server(…)` makes one.
#[derive(Clone, Debug)]
#[must_use = "a server does nothing until it is registered with a host"]
pub struct NodeServer {
    pub(crate) handlers: Vec<Handler<NodeTurn>>,
}

impl NodeServer {
    /// Begins a server whose methods are handled by `handler`.
    pub fn builder<H: Send + Sync + 'static>(handler: H) -> NodeServerBuilder<H> {
        NodeServerBuilder {
            handler: Arc::new(handler),
            handlers: Vec::new(),
        }
    }
}

/// Collects the handlers of a node. Generated code uses it.
pub struct NodeServerBuilder<H> {
    handler: Arc<H>,
    handlers: Vec<Handler<NodeTurn>>,
}

impl<H> fmt::Debug for NodeServerBuilder<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NodeServerBuilder").field(&self.handlers).finish()
    }
}

impl<H: Send + Sync + 'static> NodeServerBuilder<H> {
    /// Handles requests named `packet`.
    pub fn request<Q, R, F, Fut>(mut self, packet: &'static str, call: F) -> Self
    where
        Q: Message,
        R: Message,
        F: Fn(Arc<H>, NodeTurn, Q) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        let packet = PacketName::from_static(packet);
        let dispatch = Requests::new(self.handler.clone(), packet.clone(), call);
        self.handlers.push(Handler {
            kind: MessageKind::Request,
            packet,
            dispatch: Arc::new(dispatch),
        });
        self
    }

    /// Handles one-way messages named `packet`.
    pub fn send<M, F, Fut>(mut self, packet: &'static str, call: F) -> Self
    where
        M: Message,
        F: Fn(Arc<H>, NodeTurn, M) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), HandlerError>> + Send + 'static,
    {
        let packet = PacketName::from_static(packet);
        let dispatch = Sends::new(self.handler.clone(), packet.clone(), call);
        self.handlers.push(Handler {
            kind: MessageKind::Send,
            packet,
            dispatch: Arc::new(dispatch),
        });
        self
    }

    /// The server.
    pub fn build(self) -> NodeServer {
        NodeServer {
            handlers: self.handlers,
        }
    }
}
