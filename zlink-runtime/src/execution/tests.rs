//! Owners and workers, seen through jobs that write down what happens to them.

use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use super::{Abandoned, Job, Owner, OwnerStatus, Turn, Workers};
use crate::error::ErrorKind;
use crate::permit::{HostPermits, Permit, Source};

type Handler = Pin<Box<dyn Future<Output = ()> + Send>>;
type Log = Arc<Mutex<Vec<String>>>;

struct TestJob {
    name: String,
    log: Log,
    start: Box<dyn FnOnce() -> Option<Handler> + Send>,
}

struct TestTurn {
    name: String,
    log: Log,
    handler: Handler,
}

impl Job for TestJob {
    type Turn = TestTurn;

    fn start(self, _: Instant) -> Option<TestTurn> {
        let handler = (self.start)()?;
        Some(TestTurn {
            name: self.name,
            log: self.log,
            handler,
        })
    }

    fn abandon(self) {
        self.log.lock().push(format!("{} never started", self.name));
    }
}

impl Turn for TestTurn {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let poll = self.handler.as_mut().poll(cx);
        if poll.is_ready() {
            self.log.lock().push(format!("{} done", self.name));
        }
        poll
    }

    fn abandon(self, why: Abandoned) {
        self.log.lock().push(format!("{} {why:?}", self.name));
    }
}

struct Bench {
    workers: Workers,
    permits: HostPermits,
    source: Source,
    log: Log,
}

impl Bench {
    fn new(workers: usize, permits: u32) -> Self {
        let permits = HostPermits::new(permits);
        let workers = Workers::spawn(&Handle::current(), workers);
        Self {
            workers,
            source: permits.source(),
            permits,
            log: Log::default(),
        }
    }

    fn owner(&self, turns: usize) -> Owner<TestJob> {
        Owner::new(&self.workers, turns)
    }

    fn permit(&self) -> Permit {
        self.source.try_acquire(1).unwrap().take().unwrap()
    }

    fn job<F: Future<Output = ()> + Send + 'static>(
        &self,
        name: impl ToString,
        handler: impl FnOnce() -> F + Send + 'static,
    ) -> TestJob {
        let start = Box::new(move || Some(Box::pin(handler()) as Handler));
        TestJob {
            name: name.to_string(),
            log: self.log.clone(),
            start,
        }
    }

    fn admit<F: Future<Output = ()> + Send + 'static>(
        &self,
        owner: &Owner<TestJob>,
        name: impl ToString,
        handler: impl FnOnce() -> F + Send + 'static,
    ) -> Result<u64, ErrorKind> {
        let permit = self.permit();
        owner
            .admit(self.job(name, handler), permit)
            .map_err(|rejected| rejected.kind)
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().clone()
    }
}

/// Lets every other task of a single-threaded runtime run until only waiting ones are left.
async fn settle() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}

async fn until(what: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !what() {
        assert!(Instant::now() < deadline, "not in time");
        tokio::task::yield_now().await;
    }
}

/// REQ: EX-04, EX-12
#[tokio::test]
async fn dispatches_start_in_order_up_to_the_limit() {
    let bench = Bench::new(1, 10);
    let owner = bench.owner(2);
    let gate = Arc::new(Semaphore::new(0));
    let log = bench.log.clone();
    for name in 1..=3 {
        let (gate, log) = (gate.clone(), log.clone());
        let handler = move || async move {
            log.lock().push(format!("{name} starts"));
            gate.acquire().await.unwrap().forget();
        };
        assert_eq!(bench.admit(&owner, name, handler), Ok(name));
    }
    settle().await;
    assert_eq!(bench.log(), ["1 starts", "2 starts"]);
    assert_eq!(
        owner.status(),
        OwnerStatus {
            admitted: 3,
            queued: 1,
            active: 2,
            panicked: 0
        }
    );
    assert_eq!(bench.permits.status().queued, 1, "what waits keeps its permit");
    gate.add_permits(1);
    settle().await;
    assert_eq!(bench.log(), ["1 starts", "2 starts", "1 done", "3 starts"]);
    gate.add_permits(2);
    settle().await;
    assert_eq!(
        owner.status(),
        OwnerStatus {
            admitted: 3,
            queued: 0,
            active: 0,
            panicked: 0
        }
    );
}

/// REQ: EX-03
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn with_one_turn_the_gate_excludes() {
    let bench = Bench::new(4, 1_000);
    let owner = bench.owner(1);
    let (inside, counter) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for name in 0..1_000 {
        let (inside, counter) = (inside.clone(), counter.clone());
        let handler = move || async move {
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
            let read = counter.load(Ordering::SeqCst);
            tokio::task::yield_now().await;
            counter.store(read + 1, Ordering::SeqCst);
            inside.fetch_sub(1, Ordering::SeqCst);
        };
        bench.admit(&owner, name, handler).unwrap();
    }
    owner.close(ErrorKind::ShuttingDown);
    owner.drained().await;
    assert_eq!(counter.load(Ordering::SeqCst), 1_000);
    assert_eq!(owner.status().panicked, 0);
}

/// REQ: PM-20, PM-25
#[tokio::test]
async fn the_permit_returns_between_decode_and_first_poll() {
    let bench = Bench::new(1, 10);
    let owner = bench.owner(8);
    let (decoding, polled) = (Arc::new(AtomicUsize::new(9)), Arc::new(AtomicUsize::new(9)));
    let in_use = |to: &Arc<AtomicUsize>| {
        let (permits, to) = (bench.permits.clone(), to.clone());
        move || to.store(permits.in_use() as usize, Ordering::SeqCst)
    };
    let (decode, poll) = (in_use(&decoding), in_use(&polled));
    let handler = move || {
        decode();
        async move { poll() }
    };
    bench.admit(&owner, "job", handler).unwrap();
    assert_eq!((bench.permits.status().reserved, bench.permits.status().queued), (0, 1));
    settle().await;
    assert_eq!((decoding.load(Ordering::SeqCst), polled.load(Ordering::SeqCst)), (1, 0));
}

/// REQ: PM-25
#[tokio::test]
async fn a_job_that_ends_before_its_handler_returns_the_permit_too() {
    let bench = Bench::new(1, 10);
    let owner = bench.owner(1);
    let broken: [Box<dyn FnOnce() -> Option<Handler> + Send>; 2] =
        [Box::new(|| None), Box::new(|| panic!("in decode"))];
    for start in broken {
        let job = TestJob {
            name: "broken".into(),
            log: bench.log.clone(),
            start,
        };
        assert!(owner.admit(job, bench.permit()).is_ok());
    }
    bench.admit(&owner, "next", || async {}).unwrap();
    settle().await;
    assert_eq!(bench.log(), ["next done"]);
    assert_eq!(
        (bench.permits.in_use(), owner.status().active, owner.status().panicked),
        (0, 0, 1)
    );
}

/// REQ: PM-26, PM-36
#[tokio::test]
async fn a_handler_that_waits_holds_no_permit() {
    let bench = Bench::new(1, 1);
    let owner = bench.owner(8);
    let go = Arc::new(Notify::new());
    let handler = {
        let go = go.clone();
        || async move { go.notified().await }
    };
    bench.admit(&owner, "waits", handler).unwrap();
    settle().await;
    bench.admit(&owner, "next", || async {}).unwrap();
    settle().await;
    assert_eq!(bench.log(), ["next done"]);
    go.notify_one();
    settle().await;
    assert_eq!(bench.log(), ["next done", "waits done"]);
}

/// REQ: PM-51, PM-52, PM-53, PM-54
#[tokio::test]
async fn a_job_that_is_refused_changes_nothing() {
    let bench = Bench::new(1, 10);
    let (open, owner) = (bench.owner(8), bench.owner(8));
    assert_eq!(bench.admit(&owner, "first", || async {}), Ok(1));
    owner.close(ErrorKind::ShuttingDown);
    owner.close(ErrorKind::Unavailable);
    let Err(rejected) = owner.admit(bench.job("refused", || async {}), bench.permit()) else {
        panic!("admitted")
    };
    assert_eq!(
        (rejected.kind, rejected.job.name.as_str()),
        (ErrorKind::ShuttingDown, "refused")
    );
    assert_eq!((bench.permits.status().reserved, bench.permits.status().queued), (1, 1));
    let Ok(place) = open.admit(rejected.job, rejected.permit.unwrap()) else {
        panic!("refused")
    };
    assert_eq!((place, owner.status().admitted), (1, 1));
    settle().await;
    assert_eq!(bench.log(), ["first done", "refused done"]);
}

#[tokio::test]
async fn a_panic_ends_its_turn_and_nothing_else() {
    let bench = Bench::new(1, 10);
    let owner = bench.owner(1);
    bench.admit(&owner, "a", || async { panic!("at {}", 7) }).unwrap();
    bench
        .admit(&owner, "b", || poll_fn(|_| -> Poll<()> { panic!("plain") }))
        .unwrap();
    let late = || async {
        tokio::task::yield_now().await;
        panic!("late")
    };
    bench.admit(&owner, "c", late).unwrap();
    bench.admit(&owner, "d", || async { std::panic::panic_any(7) }).unwrap();
    bench.admit(&owner, "e", || async {}).unwrap();
    settle().await;
    assert_eq!(
        bench.log(),
        [
            r#"a Panicked("at 7")"#,
            r#"b Panicked("plain")"#,
            r#"c Panicked("late")"#,
            r#"d Panicked("a panic without a text")"#,
            "e done"
        ]
    );
    assert_eq!(
        owner.status(),
        OwnerStatus {
            admitted: 5,
            queued: 0,
            active: 0,
            panicked: 4
        }
    );
}

/// REQ: EX-104
#[tokio::test(start_paused = true)]
async fn a_drain_finishes_what_was_admitted() {
    let bench = Bench::new(1, 10);
    let owner = bench.owner(2);
    for name in 0..5 {
        bench
            .admit(&owner, name, || tokio::time::sleep(Duration::from_secs(3)))
            .unwrap();
    }
    let start = Instant::now();
    let deadline = start + Duration::from_secs(30);
    assert_eq!(owner.drain(ErrorKind::ShuttingDown, deadline).await, 0);
    assert_eq!(start.elapsed().as_secs(), 9);
    assert_eq!(bench.log(), ["0 done", "1 done", "2 done", "3 done", "4 done"]);
    assert_eq!(bench.admit(&owner, "late", || async {}), Err(ErrorKind::ShuttingDown));
}

struct OnDrop(Arc<AtomicUsize>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// REQ: EX-104, EX-105, PM-27
#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_drain_drops_what_is_left_once() {
    let bench = Bench::new(1, 10);
    let owner = bench.owner(2);
    let (drops, wake) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    for name in 0..4 {
        let (guard, wake) = (OnDrop(drops.clone()), wake.clone());
        let handler = move || async move {
            wake.notified().await;
            pending::<()>().await;
            drop(guard);
        };
        bench.admit(&owner, name, handler).unwrap();
    }
    settle().await;
    let deadline = Instant::now() + Duration::from_secs(30);
    assert_eq!(owner.drain(ErrorKind::ShuttingDown, deadline).await, 4);
    assert_eq!(
        bench.log(),
        ["2 never started", "3 never started", "0 Stopped", "1 Stopped"]
    );
    assert_eq!((drops.load(Ordering::SeqCst), bench.permits.in_use()), (4, 0));
    owner.drained().await;
    owner.stop(ErrorKind::Unavailable);
    wake.notify_waiters();
    settle().await;
    assert_eq!(
        owner.status(),
        OwnerStatus {
            admitted: 4,
            queued: 0,
            active: 0,
            panicked: 0
        }
    );
    assert_eq!(bench.log().len(), 4);
}

/// REQ: EX-105
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_is_being_polled_is_stopped_after_its_poll() {
    let bench = Bench::new(1, 10);
    let owner = bench.owner(2);
    let (entered, leave) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let handler = {
        let (entered, leave) = (entered.clone(), leave.clone());
        || {
            poll_fn(move |cx| {
                cx.waker().wake_by_ref();
                entered.store(1, Ordering::SeqCst);
                while leave.load(Ordering::SeqCst) == 0 {
                    std::thread::yield_now();
                }
                Poll::Pending
            })
        }
    };
    bench.admit(&owner, "polled", handler).unwrap();
    until(|| entered.load(Ordering::SeqCst) == 1).await;
    owner.stop(ErrorKind::ShuttingDown);
    assert_eq!(owner.status().active, 1);
    leave.store(1, Ordering::SeqCst);
    owner.drained().await;
    assert_eq!(bench.log(), ["polled Stopped"]);
}

/// REQ: EX-42
#[tokio::test(start_paused = true)]
async fn a_flooded_owner_lets_another_in_after_its_budget() {
    let bench = Bench::new(1, 10_000);
    let (flood, probe) = (bench.owner(256), bench.owner(256));
    for _ in 0..5_000 {
        bench.admit(&flood, "flood", || async {}).unwrap();
    }
    bench.admit(&probe, "probe", || async {}).unwrap();
    // The runtime's other tasks are let in as well, each time after as many jobs of all owners.
    let log = bench.log.clone();
    let other = tokio::spawn(async move { log.lock().len() });
    probe.close(ErrorKind::Unavailable);
    probe.drained().await;
    assert_eq!(bench.log().iter().position(|it| it == "probe done"), Some(64));
    assert_eq!(other.await.unwrap(), crate::limit::WORKER_JOBS as usize + 1);
    flood.close(ErrorKind::Unavailable);
    flood.drained().await;
    assert_eq!(bench.log().len(), 5_001);
}

/// REQ: EX-42
#[tokio::test]
async fn slow_handlers_use_up_the_budget_by_time() {
    let bench = Bench::new(1, 100);
    let (flood, probe) = (bench.owner(256), bench.owner(256));
    for _ in 0..50 {
        let slow = || async {
            let start = std::time::Instant::now();
            while start.elapsed() < Duration::from_millis(2) {
                std::hint::spin_loop();
            }
        };
        bench.admit(&flood, "flood", slow).unwrap();
    }
    bench.admit(&probe, "probe", || async {}).unwrap();
    probe.close(ErrorKind::Unavailable);
    probe.drained().await;
    assert_eq!(bench.log().iter().position(|it| it == "probe done"), Some(1));
}

#[tokio::test]
async fn turns_that_wake_themselves_and_new_jobs_share_the_owner() {
    let bench = Bench::new(1, 1_000);
    let owner = bench.owner(8);
    let spins = Arc::new(AtomicUsize::new(0));
    let spin = {
        let spins = spins.clone();
        || {
            poll_fn(move |cx| {
                cx.waker().wake_by_ref();
                spins.fetch_add(1, Ordering::SeqCst);
                Poll::<()>::Pending
            })
        }
    };
    bench.admit(&owner, "spin", spin).unwrap();
    let spun = Arc::new(AtomicUsize::new(0));
    for _ in 0..500 {
        let (spins, spun) = (spins.clone(), spun.clone());
        let handler = || async move { spun.store(spins.load(Ordering::SeqCst), Ordering::SeqCst) };
        bench.admit(&owner, "job", handler).unwrap();
    }
    until(|| bench.log().len() == 500).await;
    assert_eq!(spun.load(Ordering::SeqCst), 500);
    owner.stop(ErrorKind::ShuttingDown);
    assert_eq!(bench.log().last().unwrap(), "spin Stopped");
}

#[tokio::test]
async fn a_turn_is_not_pending_for_the_runtimes_budget() {
    let bench = Bench::new(1, 2_000);
    let owner = bench.owner(256);
    let (polls, semaphore) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(1)));
    for name in 0..1_000 {
        let (polls, semaphore) = (polls.clone(), semaphore.clone());
        let handler = move || {
            let mut inner = Box::pin(async move { drop(semaphore.acquire().await) });
            poll_fn(move |cx| {
                polls.fetch_add(1, Ordering::SeqCst);
                inner.as_mut().poll(cx)
            })
        };
        bench.admit(&owner, name, handler).unwrap();
    }
    owner.close(ErrorKind::ShuttingDown);
    owner.drained().await;
    assert_eq!(polls.load(Ordering::SeqCst), 1_000);
}

/// REQ: PM-50
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_job_of_every_owner_runs_once_whoever_wakes_it() {
    let bench = Bench::new(4, 64);
    let owners: Vec<_> = (1..=8).map(|turns| bench.owner(turns)).collect();
    let done = Arc::new(AtomicUsize::new(0));
    let admitters = (0..4_usize).map(|part| {
        let (owners, permits, log, done) = (owners.clone(), bench.permits.clone(), bench.log.clone(), done.clone());
        tokio::spawn(async move {
            let mut source = permits.source();
            for number in 0..5_000_usize {
                let permit = source.acquire(1).await.unwrap().take().unwrap();
                let done = done.clone();
                let handler = async move {
                    match number % 4 {
                        0 => {}
                        1 => tokio::task::yield_now().await,
                        2 => tokio::spawn(async {}).await.unwrap(),
                        _ => {
                            let (answer, asked) = tokio::sync::oneshot::channel();
                            std::thread::yield_now();
                            tokio::spawn(async move { answer.send(()).unwrap() });
                            asked.await.unwrap();
                        }
                    }
                    done.fetch_add(1, Ordering::SeqCst);
                };
                let start: Box<dyn FnOnce() -> Option<Handler> + Send> = Box::new(|| Some(Box::pin(handler)));
                let job = TestJob {
                    name: String::new(),
                    log: log.clone(),
                    start,
                };
                assert!(owners[(part + number) % owners.len()].admit(job, permit).is_ok());
            }
        })
    });
    for admitter in admitters.collect::<Vec<_>>() {
        admitter.await.unwrap();
    }
    for owner in &owners {
        owner.close(ErrorKind::ShuttingDown);
        owner.drained().await;
        let status = owner.status();
        assert_eq!((status.queued, status.active, status.panicked), (0, 0, 0));
    }
    assert_eq!((done.load(Ordering::SeqCst), bench.permits.in_use()), (20_000, 0));
    bench.workers.join().await;
}

#[tokio::test]
async fn the_beat_shows_the_turn_a_worker_is_in() {
    let bench = Bench::new(1, 10);
    let owner = bench.owner(8);
    let beats = bench.workers.beats().clone();
    assert_eq!(beats[0].turn(), None);
    let seen = Arc::new(Mutex::new(Vec::new()));
    for name in 0..2 {
        let (beats, seen) = (beats.clone(), seen.clone());
        bench
            .admit(&owner, name, move || async move { seen.lock().push(beats[0].turn()) })
            .unwrap();
    }
    settle().await;
    assert_eq!(*seen.lock(), [Some(1), Some(2)]);
    assert_eq!(beats[0].turn(), None);
}

mod actors;
mod cost;
mod deferred;
mod gates;
mod moves;
mod objects;
mod pools;
mod timers;
mod waits;
mod yields;
