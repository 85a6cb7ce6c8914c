//! What a MeshNode is told of the Spots and Actors that it can have, and what is wrong with that.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use crate::actor::ActorFactory;
use crate::channel::{AnyFilter, Filter};
use crate::clock;
use crate::id::{ActorType, Generation, MeshName, ObjectKind, Rid, SpotType};
use crate::limit::{DEFAULT_WEIGHT, MAX_WEIGHT, OBJECT_TYPES};
use crate::mesh::{Links, ObjectRole, ObjectServer};
use crate::spot::{Home, Lobby, SpotFactory};

use super::MeshBuilder;
use super::validate::Mistakes;

/// Collects what Spots and Actors a node can have.
#[derive(Clone, Debug)]
#[must_use = "an object server builder does nothing unless it is returned"]
pub struct ObjectServerBuilder {
    entries: Vec<SpotFactory>,
    spots: Vec<SpotFactory>,
    actors: Vec<ActorFactory>,
    capacities: Vec<(SpotType, u32)>,
    capacity: u32,
    actor_capacities: Vec<(ActorType, u32)>,
    actor_capacity: u32,
    placement_weight: u32,
    idle_timeout: Option<Duration>,
    filters: Vec<Arc<dyn AnyFilter>>,
}

impl Default for ObjectServerBuilder {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            spots: Vec::new(),
            actors: Vec::new(),
            capacities: Vec::new(),
            capacity: 0,
            actor_capacities: Vec::new(),
            actor_capacity: 0,
            placement_weight: u32::from(DEFAULT_WEIGHT),
            idle_timeout: None,
            filters: Vec::new(),
        }
    }
}

impl ObjectServerBuilder {
    /// Gives the node its Entry Spot: `<spot>_spot::<S>()` of a schema. At most one. Of the Actors that it decides about, the
    /// node has those that [`actor`](Self::actor) registers; it may have none, and its Entry Spot be there for messages alone.
    pub fn entry(mut self, factory: SpotFactory) -> Self {
        self.entries.push(factory);
        self
    }

    /// The node can have Spots that this factory makes: `<spot>_spot::<S>()` of a schema. Each type once.
    pub fn spot(mut self, factory: SpotFactory) -> Self {
        self.spots.push(factory);
        self
    }

    /// The node can have Actors that this factory makes: `<actor>_actor::<A>()` of a schema. Each type once; its Entry Spot
    /// decides about each.
    pub fn actor(mut self, factory: ActorFactory) -> Self {
        self.actors.push(factory);
        self
    }

    /// Puts `filter` around every message that a Spot or an Actor of this node is sent, within those that were registered
    /// before it. It runs within the turn; timers and lifecycle callbacks pass no filter. Those of the host are not for them.
    pub fn filter(mut self, filter: impl Filter) -> Self {
        self.filters.push(Arc::new(filter));
        self
    }

    /// How many Spots of one type the node has at most; 0, where it is not set, is no limit.
    pub fn capacity(mut self, stable_type: SpotType, spots: u32) -> Self {
        self.capacities.push((stable_type, spots));
        self
    }

    /// How many Spots of all types the node has at most, beside its Entry Spot; 0, where it is not set, is no limit.
    pub fn total_capacity(mut self, spots: u32) -> Self {
        self.capacity = spots;
        self
    }

    /// How many Actors of one type the node has at most; 0, where it is not set, is no limit.
    pub fn actor_capacity(mut self, stable_type: ActorType, actors: u32) -> Self {
        self.actor_capacities.push((stable_type, actors));
        self
    }

    /// How many Actors of all types the node has at most; 0, where it is not set, is no limit.
    pub fn total_actor_capacity(mut self, actors: u32) -> Self {
        self.actor_capacity = actors;
        self
    }

    /// The node's share of new Spots and Actors, 0 to 10,000, 100 where it is not set. 0 takes none; what is there stays.
    pub fn placement_weight(mut self, weight: u32) -> Self {
        self.placement_weight = weight;
        self
    }

    /// Closes Instance Spots that have had nothing to do for longer than this, 1 ms to `i32::MAX` ms: no message and no tick of a
    /// timer. They stay where it is not set.
    pub fn instance_idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = Some(timeout);
        self
    }

    pub(super) fn mistakes(&self, place: &str, mesh: &MeshBuilder, mistakes: &mut Mistakes) {
        if self.entries.len() > 1 {
            mistakes.add(place, "has two Entry Spots; a node has one");
        }
        for factory in &self.entries {
            if factory.kind() != ObjectKind::Entry {
                mistakes.add(
                    place,
                    format!("{} is no Entry Spot; register it with spot(…)", factory.stable_type()),
                );
            }
        }
        for factory in self.spots.iter().filter(|factory| factory.kind() == ObjectKind::Entry) {
            mistakes.add(
                place,
                format!("{} is an Entry Spot; register it with entry(…)", factory.stable_type()),
            );
        }
        let mut seen = HashSet::new();
        for factory in &self.spots {
            let name = factory.stable_type();
            if !seen.insert(name) {
                mistakes.add(
                    place,
                    format!("has two factories for the type {name}; a node has one per type"),
                );
            }
        }
        let types = self.spots.len() + self.actors.len();
        if types > OBJECT_TYPES {
            let text = format!("has {types} types of Spots and Actors; at most {OBJECT_TYPES} are allowed");
            mistakes.add(place, text);
        }
        self.actor_mistakes(place, mistakes);
        for factory in self.entries.iter().chain(&self.spots) {
            for problem in factory.problems() {
                mistakes.add(place, format!("the Spot {} {problem}", factory.stable_type()));
            }
            for channel in factory.channels() {
                let takes_part = mesh.servers.iter().any(|server| server.channel == *channel)
                    || mesh.clients.iter().any(|client| client == channel);
                if !takes_part {
                    let text = format!(
                        "the Spot {} subscribes to channel {:?}, in which this node takes no part; add take_part({:?}) to its \
                         mesh, or serve(…) a service of that name",
                        factory.stable_type(),
                        channel.as_str(),
                        channel.as_str()
                    );
                    mistakes.add(place, text);
                }
            }
        }
        let capacities = self.capacities.iter().map(|(name, spots)| (Some(name), *spots));
        for (name, spots) in capacities.chain([(None, self.capacity)]) {
            if spots > i32::MAX.unsigned_abs() {
                mistakes.add(place, format!("has a capacity of {spots} Spots; at most 2147483647"));
            }
            if let Some(name) = name.filter(|name| !seen.contains(name)) {
                mistakes.add(place, format!("has a capacity for the type {name}, and no factory"));
            }
        }
        if self.placement_weight > u32::from(MAX_WEIGHT) {
            let text = format!(
                "has the placement weight {}; it must be 0 to {MAX_WEIGHT}",
                self.placement_weight
            );
            mistakes.add(place, text);
        }
        if let Some(Err(error)) = self
            .idle_timeout
            .map(|limit| clock::timeout("instance_idle_timeout", limit))
        {
            mistakes.add(place, error);
        }
    }

    fn actor_mistakes(&self, place: &str, mistakes: &mut Mistakes) {
        let mut seen = HashSet::new();
        for factory in &self.actors {
            let name = factory.stable_type();
            if !seen.insert(name) {
                let text = format!("has two factories for Actors of the type {name}; a node has one per type");
                mistakes.add(place, text);
            }
            for problem in factory.inner().problems() {
                mistakes.add(place, format!("the Actor {name} {problem}"));
            }
            let mut entries = self.entries.iter();
            let text = match entries.find_map(|entry| entry.creates(factory.inner().stable_type())) {
                Some(decides) if decides == factory.inner().makes() => continue,
                Some(_) => {
                    format!("makes Actors of the type {name} as another Rust type than its Entry Spot decides about")
                }
                None => format!("has Actors of the type {name}, and no Entry Spot that decides about them"),
            };
            mistakes.add(place, text);
        }
        let capacities = self.actor_capacities.iter().map(|(name, actors)| (Some(name), *actors));
        for (name, actors) in capacities.chain([(None, self.actor_capacity)]) {
            if actors > i32::MAX.unsigned_abs() {
                mistakes.add(place, format!("has a capacity of {actors} Actors; at most 2147483647"));
            }
            if let Some(name) = name.filter(|name| !seen.contains(name)) {
                let text = format!("has a capacity for Actors of the type {name}, and no factory");
                mistakes.add(place, text);
            }
        }
    }

    /// What it publishes of itself.
    pub(super) fn published(&self) -> ObjectServer {
        let types = self
            .spots
            .iter()
            .map(|factory| (factory.kind(), factory.stable_type().clone()));
        let actors = self.actors.iter().map(ActorFactory::inner);
        let actors = actors.map(|factory| (factory.kind(), factory.stable_type().clone()));
        ObjectServer {
            types: types.chain(actors).collect(),
            // The plan has checked it.
            placement_weight: u16::try_from(self.placement_weight).unwrap_or(0),
            entry: None,
        }
    }

    /// What the node is to its Spots.
    pub(super) fn home(
        self,
        mesh: MeshName,
        (rid, lifecycle): (Rid, Generation),
        links: Links,
        (role, rid_prefix): (ObjectRole, String),
    ) -> Home {
        let capacities = self.capacities.iter();
        let capacities: HashMap<_, _> = capacities
            .filter_map(|(name, spots)| Some((name.clone(), NonZeroU32::new(*spots)?)))
            .collect();
        let actor_capacities = self.actor_capacities.iter();
        let actor_capacities = actor_capacities
            .filter_map(|(name, actors)| Some((name.stable(), NonZeroU32::new(*actors)?)))
            .collect();
        Home {
            mesh,
            rid,
            lifecycle,
            links,
            serves: role == ObjectRole::Server,
            factories: self
                .spots
                .into_iter()
                .map(|one| (one.stable_type().clone(), one))
                .collect(),
            entry: self.entries.into_iter().next(),
            rid_prefix,
            capacities,
            capacity: NonZeroU32::new(self.capacity),
            idle_timeout: self.idle_timeout,
            filters: self.filters.into(),
            actors: self
                .actors
                .iter()
                .map(|one| (one.inner().stable_type().clone(), one.inner().clone()))
                .collect(),
            actor_capacities,
            actor_capacity: NonZeroU32::new(self.actor_capacity),
            lobby: Lobby::default(),
            own: std::sync::OnceLock::new(),
            place: std::sync::OnceLock::new(),
        }
    }
}
