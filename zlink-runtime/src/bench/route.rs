//! Where a Spot is that was found before: the first step of each call to one of another host.

use std::fmt;
use std::sync::Arc;

use crate::channel::{Caller, Objects, SpotTo};
use crate::id::Space;

/// Looks for one Spot among those that its host has found.
pub struct Lookup {
    objects: Arc<dyn Objects>,
    spot: SpotTo,
}

impl Lookup {
    /// For the Spot of that ID; nothing where it is none, or the host of `caller` has no object role.
    #[must_use]
    pub fn new(caller: &impl Caller, id: impl AsRef<str>) -> Option<Self> {
        Some(Self {
            objects: caller.outbound().objects()?,
            spot: SpotTo::new(Space::Spots.id(id).ok()?, None),
        })
    }

    /// Whether it is known where it is.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.objects.known(&self.spot).is_some()
    }
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lookup({})", self.spot.id)
    }
}
