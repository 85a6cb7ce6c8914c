//! Everything that generated code may name, and nothing else; not meant for people.
//!
//! It owns no behaviour: what stands here is defined in the room it belongs to.

pub use std::convert::AsRef;
pub use std::future::Future;
pub use std::marker::{Send, Sized, Sync};

pub use crate::actor::{
    ActorClient, ActorCreated, ActorFactory, ActorFactoryBuilder, ActorRoute, CreateActorCall, DestroyActorCall,
    FindActorCall, ReleaseActorCall,
};
pub use crate::channel::{
    Call, Caller, ChannelContext, ChannelRoute, ChannelServer, ChannelTurn, LendContext, Method, NodeContext,
    NodeRoute, NodeServer, NodeTurn, RequestCall, RequestFuture, SendCall, SendFuture, Server, ServerBuilder,
};
pub use crate::error::HandlerError;
pub use crate::execution::{Overrun, Tick, WorkCall, YieldFor, YieldTurn, Yields};
pub use crate::fanout::{
    FanoutCall, FanoutContext, FanoutEvent, FanoutRoute, FanoutSubscriber, FanoutSubscriberBuilder, FanoutTurn,
};
pub use crate::id::{ActorType, ChannelName, MeshName, Rid, SpotType, TimerName, Topic};
pub use crate::message::codec::*;
pub use crate::message::metadata::MetadataKey;
pub use crate::spot::{
    Activates, Activating, Actor, ActorContext, ActorTurn, ActorYieldTurn, Admission, CloseCall, CloseReason,
    CreateCall, Created, EntrySpot, FindCall, InstanceSpot, PublishCall, ReleaseCall, Relocation, SpotClient,
    SpotContext, SpotCreated, SpotFactory, SpotFactoryBuilder, SpotRoute, SpotTurn, SpotYieldTurn, TimerHandle,
    UserSpot,
};
pub use tokio::time::Instant;
