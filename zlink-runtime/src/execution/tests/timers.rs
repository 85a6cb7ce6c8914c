//! Timers over one scheduler.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::objects::{Object, ObjectJob, World};
use super::settle;
use crate::execution::mode::Mode;
use crate::execution::timer::{Overrun, Pulse, Tick, Timers};
use crate::execution::turn::{Ended, Scope, StateTurn};
use crate::permit::HostPermits;

const SECOND: Duration = Duration::from_secs(1);

type Seen = Arc<Mutex<Vec<Tick>>>;

fn timers(world: &World) -> Timers {
    let timers = Timers::new();
    tokio::spawn(timers.clone().run(world.permits.clone()));
    timers
}

struct Registration<'a> {
    timers: &'a Timers,
    world: &'a World,
    object: &'a Object,
    lease: Arc<AtomicBool>,
}

impl Registration<'_> {
    /// Ticks that each take `busy`.
    fn register(&self, name: &str, overrun: Overrun, busy: Duration) -> Seen {
        let seen = Seen::default();
        let (object, ticks, watch) = (self.object.clone(), seen.clone(), self.world.noted_by());
        let lease = self.lease.clone();
        let deliver = move |tick: Tick, pulse: Pulse, permit| {
            let (cell, owner, offers, ticks) =
                (object.cell.clone(), object.owner.clone(), object.offers, ticks.clone());
            let job = ObjectJob::noted_in(watch.clone(), "tick", move |now| {
                if !pulse.may_start(now) {
                    return None;
                }
                let handler = super::objects::over(move |_| {
                    Box::pin(async move {
                        ticks.lock().push(tick);
                        tokio::time::sleep(busy).await;
                        drop(pulse);
                        Ended::Well
                    })
                });
                Some(StateTurn::new(&cell, Scope::new(&owner, offers), handler))
            });
            drop(object.owner.admit(job, permit));
        };
        let may_run = move |_| lease.load(Ordering::SeqCst);
        let owner = self.object.owner.key();
        self.timers
            .register(owner, name, SECOND, overrun, may_run, deliver)
            .unwrap();
        seen
    }
}

fn indices(seen: &Seen) -> Vec<(u64, u64, u64)> {
    seen.lock()
        .iter()
        .map(|tick| (tick.delivery_index, tick.scheduled_index, tick.skipped_ticks))
        .collect()
}

/// REQ: EX-63, EX-65
#[tokio::test(start_paused = true)]
async fn ticks_of_one_timer_never_overlap_and_late_ones_merge() {
    let world = World::new(1);
    let unit = world.unit(Mode::PerActor);
    let timers = timers(&world);
    let object = unit.timer();
    let lease = Arc::new(AtomicBool::new(true));
    let registration = Registration {
        timers: &timers,
        world: &world,
        object: &object,
        lease,
    };
    let seen = registration.register("slow", Overrun::SkipLateTicks, SECOND * 5 / 2);
    tokio::time::sleep(Duration::from_millis(7_100)).await;
    assert_eq!(indices(&seen), [(1, 1, 0), (2, 3, 1), (3, 6, 2)]);
    assert_eq!(object.owner.status().active + object.owner.status().queued, 1);
}

/// REQ: EX-65
#[tokio::test(start_paused = true)]
async fn each_overrun_policy_does_as_it_says() {
    let world = World::new(1);
    let unit = world.unit(Mode::PerActor);
    let timers = timers(&world);
    let mut all = Vec::new();
    for overrun in [Overrun::CatchUpBounded(1), Overrun::DelayNextTick] {
        let object = unit.timer();
        let lease = Arc::new(AtomicBool::new(true));
        let registration = Registration {
            timers: &timers,
            world: &world,
            object: &object,
            lease,
        };
        all.push(registration.register("slow", overrun, SECOND * 5 / 2));
    }
    tokio::time::sleep(Duration::from_millis(8_800)).await;
    assert_eq!(indices(&all[0]), [(1, 1, 0), (2, 2, 0), (3, 5, 2), (4, 7, 1)]);
    assert_eq!(indices(&all[1]), [(1, 1, 0), (2, 2, 0), (3, 3, 0), (4, 4, 0)]);
}

/// REQ: EX-64
#[tokio::test(start_paused = true)]
async fn a_new_registration_ends_the_one_before_even_where_a_tick_is_queued() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let timers = timers(&world);
    let lease = Arc::new(AtomicBool::new(true));
    let registration = Registration {
        timers: &timers,
        world: &world,
        object: &room,
        lease,
    };
    let old = registration.register("clock", Overrun::default(), Duration::ZERO);
    tokio::time::sleep(SECOND * 3 / 2).await;
    assert_eq!(old.lock().len(), 1);
    // The second tick is queued behind a handler that holds the gate.
    room.hold(&world, tokio::time::sleep(SECOND));
    tokio::time::sleep(SECOND * 3 / 4).await;
    assert_eq!(room.owner.status().queued, 1);
    let new = registration.register("clock", Overrun::default(), Duration::ZERO);
    tokio::time::sleep(SECOND * 5 / 2).await;
    assert_eq!((old.lock().len(), new.lock().len()), (1, 2));
    timers.cancel_all(room.owner.key());
    tokio::time::sleep(SECOND * 3).await;
    assert_eq!(new.lock().len(), 2);
}

/// REQ: EX-64
#[tokio::test(start_paused = true)]
async fn a_cancel_lets_a_tick_that_has_started_end() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let timers = timers(&world);
    let lease = Arc::new(AtomicBool::new(true));
    let registration = Registration {
        timers: &timers,
        world: &world,
        object: &room,
        lease,
    };
    let seen = registration.register("clock", Overrun::default(), SECOND);
    tokio::time::sleep(SECOND * 3 / 2).await;
    timers.cancel_all(room.owner.key());
    assert_eq!((seen.lock().len(), room.owner.status().active), (1, 1));
    tokio::time::sleep(SECOND * 5).await;
    assert_eq!((seen.lock().len(), room.owner.status().active), (1, 0));
    assert_eq!(room.owner.status().panicked, 0);
}

/// REQ: EX-66
#[tokio::test(start_paused = true)]
async fn an_owner_without_its_lease_has_no_ticks() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let timers = timers(&world);
    let lease = Arc::new(AtomicBool::new(true));
    let registration = Registration {
        timers: &timers,
        world: &world,
        object: &room,
        lease: lease.clone(),
    };
    let seen = registration.register("clock", Overrun::default(), Duration::ZERO);
    tokio::time::sleep(SECOND * 3 / 2).await;
    // A tick that is queued while the lease runs out does not start either.
    room.hold(&world, tokio::time::sleep(SECOND));
    tokio::time::sleep(SECOND * 3 / 4).await;
    lease.store(false, Ordering::SeqCst);
    tokio::time::sleep(SECOND * 10).await;
    assert_eq!((seen.lock().len(), room.owner.status().queued), (1, 0));
    assert_eq!(room.owner.status().admitted, 3, "nothing was queued without it");
}

/// REQ: EX-66
#[tokio::test(start_paused = true)]
async fn a_due_timer_waits_for_its_permit_outside_of_every_queue() {
    let world = World::new(1);
    let (room, other) = (world.unit(Mode::SpotWide), world.unit(Mode::SpotWide));
    let permits = HostPermits::new(1);
    let timers = Timers::new();
    tokio::spawn(timers.clone().run(permits.clone()));
    let held = permits.source().try_acquire(1).unwrap().take().unwrap();
    let lease = Arc::new(AtomicBool::new(true));
    let registration = Registration {
        timers: &timers,
        world: &world,
        object: &room,
        lease,
    };
    let seen = registration.register("clock", Overrun::default(), Duration::ZERO);
    let more = Registration {
        object: &other,
        ..registration
    };
    let others = more.register("clock", Overrun::default(), Duration::ZERO);
    tokio::time::sleep(SECOND * 7 / 2).await;
    settle().await;
    assert_eq!((room.owner.status().admitted, seen.lock().len()), (0, 0));
    drop(held);
    settle().await;
    assert_eq!(indices(&seen), [(1, 3, 2)]);
    assert_eq!(
        indices(&others),
        [(1, 3, 2)],
        "one scheduler, one source of permits, for all"
    );
}
