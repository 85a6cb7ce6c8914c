//! What generated code registers: the handlers of one channel, or of one node, by kind and packet name.

use std::fmt;
use std::sync::Arc;

use crate::error::Error;
use crate::id::{ChannelName, PacketName};
use crate::limit::{DEFAULT_WEIGHT, DISPATCH_LIMIT};
use crate::mesh::{OperationId, Operations};
use crate::message::codec::Message;
use crate::transport::BoxFuture;

use super::context::{ChannelTurn, MessageKind, NodeTurn};
use super::dispatch::{Call, Dispatch, LendContext, Requests, Sends};

/// One handler: what it takes, and how it is run in turns of the type `T`.
#[allow(unnameable_types, reason = "only what generated code builds has one")]
pub struct Handler<T> {
    pub(crate) kind: MessageKind,
    pub(crate) packet: PacketName,
    pub(super) dispatch: Arc<dyn Dispatch<T>>,
}

impl<T: LendContext> Handler<T> {
    /// One for one-way messages.
    pub(crate) fn send<H, M, F>(handler: &Arc<H>, packet: &'static str, call: F) -> Self
    where
        H: Send + Sync + 'static,
        M: Message,
        F: for<'a> Call<'a, H, T, M, Reply = ()>,
    {
        let packet = PacketName::from_static(packet);
        let dispatch = Arc::new(Sends::new(handler.clone(), packet.clone(), call));
        let kind = MessageKind::Send;
        Self { kind, packet, dispatch }
    }

    /// The handler at work on such a message; it is not polled yet.
    ///
    /// # Errors
    /// Where the payload is not what it takes.
    pub(crate) fn begin(&self, turn: T, payload: &[u8]) -> Result<BoxFuture<'static, ()>, Error> {
        self.dispatch
            .start(turn, payload, None)
            .map_err(|refusal| refusal.error)
    }
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

/// What a [`ServerBuilder`] makes.
pub trait Server: Sized {
    /// What a handler of it is called with beside its message.
    type Turn: LendContext;

    #[doc(hidden)]
    fn add(&mut self, handler: Handler<Self::Turn>);
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
    pub fn builder<H: Send + Sync + 'static>(channel: ChannelName, handler: H) -> ServerBuilder<H, Self> {
        let server = Self {
            channel,
            weight: u32::from(DEFAULT_WEIGHT),
            dispatch_limit: DISPATCH_LIMIT,
            handlers: Vec::new(),
        };
        ServerBuilder {
            handler: Arc::new(handler),
            server,
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

impl Server for ChannelServer {
    type Turn = ChannelTurn;

    fn add(&mut self, handler: Handler<ChannelTurn>) {
        self.handlers.push(handler);
    }
}

/// The handlers of a node, which callers address by mesh and RID. A schema's `<service>_server(…)` makes one.
#[derive(Clone, Debug)]
#[must_use = "a server does nothing until it is registered with a host"]
pub struct NodeServer {
    pub(crate) dispatch_limit: usize,
    pub(crate) handlers: Vec<Handler<NodeTurn>>,
}

impl NodeServer {
    /// Begins a server whose methods are handled by `handler`.
    pub fn builder<H: Send + Sync + 'static>(handler: H) -> ServerBuilder<H, Self> {
        ServerBuilder {
            handler: Arc::new(handler),
            server: Self {
                dispatch_limit: DISPATCH_LIMIT,
                handlers: Vec::new(),
            },
        }
    }

    /// As [`ChannelServer::dispatch_limit`]. All servers of one node share its queue; the lowest limit holds.
    pub fn dispatch_limit(mut self, limit: usize) -> Self {
        self.dispatch_limit = limit;
        self
    }
}

impl Server for NodeServer {
    type Turn = NodeTurn;

    fn add(&mut self, handler: Handler<NodeTurn>) {
        self.handlers.push(handler);
    }
}

/// What is handled, each once, in the order of its numbers: what the hello lists.
///
/// # Errors
/// Where two names cannot be told apart.
pub(crate) fn operations(channels: &[ChannelServer], node: &[NodeServer]) -> Result<Operations, String> {
    let of_channels = channels.iter().flat_map(|server| {
        let packets = server.handlers.iter().map(|handler| handler.packet.clone());
        packets.map(|packet| OperationId::new(Some(server.channel.clone()), packet))
    });
    let of_node = node.iter().flat_map(|server| &server.handlers);
    let of_node = of_node.map(|handler| OperationId::new(None, handler.packet.clone()));
    let mut all: Vec<_> = of_channels.chain(of_node).collect();
    all.sort_unstable();
    all.dedup();
    Operations::new(all)
}

/// Collects the handlers of a channel or of a node. Generated code uses it.
pub struct ServerBuilder<H, S> {
    handler: Arc<H>,
    server: S,
}

impl<H, S: fmt::Debug> fmt::Debug for ServerBuilder<H, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServerBuilder").field(&self.server).finish()
    }
}

impl<H: Send + Sync + 'static, S: Server> ServerBuilder<H, S> {
    /// Handles requests named `packet`.
    pub fn request<Q, R, F>(mut self, packet: &'static str, call: F) -> Self
    where
        Q: Message,
        R: Message,
        F: for<'a> Call<'a, H, S::Turn, Q, Reply = R>,
    {
        let packet = PacketName::from_static(packet);
        let dispatch = Arc::new(Requests::new(self.handler.clone(), packet.clone(), call));
        let kind = MessageKind::Request;
        self.server.add(Handler { kind, packet, dispatch });
        self
    }

    /// Handles one-way messages named `packet`.
    pub fn send<M, F>(mut self, packet: &'static str, call: F) -> Self
    where
        M: Message,
        F: for<'a> Call<'a, H, S::Turn, M, Reply = ()>,
    {
        self.server.add(Handler::send(&self.handler, packet, call));
        self
    }

    /// The server.
    pub fn build(self) -> S {
        self.server
    }
}
