//! Model checks: every interleaving of a few threads that take, return, give up and close.
//!
//! `scripts/model loom loom_`

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use loom::sync::Notify;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use loom::thread;

use super::{Closed, Flow, Grant, HostPermits, PermitLimits, Receiver, Receivers, Source};

/// A waker that a modelled thread can sleep on.
struct Sleep(Notify);

impl Sleep {
    fn new() -> Arc<Self> {
        Arc::new(Self(Notify::new()))
    }
}

impl Wake for Sleep {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

fn acquire(source: &mut Source, want: u32) -> Result<Grant, Closed> {
    let sleep = Sleep::new();
    let waker = Waker::from(sleep.clone());
    loop {
        match source.poll_acquire(&mut Context::from_waker(&waker), want) {
            Poll::Ready(result) => return result,
            Poll::Pending => sleep.0.wait(),
        }
    }
}

/// A bounded search: all interleavings with at most three switches that the code did not ask for.
fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Permits of which one is left. A return of it changes no flow, so that nothing but the mark of a waiter makes it
/// look for one.
fn one_left() -> (HostPermits, Grant) {
    let permits = HostPermits::with_limits(PermitLimits::new(2, 100, 0).unwrap());
    let other = permits.source().try_acquire(1).unwrap();
    (permits, other)
}

fn at_rest(permits: &HostPermits) {
    let status = permits.status();
    assert_eq!(
        (status.reserved, status.queued, status.waiting, status.flow.paused),
        (0, 0, 0, false)
    );
}

/// REQ: PM-20, PM-27, PM-36
#[test]
fn loom_each_who_waits_is_served_and_never_two_at_once() {
    check(|| {
        let (permits, other) = one_left();
        let holders = Arc::new(AtomicU32::new(0));
        let take = {
            let (permits, holders) = (permits.clone(), holders.clone());
            move || {
                let mut permit = acquire(&mut permits.source(), 2).unwrap().take().unwrap();
                assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                permit.queue();
                holders.fetch_sub(1, Ordering::SeqCst);
                permit.start();
            }
        };
        let second = thread::spawn(take.clone());
        take();
        second.join().unwrap();
        drop(other);
        at_rest(&permits);
    });
}

/// A permit that comes back is for the one that waits, however soon another asks.
///
/// REQ: PM-34, PM-35
#[test]
fn loom_nobody_passes_who_waits() {
    check(|| {
        let (permits, other) = one_left();
        let held = permits.source().try_acquire(1).unwrap();
        let cx = &mut Context::from_waker(Waker::noop());
        let (mut first, mut late) = (permits.source(), permits.source());
        assert!(first.poll_acquire(cx, 1).is_pending());
        let returning = thread::spawn(move || drop(held));
        assert!(late.try_acquire(1).is_none());
        assert!(late.poll_acquire(cx, 1).is_pending());
        returning.join().unwrap();
        assert!(first.poll_acquire(cx, 1).is_ready());
        late.cancel();
        drop(other);
        at_rest(&permits);
    });
}

/// REQ: PM-27
#[test]
fn loom_a_wait_given_up_during_the_grant_leaves_nothing() {
    check(|| {
        let (permits, other) = one_left();
        let held = permits.source().try_acquire(1).unwrap();
        let leaver = thread::spawn({
            let mut source = permits.source();
            move || drop(source.poll_acquire(&mut Context::from_waker(Waker::noop()), 1))
        });
        let waiter = thread::spawn({
            let mut source = permits.source();
            move || drop(acquire(&mut source, 1))
        });
        drop(held);
        leaver.join().unwrap();
        waiter.join().unwrap();
        drop(other);
        at_rest(&permits);
    });
}

/// REQ: PM-27, PM-36
#[test]
fn loom_a_close_ends_the_wait_or_comes_after_it() {
    check(|| {
        let (permits, other) = one_left();
        let held = permits.source().try_acquire(1).unwrap();
        let waiter = thread::spawn({
            let mut source = permits.source();
            move || drop(acquire(&mut source, 1))
        });
        let closer = thread::spawn({
            let permits = permits.clone();
            move || permits.close()
        });
        drop(held);
        waiter.join().unwrap();
        closer.join().unwrap();
        assert!(acquire(&mut permits.source(), 1).is_err());
        drop(other);
        at_rest(&permits);
    });
}

/// REQ: PM-81, PM-85, PM-86
#[test]
fn loom_what_was_published_last_is_the_last_state() {
    check(|| {
        let permits = HostPermits::new(1);
        let mut watch = permits.watch();
        let toggle = {
            let permits = permits.clone();
            move || permits.source().try_acquire(1).is_some()
        };
        let other = thread::spawn(toggle.clone());
        let watcher = thread::spawn(move || {
            let sleep = Sleep::new();
            let waker = Waker::from(sleep.clone());
            let mut last = None;
            loop {
                match std::pin::pin!(watch.changed()).poll(&mut Context::from_waker(&waker)) {
                    Poll::Ready(None) => return last,
                    Poll::Ready(flow) => last = flow,
                    Poll::Pending => sleep.0.wait(),
                }
            }
        });
        assert!(toggle() | other.join().unwrap());
        permits.close();
        let (last, flow) = (watcher.join().unwrap(), permits.flow());
        assert_eq!(last.unwrap_or_default(), flow);
        at_rest(&permits);
    });
}

/// Whoever sees that the flow is paused and waits for its end gets there, though the pause may be over before it was published.
///
/// REQ: PM-81, PM-86
#[test]
fn loom_whoever_waits_for_the_end_of_a_pause_sees_it() {
    check(|| {
        let permits = HostPermits::new(1);
        let mut watch = permits.watch();
        let others = [(); 2].map(|()| {
            let permits = permits.clone();
            thread::spawn(move || drop(permits.source().try_acquire(1)))
        });
        if permits.is_paused() {
            let sleep = Sleep::new();
            let waker = Waker::from(sleep.clone());
            let mut running = std::pin::pin!(watch.running());
            while running.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                sleep.0.wait();
            }
        }
        for other in others {
            other.join().unwrap();
        }
        at_rest(&permits);
    });
}

/// Two turns want the one permit that is kept, while another one returns.
///
/// REQ: PM-64, PM-27, PM-36
#[test]
fn loom_what_is_kept_for_turns_goes_round_and_comes_back() {
    check(|| {
        let limits = PermitLimits::new(8, 100, 0).unwrap().with_reserve();
        let permits = HostPermits::with_limits(limits);
        let mut others = permits.source().try_acquire(7).unwrap();
        let returned = others.take();
        let take = {
            let permits = permits.clone();
            move || drop(acquire(&mut permits.turn_source(), 1).unwrap())
        };
        let second = thread::spawn(take.clone());
        let third = thread::spawn(move || drop(returned));
        take();
        second.join().unwrap();
        third.join().unwrap();
        assert_eq!((permits.in_use(), permits.status().lent), (6, 0));
        // Nothing is left behind that would keep others from what is free.
        assert_eq!(permits.source().try_acquire(9).map(|grant| grant.len()), Some(1));
        drop(others);
        at_rest(&permits);
    });
}

/// REQ: PM-64, PM-27
#[test]
fn loom_a_turn_that_gives_up_leaves_the_reserve_whole() {
    check(|| {
        let permits = HostPermits::with_limits(PermitLimits::new(8, 100, 0).unwrap().with_reserve());
        let others = permits.source().try_acquire(7).unwrap();
        let lent = permits.turn_source().try_acquire(1).unwrap();
        let leaver = thread::spawn({
            let mut source = permits.turn_source();
            move || drop(source.poll_acquire(&mut Context::from_waker(Waker::noop()), 1))
        });
        let closer = thread::spawn({
            let permits = permits.clone();
            move || permits.close()
        });
        drop(lent);
        leaver.join().unwrap();
        closer.join().unwrap();
        assert_eq!((permits.in_use(), permits.status().lent), (7, 0));
        drop(others);
        at_rest(&permits);
    });
}

/// The newest version that it was told.
#[derive(Clone, Default)]
struct Told(Arc<AtomicU64>);

impl Receiver for Told {
    fn apply(&self, flow: Flow) {
        self.0.fetch_max(flow.version, Ordering::SeqCst);
    }
}

/// One comes, another goes, and the flow changes twice: whoever stays knows the last value.
///
/// REQ: PM-86, PM-87
#[test]
fn loom_a_new_receiver_misses_no_change() {
    check(|| {
        let receivers = Arc::new(Receivers::new());
        let (stays, leaves) = (Told::default(), Told::default());
        receivers.enter(1, leaves.clone());
        let coming = thread::spawn({
            let (receivers, stays) = (receivers.clone(), stays.clone());
            move || receivers.enter(2, stays)
        });
        let going = thread::spawn({
            let receivers = receivers.clone();
            move || receivers.leave(1)
        });
        for version in 1..3 {
            let paused = version == 1;
            receivers.apply(Flow { version, paused });
        }
        coming.join().unwrap();
        going.join().unwrap();
        assert_eq!(stays.0.load(Ordering::SeqCst), receivers.flow().version);
        let last = leaves.0.load(Ordering::SeqCst);
        let version = 3;
        receivers.apply(Flow { version, paused: true });
        assert_eq!(leaves.0.load(Ordering::SeqCst), last, "who has gone is told nothing");
        assert_eq!(stays.0.load(Ordering::SeqCst), 3);
    });
}
