//! Where a call to a Spot goes: which node, and which owner there.
//!
//! It must not know how that is found.

use std::sync::Arc;

use crate::id::{Generation, MeshName, ObjectId, Rid};
use crate::location::{Admission, OwnerId, Revision};
use crate::routing::cache::Known;
use crate::wire::SpotTarget;

/// A node that has Spots, as one run of it: one for all of its Spots that this host knows.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) mesh: MeshName,
    pub(crate) node: Rid,
    /// The run of the node.
    pub(crate) lifecycle: Generation,
    /// Whose lease it holds its Spots by, and which run of that host, where it is known to have any.
    pub(crate) owner: Option<(OwnerId, Revision)>,
    /// How long that may be so, where it is another host.
    pub(crate) admission: Option<Arc<Admission>>,
}

impl Place {
    pub(crate) fn new(mesh: MeshName, node: Rid, lifecycle: Generation) -> Self {
        Self {
            mesh,
            node,
            lifecycle,
            owner: None,
            admission: None,
        }
    }

    /// It is known to have Spots by that lease.
    pub(crate) fn owned_by(self, owner: OwnerId, lease: Revision, admission: Option<Arc<Admission>>) -> Self {
        Self {
            owner: Some((owner, lease)),
            admission,
            ..self
        }
    }

    /// Whether this one says all that `other` does.
    pub(crate) fn covers(&self, other: &Place) -> bool {
        let same = |one: &Arc<Admission>| self.admission.as_ref().is_some_and(|own| Arc::ptr_eq(own, one));
        self.lifecycle == other.lifecycle
            && (other.owner.is_none() || self.owner == other.owner)
            && other.admission.as_ref().is_none_or(same)
    }
}

/// Who owns a Spot, as it is remembered. Its ID, and the version of the record that says so, stand beside it.
#[derive(Debug)]
pub(crate) struct Owned {
    pub(crate) place: Arc<Place>,
    pub(crate) generation: u64,
    pub(crate) owner_generation: u64,
}

/// A Spot that was found.
pub(crate) type KnownSpot = Known<ObjectId, Owned>;

/// What leads a call to where it goes. Where it is wrong, so is all that is older, and nothing that is newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    /// The record of its Spot, in that version.
    Record(u64),
    /// The message that this host has sent there to make it: which of all of them.
    FirstMessage(u64),
}

/// Where a call to a Spot goes.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) place: Arc<Place>,
    /// Which owner is meant; all 0 where it has none yet.
    pub(crate) target: SpotTarget,
    /// What says so.
    pub(crate) lead: Lead,
    /// An encoded `SpotActivation`, where there may be no Spot yet.
    pub(crate) activation: Option<Arc<[u8]>>,
}

impl Found {
    /// By what is remembered.
    #[inline]
    pub(crate) fn known(known: &KnownSpot) -> Self {
        let owned = known.route();
        let lease = owned.place.owner.map_or(0, |(_, lease)| lease.get());
        Self {
            target: SpotTarget {
                generation: owned.generation,
                owner_generation: owned.owner_generation,
                lease,
            },
            lead: Lead::Record(known.version()),
            place: owned.place.clone(),
            activation: None,
        }
    }
}
