//! What the calls of managers and clients have in common: an ID that may be none, one deadline for all of an operation, options
//! that are set once, an answer that is decoded last. It must not know how an object is made or found.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Weak;
use std::time::Duration;

use crate::channel::{Adjust, Caller, Method, Outbound, RequestCall, SendCall, SpotWay, is_running, no_role};
use crate::clock;
use crate::error::{ArgumentError, CallError, Error, ErrorKind};
use crate::id::{InvalidId, MeshName, ObjectKind, ObjectRef, SpotType};
use crate::message::codec::Message;
use crate::transport::BoxFuture;

use super::create::{Asking, Creation};
use super::spots::Inner;
use super::value::Payload;

/// Who calls, and the objects of which kind and type.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(super) outbound: Outbound,
    /// Alive as long as the turn of the caller, where that is a handler.
    pub(super) turn: Option<Weak<()>>,
    kind: ObjectKind,
    pub(super) stable_type: SpotType,
}

impl Route {
    pub(crate) fn new(caller: &impl Caller, kind: ObjectKind, stable_type: SpotType) -> Self {
        Self {
            outbound: caller.outbound().clone(),
            turn: caller.running(),
            kind,
            stable_type,
        }
    }

    /// The one of that ID. An ID that is none is an error of each call.
    pub(crate) fn of(&self, id: impl AsRef<str>) -> Client {
        let space = self.kind.space();
        let (id, bad) = match space.id(id) {
            Ok(id) => (id, None),
            Err(error) => (space.stand_in(), Some(bad_id(&error))),
        };
        let way = SpotWay::new(self, id);
        Client { way, bad }
    }

    /// The one of that ID, if there is one.
    pub(crate) fn find<T>(&self, id: impl AsRef<str>) -> Managing<Option<T>>
    where
        T: TryFrom<ObjectRef, Error = ObjectRef> + 'static,
    {
        let id = self.kind.space().id(id).map_err(|error| bad_id(&error));
        self.manage(move |asking| Box::pin(async move { asking.find(&id?).await?.map(own).transpose() }))
    }

    /// Ends that incarnation of one.
    pub(crate) fn end(&self, object: ObjectRef) -> Managing<bool> {
        self.manage(move |asking| Box::pin(async move { asking.close(&object).await }))
    }

    /// Frees the ID of that incarnation of one, whose host is dead.
    pub(crate) fn release(&self, object: ObjectRef) -> Managing<bool> {
        self.manage(move |asking| Box::pin(async move { asking.release(&object).await }))
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

    /// Creates the one of that ID, a new one where there is none; `exclusive` where it must not be there.
    pub(crate) fn create<Q: Payload, R: Payload>(
        &self,
        id: Option<&str>,
        exclusive: bool,
        request: Q,
    ) -> Creating<Q, R> {
        let id = id.map(|id| self.kind.space().id(id).map_err(|error| bad_id(&error)));
        let managing = self.manage(move |asking| {
            Box::pin(async move {
                let id = id.transpose()?;
                let request = request.to_bytes();
                let request = request.map_err(|error| ArgumentError::new("request", error.to_string()))?;
                asking.create(id, exclusive, request).await
            })
        });
        Creating {
            managing,
            mesh: false,
            reply: PhantomData,
        }
    }
}

impl crate::channel::caller::Caller for Route {
    fn outbound(&self) -> &Outbound {
        &self.outbound
    }

    fn running(&self) -> Option<Weak<()>> {
        self.turn.clone()
    }
}

impl Caller for Route {}

fn bad_id(error: &InvalidId) -> ArgumentError {
    ArgumentError::new("id", error.to_string())
}

/// A manager is asked for objects of its own space.
pub(crate) fn own<T: TryFrom<ObjectRef, Error = ObjectRef>>(object: ObjectRef) -> Result<T, CallError> {
    object.try_into().map_err(|other: ObjectRef| {
        let text = format!("{:?} is not what was asked for", other.id());
        Error::unknown(ErrorKind::InternalFailure, text).into()
    })
}

fn twice(option: &str) -> CallError {
    Error::not_executed(ErrorKind::InvalidOperation, format!("{option} is set twice")).into()
}

/// One object, to be called by its ID. Clones are cheap.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    way: SpotWay,
    /// The ID is none.
    bad: Option<ArgumentError>,
}

impl Client {
    pub(crate) fn request<Q: Message, R: Message>(&self, method: Method, request: Q) -> RequestCall<Q, R> {
        self.checked(self.way.request(method, request))
    }

    pub(crate) fn send<M: Message>(&self, method: Method, message: M) -> SendCall<M> {
        self.checked(self.way.send(method, message))
    }

    fn checked<C: Adjust>(&self, mut call: C) -> C {
        if let Some(error) = &self.bad {
            call.parts_mut().refuse(error.clone());
        }
        call
    }
}

/// An operation on the objects of a type, not submitted yet.
pub(crate) struct Managing<T> {
    route: Route,
    timeout: Option<Duration>,
    refused: Option<CallError>,
    work: Box<dyn FnOnce(Asking) -> BoxFuture<'static, Result<T, CallError>> + Send>,
}

impl<T: Send + 'static> Managing<T> {
    fn refuse(&mut self, error: impl Into<CallError>) {
        self.refused.get_or_insert(error.into());
    }

    pub(crate) fn timeout(&mut self, timeout: Duration) {
        match clock::timeout("timeout", timeout) {
            Ok(_) if self.timeout.is_some() => self.refuse(twice("timeout")),
            Ok(timeout) => self.timeout = Some(timeout),
            Err(error) => self.refuse(error),
        }
    }

    /// The type that it is about.
    pub(crate) fn stable_type(&self) -> &SpotType {
        &self.route.stable_type
    }

    pub(crate) fn run(self) -> BoxFuture<'static, Result<T, CallError>> {
        Box::pin(async move {
            if let Some(refused) = self.refused {
                return Err(refused);
            }
            let Route {
                outbound,
                turn,
                kind,
                stable_type,
            } = self.route;
            let in_turn = is_running(turn.as_ref());
            outbound.takes(in_turn)?;
            let spots = outbound.objects_as::<Inner>().ok_or_else(no_role)?;
            let deadline = clock::now() + self.timeout.unwrap_or(outbound.request_timeout());
            let asking = Asking::new(spots, turn, (kind, stable_type), deadline);
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

impl<T> fmt::Debug for Managing<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Managing")
            .field("route", &self.route)
            .finish_non_exhaustive()
    }
}

/// A call of a manager that is asked for no more than an answer.
macro_rules! managing {
    ($(#[$doc:meta])* $name:ident => $output:ty) => {
        $(#[$doc])*
        #[must_use = "a call does nothing until it is awaited"]
        pub struct $name(pub(super) $crate::spot::Managing<$output>);

        impl $name {
            /// How long the whole call may take: 1 ms to `i32::MAX` ms, rounded up to whole milliseconds. As the host
            /// says for requests where it is not set.
            pub fn timeout(mut self, timeout: ::std::time::Duration) -> Self {
                self.0.timeout(timeout);
                self
            }
        }

        impl IntoFuture for $name {
            type Output = Result<$output, $crate::error::CallError>;
            type IntoFuture = $crate::transport::BoxFuture<'static, Result<$output, $crate::error::CallError>>;

            fn into_future(self) -> Self::IntoFuture {
                self.0.run()
            }
        }

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0.stable_type())
            }
        }
    };
}
pub(crate) use managing;

/// A call that creates, and what it tells: `$output` has a variant for each end of a [`Creation`].
macro_rules! creating {
    ($(#[$doc:meta])* $name:ident => $output:ident) => {
        $(#[$doc])*
        #[must_use = "a call does nothing until it is awaited"]
        pub struct $name<Q, R>($crate::spot::Creating<Q, R>);

        impl<Q: $crate::spot::Payload, R: $crate::spot::Payload> $name<Q, R> {
            /// In which mesh it is made, where this process has an object role in several. One that is there stays where it
            /// is.
            pub fn in_mesh(mut self, name: impl AsRef<str>) -> Self {
                self.0.in_mesh(name);
                self
            }

            /// How long the whole call may take: 1 ms to `i32::MAX` ms, rounded up to whole milliseconds. As the host
            /// says for requests where it is not set.
            pub fn timeout(mut self, timeout: ::std::time::Duration) -> Self {
                self.0.timeout(timeout);
                self
            }
        }

        impl<Q: $crate::spot::Payload, R: $crate::spot::Payload> IntoFuture for $name<Q, R> {
            type Output = Result<$output<R>, $crate::error::CallError>;
            type IntoFuture = $crate::transport::BoxFuture<'static, Self::Output>;

            fn into_future(self) -> Self::IntoFuture {
                use $crate::spot::{Creation, own};
                Box::pin(async move {
                    Ok(match self.0.run().await? {
                        Creation::Existing(object) => $output::Existing(own(object)?),
                        Creation::Created(object, reply) => $output::Created(own(object)?, reply),
                        Creation::Rejected(reply) => $output::Rejected(reply),
                    })
                })
            }
        }

        impl<Q, R: $crate::spot::Payload> ::std::fmt::Debug for $name<Q, R> {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0.stable_type())
            }
        }
    };
}
pub(crate) use creating;

/// A creation, not submitted yet.
pub(crate) struct Creating<Q, R> {
    managing: Managing<Creation<Vec<u8>>>,
    mesh: bool,
    reply: PhantomData<fn(Q) -> R>,
}

impl<Q, R: Payload> Creating<Q, R> {
    pub(crate) fn in_mesh(&mut self, name: impl AsRef<str>) {
        if std::mem::replace(&mut self.mesh, true) {
            return self.managing.refuse(twice("in_mesh"));
        }
        match MeshName::new(name) {
            Ok(name) => {
                let work = std::mem::replace(&mut self.managing.work, Box::new(|_| Box::pin(std::future::pending())));
                self.managing.work = Box::new(move |asking| work(asking.in_mesh(name)));
            }
            Err(error) => self.managing.refuse(ArgumentError::new("in_mesh", error.to_string())),
        }
    }

    pub(crate) fn timeout(&mut self, timeout: Duration) {
        self.managing.timeout(timeout);
    }

    pub(crate) fn stable_type(&self) -> &SpotType {
        self.managing.stable_type()
    }

    pub(crate) async fn run(self) -> Result<Creation<R>, CallError> {
        let decode = |reply: Vec<u8>| {
            R::from_bytes(&reply).map_err(|error| {
                let text = format!("the reply is not what the factory promises: {error}");
                CallError::from(Error::unknown(ErrorKind::ProtocolError, text))
            })
        };
        Ok(match self.managing.run().await? {
            Creation::Existing(object) => Creation::Existing(object),
            Creation::Created(object, reply) => Creation::Created(object, decode(reply)?),
            Creation::Rejected(reply) => Creation::Rejected(decode(reply)?),
        })
    }
}
