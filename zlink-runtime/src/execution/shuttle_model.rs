//! Randomised model checks of what is too large to search: the lease of a gate with yields that resume and that lose a
//! select, and admission against a queue that moves.
//!
//! `scripts/model shuttle shuttle_`

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;
use tokio::time::Instant;

use super::gate::{Ready, Run as _};
use super::mode::{Callback, Mode, Unit};
use super::queue::Phase;
use super::seal::{Arrival, First, Seal};
use super::turn::{Ended, Scope, StateCell, StateTurn, YieldTurn, Yields};
use super::worker::Budget;
use super::{Job, Owner};
use crate::error::{CallError, ErrorKind};
use crate::permit::{HostPermits, Permit};

#[derive(Default)]
struct Sleep {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Sleep {
    fn wait(&self) {
        let mut woken = self.woken.lock().unwrap();
        while !*woken {
            woken = self.changed.wait(woken).unwrap();
        }
        *woken = false;
    }
}

impl Wake for Sleep {
    fn wake(self: Arc<Self>) {
        *self.woken.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let sleep = Arc::<Sleep>::default();
    let waker = Waker::from(sleep.clone());
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        sleep.wait();
    }
}

fn work(ready: &Ready, index: usize) {
    let sleep = Arc::<Sleep>::default();
    let waker = Waker::from(sleep.clone());
    loop {
        match ready.poll_take(index, &waker) {
            Poll::Ready(None) => return,
            Poll::Ready(Some(owner)) => owner.run(&mut Budget::new(None)),
            Poll::Pending => sleep.wait(),
        }
    }
}

/// Something to wait for that another thread brings about.
#[derive(Clone, Default)]
struct Signal(Arc<(AtomicUsize, Mutex<Option<Waker>>)>);

impl Signal {
    fn give(&self) {
        let waker = {
            let mut place = self.0.1.lock().unwrap();
            self.0.0.store(1, Ordering::SeqCst);
            place.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Future for Signal {
    type Output = Result<(), CallError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut place = self.0.1.lock().unwrap();
        if self.0.0.load(Ordering::SeqCst) == 1 {
            return Poll::Ready(Ok(()));
        }
        *place = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Yields for Signal {
    type Reply = ();
}

type Start = Box<dyn FnOnce() -> Option<StateTurn> + Send>;

struct Work(Start);

impl Job for Work {
    type Turn = StateTurn;

    fn start(self, _: Instant) -> Option<StateTurn> {
        (self.0)()
    }

    fn abandon(self) {
        panic!("nothing is stopped here");
    }
}

/// The state of the owner, and who is at it.
#[derive(Default)]
struct Room {
    steps: Vec<&'static str>,
}

type Running<'t> = Pin<Box<dyn Future<Output = Ended> + Send + 't>>;

fn job<S, F>(owner: &Owner<Work>, cell: &StateCell<S>, handler: F) -> Work
where
    S: Send + 'static,
    F: for<'t> FnOnce(&'t mut YieldTurn<'t, S>) -> Running<'t> + Send + 'static,
{
    let scope = Scope::new(owner, Mode::SpotWide.offers(Callback::Unit, false));
    let cell = cell.clone();
    Work(Box::new(move || Some(StateTurn::new(&cell, scope, handler))))
}

fn permit(permits: &HostPermits) -> Permit {
    permits.source().try_acquire(1).unwrap().take().unwrap()
}

/// Alone at the state, for a moment in which others could come.
fn step(turn: &mut YieldTurn<'_, Room>, inside: &AtomicUsize, name: &'static str) {
    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "the gate excludes");
    turn.state().steps.push(name);
    thread::yield_now();
    inside.fetch_sub(1, Ordering::SeqCst);
}

/// Two workers, two turns, one completion; `late` is what a select may end with instead.
fn leases(selects: bool) {
    let (ready, permits) = (Arc::new(Ready::new()), HostPermits::new(8));
    let unit = Unit::<Work>::in_phase(&ready, Mode::SpotWide, Phase::Open);
    let owner = unit.lane().clone();
    let cell = StateCell::new(&owner, Room::default());
    let inside = Arc::new(AtomicUsize::new(0));
    let (call, late, hold) = (Signal::default(), Signal::default(), Signal::default());
    let first = {
        let (inside, call, late, hold) = (inside.clone(), call.clone(), late.clone(), hold.clone());
        job(&owner, &cell, move |turn| {
            Box::pin(async move {
                step(turn, &inside, "a1");
                if selects {
                    let mut yielding = Box::pin(turn.yield_for(call));
                    let mut late = Box::pin(late);
                    std::future::poll_fn(|cx| {
                        let answered = yielding.as_mut().poll(cx).is_ready();
                        if answered || late.as_mut().poll(cx).is_ready() {
                            Poll::Ready(())
                        } else {
                            Poll::Pending
                        }
                    })
                    .await;
                } else {
                    turn.yield_for(call).await.unwrap();
                }
                // From here on it keeps the gate, whichever way it came.
                step(turn, &inside, "a2");
                hold.await.unwrap();
                step(turn, &inside, "a3");
                Ended::Well
            })
        })
    };
    let second = {
        let inside = inside.clone();
        job(&owner, &cell, move |turn| {
            Box::pin(async move {
                step(turn, &inside, "b");
                Ended::Well
            })
        })
    };
    let workers = [0, 1].map(|index| {
        let ready = ready.clone();
        thread::spawn(move || work(&ready, index))
    });
    assert!(owner.admit(first, permit(&permits)).is_ok());
    let completes = thread::spawn(move || {
        call.give();
        late.give();
        hold.give();
    });
    assert!(owner.admit(second, permit(&permits)).is_ok());
    owner.close(ErrorKind::ShuttingDown);
    block_on(owner.drained());
    completes.join().unwrap();
    let steps = cell.take().unwrap().steps;
    let place = |name| steps.iter().position(|step| *step == name).unwrap();
    assert_eq!(steps.len(), 4, "{steps:?}");
    assert_eq!(
        place("a3"),
        place("a2") + 1,
        "the gate was given away under a hold: {steps:?}"
    );
    assert_eq!(permits.in_use(), 0);
    ready.close();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
}

/// REQ: EX-03, EX-11, EX-21, EX-26
#[test]
fn shuttle_a_turn_that_yields_goes_on_once_and_with_its_gate() {
    shuttle::check_random(|| leases(false), 3_000);
    shuttle::check_pct(|| leases(false), 3_000, 3);
}

/// REQ: EX-11, EX-26
#[test]
fn shuttle_a_yield_that_loses_a_select_keeps_the_gate() {
    shuttle::check_random(|| leases(true), 3_000);
    shuttle::check_pct(|| leases(true), 3_000, 3);
}

/// A state that counts how often it was dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Turns of two gates have a state in turn, while somebody takes it out for good: it is dropped by then, though its cell stays,
/// and nobody waits for it any more.
fn ends() {
    use super::turn::States as _;
    let (ready, permits) = (Arc::new(Ready::new()), HostPermits::new(8));
    let lanes = [(); 2].map(|()| {
        Unit::<Work>::in_phase(&ready, Mode::SpotWide, Phase::Open)
            .lane()
            .clone()
    });
    let dropped = Arc::new(AtomicUsize::new(0));
    let cell = StateCell::new(&lanes[0], Counted(dropped.clone()));
    let workers = [0, 1].map(|index| {
        let ready = ready.clone();
        thread::spawn(move || work(&ready, index))
    });
    for owner in &lanes {
        let turn = job(owner, &cell, |turn| {
            Box::pin(async move {
                turn.hold().await;
                thread::yield_now();
                Ended::Well
            })
        });
        assert!(owner.admit(turn, permit(&permits)).is_ok());
    }
    drop(cell.cell().unwrap().end());
    for owner in &lanes {
        owner.close(ErrorKind::ShuttingDown);
        block_on(owner.drained());
    }
    ready.close();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    drop(cell);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

/// REQ: LS-033
#[test]
fn shuttle_a_state_that_is_taken_while_turns_have_it_is_dropped_once() {
    shuttle::check_random(ends, 3_000);
    shuttle::check_pct(ends, 3_000, 3);
}

/// A queue moves from one owner to another while somebody sends to it: what was admitted runs once, in order, at one of
/// them, and what was not is told so.
fn moves() {
    const JOBS: u32 = 4;
    let (ready, permits) = (Arc::new(Ready::new()), HostPermits::new(16));
    let here = Unit::<Work>::in_phase(&ready, Mode::SpotWide, Phase::Open)
        .lane()
        .clone();
    let there = Unit::<Work>::in_phase(&ready, Mode::SpotWide, Phase::Holding)
        .lane()
        .clone();
    let cells = [&here, &there].map(|owner| StateCell::new(owner, Room::default()));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let numbered = {
        let (here, cell, seen) = (here.clone(), cells[0].clone(), seen.clone());
        move |number: u32| {
            let seen = seen.clone();
            job(&here, &cell, move |_| {
                Box::pin(async move {
                    seen.lock().unwrap().push(number);
                    Ended::Well
                })
            })
        }
    };
    let workers = [0, 1].map(|index| {
        let ready = ready.clone();
        thread::spawn(move || work(&ready, index))
    });
    let sender = thread::spawn({
        let (here, there, permits) = (here.clone(), there.clone(), permits.clone());
        move || {
            for number in 0..JOBS {
                if let Err(rejected) = here.admit(numbered(number), permit(&permits)) {
                    assert_eq!(rejected.kind, ErrorKind::Unavailable);
                    assert!(there.admit(rejected.job, rejected.permit.unwrap()).is_ok());
                }
            }
        }
    });
    let seal = Seal::new(vec![here.clone()]).unwrap_or_else(|kind| panic!("{kind}"));
    block_on(seal.boundary());
    let saved = seal.capture().unwrap();
    let arrival = Arrival::new(vec![there.clone()]);
    for job in seal
        .take_held()
        .remove(0)
        .into_iter()
        .chain(seal.depart(ErrorKind::Unavailable).remove(0))
    {
        assert!(arrival.relay(0, job).is_ok());
    }
    arrival.open(saved, vec![block_on(First::of(permits.backlog())).unwrap()]);
    sender.join().unwrap();
    for owner in [here, there] {
        owner.close(ErrorKind::ShuttingDown);
        block_on(owner.drained());
    }
    assert_eq!(*seen.lock().unwrap(), (0..JOBS).collect::<Vec<_>>());
    assert_eq!(permits.in_use(), 0);
    ready.close();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
}

/// REQ: EX-54, EX-57, PM-51
#[test]
fn shuttle_admission_and_a_seal_leave_each_job_in_one_queue() {
    shuttle::check_random(moves, 3_000);
    shuttle::check_pct(moves, 3_000, 3);
}
