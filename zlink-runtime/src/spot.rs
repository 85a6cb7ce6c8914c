//! Spots: addressable objects with a state, each at one place of its mesh, found by its ID alone.
//!
//! Here a Spot is made, found, messaged, closed and fenced. Who owns it says the Location Store, by way of `location`;
//! when its turns run, `execution`; how records travel, `channel` and below. It must not know Actors or sessions.

mod activate;
mod anew;
mod around;
mod call;
mod close;
mod controls;
mod create;
mod desk;
mod dispatch;
mod factory;
mod find;
mod forward;
mod here;
mod inbox;
mod job;
mod kind;
mod known;
mod manage;
mod object;
mod orphans;
mod publish;
mod recorded;
mod shared;
mod spots;
mod table;
mod told;
mod turn;
mod value;

pub use call::{
    Activates, Activating, CloseCall, CreateCall, FindCall, PublishCall, ReleaseCall, SpotClient, SpotRoute,
};
pub use factory::{SpotFactory, SpotFactoryBuilder};
pub use kind::{EntrySpot, InstanceSpot, UserSpot};
pub use turn::{SpotContext, SpotTurn, SpotYieldTurn, TimerHandle};
pub use value::{CloseReason, Created, Relocation, SpotCreated};

pub(crate) use shared::Shared;
pub(crate) use spots::{Home, Spots, SpotsConfig};
