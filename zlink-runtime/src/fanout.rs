//! Classic fanout: events that a publisher hands to whoever subscribes, with no reply, no storage and no repetition.
//!
//! Here a typed event becomes a message of a PUB socket, and what a SUB socket receives becomes a job of the handler that
//! it names. It shares no link, peer or subscription with meshes, channels or Spots, and must not know any of them.

mod call;
mod channel;
mod context;
mod feed;
mod found;
mod intake;
mod outlet;
mod server;
mod topic;

pub use call::{FanoutCall, FanoutEvent, FanoutRoute};
pub use context::{FanoutContext, FanoutTurn};
pub use server::{FanoutSubscriber, FanoutSubscriberBuilder};

pub(crate) use channel::{Automatic, Fanout, FanoutConfig, Outlets};
pub(crate) use intake::{Intake, IntakeConfig};
pub(crate) use outlet::OutletConfig;
pub(crate) use topic::{Subscribed, check as check_topic};
