//! What a Spot's queue holds and what it becomes. Each start asks first whether this host may run it, and each poll but one
//! that follows its start at once (decision 0061).
//!
//! It must not know where a job came from.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::time::Instant;

use crate::channel::{self, Entered, Flow, FlowOrigin, OwnCall, Refusal, ReplyTo, is_traced, refuse};
use crate::error::{Error, ErrorKind};
use crate::execution::{self, Abandoned, Callback, Ended, Job, Owner, Pulse, Scope, StateTurn, Tick, YieldTurn};
use crate::message::codec::Content;
use crate::transport::BoxFuture;
use crate::wire::Span;

use super::admit::Admitting;
use super::dispatch::{Delivery, Dispatch, OnTick};
use super::object::Object;
use super::turn::{Cause, TurnCore};

/// A record of at most so many bytes is decoded in a moment.
const SHORT: usize = 4096;

/// Something for a Spot that was accepted and has not started.
pub(crate) struct SpotJob {
    object: Arc<Object>,
    /// Whose queue it is in, where that is not the Spot's own but one of its timers'.
    owner: Option<Owner<SpotJob>>,
    work: Work,
}

pub(super) enum Work {
    Call(Box<Call>),
    /// The same from this host itself, which has no record.
    Own(Box<OwnCall>),
    Tick(Box<Ticking>),
    /// Decides about an Actor.
    Admit(Box<Admitting>),
    /// Makes the object.
    Build(BoxFuture<'static, ()>),
}

/// A timer that is due.
pub(super) struct Ticking {
    pub(super) handler: Arc<dyn OnTick>,
    pub(super) name: Arc<str>,
    pub(super) tick: Tick,
    pub(super) pulse: Pulse,
}

/// A message or a request.
pub(super) struct Call {
    pub(super) handler: Arc<dyn Dispatch>,
    pub(super) packet: &'static str,
    pub(super) record: Bytes,
    pub(super) metadata: Span,
    pub(super) content_type: Span,
    pub(super) payload: Span,
    pub(super) deadline: Option<Instant>,
    /// Of a request.
    pub(super) reply: Option<ReplyTo>,
    /// Whether it may make the Spot where there is none.
    pub(super) activates: bool,
    /// Whether it is the message that the Spot was made by.
    pub(super) is_first: bool,
    /// Where somebody traces.
    pub(super) flow: Option<Flow>,
}

impl SpotJob {
    /// For the Spot's own queue.
    pub(super) fn new(object: Arc<Object>, work: Work) -> Self {
        let owner = None;
        Self { object, owner, work }
    }

    /// For the queue of one of its timers.
    pub(super) fn of(object: Arc<Object>, owner: Owner<SpotJob>, work: Work) -> Self {
        let owner = Some(owner);
        Self { object, owner, work }
    }

    /// Makes `build` what a new Spot begins with. Whether its owner took it, as a new one does.
    pub(super) fn build(object: &Arc<Object>, build: BoxFuture<'static, ()>) -> bool {
        let job = Self::new(object.clone(), Work::Build(build));
        object.lane().admit_lifecycle(job).is_ok()
    }

    /// The reply that it owes, where it could not be admitted.
    pub(super) fn into_reply(self) -> Option<ReplyTo> {
        match self.work {
            Work::Call(call) => call.reply,
            Work::Own(mut call) => call.reply.take(),
            Work::Tick(_) | Work::Admit(_) | Work::Build(_) => None,
        }
    }

    /// What it was handed, where it could not be admitted.
    pub(super) fn into_own(self) -> Option<Box<OwnCall>> {
        match self.work {
            Work::Own(call) => Some(call),
            Work::Call(_) | Work::Tick(_) | Work::Admit(_) | Work::Build(_) => None,
        }
    }

    /// Makes the turn. `None` where it ends here.
    fn begin(self, now: Instant) -> Option<(Arc<Object>, Started)> {
        let Self { object, owner, work } = self;
        let owner = owner.as_ref().unwrap_or(object.lane());
        let scope = |callback| Scope::new(owner, object.offers(callback));
        let started = match work {
            Work::Build(build) => {
                let work = async move |_: &mut YieldTurn<'_, ()>| {
                    build.await;
                    Ended::Well
                };
                let turn = StateTurn::stateless(scope(Callback::Build), work);
                Started::new(turn, Kind::Build, None)
            }
            Work::Admit(admitting) => {
                let core = TurnCore::lifecycle(object.clone(), "on_create_actor");
                let turn = admitting.start(core, scope(Callback::Lifecycle))?;
                Started::new(turn, Kind::Build, None)
            }
            Work::Tick(ticking) => {
                let Ticking {
                    handler,
                    name,
                    tick,
                    pulse,
                } = *ticking;
                if !pulse.may_start(now) {
                    return None;
                }
                let traced = is_traced().then(|| traced(Flow::begin(FlowOrigin::Timer), object.surface(), &name));
                let core = TurnCore::new(object.clone(), Cause::Timer(name));
                let delivery = Delivery {
                    core,
                    scope: scope(Callback::Unit),
                    reply: None,
                };
                let turn = handler.start(delivery, tick, Box::new(pulse))?;
                Started::new(turn, Kind::Work, traced)
            }
            Work::Call(call) => begin_call(&object, *call, scope(Callback::Unit), now)?,
            Work::Own(mut call) => {
                let started = begin_own(&object, &mut call, scope(Callback::Unit), now);
                call.recycle();
                started?
            }
        };
        Some((object, started))
    }
}

/// A call of this host. Its Spot was ready when it came, and so is not another host's.
fn begin_own(object: &Arc<Object>, call: &mut OwnCall, scope: Scope, now: Instant) -> Option<Started> {
    let reply = call.reply.take();
    if call.deadline.is_some_and(|deadline| deadline <= now) {
        if let Some(reply) = reply {
            reply.too_late();
        }
        return None;
    }
    let Some((packet, handler)) = object.factory.parts().handler_at(call.handler, reply.is_some()) else {
        let error = Error::not_executed(ErrorKind::InternalFailure, "a handler is gone");
        refuse(
            &object.spots.drops,
            "no_handler",
            object.surface(),
            Refusal { error, reply },
        );
        return None;
    };
    let mut core = TurnCore::new(object.clone(), Cause::Packet(packet));
    core.metadata = std::mem::take(&mut call.metadata).into_bytes();
    core.correlation = reply.as_ref().map(ReplyTo::correlation);
    let content = Content::Value(&mut call.message);
    match handler.start(Delivery { core, scope, reply }, content) {
        Ok(turn) => {
            let traced = call.flow.as_deref().map(|flow| traced(*flow, object.surface(), packet));
            Some(Started::new(turn, Kind::Work, traced))
        }
        Err(refusal) => {
            refuse(&object.spots.drops, "decode_error", object.surface(), refusal);
            None
        }
    }
}

fn begin_call(object: &Arc<Object>, call: Call, scope: Scope, now: Instant) -> Option<Started> {
    if call.deadline.is_some_and(|deadline| deadline <= now) {
        // Its caller has ended it; an answer would find nobody.
        if let Some(reply) = call.reply {
            reply.too_late();
        }
        if call.is_first {
            object.first_is_done();
        }
        return None;
    }
    if let Some(owner) = object.forwards_to() {
        let turn = object.spots.clone().forward(object.clone(), owner, call);
        let work = async move |_: &mut YieldTurn<'_, ()>| {
            turn.await;
            Ended::Well
        };
        return Some(Started::new(StateTurn::stateless(scope, work), Kind::Build, None));
    }
    let Call {
        handler,
        packet,
        record,
        metadata,
        content_type,
        payload,
        reply,
        is_first,
        flow,
        ..
    } = call;
    let started = match channel::problem(metadata.of(&record), content_type.of(&record)) {
        Some(problem) => Err(Refusal {
            error: Error::not_executed(ErrorKind::ProtocolError, problem),
            reply,
        }),
        None => {
            let mut core = TurnCore::new(object.clone(), Cause::Packet(packet));
            if !metadata.is_empty() {
                core.metadata = metadata.share(&record);
            }
            core.correlation = reply.as_ref().map(ReplyTo::correlation);
            let content = Content::Bytes(payload.of(&record));
            handler.start(Delivery { core, scope, reply }, content)
        }
    };
    match started {
        Ok(turn) => {
            let kind = if is_first { Kind::First } else { Kind::Work };
            Some(Started::new(
                turn,
                kind,
                flow.map(|flow| traced(flow, object.surface(), packet)),
            ))
        }
        Err(refusal) => {
            refuse(&object.spots.drops, "decode_error", object.surface(), refusal);
            if is_first {
                object.first_is_done();
            }
            None
        }
    }
}

impl Job for SpotJob {
    type Turn = SpotRun;

    fn start(self, now: Instant) -> Option<SpotRun> {
        // What takes a moment to read, or needs no reading.
        let is_short = match &self.work {
            Work::Own(_) => true,
            Work::Call(call) => call.record.len() <= SHORT,
            Work::Tick(_) | Work::Admit(_) | Work::Build(_) => false,
        };
        if !self.object.spots.fence.is_open() {
            return Some(SpotRun {
                object: self.object.clone(),
                running: Running::Waiting(Some(Box::new(self))),
                was_asked: false,
            });
        }
        let (object, started) = self.begin(now)?;
        Some(SpotRun {
            object,
            running: Running::Started(started),
            was_asked: is_short,
        })
    }

    fn abandon(self) {
        if matches!(self.work, Work::Build(_) | Work::Admit(_)) {
            return;
        }
        let error = self.object.why_ended();
        let reply = self.object.clone();
        refuse(
            &reply.spots.drops,
            "shutdown",
            reply.surface(),
            Refusal {
                error,
                reply: self.into_reply(),
            },
        );
    }

    fn size(&self) -> usize {
        match &self.work {
            Work::Call(call) => call.record.len(),
            Work::Own(call) => call.size,
            Work::Tick(_) | Work::Admit(_) | Work::Build(_) => 0,
        }
    }

    fn name(&self) -> String {
        let what = match &self.work {
            Work::Call(call) => call.packet,
            Work::Own(call) => call.packet,
            Work::Tick(ticking) => &ticking.name,
            Work::Admit(_) => "the admission of an Actor",
            Work::Build(_) => "the creation",
        };
        format!("{what} of the {} {}", self.object.noun(), self.object.id)
    }
}

/// What a turn is to its Spot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Build,
    Work,
    /// The first message.
    First,
}

#[derive(Debug)]
struct Started {
    turn: StateTurn,
    kind: Kind,
    traced: Option<Traced>,
}

/// Where somebody traces: what handlers log stands inside the span, and what they call belongs to the flow.
type Traced = Box<(tracing::Span, Flow)>;

fn traced(flow: Flow, surface: &str, name: &str) -> Traced {
    let span = tracing::debug_span!(
        target: "zlink::flow", "handle", surface, packet_name = name, flow_id = %flow.id,
        flow_origin = %flow.origin
    );
    Box::new((span, flow))
}

impl Started {
    fn new(turn: StateTurn, kind: Kind, traced: Option<Traced>) -> Self {
        Self { turn, kind, traced }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(traced) = &self.traced else {
            return execution::Turn::poll(&mut self.turn, cx);
        };
        let (span, flow) = traced.as_ref();
        let _entered = Entered::new(Some(*flow));
        let ended = span.in_scope(|| execution::Turn::poll(&mut self.turn, cx));
        if ended.is_ready() {
            tracing::debug!(target: "zlink::flow", parent: span, phase = "handled", flow_id = %flow.id);
        }
        ended
    }
}

enum Running {
    /// Its host may not run it now.
    Waiting(Option<Box<SpotJob>>),
    Started(Started),
}

/// A job that has started.
pub(crate) struct SpotRun {
    object: Arc<Object>,
    running: Running,
    /// Until its first poll, which follows at once: whether it was asked a moment ago if it may run. What had to be decoded
    /// meanwhile may have taken longer than a moment.
    was_asked: bool,
}

impl execution::Turn for SpotRun {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !std::mem::take(&mut self.was_asked) && !self.object.spots.fence.may_run(cx) {
            return Poll::Pending;
        }
        if let Running::Waiting(job) = &mut self.running {
            match job.take().and_then(|job| job.begin(crate::clock::now())) {
                Some((_, started)) => self.running = Running::Started(started),
                None => return Poll::Ready(()),
            }
        }
        let Running::Started(running) = &mut self.running else {
            return Poll::Ready(());
        };
        let poll = running.poll(cx);
        if poll.is_ready() && running.kind != Kind::Build {
            self.object.has_worked();
            if running.kind == Kind::First {
                self.object.first_is_done();
            }
        }
        poll
    }

    fn has_yielded(&self) -> bool {
        match &self.running {
            Running::Waiting(_) => false,
            Running::Started(started) => started.turn.has_yielded(),
        }
    }

    fn abandon(self, why: Abandoned) {
        let (object, is_first) = (
            self.object,
            matches!(&self.running, Running::Started(started) if started.kind == Kind::First),
        );
        match self.running {
            Running::Waiting(Some(job)) => job.abandon(),
            Running::Waiting(None) => {}
            Running::Started(started) => started.turn.abandon(why.clone()),
        }
        if let Abandoned::Panicked(text) = why {
            // The reply route inside the turn has answered as it was dropped.
            tracing::error!(
                target: "zlink::dispatch", event_id = "zlink.dispatch_error", surface = object.surface(), spot = %object.id,
                outcome = "failed", reason = "handler_exception", text
            );
            object.has_worked();
            if is_first {
                object.first_is_done();
            }
        }
    }

    fn name(&self) -> String {
        format!("a turn of the {} {}", self.object.noun(), self.object.id)
    }
}

impl fmt::Debug for SpotJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Job::name(self))
    }
}
