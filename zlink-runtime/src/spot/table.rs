//! The Spots of a host by their IDs, each of which stands in its Spot alone.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::routing::keyed::Keyed;

use super::object::Object;

#[derive(Default)]
pub(super) struct Table(HashSet<ById, Keyed>);

impl Table {
    /// The Spot with that ID, as it came: what is no ID finds none.
    #[inline]
    pub(super) fn get(&self, id: impl AsRef<[u8]>) -> Option<&Arc<Object>> {
        self.0.get(id.as_ref()).map(|found| &found.0)
    }

    pub(super) fn insert(&mut self, object: Arc<Object>) {
        self.0.replace(ById(object));
    }

    /// Takes that very one out, if it is there.
    pub(super) fn remove(&mut self, object: &Arc<Object>) {
        if self
            .get(object.id.as_str())
            .is_some_and(|there| Arc::ptr_eq(there, object))
        {
            self.0.remove(object.id.as_str().as_bytes());
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.0.iter().map(|one| &one.0)
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = Arc<Object>> {
        self.0.drain().map(|one| one.0)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

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
