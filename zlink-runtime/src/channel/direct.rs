//! Calls to Spots, and to the desks of nodes, for the room that knows what those are.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;

use crate::error::{ArgumentError, CallError, Error, ErrorKind};
use crate::id::{MeshName, ObjectId, PacketName, Rid};
use crate::message::codec::Message;
use crate::message::metadata::Metadata;
use crate::wire::RecordKind;

use super::call::{Method, Parts, RequestCall, SendCall};
use super::exchange::{Exchange, Step};
use super::found::Found;
use super::objects::{Intent, SpotTo};
use super::outbound::{Caller, Outbound};
use super::way::{Target, Way};

/// The way to one Spot, from one caller. Clones are cheap.
#[derive(Clone, Debug)]
pub(crate) struct SpotWay(Arc<Way>);

impl SpotWay {
    pub(crate) fn new(caller: &impl Caller, id: ObjectId) -> Self {
        let spot = SpotTo::new(id, None);
        Self(Arc::new(Way::to_spot(
            caller.outbound().clone(),
            caller.running(),
            spot,
        )))
    }

    pub(crate) fn request<Q: Message, R: Message>(&self, method: Method, request: Q) -> RequestCall<Q, R> {
        RequestCall::new(Parts::new(&self.0, method), request)
    }

    pub(crate) fn send<M: Message>(&self, method: Method, message: M) -> SendCall<M> {
        SendCall::new(Parts::new(&self.0, method), message)
    }
}

/// A call that can be told more than its options say.
pub(crate) trait Adjust {
    #[doc(hidden)]
    fn parts_mut(&mut self) -> Handle<'_>;
}

/// What a call is made of, for [`Adjust`] alone.
pub(crate) struct Handle<'a>(&'a mut Parts);

impl Handle<'_> {
    /// The call ends with this, before any work.
    pub(crate) fn refuse(self, error: ArgumentError) {
        self.0.way = Arc::new(self.0.way.bad(error));
    }

    /// The call may activate the Spot that it goes to.
    pub(crate) fn intend(self, intent: Intent) {
        let way = &self.0.way;
        let Target::Spot(spot) = &way.target else { return };
        let begin = |intent| Arc::new(way.instead(SpotTo::new(spot.id.clone(), Some(intent))));
        let activating = match &intent.mesh {
            Some(_) => begin(intent),
            // One client's calls all mean the same type.
            None => spot.activating.get_or_init(|| begin(intent)).clone(),
        };
        self.0.way = activating;
    }
}

impl<Q: Message, R: Message> Adjust for RequestCall<Q, R> {
    fn parts_mut(&mut self) -> Handle<'_> {
        Handle(self.parts())
    }
}

impl<M: Message> Adjust for SendCall<M> {
    fn parts_mut(&mut self) -> Handle<'_> {
        Handle(self.parts())
    }
}

/// What control records are named by. Nobody looks it up.
const CONTROL: Method = Method::request("zlink.spot", None);

/// Asks the node `rid` to do something with its Spots.
pub(crate) fn control<Q: Message, R: Message>(
    (outbound, turn): (&Outbound, Option<Weak<()>>),
    (mesh, rid): (&MeshName, Rid),
    kind: RecordKind,
    question: Q,
    timeout: Duration,
) -> RequestCall<Q, R> {
    let way = Arc::new(Way::to_control(outbound.clone(), turn, mesh, rid, kind));
    RequestCall::new(Parts::new(&way, CONTROL), question).timeout(timeout)
}

/// A call that came in and goes on to where it belongs, as it is.
pub(crate) struct Forwarded {
    /// It was accepted: it goes on while its host drains.
    _turn: Arc<()>,
    exchange: Exchange,
    payload: Bytes,
    ended: Option<Result<Bytes, CallError>>,
}

impl Forwarded {
    /// A request where it has a timeout. `packet` is a packet name.
    pub(crate) fn new(
        outbound: &Outbound,
        (id, to): (ObjectId, Found),
        packet: &'static str,
        metadata: Metadata,
        payload: Bytes,
        timeout: Option<Duration>,
    ) -> Self {
        debug_assert!(PacketName::new(packet).is_ok(), "somebody handles it");
        let spot = SpotTo::fixed(id, to);
        let turn = Arc::new(());
        let way = Arc::new(Way::to_spot(outbound.clone(), Some(Arc::downgrade(&turn)), spot));
        Self {
            _turn: turn,
            exchange: Exchange::new(way, Method::request(packet, None), metadata, timeout),
            payload,
            ended: None,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.ended.is_some() {
            return Poll::Ready(());
        }
        let mut step = self.exchange.poll(cx);
        loop {
            let end = match step {
                Step::Submit(ready) => {
                    step = self.exchange.submit(ready, &self.payload, cx);
                    continue;
                }
                Step::Pending => return Poll::Pending,
                Step::Accepted => Ok(Bytes::new()),
                Step::Reply(reply) => reply.into_bytes().map_err(|error| {
                    let text = format!("the reply cannot be sent on: {error}");
                    Error::unknown(ErrorKind::InternalFailure, text).into()
                }),
                Step::Failed(error) => Err(error),
            };
            self.ended = Some(end);
            return Poll::Ready(());
        }
    }

    /// Waits until a link has taken it, or it has ended.
    pub(crate) async fn submitted(&mut self) {
        poll_fn(|cx| match self.poll(cx) {
            Poll::Pending if !self.exchange.is_submitted() => Poll::Pending,
            _ => Poll::Ready(()),
        })
        .await;
    }

    /// Waits for its end: the reply, or nothing of a one-way message.
    pub(crate) async fn ended(mut self) -> Result<Bytes, CallError> {
        poll_fn(|cx| self.poll(cx)).await;
        self.ended.unwrap_or_else(|| Ok(Bytes::new()))
    }
}
