//! What generated clients are made of: the ways to Spots of one type, and the calls of their manager.
//!
//! A call is a value whose options chain and whose `.await` submits it. It must not know how a Spot is made or found.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Weak;
use std::time::Duration;

use crate::channel::{
    Adjust, Caller, Intent, Method, Outbound, RequestCall, RequestFuture, SendCall, SpotWay, is_running, no_role,
};
use crate::clock;
use crate::error::{ArgumentError, CallError, Error, ErrorKind};
use crate::execution::Yields;
use crate::id::{ChannelName, MeshName, SpotId, SpotKind, SpotRef, SpotType, Topic};
use crate::message::codec::{self, Message};
use crate::message::metadata::{Key, Metadata};
use crate::transport::BoxFuture;

use super::create::Asking;
use super::publish::publish;
use super::spots::Inner;
use super::value::{Payload, SpotCreated};

/// The way to the Spots of one type, from one caller. Clones are cheap.
#[derive(Clone, Debug)]
pub struct SpotRoute {
    outbound: Outbound,
    /// Alive as long as the turn of the caller, where that is a handler.
    turn: Option<Weak<()>>,
    stable_type: SpotType,
}

impl SpotRoute {
    /// The route of `caller` to Spots of that type. Where its process has no object role, each call says so.
    #[must_use]
    pub fn new(caller: &impl Caller, stable_type: SpotType) -> Self {
        Self {
            outbound: caller.outbound().clone(),
            turn: caller.running(),
            stable_type,
        }
    }

    /// The Spot of that ID, whatever it is and wherever. An ID that is none is an error of each call.
    pub fn of(&self, id: impl AsRef<str>) -> SpotClient {
        let (id, bad) = match SpotId::new(id) {
            Ok(id) => (id, None),
            // It stands in for one: every call ends before any work.
            Err(error) => (SpotId::from_static("-"), Some(bad_id(&error))),
        };
        SpotClient {
            way: SpotWay::new(self, id),
            bad,
            stable_type: self.stable_type.clone(),
        }
    }

    /// Creates a User Spot with a new ID.
    pub fn create<Q: Payload, R: Payload>(&self, request: Q) -> CreateCall<Q, R> {
        CreateCall::new(self, None, request)
    }

    /// The User Spot of that ID; it is created where it is not there.
    pub fn get_or_create<Q: Payload, R: Payload>(&self, id: impl AsRef<str>, request: Q) -> CreateCall<Q, R> {
        CreateCall::new(self, Some(SpotId::new(id).map_err(|error| bad_id(&error))), request)
    }

    /// The Spot of that ID, if there is one. It finds, and makes nothing.
    pub fn find(&self, id: impl AsRef<str>) -> FindCall {
        let id = SpotId::new(id).map_err(|error| bad_id(&error));
        FindCall(self.manage(move |asking| Box::pin(async move { asking.find(&id?).await })))
    }

    /// Closes that incarnation of a User Spot. `false` where it is not there any more.
    pub fn close(&self, spot: &SpotRef) -> CloseCall {
        let spot = spot.clone();
        CloseCall(self.manage(move |asking| Box::pin(async move { asking.close(&spot).await })))
    }

    /// Frees the ID of that incarnation of a Spot, whose host is dead: it waits until that is proved, about twenty seconds
    /// after the host's end. `false` where it is not there any more.
    pub fn release(&self, spot: &SpotRef) -> ReleaseCall {
        let spot = spot.clone();
        ReleaseCall(self.manage(move |asking| Box::pin(async move { asking.release(&spot).await })))
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
            outbound: self.outbound.clone(),
            turn: self.turn.clone(),
            channel: ChannelName::from_static(channel),
            topic: Topic::from_static(topic),
            packet,
            metadata: Metadata::new(),
            refused: None,
            message,
        }
    }

    fn manage<T, F>(&self, work: F) -> Managing<T>
    where
        F: FnOnce(Asking) -> BoxFuture<'static, Result<T, CallError>> + Send + 'static,
    {
        Managing {
            route: self.clone(),
            timeout: None,
            refused: None,
            work: Box::new(work),
        }
    }
}

impl crate::channel::caller::Caller for SpotRoute {
    fn outbound(&self) -> &Outbound {
        &self.outbound
    }

    fn running(&self) -> Option<Weak<()>> {
        self.turn.clone()
    }
}

impl Caller for SpotRoute {}

fn bad_id(error: &crate::id::InvalidId) -> ArgumentError {
    ArgumentError::new("id", error.to_string())
}

fn twice(option: &str) -> CallError {
    Error::not_executed(ErrorKind::InvalidOperation, format!("{option} is set twice")).into()
}

/// One Spot, to be called by its ID. Clones are cheap.
#[derive(Clone, Debug)]
pub struct SpotClient {
    way: SpotWay,
    /// The ID is none.
    bad: Option<ArgumentError>,
    stable_type: SpotType,
}

impl SpotClient {
    /// A request, not submitted yet.
    pub fn request<Q: Message, R: Message>(&self, method: Method, request: Q) -> RequestCall<Q, R> {
        let call = self.way.request(method, request);
        match &self.bad {
            None => call,
            Some(error) => refused(call, error),
        }
    }

    /// A one-way message, not submitted yet.
    pub fn send<M: Message>(&self, method: Method, message: M) -> SendCall<M> {
        let call = self.way.send(method, message);
        match &self.bad {
            None => call,
            Some(error) => refused(call, error),
        }
    }

    /// The same calls for a method that may activate the Spot.
    pub fn activates<C>(&self, call: C) -> Activates<C> {
        Activates {
            call,
            stable_type: self.stable_type.clone(),
        }
    }
}

fn refused<C: Adjust>(mut call: C, error: &ArgumentError) -> C {
    call.parts_mut().refuse(error.clone());
    call
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

/// What the calls of a manager have in common.
struct Managing<T> {
    route: SpotRoute,
    timeout: Option<Duration>,
    refused: Option<CallError>,
    work: Box<dyn FnOnce(Asking) -> BoxFuture<'static, Result<T, CallError>> + Send>,
}

impl<T: Send + 'static> Managing<T> {
    fn refuse(&mut self, error: impl Into<CallError>) {
        self.refused.get_or_insert(error.into());
    }

    fn timeout(&mut self, timeout: Duration) {
        match clock::timeout("timeout", timeout) {
            Ok(_) if self.timeout.is_some() => self.refuse(twice("timeout")),
            Ok(timeout) => self.timeout = Some(timeout),
            Err(error) => self.refuse(error),
        }
    }

    fn run(self) -> BoxFuture<'static, Result<T, CallError>> {
        Box::pin(async move {
            if let Some(refused) = self.refused {
                return Err(refused);
            }
            let SpotRoute {
                outbound,
                turn,
                stable_type,
            } = self.route;
            let in_turn = is_running(turn.as_ref());
            outbound.takes(in_turn)?;
            let spots = outbound.objects_as::<Inner>().ok_or_else(no_role)?;
            let deadline = clock::now() + self.timeout.unwrap_or(outbound.request_timeout());
            let asking = Asking::new(spots, turn, stable_type, deadline);
            let submitted = asking.submitted();
            let mut work = (self.work)(asking);
            let stopped = || submitted.error(ErrorKind::ShuttingDown, Outbound::shutting_down().message());
            tokio::select! {
                biased;
                () = outbound.refuses(in_turn) => return Err(stopped().into()),
                ended = &mut work => return ended,
                () = tokio::time::sleep_until(deadline) => {}
            }
            if !submitted.asks() {
                let text = "the operation did not end in time";
                return Err(submitted.error(ErrorKind::DeadlineExceeded, text).into());
            }
            // A node is being asked, and the deadline is that request's own.
            tokio::select! {
                biased;
                () = outbound.refuses(in_turn) => Err(stopped().into()),
                ended = work => ended,
            }
        })
    }
}

macro_rules! managing {
    ($(#[$doc:meta])* $name:ident => $output:ty) => {
        $(#[$doc])*
        #[must_use = "a call does nothing until it is awaited"]
        pub struct $name(Managing<$output>);

        impl $name {
            /// How long the whole call may take: 1 ms to `i32::MAX` ms, rounded up to whole milliseconds. As the host
            /// says for requests where it is not set.
            pub fn timeout(mut self, timeout: Duration) -> Self {
                self.0.timeout(timeout);
                self
            }
        }

        impl IntoFuture for $name {
            type Output = Result<$output, CallError>;
            type IntoFuture = BoxFuture<'static, Result<$output, CallError>>;

            fn into_future(self) -> Self::IntoFuture {
                self.0.run()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0.route.stable_type)
            }
        }
    };
}

managing! {
    /// Asks where a Spot is.
    ///
    /// # Errors
    /// `TypeMismatch` where the ID is one of another type; `Unavailable` or another kind where the Location Store fails,
    /// which never means that there is none.
    FindCall => Option<SpotRef>
}
managing! {
    /// Closes a User Spot: it finishes what it has accepted, runs `on_closing`, and its ID is free.
    ///
    /// # Errors
    /// `InvalidOperation` where the ID is one of another incarnation by now; `Unavailable` where its host cannot be
    /// reached.
    CloseCall => bool
}
managing! {
    /// Frees the ID of a Spot whose host is dead.
    ///
    /// # Errors
    /// `InvalidOperation` where its host lives, or the ID is one of another incarnation by now; `DeadlineExceeded` where
    /// its end was not proved in time.
    ReleaseCall => bool
}

/// Creates a User Spot, or gets the one that is there. The request has at most 1 MiB, encoded, and its answer 64 KiB.
///
/// # Errors
/// `AlreadyExists`, `TypeMismatch` where the ID is of another kind or type, `NotFound` where no node has a factory for the
/// type, `CapacityExceeded` where none has room, `InternalFailure` where the factory fails, `Unavailable`,
/// `DeadlineExceeded`. `InvalidOperation` where an option is set twice, or the ID has the form of an Entry Spot's.
#[must_use = "a call does nothing until it is awaited"]
pub struct CreateCall<Q, R> {
    managing: Managing<SpotCreated<Vec<u8>>>,
    mesh: bool,
    reply: PhantomData<fn(Q) -> R>,
}

impl<Q: Payload, R: Payload> CreateCall<Q, R> {
    fn new(route: &SpotRoute, id: Option<Result<SpotId, ArgumentError>>, request: Q) -> Self {
        let managing = route.manage(move |asking| {
            Box::pin(async move {
                let id = id.transpose()?;
                let request = request.to_bytes();
                let request = request.map_err(|error| ArgumentError::new("request", error.to_string()))?;
                asking.create(id, request).await
            })
        });
        Self {
            managing,
            mesh: false,
            reply: PhantomData,
        }
    }

    /// In which mesh it is made, where this process has an object role in several. One that is there stays where it is.
    pub fn in_mesh(mut self, name: impl AsRef<str>) -> Self {
        if std::mem::replace(&mut self.mesh, true) {
            self.managing.refuse(twice("in_mesh"));
            return self;
        }
        match MeshName::new(name) {
            Ok(name) => {
                let work = self.managing.work;
                self.managing.work = Box::new(move |asking| work(asking.in_mesh(name)));
            }
            Err(error) => self.managing.refuse(ArgumentError::new("in_mesh", error.to_string())),
        }
        self
    }

    /// How long the whole call may take: 1 ms to `i32::MAX` ms, rounded up to whole milliseconds. As the host says for
    /// requests where it is not set.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.managing.timeout(timeout);
        self
    }
}

impl<Q: Payload, R: Payload> IntoFuture for CreateCall<Q, R> {
    type Output = Result<SpotCreated<R>, CallError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let running = self.managing.run();
        Box::pin(async move {
            let decode = |reply: Vec<u8>| {
                R::from_bytes(&reply).map_err(|error| {
                    let text = format!("the reply is not what the factory promises: {error}");
                    CallError::from(Error::unknown(ErrorKind::ProtocolError, text))
                })
            };
            Ok(match running.await? {
                SpotCreated::Existing(spot) => SpotCreated::Existing(spot),
                SpotCreated::Created(spot, reply) => SpotCreated::Created(spot, decode(reply)?),
                SpotCreated::Rejected(reply) => SpotCreated::Rejected(decode(reply)?),
            })
        })
    }
}

impl<Q, R> fmt::Debug for CreateCall<Q, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CreateCall({})", self.managing.route.stable_type)
    }
}

/// Publishes to all Spots that subscribe. It completes once it has begun, and says nothing of who got it: nodes and Spots
/// without room are left out.
///
/// # Errors
/// `NotFound` where the channel leads through no mesh of this process; `ShuttingDown`.
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

/// The kinds that a manager looks for.
pub(super) const fn is_managed(kind: SpotKind) -> bool {
    matches!(kind, SpotKind::User | SpotKind::Instance)
}

impl<T> fmt::Debug for Managing<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Managing")
            .field("route", &self.route)
            .finish_non_exhaustive()
    }
}
