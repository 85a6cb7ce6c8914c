//! Channels and Node direct: what users register, call and handle.
//!
//! Here a typed call becomes a record on the link of the server that selection picked, and a received record becomes
//! a job of the queue that handles it. It must not know how links are made, nor what a Spot is: what is for one it hands on.

mod call;
mod context;
mod direct;
mod dispatch;
mod drops;
mod exchange;
mod filter;
mod flow;
mod found;
#[cfg(feature = "testing")]
mod history;
mod inbound;
mod objects;
mod outbound;
mod own;
mod path;
mod reply;
mod scope;
mod server;
mod way;

pub use call::{ChannelRoute, Method, NodeRoute, RequestCall, RequestFuture, SendCall, SendFuture};
pub use context::{ChannelContext, ChannelTurn, CorrelationId, MessageKind, NodeContext, NodeTurn};
pub use dispatch::{Call, LendContext};
pub use drops::DropCounts;
pub use filter::{Filter, FilterContext, Next};
pub use flow::{FlowContext, FlowId, FlowOrigin, InFlow};
#[cfg(feature = "testing")]
pub use history::Selection;
pub use outbound::Caller;
pub use path::SelectionFailures;
pub use scope::HandlerScope;
pub use server::{ChannelServer, NodeServer, Server, ServerBuilder};

pub(crate) use direct::{Adjust, Forwarded, SpotWay, control};
pub(crate) use dispatch::Refusal;
pub(crate) use drops::Drops;
pub(crate) use exchange::no_role;
pub(crate) use filter::{AnyFilter, Filters, Stop, Told, filtered, rejected};
pub(crate) use flow::{Entered, Flow, is_traced};
pub(crate) use found::{Found, KnownSpot, Lead, Owned, Place};
pub(crate) use inbound::{Inbound, InboundConfig, Queue, deadline, problem, refuse};
pub(crate) use objects::{Arrival, Arrived, Asked, Here, Intent, Objects, OwnCall, SpotTo};
pub(crate) use outbound::sealed as caller;
pub(crate) use outbound::{HostState, Outbound};
pub(crate) use own::{OwnLines, OwnPeer};
pub(crate) use path::{ChannelPath, MeshPath, PathKind, Timeouts};
pub(crate) use reply::ReplyTo;
pub(crate) use server::{Handler, operations};
pub(crate) use way::is_running;
