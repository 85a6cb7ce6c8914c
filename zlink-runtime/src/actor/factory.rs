//! What generated code registers: how Actors of one type are made, and what they handle.
//!
//! It must not know where an Actor lives or how its turns are run.

use std::fmt;

use crate::error::HandlerError;
use crate::execution::Tick;
use crate::id::ActorType;
use crate::message::codec::Message;
use crate::spot::{self, Actor, ActorContext, Relocation, SpotCall, SpotFactory, SpotFactoryBuilder, SpotYieldCall};

/// How Actors of one type are made, and what they handle. A schema's `<actor>_actor::<A>()` makes one. Clones are the same.
#[derive(Clone)]
#[must_use = "a factory does nothing until it is registered with an object server"]
pub struct ActorFactory {
    stable_type: ActorType,
    factory: SpotFactory,
}

impl ActorFactory {
    /// Begins a factory of Actors of that type. `create` makes one of its context, and nothing else; `context` shows that
    /// very context of one, or it never becomes Ready. What it was asked for with goes to the Entry Spot of its node, which
    /// admits it or does not.
    #[allow(clippy::new_ret_no_self, reason = "it begins one, as those of Spots do")]
    pub fn new<A, F, Fut, C>(stable_type: ActorType, create: F, context: C) -> ActorFactoryBuilder<A>
    where
        A: Send + 'static,
        F: Fn(ActorContext) -> Fut + Copy + Send + Sync + 'static,
        Fut: Future<Output = Result<A, HandlerError>> + Send + 'static,
        C: for<'a> Fn(&'a A) -> &'a ActorContext + Copy + Send + Sync + 'static,
    {
        let builder = spot::actors(stable_type.stable(), create, context);
        ActorFactoryBuilder { stable_type, builder }
    }

    /// The type of its Actors.
    #[must_use]
    pub fn stable_type(&self) -> &ActorType {
        &self.stable_type
    }

    pub(crate) fn inner(&self) -> &SpotFactory {
        &self.factory
    }
}

impl fmt::Debug for ActorFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ActorFactory({})", self.stable_type)
    }
}

/// Collects what Actors of one type, states `A`, do. Generated code uses it.
pub struct ActorFactoryBuilder<A> {
    stable_type: ActorType,
    builder: SpotFactoryBuilder<A, Actor>,
}

impl<A: Send + 'static> ActorFactoryBuilder<A> {
    fn map(mut self, change: impl FnOnce(SpotFactoryBuilder<A, Actor>) -> SpotFactoryBuilder<A, Actor>) -> Self {
        self.builder = change(self.builder);
        self
    }

    /// Handles one-way messages named `packet`.
    pub fn send<M, F>(self, packet: &'static str, call: F) -> Self
    where
        M: Message,
        F: for<'a> SpotCall<'a, A, Actor, M, Reply = ()>,
    {
        self.map(|builder| builder.send(packet, call))
    }

    /// The same, with a turn that can be given back, where the Actor is in a Spot that allows it.
    pub fn send_yielding<M, F>(self, packet: &'static str, call: F) -> Self
    where
        M: Message,
        F: for<'a> SpotYieldCall<'a, A, Actor, M, Reply = ()>,
    {
        self.map(|builder| builder.send_yielding(packet, call))
    }

    /// Handles requests named `packet`.
    pub fn request<Q, R, F>(self, packet: &'static str, call: F) -> Self
    where
        Q: Message,
        R: Message,
        F: for<'a> SpotCall<'a, A, Actor, Q, Reply = R>,
    {
        self.map(|builder| builder.request(packet, call))
    }

    /// The same, with a turn that can be given back, where the Actor is in a Spot that allows it.
    pub fn request_yielding<Q, R, F>(self, packet: &'static str, call: F) -> Self
    where
        Q: Message,
        R: Message,
        F: for<'a> SpotYieldCall<'a, A, Actor, Q, Reply = R>,
    {
        self.map(|builder| builder.request_yielding(packet, call))
    }

    /// Handles the ticks of the timer `name`, which a turn starts.
    pub fn timer<F>(self, name: &'static str, call: F) -> Self
    where
        F: for<'a> SpotCall<'a, A, Actor, Tick, Reply = ()>,
    {
        self.map(|builder| builder.timer(name, call))
    }

    /// The same, with a turn that can be given back, where the Actor is in a Spot that allows it.
    pub fn timer_yielding<F>(self, name: &'static str, call: F) -> Self
    where
        F: for<'a> SpotYieldCall<'a, A, Actor, Tick, Reply = ()>,
    {
        self.map(|builder| builder.timer_yielding(name, call))
    }

    /// What becomes of its Actors when their node is drained.
    pub fn relocation(self, policy: Relocation) -> Self {
        self.map(|builder| builder.relocation(policy))
    }

    /// The factory.
    pub fn build(self) -> ActorFactory {
        ActorFactory {
            stable_type: self.stable_type,
            factory: self.builder.build(),
        }
    }
}

impl<A> fmt::Debug for ActorFactoryBuilder<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ActorFactoryBuilder({})", self.stable_type)
    }
}
