//! Single steps of a request, where the crate shows them.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use zlink_runtime::bench::Selection;
use zlink_runtime::permit::{HostPermits, Permit, PermitLimits, Source};

use crate::Failure;
use crate::codec::nanoseconds;
use crate::sample::{Effort, emit};

/// One round.
pub fn measure(effort: Effort) -> Result<(), Failure> {
    permits(effort)?;
    for members in [1, 3, 100] {
        selection(effort, members)?;
    }
    Ok(())
}

fn permits(effort: Effort) -> Result<(), Failure> {
    let permits = HostPermits::new(10_000);
    let source = permits.source();
    let alone = nanoseconds(effort, || drop(black_box(source.try_acquire(1).and_then(|mut grant| grant.take()))));
    emit("micro permits, alone", "zlink acquire + return", "ns", alone);
    let semaphore = Arc::new(Semaphore::new(10_000));
    let alone = nanoseconds(effort, || drop(black_box(semaphore.clone().try_acquire_owned().ok())));
    emit("micro permits, alone", "tokio Semaphore", "ns", alone);
    let batch = nanoseconds(effort, || {
        let Some(mut grant) = source.try_acquire(64) else { return };
        while let Some(permit) = grant.take() {
            drop(black_box(permit));
        }
    });
    emit("micro permits, 64 to a grant", "zlink acquire + return", "ns", batch / 64.0);
    let together = four_threads(effort, || {
        let source = permits.source();
        move || drop(black_box(source.try_acquire(1).and_then(|mut grant| grant.take())))
    });
    emit("micro permits, 4 threads", "zlink acquire + return", "ns", together);
    let together = four_threads(effort, || {
        let semaphore = semaphore.clone();
        move || drop(black_box(semaphore.clone().try_acquire_owned().ok()))
    });
    emit("micro permits, 4 threads", "tokio Semaphore", "ns", together);
    if permits.in_use() != 0 {
        return Err("permits are lost".into());
    }
    saturated(effort)
}

/// Nanoseconds that each run takes where four threads do it at once.
fn four_threads<W: FnMut() + Send>(effort: Effort, work: impl Fn() -> W) -> f64 {
    let each = effort.pick(2_000_000_u32, 400_000);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let mut work = work();
            scope.spawn(move || (0..each).for_each(|_| work()));
        }
    });
    begin.elapsed().as_nanos() as f64 / f64::from(4 * each)
}

fn ask(source: &mut Source) -> Option<Permit> {
    match source.poll_acquire(&mut Context::from_waker(Waker::noop()), 1) {
        Poll::Ready(Ok(mut grant)) => grant.take(),
        _ => None,
    }
}

type Asking = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>>>>;

/// All are in use, and each that returns goes to one that waits; and what is kept for turns.
fn saturated(effort: Effort) -> Result<(), Failure> {
    let permits = HostPermits::new(1);
    let (mut one, mut other) = (permits.source(), permits.source());
    let mut held = ask(&mut one);
    let handed = nanoseconds(effort, || {
        let waits = ask(&mut other).is_none();
        held = None;
        held = ask(&mut other).filter(|_| waits);
        std::mem::swap(&mut one, &mut other);
    });
    emit("micro permits, handed to one that waits", "zlink wait + return", "ns", handed);
    if held.is_none() {
        return Err("a permit was not handed on".into());
    }
    let semaphore = Arc::new(Semaphore::new(1));
    let mut held = semaphore.clone().try_acquire_owned().ok();
    let handed = nanoseconds(effort, || {
        let mut asking: Asking = Box::pin(semaphore.clone().acquire_owned());
        let mut context = Context::from_waker(Waker::noop());
        let waits = asking.as_mut().poll(&mut context).is_pending();
        held = None;
        if let Poll::Ready(permit) = asking.as_mut().poll(&mut context) {
            held = permit.ok().filter(|_| waits);
        }
    });
    emit("micro permits, handed to one that waits", "tokio Semaphore", "ns", handed);
    if held.is_none() {
        return Err("the semaphore's permit was not handed on".into());
    }

    let permits = HostPermits::with_limits(PermitLimits::new(64, 80, 60)?.with_reserve());
    let others = permits.source().try_acquire(64);
    let turn = permits.turn_source();
    let kept = nanoseconds(effort, || drop(black_box(turn.try_acquire(1).and_then(|mut grant| grant.take()))));
    emit("micro permits, of those kept for turns", "zlink acquire + return", "ns", kept);
    match (others.map(|others| others.len()), permits.in_use()) {
        (Some(56), 0) => Ok(()),
        other => Err(format!("permits are lost: {other:?}").into()),
    }
}

/// A pick from members whose weights differ, and so have a long period.
fn selection(effort: Effort, members: u16) -> Result<(), Failure> {
    let weights: Vec<u16> = (0..members).map(|number| 1 + number % 7).collect();
    let selection = Selection::new(&weights);
    if selection.pick().is_none() {
        return Err("nothing can be picked".into());
    }
    let pick = nanoseconds(effort, || drop(black_box(selection.pick())));
    emit("micro select-one", &format!("zlink pick of {members}"), "ns", pick);
    Ok(())
}
