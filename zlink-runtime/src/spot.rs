//! Spots: addressable objects with a state, each at one place of its mesh, found by its ID alone; and what Actors have in
//! common with them, which is all but how one begins.
//!
//! Here an object is made, found, messaged, ended and fenced. Who owns it says the Location Store, by way of `location`;
//! when its turns run, `execution`; how records travel, `channel` and below. It must not know what is registered and called as
//! an Actor, nor sessions.

mod activate;
mod admit;
mod anew;
mod around;
mod call;
mod close;
mod controls;
mod create;
mod desk;
mod dispatch;
mod entry;
mod factory;
mod find;
mod forward;
mod here;
mod inbox;
mod job;
mod kind;
mod known;
mod manage;
mod managing;
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
pub use kind::{Actor, EntrySpot, InstanceSpot, UserSpot};
pub use turn::{
    ActorContext, ActorTurn, ActorYieldTurn, ObjectContext, ObjectTurn, ObjectYieldTurn, SpotContext, SpotTurn,
    SpotYieldTurn, TimerHandle,
};
pub(crate) use value::Payload;
pub use value::{Admission, CloseReason, Created, Relocation, SpotCreated};

pub(crate) use admit::actors;
pub(crate) use create::Creation;
pub(crate) use dispatch::{SpotCall, SpotYieldCall};
pub(crate) use entry::Lobby;
pub(crate) use managing::{Client, Creating, Managing, Route, creating, managing, own};
pub(crate) use shared::Shared;
pub(crate) use spots::{Home, Spots, SpotsConfig};
