//! What callbacks of Spots and Actors are told and may do: contexts, which can be kept, and turns, which end with their callback.
//!
//! What a kind must not do has no method. It must not know how turns are run.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;

use crate::channel::{Caller, CorrelationId, HandlerScope, MessageKind, Outbound, caller};
use crate::error::{ArgumentError, HandlerError};
use crate::execution::{Overrun, WorkCall, YieldFor, YieldTurn, Yields};
use crate::id::{MeshName, Rid, SpotId, TimerName};
use crate::message::metadata::MetadataView;

use super::kind::{Actor, Closes, OfKind};
use super::object::{Object, Phase};
use super::value::CloseReason;

/// What a Spot or an Actor is and where: for its factory, and to be kept. Clones are the same.
///
/// Calls start from it, as from a turn.
pub struct ObjectContext<K> {
    object: Arc<Object>,
    kind: PhantomData<fn() -> K>,
}

impl<K> ObjectContext<K> {
    pub(super) fn new(object: Arc<Object>) -> Self {
        Self {
            object,
            kind: PhantomData,
        }
    }
}

impl<K> Clone for ObjectContext<K> {
    fn clone(&self) -> Self {
        Self::new(self.object.clone())
    }
}

macro_rules! common {
    () => {
        /// The ID of the Spot, or of the Actor.
        #[must_use]
        pub fn id(&self) -> &K::Id {
            let id = K::id(&self.object().id);
            id.unwrap_or_else(|| unreachable!("its factory is of that kind"))
        }

        /// This very incarnation of it.
        #[must_use]
        pub fn reference(&self) -> &K::Ref {
            let reference = K::reference(self.object().reference());
            reference.unwrap_or_else(|| unreachable!("its factory is of that kind"))
        }

        /// The mesh of the node that has it.
        #[must_use]
        pub fn mesh(&self) -> &MeshName {
            &self.object().home.mesh
        }

        /// The node that has it.
        #[must_use]
        pub fn node(&self) -> &Rid {
            &self.object().home.rid
        }

        /// The value of that type that the host was built with, by `shared(…)`.
        #[must_use]
        pub fn shared<T: Send + Sync + 'static>(&self) -> Option<&T> {
            self.object().shared().get()
        }
    };
}

impl<K: OfKind> ObjectContext<K> {
    common!();

    fn object(&self) -> &Arc<Object> {
        &self.object
    }
}

impl ObjectContext<Actor> {
    /// The Spot that it is a member of; `None` until it is Ready.
    #[must_use]
    pub fn spot(&self) -> Option<SpotId> {
        (self.object.phase() != Phase::Creating).then(|| self.object.seat())?
    }

    /// Whether it is what that object was made with.
    pub(super) fn is_of(&self, object: &Arc<Object>) -> bool {
        Arc::ptr_eq(&self.object, object)
    }
}

impl<K> caller::Caller for ObjectContext<K> {
    fn outbound(&self) -> &Outbound {
        self.object.outbound()
    }

    fn running(&self) -> Option<Weak<()>> {
        // It outlives every turn: what it starts is no handler's.
        None
    }
}

impl<K> Caller for ObjectContext<K> {}

impl<K> fmt::Debug for ObjectContext<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectContext").field(&self.object).finish()
    }
}

/// What began a turn, and what came with it.
#[derive(Debug)]
pub(super) struct TurnCore {
    pub(super) object: Arc<Object>,
    pub(super) cause: Cause,
    /// Encoded; checked before the turn began.
    pub(super) metadata: Bytes,
    pub(super) correlation: Option<u64>,
    /// Dies with the turn. Made once somebody calls from it.
    pub(super) running: OnceLock<Arc<()>>,
    /// Made once somebody asks for it.
    pub(super) scope: OnceLock<Box<HandlerScope>>,
}

/// What began a turn: its name is the packet's, the timer's or the callback's.
#[derive(Clone, Debug)]
pub(super) enum Cause {
    Packet(&'static str),
    Timer(Arc<str>),
    Lifecycle(&'static str),
}

impl TurnCore {
    pub(super) fn lifecycle(object: Arc<Object>, callback: &'static str) -> Self {
        Self::new(object, Cause::Lifecycle(callback))
    }

    /// Nothing came with it.
    pub(super) fn new(object: Arc<Object>, cause: Cause) -> Self {
        Self {
            object,
            cause,
            metadata: Bytes::new(),
            correlation: None,
            running: OnceLock::new(),
            scope: OnceLock::new(),
        }
    }

    pub(super) fn running(&self) -> Weak<()> {
        Arc::downgrade(self.running.get_or_init(Arc::default))
    }

    pub(super) fn scope(&self) -> &HandlerScope {
        self.scope
            .get_or_init(|| Box::new(HandlerScope::new(self.object.outbound().next_scope())))
    }

    pub(super) fn metadata(&self) -> MetadataView<'_> {
        MetadataView::parse(&self.metadata).unwrap_or_default()
    }

    pub(super) fn name(&self) -> &str {
        match &self.cause {
            Cause::Timer(name) => name,
            Cause::Packet(name) | Cause::Lifecycle(name) => name,
        }
    }
}

/// Of an Actor.
pub type ActorContext = ObjectContext<Actor>;
/// Of an Actor.
pub type ActorTurn<'t> = ObjectTurn<'t, Actor>;
/// Of an Actor.
pub type ActorYieldTurn<'t, A> = ObjectYieldTurn<'t, A, Actor>;
/// Of a Spot.
pub type SpotContext<K> = ObjectContext<K>;
/// Of a Spot.
pub type SpotTurn<'t, K> = ObjectTurn<'t, K>;
/// Of a Spot.
pub type SpotYieldTurn<'t, S, K> = ObjectYieldTurn<'t, S, K>;

/// One turn of an object of the kind `K`. Calls start from it; it ends with its callback.
pub struct ObjectTurn<'t, K> {
    core: &'t TurnCore,
    kind: PhantomData<fn() -> K>,
}

impl<'t, K> ObjectTurn<'t, K> {
    pub(super) fn new(core: &'t TurnCore) -> Self {
        Self {
            core,
            kind: PhantomData,
        }
    }

    fn object(&self) -> &Arc<Object> {
        &self.core.object
    }
}

impl<K: OfKind> ObjectTurn<'_, K> {
    common!();

    /// Whether somebody waits for a reply.
    #[must_use]
    pub fn kind(&self) -> MessageKind {
        match self.core.correlation {
            Some(_) => MessageKind::Request,
            None => MessageKind::Send,
        }
    }

    /// The name on the wire that chose this handler; of a timer the timer's, of a lifecycle callback its own.
    #[must_use]
    pub fn packet_name(&self) -> &str {
        self.core.name()
    }

    /// What the caller set, unchangeable. Copy what must outlive the turn.
    #[must_use]
    pub fn metadata(&self) -> MetadataView<'_> {
        self.core.metadata()
    }

    /// The request's correlation; `None` for everything else.
    #[must_use]
    pub fn correlation(&self) -> Option<CorrelationId> {
        self.core.correlation.map(CorrelationId::of)
    }

    /// What the filters and the handler of this message share.
    #[must_use]
    pub fn scope(&self) -> &HandlerScope {
        self.core.scope()
    }

    /// What lives as long as the Spot, and can be kept.
    #[must_use]
    pub fn context(&self) -> ObjectContext<K> {
        ObjectContext::new(self.object().clone())
    }

    /// Starts the timer `name`: its handler runs every `period`, first after one, as a turn of the Spot. One that runs
    /// under that name is replaced. Late ticks are left out.
    ///
    /// # Errors
    /// Where the schema declares no such timer for this Spot, or the period is outside 1 ms to `i32::MAX` ms.
    pub fn add_timer(&mut self, name: TimerName, period: Duration) -> Result<TimerHandle, ArgumentError> {
        self.add_timer_with(name, period, Overrun::default())
    }

    /// The same, and what becomes of ticks that were due while the Spot was busy.
    ///
    /// # Errors
    /// As [`ObjectTurn::add_timer`]; a bound of ticks to make up for outside 1 to `i32::MAX`.
    pub fn add_timer_with(
        &mut self,
        name: TimerName,
        period: Duration,
        overrun: Overrun,
    ) -> Result<TimerHandle, ArgumentError> {
        let generation = self.object().add_timer(&name, period, overrun)?;
        Ok(TimerHandle {
            object: self.object().clone(),
            name,
            generation,
        })
    }

    /// Work that computes, for a thread of the host's pool. Await it, or give the turn back for it.
    pub fn cpu<T, F>(&self, work: F) -> WorkCall<T>
    where
        T: Send + 'static,
        F: FnOnce() -> Result<T, HandlerError> + Send + 'static,
    {
        self.object().cpu().run(work)
    }

    /// Work that waits for something outside, as a task of its own. Await it, or give the turn back for it.
    pub fn io<T, F>(&self, work: F) -> WorkCall<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, HandlerError>> + Send + 'static,
    {
        self.object().io().run(work)
    }
}

impl ObjectTurn<'_, Actor> {
    /// The Spot that it is a member of.
    #[must_use]
    pub fn spot(&self) -> Option<SpotId> {
        self.object().seat()
    }
}

impl<K: Closes> ObjectTurn<'_, K> {
    /// Closes the Spot: it takes no new messages from now on, finishes what it has accepted, this turn included, runs
    /// `on_closing`, and is gone. Doing it again changes nothing.
    pub fn close(&mut self) {
        self.object().begin_close(CloseReason::ExplicitClose);
    }
}

impl<K> caller::Caller for ObjectTurn<'_, K> {
    fn outbound(&self) -> &Outbound {
        self.core.object.outbound()
    }

    fn running(&self) -> Option<Weak<()>> {
        Some(self.core.running())
    }
}

impl<K> Caller for ObjectTurn<'_, K> {}

impl<K> fmt::Debug for ObjectTurn<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectTurn").field(self.core).finish()
    }
}

/// A turn that its handler may give back while it waits: it owns the state `S` of the Spot.
///
/// It is a [`ObjectTurn`], too. The state is borrowed from it; a borrow ends before [`yield_for`](Self::yield_for), and
/// what was read before is read again after it: other turns may have run.
pub struct ObjectYieldTurn<'t, S: Send + 'static, K> {
    state: YieldTurn<'t, S>,
    turn: ObjectTurn<'t, K>,
}

impl<'t, S: Send + 'static, K> ObjectYieldTurn<'t, S, K> {
    pub(super) fn new(state: YieldTurn<'t, S>, core: &'t TurnCore) -> Self {
        Self {
            state,
            turn: ObjectTurn::new(core),
        }
    }

    /// The state.
    pub fn state(&mut self) -> &mut S {
        self.state.state()
    }

    /// Submits `call` and gives the turn back until its outcome is there; then the handler goes on as a new turn, behind
    /// what waits already. The outcome is the same as without giving it back.
    ///
    /// # Errors
    /// The call's own. `InvalidOperation` where a turn cannot be given back (Entry Spots, `per_actor` Spots, a request to
    /// a node): then nothing was submitted.
    pub fn yield_for<C: Yields>(&mut self, call: C) -> YieldFor<'_, S, C::IntoFuture> {
        self.state.yield_for(call)
    }
}

impl<'t, S: Send + 'static, K> Deref for ObjectYieldTurn<'t, S, K> {
    type Target = ObjectTurn<'t, K>;

    fn deref(&self) -> &ObjectTurn<'t, K> {
        &self.turn
    }
}

impl<S: Send + 'static, K> DerefMut for ObjectYieldTurn<'_, S, K> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.turn
    }
}

impl<S: Send + 'static, K> caller::Caller for ObjectYieldTurn<'_, S, K> {
    fn outbound(&self) -> &Outbound {
        self.turn.core.object.outbound()
    }

    fn running(&self) -> Option<Weak<()>> {
        Some(self.turn.core.running())
    }
}

impl<S: Send + 'static, K> Caller for ObjectYieldTurn<'_, S, K> {}

impl<S: Send + 'static, K> fmt::Debug for ObjectYieldTurn<'_, S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ObjectYieldTurn").field(self.turn.core).finish()
    }
}

/// A timer that runs. Dropping the handle changes nothing: the timer ends with its Spot, or is cancelled.
#[derive(Clone, Debug)]
pub struct TimerHandle {
    object: Arc<Object>,
    name: TimerName,
    generation: u64,
}

impl TimerHandle {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &TimerName {
        &self.name
    }

    /// Ends it: no tick of it starts any more; one that has started goes on. Returns whether it still ran. A timer that
    /// was started anew under its name is another one, and is left alone.
    pub fn cancel(&self) -> bool {
        self.object.cancel_timer(&self.name, self.generation)
    }
}
