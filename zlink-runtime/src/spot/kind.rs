//! The three kinds of Spots, as types: what a kind must not do is not there to be called.

use crate::id::SpotKind;

/// A kind of Spots. There are three.
pub trait OfKind: sealed::OfKind + Send + Sync + 'static {}

pub(super) mod sealed {
    /// Keeps [`super::OfKind`] closed.
    #[allow(unnameable_types, reason = "that is what seals it")]
    pub trait OfKind {
        #[doc(hidden)]
        const KIND: super::SpotKind;
    }
}

macro_rules! kind {
    ($(#[$doc:meta])* $name:ident, $kind:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {}

        impl OfKind for $name {}
        impl sealed::OfKind for $name {
            const KIND: SpotKind = SpotKind::$kind;
        }
    };
}

kind! {
    /// Made with its node, and there as long as it; the runtime gives it its ID.
    EntrySpot, Entry
}
kind! {
    /// Created, found and closed by the application.
    UserSpot, User
}
kind! {
    /// Made by the first message to its ID that may activate it.
    InstanceSpot, Instance
}

/// Kinds that hear what is published.
pub trait Subscribes: OfKind {}
impl Subscribes for EntrySpot {}
impl Subscribes for UserSpot {}

/// Kinds that an application, or a Spot itself, can close.
pub trait Closes: OfKind {}
impl Closes for UserSpot {}
impl Closes for InstanceSpot {}
