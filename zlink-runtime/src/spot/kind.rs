//! The kinds of Spots, and Actors, as types: what a kind must not do is not there to be called.

use crate::id::{ActorId, ActorRef, ObjectId, ObjectKind, ObjectRef, SpotId, SpotRef};

/// A kind of objects. There are four.
pub trait OfKind: sealed::OfKind + Send + Sync + 'static {}

pub(crate) mod sealed {
    use super::{ObjectId, ObjectKind, ObjectRef};

    /// Keeps [`super::OfKind`] closed.
    #[allow(unnameable_types, private_interfaces, reason = "that is what seals it")]
    pub trait OfKind {
        /// What names one.
        type Id;
        /// What names one exact incarnation.
        type Ref;
        #[doc(hidden)]
        const KIND: ObjectKind;

        /// The ID of an object of this kind; `None` of any other.
        #[doc(hidden)]
        fn id(id: &ObjectId) -> Option<&Self::Id>;
        #[doc(hidden)]
        fn reference(reference: &ObjectRef) -> Option<&Self::Ref>;
    }
}

macro_rules! kind {
    ($(#[$doc:meta])* $name:ident: $space:ident($id:ident, $reference:ident)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {}

        impl OfKind for $name {}
        #[allow(private_interfaces, reason = "nobody outside can name them")]
        impl sealed::OfKind for $name {
            type Id = $id;
            type Ref = $reference;
            const KIND: ObjectKind = kind!(@kind $name);

            fn id(id: &ObjectId) -> Option<&$id> {
                match id {
                    ObjectId::$space(id) => Some(id),
                    _ => None,
                }
            }

            fn reference(reference: &ObjectRef) -> Option<&$reference> {
                match reference {
                    ObjectRef::$space(reference) => Some(reference),
                    _ => None,
                }
            }
        }
    };
    (@kind EntrySpot) => { ObjectKind::Entry };
    (@kind UserSpot) => { ObjectKind::User };
    (@kind InstanceSpot) => { ObjectKind::Instance };
    (@kind Actor) => { ObjectKind::Actor };
}

kind! {
    /// Made with its node, and there as long as it; the runtime gives it its ID.
    EntrySpot: Spot(SpotId, SpotRef)
}
kind! {
    /// Created, found and closed by the application.
    UserSpot: Spot(SpotId, SpotRef)
}
kind! {
    /// Made by the first message to its ID that may activate it.
    InstanceSpot: Spot(SpotId, SpotRef)
}
kind! {
    /// No Spot, but a member of one: created, found and destroyed by the application.
    Actor: Actor(ActorId, ActorRef)
}

/// Kinds that hear what is published.
pub trait Subscribes: OfKind {}
impl Subscribes for EntrySpot {}
impl Subscribes for UserSpot {}

/// Kinds that an application, or a Spot itself, can close.
pub trait Closes: OfKind {}
impl Closes for UserSpot {}
impl Closes for InstanceSpot {}
