//! The places of a gate's turns: which turn stands where, whose it is, and whether it holds the gate.
//!
//! A place is used again only where no waker of an earlier turn is left: what completes late finds nobody.

use std::sync::Arc;
use std::task::Waker;

use super::Job;
use super::gate::Inner;
use super::slot::Slot;

/// Where a turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// Nobody's, or in a worker's hands: it holds the gate.
    Running,
    /// It waits, and keeps the gate.
    Holding,
    /// It waits, and has given the gate back.
    Yielded,
    /// It waits no more, and stands in its owner's queue to go on.
    Resuming,
}

pub(super) struct Place<J: Job> {
    pub(super) slot: Arc<Slot<J>>,
    /// Whose turn it is.
    pub(super) owner: u32,
    pub(super) stand: Stand,
    /// Woken, and not noticed yet.
    pub(super) woken: bool,
    pub(super) used: bool,
    /// The next place that is free, while this one is.
    next: u32,
}

/// A place and its waker, in a worker's hand from one turn to the next.
pub(super) struct Hand<J: Job> {
    pub(super) slot: Arc<Slot<J>>,
    pub(super) waker: Waker,
}

impl<J: Job> Hand<J> {
    pub(super) fn new(slot: Arc<Slot<J>>) -> Self {
        Self {
            waker: Waker::from(slot.clone()),
            slot,
        }
    }

    /// Whether wakers are left beside the one here, of whatever turn.
    fn is_shared(&self) -> bool {
        // The place, this hand, and this hand's waker.
        Arc::strong_count(&self.slot) > 3
    }
}

pub(super) struct Places<J: Job> {
    places: Vec<Place<J>>,
    /// The first that is free, and how many are.
    free: u32,
    unused: u32,
}

/// No place.
const NONE: u32 = u32::MAX;

impl<J: Job> Places<J> {
    pub(super) const fn new() -> Self {
        Self {
            places: Vec::new(),
            free: NONE,
            unused: 0,
        }
    }

    pub(super) fn get(&mut self, at: u32) -> Option<&mut Place<J>> {
        self.places.get_mut(at as usize)
    }

    /// A free place.
    pub(super) fn take(&mut self, gate: &Arc<Inner<J>>) -> Hand<J> {
        if let Some(place) = self.places.get(self.free as usize) {
            self.free = place.next;
            self.unused -= 1;
            return Hand::new(place.slot.clone());
        }
        let slot = Arc::new(Slot::new(Arc::downgrade(gate), index(self.places.len())));
        self.places.push(Place {
            slot: slot.clone(),
            owner: 0,
            stand: Stand::Running,
            woken: false,
            used: false,
            next: NONE,
        });
        Hand::new(slot)
    }

    /// The turn of a place was taken out of it, and has ended.
    pub(super) fn retire(&mut self, at: u32) {
        if let Some(place) = self.places.get_mut(at as usize) {
            place.used = false;
            place.stand = Stand::Running;
            place.woken = false;
            place.slot = Arc::new(Slot::new(place.slot.gate().clone(), at));
            self.put_back(at);
        }
    }

    /// The turn in the hand has ended: its place is ready for the next one, which nothing of it can reach.
    #[inline]
    pub(super) fn clear(&mut self, hand: &mut Hand<J>) {
        let Some(place) = self.places.get_mut(hand.slot.index() as usize) else {
            return;
        };
        place.used = false;
        place.stand = Stand::Running;
        place.woken = false;
        if hand.is_shared() {
            place.slot = Arc::new(Slot::new(hand.slot.gate().clone(), hand.slot.index()));
            *hand = Hand::new(place.slot.clone());
        } else {
            hand.slot.reset();
        }
    }

    pub(super) fn put_back(&mut self, at: u32) {
        if let Some(place) = self.places.get_mut(at as usize) {
            place.next = self.free;
            self.free = at;
            self.unused += 1;
        }
    }

    /// The places of the turns of one owner.
    pub(super) fn of(&self, owner: u32) -> impl Iterator<Item = (u32, &Place<J>)> {
        (0..)
            .zip(&self.places)
            .filter(move |(_, place)| place.used && place.owner == owner)
    }

    /// Gives the memory back where no turn is under way.
    pub(super) fn shrink(&mut self) {
        if self.unused as usize == self.places.len() {
            *self = Self::new();
        }
    }
}

/// Turns of one gate stay far below this: its limit bounds those that hold it, permits those that have yielded.
fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
