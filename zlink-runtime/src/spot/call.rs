//! What generated clients are made of: the ways to Spots of one type, and the calls of their manager.
//!
//! A call is a value whose options chain and whose `.await` submits it. It must not know how a Spot is made or found.

use std::fmt;
use std::sync::Weak;
use std::time::Duration;

use crate::channel::{Adjust, Caller, Intent, Method, Outbound, RequestCall, RequestFuture, SendCall, is_running};
use crate::error::{ArgumentError, CallError};
use crate::execution::Yields;
use crate::id::{ChannelName, MeshName, ObjectKind, SpotRef, SpotType, Topic};
use crate::message::codec::{self, Message};
use crate::message::metadata::{Key, Metadata};
use crate::transport::BoxFuture;

use super::managing::{Client, Route, creating, managing};
use super::publish::publish;
use super::value::{Payload, SpotCreated};

/// The way to the Spots of one type, from one caller. Clones are cheap.
#[derive(Clone, Debug)]
pub struct SpotRoute(Route);

impl SpotRoute {
    /// The route of `caller` to Spots of that type. Where its process has no object role, each call says so.
    #[must_use]
    pub fn new(caller: &impl Caller, stable_type: SpotType) -> Self {
        Self(Route::new(caller, ObjectKind::User, stable_type))
    }

    /// The Spot of that ID, whatever it is and wherever. An ID that is none is an error of each call.
    pub fn of(&self, id: impl AsRef<str>) -> SpotClient {
        SpotClient {
            client: self.0.of(id),
            stable_type: self.0.stable_type.clone(),
        }
    }

    /// Creates a User Spot with a new ID.
    pub fn create<Q: Payload, R: Payload>(&self, request: Q) -> CreateCall<Q, R> {
        CreateCall(self.0.create(None, true, request))
    }

    /// The User Spot of that ID; it is created where it is not there.
    pub fn get_or_create<Q: Payload, R: Payload>(&self, id: impl AsRef<str>, request: Q) -> CreateCall<Q, R> {
        CreateCall(self.0.create(Some(id.as_ref()), false, request))
    }

    /// The Spot of that ID, if there is one. It finds, and makes nothing.
    pub fn find(&self, id: impl AsRef<str>) -> FindCall {
        FindCall(self.0.find(id))
    }

    /// Closes that incarnation of a User Spot. `false` where it is not there any more.
    pub fn close(&self, spot: &SpotRef) -> CloseCall {
        CloseCall(self.0.end(spot.clone().into()))
    }

    /// Frees the ID of that incarnation of a Spot, whose host is dead: it waits until that is proved, about twenty
    /// seconds after the host's end. `false` where it is not there any more.
    pub fn release(&self, spot: &SpotRef) -> ReleaseCall {
        ReleaseCall(self.0.release(spot.clone().into()))
    }

    /// Publishes to the Spots of all nodes that serve `channel`, as far as they subscribe to that topic and packet.
    pub fn publish<M: Message>(
        &self,
        channel: &'static str,
        topic: &'static str,
        packet: &'static str,
        message: M,
    ) -> PublishCall<M> {
        PublishCall {
            outbound: self.0.outbound.clone(),
            turn: self.0.turn.clone(),
            channel: ChannelName::from_static(channel),
            topic: Topic::from_static(topic),
            packet,
            metadata: Metadata::new(),
            refused: None,
            message,
        }
    }
}

impl crate::channel::caller::Caller for SpotRoute {
    fn outbound(&self) -> &Outbound {
        &self.0.outbound
    }

    fn running(&self) -> Option<Weak<()>> {
        self.0.turn.clone()
    }
}

impl Caller for SpotRoute {}

/// One Spot, to be called by its ID. Clones are cheap.
#[derive(Clone, Debug)]
pub struct SpotClient {
    client: Client,
    stable_type: SpotType,
}

impl SpotClient {
    /// A request, not submitted yet.
    pub fn request<Q: Message, R: Message>(&self, method: Method, request: Q) -> RequestCall<Q, R> {
        self.client.request(method, request)
    }

    /// A one-way message, not submitted yet.
    pub fn send<M: Message>(&self, method: Method, message: M) -> SendCall<M> {
        self.client.send(method, message)
    }

    /// The same calls for a method that may activate the Spot.
    pub fn activates<C>(&self, call: C) -> Activates<C> {
        Activates {
            call,
            stable_type: self.stable_type.clone(),
        }
    }
}

/// A call that may activate its Spot, if it is told to; awaited as it is, it finds the Spot or fails with `NotFound`.
#[must_use = "a call does nothing until it is awaited"]
pub struct Activates<C> {
    call: C,
    stable_type: SpotType,
}

/// A call that activates its Spot where there is none.
#[must_use = "a call does nothing until it is awaited"]
pub struct Activating<C> {
    call: C,
    stable_type: SpotType,
    mesh: Option<Result<MeshName, ArgumentError>>,
}

impl<C> Activates<C> {
    /// Makes the Spot where there is none: this message is then its first.
    ///
    /// A request ends with its reply. `Ok` of a one-way message says that the node where the Spot is made has taken it,
    /// and not that the Spot is there: until its factory is done, and about a millisecond where it does not wait, calls
    /// that do not activate end with `NotFound` on other hosts. Later calls of this host come behind it.
    ///
    /// # Errors
    /// As the call's own, and where there is none: `NotConfigured` where no mesh of this process has an object role,
    /// `InvalidOperation` where several have and [`in_mesh`](Activating::in_mesh) names none, `NotFound` where no
    /// linked node has a factory for the type, `CapacityExceeded` where none has room, `Unavailable` where the one that
    /// has the Spot is not known to be alive. A request ends with `InternalFailure` where the factory fails. A one-way
    /// message for which nobody makes the Spot within 30 s is dropped; a factory that has begun is waited for.
    pub fn activating(self) -> Activating<C> {
        Activating {
            call: self.call,
            stable_type: self.stable_type,
            mesh: None,
        }
    }
}

impl<C> Activating<C> {
    /// In which mesh it is made, where this process has an object role in several. One that is there stays where it is.
    pub fn in_mesh(mut self, name: impl AsRef<str>) -> Self {
        let name = MeshName::new(name).map_err(|error| ArgumentError::new("in_mesh", error.to_string()));
        self.mesh = Some(name);
        self
    }
}

impl<C: Intends> Activating<C> {
    fn into_call(self) -> C {
        let Self {
            mut call,
            stable_type,
            mesh,
        } = self;
        match mesh.transpose() {
            Ok(mesh) => call.intend(stable_type, mesh),
            Err(error) => call.refuse(error),
        }
        call
    }
}

/// A call whose intent can be told. Requests and one-way messages are.
pub trait Intends: sealed::Intends {}
impl<C: sealed::Intends> Intends for C {}

mod sealed {
    use super::{ArgumentError, MeshName, SpotType};

    /// Keeps [`super::Intends`] closed.
    #[allow(unnameable_types, reason = "that is what seals it")]
    pub trait Intends {
        #[doc(hidden)]
        fn intend(&mut self, stable_type: SpotType, mesh: Option<MeshName>);
        #[doc(hidden)]
        fn refuse(&mut self, error: ArgumentError);
    }
}

macro_rules! intends {
    ($call:ident<$($message:ident),*>) => {
        impl<$($message: Message),*> sealed::Intends for $call<$($message),*> {
            fn intend(&mut self, stable_type: SpotType, mesh: Option<MeshName>) {
                self.parts_mut().intend(Intent { stable_type, mesh });
            }

            fn refuse(&mut self, error: ArgumentError) {
                self.parts_mut().refuse(error);
            }
        }
    };
}
intends!(RequestCall<Q, R>);
intends!(SendCall<M>);

macro_rules! options {
    ($wrapper:ident) => {
        impl<Q: Message, R: Message> $wrapper<RequestCall<Q, R>> {
            /// As [`RequestCall::timeout`].
            pub fn timeout(mut self, timeout: Duration) -> Self {
                self.call = self.call.timeout(timeout);
                self
            }

            /// As [`RequestCall::metadata`].
            pub fn metadata<K: Key>(mut self, key: K, value: impl std::borrow::Borrow<K::Value>) -> Self {
                self.call = self.call.metadata(key, value);
                self
            }
        }

        impl<M: Message> $wrapper<SendCall<M>> {
            /// As [`SendCall::metadata`].
            pub fn metadata<K: Key>(mut self, key: K, value: impl std::borrow::Borrow<K::Value>) -> Self {
                self.call = self.call.metadata(key, value);
                self
            }
        }

        impl<C> fmt::Debug for $wrapper<C> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($wrapper), "({})"), self.stable_type)
            }
        }
    };
}
options!(Activates);
options!(Activating);

impl<C: IntoFuture> IntoFuture for Activates<C> {
    type Output = C::Output;
    type IntoFuture = C::IntoFuture;

    fn into_future(self) -> C::IntoFuture {
        self.call.into_future()
    }
}

impl<C: IntoFuture + Intends> IntoFuture for Activating<C> {
    type Output = C::Output;
    type IntoFuture = C::IntoFuture;

    fn into_future(self) -> C::IntoFuture {
        self.into_call().into_future()
    }
}

impl<Q: Message, R: Message> Yields for Activates<RequestCall<Q, R>>
where
    RequestCall<Q, R>: IntoFuture<Output = Result<R, CallError>, IntoFuture = RequestFuture<Q, R>>,
{
    type Reply = R;
}

impl<Q: Message, R: Message> Yields for Activating<RequestCall<Q, R>>
where
    RequestCall<Q, R>: IntoFuture<Output = Result<R, CallError>, IntoFuture = RequestFuture<Q, R>>,
{
    type Reply = R;
}

managing! {
    /// Asks where a Spot is. One that is still being made is not there. Dropping the future is harmless.
    ///
    /// # Errors
    /// [`CallError::Argument`] where the ID is none. `TypeMismatch` where it is one of another type; `Unavailable` or
    /// another kind where the Location Store fails, which never means that there is none; `NotConfigured` where no mesh
    /// of this process has an object role, `DeadlineExceeded`, `ShuttingDown`.
    FindCall => Option<SpotRef>
}
managing! {
    /// Closes a User Spot: it finishes what it has accepted, runs `on_closing`, and its ID is free. `false` where it is
    /// not there any more, or not yet. A close that has begun goes on where the future is dropped or its time is up.
    ///
    /// # Errors
    /// `InvalidOperation` where the ID is one of another incarnation by now; `TypeMismatch` where it is one of another
    /// type; `Unavailable` where its host cannot be reached; `NotConfigured` where no mesh of this process has an
    /// object role, `DeadlineExceeded`, `ShuttingDown`.
    CloseCall => bool
}
managing! {
    /// Frees the ID of a Spot whose host is dead. `false` where it is not there any more. Dropping the future gives up
    /// the wait; what was sent to the Location Store stays done.
    ///
    /// # Errors
    /// `InvalidOperation` where its host lives, or the ID is one of another incarnation by now; `DeadlineExceeded`
    /// where its end was not proved in time; `Unavailable` or another kind where the Location Store fails;
    /// `NotConfigured` where no mesh of this process has an object role; `ShuttingDown`.
    ReleaseCall => bool
}

creating! {
    /// Creates a User Spot, or gets the one that is there. The request has at most 1 MiB, encoded, and its answer 64
    /// KiB. A creation that has begun goes on where the future is dropped or its time is up: ask with `find`.
    ///
    /// # Errors
    /// [`CallError::Argument`] where the ID is none or the request cannot be encoded. `AlreadyExists` where the ID that
    /// `create` draws is there, `TypeMismatch` where the ID is of another kind or type, `NotFound` where no linked node
    /// has a factory for the type, `CapacityExceeded` where none has room, `InternalFailure` where the factory fails,
    /// `Unavailable` where the Location Store, or whoever has the ID, is. `InvalidOperation` where an option is set
    /// twice, the ID has the form of an Entry Spot's, or several meshes have an object role and `in_mesh` names none.
    /// `NotConfigured` where no mesh of this process has an object role, `DeadlineExceeded`, `ShuttingDown`. What the
    /// factory refuses is no error: [`SpotCreated::Rejected`].
    CreateCall => SpotCreated
}

/// Publishes to all Spots that subscribe, on this node and on those that take part in the channel. It completes once it
/// has begun, and says nothing of who got it: nodes and Spots without room are left out. Once awaited it is not taken
/// back.
///
/// # Errors
/// [`CallError::Argument`] where the message cannot be encoded or its metadata is too large. `NotFound` where the
/// channel leads through no mesh of this process: make its node a client of the channel, or let it `take_part`.
/// `ShuttingDown`.
#[must_use = "a call does nothing until it is awaited"]
pub struct PublishCall<M> {
    outbound: Outbound,
    turn: Option<Weak<()>>,
    channel: ChannelName,
    topic: Topic,
    packet: &'static str,
    metadata: Metadata,
    refused: Option<ArgumentError>,
    message: M,
}

impl<M: Message> PublishCall<M> {
    /// Publishes to another channel than the schema's.
    pub fn on(mut self, channel: impl Into<ChannelName>) -> Self {
        self.channel = channel.into();
        self
    }

    /// Sets one key of the metadata that the handlers read. Setting it again replaces it.
    pub fn metadata<K: Key>(mut self, key: K, value: impl std::borrow::Borrow<K::Value>) -> Self {
        if let Err(error) = self.metadata.set(key, value) {
            self.refused.get_or_insert(error);
        }
        self
    }

    fn begin(self) -> Result<(), CallError> {
        if let Some(refused) = self.refused {
            return Err(refused.into());
        }
        self.outbound.takes(is_running(self.turn.as_ref()))?;
        let names = (self.topic.as_str(), self.packet);
        let begun = codec::encode(&self.message, |payload| {
            publish(&self.outbound, &self.channel, names, self.metadata.as_bytes(), payload)
        });
        match begun {
            Ok(begun) => Ok(begun?),
            Err(error) => Err(ArgumentError::new("message", error.to_string()).into()),
        }
    }
}

impl<M: Message> IntoFuture for PublishCall<M> {
    type Output = Result<(), CallError>;
    type IntoFuture = BoxFuture<'static, Result<(), CallError>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.begin() })
    }
}

impl<M> fmt::Debug for PublishCall<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublishCall({} {})", self.channel, self.packet)
    }
}
