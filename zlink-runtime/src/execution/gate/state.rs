//! What stands behind the lock of a gate: the queues of its owners, the lines of those with work, its turns.
//!
//! It takes no lock and wakes nobody: whoever holds the lock does.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use slab::Slab;
use tokio::time::Instant;

use super::Inner;
use crate::execution::Job;
use crate::execution::lane::{Chooser, Lane};
use crate::execution::place::{Hand, Places, Stand};
use crate::execution::queue::{Phase, Queue, Taken};
use crate::execution::run::{Held, Next};
use crate::limit::{OWNER_JOBS, OWNER_TIME};
use crate::permit::{Backlog, Permit};

pub(in crate::execution) struct State<J: Job> {
    /// In the ready set, or about to be.
    pub(super) ready: bool,
    /// Whether a woken turn comes before a new one.
    pub(super) woken_first: bool,
    chooser: Chooser,
    /// Turns that hold the gate.
    pub(in crate::execution) holders: u32,
    first: Queue<J>,
    /// Those beside the first, where there are any.
    others: Option<Box<Others<J>>>,
    /// Places of turns that hold the gate and were woken.
    #[expect(clippy::box_collection, reason = "an idle gate keeps one word for it, not four")]
    woken: Option<Box<VecDeque<u32>>>,
    pub(in crate::execution) places: Places<J>,
    /// What hardly any gate has, and none for long.
    rare: Option<Box<Rare>>,
}

/// The owners of a gate beside its first, and the order of all of them.
struct Others<J: Job> {
    queues: Slab<Queue<J>>,
    serials: u32,
    /// Owners with work in a lane, each once: application, lifecycle.
    lines: [VecDeque<u32>; 2],
    /// Jobs in a row of the first in the application line, and since when.
    share: u32,
    since: Option<Instant>,
}

#[derive(Default)]
struct Rare {
    /// Places of turns that gave the gate back and were stopped: they end under it.
    doomed: Vec<u32>,
    /// What is held while this unit moves: records, bytes.
    held: (usize, usize),
    /// Who waits for something of an owner: its end, its boundary.
    waits: Vec<Waker>,
}

impl<J: Job> State<J> {
    pub(super) fn new(claims: bool, phase: Phase) -> Self {
        Self {
            ready: false,
            woken_first: true,
            chooser: Chooser::default(),
            holders: 0,
            first: Queue::new(0, claims, phase),
            others: None,
            woken: None,
            places: Places::new(),
            rare: None,
        }
    }

    /// The queue of an owner; `None` where it is gone.
    #[inline]
    pub(in crate::execution) fn queue(&mut self, at: u32) -> Option<&mut Queue<J>> {
        match at {
            0 => Some(&mut self.first),
            at => self.others.as_mut()?.queues.get_mut(at as usize - 1),
        }
    }

    pub(in crate::execution) fn add(&mut self, claims: bool, phase: Phase) -> (u32, u32) {
        let was_alone = self.others.is_none();
        let others = self.others.get_or_insert_with(|| {
            Box::new(Others {
                queues: Slab::new(),
                serials: 0,
                lines: [VecDeque::new(), VecDeque::new()],
                share: 0,
                since: None,
            })
        });
        others.serials += 1;
        let serial = others.serials;
        let at = others.queues.insert(Queue::new(serial, claims, phase)) + 1;
        if was_alone {
            self.line_up(0);
        }
        (u32::try_from(at).unwrap_or(u32::MAX), serial)
    }

    pub(in crate::execution) fn remove(&mut self, at: u32) -> Option<Queue<J>> {
        let others = self.others.as_mut()?;
        others
            .lines
            .iter_mut()
            .for_each(|line| line.retain(|other| *other != at));
        others.queues.try_remove((at as usize).checked_sub(1)?)
    }

    /// What is held while this unit moves: records, bytes.
    pub(in crate::execution) fn held(&self) -> (usize, usize) {
        self.rare.as_ref().map_or((0, 0), |rare| rare.held)
    }

    pub(in crate::execution) fn set_held(&mut self, held: (usize, usize)) {
        if held != self.held() {
            self.rare.get_or_insert_default().held = held;
        }
    }

    /// The turn there has given the gate back, and was stopped: it ends once it has the gate.
    pub(in crate::execution) fn doom(&mut self, at: u32) {
        self.rare.get_or_insert_default().doomed.push(at);
    }

    pub(super) fn next_doomed(&mut self) -> Option<u32> {
        self.rare.as_mut()?.doomed.pop()
    }

    /// The turn there holds the gate, and may go on.
    fn goes_on(&mut self, at: u32) {
        self.woken.get_or_insert_default().push_back(at);
    }

    #[inline]
    pub(super) fn next_woken(&mut self) -> Option<u32> {
        self.woken.as_mut()?.pop_front()
    }

    /// Puts an owner into the lines that it has work for, behind the others. One that is alone needs no line.
    #[inline]
    pub(in crate::execution) fn line_up(&mut self, at: u32) {
        if self.others.is_some() {
            self.stand_in_line(at);
        }
    }

    fn stand_in_line(&mut self, at: u32) {
        for lane in [Lane::Application, Lane::Lifecycle] {
            let Some(queue) = self.queue(at) else { return };
            let stands = &mut queue.in_line[lane as usize];
            if !*stands && queue.is_ready(lane) {
                queue.in_line[lane as usize] = true;
                if let Some(others) = &mut self.others {
                    others.lines[lane as usize].push_back(at);
                }
            }
        }
    }

    /// The first in line that still has work for the lane.
    #[inline]
    fn front(&mut self, lane: Lane) -> Option<u32> {
        if self.others.is_none() {
            return self.first.is_ready(lane).then_some(0);
        }
        self.front_of_line(lane)
    }

    fn front_of_line(&mut self, lane: Lane) -> Option<u32> {
        loop {
            let at = self.others.as_ref()?.lines[lane as usize].front().copied()?;
            match self.queue(at) {
                Some(queue) if queue.is_ready(lane) => return Some(at),
                Some(queue) => queue.in_line[lane as usize] = false,
                None => {}
            }
            self.others.as_mut()?.leave_line(lane);
        }
    }

    #[inline]
    pub(super) fn has_work(&self, turns: u32) -> bool {
        let woken = self.woken.as_ref().is_some_and(|woken| !woken.is_empty());
        woken || self.holders < turns && self.may_start()
    }

    #[inline]
    fn may_start(&self) -> bool {
        if self.rare.as_ref().is_some_and(|rare| !rare.doomed.is_empty()) {
            return true;
        }
        match &self.others {
            None => self.first.is_ready(Lane::Application) || self.first.is_ready(Lane::Lifecycle),
            Some(others) => others.lines.iter().any(|line| !line.is_empty()),
        }
    }

    /// Wakes whoever waits for something that may have come true; outside the lock.
    pub(in crate::execution) fn waits(&mut self, at: u32) -> Vec<Waker> {
        if self.rare.is_none() || !self.queue(at).is_none_or(|queue| queue.may_be_at_rest()) {
            return Vec::new();
        }
        self.rare
            .as_mut()
            .map_or_else(Vec::new, |rare| std::mem::take(&mut rare.waits))
    }

    pub(in crate::execution) fn wait(&mut self, waker: &Waker) {
        let waits = &mut self.rare.get_or_insert_default().waits;
        if !waits.iter().any(|other| other.will_wake(waker)) {
            waits.push(waker.clone());
        }
    }

    /// A turn that waits was woken, or has ended its wait before it began.
    pub(super) fn wake(&mut self, at: u32) {
        let Some(place) = self.places.get(at) else { return };
        let (owner, stand) = (place.owner, place.stand);
        match stand {
            Stand::Running => place.woken = true,
            Stand::Resuming => {}
            Stand::Holding => self.goes_on(at),
            Stand::Yielded => {
                place.stand = Stand::Resuming;
                if let Some(queue) = self.queue(owner).filter(|queue| !queue.stopped) {
                    queue.push_resume(at);
                    self.line_up(owner);
                }
            }
        }
    }

    /// Takes a turn that waits and holds the gate out of its place, which stays its own.
    pub(in crate::execution) fn take_held(&mut self, at: u32) -> Option<J::Turn> {
        if let Some(woken) = &mut self.woken {
            woken.retain(|place| *place != at);
        }
        let place = self.places.get(at)?;
        place.stand = Stand::Running;
        place.slot.take()
    }

    /// A turn waits, and has been noticed to.
    pub(super) fn parked(&mut self, at: u32, woken: bool, yielded: bool) {
        let Some(place) = self.places.get(at) else { return };
        let woken = std::mem::take(&mut place.woken) || woken;
        place.stand = if yielded { Stand::Yielded } else { Stand::Holding };
        let owner = place.owner;
        self.holders -= u32::from(yielded);
        if self.queue(owner).is_none_or(|queue| queue.stopped) {
            // Stopped while it was polled: it ends where it would have gone on.
            if yielded {
                self.doom(at);
            } else {
                self.goes_on(at);
            }
        } else if woken {
            self.wake(at);
        }
    }

    pub(super) fn go_on(&mut self, at: u32, hand: &mut Option<Hand<J>>) -> Next<J> {
        if let Some(hand) = hand.take() {
            self.places.put_back(hand.slot.index());
        }
        let Some(place) = self.places.get(at) else {
            return Next::Leave;
        };
        place.stand = Stand::Running;
        let (slot, owner) = (place.slot.clone(), place.owner);
        let stopped = self.queue(owner).is_none_or(|queue| queue.stopped);
        Next::Resume { slot, owner, stopped }
    }

    /// Begins or continues a turn for which the gate is free.
    #[inline(always)]
    pub(super) fn start(&mut self, held: &mut Held<J>, now: Instant, gate: &Arc<Inner<J>>) -> Next<J> {
        let fronts = [self.front(Lane::Application), self.front(Lane::Lifecycle)];
        let Some(lane) = self.chooser.pick(fronts[0].is_some(), fronts[1].is_some()) else {
            return Next::Leave;
        };
        let Some(owner) = fronts[lane as usize] else {
            return Next::Leave;
        };
        let Some(queue) = self.queue(owner) else {
            return Next::Leave;
        };
        let Some(taken) = queue.take(lane, &mut held.work) else {
            return Next::Leave;
        };
        let hands_on = queue.hands_on();
        if self.others.is_some() {
            self.keep_or_leave_line(lane, owner, now);
        }
        self.holders += 1;
        match taken {
            Taken::Resume(place) => self.go_on(place, &mut held.hand),
            Taken::Job => {
                let hand = held.hand.get_or_insert_with(|| self.places.take(gate));
                if let Some(place) = self.places.get(hand.slot.index()) {
                    place.used = true;
                    place.owner = owner;
                }
                Next::Start { owner, hands_on }
            }
        }
    }

    /// The first in line was served.
    fn keep_or_leave_line(&mut self, lane: Lane, owner: u32, now: Instant) {
        let Some(queue) = self.queue(owner) else { return };
        let has_more = queue.has(lane);
        queue.in_line[lane as usize] = has_more;
        let Some(others) = &mut self.others else { return };
        if !has_more {
            others.leave_line(lane);
        } else if others.lines[lane as usize].len() > 1 && (lane == Lane::Lifecycle || others.has_had_its_share(now)) {
            others.rotate(lane);
        }
    }

    /// The permit of a turn that has begun goes to its owner's next job of the backlog. What is left over is to be dropped
    /// under no lock.
    pub(in crate::execution) fn hand_on(
        &mut self,
        owner: u32,
        permit: Permit,
    ) -> (Option<Permit>, Option<Box<Backlog>>) {
        let Some(queue) = self.queue(owner) else {
            return (Some(permit), None);
        };
        let unused = queue.hand_on(permit);
        self.line_up(owner);
        unused
    }

    /// Gives the memory back that no idle gate needs.
    pub(super) fn shrink(&mut self, owner: u32) {
        if let Some(others) = &mut self.others {
            others.lines = [VecDeque::new(), VecDeque::new()];
        }
        self.woken = None;
        if self.rare.as_ref().is_some_and(|rare| rare.is_empty()) {
            self.rare = None;
        }
        self.places.shrink();
        if let Some(queue) = self.queue(owner) {
            queue.shrink();
        }
    }
}

impl<J: Job> Others<J> {
    /// The front has no more work for the lane.
    fn leave_line(&mut self, lane: Lane) {
        self.lines[lane as usize].pop_front();
        self.share = 0;
    }

    /// The front has had its share, and others wait.
    fn rotate(&mut self, lane: Lane) {
        self.lines[lane as usize].rotate_left(1);
        self.share = 0;
    }

    fn has_had_its_share(&mut self, now: Instant) -> bool {
        if self.share == 0 {
            self.since = Some(now);
        }
        self.share += 1;
        let long = || {
            self.since
                .is_some_and(|since| now.saturating_duration_since(since) >= OWNER_TIME)
        };
        // In a model no time passes: it must run the same way twice.
        self.share >= OWNER_JOBS || !cfg!(any(zlink_loom, zlink_shuttle)) && long()
    }
}

impl Rare {
    fn is_empty(&self) -> bool {
        self.doomed.is_empty() && self.held == (0, 0) && self.waits.is_empty()
    }
}
