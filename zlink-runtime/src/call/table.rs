//! The pending table itself: a slab of requests, threaded by deadline. Pure: ticks are plain numbers, nothing waits.

use std::collections::BTreeMap;
use std::task::{Poll, Waker};

use bytes::Bytes;
use slab::Slab;

use crate::error::Error;
use crate::id::LinkId;

/// How a request ended.
pub(super) type Outcome = Result<Bytes, Error>;

/// Names one request in the table, and never another one later: slot number and use count of that slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    slot: u32,
    turn: u32,
}

impl Key {
    /// The correlation that travels: never 0, as `turn` is not.
    pub(crate) fn to_wire(self) -> u64 {
        u64::from(self.turn) << 32 | u64::from(self.slot)
    }

    pub(crate) fn from_wire(correlation: u64) -> Self {
        Self {
            slot: (correlation & 0xffff_ffff) as u32,
            turn: (correlation >> 32) as u32,
        }
    }
}

const NONE: u32 = u32::MAX;

struct Slot {
    turn: u32,
    tick: u64,
    /// The neighbours in the list of the same tick.
    before: u32,
    after: u32,
    link: Option<LinkId>,
    state: State,
}

enum State {
    Waits(Option<Waker>),
    Ended(Outcome),
}

#[derive(Default)]
pub(super) struct Table {
    slots: Slab<Slot>,
    /// The head of the list of every tick that has one.
    ticks: BTreeMap<u64, u32>,
    turns: u32,
    waiting: usize,
    /// The tick that the deadline driver sleeps for; it wakes by itself for every later one.
    armed: Option<u64>,
}

impl Table {
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Returns the key, and whether its deadline comes before the one that the driver sleeps for.
    pub(super) fn insert(&mut self, tick: u64, submitted: Option<(LinkId, Waker)>) -> (Key, bool) {
        let (link, waker) = submitted.unzip();
        self.turns = self.turns.checked_add(1).unwrap_or(1);
        let turn = self.turns;
        let first = self.armed.is_none_or(|armed| tick < armed);
        let slot = self.slots.insert(Slot {
            turn,
            tick,
            before: NONE,
            after: NONE,
            link,
            state: State::Waits(waker),
        });
        let slot = number(slot);
        self.thread(slot, tick);
        self.waiting += 1;
        (Key { slot, turn }, first)
    }

    pub(super) fn set_link(&mut self, key: Key, link: LinkId) {
        if let Some(slot) = self.get(key) {
            slot.link = Some(link);
        }
    }

    /// Ends a request that waits; `None` where it does not, or where `from` is not the link that carries it.
    pub(super) fn end(&mut self, key: Key, from: Option<LinkId>, outcome: Outcome) -> Option<Option<Waker>> {
        let slot = self.get(key)?;
        if from.is_some() && slot.link != from {
            return None;
        }
        self.finish(key.slot, outcome)
    }

    /// Ends all that wait on `link`, or all.
    pub(super) fn end_all(&mut self, link: Option<LinkId>, error: impl Fn() -> Error) -> Vec<Waker> {
        let on_link = |slot: &Slot| matches!(slot.state, State::Waits(_)) && (link.is_none() || slot.link == link);
        let ended: Vec<u32> = self
            .slots
            .iter()
            .filter(|(_, slot)| on_link(slot))
            .map(|(at, _)| number(at))
            .collect();
        ended
            .into_iter()
            .filter_map(|slot| self.finish(slot, Err(error())).flatten())
            .collect()
    }

    pub(super) fn waits_on(&self, link: LinkId) -> bool {
        self.slots
            .iter()
            .any(|(_, slot)| slot.link == Some(link) && matches!(slot.state, State::Waits(_)))
    }

    /// The first deadline, which the driver is about to sleep for.
    pub(super) fn arm(&mut self) -> Option<u64> {
        self.armed = self.ticks.first_key_value().map(|(tick, _)| *tick);
        self.armed
    }

    /// Ends at most `most` requests whose tick has come.
    pub(super) fn expire(&mut self, now: u64, most: usize, error: impl Fn() -> Error) -> Vec<Option<Waker>> {
        let mut wakers = Vec::new();
        while wakers.len() < most {
            let Some((&tick, &head)) = self.ticks.first_key_value() else {
                break;
            };
            if tick > now {
                break;
            }
            if let Some(waker) = self.finish(head, Err(error())) {
                wakers.push(waker);
            }
        }
        wakers
    }

    /// Takes the outcome, and the entry with it; or keeps the waker.
    pub(super) fn poll(&mut self, key: Key, waker: &Waker) -> Poll<Outcome> {
        let Some(slot) = self.get(key) else {
            return Poll::Pending;
        };
        match &mut slot.state {
            State::Ended(_) => {
                let State::Ended(outcome) = self.slots.remove(key.slot as usize).state else {
                    return Poll::Pending;
                };
                Poll::Ready(outcome)
            }
            State::Waits(Some(known)) if known.will_wake(waker) => Poll::Pending,
            State::Waits(known) => {
                *known = Some(waker.clone());
                Poll::Pending
            }
        }
    }

    /// Forgets a request, whatever its state.
    pub(super) fn remove(&mut self, key: Key) {
        if self.get(key).is_none() {
            return;
        }
        self.unthread(key.slot);
        let slot = self.slots.remove(key.slot as usize);
        if matches!(slot.state, State::Waits(_)) {
            self.waiting -= 1;
        }
    }

    fn get(&mut self, key: Key) -> Option<&mut Slot> {
        self.slots
            .get_mut(key.slot as usize)
            .filter(|slot| slot.turn == key.turn)
    }

    fn finish(&mut self, at: u32, outcome: Outcome) -> Option<Option<Waker>> {
        let slot = self.slots.get_mut(at as usize)?;
        let State::Waits(waker) = &mut slot.state else {
            return None;
        };
        let waker = waker.take();
        slot.state = State::Ended(outcome);
        self.unthread(at);
        self.waiting -= 1;
        Some(waker)
    }

    fn thread(&mut self, at: u32, tick: u64) {
        let head = self.ticks.insert(tick, at).unwrap_or(NONE);
        if let Some(slot) = self.slots.get_mut(at as usize) {
            slot.after = head;
        }
        if let Some(next) = self.slots.get_mut(head as usize) {
            next.before = at;
        }
    }

    /// Takes a slot out of the list of its tick; harmless where it is in none.
    fn unthread(&mut self, at: u32) {
        let Some(slot) = self.slots.get_mut(at as usize) else {
            return;
        };
        let (before, after, tick) = (slot.before, slot.after, slot.tick);
        let head = before == NONE;
        (slot.before, slot.after) = (NONE, NONE);
        if let Some(next) = self.slots.get_mut(after as usize) {
            next.before = before;
        }
        if let Some(previous) = self.slots.get_mut(before as usize) {
            previous.after = after;
        } else if head && self.ticks.get(&tick) == Some(&at) {
            if after == NONE {
                self.ticks.remove(&tick);
            } else {
                self.ticks.insert(tick, after);
            }
        }
    }
}

/// The number of a slot. More than 2^32 requests cannot wait at once: each holds far more than one byte of memory.
#[allow(clippy::cast_possible_truncation, reason = "memory ends long before")]
fn number(slot: usize) -> u32 {
    slot as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64),
        Remove(usize),
        Reply(usize),
        Expire(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..20_u64).prop_map(Step::Insert),
            (0..40_usize).prop_map(Step::Remove),
            (0..40_usize).prop_map(Step::Reply),
            (0..20_u64).prop_map(Step::Expire),
        ]
    }

    proptest! {
        /// The lists of the ticks hold exactly the requests that wait, whatever happens in whatever order.
        ///
        /// REQ: EX-87
        #[test]
        fn every_request_has_one_terminal(steps in proptest::collection::vec(step(), 0..200)) {
            let mut table = Table::default();
            let mut model: Vec<(Key, u64)> = Vec::new();
            for step in steps {
                match step {
                    Step::Insert(tick) => {
                        let armed = model.iter().map(|(_, other)| *other).min();
                        let (key, earlier) = table.insert(tick, None);
                        prop_assert_eq!(earlier, armed.is_none_or(|armed| tick < armed));
                        model.push((key, tick));
                    }
                    Step::Remove(at) if at < model.len() => table.remove(model.swap_remove(at).0),
                    Step::Reply(at) if at < model.len() => {
                        let (key, _) = model.swap_remove(at);
                        prop_assert!(table.end(key, None, Ok(Bytes::new())).is_some());
                        prop_assert!(table.end(key, None, Ok(Bytes::new())).is_none());
                        prop_assert!(table.poll(key, Waker::noop()).is_ready());
                        prop_assert!(table.poll(key, Waker::noop()).is_pending());
                    }
                    Step::Expire(now) => {
                        let due: Vec<Key> = model.iter().filter(|(_, tick)| *tick <= now).map(|(key, _)| *key).collect();
                        let ended = table.expire(now, usize::MAX, || Error::unknown(crate::error::ErrorKind::DeadlineExceeded, ""));
                        prop_assert_eq!(ended.len(), due.len());
                        for key in due {
                            prop_assert!(table.poll(key, Waker::noop()).is_ready());
                        }
                        model.retain(|(_, tick)| *tick > now);
                    }
                    Step::Remove(_) | Step::Reply(_) => {}
                }
                prop_assert_eq!(table.waiting(), model.len());
                prop_assert_eq!(table.arm(), model.iter().map(|(_, tick)| *tick).min());
            }
        }
    }
}
