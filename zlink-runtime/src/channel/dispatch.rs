//! From received bytes to a typed handler and back. Everything generic over messages and handlers is here.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::error::{Error, ErrorKind, HandlerError};
use crate::id::PacketName;
use crate::message::codec::{self, Message};
use crate::transport::BoxFuture;

use super::filter::{FilterContext, Stop, filtered, rejected};
use super::reply::ReplyTo;

/// A handler whose types are known inside only. `T` is the turn of its namespace.
pub(super) trait Dispatch<T>: Send + Sync {
    /// Decodes and makes the handler's future, which is not polled yet.
    ///
    /// # Errors
    /// Where the payload is not the expected message. No handler ran.
    fn start(&self, turn: T, payload: &[u8], reply: Option<ReplyTo>) -> Begun;
}

/// A handler's future, or why there is none. Two words, and so returned in registers.
pub(super) type Begun = Result<BoxFuture<'static, ()>, Box<Refusal>>;

/// A delivery that did not become a turn, and who must hear of it.
pub(crate) struct Refusal {
    pub(crate) error: Error,
    pub(crate) reply: Option<ReplyTo>,
}

/// What a handler runs in; it lends the context that the handler is told.
pub trait LendContext: Send + 'static {
    /// What a handler is told.
    type Context<'a>: Copy + Send + Sync;

    #[doc(hidden)]
    fn lend(&self) -> Self::Context<'_>;

    /// Whether filters stand around the handler.
    #[doc(hidden)]
    fn is_filtered(&self) -> bool;

    /// What they see of it.
    #[doc(hidden)]
    fn seen(&self) -> FilterContext<'_>;
}

/// A method of a handler trait, by its path: `<H as BillingHandler>::charge`. Everything asynchronous about it is
/// written here once, so that generated code needs neither a closure nor a future per method, and compiles faster.
pub trait Call<'a, H, T: LendContext, M>: Copy + Send + Sync + 'static {
    /// What it answers.
    type Reply;
    /// The handler at work.
    type Running: Future<Output = Result<Self::Reply, HandlerError>> + Send;

    #[doc(hidden)]
    fn call(self, handler: &'a H, context: &'a T::Context<'a>, message: M) -> Self::Running;
}

impl<'a, H: 'a, T: LendContext, M, R, F, Fut> Call<'a, H, T, M> for F
where
    F: Fn(&'a H, &'a T::Context<'a>, M) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<R, HandlerError>> + Send,
{
    type Reply = R;
    type Running = Fut;

    fn call(self, handler: &'a H, context: &'a T::Context<'a>, message: M) -> Fut {
        self(handler, context, message)
    }
}

pub(super) struct Requests<H, Q, R, F> {
    handler: Arc<H>,
    packet: PacketName,
    call: F,
    types: PhantomData<fn(Q) -> R>,
}

impl<H, Q, R, F> Requests<H, Q, R, F> {
    pub(super) fn new(handler: Arc<H>, packet: PacketName, call: F) -> Self {
        Self {
            handler,
            packet,
            call,
            types: PhantomData,
        }
    }
}

impl<T, H, Q, R, F> Dispatch<T> for Requests<H, Q, R, F>
where
    T: LendContext,
    H: Send + Sync + 'static,
    Q: Message,
    R: Message,
    F: for<'a> Call<'a, H, T, Q, Reply = R>,
{
    fn start(&self, turn: T, payload: &[u8], reply: Option<ReplyTo>) -> Begun {
        let request = match decode::<Q>(payload, &self.packet) {
            Ok(request) => request,
            Err(error) => return Err(Box::new(Refusal { error, reply })),
        };
        let Some(reply) = reply else {
            let error = Error::not_executed(ErrorKind::ProtocolError, "a request has no reply route");
            return Err(Box::new(Refusal { error, reply: None }));
        };
        let (handler, call) = (self.handler.clone(), self.call);
        let (reply, packet) = (Some(reply), self.packet.clone());
        if turn.is_filtered() {
            let running = async move {
                let context = turn.lend();
                filtered(turn.seen(), call.call(&handler, &context, request)).await
            };
            return Ok(Box::pin(Answering { running, reply, packet }));
        }
        // A block keeps what it captures once; a function would keep its arguments twice. The turn ends with it.
        let running = async move { call.call(&handler, &turn.lend(), request).await.map_err(Stop::Failed) };
        Ok(Box::pin(Answering { running, reply, packet }))
    }
}

pub(super) struct Sends<H, M, F> {
    handler: Arc<H>,
    packet: PacketName,
    call: F,
    types: PhantomData<fn(M)>,
}

impl<H, M, F> Sends<H, M, F> {
    pub(super) fn new(handler: Arc<H>, packet: PacketName, call: F) -> Self {
        Self {
            handler,
            packet,
            call,
            types: PhantomData,
        }
    }
}

impl<T, H, M, F> Dispatch<T> for Sends<H, M, F>
where
    T: LendContext,
    H: Send + Sync + 'static,
    M: Message,
    F: for<'a> Call<'a, H, T, M, Reply = ()>,
{
    fn start(&self, turn: T, payload: &[u8], reply: Option<ReplyTo>) -> Begun {
        let message = match decode::<M>(payload, &self.packet) {
            Ok(message) => message,
            Err(error) => return Err(Box::new(Refusal { error, reply })),
        };
        let (handler, call, packet) = (self.handler.clone(), self.call, self.packet.clone());
        if turn.is_filtered() {
            let running = async move {
                let context = turn.lend();
                filtered(turn.seen(), call.call(&handler, &context, message)).await
            };
            return Ok(Box::pin(Handling { running, packet }));
        }
        // A block keeps what it captures once; a function would keep its arguments twice. The turn ends with it.
        let running = async move { call.call(&handler, &turn.lend(), message).await.map_err(Stop::Failed) };
        Ok(Box::pin(Handling { running, packet }))
    }
}

// Written out, since an async block would keep the handler's future twice: as it was given, and where it is polled.
pin_project! {
    /// A handler that runs, and whom its reply goes to.
    struct Answering<F> {
        #[pin]
        running: F,
        reply: Option<ReplyTo>,
        packet: PacketName,
    }
}

impl<R: Message, F: Future<Output = Result<R, Stop>>> Future for Answering<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        // Here and not in its place, so that a panic drops it while it is one: then it answers as one.
        let Some(reply) = this.reply.take() else {
            return Poll::Ready(());
        };
        let ended = match this.running.poll(cx) {
            Poll::Ready(ended) => ended,
            Poll::Pending => {
                *this.reply = Some(reply);
                return Poll::Pending;
            }
        };
        match ended {
            Ok(answer) => {
                if let Err(error) = reply.answer(answer) {
                    failed(this.packet, "reply_error", &error);
                }
            }
            Err(Stop::Filtered(why)) => {
                reply.fail(&rejected(this.packet.as_str(), why.as_ref()));
            }
            Err(Stop::Failed(error)) => {
                failed(this.packet, "reply_error", &error);
                reply.fail(&Error::unknown(
                    ErrorKind::InternalFailure,
                    format!("the handler of {} failed", this.packet),
                ));
            }
        }
        Poll::Ready(())
    }
}

pin_project! {
    /// A handler that runs, and whom nobody waits for.
    struct Handling<F> {
        #[pin]
        running: F,
        packet: PacketName,
    }
}

impl<F: Future<Output = Result<(), Stop>>> Future for Handling<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        match ready!(this.running.poll(cx)) {
            Ok(()) => {}
            Err(Stop::Filtered(why)) => drop(rejected(this.packet.as_str(), why.as_ref())),
            Err(Stop::Failed(error)) => failed(this.packet, "drop", &error),
        }
        Poll::Ready(())
    }
}

fn decode<M: Message>(payload: &[u8], packet: &PacketName) -> Result<M, Error> {
    codec::decode::<M>(payload)
        .map_err(|error| Error::not_executed(ErrorKind::ProtocolError, format!("{packet}: {error}")))
}

fn failed(packet: &PacketName, action: &'static str, error: &dyn std::fmt::Display) {
    tracing::warn!(
        target: "zlink::dispatch", event_id = "zlink.dispatch_error", packet_name = %packet, outcome = "failed",
        reason = "handler_exception", action, error = %error
    );
}
