//! The permits against the tables of the contract.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::{Closed, Flow, Grant, HostPermits, MAX_PERMITS, Permit, PermitLimits, Source};

mod backlog;
mod explore;
mod random;
mod receivers;
mod reserve;

#[derive(Default)]
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Count {
    fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(self.clone())
    }

    fn woken(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

fn poll(source: &mut Source, want: u32) -> Poll<Result<Grant, Closed>> {
    source.poll_acquire(&mut Context::from_waker(Waker::noop()), want)
}

fn take(source: &mut Source, want: u32) -> Grant {
    match poll(source, want) {
        Poll::Ready(Ok(grant)) => grant,
        other => panic!("no grant: {other:?}"),
    }
}

fn queued(grant: &mut Grant) -> Permit {
    let mut permit = grant.take().unwrap();
    permit.queue();
    permit
}

/// REQ: PM-80
#[test]
fn thresholds_are_those_of_the_formulas() {
    for (max, pause, resume, pause_count, resume_count) in [
        (1, 80, 60, 1, 0),
        (3, 80, 60, 3, 1),
        (7, 80, 60, 6, 4),
        (10, 80, 60, 8, 6),
        (101, 80, 60, 81, 60),
        (4_096, 80, 60, 3_277, 2_457),
        (10, 100, 99, 10, 9),
        (10, 1, 0, 1, 0),
        (MAX_PERMITS, 100, 99, MAX_PERMITS, 2_126_008_810),
    ] {
        let limits = PermitLimits::new(max, pause, resume).unwrap();
        assert_eq!(
            (limits.max(), limits.pause_count(), limits.resume_count()),
            (max, pause_count, resume_count)
        );
    }
}

/// REQ: PM-13
#[test]
fn limits_out_of_range_are_refused() {
    for (max, pause, resume) in [
        (0, 80, 60),
        (MAX_PERMITS + 1, 80, 60),
        (10, 0, 0),
        (10, 101, 60),
        (10, 60, 60),
        (10, 60, 61),
        (10, 1, 1),
    ] {
        assert!(PermitLimits::new(max, pause, resume).is_err(), "{max} {pause} {resume}");
    }
    assert!(PermitLimits::new(1, 1, 0).is_ok());
    assert!(PermitLimits::new(MAX_PERMITS, 100, 99).is_ok());
}

/// REQ: PM-81
#[test]
fn the_flow_follows_the_hysteresis() {
    let permits = HostPermits::new(10);
    let source = permits.source();
    let mut held = Vec::new();
    let mut at = |count: usize| {
        while held.len() < count {
            held.push(source.try_acquire(1).unwrap().take().unwrap());
        }
        held.truncate(count);
        permits.flow()
    };
    assert_eq!(
        at(7),
        Flow {
            version: 0,
            paused: false
        }
    );
    assert_eq!(
        at(8),
        Flow {
            version: 1,
            paused: true
        }
    );
    assert_eq!(
        at(7),
        Flow {
            version: 1,
            paused: true
        }
    );
    assert_eq!(
        at(10),
        Flow {
            version: 1,
            paused: true
        }
    );
    assert_eq!(
        at(6),
        Flow {
            version: 2,
            paused: false
        }
    );
    assert_eq!(
        at(7),
        Flow {
            version: 2,
            paused: false
        }
    );
    assert_eq!(
        at(8),
        Flow {
            version: 3,
            paused: true
        }
    );
    assert_eq!(
        at(0),
        Flow {
            version: 4,
            paused: false
        }
    );
}

/// REQ: PM-12, PM-20, PM-22
#[test]
fn reserved_and_queued_are_counted_apart_and_together() {
    let permits = HostPermits::new(5);
    let counts = || (permits.status().reserved, permits.status().queued, permits.in_use());
    let mut grant = take(&mut permits.source(), 3);
    assert_eq!(counts(), (3, 0, 3));
    let (mut first, second) = (queued(&mut grant), queued(&mut grant));
    assert_eq!(counts(), (1, 2, 3));
    first.queue();
    assert_eq!(counts(), (1, 2, 3), "a permit is queued once");
    first.start();
    assert_eq!(counts(), (1, 1, 2));
    drop(second);
    assert_eq!(counts(), (1, 0, 1));
    drop(grant);
    assert_eq!(counts(), (0, 0, 0));
    // One limit, whatever the number of sources.
    let (mut a, mut b) = (permits.source(), permits.source());
    let all = (take(&mut a, 4), take(&mut b, 4));
    assert_eq!((all.0.len(), all.1.len(), permits.in_use()), (4, 1, 5));
    assert!(permits.source().try_acquire(1).is_none());
}

/// REQ: PM-30, PM-35
#[test]
fn the_source_that_waits_longest_comes_first() {
    let permits = HostPermits::new(2);
    let mut held = take(&mut permits.source(), 2);
    let (mut flood, mut other, mut trickle) = (permits.source(), permits.source(), permits.source());
    assert!(poll(&mut flood, 64).is_pending());
    assert!(poll(&mut other, 64).is_pending());
    assert!(poll(&mut trickle, 1).is_pending());
    assert!(poll(&mut flood, 64).is_pending(), "a source has one place in the queue");
    assert_eq!(permits.status().waiting, 3);

    drop(held.take());
    assert!(poll(&mut trickle, 1).is_pending());
    assert!(poll(&mut other, 64).is_pending());
    let first = take(&mut flood, 64);
    assert_eq!(first.len(), 1);
    assert!(poll(&mut flood, 64).is_pending(), "from here on it stands at the tail");
    drop(first);
    let second = take(&mut other, 64);
    drop(held);
    assert!(poll(&mut flood, 64).is_pending());
    assert_eq!(take(&mut trickle, 1).len(), 1);
    // What the trickle did not keep went to the flood.
    assert_eq!(take(&mut flood, 64).len(), 1);
    drop(second);
    assert_eq!(permits.status().waiting, 0);
}

/// REQ: PM-34
#[test]
fn nobody_passes_those_that_wait() {
    let permits = HostPermits::new(2);
    let held = take(&mut permits.source(), 2);
    let mut waiting = permits.source();
    assert!(poll(&mut waiting, 1).is_pending());
    drop(held);
    // One was handed on, the other is free, and nobody waits any more.
    assert!(permits.source().try_acquire(1).is_some());
    let granted = take(&mut waiting, 1);
    let rest = permits.source().try_acquire(1).unwrap();
    assert!(poll(&mut waiting, 1).is_pending());
    drop(granted);
    assert!(permits.source().try_acquire(1).is_none(), "it is the waiting source's");
    drop(rest);
}

/// REQ: PM-27, PM-36
#[test]
fn a_wait_given_up_leaves_nothing() {
    let permits = HostPermits::new(1);
    let held = take(&mut permits.source(), 1);
    let (mut gone, mut next) = (permits.source(), permits.source());
    let woken = Arc::new(Count::default());
    assert!(poll(&mut gone, 1).is_pending());
    assert!(
        next.poll_acquire(&mut Context::from_waker(&woken.waker()), 1)
            .is_pending()
    );
    drop(held);
    assert_eq!(
        (woken.woken(), permits.in_use()),
        (0, 1),
        "handed to the first, which has not come for it"
    );
    drop(gone);
    assert_eq!((woken.woken(), permits.in_use()), (1, 1), "and on to the second");
    next.cancel();
    next.cancel();
    assert_eq!((permits.in_use(), permits.status().waiting), (0, 0));
    assert!(next.try_acquire(1).is_some());
}

/// REQ: PM-27, PM-36
#[tokio::test]
async fn dropping_the_future_gives_up_the_wait() {
    let permits = HostPermits::new(1);
    let held = permits.source().acquire(1).await.unwrap();
    let mut source = permits.source();
    {
        let mut waiting = std::pin::pin!(source.acquire(1));
        assert!(
            waiting
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        assert_eq!(permits.status().waiting, 1);
        drop(held);
        assert_eq!(permits.in_use(), 1);
    }
    assert_eq!((permits.in_use(), permits.status().waiting), (0, 0));
}

/// REQ: PM-27, PM-36
#[test]
fn closing_ends_waits_and_keeps_what_was_granted() {
    let permits = HostPermits::new(2);
    let mut held = take(&mut permits.source(), 2);
    let (mut handed, mut waiting) = (permits.source(), permits.source());
    let woken = Arc::new(Count::default());
    assert!(poll(&mut handed, 1).is_pending());
    assert!(
        waiting
            .poll_acquire(&mut Context::from_waker(&woken.waker()), 1)
            .is_pending()
    );
    drop(held.take());
    permits.close();
    permits.close();
    assert_eq!(woken.woken(), 1);
    assert!(matches!(poll(&mut waiting, 1), Poll::Ready(Err(Closed))));
    assert!(matches!(poll(&mut permits.source(), 1), Poll::Ready(Err(Closed))));
    assert!(permits.source().try_acquire(1).is_none());
    drop((take(&mut handed, 1), held));
    assert_eq!((permits.in_use(), permits.status().waiting), (0, 0));
}

/// REQ: PM-85, PM-86
#[tokio::test]
async fn a_watch_sees_the_newest_flow_once() {
    let permits = HostPermits::new(10);
    let source = permits.source();
    let mut watch = permits.watch();
    let mut second = permits.watch();
    let changes = tokio::spawn(async move { second.changed().await });
    tokio::task::yield_now().await;
    let held = source.try_acquire(8).unwrap();
    assert_eq!(
        changes.await.unwrap(),
        Some(Flow {
            version: 1,
            paused: true
        })
    );
    drop(held);
    let held = source.try_acquire(9).unwrap();
    assert_eq!(
        watch.changed().await,
        Some(Flow {
            version: 3,
            paused: true
        }),
        "not one by one"
    );
    let mut unchanged = std::pin::pin!(watch.changed());
    assert!(
        unchanged
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    );
    assert_eq!(
        permits.watch().seen,
        permits.flow().version,
        "a new watch starts at the present"
    );
    permits.close();
    assert_eq!(unchanged.await, None);
    drop(held);
}

/// REQ: OB-20, OB-23
#[tokio::test(start_paused = true)]
async fn paused_time_adds_up_and_outlives_the_close() {
    let permits = HostPermits::new(10);
    let source = permits.source();
    for _ in 0..2 {
        let held = source.try_acquire(8).unwrap();
        tokio::time::advance(Duration::from_secs(3)).await;
        drop(held);
        tokio::time::advance(Duration::from_secs(5)).await;
    }
    let held = source.try_acquire(8).unwrap();
    tokio::time::advance(Duration::from_secs(1)).await;
    permits.close();
    let status = permits.status();
    assert_eq!(status.paused_time, Duration::from_secs(7));
    assert_eq!(
        status.flow,
        Flow {
            version: 5,
            paused: true
        }
    );
    assert_eq!(
        (
            status.in_use(),
            status.limits.pause_count(),
            status.limits.resume_count()
        ),
        (8, 8, 6)
    );
    drop(held);
    assert_eq!(permits.status().paused_time, Duration::from_secs(7));
}

/// REQ: OB-24
#[tokio::test(start_paused = true)]
async fn a_stall_is_a_full_host_without_a_start() {
    let permits = HostPermits::new(2);
    let mut source = permits.source();
    let mut jobs = take(&mut source, 2);
    assert_eq!(permits.status().stalled, Some(Duration::ZERO));
    tokio::time::advance(Duration::from_secs(6)).await;
    assert_eq!(permits.status().stalled, Some(Duration::from_secs(6)));

    // A reservation that was returned and taken again starts nothing.
    drop(jobs.take());
    assert_eq!(permits.status().stalled, None);
    let again = take(&mut source, 1);
    assert_eq!(permits.status().stalled, Some(Duration::from_secs(6)));

    // A start that a waiting source follows up at once ends the episode.
    assert!(poll(&mut source, 1).is_pending());
    queued(&mut jobs).start();
    assert_eq!((permits.in_use(), permits.status().stalled), (2, Some(Duration::ZERO)));
    drop(again);
}

/// REQ: PM-12, PM-20, PM-27
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_the_threads_do_none_is_lost_and_none_too_many() {
    let permits = HostPermits::new(3);
    let tasks = (0..8_u32).map(|task| {
        let permits = permits.clone();
        tokio::spawn(async move {
            let mut source = permits.source();
            for round in 0..3_000 {
                match (task + round) % 5 {
                    // Give up a wait that may have been served.
                    0 => drop(
                        std::pin::pin!(source.acquire(2))
                            .as_mut()
                            .poll(&mut Context::from_waker(Waker::noop())),
                    ),
                    1 => drop(source.try_acquire(1)),
                    _ => {
                        let mut grant = source.acquire(1 + round % 3).await?;
                        let mut permit = grant.take();
                        permit.as_mut().map(Permit::queue);
                        assert!(permits.in_use() <= 3);
                        tokio::task::yield_now().await;
                        if let Some(permit) = permit {
                            permit.start();
                        }
                    }
                }
            }
            Ok::<(), Closed>(())
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap().unwrap();
    }
    let status = permits.status();
    assert_eq!(
        (status.in_use(), status.queued, status.waiting, status.flow.paused),
        (0, 0, 0, false)
    );
}

/// `cargo test --release -p zlink-runtime permit::tests::cost -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn cost() {
    const ROUNDS: u32 = 5_000_000;
    let round = |source: &mut Source| {
        let mut permit = take(source, 1).take().unwrap();
        permit.queue();
        permit.start();
    };
    let permits = HostPermits::new(4_096);
    let start = std::time::Instant::now();
    let mut source = permits.source();
    (0..ROUNDS).for_each(|_| round(&mut source));
    println!(
        "acquire, queue, return: {:.1} ns",
        start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
    );

    let start = std::time::Instant::now();
    for _ in 0..ROUNDS / 64 {
        let mut grant = take(&mut source, 64);
        while let Some(mut permit) = grant.take() {
            permit.queue();
            permit.start();
        }
    }
    println!(
        "the same, 64 to a grant: {:.1} ns each",
        start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
    );

    let start = std::time::Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut source = permits.source();
                (0..ROUNDS).for_each(|_| round(&mut source));
            });
        }
    });
    println!(
        "4 threads: {:.1} ns each",
        start.elapsed().as_secs_f64() * 1e9 / f64::from(4 * ROUNDS)
    );
}
