//! Who is woken by a queue, and when.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use super::*;

/// Looks, when it is woken, whether the queue is free: a waker may run whatever it likes, this queue's methods too.
struct Looks {
    queue: Arc<SendQueue>,
    woken: AtomicUsize,
    within: AtomicUsize,
}

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, Ordering::Relaxed);
        if self.queue.inner.try_lock().is_none() {
            self.within.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn nobody_is_woken_within_the_lock() {
    const BUDGET: usize = 100;
    let queue = Arc::new(SendQueue::new(BUDGET, 1000, false));
    let looks = Arc::new(Looks {
        queue: queue.clone(),
        woken: AtomicUsize::new(0),
        within: AtomicUsize::new(0),
    });
    let waker = Waker::from(looks.clone());
    let cx = &mut Context::from_waker(&waker);
    let woken = |by: &str, least: usize| {
        let woken = looks.woken.swap(0, Ordering::Relaxed);
        assert!(woken >= least, "{by} woke {woken}");
        assert_eq!(looks.within.load(Ordering::Relaxed), 0, "{by} wakes within the lock");
    };
    let full = [7; BUDGET - PREFIX];
    let wait = |cx: &mut Context<'_>| {
        let mut ticket = None;
        assert!(queue.poll_push(cx, &mut ticket, &mut full.to_vec()).is_pending());
        ticket
    };
    assert!(queue.poll_work(cx, &mut None).is_pending());
    let record = Record {
        head: &full,
        payload: &[],
    };
    queue.try_push(record).unwrap();
    woken("a push", 1);

    let mut ticket = wait(cx);
    assert!(queue.poll_uncrowded(cx).is_pending());
    let mut written = queue.take(&mut Vec::new());
    assert!(queue.poll_work(cx, &mut written).is_pending());
    woken("room", 1);
    assert!(queue.poll_push(cx, &mut ticket, &mut full.to_vec()).is_ready());
    woken("a push that had waited", 2);

    let ticket = wait(cx);
    assert!(queue.poll_uncrowded(cx).is_pending());
    queue.withdraw(ticket.unwrap());
    woken("who gives up", 1);

    let first = wait(cx);
    let second = wait(cx);
    queue.set_paused(true);
    let mut written = queue.take(&mut Vec::new());
    assert!(queue.poll_work(cx, &mut written).is_pending());
    queue.set_paused(false);
    woken("the end of a pause", 2);
    assert!(queue.poll_work(cx, &mut None).is_pending());
    queue.lapse();
    woken("a lapse", 2);

    assert!(queue.poll_uncrowded(cx).is_pending());
    assert!(queue.poll_work(cx, &mut None).is_pending());
    queue.close();
    woken("the end", 4);
    for mut ticket in [first, second] {
        assert!(queue.poll_push(cx, &mut ticket, &mut full.to_vec()).is_ready());
    }
}

/// A queue that is full and paused, and behind which others wait, takes a flow all the same; it goes before all that waits, and
/// of several only the newest.
///
/// REQ: PM-90
#[test]
fn a_flow_passes_what_is_held_back_and_only_the_newest_goes() {
    const BUDGET: usize = 100;
    let queue = SendQueue::new(BUDGET, 1000, false);
    let full = [7; BUDGET - PREFIX];
    let record = Record {
        head: &full,
        payload: &[],
    };
    queue.try_push(record).unwrap();
    queue.set_paused(true);
    let cx = &mut Context::from_waker(Waker::noop());
    let mut ticket = None;
    assert!(queue.poll_push(cx, &mut ticket, &mut full.to_vec()).is_pending());
    for version in 1..=3 {
        queue.flow(Flow {
            version,
            paused: version % 2 == 1,
        });
    }
    let mut before = Vec::new();
    let chunk = queue.take(&mut before).unwrap();
    let flow = wire::flow(3, true);
    assert!(before.ends_with(&flow), "{before:?}");
    assert_eq!(before.len(), 2 + PREFIX + flow.len(), "one of them, in one frame");
    assert_eq!((chunk.records(), chunk.charge()), (1, BUDGET));
    let mut none = Vec::new();
    assert!(queue.take(&mut none).is_none());
    assert_eq!(none, [0; 0], "it was told, and is not told again");
}
