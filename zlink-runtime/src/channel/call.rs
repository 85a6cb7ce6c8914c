//! Typed calls: values whose options chain and whose `.await` submits them.
//!
//! A call is moved from the stub to its task before anything happens, so it is kept small: what all calls of one client
//! have in common stands behind one pointer.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::clock;
use crate::error::{ArgumentError, CallError, Error, ErrorKind};
use crate::execution::Yields;
use crate::id::{ChannelName, MeshName, PacketName, Rid, text_hash};
use crate::message::codec::{self, Kept, Message};
use crate::message::metadata::{Key, Metadata};

use super::exchange::{Exchange, Step};
use super::outbound::Caller;
use super::way::Way;

/// A method of a schema, as generated clients name it. Made in a constant, it costs a call nothing.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    packet: &'static str,
    hash: u64,
    timeout_ms: Option<u32>,
}

impl Method {
    /// A request. `timeout_ms` is the schema's own default, if it gives one.
    ///
    /// # Panics
    /// Where `packet` is no packet name: in a constant, that is a compile error.
    #[must_use]
    pub const fn request(packet: &'static str, timeout_ms: Option<u32>) -> Self {
        // Only to check it: a constant cannot be dropped.
        std::mem::forget(PacketName::from_static(packet));
        Self {
            packet,
            hash: text_hash(packet),
            timeout_ms,
        }
    }

    /// A one-way message.
    ///
    /// # Panics
    /// As [`Method::request`].
    #[must_use]
    pub const fn send(packet: &'static str) -> Self {
        Self::request(packet, None)
    }

    /// Its name on the wire, a packet name.
    pub(super) const fn packet(self) -> &'static str {
        self.packet
    }

    /// The name's [`text_hash`].
    pub(super) const fn hash(self) -> u64 {
        self.hash
    }
}

/// The way to a channel's servers, from one caller. Clones are cheap.
#[derive(Clone, Debug)]
pub struct ChannelRoute(Arc<Way>);

impl ChannelRoute {
    /// The route of `channel` in the caller's process. Where there is none, each call says so.
    #[must_use]
    pub fn new(caller: &impl Caller, channel: ChannelName) -> Self {
        Self(Arc::new(Way::to_channel(
            caller.outbound().clone(),
            caller.running(),
            channel,
        )))
    }

    /// The same for another name than the schema's.
    #[must_use]
    pub fn on(self, channel: ChannelName) -> Self {
        Self(Arc::new(self.0.on(channel)))
    }

    /// A request, not submitted yet.
    #[inline]
    pub fn request<Q: Message, R: Message>(&self, method: Method, request: Q) -> RequestCall<Q, R> {
        RequestCall::new(Parts::new(&self.0, method), request)
    }

    /// A one-way message, not submitted yet.
    #[inline]
    pub fn send<M: Message>(&self, method: Method, message: M) -> SendCall<M> {
        SendCall::new(Parts::new(&self.0, method), message)
    }
}

/// The way to one node, from one caller. Clones are cheap.
#[derive(Clone, Debug)]
pub struct NodeRoute(Arc<Way>);

impl NodeRoute {
    /// The route to the node `rid` of `mesh`. Where this process is no node of that mesh, each call says so.
    #[must_use]
    pub fn new(caller: &impl Caller, mesh: &MeshName, rid: Rid) -> Self {
        Self(Arc::new(Way::to_node(
            caller.outbound().clone(),
            caller.running(),
            mesh,
            rid,
        )))
    }

    /// A request, not submitted yet.
    #[inline]
    pub fn request<Q: Message, R: Message>(&self, method: Method, request: Q) -> RequestCall<Q, R> {
        RequestCall::new(Parts::new(&self.0, method), request)
    }

    /// A one-way message, not submitted yet.
    #[inline]
    pub fn send<M: Message>(&self, method: Method, message: M) -> SendCall<M> {
        SendCall::new(Parts::new(&self.0, method), message)
    }
}

/// What both kinds of call are made of.
pub(super) struct Parts {
    pub(super) way: Arc<Way>,
    method: Method,
    timeout: Option<Duration>,
    metadata: Metadata,
    /// The refused ones of its options as they stand, the timeout and the first of the metadata; the call ends with one.
    refused: [Option<Box<ArgumentError>>; 2],
}

impl Parts {
    #[inline]
    pub(super) fn new(way: &Arc<Way>, method: Method) -> Self {
        Self {
            way: way.clone(),
            method,
            timeout: None,
            metadata: Metadata::new(),
            refused: [None, None],
        }
    }

    fn timeout(&mut self, timeout: Duration) {
        let [refused, _] = &mut self.refused;
        match clock::timeout("timeout", timeout) {
            Ok(timeout) => (self.timeout, *refused) = (Some(timeout), None),
            Err(error) => *refused = Some(Box::new(error)),
        }
    }

    fn metadata<K: Key>(&mut self, key: K, value: impl std::borrow::Borrow<K::Value>) {
        let [_, refused] = &mut self.refused;
        if let Err(error) = self.metadata.set(key, value) {
            refused.get_or_insert_with(|| Box::new(error));
        }
    }

    fn all_metadata(&mut self, metadata: &Metadata) {
        let [_, refused] = &mut self.refused;
        (self.metadata, *refused) = (metadata.clone(), None);
    }

    /// The timeout of a request: the call's own, else the schema's, else the channel's or mesh's, else the host's.
    #[inline]
    fn request_timeout(&self) -> Duration {
        let of_schema = || Some(Duration::from_millis(u64::from(self.method.timeout_ms?)));
        self.timeout
            .or_else(of_schema)
            .unwrap_or_else(|| self.way.request_timeout())
    }

    #[inline]
    fn exchange(self, timeout: Option<Duration>) -> Result<Exchange, Box<ArgumentError>> {
        let [of_timeout, of_metadata] = self.refused;
        match of_timeout.or(of_metadata) {
            Some(refused) => Err(refused),
            None => Ok(Exchange::new(self.way, self.method, self.metadata, timeout)),
        }
    }
}

/// A request that is not submitted yet. Its options chain; `.await` submits it and gives the reply.
///
/// It ends exactly once. Dropping its future before a link has taken it withdraws it; later it only stops the waiting.
///
/// # Errors
/// [`CallError::Argument`] where an option or the message itself is refused, before any work. [`CallError::Failed`]
/// with `NotFound`, `NotConfigured`, `Unavailable`, `DeadlineExceeded`, `ShuttingDown`, `Rejected`, `ProtocolError`
/// or `InternalFailure`; [`CallError::execution`] says whether the handler can have run.
#[must_use = "a call does nothing until it is awaited"]
pub struct RequestCall<Q, R> {
    parts: Parts,
    request: Q,
    reply: PhantomData<fn() -> R>,
}

impl<Q: Message, R: Message> RequestCall<Q, R> {
    #[inline]
    pub(super) fn new(parts: Parts, request: Q) -> Self {
        Self {
            parts,
            request,
            reply: PhantomData,
        }
    }

    pub(super) fn parts(&mut self) -> &mut Parts {
        &mut self.parts
    }

    /// How long the whole call may take, from `.await` to the reply: 1 ms to `i32::MAX` ms, rounded up to whole
    /// milliseconds. Where it is not set, the schema's default holds, else the host's.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.parts.timeout(timeout);
        self
    }

    /// Sets one key of the metadata that the handler reads. Setting it again replaces it.
    pub fn metadata<K: Key>(mut self, key: K, value: impl std::borrow::Borrow<K::Value>) -> Self {
        self.parts.metadata(key, value);
        self
    }

    /// Sets all metadata from a prepared bundle, in place of what was set before, or refused.
    pub fn all_metadata(mut self, metadata: &Metadata) -> Self {
        self.parts.all_metadata(metadata);
        self
    }
}

impl<Q: Message, R: Message> IntoFuture for RequestCall<Q, R> {
    type Output = Result<R, CallError>;
    type IntoFuture = RequestFuture<Q, R>;

    #[inline]
    fn into_future(self) -> Self::IntoFuture {
        let timeout = self.parts.request_timeout();
        RequestFuture {
            running: Running::new(self.parts.exchange(Some(timeout)), self.request),
            reply: PhantomData,
        }
    }
}

impl<Q: Message, R: Message> Yields for RequestCall<Q, R> {
    type Reply = R;

    fn may_yield(&self) -> bool {
        self.parts.way.may_yield()
    }
}

impl<Q, R> fmt::Debug for RequestCall<Q, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestCall({})", self.parts.method.packet)
    }
}

/// A request under way.
#[must_use = "futures do nothing until they are polled"]
pub struct RequestFuture<Q, R> {
    running: Running<Q>,
    reply: PhantomData<fn() -> R>,
}

/// Nothing in it is borrowed from itself.
impl<Q, R> Unpin for RequestFuture<Q, R> {}

impl<Q: Message, R: Message> Future for RequestFuture<Q, R> {
    type Output = Result<R, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.running.poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(None)) => {
                let text = "the request ended as a send does";
                Poll::Ready(Err(Error::unknown(ErrorKind::InternalFailure, text).into()))
            }
            Poll::Ready(Ok(Some(reply))) => Poll::Ready(reply.message::<R>().map_err(|error| {
                let text = format!("the reply is not what the method promises: {error}");
                Error::unknown(ErrorKind::ProtocolError, text).into()
            })),
        }
    }
}

impl<Q, R> fmt::Debug for RequestFuture<Q, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestFuture")
    }
}

/// A one-way message that is not submitted yet. Its options chain; `.await` submits it.
///
/// It completes when this host's send path has taken the message, which says nothing about the handler. Where the
/// target's link has no room the call waits, and the message is then submitted once. Dropping its future before that
/// withdraws it for good.
///
/// # Errors
/// As for [`RequestCall`], for causes before the message is taken; `DeadlineExceeded` only where the host has a
/// send timeout, or after 5 s of waiting in a handler: a turn that waits keeps others from running.
#[must_use = "a call does nothing until it is awaited"]
pub struct SendCall<M> {
    parts: Parts,
    message: M,
}

impl<M: Message> SendCall<M> {
    #[inline]
    pub(super) fn new(parts: Parts, message: M) -> Self {
        Self { parts, message }
    }

    pub(super) fn parts(&mut self) -> &mut Parts {
        &mut self.parts
    }

    /// Sets one key of the metadata that the handler reads. Setting it again replaces it.
    pub fn metadata<K: Key>(mut self, key: K, value: impl std::borrow::Borrow<K::Value>) -> Self {
        self.parts.metadata(key, value);
        self
    }

    /// Sets all metadata from a prepared bundle, in place of what was set before, or refused.
    pub fn all_metadata(mut self, metadata: &Metadata) -> Self {
        self.parts.all_metadata(metadata);
        self
    }
}

impl<M: Message> IntoFuture for SendCall<M> {
    type Output = Result<(), CallError>;
    type IntoFuture = SendFuture<M>;

    #[inline]
    fn into_future(self) -> Self::IntoFuture {
        SendFuture {
            running: Running::new(self.parts.exchange(None), self.message),
        }
    }
}

impl<M> fmt::Debug for SendCall<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SendCall({})", self.parts.method.packet)
    }
}

/// A one-way message under way.
#[must_use = "futures do nothing until they are polled"]
pub struct SendFuture<M> {
    running: Running<M>,
}

/// Nothing in it is borrowed from itself.
impl<M> Unpin for SendFuture<M> {}

impl<M: Message> Future for SendFuture<M> {
    type Output = Result<(), CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.running.poll(cx).map_ok(drop)
    }
}

impl<M> fmt::Debug for SendFuture<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendFuture")
    }
}

/// An exchange together with the message it carries.
struct Running<M> {
    exchange: Result<Exchange, Option<Box<ArgumentError>>>,
    /// Until it was handed over.
    message: Option<M>,
}

impl<M: Message> Running<M> {
    #[inline]
    fn new(exchange: Result<Exchange, Box<ArgumentError>>, message: M) -> Self {
        Self {
            exchange: exchange.map_err(Some),
            message: Some(message),
        }
    }

    /// A reply, or nothing for a send.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Kept>, CallError>> {
        let exchange = match &mut self.exchange {
            Ok(exchange) => exchange,
            Err(refused) => {
                return match refused.take() {
                    Some(refused) => Poll::Ready(Err((*refused).into())),
                    // Polled after its end, as no executor does.
                    None => Poll::Pending,
                };
            }
        };
        let mut step = if exchange.is_new() {
            match exchange.hand_over(&mut self.message, cx) {
                Some(step) => step,
                None => Self::begin(exchange, self.message.as_ref(), cx),
            }
        } else {
            exchange.poll(cx)
        };
        loop {
            let end = match step {
                Step::Submit(ready) => {
                    step = Self::encoded(self.message.as_ref(), |payload| exchange.submit(ready, payload, cx))
                        .unwrap_or_else(Step::Failed);
                    continue;
                }
                Step::Pending => return Poll::Pending,
                Step::Accepted => Ok(None),
                Step::Reply(reply) => Ok(Some(reply)),
                Step::Failed(error) => Err(error),
            };
            exchange.ended(end.as_ref().err());
            self.exchange = Err(None);
            return Poll::Ready(end);
        }
    }

    fn begin(exchange: &mut Exchange, message: Option<&M>, cx: &mut Context<'_>) -> Step {
        match exchange.poll(cx) {
            step @ Step::Submit(_) => step,
            // It waits for somebody, or there is nobody. What is wrong with the message is told at once all the same.
            step => Self::encoded(message, |_| step).unwrap_or_else(Step::Failed),
        }
    }

    /// Lends the bytes of the message to `consume`. One that was handed over is asked for no more.
    fn encoded<T>(message: Option<&M>, consume: impl FnOnce(&[u8]) -> T) -> Result<T, CallError> {
        let Some(message) = message else {
            return Err(ArgumentError::new("message", "was handed over").into());
        };
        codec::encode(message, consume).map_err(|error| ArgumentError::new("message", error.to_string()).into())
    }
}
