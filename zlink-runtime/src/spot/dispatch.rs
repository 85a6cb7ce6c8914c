//! From received bytes to a Spot's typed callback and back. Everything generic over messages and states is here.

use std::marker::PhantomData;

use tokio::time::Instant;

use crate::channel::{Refusal, ReplyTo, Stop, rejected};
use crate::error::{Error, ErrorKind, HandlerError};
use crate::execution::{Ended, Resting, Scope, StateTurn, States, Tick, YieldTurn};
use crate::message::codec::{Content, Message};

use super::around::run;
use super::kind::OfKind;
use super::turn::{ObjectTurn, ObjectYieldTurn, TurnCore};
use super::value::CloseReason;

/// A callback of a Spot trait, by its path: `<S as RoomSpot>::say`. So generated code needs neither a closure nor a
/// future per method.
pub trait SpotCall<'a, S, K, M>: Copy + Send + Sync + 'static {
    /// What it answers.
    type Reply;
    /// The callback at work.
    type Running: Future<Output = Result<Self::Reply, HandlerError>> + Send;

    #[doc(hidden)]
    fn call(self, spot: &'a mut S, turn: &'a mut ObjectTurn<'a, K>, message: M) -> Self::Running;
}

impl<'a, S: 'a, K: 'a, M, R, F, Fut> SpotCall<'a, S, K, M> for F
where
    F: Fn(&'a mut S, &'a mut ObjectTurn<'a, K>, M) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<R, HandlerError>> + Send,
{
    type Reply = R;
    type Running = Fut;

    fn call(self, spot: &'a mut S, turn: &'a mut ObjectTurn<'a, K>, message: M) -> Fut {
        self(spot, turn, message)
    }
}

/// The same for a callback that may give its turn back, and so has its state through it.
pub trait SpotYieldCall<'a, S: Send + 'static, K, M>: Copy + Send + Sync + 'static {
    /// What it answers.
    type Reply;
    /// The callback at work.
    type Running: Future<Output = Result<Self::Reply, HandlerError>> + Send;

    #[doc(hidden)]
    fn call(self, turn: &'a mut ObjectYieldTurn<'a, S, K>, message: M) -> Self::Running;
}

impl<'a, S: Send + 'static, K: 'a, M, R, F, Fut> SpotYieldCall<'a, S, K, M> for F
where
    F: Fn(&'a mut ObjectYieldTurn<'a, S, K>, M) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<R, HandlerError>> + Send,
{
    type Reply = R;
    type Running = Fut;

    fn call(self, turn: &'a mut ObjectYieldTurn<'a, S, K>, message: M) -> Fut {
        self(turn, message)
    }
}

/// `on_initialize`, by its path.
pub trait SpotInitialize<'a, S, K>: Copy + Send + Sync + 'static {
    /// The callback at work.
    type Running: Future<Output = Result<(), HandlerError>> + Send;

    #[doc(hidden)]
    fn call(self, spot: &'a mut S, turn: &'a mut ObjectTurn<'a, K>) -> Self::Running;
}

impl<'a, S: 'a, K: 'a, F, Fut> SpotInitialize<'a, S, K> for F
where
    F: Fn(&'a mut S, &'a mut ObjectTurn<'a, K>) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<(), HandlerError>> + Send,
{
    type Running = Fut;

    fn call(self, spot: &'a mut S, turn: &'a mut ObjectTurn<'a, K>) -> Fut {
        self(spot, turn)
    }
}

/// `on_closing`, by its path.
pub trait SpotClosing<'a, S, K>: Copy + Send + Sync + 'static {
    /// The callback at work.
    type Running: Future<Output = Result<(), HandlerError>> + Send;

    #[doc(hidden)]
    fn call(
        self,
        spot: &'a mut S,
        turn: &'a mut ObjectTurn<'a, K>,
        reason: CloseReason,
        deadline: Instant,
    ) -> Self::Running;
}

impl<'a, S: 'a, K: 'a, F, Fut> SpotClosing<'a, S, K> for F
where
    F: Fn(&'a mut S, &'a mut ObjectTurn<'a, K>, CloseReason, Instant) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<(), HandlerError>> + Send,
{
    type Running = Fut;

    fn call(self, spot: &'a mut S, turn: &'a mut ObjectTurn<'a, K>, reason: CloseReason, deadline: Instant) -> Fut {
        self(spot, turn, reason, deadline)
    }
}

/// What a callback is begun with.
pub(super) struct Delivery {
    pub(super) core: TurnCore,
    pub(super) scope: Scope,
    /// Of a request.
    pub(super) reply: Option<ReplyTo>,
}

/// A handler whose types are known inside only.
pub(super) trait Dispatch: Send + Sync {
    /// Takes or decodes the message, and makes the turn, which is not polled yet.
    ///
    /// # Errors
    /// Where the payload is not the expected message. No handler ran.
    fn start(&self, delivery: Delivery, content: Content<'_>) -> Result<StateTurn, Refusal>;
}

/// A handler of ticks.
pub(super) trait OnTick: Send + Sync {
    /// Makes the turn, which is not polled yet. `None` where the Spot has no state, which its queue rules out.
    fn start(&self, delivery: Delivery, tick: Tick, held: Box<dyn Send>) -> Option<StateTurn>;
}

/// A callback of either form.
pub(super) trait Invoke<S: Send + 'static, M>: Copy + Send + Sync + 'static {
    type Reply;

    /// Whether it may give its turn back.
    const YIELDS: bool;

    fn invoke<'t>(
        self,
        turn: &'t mut YieldTurn<'_, S>,
        core: &'t TurnCore,
        message: M,
    ) -> impl Future<Output = Result<Self::Reply, HandlerError>> + Send;
}

/// A callback in the form `W`, of a Spot of the kind `K`, that answers an `R`.
pub(super) struct Form<W, F, K, R>(F, PhantomData<W>, PhantomData<fn() -> (K, R)>);

/// It has the state from its begin to its end.
pub(super) type Plain<F, K, R> = Form<Holding, F, K, R>;
/// It has it through its turn.
pub(super) type Yielding<F, K, R> = Form<Borrowing, F, K, R>;

pub(super) enum Holding {}
pub(super) enum Borrowing {}

impl<W, F, K, R> Form<W, F, K, R> {
    pub(super) const fn new(call: F) -> Self {
        Self(call, PhantomData, PhantomData)
    }
}

impl<W, F: Copy, K, R> Clone for Form<W, F, K, R> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<W, F: Copy, K, R> Copy for Form<W, F, K, R> {}

impl<S, M, K, R, F> Invoke<S, M> for Plain<F, K, R>
where
    S: Send + 'static,
    M: Send + 'static,
    K: OfKind,
    R: 'static,
    F: for<'a> SpotCall<'a, S, K, M, Reply = R>,
{
    type Reply = R;

    const YIELDS: bool = false;

    async fn invoke<'t>(
        self,
        turn: &'t mut YieldTurn<'_, S>,
        core: &'t TurnCore,
        message: M,
    ) -> Result<R, HandlerError> {
        turn.hold().await;
        let mut told = ObjectTurn::new(core);
        self.0.call(turn.state(), &mut told, message).await
    }
}

impl<S, M, K, R, F> Invoke<S, M> for Yielding<F, K, R>
where
    S: Send + 'static,
    M: Send + 'static,
    K: OfKind,
    R: 'static,
    F: for<'a> SpotYieldCall<'a, S, K, M, Reply = R>,
{
    type Reply = R;

    const YIELDS: bool = true;

    async fn invoke<'t>(
        self,
        turn: &'t mut YieldTurn<'_, S>,
        core: &'t TurnCore,
        message: M,
    ) -> Result<R, HandlerError> {
        turn.hold().await;
        let mut told = ObjectYieldTurn::new(turn.reborrow(), core);
        self.0.call(&mut told, message).await
    }
}

/// A handler of a request, of a one-way message, or of ticks.
pub(super) struct Typed<I, S, M> {
    invoke: I,
    /// Whether the Spot closes with its good end.
    closes: bool,
    types: PhantomData<fn(M) -> S>,
}

impl<I, S, M> Typed<I, S, M> {
    pub(super) const fn new(invoke: I, closes: bool) -> Self {
        Self {
            invoke,
            closes,
            types: PhantomData,
        }
    }
}

/// A handler of requests; the other kind is of one-way messages.
pub(super) struct Requests<T>(pub(super) T);
pub(super) struct Sends<T>(pub(super) T);
pub(super) struct Ticks<T>(pub(super) T);

impl<I, S, M> Dispatch for Requests<Typed<I, S, M>>
where
    S: Send + 'static,
    M: Message,
    I: Invoke<S, M, Reply: Message>,
{
    fn start(&self, delivery: Delivery, content: Content<'_>) -> Result<StateTurn, Refusal> {
        let Delivery { core, scope, reply } = delivery;
        let message = match message::<M>(&core, content) {
            Ok(message) => message,
            Err(error) => return Err(Refusal { error, reply }),
        };
        let Some(reply) = reply else {
            let error = Error::not_executed(ErrorKind::ProtocolError, "a request has no reply route");
            return Err(Refusal { error, reply: None });
        };
        let (invoke, closes) = (self.0.invoke, self.0.closes);
        let work = async move |turn: &mut YieldTurn<'_, S>, core: &TurnCore| {
            let outcome = run(invoke, turn, core, message).await;
            let failed = match outcome {
                Ok(answer) => reply.answer(answer).err().map(|error| error.to_string()),
                Err(Stop::Filtered(why)) => {
                    reply.fail(&rejected(core.name(), why.as_ref()));
                    return Ended::Badly;
                }
                Err(Stop::Failed(error)) => {
                    let text = format!("the handler of {} failed", core.name());
                    reply.fail(&Error::unknown(ErrorKind::InternalFailure, text));
                    Some(error.to_string())
                }
            };
            ended(core, failed, closes, "reply_error")
        };
        Ok(StateTurn::given(core, scope, I::YIELDS, work))
    }
}

impl<I, S, M> Dispatch for Sends<Typed<I, S, M>>
where
    S: Send + 'static,
    M: Message,
    I: Invoke<S, M, Reply = ()>,
{
    fn start(&self, delivery: Delivery, content: Content<'_>) -> Result<StateTurn, Refusal> {
        let Delivery { core, scope, reply } = delivery;
        let message = match message::<M>(&core, content) {
            Ok(message) => message,
            Err(error) => return Err(Refusal { error, reply }),
        };
        let (invoke, closes) = (self.0.invoke, self.0.closes);
        let work = async move |turn: &mut YieldTurn<'_, S>, core: &TurnCore| {
            let failed = match run(invoke, turn, core, message).await {
                Ok(()) => None,
                Err(Stop::Filtered(why)) => {
                    drop(rejected(core.name(), why.as_ref()));
                    return Ended::Badly;
                }
                Err(Stop::Failed(error)) => Some(error.to_string()),
            };
            ended(core, failed, closes, "drop")
        };
        Ok(StateTurn::given(core, scope, I::YIELDS, work))
    }
}

impl<I, S> OnTick for Ticks<Typed<I, S, Tick>>
where
    S: Send + 'static,
    I: Invoke<S, Tick, Reply = ()>,
{
    fn start(&self, delivery: Delivery, tick: Tick, held: Box<dyn Send>) -> Option<StateTurn> {
        let Delivery { core, scope, .. } = delivery;
        core.object.cell()?;
        let (invoke, closes) = (self.0.invoke, self.0.closes);
        let work = async move |turn: &mut YieldTurn<'_, S>, core: &TurnCore| {
            let outcome = invoke.invoke(turn, core, tick).await;
            drop(held);
            ended(core, outcome.err().map(|error| error.to_string()), closes, "drop")
        };
        Some(StateTurn::given(core, scope, I::YIELDS, work))
    }
}

impl<S: Send + 'static> States<S> for TurnCore {
    #[inline]
    fn cell(&self) -> Option<&Resting<S>> {
        self.object.cell()?.downcast_ref()
    }
}

/// The message, for a Spot that has its state.
fn message<M: Message>(core: &TurnCore, content: Content<'_>) -> Result<M, Error> {
    if core.object.cell().is_none() {
        return Err(Error::not_executed(ErrorKind::Unavailable, "it has no state"));
    }
    content.message::<M>().map_err(|error| {
        let text = format!("the payload of {} is not what its handler takes: {error}", core.name());
        Error::not_executed(ErrorKind::ProtocolError, text)
    })
}

/// What a callback's end means beside its answer.
fn ended(core: &TurnCore, failed: Option<String>, closes: bool, action: &'static str) -> Ended {
    match failed {
        None => {
            if closes {
                core.object.begin_close(CloseReason::ExplicitClose);
            }
            Ended::Well
        }
        Some(error) => {
            tracing::warn!(
                target: "zlink::dispatch", event_id = "zlink.dispatch_error", surface = core.object.surface(), packet_name = core.name(),
                outcome = "failed", reason = "handler_exception", action, error
            );
            Ended::Badly
        }
    }
}
