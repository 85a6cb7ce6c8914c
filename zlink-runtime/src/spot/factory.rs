//! What generated code registers: how Spots of one type are made, and what they handle.
//!
//! It must not know where a Spot lives or how its turns are run.

use std::any::{Any, TypeId};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tokio::time::Instant;

use crate::error::{Error, HandlerError};
use crate::execution::{Mode, Resting, StateCell, Tick};
use crate::id::{ChannelName, ObjectKind, PacketName, SpotType, TimerName, Topic, bytes_hash, text_hash};
use crate::message::codec::Message;
use crate::transport::BoxFuture;

use super::admit::Admits;
use super::dispatch::{
    Dispatch, OnTick, Plain, Requests, Sends, SpotCall, SpotClosing, SpotInitialize, SpotYieldCall, Ticks, Typed,
    Yielding,
};
use super::kind::{EntrySpot, InstanceSpot, OfKind, Subscribes, UserSpot};
use super::object::{Held, Object, let_go};
use super::turn::{ObjectContext, ObjectTurn, TurnCore};
use super::value::{CloseReason, Created, Payload, Relocation};

/// How Spots of one type are made, and what they handle. A schema's `<spot>_spot::<S>()` makes one. Clones are the same.
#[derive(Clone)]
#[must_use = "a factory does nothing until it is registered with an object server"]
pub struct SpotFactory(Arc<Whole>);

struct Whole {
    parts: Parts,
    life: Box<dyn Life>,
}

pub(super) struct Parts {
    pub(super) kind: ObjectKind,
    pub(super) stable_type: SpotType,
    pub(super) mode: Mode,
    pub(super) relocation: Option<Relocation>,
    /// Of each packet.
    handlers: Vec<(&'static str, ByKind)>,
    /// Which of them is of a packet.
    places: FxHashMap<Named<'static>, u32>,
    pub(super) subscriptions: Vec<Subscription>,
    pub(super) timers: Vec<(TimerName, Arc<dyn OnTick>)>,
    /// Of an Entry Spot, what decides about new Actors of a type.
    pub(super) creates: FxHashMap<SpotType, Arc<dyn Admits>>,
    /// What was registered twice or not at all; start reports it.
    pub(super) wrong: Vec<String>,
}

/// For one-way messages, and for requests.
type ByKind = [Option<Arc<dyn Dispatch>>; 2];

/// A packet name, with its hash. What is no text is none.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Named<'a> {
    hash: u64,
    name: &'a [u8],
}

impl Hash for Named<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// What of a channel's multicasts is handled, and how.
pub(super) struct Subscription {
    pub(super) channel: ChannelName,
    pub(super) topic: Topic,
    /// A packet name.
    pub(super) packet: &'static str,
    pub(super) dispatch: Arc<dyn Dispatch>,
}

/// The begin and the end of a Spot, with its type known inside only.
pub(super) trait Life: Send + Sync {
    /// The type of the state.
    fn makes(&self) -> TypeId;

    /// Makes it and initialises it, for somebody who gives up at `deadline`.
    fn make(
        &self,
        object: Arc<Object>,
        request: Vec<u8>,
        deadline: Option<Instant>,
    ) -> BoxFuture<'static, Result<Made, MakeError>>;

    /// Runs `on_closing` and drops it. What it had is gone with the future.
    fn close(
        &self,
        object: Arc<Object>,
        reason: CloseReason,
        deadline: Instant,
    ) -> BoxFuture<'static, Result<(), HandlerError>>;

    /// Drops its state: nothing runs any more. Where a turn has it, it goes with that turn.
    fn forget(&self, object: &Object);
}

/// What a factory made.
pub(super) enum Made {
    /// The cell of a state of its own type, and the encoded reply.
    Accepted(Arc<dyn Any + Send + Sync>, Vec<u8>),
    Rejected(Vec<u8>),
}

/// Why a factory made nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum MakeError {
    #[error("the request is not what the factory takes: {0}")]
    Request(String),
    #[error("the reply cannot be sent: {0}")]
    Reply(String),
    #[error("{0}")]
    Failed(HandlerError),
    /// Whoever admits it was not asked.
    #[error("{0}")]
    Refused(Error),
}

pub(super) type Begun<S> = BoxFuture<'static, Result<(Option<S>, Vec<u8>), MakeError>>;
pub(super) type Begin<S> = Box<dyn Fn(Arc<Object>, Vec<u8>, Option<Instant>) -> Begun<S> + Send + Sync>;
type Initialize<S, K> =
    Arc<dyn for<'a> Fn(&'a mut S, &'a mut ObjectTurn<'a, K>) -> BoxFuture<'a, Result<(), HandlerError>> + Send + Sync>;
type Closing<S, K> = Arc<
    dyn for<'a> Fn(
            &'a mut S,
            &'a mut ObjectTurn<'a, K>,
            CloseReason,
            Instant,
        ) -> BoxFuture<'a, Result<(), HandlerError>>
        + Send
        + Sync,
>;

struct TypedLife<S, K> {
    begin: Begin<S>,
    initialize: Option<Initialize<S, K>>,
    closing: Option<Closing<S, K>>,
}

impl<S: Send + 'static, K: OfKind> Life for TypedLife<S, K> {
    fn makes(&self) -> TypeId {
        TypeId::of::<S>()
    }

    fn make(
        &self,
        object: Arc<Object>,
        request: Vec<u8>,
        deadline: Option<Instant>,
    ) -> BoxFuture<'static, Result<Made, MakeError>> {
        let begun = (self.begin)(object.clone(), request, deadline);
        let initialize = self.initialize.clone();
        Box::pin(async move {
            let (state, reply) = begun.await?;
            let mut held = state.map(Held::new);
            if let (Some(initialize), Some(state)) = (initialize, held.as_mut().and_then(Held::get)) {
                let core = TurnCore::lifecycle(object.clone(), "on_initialize");
                let mut turn = ObjectTurn::new(&core);
                initialize(state, &mut turn).await.map_err(MakeError::Failed)?;
            }
            let Some(state) = held.and_then(Held::take) else {
                return Ok(Made::Rejected(reply));
            };
            let cell = StateCell::new(object.lane(), state);
            Ok(Made::Accepted(cell.into_any(), reply))
        })
    }

    fn close(
        &self,
        object: Arc<Object>,
        reason: CloseReason,
        deadline: Instant,
    ) -> BoxFuture<'static, Result<(), HandlerError>> {
        let closing = self.closing.clone();
        Box::pin(async move {
            let cell = object.cell().and_then(|cell| cell.downcast_ref::<Resting<S>>());
            let mut held = cell.and_then(Resting::take).map(Held::new);
            if let (Some(closing), Some(state)) = (closing, held.as_mut().and_then(Held::get)) {
                let core = TurnCore::lifecycle(object.clone(), "on_closing");
                let mut turn = ObjectTurn::new(&core);
                closing(state, &mut turn, reason, deadline).await?;
            }
            Ok(())
        })
    }

    fn forget(&self, object: &Object) {
        let cell = object.cell().and_then(|cell| cell.downcast_ref::<Resting<S>>());
        let_go(Some(&object.id), cell.and_then(Resting::end));
    }
}

impl Parts {
    /// The handler of that packet, and its name for ever.
    pub(super) fn handler(&self, packet: &[u8], request: bool) -> Option<(&'static str, &Arc<dyn Dispatch>)> {
        let named = Named {
            hash: bytes_hash(packet),
            name: packet,
        };
        self.handler_at(*self.places.get(&named)?, request)
    }

    /// The place of that handler. `hash` is the name's [`text_hash`].
    #[inline]
    pub(super) fn place(&self, name: &str, hash: u64, request: bool) -> Option<u32> {
        let name = name.as_bytes();
        let place = *self.places.get(&Named { hash, name })?;
        self.handler_at(place, request).is_some().then_some(place)
    }

    /// The handler there.
    #[inline]
    pub(super) fn handler_at(&self, place: u32, request: bool) -> Option<(&'static str, &Arc<dyn Dispatch>)> {
        let (name, [send, ask]) = self.handlers.get(place as usize)?;
        Some((name, if request { ask } else { send }.as_ref()?))
    }
}

impl SpotFactory {
    /// The type of its Spots.
    #[must_use]
    pub fn stable_type(&self) -> &SpotType {
        &self.0.parts.stable_type
    }

    pub(crate) fn kind(&self) -> ObjectKind {
        self.0.parts.kind
    }

    /// What is wrong with how it was built.
    pub(crate) fn problems(&self) -> impl Iterator<Item = &str> {
        self.0.parts.wrong.iter().map(String::as_str)
    }

    /// Of an Entry Spot, which Rust type the Actors of a type have that it decides about.
    pub(crate) fn creates(&self, actor: &SpotType) -> Option<TypeId> {
        self.0.parts.creates.get(actor).map(|by| by.of())
    }

    /// The Rust type of what it makes.
    pub(crate) fn makes(&self) -> TypeId {
        self.0.life.makes()
    }

    /// The channels that it subscribes to.
    pub(crate) fn channels(&self) -> impl Iterator<Item = &ChannelName> {
        self.0.parts.subscriptions.iter().map(|one| &one.channel)
    }

    pub(super) fn parts(&self) -> &Parts {
        &self.0.parts
    }

    pub(super) fn life(&self) -> &dyn Life {
        &*self.0.life
    }

    /// Begins a factory of User Spots of that type, which `create` makes.
    pub fn user<S, Q, R, F, Fut>(stable_type: SpotType, create: F) -> SpotFactoryBuilder<S, UserSpot>
    where
        S: Send + 'static,
        Q: Payload,
        R: Payload,
        F: Fn(ObjectContext<UserSpot>, Q) -> Fut + Copy + Send + Sync + 'static,
        Fut: Future<Output = Result<Created<S, R>, HandlerError>> + Send + 'static,
    {
        let begin = move |object: Arc<Object>, request: Vec<u8>, _: Option<Instant>| -> Begun<S> {
            Box::pin(async move {
                let request = Q::from_bytes(&request).map_err(|error| MakeError::Request(error.to_string()))?;
                let created = create(ObjectContext::new(object), request).await;
                let (state, reply) = match created.map_err(MakeError::Failed)? {
                    Created::Accepted(state, reply) => (Some(state), reply),
                    Created::Rejected(reply) => (None, reply),
                };
                let reply = reply.to_bytes().map_err(|error| MakeError::Reply(error.to_string()))?;
                Ok((state, reply))
            })
        };
        SpotFactoryBuilder::new(stable_type, Box::new(begin))
    }

    /// Begins a factory of Instance Spots of that type, which `activate` makes.
    pub fn instance<S, F, Fut>(stable_type: SpotType, activate: F) -> SpotFactoryBuilder<S, InstanceSpot>
    where
        S: Send + 'static,
        F: Fn(ObjectContext<InstanceSpot>) -> Fut + Copy + Send + Sync + 'static,
        Fut: Future<Output = Result<S, HandlerError>> + Send + 'static,
    {
        SpotFactoryBuilder::new(stable_type, begin_by(activate))
    }

    /// Begins the factory of a node's Entry Spot, which `start` makes. Its type only names it: an Entry Spot has none.
    pub fn entry<S, F, Fut>(stable_type: SpotType, start: F) -> SpotFactoryBuilder<S, EntrySpot>
    where
        S: Send + 'static,
        F: Fn(ObjectContext<EntrySpot>) -> Fut + Copy + Send + Sync + 'static,
        Fut: Future<Output = Result<S, HandlerError>> + Send + 'static,
    {
        SpotFactoryBuilder::new(stable_type, begin_by(start))
    }
}

fn begin_by<S, K, F, Fut>(make: F) -> Begin<S>
where
    S: Send + 'static,
    K: OfKind,
    F: Fn(ObjectContext<K>) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<S, HandlerError>> + Send + 'static,
{
    // Called within the future, so that what it does before it gives its own is contained, too.
    Box::new(move |object, _, _| {
        Box::pin(async move {
            let made = make(ObjectContext::new(object)).await;
            Ok((Some(made.map_err(MakeError::Failed)?), Vec::new()))
        })
    })
}

/// Collects what Spots of one type, states `S` of the kind `K`, do. Generated code uses it.
pub struct SpotFactoryBuilder<S, K> {
    parts: Parts,
    begin: Begin<S>,
    initialize: Option<Initialize<S, K>>,
    closing: Option<Closing<S, K>>,
    kind: PhantomData<fn() -> K>,
}

impl<S: Send + 'static, K: OfKind> SpotFactoryBuilder<S, K> {
    pub(super) fn parts_mut(&mut self) -> &mut Parts {
        &mut self.parts
    }

    pub(super) fn new(stable_type: SpotType, begin: Begin<S>) -> Self {
        Self {
            parts: Parts {
                kind: K::KIND,
                stable_type,
                mode: match K::KIND {
                    ObjectKind::Entry => Mode::Entry,
                    ObjectKind::User => Mode::SpotWide,
                    ObjectKind::Instance => Mode::Instance,
                    // Whose member it is decides.
                    ObjectKind::Actor => Mode::Entry,
                },
                relocation: None,
                handlers: Vec::new(),
                places: FxHashMap::default(),
                subscriptions: Vec::new(),
                timers: Vec::new(),
                creates: FxHashMap::default(),
                wrong: Vec::new(),
            },
            begin,
            initialize: None,
            closing: None,
            kind: PhantomData,
        }
    }

    /// Runs before the Spot takes messages.
    pub fn initialize<F: for<'a> SpotInitialize<'a, S, K>>(mut self, call: F) -> Self {
        self.initialize = Some(Arc::new(move |spot, turn| Box::pin(call.call(spot, turn))));
        self
    }

    /// Runs last.
    pub fn closing<F: for<'a> SpotClosing<'a, S, K>>(mut self, call: F) -> Self {
        self.closing = Some(Arc::new(move |spot, turn, reason, deadline| {
            Box::pin(call.call(spot, turn, reason, deadline))
        }));
        self
    }

    /// Handles one-way messages named `packet`.
    pub fn send<M, F>(self, packet: &'static str, call: F) -> Self
    where
        M: Message,
        F: for<'a> SpotCall<'a, S, K, M, Reply = ()>,
    {
        let handler = Typed::<_, S, M>::new(Plain::<F, K, ()>::new(call), false);
        self.handler(packet, false, Arc::new(Sends(handler)))
    }

    /// The same, with a turn that can be given back.
    pub fn send_yielding<M, F>(self, packet: &'static str, call: F) -> Self
    where
        M: Message,
        F: for<'a> SpotYieldCall<'a, S, K, M, Reply = ()>,
    {
        let handler = Typed::<_, S, M>::new(Yielding::<F, K, ()>::new(call), false);
        self.handler(packet, false, Arc::new(Sends(handler)))
    }

    /// As [`send`](Self::send); the Spot closes with its good end.
    pub fn send_closing<M, F>(self, packet: &'static str, call: F) -> Self
    where
        M: Message,
        F: for<'a> SpotCall<'a, S, K, M, Reply = ()>,
    {
        let handler = Typed::<_, S, M>::new(Plain::<F, K, ()>::new(call), true);
        self.handler(packet, false, Arc::new(Sends(handler)))
    }

    /// As [`send_yielding`](Self::send_yielding); the Spot closes with its good end.
    pub fn send_yielding_closing<M, F>(self, packet: &'static str, call: F) -> Self
    where
        M: Message,
        F: for<'a> SpotYieldCall<'a, S, K, M, Reply = ()>,
    {
        let handler = Typed::<_, S, M>::new(Yielding::<F, K, ()>::new(call), true);
        self.handler(packet, false, Arc::new(Sends(handler)))
    }

    /// Handles requests named `packet`.
    pub fn request<Q, R, F>(self, packet: &'static str, call: F) -> Self
    where
        Q: Message,
        R: Message,
        F: for<'a> SpotCall<'a, S, K, Q, Reply = R>,
    {
        let handler = Typed::<_, S, Q>::new(Plain::<F, K, R>::new(call), false);
        self.handler(packet, true, Arc::new(Requests(handler)))
    }

    /// The same, with a turn that can be given back.
    pub fn request_yielding<Q, R, F>(self, packet: &'static str, call: F) -> Self
    where
        Q: Message,
        R: Message,
        F: for<'a> SpotYieldCall<'a, S, K, Q, Reply = R>,
    {
        let handler = Typed::<_, S, Q>::new(Yielding::<F, K, R>::new(call), false);
        self.handler(packet, true, Arc::new(Requests(handler)))
    }

    /// As [`request`](Self::request); the Spot closes once the reply was made.
    pub fn request_closing<Q, R, F>(self, packet: &'static str, call: F) -> Self
    where
        Q: Message,
        R: Message,
        F: for<'a> SpotCall<'a, S, K, Q, Reply = R>,
    {
        let handler = Typed::<_, S, Q>::new(Plain::<F, K, R>::new(call), true);
        self.handler(packet, true, Arc::new(Requests(handler)))
    }

    /// As [`request_yielding`](Self::request_yielding); the Spot closes once the reply was made.
    pub fn request_yielding_closing<Q, R, F>(self, packet: &'static str, call: F) -> Self
    where
        Q: Message,
        R: Message,
        F: for<'a> SpotYieldCall<'a, S, K, Q, Reply = R>,
    {
        let handler = Typed::<_, S, Q>::new(Yielding::<F, K, R>::new(call), true);
        self.handler(packet, true, Arc::new(Requests(handler)))
    }

    /// Handles the ticks of the timer `name`, which a turn starts.
    pub fn timer<F>(self, name: &'static str, call: F) -> Self
    where
        F: for<'a> SpotCall<'a, S, K, Tick, Reply = ()>,
    {
        let handler = Typed::<_, S, Tick>::new(Plain::<F, K, ()>::new(call), false);
        self.on_tick(name, Arc::new(Ticks(handler)))
    }

    /// The same, with a turn that can be given back.
    pub fn timer_yielding<F>(self, name: &'static str, call: F) -> Self
    where
        F: for<'a> SpotYieldCall<'a, S, K, Tick, Reply = ()>,
    {
        let handler = Typed::<_, S, Tick>::new(Yielding::<F, K, ()>::new(call), false);
        self.on_tick(name, Arc::new(Ticks(handler)))
    }

    fn handler(mut self, packet: &'static str, request: bool, dispatch: Arc<dyn Dispatch>) -> Self {
        // Only to check it.
        drop(PacketName::from_static(packet));
        let at = self.parts.handlers.iter().position(|(known, _)| *known == packet);
        let at = at.unwrap_or(self.parts.handlers.len());
        let named = Named {
            hash: text_hash(packet),
            name: packet.as_bytes(),
        };
        if let Ok(place) = u32::try_from(at) {
            self.parts.places.insert(named, place);
        }
        if at == self.parts.handlers.len() {
            self.parts.handlers.push((packet, [None, None]));
        }
        let place = self
            .parts
            .handlers
            .get_mut(at)
            .and_then(|(_, places)| places.get_mut(usize::from(request)));
        if place.is_none_or(|place| place.replace(dispatch).is_some()) {
            self.parts.wrong.push(format!("has two handlers for {packet:?}"));
        }
        self
    }

    fn subscription(
        mut self,
        channel: &'static str,
        topic: &'static str,
        packet: &'static str,
        dispatch: Arc<dyn Dispatch>,
    ) -> Self {
        let new = Subscription {
            channel: ChannelName::from_static(channel),
            topic: Topic::from_static(topic),
            packet,
            dispatch,
        };
        // Only to check it.
        drop(PacketName::from_static(packet));
        let same =
            |old: &Subscription| (&old.channel, &old.topic, old.packet) == (&new.channel, &new.topic, new.packet);
        if self.parts.subscriptions.iter().any(same) {
            let text = format!("subscribes twice to {packet:?} about {topic:?} in channel {channel:?}");
            self.parts.wrong.push(text);
        }
        self.parts.subscriptions.push(new);
        self
    }

    fn on_tick(mut self, name: &'static str, handler: Arc<dyn OnTick>) -> Self {
        let name = TimerName::from_static(name);
        if self.parts.timers.iter().any(|(other, _)| *other == name) {
            self.parts.wrong.push(format!("has two timers {:?}", name.as_str()));
        }
        self.parts.timers.push((name, handler));
        self
    }

    /// What becomes of its Spots when their node is drained.
    pub fn relocation(mut self, policy: Relocation) -> Self {
        if let Some(other) = self.parts.relocation.replace(policy) {
            let text = format!("has two relocation policies, {other:?} and {policy:?}");
            self.parts.wrong.push(text);
        }
        self
    }

    /// The factory.
    pub fn build(mut self) -> SpotFactory {
        match (K::KIND, self.parts.relocation) {
            (ObjectKind::Entry, Some(policy)) => {
                let text = format!("has the relocation policy {policy:?}; an Entry Spot never moves");
                self.parts.wrong.push(text);
            }
            (ObjectKind::User | ObjectKind::Instance | ObjectKind::Actor, None) => {
                self.parts.wrong.push("has no relocation policy".to_owned());
            }
            _ => {}
        }
        let life = TypedLife {
            begin: self.begin,
            initialize: self.initialize,
            closing: self.closing,
        };
        SpotFactory(Arc::new(Whole {
            parts: self.parts,
            life: Box::new(life),
        }))
    }
}

impl<S: Send + 'static, K: Subscribes> SpotFactoryBuilder<S, K> {
    /// Handles what is published to `channel` about `topic` as `packet`.
    pub fn subscribe<M, F>(self, channel: &'static str, topic: &'static str, packet: &'static str, call: F) -> Self
    where
        M: Message,
        F: for<'a> SpotCall<'a, S, K, M, Reply = ()>,
    {
        let handler = Typed::<_, S, M>::new(Plain::<F, K, ()>::new(call), false);
        self.subscription(channel, topic, packet, Arc::new(Sends(handler)))
    }

    /// The same, with a turn that can be given back.
    pub fn subscribe_yielding<M, F>(
        self,
        channel: &'static str,
        topic: &'static str,
        packet: &'static str,
        call: F,
    ) -> Self
    where
        M: Message,
        F: for<'a> SpotYieldCall<'a, S, K, M, Reply = ()>,
    {
        let handler = Typed::<_, S, M>::new(Yielding::<F, K, ()>::new(call), false);
        self.subscription(channel, topic, packet, Arc::new(Sends(handler)))
    }
}

impl<S: Send + 'static> SpotFactoryBuilder<S, UserSpot> {
    /// Its members run side by side, and so do its timers; otherwise one thing at a time happens in the whole Spot.
    pub fn per_actor(mut self) -> Self {
        self.parts.mode = Mode::PerActor;
        self
    }
}

impl fmt::Debug for SpotFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SpotFactory({:?} {})", self.0.parts.kind, self.0.parts.stable_type)
    }
}

impl<S, K> fmt::Debug for SpotFactoryBuilder<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "SpotFactoryBuilder({:?} {})",
            self.parts.kind, self.parts.stable_type
        )
    }
}
