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

use super::reply::ReplyTo;

/// A handler whose types are known inside only. `T` is the turn of its namespace.
pub(super) trait Dispatch<T>: Send + Sync {
    /// Decodes and makes the handler's future, which is not polled yet.
    ///
    /// # Errors
    /// Where the payload is not the expected message. No handler ran.
    fn start(&self, turn: T, payload: &[u8], reply: Option<ReplyTo>) -> Result<BoxFuture<'static, ()>, Refusal>;
}

/// A delivery that did not become a turn, and who must hear of it.
pub(super) struct Refusal {
    pub(super) error: Error,
    pub(super) reply: Option<ReplyTo>,
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

impl<T, H, Q, R, F, Fut> Dispatch<T> for Requests<H, Q, R, F>
where
    H: Send + Sync + 'static,
    Q: Message,
    R: Message,
    F: Fn(Arc<H>, T, Q) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
{
    fn start(&self, turn: T, payload: &[u8], reply: Option<ReplyTo>) -> Result<BoxFuture<'static, ()>, Refusal> {
        let request = match decode::<Q>(payload, &self.packet) {
            Ok(request) => request,
            Err(error) => return Err(Refusal { error, reply }),
        };
        let Some(reply) = reply else {
            let error = Error::not_executed(ErrorKind::ProtocolError, "a request has no reply route");
            return Err(Refusal { error, reply: None });
        };
        Ok(Box::pin(Answering {
            running: (self.call)(self.handler.clone(), turn, request),
            reply: Some(reply),
            packet: self.packet.clone(),
        }))
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

impl<T, H, M, F, Fut> Dispatch<T> for Sends<H, M, F>
where
    H: Send + Sync + 'static,
    M: Message,
    F: Fn(Arc<H>, T, M) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), HandlerError>> + Send + 'static,
{
    fn start(&self, turn: T, payload: &[u8], reply: Option<ReplyTo>) -> Result<BoxFuture<'static, ()>, Refusal> {
        let message = match decode::<M>(payload, &self.packet) {
            Ok(message) => message,
            Err(error) => return Err(Refusal { error, reply }),
        };
        Ok(Box::pin(Handling {
            running: (self.call)(self.handler.clone(), turn, message),
            packet: self.packet.clone(),
        }))
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

impl<R: Message, F: Future<Output = Result<R, HandlerError>>> Future for Answering<F> {
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
                if let Err(error) = reply.answer(&answer) {
                    failed(this.packet, "reply_error", &error);
                }
            }
            Err(error) => {
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

impl<F: Future<Output = Result<(), HandlerError>>> Future for Handling<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        if let Err(error) = ready!(this.running.poll(cx)) {
            failed(this.packet, "drop", &error);
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
