//! Routing, permits and ordered execution for services generated from zlink schemas, over ZeroMQ.

pub mod error;
pub mod id;
pub mod limit;
pub mod location;
pub mod message;
pub mod permit;
#[cfg(feature = "testing")]
pub mod testing;
pub mod transport;

#[doc(hidden)]
#[cfg(feature = "bench")]
pub mod bench;
#[doc(hidden)]
pub mod rt;

mod actor;
mod call;
mod channel;
mod clock;
mod execution;
mod fanout;
mod host;
mod mesh;
mod random;
mod routing;
mod spot;
mod sync;
mod wire;

#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzz;

pub use actor::ActorCreated;
pub use channel::{
    Caller, ChannelContext, CorrelationId, DropCounts, Filter, FilterContext, FlowContext, FlowId, FlowOrigin,
    HandlerScope, InFlow, MessageKind, Next, NodeContext, SelectionFailures,
};
pub use error::StartError;
pub use execution::{Overrun, Tick, WorkCall};
pub use fanout::FanoutContext;
pub use host::{
    ChannelControl, ClientServerBuilder, FanoutBuilder, FanoutControl, FanoutStatus, Host, HostBuilder, HostPhase,
    HostStatus, IntentStatus, JobProfile, JobQueueStatus, LinksStatus, ListenerInfo, ListenerKind, LocationState,
    LocationStatus, MeshBuilder, MeshNode, ObjectServerBuilder, PeerStatus, PublisherStatus, ShutdownError, SpotCursor,
    SpotEntry, SpotEntryState, SpotPage, SpotQuery, TargetStatus, TopologyKind, TopologyPhase, TopologyReason,
    TopologyStatus,
};
pub use location::StoreSource;
pub use mesh::{ObjectRole, PeerState};
pub use message::metadata::{Metadata, MetadataView};
pub use spot::{
    Actor, ActorContext, ActorTurn, ActorYieldTurn, Admission, CloseReason, Created, EntrySpot, InstanceSpot,
    ObjectContext, ObjectTurn, ObjectYieldTurn, Relocation, SpotContext, SpotCreated, SpotTurn, SpotYieldTurn,
    TimerHandle, UserSpot,
};

/// What an application names daily.
pub mod prelude {
    pub use crate::channel::{ChannelContext, NodeContext};
    pub use crate::error::{CallError, ErrorKind, Execution, HandlerError};
    pub use crate::fanout::FanoutContext;
    pub use crate::host::Host;
    pub use crate::id::{ActorId, ActorRef, ChannelName, MeshName, Rid, SpotId, SpotRef};
}

/// Brings in the modules that `zlink_codegen::compile` wrote for a schema in this crate's build script: one for the
/// namespace that is named, and one beside it for each namespace it imports.
#[macro_export]
macro_rules! include_schema {
    ($namespace:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $namespace, ".rs"));
    };
}
