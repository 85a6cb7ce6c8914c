//! Spots and Actors, where it makes no difference which: an ID with its space, a kind, a reference.
//!
//! An ID of one space never meets the same text of the other. It must not know what an object does.

use std::fmt;

use super::{ActorId, ActorRef, InvalidId, MeshName, ObjectGeneration, Rid, SpotId, SpotKind, SpotRef};

/// Which IDs are unique among themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Space {
    Spots,
    Actors,
}

impl Space {
    /// What people call one of them.
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Space::Spots => "Spot",
            Space::Actors => "Actor",
        }
    }

    /// The same behind its article.
    pub(crate) const fn one(self) -> &'static str {
        match self {
            Space::Spots => "a Spot",
            Space::Actors => "an Actor",
        }
    }

    /// What events call one of them.
    pub(crate) const fn surface(self) -> &'static str {
        match self {
            Space::Spots => "spot",
            Space::Actors => "actor",
        }
    }

    /// What stands in for an ID that is none, where every call ends before any work.
    pub(crate) const fn stand_in(self) -> ObjectId {
        match self {
            Space::Spots => ObjectId::Spot(SpotId::from_static("-")),
            Space::Actors => ObjectId::Actor(ActorId::from_static("-")),
        }
    }

    /// The ID of that text.
    ///
    /// # Errors
    /// Where it is none.
    pub(crate) fn id(self, text: impl AsRef<str>) -> Result<ObjectId, InvalidId> {
        Ok(match self {
            Space::Spots => ObjectId::Spot(SpotId::new(text)?),
            Space::Actors => ObjectId::Actor(ActorId::new(text)?),
        })
    }
}

/// The identity of a Spot or an Actor.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ObjectId {
    Spot(SpotId),
    Actor(ActorId),
}

impl ObjectId {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            ObjectId::Spot(id) => id.as_str(),
            ObjectId::Actor(id) => id.as_str(),
        }
    }

    pub(crate) const fn space(&self) -> Space {
        match self {
            ObjectId::Spot(_) => Space::Spots,
            ObjectId::Actor(_) => Space::Actors,
        }
    }

    pub(crate) const fn spot(&self) -> Option<&SpotId> {
        match self {
            ObjectId::Spot(id) => Some(id),
            ObjectId::Actor(_) => None,
        }
    }

    pub(crate) const fn actor(&self) -> Option<&ActorId> {
        match self {
            ObjectId::Spot(_) => None,
            ObjectId::Actor(id) => Some(id),
        }
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.space().noun(), self.as_str())
    }
}

/// How an object comes to be, and what it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ObjectKind {
    Entry,
    User,
    Instance,
    Actor,
}

impl ObjectKind {
    pub(crate) const fn space(self) -> Space {
        match self {
            ObjectKind::Entry | ObjectKind::User | ObjectKind::Instance => Space::Spots,
            ObjectKind::Actor => Space::Actors,
        }
    }

    pub(crate) const fn of_spot(kind: SpotKind) -> Self {
        match kind {
            SpotKind::Entry => ObjectKind::Entry,
            SpotKind::User => ObjectKind::User,
            SpotKind::Instance => ObjectKind::Instance,
        }
    }

    /// Of a Spot.
    pub(crate) const fn spot(self) -> Option<SpotKind> {
        match self {
            ObjectKind::Entry => Some(SpotKind::Entry),
            ObjectKind::User => Some(SpotKind::User),
            ObjectKind::Instance => Some(SpotKind::Instance),
            ObjectKind::Actor => None,
        }
    }
}

impl From<SpotKind> for ObjectKind {
    fn from(kind: SpotKind) -> Self {
        Self::of_spot(kind)
    }
}

/// One exact incarnation of either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ObjectRef {
    Spot(SpotRef),
    Actor(ActorRef),
}

impl ObjectRef {
    pub(crate) fn new(id: ObjectId, generation: ObjectGeneration, mesh: MeshName, node: Rid) -> Self {
        match id {
            ObjectId::Spot(id) => ObjectRef::Spot(SpotRef {
                id,
                generation,
                mesh,
                node,
            }),
            ObjectId::Actor(id) => ObjectRef::Actor(ActorRef {
                id,
                generation,
                mesh,
                node,
            }),
        }
    }

    pub(crate) fn id(&self) -> ObjectId {
        match self {
            ObjectRef::Spot(spot) => ObjectId::Spot(spot.id.clone()),
            ObjectRef::Actor(actor) => ObjectId::Actor(actor.id.clone()),
        }
    }

    pub(crate) const fn generation(&self) -> ObjectGeneration {
        match self {
            ObjectRef::Spot(spot) => spot.generation,
            ObjectRef::Actor(actor) => actor.generation,
        }
    }

    pub(crate) const fn node(&self) -> &Rid {
        match self {
            ObjectRef::Spot(spot) => &spot.node,
            ObjectRef::Actor(actor) => &actor.node,
        }
    }
}

impl From<SpotRef> for ObjectRef {
    fn from(spot: SpotRef) -> Self {
        ObjectRef::Spot(spot)
    }
}

impl From<ActorRef> for ObjectRef {
    fn from(actor: ActorRef) -> Self {
        ObjectRef::Actor(actor)
    }
}

/// The error is what it is instead.
impl TryFrom<ObjectRef> for SpotRef {
    type Error = ObjectRef;

    fn try_from(object: ObjectRef) -> Result<Self, ObjectRef> {
        match object {
            ObjectRef::Spot(spot) => Ok(spot),
            other @ ObjectRef::Actor(_) => Err(other),
        }
    }
}

/// The error is what it is instead.
impl TryFrom<ObjectRef> for ActorRef {
    type Error = ObjectRef;

    fn try_from(object: ObjectRef) -> Result<Self, ObjectRef> {
        match object {
            ObjectRef::Actor(actor) => Ok(actor),
            other @ ObjectRef::Spot(_) => Err(other),
        }
    }
}
