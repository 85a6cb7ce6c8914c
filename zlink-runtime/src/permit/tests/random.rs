//! The permits under random use, against a small model of what they are.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll};

use proptest::prelude::*;

use super::Count;
use crate::permit::{Closed, Flow, Grant, HostPermits, Permit, Source};

#[derive(Clone, Copy, Debug)]
enum Op {
    Poll { source: usize, want: u32 },
    Try { want: u32 },
    Queue { at: usize },
    Return { at: usize, start: bool },
    Cancel { source: usize },
    Close,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0_usize..4, 1_u32..4).prop_map(|(source, want)| Op::Poll { source, want }),
        1 => (1_u32..4).prop_map(|want| Op::Try { want }),
        2 => (0_usize..8).prop_map(|at| Op::Queue { at }),
        5 => (0_usize..8, any::<bool>()).prop_map(|(at, start)| Op::Return { at, start }),
        1 => (0_usize..4).prop_map(|source| Op::Cancel { source }),
        1 => Just(Op::Close),
    ]
}

/// What the permits are, said plainly.
struct Model {
    max: u32,
    in_use: u32,
    closed: bool,
    waiting: VecDeque<(usize, u32)>,
    handed: BTreeMap<usize, u32>,
    woken: [u32; 4],
    paused: bool,
    /// What was published: the state after each operation, not in the middle of one.
    flow: Flow,
}

impl Model {
    fn grant(&mut self, want: u32) -> u32 {
        let count = want.min(self.max - self.in_use);
        self.in_use += count;
        self.derive();
        count
    }

    fn take(&mut self, want: u32) -> u32 {
        let count = self.grant(want);
        self.publish();
        count
    }

    fn give_back(&mut self, count: u32) {
        self.in_use -= count;
        self.derive();
        while self.in_use < self.max
            && let Some((source, want)) = self.waiting.pop_front()
        {
            let count = self.grant(want);
            self.handed.insert(source, count);
            self.woken[source] += 1;
        }
        self.publish();
    }

    fn derive(&mut self) {
        self.paused = match self.paused {
            false => self.in_use >= (self.max * 80).div_ceil(100),
            true => self.in_use > self.max * 60 / 100,
        };
    }

    fn publish(&mut self) {
        if self.paused != self.flow.paused {
            self.flow = Flow {
                version: self.flow.version + 1,
                paused: self.paused,
            };
        }
    }

    /// `None` while pending.
    fn poll(&mut self, source: usize, want: u32) -> Option<Result<u32, Closed>> {
        if let Some(count) = self.handed.remove(&source) {
            let extra = count.saturating_sub(want);
            if extra > 0 {
                self.give_back(extra);
            }
            return Some(Ok(count.min(want)));
        }
        if self.closed {
            return Some(Err(Closed));
        }
        if let Some(waiter) = self.waiting.iter_mut().find(|waiter| waiter.0 == source) {
            waiter.1 = want;
            return None;
        }
        if self.waiting.is_empty() && self.in_use < self.max {
            return Some(Ok(self.take(want)));
        }
        self.waiting.push_back((source, want));
        None
    }

    fn cancel(&mut self, source: usize) {
        self.waiting.retain(|waiter| waiter.0 != source);
        if let Some(count) = self.handed.remove(&source) {
            self.give_back(count);
        }
    }

    fn close(&mut self) {
        self.closed = true;
        for (source, _) in self.waiting.drain(..) {
            self.woken[source] += 1;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// REQ: PM-20, PM-27, PM-35, PM-81
    #[test]
    fn under_random_use_they_are_what_the_model_says(max in 1_u32..7, ops in prop::collection::vec(op(), 0..60)) {
        let permits = HostPermits::new(max);
        let mut model = Model {
            max, in_use: 0, closed: false, waiting: VecDeque::new(), handed: BTreeMap::new(), woken: [0; 4],
            paused: false, flow: Flow::default(),
        };
        let mut sources: Vec<Source> = (0..4).map(|_| permits.source()).collect();
        let wakes: Vec<Arc<Count>> = (0..4).map(|_| Arc::default()).collect();
        let mut held: Vec<(Permit, bool)> = Vec::new();
        for op in ops {
            match op {
                Op::Poll { source, want } => {
                    let waker = wakes[source].waker();
                    let got = match sources[source].poll_acquire(&mut Context::from_waker(&waker), want) {
                        Poll::Pending => None,
                        Poll::Ready(Err(Closed)) => Some(Err(Closed)),
                        Poll::Ready(Ok(mut grant)) => {
                            let count = grant.len();
                            held.extend(std::iter::from_fn(|| grant.take()).map(|permit| (permit, false)));
                            Some(Ok(count))
                        }
                    };
                    prop_assert_eq!(got, model.poll(source, want));
                }
                Op::Try { want } => {
                    let open = !model.closed && model.waiting.is_empty() && model.in_use < max;
                    let grant = sources[0].try_acquire(want);
                    prop_assert_eq!(grant.as_ref().map(Grant::len), open.then(|| model.take(want)));
                    // A grant that is dropped whole.
                    if let Some(grant) = grant {
                        model.give_back(grant.len());
                    }
                }
                Op::Queue { at } => {
                    if let Some((permit, queued)) = held.get_mut(at) {
                        permit.queue();
                        *queued = true;
                    }
                }
                Op::Return { at, start } => {
                    if at < held.len() {
                        let (permit, _) = held.swap_remove(at);
                        if start { permit.start() } else { drop(permit) }
                        model.give_back(1);
                    }
                }
                Op::Cancel { source } => {
                    sources[source].cancel();
                    model.cancel(source);
                }
                Op::Close => {
                    permits.close();
                    model.close();
                }
            }
            let status = permits.status();
            prop_assert_eq!(status.in_use(), model.in_use);
            prop_assert!(status.in_use() <= max);
            let queued = held.iter().filter(|it| it.1).count();
            prop_assert_eq!(status.queued as usize, queued);
            prop_assert_eq!(status.waiting, model.waiting.len());
            prop_assert_eq!(status.flow, model.flow);
            prop_assert_eq!(wakes.iter().map(|wakes| wakes.woken()).collect::<Vec<_>>(), model.woken.to_vec());
        }
        drop((held, sources));
        prop_assert_eq!((permits.in_use(), permits.status().waiting), (0, 0));
        prop_assert!(!permits.flow().paused);
    }
}
