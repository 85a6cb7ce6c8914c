//! The permits under random use, against a small model of what they are.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll};

use proptest::prelude::*;

use super::Count;
use crate::permit::{Closed, Flow, HostPermits, Permit, PermitLimits, Source};

#[derive(Clone, Copy, Debug)]
enum Op {
    Poll { source: usize, want: u32 },
    Try { source: usize, want: u32 },
    Queue { at: usize },
    Return { at: usize, start: bool },
    Cancel { source: usize },
    Close,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0_usize..4, 1_u32..4).prop_map(|(source, want)| Op::Poll { source, want }),
        1 => (0_usize..4, 1_u32..4).prop_map(|(source, want)| Op::Try { source, want }),
        2 => (0_usize..8).prop_map(|at| Op::Queue { at }),
        5 => (0_usize..8, any::<bool>()).prop_map(|(at, start)| Op::Return { at, start }),
        1 => (0_usize..4).prop_map(|source| Op::Cancel { source }),
        1 => Just(Op::Close),
    ]
}

/// What the permits are, said plainly. Sources 2 and 3 are those of turns.
struct Model {
    max: u32,
    reserve: u32,
    lent: u32,
    in_use: u32,
    closed: bool,
    waiting: VecDeque<(usize, u32)>,
    handed: BTreeMap<usize, (u32, bool)>,
    woken: [u32; 4],
    paused: bool,
    /// What was published: the state after each operation, not in the middle of one.
    flow: Flow,
}

const fn is_turn(source: usize) -> bool {
    source >= 2
}

impl Model {
    fn new(max: u32, reserve: u32) -> Self {
        Self {
            max,
            reserve,
            lent: 0,
            in_use: 0,
            closed: false,
            waiting: VecDeque::new(),
            handed: BTreeMap::new(),
            woken: [0; 4],
            paused: false,
            flow: Flow::default(),
        }
    }

    fn free(&self) -> u32 {
        self.max - self.reserve + self.lent - self.in_use
    }

    fn grant(&mut self, want: u32, lent: bool) -> (u32, bool) {
        let count = want.min(if lent { self.reserve - self.lent } else { self.free() });
        self.lent += if lent { count } else { 0 };
        self.in_use += count;
        self.derive();
        (count, lent)
    }

    /// Grants what nobody waits for.
    fn take(&mut self, source: usize, want: u32) -> Option<(u32, bool)> {
        let turns_wait = self.waiting.iter().any(|waiter| is_turn(waiter.0));
        let granted = if self.waiting.is_empty() && self.free() > 0 {
            Some(self.grant(want, false))
        } else if is_turn(source) && !turns_wait && self.lent < self.reserve {
            Some(self.grant(want, true))
        } else {
            None
        };
        self.publish();
        granted
    }

    fn hand(&mut self, at: usize, lent: bool) {
        let (source, want) = self.waiting.remove(at).unwrap();
        let granted = self.grant(want, lent);
        self.handed.insert(source, granted);
        self.woken[source] += 1;
    }

    fn give_back(&mut self, count: u32, lent: bool) {
        self.lent -= if lent { count } else { 0 };
        self.in_use -= count;
        self.derive();
        while self.free() > 0 && !self.waiting.is_empty() {
            self.hand(0, false);
        }
        while self.lent < self.reserve
            && let Some(at) = self.waiting.iter().position(|waiter| is_turn(waiter.0))
        {
            self.hand(at, true);
        }
        self.publish();
    }

    fn derive(&mut self) {
        let pause = (self.max * 80).div_ceil(100).min(self.max - self.reserve);
        let resume = (self.max * 60 / 100).min(pause - 1);
        self.paused = match self.paused {
            false => self.in_use >= pause,
            true => self.in_use > resume,
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
        if let Some((count, lent)) = self.handed.remove(&source) {
            let extra = count.saturating_sub(want);
            if extra > 0 {
                self.give_back(extra, lent);
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
        if let Some((count, _)) = self.take(source, want) {
            return Some(Ok(count));
        }
        self.waiting.push_back((source, want));
        None
    }

    fn cancel(&mut self, source: usize) {
        self.waiting.retain(|waiter| waiter.0 != source);
        if let Some((count, lent)) = self.handed.remove(&source) {
            self.give_back(count, lent);
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

    /// REQ: PM-20, PM-27, PM-35, PM-64, PM-81
    #[test]
    fn under_random_use_they_are_what_the_model_says(
        max in 1_u32..20, kept in any::<bool>(), ops in prop::collection::vec(op(), 0..80),
    ) {
        let limits = PermitLimits::new(max, 80, 60).unwrap();
        let limits = if kept { limits.with_reserve() } else { limits };
        let permits = HostPermits::with_limits(limits);
        let mut model = Model::new(max, limits.reserve());
        let mut sources: Vec<Source> = (0..4)
            .map(|source| if is_turn(source) { permits.turn_source() } else { permits.source() })
            .collect();
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
                Op::Try { source, want } => {
                    let grant = sources[source].try_acquire(want);
                    let expected = if model.closed { None } else { model.take(source, want) };
                    prop_assert_eq!(grant.as_ref().map(|grant| (grant.left, grant.lent)), expected);
                    // A grant that is dropped whole.
                    if let Some(grant) = grant {
                        model.give_back(grant.len(), grant.lent);
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
                        let lent = permit.lent;
                        if start { permit.start() } else { drop(permit) }
                        model.give_back(1, lent);
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
            prop_assert_eq!((status.in_use(), status.lent), (model.in_use, model.lent));
            prop_assert!(status.lent <= limits.reserve());
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
