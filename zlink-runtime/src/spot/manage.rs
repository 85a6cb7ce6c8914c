//! How Spots and Actors of this host begin: created, activated, started with their node (`entry.rs`); and who asks for their end.
//!
//! A Spot that is made holds its gate meanwhile, so that what may wait for it waits in its queue, in order. It must not
//! know who asked, nor what a Spot does.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use tokio::time::Instant;

use crate::channel::{ReplyTo, deadline};
use crate::clock;
use crate::error::{Error, ErrorKind, Execution};
use crate::execution::guarded;
use crate::id::{Generation, MeshName, ObjectGeneration, ObjectKind, Rid, Space, SpotType};
use crate::limit::INBOX_BYTES;
use crate::location::{
    CreationOutcome, Ended, Limits, OperationId, Reservation, Reserve, Reserving, SpotRecord, Terminal,
};
use crate::message::codec;
use crate::transport::BoxFuture;
use crate::wire::{self, Control, RecordKind, SpotOutcome};

use super::controls::UnderWay;
use super::desk::ELSEWHERE;
use super::factory::{Made, MakeError};
use super::find::{check_new, failed};
use super::job::SpotJob;
use super::object::{Object, Phase, let_go};
use super::spots::{Home, Inner};
use super::value::CloseReason;

/// What a Spot is made by.
pub(super) struct Cause {
    pub(super) operation: OperationId,
    pub(super) request: Bytes,
    /// When whoever asked gives up.
    pub(super) deadline: Option<Instant>,
    /// Whether it is told how it ended, after that.
    pub(super) told: bool,
}

/// How the making of a Spot ended.
pub(super) enum Outcome {
    /// With its reply, and how often the store had lost records before it was written.
    Ready(Box<SpotRecord>, Vec<u8>, u64),
    Rejected(Vec<u8>),
    /// Somebody else has the ID, or makes a Spot of it.
    Lost(Box<SpotRecord>),
    /// It was asked for before, and that has ended.
    Over(Ended),
    Failed(Error),
}

impl Inner {
    fn limits(home: &Home, kind: ObjectKind, stable_type: &SpotType) -> Limits {
        let (all, of_types) = match kind {
            ObjectKind::Entry => return Limits::default(),
            ObjectKind::User | ObjectKind::Instance => (home.capacity, &home.capacities),
            ObjectKind::Actor => (home.actor_capacity, &home.actor_capacities),
        };
        let of_type = of_types.get(stable_type).copied();
        Limits { all, of_type }
    }

    /// Reserves, makes, and commits, as one turn of the Spot that is to be.
    pub(super) async fn build(&self, object: &Arc<Object>, cause: Cause) -> Outcome {
        let parts = object.factory.parts();
        let home = &object.home;
        let (inbox, blob) = match self.inbox(&cause.request).await {
            Ok(inbox) => inbox,
            Err(error) => return Outcome::Failed(error),
        };
        let reserve = Reserve {
            id: object.id.clone(),
            kind: parts.kind,
            stable_type: parts.stable_type.clone(),
            mesh: home.mesh.clone(),
            node: home.rid.clone(),
            lifecycle: home.lifecycle,
            operation: cause.operation,
            inbox,
            blob: blob.clone(),
            spot: object.seat(),
            limits: Self::limits(home, parts.kind, &parts.stable_type),
        };
        let reservation = match self.authority.reserve(reserve).await {
            Ok(Reserving::Won(reservation)) => reservation,
            Ok(Reserving::Issued(record) | Reserving::Lost(record)) => {
                self.unpointed(blob);
                return Outcome::Lost(Box::new(record));
            }
            Ok(Reserving::Over(ended)) => {
                self.unpointed(blob);
                return Outcome::Over(ended);
            }
            Ok(Reserving::NoCapacity) => {
                self.unpointed(blob);
                tracing::debug!(
                    target: "zlink::spot", event_id = "zlink.spot.no_capacity", mesh_name = home.mesh.as_str(),
                    stable_type = parts.stable_type.as_str(), "a node has no room for another object"
                );
                let (noun, stable_type) = (object.noun(), &parts.stable_type);
                let text = format!("this node has as many {noun}s of the type {stable_type} as it may");
                return Outcome::Failed(Error::not_executed(ErrorKind::CapacityExceeded, text));
            }
            Err(error) => return Outcome::Failed(failed(&error)),
        };
        let Some(record) = reservation.record().cloned() else {
            return Outcome::Failed(Error::not_executed(ErrorKind::InternalFailure, "a reservation is gone"));
        };
        if !object.is_reserved(record.generation) {
            let text = format!("the {} was taken from its host before it was made", object.noun());
            return Outcome::Failed(Error::not_executed(ErrorKind::Unavailable, text));
        }
        let request = match parts.kind {
            ObjectKind::User | ObjectKind::Actor => cause.request.to_vec(),
            ObjectKind::Entry | ObjectKind::Instance => Vec::new(),
        };
        let life = object.factory.life();
        let making = life.make(object.clone(), request, cause.deadline);
        let made = contained(Box::pin(async move { making.await.and_then(check_reply) })).await;
        let terminal = |outcome, body: &[u8]| {
            let deadline = cause.deadline.unwrap_or_else(clock::now);
            let body = Bytes::copy_from_slice(body);
            cause.told.then_some(Terminal {
                outcome,
                body,
                deadline,
            })
        };
        match made {
            Ok(Ok(Made::Accepted(cell, reply))) => {
                object.has_state(cell);
                let terminal = terminal(CreationOutcome::Created, &reply);
                let losses = self.losses();
                match self.authority.commit(reservation, terminal).await {
                    Ok(record) => {
                        if record.blob.is_none() {
                            self.unpointed(blob);
                        }
                        Outcome::Ready(record, reply, losses)
                    }
                    Err(error) => Outcome::Failed(failed(&error)),
                }
            }
            Ok(Ok(Made::Rejected(reply))) => {
                let terminal = terminal(CreationOutcome::Rejected, &reply);
                match self.authority.abort(reservation, terminal).await {
                    Ok(()) => {
                        self.unpointed(blob);
                        Outcome::Rejected(reply)
                    }
                    Err(error) => Outcome::Failed(failed(&error)),
                }
            }
            Ok(Err(error)) => self.not_made(object, reservation, error, terminal).await,
            Err(panic) => {
                let error = MakeError::Failed(crate::error::HandlerError::new(format!("panicked: {panic}")));
                self.not_made(object, reservation, error, terminal).await
            }
        }
    }

    async fn not_made(
        &self,
        object: &Arc<Object>,
        reservation: Reservation,
        error: MakeError,
        terminal: impl Fn(CreationOutcome, &[u8]) -> Option<Terminal>,
    ) -> Outcome {
        let stable_type = &object.factory.parts().stable_type;
        let (told, terminal) = match error {
            // Nobody has decided about it: nothing is told of it in the store, and another node may be asked the same.
            MakeError::Refused(refused) if refused.execution() == Execution::NotExecuted => {
                tracing::debug!(target: "zlink::spot", spot = %object.id, %stable_type, error = %refused, "an object is not made");
                (refused, None)
            }
            error => {
                tracing::warn!(
                    target: "zlink::spot", event_id = "zlink.spot.not_made", spot = %object.id, %stable_type, %error,
                    "a factory failed"
                );
                let (kind, text) = match error {
                    MakeError::Request(_) => (ErrorKind::ProtocolError, error.to_string()),
                    MakeError::Refused(refused) => (refused.kind(), refused.message().to_owned()),
                    MakeError::Reply(_) => (ErrorKind::InternalFailure, error.to_string()),
                    MakeError::Failed(_) => (
                        ErrorKind::InternalFailure,
                        format!("the factory of {stable_type} failed"),
                    ),
                };
                let terminal = terminal(CreationOutcome::Failed(kind), text.as_bytes());
                (Error::unknown(kind, text), terminal)
            }
        };
        let blob = reservation.record().and_then(|record| record.blob.clone());
        match self.authority.abort(reservation, terminal).await {
            Ok(()) => self.unpointed(blob),
            Err(error) => {
                tracing::warn!(target: "zlink::spot", spot = %object.id, %error, "a reservation is not taken back yet");
            }
        }
        Outcome::Failed(told)
    }

    /// It was made: it may be found from here on.
    pub(super) fn opened(&self, object: &Arc<Object>, record: &SpotRecord, losses: u64) {
        object.is_ready(record);
        object.watch_blob();
        self.remember(record, losses);
        self.subscribers.add(object);
        if object.phase() == Phase::Ended {
            // Whoever ended it was here before it.
            self.subscribers.remove(object);
        }
        if object.home.idle_timeout.is_some() && object.factory.parts().kind == ObjectKind::Instance {
            self.evictable.lock().push_back(Arc::downgrade(object));
        }
        tracing::debug!(target: "zlink::spot", event_id = "zlink.spot.ready", spot = %object.id, generation = record.generation.get());
        if object.is_brief() {
            object.begin_close(CloseReason::ExplicitClose);
        }
    }

    /// It was not made: what waits for it is told why.
    pub(super) fn gave_up(self: &Arc<Self>, object: &Arc<Object>, why: Error) {
        self.remove(object);
        object.stop_with(why);
    }

    /// Answers what a node is asked to do with its Spots.
    pub(super) fn control(
        self: &Arc<Self>,
        (mesh, source): (MeshName, Rid),
        record: Bytes,
        control: Control,
        reply: Option<ReplyTo>,
        at: Instant,
    ) {
        let Some(reply) = reply else { return };
        let is_own = self.home(&mesh).is_some_and(|home| home.rid == source);
        let Some(under_way) = self.controls.begin((mesh.clone(), source.clone())) else {
            let kind = match is_own {
                true => ErrorKind::CapacityExceeded,
                false => ErrorKind::Unavailable,
            };
            let text = "this node makes and ends as many objects for its caller as it does at once";
            return reply.fail(&Error::not_executed(kind, text));
        };
        let deadline = deadline(at, control.timeout_ms);
        let payload = control.payload.of(&record);
        let begun = match control.kind {
            RecordKind::SpotCreate => self.begin_create(ObjectKind::User, (&mesh, &source), payload, deadline),
            RecordKind::ActorCreate => self.begin_create(ObjectKind::Actor, (&mesh, &source), payload, deadline),
            RecordKind::ActorDestroy => self.begin_close_by(Space::Actors, &mesh, payload),
            _ => self.begin_close_by(Space::Spots, &mesh, payload),
        };
        match begun {
            Ok(Asked::Create(object, build)) => self.create(object, *build, reply, under_way),
            Ok(Asked::Close(object)) => {
                let spots = self.clone();
                self.runtime.spawn(async move {
                    let closing = spots.clone();
                    closing.finish_close(object, CloseReason::ExplicitClose, None).await;
                    drop(under_way);
                    spots.answer(reply, wire::SpotClosed { closed: true });
                });
            }
            // Whoever hears of its end may ask for the next.
            Ok(Asked::NotThere) => {
                drop(under_way);
                self.answer(reply, wire::SpotClosed { closed: false });
            }
            Err(error) => {
                drop(under_way);
                reply.fail(&error);
            }
        }
    }

    fn answer<M: codec::Message>(&self, reply: ReplyTo, answer: M) {
        if let Err(error) = reply.answer(answer) {
            tracing::debug!(target: "zlink::spot", %error, "an answer was not sent");
        }
    }

    fn begin_create(
        self: &Arc<Self>,
        kind: ObjectKind,
        (mesh, source): (&MeshName, &Rid),
        payload: &[u8],
        deadline: Option<Instant>,
    ) -> Result<Asked, Error> {
        let refuse = |kind, text: &str| Err(Error::not_executed(kind, text));
        let Ok(asked) = codec::decode::<wire::SpotCreate>(payload) else {
            return refuse(ErrorKind::ProtocolError, "a request to create cannot be read");
        };
        let operation = operation(&asked.source, asked.source_lifecycle, &asked.operation);
        let (Some(operation), Ok(id), Ok(stable_type)) =
            (operation, kind.space().id(&asked.id), SpotType::new(&asked.stable_type))
        else {
            return refuse(
                ErrorKind::ProtocolError,
                "a field of a request to create is out of its bounds",
            );
        };
        if asked.source != source.as_bytes() {
            return refuse(
                ErrorKind::ProtocolError,
                "a request to create names another sender than it came from",
            );
        }
        let home = self
            .home(mesh)
            .filter(|home| home.serves && asked.mesh == mesh.as_str());
        let Some(home) = home.filter(|home| home.lifecycle.to_wire() == asked.target_lifecycle) else {
            return refuse(
                ErrorKind::Unavailable,
                "the request was meant for another run of this node",
            );
        };
        check_new(&id)?;
        let noun = kind.space().noun();
        let Some(factory) = home.factory(kind, &stable_type) else {
            let text = format!("this node has no factory for {noun}s of the type {stable_type}");
            return refuse(ErrorKind::NotFound, &text);
        };
        let object = match kind {
            ObjectKind::Actor => match home.lobby.get() {
                Some(entry) => Object::member(&entry, factory.clone(), id),
                None => None,
            },
            _ => Some(Object::new(self.clone(), home.clone(), factory.clone(), id)),
        };
        let Some(object) = object else {
            return refuse(
                ErrorKind::Unavailable,
                "this node has no Entry Spot that an Actor begins in",
            );
        };
        let cause = Cause {
            operation,
            request: asked.request.into(),
            deadline,
            told: true,
        };
        Ok(Asked::Create(object, Box::new(cause)))
    }

    fn create(self: &Arc<Self>, object: Arc<Object>, cause: Cause, reply: ReplyTo, under_way: UnderWay) {
        let mut table = self.table.lock();
        // With the table in hand: whoever stops the host looks into it after it has said so.
        if !self.takes_new_work() {
            drop((table, under_way));
            let text = format!("this node takes no new {}s now", object.noun());
            return reply.fail(&Error::not_executed(ErrorKind::Unavailable, text));
        }
        match table.get(&object.id) {
            // Whoever asks has found none in the store: what went to another host's has gone there, and there is none.
            Some(there) if there.has_sent_all_on() => there.lane().close(ErrorKind::Unavailable),
            Some(_) => {
                drop((table, under_way));
                // Whoever asked looks at the store again.
                return self.answer(reply, wire::SpotCreated::default());
            }
            None => {}
        }
        let (spots, making) = (self.clone(), object.clone());
        let build: BoxFuture<'static, ()> = Box::pin(async move {
            let built = spots.build(&making, cause).await;
            drop(under_way);
            let answer = match built {
                Outcome::Ready(record, reply, losses) => {
                    spots.opened(&making, &record, losses);
                    created(SpotOutcome::Created, Some(&record), reply)
                }
                other => {
                    let why = Error::not_executed(ErrorKind::NotFound, format!("the {} was not made", making.noun()));
                    spots.gave_up(&making, why);
                    match other {
                        Outcome::Rejected(reply) => created(SpotOutcome::Rejected, None, reply),
                        Outcome::Over(ended) => match ended_before(ended) {
                            Ok(answer) => answer,
                            Err(error) => return reply.fail(&error),
                        },
                        Outcome::Failed(error) => return reply.fail(&error),
                        Outcome::Lost(_) | Outcome::Ready(..) => wire::SpotCreated::default(),
                    }
                }
            };
            spots.answer(reply, answer);
        });
        if SpotJob::build(&object, build) {
            table.insert(object);
        }
    }

    fn begin_close_by(&self, space: Space, mesh: &MeshName, payload: &[u8]) -> Result<Asked, Error> {
        let refuse = |kind, text: &str| Err(Error::not_executed(kind, text));
        let Ok(asked) = codec::decode::<wire::SpotClose>(payload) else {
            return refuse(ErrorKind::ProtocolError, "a request to end cannot be read");
        };
        let (Some(generation), Ok(id)) = (ObjectGeneration::new(asked.generation), space.id(&asked.id)) else {
            return refuse(
                ErrorKind::ProtocolError,
                "a field of a request to end is out of its bounds",
            );
        };
        let home = self
            .home(mesh)
            .filter(|home| home.lifecycle.to_wire() == asked.target_lifecycle);
        if home.is_none() {
            return refuse(
                ErrorKind::Unavailable,
                "the request was meant for another run of this node",
            );
        }
        if !self.fence.is_open() {
            return refuse(
                ErrorKind::Unavailable,
                "this host cannot prove now that it has what is to end",
            );
        }
        let is_there = |object: &Object| match object.phase() {
            Phase::Ready => true,
            // Whoever asks has read in the store that it is made.
            Phase::Creating => object.is_of(generation.get()),
            Phase::Forwarding | Phase::Closing | Phase::Ended => false,
        };
        let ends = |object: &Object| match (space, object.phase()) {
            (Space::Actors, Phase::Closing) => refuse(ErrorKind::Unavailable, "the Actor ends"),
            _ => Ok(Asked::NotThere),
        };
        let there = self.object(&id);
        if there.as_ref().is_some_and(|object| object.home.mesh != *mesh) {
            return refuse(ErrorKind::Unavailable, ELSEWHERE);
        }
        let Some(object) = there else {
            return Ok(Asked::NotThere);
        };
        if !is_there(&object) {
            return ends(&object);
        }
        if object
            .spot()
            .is_some_and(|spot| spot.factory.parts().kind != ObjectKind::Entry)
        {
            let text = "an Actor that is a member of a User Spot leaves it before it ends";
            return refuse(ErrorKind::InvalidOperation, text);
        }
        if object.factory.parts().kind == ObjectKind::Entry {
            return refuse(ErrorKind::InvalidOperation, "an Entry Spot lives as long as its node");
        }
        if object.generation() != generation {
            return refuse(ErrorKind::InvalidOperation, "the reference is of another incarnation");
        }
        // Here and now: whoever asks next finds that it ends.
        match object.seal(ErrorKind::Unavailable) {
            true => Ok(Asked::Close(object)),
            false => ends(&object),
        }
    }
}

/// What a control record asks for.
enum Asked {
    Create(Arc<Object>, Box<Cause>),
    /// It takes nothing new any more.
    Close(Arc<Object>),
    /// There is nothing to close.
    NotThere,
}

/// The store must be able to keep what the caller is answered.
fn check_reply(made: Made) -> Result<Made, MakeError> {
    let (Made::Accepted(_, reply) | Made::Rejected(reply)) = &made;
    let len = reply.len();
    if len <= INBOX_BYTES {
        return Ok(made);
    }
    let_go(None, made);
    let text = format!("it has {len} bytes; a create is answered with at most {INBOX_BYTES}");
    Err(MakeError::Reply(text))
}

fn created(outcome: SpotOutcome, record: Option<&SpotRecord>, reply: Vec<u8>) -> wire::SpotCreated {
    wire::SpotCreated {
        outcome,
        generation: record.map_or(0, |record| record.generation.get()),
        mesh: record.map(|record| record.mesh.as_str().to_owned()).unwrap_or_default(),
        node: record.map(|record| record.node.as_bytes().to_vec()).unwrap_or_default(),
        reply,
    }
}

/// What is answered to whoever asks again for what has ended: the same.
pub(super) fn ended_before(ended: Ended) -> Result<wire::SpotCreated, Error> {
    let outcome = match ended.outcome {
        CreationOutcome::Created => SpotOutcome::Created,
        CreationOutcome::Rejected => SpotOutcome::Rejected,
        CreationOutcome::Failed(kind) => {
            let text = String::from_utf8_lossy(&ended.body).into_owned();
            return Err(Error::unknown(kind, text));
        }
    };
    Ok(wire::SpotCreated {
        outcome,
        generation: ended.generation.get(),
        mesh: ended.mesh.as_str().to_owned(),
        node: ended.node.as_bytes().to_vec(),
        reply: ended.body.into(),
    })
}

pub(super) fn operation(source: &[u8], lifecycle: u64, id: &[u8]) -> Option<OperationId> {
    let id: [u8; 16] = id.try_into().ok()?;
    let operation = OperationId {
        source: Rid::new(source).ok()?,
        lifecycle: Generation::from_wire(lifecycle)?,
        id,
    };
    (id != [0; 16]).then_some(operation)
}

/// Runs what users wrote so that a panic ends there, also one of its drop where nobody waits for it any more; the error is its text.
pub(super) async fn contained<T>(work: BoxFuture<'static, T>) -> Result<T, String> {
    let mut work = Contained(Some(work));
    let polled = poll_fn(
        |cx| match guarded(|| work.0.as_mut().map(|work| work.as_mut().poll(cx))) {
            Ok(Some(poll)) => poll.map(Ok),
            Ok(None) => Poll::Pending,
            Err(panic) => Poll::Ready(Err(panic)),
        },
    );
    polled.await
}

/// There until it is dropped.
struct Contained<T>(Option<BoxFuture<'static, T>>);

impl<T> Drop for Contained<T> {
    fn drop(&mut self) {
        let_go(None, self.0.take());
    }
}

#[cfg(test)]
#[cfg(feature = "testing")]
mod tests;
