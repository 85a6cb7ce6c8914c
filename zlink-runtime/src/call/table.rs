//! The pending table itself: a slab of requests, threaded by deadline and by link. Pure: ticks are plain numbers, nothing waits.

use std::collections::BTreeMap;
use std::task::{Poll, Waker};

use rustc_hash::FxHashMap;
use slab::Slab;

use crate::error::Error;
use crate::id::LinkId;
use crate::message::codec::Kept;

/// How a request ended.
pub(super) type Outcome = Result<Kept, Error>;

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
    tick_list: Neighbours,
    link: Option<LinkId>,
    /// The neighbours in the list of the same link.
    link_list: Neighbours,
    /// It waits for room on that link: nobody has it yet.
    in_line: bool,
    state: State,
}

#[derive(Clone, Copy)]
struct Neighbours {
    before: u32,
    after: u32,
}

const ALONE: Neighbours = Neighbours {
    before: NONE,
    after: NONE,
};

enum State {
    Waits(Option<Waker>),
    Ended(Outcome),
}

#[derive(Default)]
pub(super) struct Table {
    slots: Slab<Slot>,
    /// The head of the list of every tick that has one, but for the tick that was inserted last.
    ticks: BTreeMap<u64, u32>,
    /// That tick and its head: most requests of one moment end at the same.
    latest: Option<(u64, u32)>,
    /// The same of every link that requests wait on: the end of one link costs what waits there, and no more.
    links: FxHashMap<LinkId, u32>,
    turns: u32,
    waiting: usize,
    /// Those that have a link, and those of them that wait for room there.
    linked: usize,
    in_line: usize,
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
            tick_list: ALONE,
            link: None,
            link_list: ALONE,
            in_line: false,
            state: State::Waits(waker),
        });
        let slot = number(slot);
        self.thread(slot, tick);
        if let Some(link) = link {
            self.join(slot, link);
        }
        self.waiting += 1;
        (Key { slot, turn }, first)
    }

    pub(super) fn set_link(&mut self, key: Key, link: LinkId) {
        if self.get(key).is_some_and(|slot| matches!(slot.state, State::Waits(_))) {
            self.leave(key.slot);
            self.join(key.slot, link);
        }
    }

    /// Whether a request that has a link waits for room there.
    pub(super) fn set_in_line(&mut self, key: Key, in_line: bool) {
        if let Some(slot) = self.get(key).filter(|slot| slot.link.is_some())
            && std::mem::replace(&mut slot.in_line, in_line) != in_line
        {
            self.in_line = if in_line { self.in_line + 1 } else { self.in_line - 1 };
        }
    }

    /// Ends a request that waits. Where it does not, or where `from` is not the link that carries it, the outcome comes back:
    /// a message of a user's is not to be dropped here, where a lock is held.
    pub(super) fn end(&mut self, key: Key, from: Option<LinkId>, outcome: Outcome) -> Result<Option<Waker>, Outcome> {
        match self.get(key) {
            Some(slot) if from.is_none() || slot.link == from => self.finish(key.slot, outcome),
            _ => Err(outcome),
        }
    }

    /// Ends all that wait on `link`.
    pub(super) fn end_link(&mut self, link: LinkId, error: impl Fn() -> Error) -> Vec<Waker> {
        let mut wakers = Vec::new();
        // Each that ends leaves the list.
        while let Some(&head) = self.links.get(&link) {
            wakers.extend(self.finish(head, Err(error())).ok().flatten());
        }
        wakers
    }

    /// Ends all that wait.
    pub(super) fn end_all(&mut self, error: impl Fn() -> Error) -> Vec<Waker> {
        let waits = |(_, slot): &(usize, &Slot)| matches!(slot.state, State::Waits(_));
        let ended: Vec<u32> = self.slots.iter().filter(waits).map(|(at, _)| number(at)).collect();
        ended
            .into_iter()
            .filter_map(|slot| self.finish(slot, Err(error())).ok().flatten())
            .collect()
    }

    /// Whether any waits for a reply.
    pub(super) fn any_submitted(&self) -> bool {
        self.linked > self.in_line
    }

    pub(super) fn waits_on(&self, link: LinkId) -> bool {
        self.links.contains_key(&link)
    }

    /// The first deadline, which the driver is about to sleep for.
    pub(super) fn arm(&mut self) -> Option<u64> {
        self.armed = self.first().map(|(tick, _)| tick);
        self.armed
    }

    /// Ends at most `most` requests whose tick has come.
    pub(super) fn expire(&mut self, now: u64, most: usize, error: impl Fn() -> Error) -> Vec<Option<Waker>> {
        let mut wakers = Vec::new();
        while wakers.len() < most {
            let Some((tick, head)) = self.first() else { break };
            if tick > now {
                break;
            }
            if let Ok(waker) = self.finish(head, Err(error())) {
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

    /// Forgets a request, whatever its state. An outcome that nobody took comes back, as from [`Table::end`].
    pub(super) fn remove(&mut self, key: Key) -> Option<Outcome> {
        self.get(key)?;
        self.unthread(key.slot);
        self.leave(key.slot);
        let slot = self.slots.remove(key.slot as usize);
        match slot.state {
            State::Waits(_) => {
                self.waiting -= 1;
                None
            }
            State::Ended(outcome) => Some(outcome),
        }
    }

    fn get(&mut self, key: Key) -> Option<&mut Slot> {
        self.slots
            .get_mut(key.slot as usize)
            .filter(|slot| slot.turn == key.turn)
    }

    fn finish(&mut self, at: u32, outcome: Outcome) -> Result<Option<Waker>, Outcome> {
        let Some(slot) = self.slots.get_mut(at as usize) else {
            return Err(outcome);
        };
        let State::Waits(waker) = &mut slot.state else {
            return Err(outcome);
        };
        let waker = waker.take();
        slot.state = State::Ended(outcome);
        self.unthread(at);
        self.leave(at);
        self.waiting -= 1;
        Ok(waker)
    }

    /// Puts a slot that is in no list of a link into the one of `link`.
    fn join(&mut self, at: u32, link: LinkId) {
        let head = self.links.insert(link, at).unwrap_or(NONE);
        if let Some(slot) = self.slots.get_mut(at as usize) {
            slot.link = Some(link);
            slot.link_list.after = head;
            self.linked += 1;
        }
        if let Some(next) = self.slots.get_mut(head as usize) {
            next.link_list.before = at;
        }
    }

    /// Takes a slot out of the list of its link; harmless where it is in none.
    fn leave(&mut self, at: u32) {
        let Some(slot) = self.slots.get_mut(at as usize) else {
            return;
        };
        let Some(link) = slot.link.take() else { return };
        self.linked -= 1;
        self.in_line -= usize::from(std::mem::take(&mut slot.in_line));
        let Neighbours { before, after } = std::mem::replace(&mut slot.link_list, ALONE);
        if let Some(next) = self.slots.get_mut(after as usize) {
            next.link_list.before = before;
        }
        if let Some(previous) = self.slots.get_mut(before as usize) {
            previous.link_list.after = after;
        } else if after == NONE {
            self.links.remove(&link);
        } else {
            self.links.insert(link, after);
        }
    }

    /// The first tick, and the head of its list.
    fn first(&self) -> Option<(u64, u32)> {
        let others = self.ticks.first_key_value().map(|(tick, head)| (*tick, *head));
        match (others, self.latest) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    fn thread(&mut self, at: u32, tick: u64) {
        let head = match self.latest.replace((tick, at)) {
            Some((latest, head)) if latest == tick => head,
            latest => {
                self.ticks.extend(latest);
                self.ticks.remove(&tick).unwrap_or(NONE)
            }
        };
        if let Some(slot) = self.slots.get_mut(at as usize) {
            slot.tick_list.after = head;
        }
        if let Some(next) = self.slots.get_mut(head as usize) {
            next.tick_list.before = at;
        }
    }

    /// Takes a slot out of the list of its tick; harmless where it is in none.
    fn unthread(&mut self, at: u32) {
        let Some(slot) = self.slots.get_mut(at as usize) else {
            return;
        };
        let tick = slot.tick;
        let Neighbours { before, after } = std::mem::replace(&mut slot.tick_list, ALONE);
        if let Some(next) = self.slots.get_mut(after as usize) {
            next.tick_list.before = before;
        }
        if let Some(previous) = self.slots.get_mut(before as usize) {
            previous.tick_list.after = after;
        } else if self.latest == Some((tick, at)) {
            self.latest = (after != NONE).then_some((tick, after));
        } else if self.ticks.get(&tick) == Some(&at) {
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
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64, Option<u64>),
        Link(usize, u64),
        Line(usize, bool),
        Lose(u64),
        Remove(usize),
        Reply(usize),
        Expire(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..20_u64, proptest::option::of(0..4_u64)).prop_map(|(tick, link)| Step::Insert(tick, link)),
            (0..40_usize, 0..4_u64).prop_map(|(at, link)| Step::Link(at, link)),
            (0..40_usize, any::<bool>()).prop_map(|(at, in_line)| Step::Line(at, in_line)),
            (0..4_u64).prop_map(Step::Lose),
            (0..40_usize).prop_map(Step::Remove),
            (0..40_usize).prop_map(Step::Reply),
            (0..20_u64).prop_map(Step::Expire),
        ]
    }

    proptest! {
        /// The lists of the ticks and of the links hold exactly the requests that wait, whatever happens in whatever order.
        ///
        /// REQ: EX-87
        #[test]
        fn every_request_has_one_terminal(steps in proptest::collection::vec(step(), 0..200)) {
            let mut table = Table::default();
            let mut model: Vec<(Key, u64, Option<u64>)> = Vec::new();
            let mut line = std::collections::HashSet::new();
            let late = || Error::unknown(crate::error::ErrorKind::DeadlineExceeded, "");
            for step in steps {
                let mut due = Vec::new();
                match step {
                    Step::Insert(tick, link) => {
                        let armed = model.iter().map(|(_, other, _)| *other).min();
                        let submitted = link.map(|link| (LinkId(link), Waker::noop().clone()));
                        let (key, earlier) = table.insert(tick, submitted);
                        prop_assert_eq!(earlier, armed.is_none_or(|armed| tick < armed));
                        model.push((key, tick, link));
                    }
                    Step::Link(at, link) if at < model.len() => {
                        table.set_link(model[at].0, LinkId(link));
                        model[at].2 = Some(link);
                        line.remove(&model[at].0.to_wire());
                    }
                    Step::Line(at, in_line) if at < model.len() => {
                        table.set_in_line(model[at].0, in_line);
                        let key = model[at].0.to_wire();
                        _ = if in_line && model[at].2.is_some() { line.insert(key) } else { line.remove(&key) };
                    }
                    Step::Lose(link) => {
                        table.end_link(LinkId(link), late);
                        due = model.extract_if(.., |(_, _, on)| *on == Some(link)).collect();
                    }
                    Step::Remove(at) if at < model.len() => drop(table.remove(model.swap_remove(at).0)),
                    Step::Reply(at) if at < model.len() => {
                        let (key, _, link) = model.swap_remove(at);
                        prop_assert!(table.end(key, Some(LinkId(99)), Ok(Bytes::new().into())).is_err());
                        prop_assert!(table.end(key, link.map(LinkId), Ok(Bytes::new().into())).is_ok());
                        prop_assert!(table.end(key, None, Ok(Bytes::new().into())).is_err());
                        table.set_link(key, LinkId(1));
                        prop_assert!(table.poll(key, Waker::noop()).is_ready());
                        prop_assert!(table.poll(key, Waker::noop()).is_pending());
                    }
                    Step::Expire(now) => {
                        let ended = table.expire(now, usize::MAX, late);
                        due = model.extract_if(.., |(_, tick, _)| *tick <= now).collect();
                        prop_assert_eq!(ended.len(), due.len());
                    }
                    Step::Link(..) | Step::Line(..) | Step::Remove(_) | Step::Reply(_) => {}
                }
                for (key, ..) in due {
                    prop_assert!(table.poll(key, Waker::noop()).is_ready());
                }
                prop_assert_eq!(table.waiting(), model.len());
                prop_assert_eq!(table.arm(), model.iter().map(|(_, tick, _)| *tick).min());
                let submitted = |(key, _, link): &(Key, u64, Option<u64>)| link.is_some() && !line.contains(&key.to_wire());
                prop_assert_eq!(table.any_submitted(), model.iter().any(submitted));
                for link in 0..4 {
                    prop_assert_eq!(table.waits_on(LinkId(link)), model.iter().any(|(_, _, on)| *on == Some(link)));
                }
            }
            table.end_all(late);
            prop_assert_eq!((table.waiting(), table.links.len(), table.first()), (0, 0, None));
            prop_assert_eq!((table.linked, table.in_line), (0, 0));
        }
    }

    #[test]
    #[ignore = "measures; run it with --release --nocapture"]
    fn measure_100_000() {
        let error = || Error::unknown(crate::error::ErrorKind::Unavailable, "");
        let mut table = Table::default();
        for at in 0..100_000_u64 {
            table.insert(at % 1000, Some((LinkId(at % 1000), Waker::noop().clone())));
        }
        let begin = std::time::Instant::now();
        for link in 0..100 {
            std::hint::black_box(table.waits_on(LinkId(link)));
        }
        println!("100 waits_on: {:?}", begin.elapsed());
        let begin = std::time::Instant::now();
        for link in 0..100 {
            table.end_link(LinkId(link), error);
        }
        println!("100 ends of links of 100 requests each: {:?}", begin.elapsed());
        let begin = std::time::Instant::now();
        for at in 0..1_000_000_u64 {
            let (key, _) = table.insert(at / 1000, Some((LinkId(at % 4 + 5000), Waker::noop().clone())));
            assert!(
                table
                    .end(key, Some(LinkId(at % 4 + 5000)), Ok(Bytes::new().into()))
                    .is_ok()
            );
            let _ = table.poll(key, Waker::noop());
        }
        println!("1,000,000 requests: {:?}", begin.elapsed());
    }
}
