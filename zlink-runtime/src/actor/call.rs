//! What generated clients are made of: the ways to Actors of one type, and the calls of their manager.
//!
//! A call is a value whose options chain and whose `.await` submits it. It must not know how an Actor is made or found.

use std::sync::Weak;

use crate::channel::{Caller, Method, Outbound, RequestCall, SendCall};
use crate::id::{ActorRef, ActorType, ObjectKind};
use crate::message::codec::Message;
use crate::spot::{Client, Payload, Route, creating, managing};

/// How a create, or get-or-create, of an Actor ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActorCreated<R> {
    /// It was there already, and nothing was made.
    Existing(ActorRef),
    /// It was made.
    Created(ActorRef, R),
    /// The Entry Spot did not admit it. There is no Actor.
    Rejected(R),
}

impl<R> ActorCreated<R> {
    /// The Actor, if there is one.
    #[must_use]
    pub fn reference(&self) -> Option<&ActorRef> {
        match self {
            ActorCreated::Existing(actor) | ActorCreated::Created(actor, _) => Some(actor),
            ActorCreated::Rejected(_) => None,
        }
    }
}

/// The way to the Actors of one type, from one caller. Clones are cheap.
#[derive(Clone, Debug)]
pub struct ActorRoute(Route);

impl ActorRoute {
    /// The route of `caller` to Actors of that type. Where its process has no object role, each call says so.
    #[must_use]
    pub fn new(caller: &impl Caller, stable_type: ActorType) -> Self {
        Self(Route::new(caller, ObjectKind::Actor, stable_type.stable()))
    }

    /// The Actor of that ID, wherever it is. An ID that is none is an error of each call.
    pub fn of(&self, id: impl AsRef<str>) -> ActorClient {
        ActorClient(self.0.of(id))
    }

    /// Creates the Actor of that ID, which must not be there.
    pub fn create<Q: Payload, R: Payload>(&self, id: impl AsRef<str>, request: Q) -> CreateActorCall<Q, R> {
        CreateActorCall(self.0.create(Some(id.as_ref()), true, request))
    }

    /// The Actor of that ID; it is created where it is not there.
    pub fn get_or_create<Q: Payload, R: Payload>(&self, id: impl AsRef<str>, request: Q) -> CreateActorCall<Q, R> {
        CreateActorCall(self.0.create(Some(id.as_ref()), false, request))
    }

    /// The Actor of that ID, if there is one. It finds, and makes nothing.
    pub fn find(&self, id: impl AsRef<str>) -> FindActorCall {
        FindActorCall(self.0.find(id))
    }

    /// Ends that incarnation of an Actor. `false` where it is not there any more.
    pub fn destroy(&self, actor: &ActorRef) -> DestroyActorCall {
        DestroyActorCall(self.0.end(actor.clone().into()))
    }

    /// Frees the ID of that incarnation of an Actor, whose host is dead: it waits until that is proved, about twenty
    /// seconds after the host's end. `false` where it is not there any more.
    pub fn release(&self, actor: &ActorRef) -> ReleaseActorCall {
        ReleaseActorCall(self.0.release(actor.clone().into()))
    }
}

impl crate::channel::caller::Caller for ActorRoute {
    fn outbound(&self) -> &Outbound {
        self.0.outbound()
    }

    fn running(&self) -> Option<Weak<()>> {
        self.0.running()
    }
}

impl Caller for ActorRoute {}

/// One Actor, to be called by its ID. Clones are cheap.
#[derive(Clone, Debug)]
pub struct ActorClient(Client);

impl ActorClient {
    /// A request, not submitted yet.
    pub fn request<Q: Message, R: Message>(&self, method: Method, request: Q) -> RequestCall<Q, R> {
        self.0.request(method, request)
    }

    /// A one-way message, not submitted yet.
    pub fn send<M: Message>(&self, method: Method, message: M) -> SendCall<M> {
        self.0.send(method, message)
    }
}

managing! {
    /// Asks where an Actor is. One that is not admitted yet is not there. Dropping the future is harmless.
    ///
    /// # Errors
    /// [`CallError::Argument`](crate::error::CallError::Argument) where the ID is none. `TypeMismatch` where it is one
    /// of another type; `Unavailable` or another kind where the Location Store fails, which never means that there is
    /// none; `NotConfigured` where no mesh of this process has an object role, `DeadlineExceeded`, `ShuttingDown`.
    FindActorCall => Option<ActorRef>
}
managing! {
    /// Ends an Actor: it takes nothing new, finishes what it has accepted, and its ID is free. One that is a member of
    /// a User Spot leaves that first. `false` where it is not there any more, or not yet. An end that has begun goes on
    /// where the future is dropped or its time is up.
    ///
    /// # Errors
    /// `InvalidOperation` where the ID is one of another incarnation by now, or the Actor is a member of a User Spot;
    /// `TypeMismatch` where the reference is one of another type; `Unavailable` where it ends already, or its host
    /// cannot be reached; `NotConfigured` where no mesh of this process has an object role, `DeadlineExceeded`,
    /// `ShuttingDown`.
    DestroyActorCall => bool
}
managing! {
    /// Frees the ID of an Actor whose host is dead. `false` where it is not there any more. Dropping the future gives
    /// up the wait; what was sent to the Location Store stays done.
    ///
    /// # Errors
    /// `InvalidOperation` where its host lives, or the ID is one of another incarnation by now; `DeadlineExceeded`
    /// where its end was not proved in time; `Unavailable` or another kind where the Location Store fails;
    /// `NotConfigured` where no mesh of this process has an object role; `ShuttingDown`.
    ReleaseActorCall => bool
}

creating! {
    /// Creates an Actor, or gets the one that is there. The request has at most 1 MiB, encoded, and its answer 64 KiB.
    /// A creation that has begun goes on where the future is dropped or its time is up: ask with `find`.
    ///
    /// # Errors
    /// [`CallError::Argument`](crate::error::CallError::Argument) where the ID is none or the request cannot be
    /// encoded.
    /// `AlreadyExists` where `create` finds one, `TypeMismatch` where the ID is of another type, also of one whose host is dead,
    /// `NotFound` where no linked node has a factory for the type, `CapacityExceeded` where none has room, `InternalFailure` where
    /// the factory or the admission fails, or its answer is too long,
    /// `Unavailable` where the Location Store, or whoever has the ID, is. `InvalidOperation` where an option is set twice, or several
    /// meshes have an object role and `in_mesh` names none. `NotConfigured` where no mesh of this process has an object
    /// role, `DeadlineExceeded`, `ShuttingDown`. What the Entry Spot does not admit is no error:
    /// [`ActorCreated::Rejected`].
    CreateActorCall => ActorCreated
}
