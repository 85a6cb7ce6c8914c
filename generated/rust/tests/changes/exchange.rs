//! One way of one change: bytes that one version wrote, read by the other; and a call that carries them.
//!
//! It must not know which changes there are.

use std::fmt::Debug;
use std::future::{Future, IntoFuture as _};
use std::pin::Pin;

use zlink_runtime::message::codec::{decode, encode};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{ChannelRoute, ChannelServer, Message, Method, ServerBuilder};

/// What became of a value on its way.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is what was meant.
    Same,
    /// It was read without complaint, as something else.
    Misread(String),
    /// It was refused.
    Refused(String),
}

/// A handler that gives back what it got.
pub(crate) struct Echo;

async fn echo<M: Message>(_: &Echo, _: &ChannelContext<'_>, message: M) -> Result<M, HandlerError> {
    Ok(message)
}

/// The kind of error that ended a call.
type Ending = Pin<Box<dyn Future<Output = Option<ErrorKind>> + Send>>;
type Ask = Box<dyn Fn(&ChannelRoute, &'static str) -> Ending + Send + Sync>;
type Builder = ServerBuilder<Echo, ChannelServer>;

/// A value of one version, on its way to the other.
pub(crate) struct Way {
    /// What becomes of it.
    pub(crate) outcome: Outcome,
    /// How a call must end that carries it to an [`Echo`] of the other version.
    pub(crate) end: Option<ErrorKind>,
    /// The path of the type that is sent, its bytes, and those of what must come back, if anything does.
    pub(crate) sender: &'static str,
    pub(crate) sent: Vec<u8>,
    pub(crate) back: Option<Vec<u8>>,
    serve: fn(Builder, &'static str) -> Builder,
    ask: Ask,
}

impl Way {
    /// The way of `sent`, which means `meant` to the other version.
    pub(crate) fn of<A, B>(sent: A, meant: &B) -> Self
    where
        A: Message + Clone + Debug + Sync,
        B: Message + PartialEq + Debug + Sync,
    {
        let bytes = encode(&sent, <[u8]>::to_vec).expect("the value is legal in its own version");
        let read = decode::<B>(&bytes);
        let outcome = match &read {
            Ok(read) if read == meant => Outcome::Same,
            Ok(read) => Outcome::Misread(format!("{read:?} for {meant:?}")),
            Err(error) => Outcome::Refused(error.to_string()),
        };
        let (end, back) = match read.map(|read| encode(&read, <[u8]>::to_vec)) {
            Err(_) => (Some(ErrorKind::ProtocolError), None),
            // A member that this version does not know has no content to send back.
            Ok(Err(_)) => (Some(ErrorKind::InternalFailure), None),
            Ok(Ok(back)) => match decode::<A>(&back) {
                Err(_) => (Some(ErrorKind::ProtocolError), None),
                Ok(_) => (None, Some(back)),
            },
        };
        Self {
            outcome,
            end,
            sender: std::any::type_name::<A>(),
            sent: bytes,
            back,
            serve: |builder, packet| builder.request(packet, echo::<B>),
            ask: Box::new(move |route, packet| {
                const HOUR_MS: u32 = 3_600_000;
                let call = route.request::<A, A>(Method::request(packet, Some(HOUR_MS)), sent.clone());
                Box::pin(async move {
                    let ended = call.into_future().await;
                    ended.err().map(|error| error.kind().expect("the argument is legal"))
                })
            }),
        }
    }

    /// Serves the other version under a packet name.
    pub(crate) fn serve(&self, builder: Builder, packet: &'static str) -> Builder {
        (self.serve)(builder, packet)
    }

    /// Calls what [`serve`](Self::serve) serves, with an hour of patience, and tells the kind of error that ended it.
    pub(crate) fn ask(&self, route: &ChannelRoute, packet: &'static str) -> Ending {
        (self.ask)(route, packet)
    }
}
