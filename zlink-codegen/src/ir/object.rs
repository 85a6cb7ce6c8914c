//! Who owns state: Spots and Actors. It must not know how either is addressed or run.

use super::{DeclRef, Doc, Method};

/// An addressable object with state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Its name.
    pub name: String,
    /// Doc text.
    pub doc: Doc,
    /// What selects its factory, and what stores remember. No caller names that of an Entry Spot.
    pub stable_type: String,
    /// What makes and moves it.
    pub kind: SpotKind,
    /// The Actors that may be in it: indexes into [`Namespace::actors`](super::Namespace::actors), in the order of the
    /// file. An Instance Spot has none.
    pub members: Vec<usize>,
    /// Methods, in the order of the file.
    pub methods: Vec<SpotMethod>,
    /// What it gets of logical multicast, in the order of the file. An Instance Spot has none.
    pub subscriptions: Vec<Subscription>,
    /// Timers, in the order of the file.
    pub timers: Vec<Timer>,
}

/// What makes and moves a Spot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpotKind {
    /// One per host, made at its start; it never moves.
    Entry,
    /// Made by callers.
    User {
        /// What its creation exchanges.
        create: Admission,
        /// Which turns exclude each other.
        execution: Execution,
        /// What becomes of its state in a move.
        relocation: Relocation,
    },
    /// Made by its first message.
    Instance {
        /// What becomes of its state in a move.
        relocation: Relocation,
    },
}

impl Spot {
    /// Whether a turn of its own may let others run while it waits.
    #[must_use]
    pub fn may_yield(&self) -> bool {
        match &self.kind {
            SpotKind::Entry => false,
            SpotKind::User { execution, .. } => matches!(execution, Execution::SpotWide { .. }),
            SpotKind::Instance { .. } => true,
        }
    }

    /// What becomes of its state in a move, where it moves.
    #[must_use]
    pub fn relocation(&self) -> Option<&Relocation> {
        match &self.kind {
            SpotKind::Entry => None,
            SpotKind::User { relocation, .. } | SpotKind::Instance { relocation } => Some(relocation),
        }
    }
}

/// Which turns of a User Spot and its Actors exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// All of them.
    SpotWide {
        /// Where it may move.
        boundary: Boundary,
    },
    /// Those of one Actor, those of the Spot, and those of one timer.
    PerActor,
}

/// Where a Spot may move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// Between any two turns.
    Framework,
    /// Where it says so.
    Application,
}

/// What becomes of state in a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relocation {
    /// It moves along, as a message with a state version.
    Preserve {
        /// The message.
        state: DeclRef,
    },
    /// It is made anew.
    Recreate,
    /// It does not move.
    Disabled,
}

/// What a creation or a join exchanges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Doc text.
    pub doc: Doc,
    /// What is asked.
    pub request: DeclRef,
    /// What is answered, be it accepted or rejected.
    pub reply: Option<DeclRef>,
}

/// A method of a Spot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpotMethod {
    /// What all methods have.
    pub method: Method,
    /// Whether other turns may run while it waits.
    pub yields: bool,
    /// Whether a call of it may make a Spot that does not exist; only where [`SpotKind::Instance`].
    pub activates: bool,
    /// Whether the Spot closes after it; never where [`SpotKind::Entry`].
    pub closes: bool,
}

/// What a Spot gets of logical multicast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Its name.
    pub name: String,
    /// Doc text.
    pub doc: Doc,
    /// The ChannelName.
    pub channel: String,
    /// The topic, compared byte for byte.
    pub topic: String,
    /// The name on the wire.
    pub packet: String,
    /// The message.
    pub message: DeclRef,
    /// Whether other turns may run while its handler waits.
    pub yields: bool,
}

/// A timer that may be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    /// Its name.
    pub name: String,
    /// Doc text.
    pub doc: Doc,
    /// Whether other turns may run while its handler waits.
    pub yields: bool,
}

/// An addressable object that lives in Spots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Its name.
    pub name: String,
    /// Doc text.
    pub doc: Doc,
    /// What selects its factory, and what stores remember.
    pub stable_type: String,
    /// What its creation exchanges.
    pub create: Admission,
    /// What joining a Spot exchanges, in the order of the file.
    pub joins: Vec<Join>,
    /// What becomes of its state in a move.
    pub relocation: Relocation,
    /// Methods, in the order of the file.
    pub methods: Vec<ActorMethod>,
    /// Timers, in the order of the file.
    pub timers: Vec<Timer>,
}

/// What joining a Spot exchanges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// The User Spot, an index into [`Namespace::spots`](super::Namespace::spots).
    pub spot: usize,
    /// What is exchanged.
    pub admission: Admission,
}

/// A method of an Actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActorMethod {
    /// What all methods have.
    pub method: Method,
    /// Whether other turns of the Spot may run while it waits, where the Spot it is in allows that.
    pub yields: bool,
}
