//! The Spots and Actors of a host by their IDs, each of which stands in its object alone.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::id::{ObjectId, Space};

use super::object::Object;

#[derive(Default)]
pub(super) struct Table {
    spots: HashSet<ById>,
    actors: HashSet<ById>,
}

#[allow(clippy::mutable_key_type, reason = "an ID is what it was made with")]
impl Table {
    pub(super) fn get(&self, id: &ObjectId) -> Option<&Arc<Object>> {
        self.named(id.space(), id.as_str().as_bytes())
    }

    /// The one with that ID, as it came: what is no ID finds none.
    #[inline]
    pub(super) fn named(&self, space: Space, id: &[u8]) -> Option<&Arc<Object>> {
        let those = match space {
            Space::Spots => &self.spots,
            Space::Actors => &self.actors,
        };
        those.get(id).map(|found| &found.0)
    }

    fn of(&mut self, object: &Object) -> &mut HashSet<ById> {
        match object.id.space() {
            Space::Spots => &mut self.spots,
            Space::Actors => &mut self.actors,
        }
    }

    pub(super) fn insert(&mut self, object: Arc<Object>) {
        self.of(&object).replace(ById(object));
    }

    /// Takes that very one out, if it is there.
    pub(super) fn remove(&mut self, object: &Arc<Object>) {
        if self.get(&object.id).is_some_and(|there| Arc::ptr_eq(there, object)) {
            self.of(object).remove(object.id.as_str().as_bytes());
        }
    }

    pub(super) fn spots(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.spots.iter().map(|one| &one.0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.spots().chain(self.actors.iter().map(|one| &one.0))
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = Arc<Object>> {
        self.spots.drain().chain(self.actors.drain()).map(|one| one.0)
    }

    pub(super) fn len(&self) -> usize {
        self.spots.len() + self.actors.len()
    }
}

/// In a set of one space.
struct ById(Arc<Object>);

impl PartialEq for ById {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}
impl Eq for ById {}
impl Hash for ById {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Borrow::<[u8]>::borrow(self).hash(state);
    }
}
impl Borrow<[u8]> for ById {
    fn borrow(&self) -> &[u8] {
        self.0.id.as_str().as_bytes()
    }
}
