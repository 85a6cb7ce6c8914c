//! Requests that wait for their one terminal: the pending table, and the deadlines of everything in it.
//!
//! Removing an entry from the table is the terminal; whoever comes later finds nothing. It must not know routes,
//! records or links: an entry is tied to a [`LinkId`] only so that a lost link can end it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::clock;
use crate::error::{Error, ErrorKind};
use crate::id::LinkId;
use crate::message::codec::Kept;

mod table;

pub(crate) use table::Key;
use table::{Outcome, Table};

/// The requests of one host that wait.
#[derive(Clone)]
pub(crate) struct Pending(Arc<Inner>);

struct Inner {
    table: Mutex<Table>,
    /// Wakes the deadline driver when an earlier deadline than the one it sleeps for appears.
    earlier: Notify,
    /// Told when nothing waits any more, while somebody wants to know.
    idle: Notify,
    asked_idle: AtomicBool,
    /// Requests that ended at their deadlines.
    timeouts: AtomicU64,
    start: Instant,
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending")
            .field("waiting", &self.len())
            .finish_non_exhaustive()
    }
}

impl Pending {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner {
            table: Mutex::new(Table::default()),
            earlier: Notify::new(),
            idle: Notify::new(),
            asked_idle: AtomicBool::new(false),
            timeouts: AtomicU64::new(0),
            start: clock::now(),
        }))
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.0.table.lock().waiting()
    }

    /// How many ended at their deadlines.
    pub(crate) fn timeouts(&self) -> u64 {
        self.0.timeouts.load(Ordering::Relaxed)
    }

    /// Waits until nothing waits for a reply: what is submitted to nobody holds no stop up. Once asked, requests tell; a
    /// host asks when it stops.
    pub(crate) async fn all_ended(&self) {
        self.0.asked_idle.store(true, Ordering::SeqCst);
        loop {
            let idle = self.0.idle.notified();
            tokio::pin!(idle);
            idle.as_mut().enable();
            if !self.0.table.lock().any_submitted() {
                return;
            }
            idle.await;
        }
    }

    /// Registers a request before it is submitted, so that no reply can come unknown.
    pub(crate) fn register(&self, deadline: Instant) -> Waiting {
        self.insert(deadline, None)
    }

    /// The same for one that is submitted on `link` next, and whose end wakes `cx`.
    pub(crate) fn register_on(&self, deadline: Instant, link: LinkId, cx: &Context<'_>) -> Waiting {
        self.insert(deadline, Some((link, cx.waker().clone())))
    }

    fn insert(&self, deadline: Instant, submitted: Option<(LinkId, Waker)>) -> Waiting {
        let tick = self.tick_after(deadline);
        let (key, earlier) = self.0.table.lock().insert(tick, submitted);
        if earlier {
            self.0.earlier.notify_one();
        }
        Waiting {
            pending: self.clone(),
            key,
            ended: false,
        }
    }

    /// Ends a request with its reply. Returns whether it still waited.
    pub(crate) fn reply(&self, key: Key, from: LinkId, reply: impl Into<Kept>) -> bool {
        self.end(key, Some(from), Ok(reply.into()))
    }

    /// Ends a request with an error that its target reported.
    pub(crate) fn fail(&self, key: Key, from: LinkId, error: Error) -> bool {
        self.end(key, Some(from), Err(error))
    }

    fn end(&self, key: Key, from: Option<LinkId>, outcome: Outcome) -> bool {
        // What comes back is dropped once the lock is free.
        let ended = self.0.table.lock().end(key, from, outcome);
        wake(ended.ok())
    }

    /// Ends everything that was submitted on a link that is gone: nobody knows whether it ran.
    pub(crate) fn link_lost(&self, link: LinkId, why: &dyn fmt::Display) {
        let wakers = self.0.table.lock().end_link(link, || {
            Error::unknown(
                ErrorKind::Unavailable,
                format!("the link was lost before the reply came: {why}"),
            )
        });
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether anything waits for a reply on that link.
    pub(crate) fn waits_on(&self, link: LinkId) -> bool {
        self.0.table.lock().waits_on(link)
    }

    /// Ends everything, because the host stops.
    pub(crate) fn shut_down(&self) {
        let wakers = self
            .0
            .table
            .lock()
            .end_all(|| Error::unknown(ErrorKind::ShuttingDown, "this host stopped before the reply came"));
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Ends requests at their deadlines, until it is dropped. One per host; it needs no gate and no permit.
    pub(crate) async fn run_deadlines(self) {
        loop {
            let earlier = self.0.earlier.notified();
            let next = self.0.table.lock().arm();
            match next {
                None => earlier.await,
                Some(tick) => {
                    tokio::select! {
                        biased;
                        () = tokio::time::sleep_until(self.instant(tick)) => self.expire(),
                        () = earlier => {}
                    }
                }
            }
        }
    }

    fn expire(&self) {
        let now = self.tick_before(clock::now());
        loop {
            // A bounded part at a time: replies keep completing in between.
            let wakers = self.0.table.lock().expire(now, 256, || {
                Error::unknown(ErrorKind::DeadlineExceeded, "no reply came before the deadline")
            });
            if wakers.is_empty() {
                return;
            }
            self.0.timeouts.fetch_add(wakers.len() as u64, Ordering::Relaxed);
            wakers.into_iter().for_each(|waker| {
                if let Some(waker) = waker {
                    waker.wake();
                }
            });
        }
    }

    fn tell_idle(&self) {
        if self.0.asked_idle.load(Ordering::SeqCst) {
            self.0.idle.notify_waiters();
        }
    }

    fn tick_after(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.0.start);
        let millis = u64::from(since.subsec_nanos().div_ceil(1_000_000));
        since.as_secs().saturating_mul(1000).saturating_add(millis)
    }

    fn tick_before(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.0.start).as_millis()).unwrap_or(u64::MAX)
    }

    fn instant(&self, tick: u64) -> Instant {
        self.0.start + std::time::Duration::from_millis(tick)
    }
}

fn wake(ended: Option<Option<Waker>>) -> bool {
    match ended {
        None => false,
        Some(waker) => {
            if let Some(waker) = waker {
                waker.wake();
            }
            true
        }
    }
}

/// A request that waits. Dropping it gives the waiting up: a reply that comes later finds nothing.
pub(crate) struct Waiting {
    pending: Pending,
    key: Key,
    ended: bool,
}

impl Waiting {
    /// What travels as the request's correlation.
    pub(crate) fn key(&self) -> Key {
        self.key
    }

    /// Ties the request to the link that it goes out on. From now on the loss of that link ends it.
    pub(crate) fn on_link(&self, link: LinkId) {
        self.pending.0.table.lock().set_link(self.key, link);
    }

    /// Tells whether it waits for room on its link: then nobody has it yet.
    pub(crate) fn in_line(&self, in_line: bool) {
        self.pending.0.table.lock().set_in_line(self.key, in_line);
        if in_line {
            self.pending.tell_idle();
        }
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        let outcome = self.pending.0.table.lock().poll(self.key, cx.waker());
        if outcome.is_ready() {
            self.ended = true;
        }
        outcome
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.ended {
            let unread = self.pending.0.table.lock().remove(self.key);
            drop(unread);
        }
        self.pending.tell_idle();
    }
}

#[cfg(test)]
#[cfg(zlink_loom)]
mod model;
#[cfg(test)]
#[cfg(not(any(zlink_loom, zlink_shuttle)))]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;

    const LINK: LinkId = LinkId(7);

    async fn terminal(mut waiting: Waiting) -> Outcome {
        poll_fn(|cx| waiting.poll(cx)).await
    }

    fn in_ms(millis: u64) -> Instant {
        clock::now() + Duration::from_millis(millis)
    }

    /// REQ: MSG-201, MSG-203, EX-90
    #[tokio::test(start_paused = true)]
    async fn a_reply_before_the_first_poll_is_kept_and_a_second_finds_nothing() {
        let pending = Pending::new();
        let waiting = pending.register(in_ms(10));
        waiting.on_link(LINK);
        let key = waiting.key();
        assert!(pending.reply(key, LINK, Bytes::from_static(b"one")));
        assert!(!pending.reply(key, LINK, Bytes::from_static(b"two")));
        assert_eq!(terminal(waiting).await, Ok(Bytes::from_static(b"one").into()));
        assert!(!pending.reply(key, LINK, Bytes::from_static(b"three")));
        assert_eq!(pending.len(), 0);
    }

    /// REQ: MSG-207, EX-88
    #[tokio::test(start_paused = true)]
    async fn deadlines_end_requests_on_time_and_in_order() {
        let pending = Pending::new();
        let driver = tokio::spawn(pending.clone().run_deadlines());
        let begin = clock::now();
        let late = tokio::spawn(terminal(pending.register(in_ms(5_000))));
        let early = tokio::spawn(terminal(pending.register(in_ms(200))));
        let error = early.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DeadlineExceeded);
        assert_eq!(begin.elapsed(), Duration::from_millis(200));
        assert_eq!(late.await.unwrap().unwrap_err().kind(), ErrorKind::DeadlineExceeded);
        assert_eq!(begin.elapsed(), Duration::from_millis(5_000));
        assert_eq!(pending.len(), 0);
        driver.abort();
    }

    /// REQ: MSG-205, EX-100
    #[tokio::test(start_paused = true)]
    async fn a_dropped_request_leaves_nothing_behind() {
        let pending = Pending::new();
        for _ in 0..10_000 {
            let waiting = pending.register(in_ms(30_000));
            let key = waiting.key();
            drop(waiting);
            assert!(!pending.reply(key, LINK, Bytes::new()));
        }
        assert_eq!(pending.len(), 0);
        assert_eq!(pending.0.table.lock().arm(), None, "no deadline outlives its request");
    }

    /// REQ: NET-109, NET-607
    #[tokio::test(start_paused = true)]
    async fn only_the_link_that_carried_a_request_can_end_it() {
        let pending = Pending::new();
        let waiting = pending.register(in_ms(10));
        waiting.on_link(LINK);
        assert!(
            !pending.reply(waiting.key(), LinkId(8), Bytes::new()),
            "a reply from another link matches nothing"
        );
        pending.link_lost(LinkId(8), &"gone");
        assert_eq!(pending.len(), 1);
        pending.link_lost(LINK, &"gone");
        let error = terminal(waiting).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert_eq!(error.execution(), crate::error::Execution::Unknown);
    }

    /// A slot that is used again has another key, so a reply to the earlier call cannot end the later one.
    ///
    /// REQ: CH-502, CH-503, RT-013
    #[tokio::test(start_paused = true)]
    async fn keys_of_reused_slots_differ() {
        let pending = Pending::new();
        let first = pending.register(in_ms(10));
        let old = first.key();
        drop(first);
        let second = pending.register(in_ms(10));
        second.on_link(LINK);
        assert_ne!(old, second.key());
        assert!(!pending.reply(old, LINK, Bytes::new()));
        assert!(pending.reply(second.key(), LINK, Bytes::new()));
    }

    /// All that can end a request meets at it, over and over: it ends once, and whoever ended it knows.
    ///
    /// REQ: EX-87, EX-90, MSG-202, ERR-108
    #[test]
    fn five_contenders_end_a_request_once() {
        use std::sync::Barrier;
        use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

        const ROUNDS: u32 = 10_000;
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _inside = runtime.enter();
        let pending = Pending::new();
        let (gate, key, wins) = (Barrier::new(5), AtomicU64::new(0), AtomicU32::new(0));
        let contend = |act: &dyn Fn(Key) -> bool| {
            for _ in 0..ROUNDS {
                gate.wait();
                if act(Key::from_wire(key.load(SeqCst))) {
                    wins.fetch_add(1, SeqCst);
                }
                gate.wait();
            }
        };
        let rejected = || Error::not_executed(ErrorKind::Rejected, "no");
        let mut ends = [0_u32; 5];
        std::thread::scope(|scope| {
            scope.spawn(|| contend(&|key| pending.reply(key, LINK, Bytes::new())));
            scope.spawn(|| contend(&|key| pending.fail(key, LINK, rejected())));
            scope.spawn(|| {
                contend(&|_| {
                    pending.link_lost(LINK, &"gone");
                    false
                });
            });
            scope.spawn(|| {
                contend(&|_| {
                    pending.shut_down();
                    false
                });
            });
            for round in 0..ROUNDS {
                let mut waiting = pending.register(clock::now() + Duration::from_secs(30));
                waiting.on_link(LINK);
                key.store(waiting.key().to_wire(), SeqCst);
                wins.store(0, SeqCst);
                gate.wait();
                // In every other round the caller gives up at the same moment.
                if round % 2 == 0 {
                    drop(waiting);
                    gate.wait();
                    ends[4] += 1;
                    assert!(wins.load(SeqCst) <= 1);
                } else {
                    gate.wait();
                    let mut cx = Context::from_waker(Waker::noop());
                    let Poll::Ready(outcome) = waiting.poll(&mut cx) else {
                        panic!("round {round}: it did not end");
                    };
                    let (end, won) = match outcome.map_err(|error| error.kind()) {
                        Ok(_) => (0, 1),
                        Err(ErrorKind::Rejected) => (1, 1),
                        Err(ErrorKind::Unavailable) => (2, 0),
                        Err(_) => (3, 0),
                    };
                    ends[end] += 1;
                    assert_eq!(wins.load(SeqCst), won, "round {round}");
                    drop(waiting);
                }
                assert_eq!(pending.len(), 0);
            }
        });
        assert_eq!(ends.iter().sum::<u32>(), ROUNDS);
    }
}
