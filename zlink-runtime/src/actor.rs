//! Actors: objects with a state of their own, each a member of a Spot, found by its ID alone.
//!
//! Here stands what is registered and called as an Actor. How one is made, found, messaged, ended and fenced is the same as
//! of Spots, and in their room. It must not know sessions.

mod call;
mod factory;

pub use call::{
    ActorClient, ActorCreated, ActorRoute, CreateActorCall, DestroyActorCall, FindActorCall, ReleaseActorCall,
};
pub use factory::{ActorFactory, ActorFactoryBuilder};
