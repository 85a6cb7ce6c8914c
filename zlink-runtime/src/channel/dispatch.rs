//! From received bytes to a typed handler and back. Everything generic over messages and handlers is here.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

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
        let running = (self.call)(self.handler.clone(), turn, request);
        let packet = self.packet.clone();
        Ok(Box::pin(async move {
            match running.await {
                Ok(answer) => {
                    if let Err(error) = reply.answer(&answer) {
                        failed(&packet, "reply_error", &error);
                    }
                }
                Err(error) => {
                    failed(&packet, "reply_error", &error);
                    reply.fail(&Error::unknown(
                        ErrorKind::InternalFailure,
                        format!("the handler of {packet} failed"),
                    ));
                }
            }
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
        let running = (self.call)(self.handler.clone(), turn, message);
        let packet = self.packet.clone();
        Ok(Box::pin(async move {
            if let Err(error) = running.await {
                failed(&packet, "drop", &error);
            }
        }))
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
