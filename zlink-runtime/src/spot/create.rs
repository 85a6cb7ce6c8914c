//! The asking side of a manager: where a new Spot is to be made, who makes it, and what came of it.
//!
//! It must not know how a Spot is made.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;

use crate::channel::{Objects, control};
use crate::clock;
use crate::error::{CallError, Error, ErrorKind, Execution};
use crate::execution::may_wait_for;
use crate::id::{MeshName, ObjectGeneration, ObjectId, ObjectKind, ObjectRef, Rid, Space, SpotType};
use crate::limit::CREATE_BYTES;
use crate::location::{OperationId, Removal, Resolved, SpotRecord, SpotState};
use crate::wire::{self, RecordKind, SpotOutcome};

use super::find::{check_new, failed, unavailable};
use super::manage::ended_before;
use super::spots::{Home, Inner};

/// Between two looks at a Spot that somebody else makes or closes: from, to.
const LOOK: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(200));

/// How a creation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Creation<R> {
    /// It was there already, and nothing was made.
    Existing(ObjectRef),
    Created(ObjectRef, R),
    /// Whoever admits it refused. There is none.
    Rejected(R),
}

/// Somebody who asks for an object, with one deadline for all of it.
pub(crate) struct Asking {
    spots: Arc<Inner>,
    /// Alive as long as the turn of the caller, where that is a handler.
    turn: Option<Weak<()>>,
    /// Of those that can be created: User Spots, or Actors.
    kind: ObjectKind,
    stable_type: SpotType,
    mesh: Option<MeshName>,
    deadline: Instant,
    submitted: Submitted,
}

/// How far an operation has come, for whoever gives up on it.
#[derive(Clone, Default)]
pub(super) struct Submitted(Arc<Progress>);

#[derive(Default)]
struct Progress {
    /// Something of it may have left this process.
    asked: AtomicBool,
    /// A node is being asked: that ends by itself, at the same deadline, and says more.
    asks: AtomicBool,
}

impl Submitted {
    /// Whether a node is being asked.
    pub(super) fn asks(&self) -> bool {
        self.0.asks.load(Ordering::Relaxed)
    }

    /// Whether something of it may have left this process.
    fn has_asked(&self) -> bool {
        self.0.asked.load(Ordering::Relaxed)
    }

    /// An error that says whether something may have run.
    pub(super) fn error(&self, kind: ErrorKind, text: &str) -> Error {
        let execution = if self.has_asked() {
            Execution::Unknown
        } else {
            Execution::NotExecuted
        };
        Error::new(kind, execution, text)
    }
}

fn refused<T>(kind: ErrorKind, text: String) -> Result<T, CallError> {
    Err(Error::not_executed(kind, text).into())
}

/// Whom a creation was asked of so far.
#[derive(Default)]
struct Tried {
    refused_by: Vec<Rid>,
    /// Who was asked last and never answered.
    lost: Option<Rid>,
    last: Option<CallError>,
}

impl Tried {
    /// What whoever asked is told: where somebody was lost, it may have run there, whatever became of it since.
    fn told(&self, error: CallError) -> CallError {
        match error {
            CallError::Failed(error) if self.lost.is_some() && error.execution() == Execution::NotExecuted => {
                Error::unknown(error.kind(), error.message().to_owned()).into()
            }
            error => error,
        }
    }
}

/// What came of asking a node.
enum Asked {
    Answered(Creation<Vec<u8>>),
    /// It does not take it, and says so: another may.
    Elsewhere,
    /// Nothing is known yet.
    Later,
}

impl Asking {
    pub(super) fn new(
        spots: Arc<Inner>,
        turn: Option<Weak<()>>,
        (kind, stable_type): (ObjectKind, SpotType),
        deadline: Instant,
    ) -> Self {
        Self {
            spots,
            turn,
            kind,
            stable_type,
            mesh: None,
            deadline,
            submitted: Submitted::default(),
        }
    }

    pub(super) fn in_mesh(mut self, mesh: MeshName) -> Self {
        self.mesh = Some(mesh);
        self
    }

    pub(super) fn submitted(&self) -> Submitted {
        self.submitted.clone()
    }

    /// What people call what is asked for.
    fn noun(&self) -> &'static str {
        self.kind.space().noun()
    }

    /// Refuses what is not of the type that is asked for, or not of a kind that `is_right`.
    fn check_type(&self, record: &SpotRecord, is_right: impl Fn(ObjectKind) -> bool) -> Result<(), CallError> {
        if is_right(record.kind) && record.stable_type == self.stable_type {
            return Ok(());
        }
        let (id, one) = (record.id.as_str(), record.id.space().one());
        let text = format!("{id:?} is {one} of the type {}", record.stable_type);
        refused(ErrorKind::TypeMismatch, text)
    }

    /// The same of what is created, which has one kind.
    fn check(&self, record: &SpotRecord) -> Result<(), CallError> {
        self.check_type(record, |kind| kind == self.kind)
    }

    pub(crate) async fn find(self, id: &ObjectId) -> Result<Option<ObjectRef>, CallError> {
        // An Instance Spot, which nobody creates, is found, too.
        let is_managed = |kind| kind == self.kind || kind == ObjectKind::Instance;
        let losses = self.spots.losses();
        match self.spots.authority.resolve(id).await {
            Resolved::Ready(record) => {
                self.check_type(&record, is_managed)?;
                self.spots.remember(&record, losses);
                Ok(Some(record.reference()))
            }
            Resolved::Unavailable(record) => {
                self.check_type(&record, is_managed)?;
                let ready = record.state == SpotState::Ready;
                Ok(ready.then(|| record.reference()))
            }
            Resolved::Creating(_) | Resolved::Missing => Ok(None),
            Resolved::Failed(error) => Err(failed(&error).into()),
        }
    }

    /// Creates it; without an ID, under a new one. Who was asked and did not answer may have begun it, and may have ended:
    /// it is the same operation that others are asked for then, so it happens once, and its answer is read where it stands.
    pub(super) async fn create(
        self,
        id: Option<ObjectId>,
        exclusive: bool,
        request: Vec<u8>,
    ) -> Result<Creation<Vec<u8>>, CallError> {
        if request.len() > CREATE_BYTES {
            let text = format!("needs {} bytes; a create carries at most {CREATE_BYTES}", request.len());
            return Err(crate::error::ArgumentError::new("request", text).into());
        }
        let home = self.spots.home_for(self.mesh.as_ref())?.clone();
        let id = match id {
            Some(id) => id,
            None => self
                .kind
                .space()
                .id(self.spots.random.uuid().hyphenated().to_string())
                .map_err(|error| Error::not_executed(ErrorKind::InternalFailure, error.to_string()))?,
        };
        check_new(&id)?;
        let mut tried = Tried::default();
        let made = self.make(&home, &id, exclusive, &request, &mut tried).await;
        made.map_err(|error| tried.told(error))
    }

    async fn make(
        &self,
        home: &Arc<Home>,
        id: &ObjectId,
        exclusive: bool,
        request: &[u8],
        tried: &mut Tried,
    ) -> Result<Creation<Vec<u8>>, CallError> {
        let operation = OperationId {
            source: home.rid.clone(),
            lifecycle: home.lifecycle,
            id: self.spots.random.uuid().into_bytes(),
        };
        let mut pause = LOOK.0;
        loop {
            if clock::now() >= self.deadline {
                let text = format!("the {} was not made in time", self.noun());
                return Err(self.submitted.error(ErrorKind::DeadlineExceeded, &text).into());
            }
            if self.submitted.has_asked() {
                // How it ended came into the store with it, and outlives it: another may be there by now.
                match self.spots.authority.ended(&operation).await {
                    Ok(Some(ended)) => {
                        if let Some(created) = self.created(id, ended_before(ended)?)? {
                            return Ok(created);
                        }
                    }
                    Err(_) if tried.lost.is_some() => {
                        pause = later(pause).await;
                        continue;
                    }
                    Ok(None) | Err(_) => {}
                }
            }
            let losses = self.spots.losses();
            match self.spots.authority.resolve(id).await {
                // It is made: how it ended is there, too.
                Resolved::Ready(record) if record.operation == operation => {}
                Resolved::Ready(record) => {
                    self.check(&record)?;
                    self.spots.remember(&record, losses);
                    if exclusive {
                        let text = format!("there is {} {:?} already", id.space().one(), id.as_str());
                        return refused(ErrorKind::AlreadyExists, text);
                    }
                    return Ok(Creation::Existing(record.reference()));
                }
                Resolved::Creating(record) => {
                    self.check(&record)?;
                    self.may_wait_for_entry(home, &record.node)?;
                    // It may be what asks.
                    Objects::may_wait_for(&*self.spots, &record.id)?;
                }
                Resolved::Unavailable(record) => {
                    // What was there keeps its type, as it keeps its authority; what was not made yet has neither.
                    if record.state == SpotState::Ready {
                        self.check(&record)?;
                    }
                    // Its owner is dead, or fenced off: proved dead, its ID is free.
                    match self.spots.release(&record.reference()).await {
                        Ok(Removal::OwnerAlive) => return Err(unavailable(&record).into()),
                        Ok(_) => continue,
                        Err(error) => return Err(failed(&error).into()),
                    }
                }
                // What was asked for may be under way; only its deadline ends that.
                Resolved::Failed(_) if tried.lost.is_some() => {}
                Resolved::Failed(error) => return Err(failed(&error).into()),
                Resolved::Missing => {
                    // What led to a former one leads nowhere: who makes the next may send to it at once.
                    self.spots.is_misled(id, u64::MAX);
                    match self.ask_somebody(home, id, &operation, request, tried).await? {
                        Asked::Answered(created) => return Ok(created),
                        Asked::Elsewhere => continue,
                        Asked::Later => {}
                    }
                }
            }
            pause = later(pause).await;
        }
    }

    /// There is none: asks a node to make it.
    async fn ask_somebody(
        &self,
        home: &Arc<Home>,
        id: &ObjectId,
        operation: &OperationId,
        request: &[u8],
        tried: &mut Tried,
    ) -> Result<Asked, CallError> {
        let place = match self.spots.place(home, self.kind, &self.stable_type, &tried.refused_by) {
            Ok(place) => place,
            // It may come back.
            Err(_) if tried.lost.as_ref().is_some_and(|node| home.links.expects(node)) => return Ok(Asked::Later),
            Err(error) => return Err(tried.last.take().unwrap_or_else(|| error.into())),
        };
        if let Err(error) = self.may_wait_for_entry(home, &place.rid) {
            // Another node may have it.
            tried.refused_by.push(place.rid);
            tried.last.get_or_insert(error.into());
            return Ok(Asked::Elsewhere);
        }
        let question = wire::SpotCreate {
            id: id.as_str().to_owned(),
            stable_type: self.stable_type.as_str().to_owned(),
            mesh: home.mesh.as_str().to_owned(),
            target_lifecycle: place.lifecycle.to_wire(),
            source: operation.source.as_bytes().to_vec(),
            source_lifecycle: operation.lifecycle.to_wire(),
            operation: operation.id.to_vec(),
            request: request.to_vec(),
        };
        let record = match self.kind.space() {
            Space::Spots => RecordKind::SpotCreate,
            Space::Actors => RecordKind::ActorCreate,
        };
        let asking = self.ask::<_, wire::SpotCreated>(&home.mesh, &place.rid, record, question);
        match asking.await {
            // Somebody else was first, where it says nothing.
            Ok(answer) => Ok(self.created(id, answer)?.map_or(Asked::Later, Asked::Answered)),
            Err(error) if may_go_elsewhere(&error) => {
                tried.refused_by.push(place.rid);
                // What is not known of the one that was lost is not known because of this one either.
                if tried.lost.is_none() {
                    tried.last = Some(error);
                }
                Ok(Asked::Elsewhere)
            }
            Err(error) if is_lost(&error) => {
                tried.lost = Some(place.rid);
                tried.last = Some(error);
                Ok(Asked::Later)
            }
            Err(error) => Err(never_admitted(error)),
        }
    }

    /// Whether the turn that asks may wait until that node has made it: an Actor is made in a turn of its Entry Spot.
    fn may_wait_for_entry(&self, home: &Home, node: &Rid) -> Result<(), Error> {
        let entry = match self.kind {
            ObjectKind::Actor if *node == home.rid => home.lobby.get(),
            _ => None,
        };
        entry.map_or(Ok(()), |entry| {
            may_wait_for(entry.lane()).map_err(|error| {
                let text = "an Entry Spot would wait for itself: it decides about every new Actor of its node, after this turn";
                Error::not_executed(error.kind(), text)
            })
        })
    }

    fn created(&self, id: &ObjectId, answer: wire::SpotCreated) -> Result<Option<Creation<Vec<u8>>>, CallError> {
        let reference = || {
            Some(ObjectRef::new(
                id.clone(),
                ObjectGeneration::new(answer.generation)?,
                MeshName::new(&answer.mesh).ok()?,
                Rid::new(&answer.node).ok()?,
            ))
        };
        let bad = || Error::unknown(ErrorKind::ProtocolError, "the answer to a create cannot be used");
        match answer.outcome {
            SpotOutcome::Unspecified => Ok(None),
            SpotOutcome::Created => {
                let spot = reference().ok_or_else(bad)?;
                Ok(Some(Creation::Created(spot, answer.reply)))
            }
            SpotOutcome::Existing => Ok(Some(Creation::Existing(reference().ok_or_else(bad)?))),
            SpotOutcome::Rejected => Ok(Some(Creation::Rejected(answer.reply))),
            SpotOutcome::Unknown(_) => Err(bad().into()),
        }
    }

    async fn ask<Q: crate::message::codec::Message, R: crate::message::codec::Message>(
        &self,
        mesh: &MeshName,
        node: &Rid,
        kind: RecordKind,
        question: Q,
    ) -> Result<R, CallError> {
        self.submitted.0.asked.store(true, Ordering::Relaxed);
        let left = self
            .deadline
            .saturating_duration_since(clock::now())
            .max(Duration::from_millis(1));
        let from = (&self.spots.outbound, self.turn.clone());
        self.submitted.0.asks.store(true, Ordering::Relaxed);
        let answer = control(from, (mesh, node.clone()), kind, question, left).await;
        self.submitted.0.asks.store(false, Ordering::Relaxed);
        answer
    }

    pub(crate) async fn close(self, spot: &ObjectRef) -> Result<bool, CallError> {
        let record = match self.spots.authority.resolve(&spot.id()).await {
            Resolved::Missing => return Ok(false),
            Resolved::Failed(error) => return Err(failed(&error).into()),
            Resolved::Ready(record) | Resolved::Creating(record) | Resolved::Unavailable(record)
                if record.generation != spot.generation() =>
            {
                return Err(stale().into());
            }
            Resolved::Creating(_) => return Ok(false),
            Resolved::Unavailable(record) => {
                self.check(&record)?;
                return match self.spots.release(spot).await {
                    Ok(Removal::Removed) => Ok(true),
                    Ok(Removal::Missing) => Ok(false),
                    Ok(Removal::Other(_)) => Err(stale().into()),
                    Ok(Removal::OwnerAlive) => Err(unavailable(&record).into()),
                    Err(error) => Err(failed(&error).into()),
                };
            }
            Resolved::Ready(record) => record,
        };
        self.check(&record)?;
        // A turn of it would wait for its own end.
        Objects::may_wait_for(&*self.spots, &record.id)?;
        let kind = match self.kind.space() {
            Space::Spots => RecordKind::SpotClose,
            Space::Actors => RecordKind::ActorDestroy,
        };
        let question = wire::SpotClose {
            id: record.id.as_str().to_owned(),
            generation: record.generation.get(),
            target_lifecycle: record.lifecycle.to_wire(),
        };
        let answer: wire::SpotClosed = self.ask(&record.mesh, &record.node, kind, question).await?;
        self.spots.is_misled(&record.id, record.version.get());
        Ok(answer.closed)
    }

    pub(crate) async fn release(self, spot: &ObjectRef) -> Result<bool, CallError> {
        // What is not known to have been written when its time is up may be written later.
        self.submitted.0.asked.store(true, Ordering::Relaxed);
        match self.spots.release(spot).await {
            Ok(Removal::Removed) => {
                self.spots.is_misled(&spot.id(), u64::MAX);
                Ok(true)
            }
            Ok(Removal::Missing) => Ok(false),
            Ok(Removal::Other(_)) => Err(stale().into()),
            Ok(Removal::OwnerAlive) => refused(
                ErrorKind::InvalidOperation,
                format!("the host of the {} lives; it can be ended instead", self.noun()),
            ),
            Err(error) => Err(failed(&error).into()),
        }
    }
}

/// Waits so long before another look. Returns how long to wait before the one after it.
async fn later(pause: Duration) -> Duration {
    tokio::time::sleep(pause).await;
    (pause * 2).min(LOOK.1)
}

fn stale() -> Error {
    Error::not_executed(
        ErrorKind::InvalidOperation,
        "the reference is of another incarnation than there is now",
    )
}

/// Whether the one that was asked was lost before it answered: nobody knows how far it came.
fn is_lost(error: &CallError) -> bool {
    error.execution() == Execution::Unknown && error.kind() == Some(ErrorKind::Unavailable)
}

/// What no node has taken until its deadline did not begin.
fn never_admitted(error: CallError) -> CallError {
    match (error.kind(), error.execution()) {
        (Some(ErrorKind::DeadlineExceeded), Execution::NotExecuted) => {
            let text = "no node took the request before its deadline";
            Error::not_executed(ErrorKind::Unavailable, text).into()
        }
        _ => error,
    }
}

/// Whether another node can be asked: this one did nothing, and says so.
fn may_go_elsewhere(error: &CallError) -> bool {
    let kinds = [
        ErrorKind::Unavailable,
        ErrorKind::CapacityExceeded,
        ErrorKind::NotFound,
        ErrorKind::ShuttingDown,
    ];
    error.execution() == Execution::NotExecuted && error.kind().is_some_and(|kind| kinds.contains(&kind))
}
