//! Model checks: admission against workers, wake-ups against parking, a stop against everything.
//!
//! `scripts/model loom loom_`

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Mutex, Notify};
use loom::thread;
use tokio::time::Instant;

use super::gate::{Ready, Run as _};
use super::owner::Owner;
use super::worker::Budget;
use super::{Abandoned, Job, Turn};
use crate::error::ErrorKind;
use crate::permit::{HostPermits, Permit};

struct Sleep(Notify);

impl Wake for Sleep {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

/// What the jobs of one run did.
#[derive(Default)]
struct Seen {
    done: AtomicUsize,
    stopped: AtomicUsize,
    never: AtomicUsize,
    inside: AtomicUsize,
}

/// A job that waits once for a wake-up, if it has a place for its waker.
struct Step {
    seen: Arc<Seen>,
    waits: Option<Arc<Call>>,
}

/// What a turn waits for: another thread answers it.
struct Call {
    answered: AtomicUsize,
    waker: Mutex<Option<Waker>>,
}

impl Call {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            answered: AtomicUsize::new(0),
            waker: Mutex::new(None),
        })
    }

    fn answer(&self) {
        let waker = {
            let mut place = self.waker.lock().unwrap();
            self.answered.store(1, Ordering::Relaxed);
            place.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Job for Step {
    type Turn = Self;

    fn start(self, _: Instant) -> Option<Self> {
        Some(self)
    }

    fn abandon(self) {
        self.seen.never.fetch_add(1, Ordering::SeqCst);
    }
}

impl Turn for Step {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        assert_eq!(self.seen.inside.fetch_add(1, Ordering::SeqCst), 0, "the gate excludes");
        let poll = match &self.waits {
            None => Poll::Ready(()),
            Some(call) => {
                let mut place = call.waker.lock().unwrap();
                if call.answered.load(Ordering::Relaxed) == 1 {
                    Poll::Ready(())
                } else {
                    *place = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        };
        self.seen.inside.fetch_sub(1, Ordering::SeqCst);
        if poll.is_ready() {
            self.seen.done.fetch_add(1, Ordering::SeqCst);
        }
        poll
    }

    fn abandon(self, _: Abandoned) {
        self.seen.stopped.fetch_add(1, Ordering::SeqCst);
    }
}

/// A worker's loop, until the ready set is closed and empty.
fn work(ready: &Ready, index: usize) {
    let sleep = Arc::new(Sleep(Notify::new()));
    let waker = Waker::from(sleep.clone());
    loop {
        match ready.poll_take(index, &waker) {
            Poll::Ready(None) => return,
            Poll::Ready(Some(owner)) => owner.run(&mut Budget::new(None)),
            Poll::Pending => sleep.0.wait(),
        }
    }
}

fn drained<J: Job>(owner: &Owner<J>) {
    let sleep = Arc::new(Sleep(Notify::new()));
    let waker = Waker::from(sleep.clone());
    while std::pin::pin!(owner.drained())
        .poll(&mut Context::from_waker(&waker))
        .is_pending()
    {
        sleep.0.wait();
    }
}

fn permit(permits: &HostPermits) -> Permit {
    permits.source().try_acquire(1).unwrap().take().unwrap()
}

/// A bounded search: all interleavings with at most two switches that the code did not ask for.
fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 10_000;
    builder.check(model);
}

/// REQ: PM-50, EX-03
#[test]
fn loom_a_job_is_never_left_in_its_queue() {
    check(|| {
        let (ready, seen, permits) = (Arc::new(Ready::new()), Arc::new(Seen::default()), HostPermits::new(4));
        let owner = Owner::with_ready(&ready, 1);
        let worker = thread::spawn({
            let ready = ready.clone();
            move || work(&ready, 0)
        });
        let admit = {
            let (owner, seen, permits) = (owner.clone(), seen.clone(), permits.clone());
            move || {
                assert!(
                    owner
                        .admit(
                            Step {
                                seen: seen.clone(),
                                waits: None
                            },
                            permit(&permits)
                        )
                        .is_ok()
                )
            }
        };
        let other = thread::spawn(admit.clone());
        admit();
        other.join().unwrap();
        owner.close(ErrorKind::ShuttingDown);
        drained(&owner);
        assert_eq!((seen.done.load(Ordering::SeqCst), permits.in_use()), (2, 0));
        ready.close();
        worker.join().unwrap();
    });
}

/// REQ: EX-03, EX-11, PM-50
#[test]
fn loom_a_turn_is_found_by_its_waker() {
    check(|| {
        let (ready, seen, permits) = (Arc::new(Ready::new()), Arc::new(Seen::default()), HostPermits::new(4));
        let (owner, call) = (Owner::with_ready(&ready, 1), Call::new());
        let job = Step {
            seen: seen.clone(),
            waits: Some(call.clone()),
        };
        assert!(owner.admit(job, permit(&permits)).is_ok());
        let workers = [0, 1].map(|index| {
            let ready = ready.clone();
            thread::spawn(move || work(&ready, index))
        });
        call.answer();
        owner.close(ErrorKind::ShuttingDown);
        drained(&owner);
        assert_eq!(seen.done.load(Ordering::SeqCst), 1);
        ready.close();
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

/// A turn that is done once it sees the word, whoever woke it.
struct Reader {
    word: Arc<AtomicUsize>,
    waker: Arc<std::sync::Mutex<Option<Waker>>>,
}

impl Job for Reader {
    type Turn = Self;

    fn start(self, _: Instant) -> Option<Self> {
        Some(self)
    }

    fn abandon(self) {}
}

impl Turn for Reader {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        *self.waker.lock().unwrap() = Some(cx.waker().clone());
        if self.word.load(Ordering::Relaxed) == 1 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    fn abandon(self, _: Abandoned) {}
}

/// REQ: EX-11, PM-50
#[test]
fn loom_a_poll_sees_what_came_before_each_wake_up_that_led_to_it() {
    check(|| {
        let (ready, permits) = (Arc::new(Ready::new()), HostPermits::new(4));
        let owner = Owner::with_ready(&ready, 1);
        let (word, place) = (Arc::new(AtomicUsize::new(0)), Arc::new(std::sync::Mutex::new(None)));
        let job = Reader {
            word: word.clone(),
            waker: place.clone(),
        };
        assert!(owner.admit(job, permit(&permits)).is_ok());
        if let Poll::Ready(Some(owner)) = ready.poll_take(0, Waker::noop()) {
            owner.run(&mut Budget::new(None));
        }
        let waker: Waker = place.lock().unwrap().take().unwrap();
        let idle = thread::spawn({
            let waker = waker.clone();
            move || waker.wake()
        });
        let writer = thread::spawn(move || {
            word.store(1, Ordering::Relaxed);
            waker.wake();
        });
        let worker = thread::spawn({
            let ready = ready.clone();
            move || work(&ready, 0)
        });
        owner.close(ErrorKind::ShuttingDown);
        drained(&owner);
        ready.close();
        for thread in [idle, writer, worker] {
            thread.join().unwrap();
        }
    });
}

/// REQ: EX-105, PM-27
#[test]
fn loom_a_stop_ends_each_job_once() {
    check(|| {
        let (ready, seen, permits) = (Arc::new(Ready::new()), Arc::new(Seen::default()), HostPermits::new(4));
        let (owner, call) = (Owner::with_ready(&ready, 1), Call::new());
        for waits in [Some(call.clone()), None] {
            assert!(
                owner
                    .admit(
                        Step {
                            seen: seen.clone(),
                            waits
                        },
                        permit(&permits)
                    )
                    .is_ok()
            );
        }
        let worker = thread::spawn({
            let ready = ready.clone();
            move || work(&ready, 0)
        });
        let caller = thread::spawn(move || call.answer());
        owner.stop(ErrorKind::ShuttingDown);
        drained(&owner);
        caller.join().unwrap();
        let count = |of: &AtomicUsize| of.load(Ordering::SeqCst);
        assert_eq!(count(&seen.done) + count(&seen.stopped) + count(&seen.never), 2);
        assert_eq!((permits.in_use(), owner.status().active), (0, 0));
        ready.close();
        worker.join().unwrap();
    });
}

/// REQ: PM-51, PM-52
#[test]
fn loom_admission_comes_before_the_close_or_is_refused() {
    check(|| {
        let (ready, seen, permits) = (Arc::new(Ready::new()), Arc::new(Seen::default()), HostPermits::new(4));
        let owner = Owner::with_ready(&ready, 1);
        let admitter = thread::spawn({
            let (owner, seen, permits) = (owner.clone(), seen.clone(), permits.clone());
            move || owner.admit(Step { seen, waits: None }, permit(&permits)).is_ok()
        });
        let worker = thread::spawn({
            let ready = ready.clone();
            move || work(&ready, 0)
        });
        owner.close(ErrorKind::ShuttingDown);
        drained(&owner);
        let before = seen.done.load(Ordering::SeqCst);
        let admitted = admitter.join().unwrap();
        assert_eq!(
            (before, owner.status().admitted),
            (usize::from(admitted), u64::from(admitted))
        );
        ready.close();
        worker.join().unwrap();
    });
}
