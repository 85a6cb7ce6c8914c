//! One live Spot or Actor on this host: its queues, its state, its phase, its timers. It must not know how others find it.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::channel::Outbound;
use crate::clock;
use crate::error::{ArgumentError, Error, ErrorKind};
pub(super) use crate::execution::let_go;
use crate::execution::{Callback, CpuPool, Halted, IoPool, Offers, Overrun, Owner, Unit};
use crate::id::{ObjectGeneration, ObjectId, ObjectKind, ObjectRef, SpotId, TimerName};
use crate::location::{AuthorityError, SpotRecord};
use crate::wire::{ObjectCall, SpotTarget};

use super::close::Closed;
use super::desk::Incoming;
use super::factory::SpotFactory;
use super::here::Route;
use super::job::{SpotJob, Ticking, Work};
use super::recorded::Recorded;
use super::shared::Shared;
use super::spots::{Home, Inner};
use super::value::CloseReason;

/// Before a store that failed is told again to forget a first message.
const FORGET_AGAIN: Duration = Duration::from_millis(500);

/// How far a Spot has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Phase {
    /// It is being made: what may wait for that waits behind it.
    Creating,
    Ready,
    /// Another host was first to make it: what was accepted here goes there, in order.
    Forwarding,
    /// It takes nothing new.
    Closing,
    /// It is gone, or another host has it.
    Ended,
}

impl Phase {
    fn of(number: u8) -> Self {
        match number {
            0 => Phase::Creating,
            1 => Phase::Ready,
            2 => Phase::Forwarding,
            3 => Phase::Closing,
            _ => Phase::Ended,
        }
    }
}

/// One Spot or Actor. Of what it keeps while nothing happens, everything that its host knows anyway is left out: there may be a million.
pub(super) struct Object {
    pub(super) id: ObjectId,
    pub(super) spots: Arc<Inner>,
    pub(super) home: Arc<Home>,
    pub(super) factory: SpotFactory,
    lanes: Lanes,
    /// Of this incarnation; 0 until its ID is reserved, which comes before everything of the user's.
    generation: AtomicU64,
    /// Whether calls of this host go here without asking anybody.
    pub(super) route: Route,
    /// When its last application turn ended, in nanoseconds since its host's Spots began.
    worked: AtomicU64,
    state: Mutex<State>,
    /// The cell of a state of the Spot's own type, once it is made.
    cell: OnceLock<Arc<dyn Any + Send + Sync>>,
    rare: OnceLock<Box<Rare>>,
    /// A [`Phase`]; written with the state locked.
    phase: AtomicU8,
}

/// Where its turns run.
enum Lanes {
    /// A unit of its own: a Spot's.
    Own(Unit<SpotJob>),
    /// Of an Actor, a member of that Spot's.
    Member(Box<Seat>),
}

/// An Actor's place in a Spot.
struct Seat {
    spot: Arc<Object>,
    owner: Owner<SpotJob>,
}

/// What an object has once it is asked for.
#[derive(Default)]
struct Rare {
    reference: OnceLock<ObjectRef>,
    /// The owners of its timers.
    timers: Mutex<BTreeMap<TimerName, Owner<SpotJob>>>,
}

#[derive(Default)]
struct State {
    record: Recorded,
    /// The generation of its ID that was taken from this host last, and with it all before.
    taken: Option<ObjectGeneration>,
    end: Option<Box<End>>,
}

/// What is of its end, and behind it.
#[derive(Default)]
struct End {
    /// Why it is gone, for what still waits.
    why: Option<Error>,
    /// What makes it anew once it is gone, in order, and until when that may take.
    after: Vec<(Instant, Incoming)>,
    /// Whether it has asked for that as it was made.
    at_once: bool,
    /// How everything of the user's has ended, once that is known, where somebody has begun to close it.
    over: Option<watch::Sender<Option<Closed>>>,
    /// Whoever does, as long as that waits for what is the user's.
    closer: Option<Waker>,
}

impl Object {
    pub(super) fn new(spots: Arc<Inner>, home: Arc<Home>, factory: SpotFactory, id: ObjectId) -> Arc<Self> {
        let lanes = Lanes::Own(Unit::on(&spots.workers, factory.parts().mode));
        Self::in_lanes(spots, home, factory, id, lanes)
    }

    /// An Actor, which begins in `spot`; `None` where that has no members.
    pub(super) fn member(spot: &Arc<Self>, factory: SpotFactory, id: ObjectId) -> Option<Arc<Self>> {
        let Lanes::Own(unit) = &spot.lanes else { return None };
        let (spot, owner) = (spot.clone(), unit.member()?);
        let (spots, home) = (spot.spots.clone(), spot.home.clone());
        let lanes = Lanes::Member(Box::new(Seat { spot, owner }));
        Some(Self::in_lanes(spots, home, factory, id, lanes))
    }

    fn in_lanes(spots: Arc<Inner>, home: Arc<Home>, factory: SpotFactory, id: ObjectId, lanes: Lanes) -> Arc<Self> {
        Arc::new(Self {
            id,
            home,
            factory,
            lanes,
            generation: AtomicU64::new(0),
            route: Route::default(),
            worked: AtomicU64::new(spots.moment(clock::now())),
            state: Mutex::default(),
            cell: OnceLock::new(),
            rare: OnceLock::new(),
            phase: AtomicU8::new(Phase::Creating as u8),
            spots,
        })
    }

    /// Its ID is reserved: everything of the user's comes after this. Whether it is so still: this host may have heard of
    /// its own reservation after others have taken it.
    pub(super) fn is_reserved(&self, generation: ObjectGeneration) -> bool {
        let state = self.state.lock();
        self.generation.store(generation.get(), Ordering::Release);
        state.taken < Some(generation)
    }

    /// Another host has taken its ID up to that generation. Whether it is one of those, as far as that is known.
    pub(super) fn is_taken(&self, upto: ObjectGeneration) -> bool {
        let mut state = self.state.lock();
        state.taken = state.taken.max(Some(upto));
        (1..=upto.get()).contains(&self.generation.load(Ordering::Acquire))
    }

    /// Its generation.
    ///
    /// # Panics
    /// Before its ID is reserved: nothing of the user's runs then.
    pub(super) fn generation(&self) -> ObjectGeneration {
        let generation = ObjectGeneration::new(self.generation.load(Ordering::Acquire));
        generation.expect("an object is reserved before it is made")
    }

    /// This incarnation of it.
    ///
    /// # Panics
    /// As [`Object::generation`].
    pub(super) fn reference(&self) -> &ObjectRef {
        self.rare().reference.get_or_init(|| {
            let (mesh, node) = (self.home.mesh.clone(), self.home.rid.clone());
            ObjectRef::new(self.id.clone(), self.generation(), mesh, node)
        })
    }

    fn rare(&self) -> &Rare {
        self.rare.get_or_init(Box::default)
    }

    /// Whether that is its generation.
    pub(super) fn is_of(&self, generation: u64) -> bool {
        generation != 0 && self.generation.load(Ordering::Acquire) == generation
    }

    pub(super) fn lane(&self) -> &Owner<SpotJob> {
        match &self.lanes {
            Lanes::Own(unit) => unit.lane(),
            Lanes::Member(seat) => &seat.owner,
        }
    }

    /// Of an Actor, the Spot that it is a member of.
    pub(super) fn spot(&self) -> Option<&Arc<Object>> {
        match &self.lanes {
            Lanes::Own(_) => None,
            Lanes::Member(seat) => Some(&seat.spot),
        }
    }

    /// Whether it is the Entry Spot of its node.
    pub(super) fn is_entry(self: &Arc<Self>) -> bool {
        self.factory.parts().kind == ObjectKind::Entry
    }

    /// Of an Actor, the ID of the Spot that it is a member of.
    pub(super) fn seat(&self) -> Option<SpotId> {
        self.spot()?.id.spot().cloned()
    }

    /// What people call it.
    pub(super) fn noun(&self) -> &'static str {
        self.id.space().noun()
    }

    /// What events call it.
    pub(super) fn surface(&self) -> &'static str {
        self.id.space().surface()
    }

    /// What its application callbacks may do, where a Spot's would be `callback`.
    pub(super) fn offers(&self, callback: Callback) -> Offers {
        match (&self.lanes, callback) {
            (Lanes::Own(unit), _) => unit.mode().offers(callback, false),
            (Lanes::Member(seat), Callback::Unit) => seat.spot.offers(Callback::Member),
            (Lanes::Member(seat), _) => seat.spot.offers(callback),
        }
    }

    pub(super) fn cell(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.cell.get().map(|cell| &**cell)
    }

    pub(super) fn phase(&self) -> Phase {
        Phase::of(self.phase.load(Ordering::Acquire))
    }

    /// With the state locked, so that what depends on both is one section.
    fn set_phase(&self, state: &mut State, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
        if phase == Phase::Ended {
            let closer = state.end.as_mut().and_then(|end| end.closer.take());
            closer.into_iter().for_each(Waker::wake);
        }
    }

    /// Whether it is gone; whoever closes it is woken once it is.
    pub(super) fn has_ended(&self, cx: &Context<'_>) -> bool {
        let mut state = self.state.lock();
        if self.phase() == Phase::Ended {
            return true;
        }
        let closer = &mut state.end.get_or_insert_default().closer;
        if closer.as_ref().is_none_or(|known| !known.will_wake(cx.waker())) {
            *closer = Some(cx.waker().clone());
        }
        false
    }

    pub(super) fn record(&self) -> Option<SpotRecord> {
        self.state.lock().record.whole(self)
    }

    /// Its record, where that is of this very incarnation and owner: who lost a race keeps the winner's.
    pub(super) fn own_record(&self) -> Option<SpotRecord> {
        let owner = self.spots.fence.lease().config().owner;
        let is_own = |record: &SpotRecord| record.owner == owner && self.is_of(record.generation.get());
        self.record().filter(is_own)
    }

    /// Its record has changed in the store, and it is still its owner.
    pub(super) fn has_record(&self, record: &SpotRecord) {
        self.state.lock().record = Recorded::of(record, self);
    }

    /// Whether it is to end as soon as it is there.
    pub(super) fn is_brief(&self) -> bool {
        self.state.lock().end.as_ref().is_some_and(|end| end.at_once)
    }

    /// It is made and recorded.
    pub(super) fn is_ready(&self, record: &SpotRecord) {
        let mut state = self.state.lock();
        state.record = Recorded::of(record, self);
        self.has_worked();
        if self.phase() == Phase::Creating {
            self.set_phase(&mut state, Phase::Ready);
        }
    }

    /// It is made. Where it has ended meanwhile, its state is of no use any more.
    pub(super) fn has_state(&self, cell: Arc<dyn Any + Send + Sync>) {
        let _ = self.cell.set(cell);
        let ended = {
            // Whoever ends it after this finds the state.
            let _state = self.state.lock();
            self.phase() == Phase::Ended
        };
        if ended {
            self.forget();
        }
    }

    /// Another host has it: what waits here goes there.
    pub(super) fn forwards(&self, owner: SpotRecord) {
        let mut state = self.state.lock();
        state.record = Recorded::Other(Box::new(owner));
        self.set_phase(&mut state, Phase::Forwarding);
    }

    /// Who has it instead of this host.
    pub(super) fn forwards_to(&self) -> Option<SpotRecord> {
        if self.phase() != Phase::Forwarding {
            return None;
        }
        self.record()
    }

    /// Whether another host has it, and all that was accepted here has gone there.
    pub(super) fn has_sent_all_on(&self) -> bool {
        self.phase() == Phase::Forwarding && self.unfinished() == 0
    }

    /// Which owner it has, as its record says.
    pub(super) fn target(&self) -> Option<SpotTarget> {
        let (lease, generation, owner_generation) = self.state.lock().record.owner(self)?;
        Some(SpotTarget {
            generation: generation.get(),
            owner_generation,
            lease: lease.get(),
        })
    }

    /// Why a call for another owner than this one, as it is now, is not for it.
    pub(super) fn refusal(&self, call: &ObjectCall) -> Option<(ErrorKind, &'static str)> {
        let (lease, generation, owner_generation) = self.state.lock().record.owner(self)?;
        let other_owner = call.lease != lease.get();
        let other_generation = call.generation == generation.get() && call.owner_generation != owner_generation;
        (other_owner || other_generation).then_some((ErrorKind::Unavailable, "another owner was meant"))
    }

    /// Why what waits for it does not run.
    pub(super) fn why_ended(&self) -> Error {
        let ended = self.state.lock().end.as_ref().and_then(|end| end.why.clone());
        ended.unwrap_or_else(|| {
            let text = format!("the {} ended before the call could start", self.noun());
            Error::not_executed(ErrorKind::ShuttingDown, text)
        })
    }

    /// The message that it was made by has come to its end: the store need not know it any more, as soon as it answers.
    pub(super) fn first_is_done(self: &Arc<Self>) {
        let (mut object, known) = (self.clone(), Arc::downgrade(self));
        self.spots.runtime.spawn(async move {
            while !object.forgets_first().await {
                // Its host may end meanwhile.
                drop(object);
                tokio::time::sleep(FORGET_AGAIN).await;
                match known.upgrade() {
                    Some(there) if there.phase() != Phase::Ended => object = there,
                    _ => return,
                }
            }
        });
    }

    /// Whether the store has forgotten what it was made by, or never will.
    async fn forgets_first(&self) -> bool {
        let is_there = |record: &SpotRecord| !record.inbox.is_empty() || record.blob.is_some();
        let Some(record) = self.own_record().filter(is_there) else {
            return true;
        };
        match self.spots.authority.preserve(&record, Bytes::new()).await {
            Ok(cleared) => {
                self.has_record(&cleared);
                self.spots.unpointed(record.blob);
                true
            }
            Err(AuthorityError::Store(_) | AuthorityError::Closed) => false,
            // Closed meanwhile, or taken away: then it is gone with the record.
            Err(error) => {
                tracing::debug!(target: "zlink::spot", spot = %self.id, %error, "an inbox stays");
                true
            }
        }
    }

    /// An application turn of it has ended. Only who may be closed for having nothing to do keeps when.
    #[inline]
    pub(super) fn has_worked(&self) {
        if self.home.idle_timeout.is_some() {
            self.worked.store(self.spots.moment(clock::now()), Ordering::Relaxed);
        }
    }

    /// Since when it has nothing to do; `None` while it has.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let status = self.lane().status();
        let is_idle = self.phase() == Phase::Ready && status.queued == 0 && status.active == 0;
        is_idle.then(|| self.spots.start + Duration::from_nanos(self.worked.load(Ordering::Relaxed)))
    }

    pub(super) fn outbound(&self) -> &Outbound {
        &self.spots.outbound
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.spots.shared
    }

    pub(super) fn cpu(&self) -> &CpuPool {
        &self.spots.cpu
    }

    pub(super) fn io(&self) -> &IoPool {
        &self.spots.io
    }

    /// Takes no new work from here on. Returns whether this call began that.
    pub(super) fn seal(&self, kind: ErrorKind) -> bool {
        let mut state = self.state.lock();
        let begins = matches!(self.phase(), Phase::Creating | Phase::Ready);
        if begins {
            self.set_phase(&mut state, Phase::Closing);
        }
        drop(state);
        if begins {
            self.end_timers();
            self.owners().iter().for_each(|owner| owner.close(kind));
        }
        begins
    }

    /// Whoever is first to ask closes it; others hear how that went.
    pub(super) fn begins_to_end(&self) -> Result<(), watch::Receiver<Option<Closed>>> {
        let mut state = self.state.lock();
        let end = state.end.get_or_insert_default();
        if let Some(over) = &end.over {
            return Err(over.subscribe());
        }
        end.over = Some(watch::Sender::new(None));
        Ok(())
    }

    /// Everything of the user's has ended, `so`. Returns what all that close it are told: what was said first.
    pub(super) fn has_closed(&self, so: Closed) -> Closed {
        let state = self.state.lock();
        let Some(over) = state.end.as_ref().and_then(|end| end.over.as_ref()) else {
            return so;
        };
        over.send_if_modified(|told| {
            let is_first = told.is_none();
            told.get_or_insert(so);
            is_first
        });
        let told = *over.borrow();
        told.unwrap_or(so)
    }

    /// Closes it, in a task of its own: from a turn of it, that waits for the turn's end. What is being made ends once it is
    /// Ready.
    pub(super) fn begin_close(self: &Arc<Self>, reason: CloseReason) {
        if self.phase() == Phase::Creating {
            self.state.lock().end.get_or_insert_default().at_once = true;
        }
        if self.phase() == Phase::Ready {
            let object = self.clone();
            let runtime = self.spots.runtime.clone();
            // The seal is at once: what comes behind this turn is refused.
            if object.seal(ErrorKind::Unavailable) {
                runtime.spawn(async move { object.spots.clone().finish_close(object, reason, None).await });
            }
        }
    }

    /// Ends it here and now: another host has it, or it was never made. What waits is told why. Its state is dropped once
    /// no turn has it: it may hold a context, and so this.
    pub(super) fn stop_with(self: &Arc<Self>, why: Error) {
        let kind = why.kind();
        self.state.lock().end.get_or_insert_default().why.get_or_insert(why);
        self.stop(kind);
        let object = self.clone();
        self.spots.runtime.spawn(async move {
            object.drained().await;
            object.forget();
        });
    }

    /// The same, for who must not wait: what is dropped with its turns is the user's, and goes in a task of its own.
    pub(super) fn stop_apart(self: &Arc<Self>, why: Error) {
        let kind = why.kind();
        self.state.lock().end.get_or_insert_default().why.get_or_insert(why);
        let (object, halted) = (self.clone(), self.halt(kind));
        self.spots.runtime.spawn(async move {
            drop(halted);
            object.drained().await;
            object.forget();
        });
    }

    /// Nothing of it runs any more.
    pub(super) fn forget(&self) {
        self.factory.life().forget(self);
    }

    /// The same without a reason of its own.
    pub(super) fn stop(self: &Arc<Self>, kind: ErrorKind) {
        drop(self.halt(kind));
    }

    fn halt(&self, kind: ErrorKind) -> Vec<Halted<SpotJob>> {
        self.set_phase(&mut self.state.lock(), Phase::Ended);
        self.end_timers();
        let owners = self.owners();
        owners.iter().filter_map(|owner| owner.halt(kind)).collect()
    }

    /// How much it still has to do.
    pub(super) fn unfinished(&self) -> usize {
        let owners = self.owners();
        let all = owners.iter().map(Owner::status);
        all.map(|status| status.queued + status.active).sum()
    }

    /// Ends what it still has to do, at the end of its time. Returns how much that was.
    pub(super) fn stop_rest(&self) -> usize {
        let unfinished = self.unfinished();
        self.owners()
            .iter()
            .for_each(|owner| owner.stop(ErrorKind::ShuttingDown));
        unfinished
    }

    /// It is gone. What was to make it anew goes on, each until then at the latest.
    pub(super) fn end(&self) -> Vec<(Instant, Incoming)> {
        let mut state = self.state.lock();
        self.set_phase(&mut state, Phase::Ended);
        let after = state.end.as_mut().map(|end| std::mem::take(&mut end.after));
        after.unwrap_or_default()
    }

    /// Lets `incoming` wait for its end. Whether it waits less long than all others; the end has come where it is handed back.
    pub(super) fn waits_for_end(&self, until: Instant, incoming: Incoming) -> Result<bool, Box<Incoming>> {
        let mut state = self.state.lock();
        if self.phase() == Phase::Ended {
            return Err(Box::new(incoming));
        }
        let after = &mut state.end.get_or_insert_default().after;
        let is_next = after.iter().all(|(other, _)| until < *other);
        after.push((until, incoming));
        Ok(is_next)
    }

    /// When the next of those has waited too long.
    pub(super) fn next_wait(&self) -> Option<Instant> {
        let state = self.state.lock();
        state.end.as_ref()?.after.iter().map(|(until, _)| *until).min()
    }

    /// Those that have waited too long.
    pub(super) fn waited_too_long(&self, now: Instant) -> Vec<Incoming> {
        let mut state = self.state.lock();
        let Some(end) = &mut state.end else { return Vec::new() };
        let late = end.after.extract_if(.., |(until, _)| *until <= now);
        late.map(|(_, incoming)| incoming).collect()
    }

    /// Waits until all that it has accepted has ended.
    pub(super) async fn drained(&self) {
        for owner in self.owners() {
            owner.drained().await;
        }
    }

    fn end_timers(&self) {
        for owner in self.owners() {
            self.spots.timers.cancel_all(owner.key());
        }
    }

    /// Its lane and those of its timers that have their own, each once, to be ended under no lock: what is dropped with a turn is the
    /// user's, and may ask for a timer.
    fn owners(&self) -> Vec<Owner<SpotJob>> {
        let timers = self.rare.get().map(|rare| rare.timers.lock());
        let timers = timers.iter().flat_map(|timers| timers.values());
        let timers = timers.filter(|owner| !owner.is(self.lane()));
        std::iter::once(self.lane()).chain(timers).cloned().collect()
    }

    fn timer_owner(&self, name: &TimerName) -> Owner<SpotJob> {
        let mut timers = self.rare().timers.lock();
        let own = || match &self.lanes {
            Lanes::Own(unit) => unit.timer(),
            Lanes::Member(seat) => seat.owner.clone(),
        };
        timers.entry(name.clone()).or_insert_with(own).clone()
    }

    pub(super) fn add_timer(
        self: &Arc<Self>,
        name: &TimerName,
        period: Duration,
        overrun: Overrun,
    ) -> Result<u64, ArgumentError> {
        let known = self.factory.parts().timers.iter().find(|(known, _)| known == name);
        let Some((_, handler)) = known else {
            let text = format!(
                "{} declares no timer {:?}",
                self.factory.parts().stable_type,
                name.as_str()
            );
            return Err(ArgumentError::new("timer", text));
        };
        // Until it is registered: whoever seals the Spot meanwhile ends it with the others.
        let _state = self.state.lock();
        if !matches!(self.phase(), Phase::Creating | Phase::Ready) {
            return Err(ArgumentError::new("timer", "it closes; it starts no timer any more"));
        }
        let owner = self.timer_owner(name);
        let (spots, handler) = (Arc::downgrade(&self.spots), handler.clone());
        let may_run = move |_| spots.upgrade().is_some_and(|spots| spots.fence.is_open());
        let (object, lane) = (Arc::downgrade(self), owner.clone());
        let shown: Arc<str> = name.as_str().into();
        self.spots.timers.register(
            owner.key(),
            name.as_str(),
            period,
            overrun,
            may_run,
            move |tick, pulse, permit| {
                let Some(object) = object.upgrade() else { return };
                let work = Work::Tick(Box::new(Ticking {
                    handler: handler.clone(),
                    name: shown.clone(),
                    tick,
                    pulse,
                }));
                // Refused, it is a tick of a Spot that closes.
                drop(lane.admit(SpotJob::of(object, lane.clone(), work), permit));
            },
        )
    }

    pub(super) fn cancel_timer(&self, name: &TimerName, generation: u64) -> bool {
        let owner = self.rare.get().and_then(|rare| rare.timers.lock().get(name).cloned());
        owner.is_some_and(|owner| {
            self.spots
                .timers
                .cancel_generation(owner.key(), name.as_str(), generation)
        })
    }
}

impl Drop for Object {
    /// Whoever was last to know it may be a task that the whole host needs.
    fn drop(&mut self) {
        let_go(Some(&self.id), self.cell.take());
    }
}

/// A state that is somewhere between its factory and its cell, or behind that: wherever its way ends, also as a callback of
/// the user's panics, what it does as it is dropped changes nothing of what is told.
pub(super) struct Held<S>(Option<S>);

impl<S> Held<S> {
    pub(super) fn new(state: S) -> Self {
        Self(Some(state))
    }

    /// It is there until it is taken.
    pub(super) fn get(&mut self) -> Option<&mut S> {
        self.0.as_mut()
    }

    pub(super) fn take(mut self) -> Option<S> {
        self.0.take()
    }
}

impl<S> Drop for Held<S> {
    fn drop(&mut self) {
        let_go(None, self.0.take());
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({} {:?})", self.id, self.phase())
    }
}
