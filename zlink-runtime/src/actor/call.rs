//! What generated clients are made of: the ways to Actors of one type, and the calls of their manager.
//!
//! A call is a value whose options chain and whose `.await` submits it. It must not know how an Actor is made or found.

use std::fmt;
use std::sync::Weak;
use std::time::Duration;

use crate::channel::{Adjust, Caller, Method, Outbound, RequestCall, SendCall, SpotWay};
use crate::error::{ArgumentError, CallError, Error, ErrorKind};
use crate::id::{ActorId, ActorRef, ActorType, ObjectId, ObjectKind, ObjectRef};
use crate::message::codec::Message;
use crate::spot::{Creating, Creation, Payload, Route, bad_id, managing};
use crate::transport::BoxFuture;

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
        let (id, bad) = match ActorId::new(id) {
            Ok(id) => (id, None),
            // It stands in for one: every call ends before any work.
            Err(error) => (ActorId::from_static("-"), Some(bad_id(&error))),
        };
        let way = self.0.way(ObjectId::Actor(id));
        ActorClient { way, bad }
    }

    /// Creates the Actor of that ID, which must not be there.
    pub fn create<Q: Payload, R: Payload>(&self, id: impl AsRef<str>, request: Q) -> CreateActorCall<Q, R> {
        CreateActorCall(
            self.0
                .create(Some(ActorId::new(id).map(ObjectId::Actor)), true, request),
        )
    }

    /// The Actor of that ID; it is created where it is not there.
    pub fn get_or_create<Q: Payload, R: Payload>(&self, id: impl AsRef<str>, request: Q) -> CreateActorCall<Q, R> {
        CreateActorCall(
            self.0
                .create(Some(ActorId::new(id).map(ObjectId::Actor)), false, request),
        )
    }

    /// The Actor of that ID, if there is one. It finds, and makes nothing.
    pub fn find(&self, id: impl AsRef<str>) -> FindActorCall {
        let id = ActorId::new(id).map_err(|error| bad_id(&error));
        FindActorCall(self.0.manage(move |asking| {
            Box::pin(async move {
                let found = asking.find(&ObjectId::Actor(id?)).await?;
                found.map(actor_ref).transpose()
            })
        }))
    }

    /// Ends that incarnation of an Actor. `false` where it is not there any more.
    pub fn destroy(&self, actor: &ActorRef) -> DestroyActorCall {
        let actor = actor.clone().into();
        DestroyActorCall(
            self.0
                .manage(move |asking| Box::pin(async move { asking.close(&actor).await })),
        )
    }

    /// Frees the ID of that incarnation of an Actor, whose host is dead: it waits until that is proved, about twenty seconds
    /// after the host's end. `false` where it is not there any more.
    pub fn release(&self, actor: &ActorRef) -> ReleaseActorCall {
        let actor = actor.clone().into();
        ReleaseActorCall(
            self.0
                .manage(move |asking| Box::pin(async move { asking.release(&actor).await })),
        )
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

/// A manager of Actors is asked for Actors.
fn actor_ref(object: ObjectRef) -> Result<ActorRef, CallError> {
    match object {
        ObjectRef::Actor(actor) => Ok(actor),
        ObjectRef::Spot(spot) => {
            let text = format!("{} is a Spot", spot.id);
            Err(Error::unknown(ErrorKind::InternalFailure, text).into())
        }
    }
}

/// One Actor, to be called by its ID. Clones are cheap.
#[derive(Clone, Debug)]
pub struct ActorClient {
    way: SpotWay,
    /// The ID is none.
    bad: Option<ArgumentError>,
}

impl ActorClient {
    /// A request, not submitted yet.
    pub fn request<Q: Message, R: Message>(&self, method: Method, request: Q) -> RequestCall<Q, R> {
        self.checked(self.way.request(method, request))
    }

    /// A one-way message, not submitted yet.
    pub fn send<M: Message>(&self, method: Method, message: M) -> SendCall<M> {
        self.checked(self.way.send(method, message))
    }

    fn checked<C: Adjust>(&self, mut call: C) -> C {
        if let Some(error) = &self.bad {
            call.parts_mut().refuse(error.clone());
        }
        call
    }
}

managing! {
    /// Asks where an Actor is.
    ///
    /// # Errors
    /// `TypeMismatch` where the ID is one of another type; `Unavailable` or another kind where the Location Store fails,
    /// which never means that there is none.
    FindActorCall => Option<ActorRef>
}
managing! {
    /// Ends an Actor: it takes nothing new, finishes what it has accepted, and its ID is free. One that is a member of a User
    /// Spot leaves that first.
    ///
    /// # Errors
    /// `InvalidOperation` where the ID is one of another incarnation by now, or the Actor is a member of a User Spot;
    /// `Unavailable` where it ends already, or its host cannot be reached.
    DestroyActorCall => bool
}
managing! {
    /// Frees the ID of an Actor whose host is dead.
    ///
    /// # Errors
    /// `InvalidOperation` where its host lives, or the ID is one of another incarnation by now; `DeadlineExceeded` where
    /// its end was not proved in time.
    ReleaseActorCall => bool
}

/// Creates an Actor, or gets the one that is there. The request has at most 1 MiB, encoded, and its answer 64 KiB.
///
/// # Errors
/// `AlreadyExists`, `TypeMismatch` where the ID is of another type, `NotFound` where no node has a factory for the type,
/// `CapacityExceeded` where none has room, `InternalFailure` where the factory or the admission fails, `Unavailable`,
/// `DeadlineExceeded`. `InvalidOperation` where an option is set twice.
#[must_use = "a call does nothing until it is awaited"]
pub struct CreateActorCall<Q, R>(Creating<Q, R>);

impl<Q: Payload, R: Payload> CreateActorCall<Q, R> {
    /// In which mesh it is made, where this process has an object role in several. One that is there stays where it is.
    pub fn in_mesh(mut self, name: impl AsRef<str>) -> Self {
        self.0.in_mesh(name);
        self
    }

    /// How long the whole call may take: 1 ms to `i32::MAX` ms, rounded up to whole milliseconds. As the host says for
    /// requests where it is not set.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.0.timeout(timeout);
        self
    }
}

impl<Q: Payload, R: Payload> IntoFuture for CreateActorCall<Q, R> {
    type Output = Result<ActorCreated<R>, CallError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            Ok(match self.0.run().await? {
                Creation::Existing(actor) => ActorCreated::Existing(actor_ref(actor)?),
                Creation::Created(actor, reply) => ActorCreated::Created(actor_ref(actor)?, reply),
                Creation::Rejected(reply) => ActorCreated::Rejected(reply),
            })
        })
    }
}

impl<Q, R: Payload> fmt::Debug for CreateActorCall<Q, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CreateActorCall({})", self.0.stable_type())
    }
}
