//! Which gate a callback runs under, and what it may do there: the table of the contract as data.
//!
//! It knows the ways owners can share gates, by the contract's names for them, and nothing of what an owner is.

use std::sync::Arc;

use super::gate::{Inner, Ready, State};
use super::owner::Owner;
use super::queue::Phase;
use super::{Job, WorkersHandle};
use crate::sync::lock;

/// How the owners of one unit share gates. Chosen where a factory is registered, and never changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One gate for everything in it.
    #[default]
    SpotWide,
    /// A gate for its own lane, one for each member, one for each timer name.
    PerActor,
    /// A gate for its own lane with its timers, and one for each member.
    Entry,
    /// One gate; it has no members.
    Instance,
}

/// What kind of callback runs.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "Actors are the members; lifecycle callbacks of Spots say Build")
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callback {
    /// Packets, requests, subscriptions and ticks of the unit's own lane.
    Unit,
    /// Packets and requests of a member.
    Member,
    /// Ticks of a member.
    MemberTimer,
    /// Join, leave, closing, and the like, of either.
    Lifecycle,
    /// Factories, `configure`, relocation adapters.
    Build,
}

/// What a callback may do beside its own work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offers {
    /// Wait with Yield.
    pub(crate) yields: bool,
    /// Register a Join for its end.
    pub(crate) joins: bool,
    /// Signal that its unit is ready to move; where the unit was registered for that.
    pub(crate) ready: bool,
}

impl Mode {
    /// What `callback` may do in a unit of this mode; `signaled` is whether its application says when it may move.
    pub(crate) fn offers(self, callback: Callback, signaled: bool) -> Offers {
        let shared = matches!(self, Mode::SpotWide | Mode::Instance);
        let works = matches!(callback, Callback::Unit | Callback::Member | Callback::MemberTimer);
        let has_members = self != Mode::Instance;
        Offers {
            yields: works && shared && (has_members || callback == Callback::Unit),
            joins: matches!(callback, Callback::Unit | Callback::Member) && has_members,
            ready: works && self == Mode::SpotWide && signaled,
        }
    }
}

/// A unit: an owner with its own lane, and its members, under the gates of its mode.
pub(crate) struct Unit<J: Job> {
    mode: Mode,
    lane: Owner<J>,
}

impl<J: Job> Unit<J> {
    /// A unit that runs what it admits.
    pub(crate) fn on(workers: &WorkersHandle, mode: Mode) -> Self {
        Self::in_phase(&workers.0, mode, Phase::Open)
    }

    /// A unit that is being restored: it holds what it admits until its [`Arrival`](super::Arrival) opens it.
    #[cfg_attr(not(test), expect(dead_code, reason = "relocation moves by it"))]
    pub(crate) fn arriving(workers: &WorkersHandle, mode: Mode) -> Self {
        Self::in_phase(&workers.0, mode, Phase::Holding)
    }

    pub(super) fn in_phase(ready: &Arc<Ready>, mode: Mode, phase: Phase) -> Self {
        let lane = Owner::first(Inner::new(ready.clone(), 1, false, false, phase), false);
        Self { mode, lane }
    }

    /// How its owners share gates.
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// The owner of its own lane.
    pub(crate) fn lane(&self) -> &Owner<J> {
        &self.lane
    }

    /// A new member, whose jobs are one at a time under way, from start to end. It holds what it admits as long as the unit
    /// does. `None` where the mode has none.
    pub(crate) fn member(&self) -> Option<Owner<J>> {
        match self.mode {
            Mode::Instance => None,
            Mode::SpotWide => {
                let gate = self.lane.gate.clone();
                let mut state = lock(&gate.state);
                let phase = held(&mut state);
                let (at, serial) = state.add(true, phase);
                drop(state);
                Some(Owner {
                    gate,
                    at,
                    serial,
                    claims: true,
                })
            }
            Mode::PerActor | Mode::Entry => Some(self.alone(true)),
        }
    }

    /// The owner that the ticks of a new timer name go to.
    pub(crate) fn timer(&self) -> Owner<J> {
        match self.mode {
            Mode::PerActor => self.alone(false),
            Mode::SpotWide | Mode::Entry | Mode::Instance => self.lane.clone(),
        }
    }

    fn alone(&self, claims: bool) -> Owner<J> {
        let ready = self.lane.gate.host().clone();
        let phase = held(&mut lock(&self.lane.gate.state));
        Owner::first(Inner::new(ready, 1, false, claims, phase), claims)
    }
}

/// How the owners begin that a unit gets now.
fn held<J: Job>(state: &mut State<J>) -> Phase {
    match state.queue(0).map(|queue| queue.phase()) {
        Some(Phase::Holding) => Phase::Holding,
        _ => Phase::Open,
    }
}
