//! CPU and IO workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::objects::{World, rest};
use super::{settle, until};
use crate::error::{CallError, ErrorKind, HandlerError};
use crate::execution::mode::Mode;
use crate::execution::pool::{CpuPool, IoPool};
use crate::execution::turn::Ended;

fn kind<T: std::fmt::Debug>(result: Result<T, CallError>) -> ErrorKind {
    result.unwrap_err().kind().unwrap()
}

/// Something that computes until it is let go.
fn held(pool: &CpuPool, started: &Arc<AtomicUsize>) -> (crate::execution::pool::WorkCall<u32>, mpsc::Sender<u32>) {
    let (release, released) = mpsc::channel();
    let started = started.clone();
    let call = pool.run(move || {
        started.fetch_add(1, Ordering::SeqCst);
        Ok(released.recv().unwrap_or_default())
    });
    (call, release)
}

/// REQ: EX-60, ERR-207
#[tokio::test]
async fn cpu_work_is_bounded_in_threads_and_in_what_waits() {
    let pool = CpuPool::with(2, 3, Duration::from_secs(30));
    let started = Arc::new(AtomicUsize::new(0));
    let (mut calls, mut releases) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let (call, release) = held(&pool, &started);
        calls.push(tokio::spawn(call.into_future()));
        releases.push(release);
        settle().await;
    }
    until(|| started.load(Ordering::SeqCst) == 2).await;
    let (one_too_many, _release) = held(&pool, &started);
    let refused = one_too_many.await.unwrap_err();
    assert_eq!(refused.kind(), Some(ErrorKind::CapacityExceeded));
    assert_eq!(refused.execution(), crate::error::Execution::NotExecuted);
    for (number, release) in (0..).zip(&releases) {
        release.send(number).unwrap();
    }
    for (number, call) in (0..).zip(calls) {
        assert_eq!(call.await.unwrap(), Ok(number));
    }
    assert_eq!(pool.threads(), 2);
}

/// REQ: EX-60
#[tokio::test]
async fn cpu_work_whose_caller_gave_up_takes_nobodys_place() {
    let pool = CpuPool::with(1, 2, Duration::from_secs(30));
    let started = Arc::new(AtomicUsize::new(0));
    let (first, release) = held(&pool, &started);
    let first = tokio::spawn(first.into_future());
    until(|| started.load(Ordering::SeqCst) == 1).await;
    let kept = Arc::new(());
    for _ in 0..2 {
        let kept = kept.clone();
        let work = pool.run(move || {
            drop(kept);
            Ok(())
        });
        let given_up = tokio::spawn(work.into_future());
        settle().await;
        given_up.abort();
        assert!(given_up.await.is_err());
    }
    let next = tokio::spawn(pool.run(|| Ok(7)).into_future());
    settle().await;
    assert_eq!(Arc::strong_count(&kept), 1, "what they would have used is let go");
    release.send(1).unwrap();
    assert_eq!(first.await.unwrap(), Ok(1));
    assert_eq!(next.await.unwrap(), Ok(7));
}

/// REQ: EX-60, ERR-207
#[tokio::test]
async fn cpu_work_that_fails_panics_or_takes_too_long_says_so() {
    let pool = CpuPool::new();
    let failing = pool.run(|| Err::<(), _>(HandlerError::new("no luck")));
    assert_eq!(kind(failing.await), ErrorKind::InternalFailure);
    let panicking = pool.run(|| -> Result<(), HandlerError> { panic!("a worker's own") });
    let panicked = panicking.await.unwrap_err();
    assert!(panicked.to_string().contains("a worker's own"), "{panicked}");
    assert_eq!(pool.run(|| Ok(5)).await, Ok(5), "the pool goes on");
    let started = Arc::new(AtomicUsize::new(0));
    let (late, release) = held(&pool, &started);
    assert_eq!(
        kind(late.timeout(Duration::from_millis(20)).await),
        ErrorKind::DeadlineExceeded
    );
    // Its result finds nobody, and changes nothing.
    release.send(1).unwrap();
    assert_eq!(pool.run(|| Ok(6)).await, Ok(6));
    let refused = pool.run(|| Ok(())).timeout(Duration::ZERO).await;
    assert!(matches!(refused, Err(CallError::Argument(_))));
}

/// REQ: EX-60, ERR-207
#[tokio::test]
async fn idle_cpu_threads_end_and_withdrawn_work_does_not_run() {
    let pool = CpuPool::with(1, 8, Duration::from_millis(1));
    let started = Arc::new(AtomicUsize::new(0));
    let (first, release) = held(&pool, &started);
    let first = tokio::spawn(first.into_future());
    until(|| started.load(Ordering::SeqCst) == 1).await;
    let (second, _release) = held(&pool, &started);
    let mut second = second.into_future();
    assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(second.as_mut().poll(cx).is_pending())).await);
    drop(second);
    release.send(3).unwrap();
    assert_eq!(first.await.unwrap(), Ok(3));
    until(|| pool.threads() == 0).await;
    assert_eq!(
        started.load(Ordering::SeqCst),
        1,
        "the one that was withdrawn never ran"
    );
    assert_eq!(pool.run(|| Ok(4)).await, Ok(4), "and a thread comes back for work");
}

/// REQ: EX-60, EX-61
#[tokio::test]
async fn waiting_takes_no_thread_and_has_a_bound_of_its_own() {
    let cpu = CpuPool::with(2, 8, Duration::from_secs(1));
    let io = IoPool::with(Handle::current(), 8);
    let started = Arc::new(AtomicUsize::new(0));
    let (holds, releases): (Vec<_>, Vec<_>) = (0..2).map(|_| held(&cpu, &started)).unzip();
    let holds: Vec<_> = holds.into_iter().map(|call| tokio::spawn(call.into_future())).collect();
    let gate = Arc::new(Semaphore::new(0));
    let waiting: Vec<_> = (0..8)
        .map(|number| {
            let gate = gate.clone();
            let work = async move {
                gate.acquire().await?.forget();
                Ok(number)
            };
            tokio::spawn(io.run(work).into_future())
        })
        .collect();
    settle().await;
    assert_eq!(kind(io.run(async { Ok(()) }).await), ErrorKind::CapacityExceeded);
    gate.add_permits(8);
    for (number, call) in (0..).zip(waiting) {
        assert_eq!(call.await.unwrap(), Ok(number), "while all CPU workers compute");
    }
    assert_eq!(io.run(async { Ok(9) }).await, Ok(9));
    releases.iter().for_each(|release| release.send(0).unwrap());
    for hold in holds {
        assert_eq!(hold.await.unwrap(), Ok(0));
    }
}

/// REQ: EX-61
#[tokio::test(start_paused = true)]
async fn io_work_that_fails_panics_or_is_dropped_ends() {
    let io = IoPool::new(Handle::current());
    assert_eq!(
        kind(io.run(async { Err::<(), _>(HandlerError::new("no")) }).await),
        ErrorKind::InternalFailure
    );
    let panicked = io.run(async { panic!("an external's own") }).await as Result<(), CallError>;
    assert!(panicked.unwrap_err().to_string().contains("an external's own"));
    let gone = Arc::new(());
    let alive = gone.clone();
    let endless = io.run(async move {
        let _alive = alive;
        std::future::pending::<Result<(), HandlerError>>().await
    });
    assert_eq!(
        kind(endless.timeout(Duration::from_secs(3)).await),
        ErrorKind::DeadlineExceeded
    );
    settle().await;
    assert_eq!(Arc::strong_count(&gone), 1, "it does not go on for nobody");
}

/// REQ: EX-62
#[tokio::test]
async fn the_wait_is_what_the_terminal_says_and_not_what_the_worker_is() {
    let world = World::new(1);
    let io = IoPool::new(Handle::current());
    for yields in [false, true] {
        let room = world.unit(Mode::SpotWide);
        let gate = Arc::new(Semaphore::new(0));
        let (work, note) = (gate.clone(), world.noting());
        let call = io.run(async move {
            work.acquire().await?.forget();
            Ok(5)
        });
        room.tell(&world, "works", move |turn| {
            Box::pin(async move {
                let result = if yields { turn.yield_for(call).await } else { call.await };
                note(&format!("{result:?}"));
                Ended::Well
            })
        });
        settle().await;
        room.probe(&world, "probe");
        settle().await;
        gate.add_permits(1);
        settle().await;
    }
    assert_eq!(rest(&world).await, ["Ok(5)", "probe", "probe", "Ok(5)"]);
}
