//! What a handler is told beside its message. It must not offer anything that only a Spot may do.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;

use crate::id::{ChannelName, MeshName, PacketName, Rid};
use crate::message::metadata::MetadataView;

use super::dispatch::LendContext;
use super::filter::{AnyFilter, FilterContext, Told};
use super::inbound::Entry;
use super::outbound::{Caller, Outbound, sealed};
use super::scope::HandlerScope;

/// How a message was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum MessageKind {
    /// One way.
    Send,
    /// Somebody waits for a reply.
    Request,
}

impl fmt::Display for MessageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MessageKind::Send => "send",
            MessageKind::Request => "request",
        })
    }
}

/// Ties a reply to its request: 16 ASCII characters, unique among the requests that its caller's host has waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CorrelationId(u64);

impl CorrelationId {
    /// That of a request.
    pub(crate) fn of(correlation: u64) -> Self {
        Self(correlation)
    }

    /// That of a request as records have it, for whoever traces.
    pub(crate) fn shown(correlation: u64) -> tracing::field::DisplayValue<Self> {
        tracing::field::display(Self(correlation))
    }
}

impl fmt::Display for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What both contexts are made of.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) entry: Arc<Entry>,
    /// Encoded; checked before the turn began.
    pub(super) metadata: Bytes,
    /// Of a request; none has 0.
    pub(super) correlation: Option<NonZeroU64>,
    /// Made once somebody asks for it.
    pub(super) scope: OnceLock<Box<HandlerScope>>,
    /// Dies with the turn. Made once somebody calls from it.
    pub(super) running: OnceLock<Arc<()>>,
}

impl Turn {
    pub(super) fn metadata(&self) -> MetadataView<'_> {
        MetadataView::parse(&self.metadata).unwrap_or_default()
    }

    pub(super) fn kind(&self) -> MessageKind {
        if self.correlation.is_some() {
            MessageKind::Request
        } else {
            MessageKind::Send
        }
    }

    pub(super) fn correlation(&self) -> Option<CorrelationId> {
        self.correlation.map(|correlation| CorrelationId(correlation.get()))
    }

    /// Alive as long as this turn.
    pub(super) fn running(&self) -> Weak<()> {
        Arc::downgrade(self.running.get_or_init(Arc::default))
    }

    pub(super) fn scope(&self) -> &HandlerScope {
        self.scope
            .get_or_init(|| Box::new(HandlerScope::new(self.entry.outbound.next_scope())))
    }
}

macro_rules! common {
    ($name:ident) => {
        impl<'a> $name<'a> {
            /// Whether somebody waits for a reply.
            #[must_use]
            pub fn kind(&self) -> MessageKind {
                self.turn.turn.kind()
            }

            /// The name on the wire that chose this handler.
            #[must_use]
            pub fn packet_name(&self) -> &'a PacketName {
                &self.turn.turn.entry.packet
            }

            /// The encoding the message came in.
            #[must_use]
            pub fn content_type(&self) -> &'a str {
                crate::message::CONTENT_TYPE
            }

            /// What the caller set, unchangeable. Copy what must outlive the turn.
            #[must_use]
            pub fn metadata(&self) -> MetadataView<'a> {
                self.turn.turn.metadata()
            }

            /// The request's correlation; `None` for a one-way message.
            #[must_use]
            pub fn correlation(&self) -> Option<CorrelationId> {
                self.turn.turn.correlation()
            }

            /// What the filters and the handler of this message share.
            #[must_use]
            pub fn scope(&self) -> &'a HandlerScope {
                self.turn.turn.scope()
            }
        }

        impl sealed::Caller for $name<'_> {
            fn outbound(&self) -> &Outbound {
                &self.turn.turn.entry.outbound
            }

            fn running(&self) -> Option<Weak<()>> {
                Some(self.turn.turn.running())
            }
        }
        impl Caller for $name<'_> {}
    };
}

macro_rules! told {
    () => {
        fn packet_name(&self) -> &PacketName {
            &self.turn.entry.packet
        }

        fn metadata(&self) -> MetadataView<'_> {
            self.turn.metadata()
        }

        fn correlation(&self) -> Option<CorrelationId> {
            self.turn.correlation()
        }

        fn scope(&self) -> &HandlerScope {
            self.turn.scope()
        }

        fn filters(&self) -> &[Arc<dyn AnyFilter>] {
            self.turn.entry.filters()
        }

        fn outbound(&self) -> &Outbound {
            &self.turn.entry.outbound
        }

        fn running(&self) -> Weak<()> {
            self.turn.running()
        }
    };
}

/// One dispatch to a channel's handler. Generated code owns it for as long as the handler runs.
#[derive(Debug)]
pub struct ChannelTurn {
    pub(super) turn: Turn,
    pub(super) channel: ChannelName,
}

impl LendContext for ChannelTurn {
    type Context<'a> = ChannelContext<'a>;

    fn lend(&self) -> ChannelContext<'_> {
        ChannelContext { turn: self }
    }

    fn is_filtered(&self) -> bool {
        !self.turn.entry.filters().is_empty()
    }

    fn seen(&self) -> FilterContext<'_> {
        FilterContext::new(self)
    }
}

impl Told for ChannelTurn {
    fn channel(&self) -> Option<&ChannelName> {
        Some(&self.channel)
    }

    told!();
}

/// What a channel's handler is told, and through which it calls others.
#[derive(Clone, Copy, Debug)]
pub struct ChannelContext<'a> {
    turn: &'a ChannelTurn,
}

common!(ChannelContext);

impl<'a> ChannelContext<'a> {
    /// The channel that was called.
    #[must_use]
    pub fn channel(&self) -> &'a ChannelName {
        &self.turn.channel
    }
}

/// One dispatch to a node's handler. Generated code owns it for as long as the handler runs.
#[derive(Debug)]
pub struct NodeTurn {
    pub(super) turn: Turn,
    pub(super) mesh: MeshName,
    pub(super) source: Rid,
}

impl LendContext for NodeTurn {
    type Context<'a> = NodeContext<'a>;

    fn lend(&self) -> NodeContext<'_> {
        NodeContext { turn: self }
    }

    fn is_filtered(&self) -> bool {
        !self.turn.entry.filters().is_empty()
    }

    fn seen(&self) -> FilterContext<'_> {
        FilterContext::new(self)
    }
}

impl Told for NodeTurn {
    fn mesh(&self) -> Option<&MeshName> {
        Some(&self.mesh)
    }

    fn source(&self) -> Option<&Rid> {
        Some(&self.source)
    }

    told!();
}

/// What a node's handler is told, and through which it calls others.
#[derive(Clone, Copy, Debug)]
pub struct NodeContext<'a> {
    turn: &'a NodeTurn,
}

common!(NodeContext);

impl<'a> NodeContext<'a> {
    /// The mesh that the caller named.
    #[must_use]
    pub fn mesh(&self) -> &'a MeshName {
        &self.turn.mesh
    }

    /// The node that called.
    #[must_use]
    pub fn source(&self) -> &'a Rid {
        &self.turn.source
    }
}
