//! How a Spot decides about Actors: a new one is made first, and then lent to the Entry Spot of its node, which tells it what it
//! was asked for with and admits or rejects it, as a turn of the Spot's own lifecycle lane.
//!
//! It must not know who asked for the Actor, nor what it does.

use std::any::{Any, TypeId};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

use crate::clock;
use crate::error::{Error, ErrorKind, HandlerError};
use crate::execution::{Ended, Scope, StateTurn, States, YieldTurn};
use crate::id::{ActorType, SpotType};
use crate::transport::BoxFuture;

use super::factory::{Begun, MakeError, SpotFactoryBuilder};
use super::job::{SpotJob, Work};
use super::kind::{Actor, EntrySpot, OfKind};
use super::object::{Held, Object};
use super::turn::{ObjectContext, ObjectTurn, TurnCore};
use super::value::{Admission, Payload};

/// A callback that admits Actors, states `A`, by its path: `<S as LobbySpot>::on_create_player`.
pub trait SpotAdmits<'a, S, K, A, Q>: Copy + Send + Sync + 'static {
    /// What it answers, be it yes or no.
    type Reply;
    /// The callback at work.
    type Running: Future<Output = Result<Admission<Self::Reply>, HandlerError>> + Send;

    #[doc(hidden)]
    fn call(self, spot: &'a mut S, turn: &'a mut ObjectTurn<'a, K>, actor: &'a mut A, request: Q) -> Self::Running;
}

impl<'a, S: 'a, K: 'a, A: 'a, Q, R, F, Fut> SpotAdmits<'a, S, K, A, Q> for F
where
    F: Fn(&'a mut S, &'a mut ObjectTurn<'a, K>, &'a mut A, Q) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<Admission<R>, HandlerError>> + Send,
{
    type Reply = R;
    type Running = Fut;

    fn call(self, spot: &'a mut S, turn: &'a mut ObjectTurn<'a, K>, actor: &'a mut A, request: Q) -> Fut {
        self(spot, turn, actor, request)
    }
}

/// An Actor that nobody can find yet, of a type that its factory and its Entry Spot know.
type Staging = Held<Box<dyn Any + Send>>;

fn lent<A: 'static>(staging: &mut Staging) -> Option<&mut A> {
    staging.get()?.downcast_mut()
}

/// It comes back as the very one that was lent.
fn given_back<A: 'static>(staging: Staging) -> Option<A> {
    staging.take()?.downcast().ok().map(|actor| *actor)
}

/// The Actor if it was admitted, and the encoded reply.
type Answer = Result<(Option<Staging>, Vec<u8>), MakeError>;

/// An Actor that waits for admission. Dropped without a decision, it was not admitted.
pub(super) struct Admitting {
    by: Arc<dyn Admits>,
    actor: Staging,
    request: Vec<u8>,
    answer: oneshot::Sender<Answer>,
    /// Whether it is decided about, or given up: whichever came first.
    begun: Arc<AtomicBool>,
    /// Its place in the lane.
    room: OwnedSemaphorePermit,
}

impl Admitting {
    /// The turn that decides. `None` where nobody waits for that any more, or the Spot has no state.
    pub(super) fn start(self, core: TurnCore, scope: Scope) -> Option<StateTurn> {
        if self.answer.is_closed() || self.begun.swap(true, Ordering::AcqRel) {
            return None;
        }
        let by = self.by.clone();
        by.start(core, scope, self)
    }
}

/// A callback whose types are known inside only.
pub(super) trait Admits: Send + Sync {
    /// The type of the Actors that it decides about.
    fn of(&self) -> TypeId;

    fn start(&self, core: TurnCore, scope: Scope, admitting: Admitting) -> Option<StateTurn>;
}

/// What a Spot of the kind `K` does with Actors and requests.
type Deciding<S, K, A, Q> = fn(A, Q) -> (S, K);

struct Typed<F, S, K, A, Q>(F, PhantomData<Deciding<S, K, A, Q>>);

impl<F, S, K, A, Q, R> Admits for Typed<F, S, K, A, Q>
where
    S: Send + 'static,
    K: OfKind,
    A: Send + 'static,
    Q: Payload,
    R: Payload,
    F: for<'a> SpotAdmits<'a, S, K, A, Q, Reply = R>,
{
    fn of(&self) -> TypeId {
        TypeId::of::<A>()
    }

    fn start(&self, core: TurnCore, scope: Scope, admitting: Admitting) -> Option<StateTurn> {
        States::<S>::cell(&core)?;
        let Admitting {
            mut actor,
            request,
            answer,
            room,
            ..
        } = admitting;
        let call = self.0;
        let work = async move |turn: &mut YieldTurn<'_, S>, core: &TurnCore| {
            let _room = room;
            let decided = match (Q::from_bytes(&request), lent::<A>(&mut actor)) {
                (Ok(request), Some(lent)) => {
                    turn.hold().await;
                    let mut told = ObjectTurn::<K>::new(core);
                    let decided = call.call(turn.state(), &mut told, lent, request).await;
                    decided
                        .map_err(MakeError::Failed)
                        .and_then(|admission| encoded(actor, admission))
                }
                (Err(error), _) => Err(MakeError::Request(error.to_string())),
                // Start has compared the types.
                (_, None) => Err(MakeError::Failed(HandlerError::new("the Actor is of another type"))),
            };
            // Nobody waits for it any more where the host stops.
            let _ = answer.send(decided);
            Ended::Well
        };
        Some(StateTurn::given(core, scope, false, work))
    }
}

fn encoded<R: Payload>(actor: Staging, admission: Admission<R>) -> Answer {
    let (actor, reply) = match admission {
        Admission::Accepted(reply) => (Some(actor), reply),
        Admission::Rejected(reply) => (None, reply),
    };
    let reply = reply.to_bytes().map_err(|error| MakeError::Reply(error.to_string()))?;
    Ok((actor, reply))
}

impl<S: Send + 'static> SpotFactoryBuilder<S, EntrySpot> {
    /// Decides about new Actors of that type, each before anybody can find it. It decides about one at a time, as a turn of
    /// the Spot: while it waits for something, all other new Actors of the node wait for it.
    pub fn creates<A, Q, R, F>(mut self, actor: ActorType, call: F) -> Self
    where
        A: Send + 'static,
        Q: Payload,
        R: Payload,
        F: for<'a> SpotAdmits<'a, S, EntrySpot, A, Q, Reply = R>,
    {
        let by = Arc::new(Typed::<F, S, EntrySpot, A, Q>(call, PhantomData));
        let parts = self.parts_mut();
        if parts.creates.insert(actor.stable(), by).is_some() {
            parts
                .wrong
                .push(format!("decides twice about Actors of the type {actor}"));
        }
        self
    }
}

/// Begins a factory of Actors of that type, which `create` makes; `context` is what one of them shows.
pub(crate) fn actors<A, F, Fut, C>(stable_type: SpotType, create: F, context: C) -> SpotFactoryBuilder<A, Actor>
where
    A: Send + 'static,
    F: Fn(ObjectContext<Actor>) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<A, HandlerError>> + Send + 'static,
    C: for<'a> Fn(&'a A) -> &'a ObjectContext<Actor> + Copy + Send + Sync + 'static,
{
    let begin = move |object: Arc<Object>, request: Vec<u8>, deadline: Option<Instant>| -> Begun<A> {
        Box::pin(async move {
            let made = create(ObjectContext::new(object.clone())).await;
            let mut state = Staging::new(Box::new(made.map_err(MakeError::Failed)?));
            if !lent(&mut state).is_some_and(|state| context(state).is_of(&object)) {
                let text = "the Actor shows another context than it was given";
                return Err(MakeError::Failed(HandlerError::new(text)));
            }
            let (admitted, reply) = admit(&object, state, request, deadline).await?;
            Ok((admitted.and_then(given_back), reply))
        })
    };
    SpotFactoryBuilder::new(stable_type, Box::new(begin))
}

/// Asks the Spot that an Actor is to begin in. Who asked for the Actor gives up at `deadline`: what the Spot has not begun
/// to decide about until then, it never does, so that nothing waits for ever behind one that it does not come to an end with.
fn admit(
    actor: &Arc<Object>,
    state: Staging,
    request: Vec<u8>,
    deadline: Option<Instant>,
) -> BoxFuture<'static, Answer> {
    let actor = actor.clone();
    Box::pin(async move {
        let refused = |kind, text: &str| MakeError::Refused(Error::not_executed(kind, text));
        let stable_type = &actor.factory.parts().stable_type;
        let by = actor.spot().and_then(|spot| {
            let by = spot.factory.parts().creates.get(stable_type)?;
            Some((spot, by.clone()))
        });
        let Some((spot, by)) = by else {
            let text = "the Entry Spot of the node decides about no Actors of the type";
            return Err(refused(ErrorKind::NotFound, text));
        };
        let late = || {
            let text = "the Entry Spot did not come to decide about the Actor before the deadline";
            // Its asker, whose deadline it is, says that it has come.
            Err(refused(ErrorKind::Unavailable, text))
        };
        let Some(Some(room)) = before(deadline, actor.home.lobby.room()).await else {
            return late();
        };
        // A factory may have taken longer, and whoever waits for room looks at that first.
        if deadline.is_some_and(|deadline| deadline <= clock::now()) {
            return late();
        }
        let (answer, mut decided) = oneshot::channel();
        let begun = Arc::new(AtomicBool::new(false));
        let admitting = Admitting {
            by,
            actor: state,
            request,
            answer,
            begun: begun.clone(),
            room,
        };
        let job = SpotJob::new(spot.clone(), Work::Admit(Box::new(admitting)));
        if let Err(rejected) = spot.lane().admit_lifecycle(job) {
            return Err(refused(rejected.kind, "the Entry Spot takes no new Actors now"));
        }
        let decided = match before(deadline, &mut decided).await {
            Some(decided) => decided,
            // What it decides about already, it decides.
            None if begun.swap(true, Ordering::AcqRel) => decided.await,
            None => return late(),
        };
        decided.unwrap_or_else(|_| {
            Err(match spot.phase() {
                super::object::Phase::Ready => MakeError::Failed(HandlerError::new("the admission panicked")),
                _ if begun.load(Ordering::Acquire) => {
                    MakeError::Refused(Error::unknown(ErrorKind::ShuttingDown, "the Entry Spot ends"))
                }
                _ => refused(ErrorKind::ShuttingDown, "the Entry Spot ends"),
            })
        })
    })
}

/// What comes of `work` before `deadline`.
async fn before<T>(deadline: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline, work).await.ok(),
        None => Some(work.await),
    }
}

impl fmt::Debug for Admitting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Admitting")
    }
}
