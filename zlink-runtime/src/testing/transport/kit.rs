//! What the cases share: sinks that remember, records, waits with a deadline; ends of links and raw connections below.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::id::{Generation, Rid};
use crate::permit::{HostPermits, Permit};
use crate::transport::{CloseReason, Flow, Lane, Lanes, Offer, Record, Sink, SocketType};
use bytes::Bytes;
use parking_lot::Mutex;

mod ends;
mod raw;

pub use ends::{Echo, EchoSink, End, Server, linked, with_permits};
pub use raw::{closed, greeted, message, push, raw};

/// The kind byte that tests use for completions.
pub const COMPLETION: u8 = 32;
/// The kind byte that tests use for everything else.
pub const ORDINARY: u8 = 16;

pub fn offer(identity: &str, permits: &HostPermits) -> Offer {
    Offer {
        socket: SocketType::Router,
        identity: Rid::new(identity).unwrap(),
        generation: Generation::random(),
        lanes: Lanes::Two,
        max_record: 1 << 20,
        budget: 4 << 20,
        receive_budget: None,
        permits: permits.clone(),
        flow: Flow::default(),
    }
}

/// A record of a kind, with a number and `padding` more bytes.
pub fn record(kind: u8, number: u32, padding: usize) -> Vec<u8> {
    let mut record = vec![1, kind];
    record.extend(number.to_le_bytes());
    record.resize(6 + padding, 0x5a);
    record
}

/// The number of a record, and whether all the rest is as it was made.
pub fn number(record: &[u8]) -> u32 {
    assert!(record[6..].iter().all(|byte| *byte == 0x5a), "the padding is damaged");
    u32::from_le_bytes(record[2..6].try_into().unwrap())
}

/// A record in one part.
pub fn rec(bytes: &[u8]) -> Record<'_> {
    Record {
        head: bytes,
        payload: &[],
    }
}

/// What a sink has heard.
#[derive(Default)]
pub struct Heard {
    pub records: Vec<(Lane, Bytes, Option<Permit>)>,
    pub endings: usize,
    pub closed: Vec<CloseReason>,
}

/// A sink that remembers; `keep` decides whether permits and records are kept.
#[derive(Clone, Default)]
pub struct Collector(Arc<Mutex<Heard>>, Arc<tokio::sync::Notify>);

impl Sink for Collector {
    fn record(&self, lane: Lane, record: Bytes, permit: Option<Permit>, _: tokio::time::Instant) {
        self.0.lock().records.push((lane, record, permit));
        self.1.notify_one();
    }

    fn ending(&self) {
        self.0.lock().endings += 1;
    }

    fn closed(&self, reason: &CloseReason) {
        self.0.lock().closed.push(reason.clone());
        self.1.notify_one();
    }
}

impl Collector {
    pub fn with<T>(&self, look: impl FnOnce(&mut Heard) -> T) -> T {
        look(&mut self.0.lock())
    }

    #[allow(clippy::len_without_is_empty, reason = "no case asks")]
    pub fn len(&self) -> usize {
        self.with(|heard| heard.records.len())
    }

    pub fn numbers(&self, on: Lane) -> Vec<u32> {
        self.with(|heard| {
            heard
                .records
                .iter()
                .filter(|(lane, ..)| *lane == on)
                .map(|(_, r, _)| number(r))
                .collect()
        })
    }

    /// Waits until there are more records than that, for at most ten seconds.
    pub async fn more_than(&self, count: usize) {
        let more = async {
            while self.len() <= count {
                assert_eq!(self.reason(), None, "the link ended, and a record was to come");
                self.1.notified().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), more)
            .await
            .expect("a record in time");
    }

    /// Gives all permits back.
    pub fn release(&self) {
        self.with(|heard| heard.records.iter_mut().for_each(|(.., permit)| *permit = None));
    }

    pub fn reason(&self) -> Option<CloseReason> {
        self.with(|heard| heard.closed.first().cloned())
    }
}

/// Waits until `condition` holds; says what was missed if it does not within ten seconds.
#[track_caller]
pub fn until(what: &'static str, mut condition: impl FnMut() -> bool) -> impl Future<Output = ()> {
    let at = std::panic::Location::caller();
    async move {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !condition() {
            assert!(Instant::now() < deadline, "{at}: not in time: {what}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Polls a future once, outside any task.
pub fn futures_poll<F: Future + Unpin>(future: &mut F) -> std::task::Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
}

/// Runs futures in this task until all are done.
pub async fn futures_all<F: Future>(futures: impl IntoIterator<Item = F>) {
    let mut running: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
    std::future::poll_fn(|cx| {
        for slot in &mut running {
            if slot.as_mut().is_some_and(|future| future.as_mut().poll(cx).is_ready()) {
                *slot = None;
            }
        }
        if running.iter().all(Option::is_none) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}
