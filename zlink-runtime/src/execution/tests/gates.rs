//! Which turns may overlap, in which order they run, and which lane goes first.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::objects::{Object, World, ask, rest};
use super::{settle, until};
use crate::error::ErrorKind;
use crate::execution::mode::{Callback, Mode, Offers};
use crate::execution::turn::Ended;

/// Each object gets a job that waits with its gate held; how many start is how many gates there are.
async fn overlapping(world: &World, objects: &[&Object]) -> usize {
    let gate = Arc::new(Semaphore::new(0));
    let started = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    for object in objects {
        let (gate, started) = (gate.clone(), started.clone());
        object.tell(world, "overlap", |_| {
            Box::pin(async move {
                started.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                gate.acquire().await.unwrap().forget();
                Ended::Well
            })
        });
    }
    settle().await;
    let at_once = started.load(std::sync::atomic::Ordering::SeqCst);
    gate.add_permits(objects.len());
    settle().await;
    assert_eq!(started.load(std::sync::atomic::Ordering::SeqCst), objects.len());
    at_once
}

/// REQ: EX-02
#[tokio::test]
async fn gates_are_as_the_table_says() {
    let world = World::new(1);
    for (mode, expected) in [(Mode::SpotWide, 1), (Mode::PerActor, 5), (Mode::Entry, 3)] {
        let unit = world.unit(mode);
        let (one, two) = (unit.member(), unit.member());
        let timers = [unit.timer(), unit.timer()];
        let objects = [&unit, &one, &two, &timers[0], &timers[1]];
        assert_eq!(overlapping(&world, &objects).await, expected, "{mode:?}");
    }
    let instance = world.unit(Mode::Instance);
    assert_eq!(overlapping(&world, &[&instance, &instance.timer()]).await, 1);
    assert!(instance.unit.member().is_none(), "an Instance has no members");
}

/// REQ: EX-08
#[tokio::test]
async fn idle_owners_are_no_tasks() {
    let world = World::new(2);
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let units: Vec<_> = (0..10_000).map(|_| world.unit(Mode::PerActor)).collect();
    let members: Vec<_> = units.iter().map(Object::member).collect();
    for object in units.iter().chain(&members) {
        object.probe(&world, "once");
    }
    until(|| world.log().len() == 20_000).await;
    assert_eq!(before, 2, "the workers");
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), before);
}

/// The mode is chosen where a unit is made, `SpotWide` unless said otherwise, and nothing changes it.
///
/// REQ: EX-05
#[tokio::test]
async fn a_unit_is_of_one_gate_unless_said_otherwise() {
    let world = World::new(1);
    let unit = world.unit(Mode::default());
    let member = unit.member();
    assert_eq!(overlapping(&world, &[&unit, &member]).await, 1);
    assert_eq!(unit.unit.mode(), Mode::SpotWide);
}

/// REQ: EX-22, EX-53, EX-56
#[test]
fn what_a_callback_may_do_is_as_the_table_says() {
    let none = Offers::default();
    let callbacks = [
        Callback::Unit,
        Callback::Member,
        Callback::MemberTimer,
        Callback::Lifecycle,
        Callback::Build,
    ];
    let table = |mode: Mode| callbacks.map(|callback| mode.offers(callback, true));
    let offers = |yields, joins, ready| Offers { yields, joins, ready };
    let all = offers(true, true, true);
    assert_eq!(table(Mode::SpotWide), [all, all, offers(true, false, true), none, none]);
    let joins = offers(false, true, false);
    assert_eq!(table(Mode::PerActor), [joins, joins, none, none, none]);
    assert_eq!(table(Mode::Entry), [joins, joins, none, none, none]);
    assert_eq!(
        table(Mode::Instance),
        [offers(true, false, false), none, none, none, none]
    );
    let managed = Mode::SpotWide.offers(Callback::Unit, false);
    assert_eq!(managed, offers(true, true, false), "the framework says when it moves");
}

/// REQ: EX-02, EX-03, EX-11
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_shared_gate_excludes_polls_and_drops_of_all_its_owners() {
    let world = World::new(4);
    let room = world.unit(Mode::SpotWide);
    let objects: Vec<_> = std::iter::once(room.clone())
        .chain((0..8).map(|_| room.member()))
        .collect();
    for number in 0..900 {
        let room_state = room.cell.clone();
        let (call, answer) = ask();
        if number % 3 > 0 {
            tokio::spawn(async move { answer.give(1) });
        } else {
            drop(answer);
        }
        let watch = world.watched(async {});
        objects[number % 9].tell(&world, "count", move |turn| {
            Box::pin(async move {
                // Its drop is watched as well.
                let _watch = watch;
                if number % 3 == 1 {
                    tokio::task::yield_now().await;
                    drop(call);
                } else {
                    drop(turn.yield_for(call).await);
                }
                if number % 9 == 0 {
                    turn.state().value += 1;
                } else {
                    let before = turn.state_of(&room_state).unwrap().value;
                    tokio::task::yield_now().await;
                    turn.state_of(&room_state).unwrap().value = before + 1;
                }
                Ended::Well
            })
        });
    }
    until(|| {
        objects
            .iter()
            .all(|object| object.owner.status().active + object.owner.status().queued == 0)
    })
    .await;
    assert_eq!(room.cell.take().unwrap().value, 900);
    assert_eq!((world.most(), world.permits.in_use()), (1, 0));
}

/// REQ: EX-01, EX-04
#[tokio::test]
async fn each_owner_of_a_shared_gate_keeps_its_own_order() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let (a, b) = (room.member(), room.member());
    for number in 0..200 {
        a.probe(&world, &format!("a{number:03}"));
        b.probe(&world, &format!("b{number:03}"));
        room.probe(&world, &format!("r{number:03}"));
    }
    let log = rest(&world).await;
    for letter in ["a", "b", "r"] {
        let own: Vec<_> = log.iter().filter(|text| text.starts_with(letter)).collect();
        assert!(own.is_sorted() && own.len() == 200, "{own:?}");
    }
}

/// REQ: EX-06
#[tokio::test]
async fn a_members_payload_does_not_pass_through_its_unit() {
    let world = World::new(1);
    for mode in [Mode::SpotWide, Mode::PerActor, Mode::Entry] {
        let unit = world.unit(mode);
        let member = unit.member();
        member.probe(&world, "payload");
        settle().await;
        assert_eq!((unit.owner.status().admitted, member.owner.status().admitted), (0, 1));
    }
}

/// REQ: EX-42
#[tokio::test(start_paused = true)]
async fn a_flooded_member_lets_the_others_of_its_gate_in() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let (flood, probe) = (room.member(), room.member());
    for _ in 0..1_000 {
        flood.probe(&world, "flood");
    }
    probe.probe(&world, "probe");
    let log = rest(&world).await;
    assert_eq!(log.iter().position(|text| text == "probe"), Some(64));
}

/// A member whose handlers are slow has had its share after a millisecond, whatever they wait for.
///
/// REQ: EX-42
#[tokio::test(start_paused = true)]
async fn slow_members_share_a_gate_by_time() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let (flood, probe) = (room.member(), room.member());
    for _ in 0..20 {
        let note = world.noting();
        flood.tell(&world, "flood", move |_| {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(5)).await;
                note("flood");
                Ended::Well
            })
        });
    }
    probe.probe(&world, "probe");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let at = world.log().iter().position(|text| text == "probe");
    assert!(at <= Some(2), "the probe comes after {at:?} slow ones");
}

/// A handler of a member has its unit's state only under the gate that they share.
///
/// REQ: EX-07
#[tokio::test]
async fn a_units_state_is_lent_under_its_own_gate_only() {
    let world = World::new(1);
    let elsewhere = Some(ErrorKind::InvalidOperation);
    for (mode, yields, expected) in [
        (Mode::SpotWide, true, None),
        (Mode::SpotWide, false, None),
        (Mode::PerActor, true, elsewhere),
        (Mode::PerActor, false, elsewhere),
    ] {
        let room = world.unit(mode);
        let (state, note, member) = (room.cell.clone(), world.noting(), room.member());
        let offers = Offers {
            yields,
            ..mode.offers(Callback::Member, false)
        };
        let job = member.job_with(&world, "member", offers, move |turn| {
            Box::pin(async move {
                let lent = turn.state_of(&state).map(|room| room.value += 7);
                note(&format!("{:?}", lent.map_err(|error| error.kind()).err()));
                Ended::Well
            })
        });
        assert!(member.owner.admit(job, world.permit()).is_ok());
        settle().await;
        assert_eq!(world.log().last().unwrap(), &format!("{expected:?}"));
        assert_eq!(room.cell.take().unwrap().value, if expected.is_none() { 7 } else { 0 });
    }
}

/// REQ: EX-40, EX-41
#[tokio::test]
async fn lifecycle_work_goes_before_payload_that_came_first() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let member = room.member();
    room.probe(&world, "payload");
    member.probe(&world, "member's payload");
    for name in ["join", "leave"] {
        assert!(member.lifecycle(&world, name).is_ok());
    }
    assert!(room.lifecycle(&world, "close").is_ok());
    let log = rest(&world).await;
    assert_eq!(
        log[..3]
            .iter()
            .filter(|text| *text == "join" || *text == "leave" || *text == "close")
            .count(),
        3
    );
    let place = |name: &str| log.iter().position(|text| text == name);
    assert!(place("join") < place("leave"), "in a lane, order is kept");
}

/// REQ: EX-40
#[tokio::test]
async fn lifecycle_work_keeps_its_gate_to_itself() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let member = room.member();
    let (call, answer) = ask();
    let note = world.noting();
    let leave = member.job_with(&world, "leave", Offers::default(), move |_| {
        Box::pin(async move {
            drop(call.await);
            note("left");
            Ended::Well
        })
    });
    assert!(member.owner.admit_lifecycle(leave).is_ok());
    room.probe(&world, "payload");
    assert!(rest(&world).await.is_empty());
    answer.give(1);
    assert_eq!(rest(&world).await, ["left", "payload"]);
}

/// REQ: EX-43
#[tokio::test]
async fn an_endless_lifecycle_stream_lets_payload_in() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    for number in 0..40 {
        assert!(room.lifecycle(&world, &format!("l{number}")).is_ok());
    }
    for number in 0..3 {
        room.probe(&world, &format!("payload {number}"));
    }
    let log = rest(&world).await;
    let places: Vec<_> = (0..43).filter(|at| log[*at].starts_with('p')).collect();
    assert_eq!(places, [16, 33, 42]);
}

/// REQ: EX-45
#[tokio::test]
async fn debt_belongs_to_one_gate() {
    let world = World::new(1);
    let unit = world.unit(Mode::PerActor);
    let (a, b) = (unit.member(), unit.member());
    for number in 0..17 {
        assert!(a.lifecycle(&world, &format!("l{number}")).is_ok());
    }
    b.probe(&world, "b");
    a.probe(&world, "a");
    let log = rest(&world).await;
    let place = |name: &str| log.iter().position(|text| text == name).unwrap();
    assert!(place("l15") < place("a") && place("a") < place("l16"), "{log:?}");
    assert!(log.contains(&"b".to_owned()));
}

/// REQ: EX-46
#[tokio::test]
async fn the_lifecycle_lane_is_bounded_by_itself() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let (call, answer) = ask();
    room.hold(&world, async move { drop(call.await) });
    settle().await;
    for _ in 0..2_000 {
        room.probe(&world, "backlog");
    }
    for number in 0..256 {
        assert!(room.lifecycle(&world, &number.to_string()).is_ok());
    }
    let overflow = room
        .lifecycle(&world, "one too many")
        .err()
        .map(|rejected| rejected.kind);
    assert_eq!(overflow, Some(ErrorKind::CapacityExceeded));
    answer.give(0);
    until(|| world.log().len() == 2_256).await;
}
