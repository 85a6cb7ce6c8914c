//! The objects of one host by their IDs: those that are here, or are being made here. It must not know what they do.

use std::collections::HashMap;
use std::sync::Arc;

use crate::id::{ActorId, ObjectId, Space, SpotId};

use super::object::Object;

#[derive(Default)]
pub(super) struct Table {
    spots: HashMap<SpotId, Arc<Object>>,
    actors: HashMap<ActorId, Arc<Object>>,
}

impl Table {
    pub(super) fn get(&self, id: &ObjectId) -> Option<&Arc<Object>> {
        match id {
            ObjectId::Spot(id) => self.spots.get(id),
            ObjectId::Actor(id) => self.actors.get(id),
        }
    }

    /// The same by its text.
    pub(super) fn named(&self, space: Space, id: &str) -> Option<&Arc<Object>> {
        match space {
            Space::Spots => self.spots.get(id),
            Space::Actors => self.actors.get(id),
        }
    }

    pub(super) fn contains(&self, id: &ObjectId) -> bool {
        self.get(id).is_some()
    }

    pub(super) fn insert(&mut self, object: Arc<Object>) {
        match object.id.clone() {
            ObjectId::Spot(id) => self.spots.insert(id, object),
            ObjectId::Actor(id) => self.actors.insert(id, object),
        };
    }

    pub(super) fn remove(&mut self, id: &ObjectId) -> Option<Arc<Object>> {
        match id {
            ObjectId::Spot(id) => self.spots.remove(id),
            ObjectId::Actor(id) => self.actors.remove(id),
        }
    }

    pub(super) fn spots(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.spots.values()
    }

    pub(super) fn actors(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.actors.values()
    }

    pub(super) fn len(&self) -> usize {
        self.spots.len() + self.actors.len()
    }

    /// All of them; nothing is left.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Arc<Object>> {
        let spots = self.spots.drain().map(|(_, object)| object);
        spots.chain(self.actors.drain().map(|(_, object)| object))
    }
}
