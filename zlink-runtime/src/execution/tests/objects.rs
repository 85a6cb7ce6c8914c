//! Small objects under every kind of gate: what Spots and Actors will be to this room.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::settle;
use crate::error::{CallError, Error, ErrorKind};
use crate::execution::mode::{Callback, Mode, Offers, Unit};
use crate::execution::turn::{Ended, Scope, StateCell, StateTurn, YieldTurn, Yields};
use crate::execution::{Job, Owner, Rejected, Workers};
use crate::permit::{HostPermits, Permit, Source};

pub(super) type Running<'t> = Pin<Box<dyn Future<Output = Ended> + Send + 't>>;

/// The state of every object here.
#[derive(Debug, Default)]
pub(super) struct Room {
    pub(super) value: u32,
    pub(super) seats: Vec<u32>,
}

pub(super) struct ObjectJob {
    pub(super) name: String,
    log: Arc<Mutex<Vec<String>>>,
    start: Box<dyn FnOnce(Instant) -> Option<StateTurn> + Send>,
}

impl ObjectJob {
    pub(super) fn new(
        world: &World,
        name: &str,
        start: impl FnOnce(Instant) -> Option<StateTurn> + Send + 'static,
    ) -> Self {
        Self {
            name: name.to_owned(),
            log: world.log.clone(),
            start: Box::new(start),
        }
    }
}

impl ObjectJob {
    /// The same, for where no world is at hand.
    pub(super) fn noted_in(
        log: Arc<Mutex<Vec<String>>>,
        name: &str,
        start: impl FnOnce(Instant) -> Option<StateTurn> + Send + 'static,
    ) -> Self {
        Self {
            name: name.to_owned(),
            log,
            start: Box::new(start),
        }
    }

    /// The same, with something that it holds until it starts.
    pub(super) fn with(self, held: impl Send + 'static) -> Self {
        let start = self.start;
        Self {
            start: Box::new(move |now| {
                drop(held);
                start(now)
            }),
            ..self
        }
    }
}

/// Helps the compiler to see a handler.
pub(super) fn over<S: Send + 'static>(
    handler: impl for<'t> FnOnce(&'t mut YieldTurn<'t, S>) -> Running<'t> + Send + 'static,
) -> impl for<'t> FnOnce(&'t mut YieldTurn<'t, S>) -> Running<'t> + Send + 'static {
    handler
}

impl Job for ObjectJob {
    type Turn = StateTurn;

    fn start(self, now: Instant) -> Option<StateTurn> {
        (self.start)(now)
    }

    fn abandon(self) {
        self.log.lock().push(format!("{} never started", self.name));
    }

    fn size(&self) -> usize {
        self.name.len()
    }
}

pub(super) struct World {
    pub(super) workers: Workers,
    pub(super) permits: HostPermits,
    source: Source,
    log: Arc<Mutex<Vec<String>>>,
    /// Turns that are polled right now, and the most that ever were at once.
    inside: Arc<(AtomicUsize, AtomicUsize)>,
}

impl World {
    pub(super) fn new(workers: usize) -> Self {
        let permits = HostPermits::new(100_000);
        Self {
            workers: Workers::spawn(&Handle::current(), workers),
            source: permits.source(),
            permits,
            log: Arc::default(),
            inside: Arc::default(),
        }
    }

    pub(super) fn permit(&self) -> Permit {
        self.source.try_acquire(1).unwrap().take().unwrap()
    }

    pub(super) fn unit(&self, mode: Mode) -> Object {
        self.unit_of(Unit::on(&self.workers.handle(), mode))
    }

    pub(super) fn unit_of(&self, unit: Unit<ObjectJob>) -> Object {
        let owner = unit.lane().clone();
        Object {
            cell: StateCell::new(&owner, Room::default()),
            owner,
            offers: unit.mode().offers(Callback::Unit, true),
            unit: Arc::new(unit),
        }
    }

    pub(super) fn log(&self) -> Vec<String> {
        self.log.lock().clone()
    }

    pub(super) fn noted_by(&self) -> Arc<Mutex<Vec<String>>> {
        self.log.clone()
    }

    pub(super) fn noting(&self) -> impl Fn(&str) + Send + Sync + Clone + 'static + use<> {
        let log = self.log.clone();
        move |text| log.lock().push(text.to_owned())
    }

    /// The most turns that were ever polled at once.
    pub(super) fn most(&self) -> usize {
        self.inside.1.load(Ordering::SeqCst)
    }

    /// Notes when a poll begins and ends, and how many do so at once.
    pub(super) fn watched<F: Future>(&self, future: F) -> Watched<F> {
        Watched {
            inside: self.inside.clone(),
            future: Box::pin(future),
        }
    }
}

pub(super) struct Watched<F> {
    inside: Arc<(AtomicUsize, AtomicUsize)>,
    future: Pin<Box<F>>,
}

impl<F> Watched<F> {
    fn within<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let now = self.inside.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.inside.1.fetch_max(now, Ordering::SeqCst);
        std::thread::yield_now();
        let result = work(self);
        self.inside.0.fetch_sub(1, Ordering::SeqCst);
        result
    }
}

impl<F: Future> Future for Watched<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.within(|this| this.future.as_mut().poll(cx))
    }
}

impl<F> Drop for Watched<F> {
    fn drop(&mut self) {
        self.within(|_| ());
    }
}

/// An owner with a state.
#[derive(Clone)]
pub(super) struct Object {
    pub(super) owner: Owner<ObjectJob>,
    pub(super) cell: StateCell<Room>,
    pub(super) offers: Offers,
    pub(super) unit: Arc<Unit<ObjectJob>>,
}

impl Object {
    pub(super) fn member(&self) -> Self {
        let owner = self.unit.member().unwrap();
        Self {
            cell: StateCell::new(&owner, Room::default()),
            owner,
            offers: self.unit.mode().offers(Callback::Member, true),
            unit: self.unit.clone(),
        }
    }

    pub(super) fn timer(&self) -> Self {
        Self {
            owner: self.unit.timer(),
            ..self.clone()
        }
    }

    pub(super) fn job<F>(&self, world: &World, name: &str, handler: F) -> ObjectJob
    where
        F: for<'t> FnOnce(&'t mut YieldTurn<'t, Room>) -> Running<'t> + Send + 'static,
    {
        self.job_with(world, name, self.offers, handler)
    }

    pub(super) fn job_with<F>(&self, world: &World, name: &str, offers: Offers, handler: F) -> ObjectJob
    where
        F: for<'t> FnOnce(&'t mut YieldTurn<'t, Room>) -> Running<'t> + Send + 'static,
    {
        let (cell, owner) = (self.cell.clone(), self.owner.clone());
        ObjectJob::new(world, name, move |_| {
            Some(StateTurn::new(&cell, Scope::new(&owner, offers), handler))
        })
    }

    pub(super) fn tell<F>(&self, world: &World, name: &str, handler: F)
    where
        F: for<'t> FnOnce(&'t mut YieldTurn<'t, Room>) -> Running<'t> + Send + 'static,
    {
        let job = self.job(world, name, handler);
        assert!(self.owner.admit(job, world.permit()).is_ok(), "{name} is not admitted");
    }

    /// A job that holds its gate until `until` is ready.
    pub(super) fn hold(&self, world: &World, until: impl Future<Output = ()> + Send + 'static) {
        self.tell(world, "holds", |_| {
            Box::pin(async move {
                until.await;
                Ended::Well
            })
        });
    }

    /// A job that only notes its name.
    pub(super) fn probe(&self, world: &World, name: &str) {
        let job = self.noted(world, name);
        assert!(self.owner.admit(job, world.permit()).is_ok(), "{name} is not admitted");
    }

    pub(super) fn noted(&self, world: &World, name: &str) -> ObjectJob {
        let (note, text) = (world.noting(), name.to_owned());
        self.job(world, name, move |_| {
            Box::pin(async move {
                note(&text);
                Ended::Well
            })
        })
    }

    pub(super) fn lifecycle(&self, world: &World, name: &str) -> Result<u64, Rejected<ObjectJob>> {
        self.owner.admit_lifecycle(self.noted(world, name))
    }
}

/// A call whose answer the test gives.
pub(super) struct Ask {
    answer: oneshot::Receiver<u32>,
    submitted: Arc<AtomicUsize>,
}

/// The other side of an [`Ask`].
pub(super) struct Answer {
    answer: oneshot::Sender<u32>,
    submitted: Arc<AtomicUsize>,
}

pub(super) fn ask() -> (Ask, Answer) {
    let (tell, answer) = oneshot::channel();
    let submitted = Arc::<AtomicUsize>::default();
    let ask = Ask {
        answer,
        submitted: submitted.clone(),
    };
    (
        ask,
        Answer {
            answer: tell,
            submitted,
        },
    )
}

impl Answer {
    pub(super) fn give(self, value: u32) {
        self.answer.send(value).unwrap();
    }

    /// Whether nobody waits for it any more.
    pub(super) fn lost(&self) -> bool {
        self.answer.is_closed()
    }

    pub(super) fn submitted(&self) -> usize {
        self.submitted.load(Ordering::SeqCst)
    }
}

impl IntoFuture for Ask {
    type Output = Result<u32, CallError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            self.submitted.fetch_add(1, Ordering::SeqCst);
            let lost = || CallError::Failed(Error::unknown(ErrorKind::Unavailable, "the answer is lost"));
            self.answer.await.map_err(|_| lost())
        })
    }
}

impl Yields for Ask {
    type Reply = u32;
}

/// Lets all run until only what waits is left, and says what was noted.
pub(super) async fn rest(world: &World) -> Vec<String> {
    settle().await;
    world.log()
}
