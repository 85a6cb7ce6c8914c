//! Values that the application hands to every factory and turn of its host, one of a type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The values of one host. Clones are the same values.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<HashMap<TypeId, Box<dyn Any + Send + Sync>>>);

impl Shared {
    pub(crate) fn new(values: impl IntoIterator<Item = Box<dyn Any + Send + Sync>>) -> Self {
        // The type of what is inside, not of the box.
        Self(Arc::new(
            values.into_iter().map(|value| ((*value).type_id(), value)).collect(),
        ))
    }

    pub(super) fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared({})", self.0.len())
    }
}
