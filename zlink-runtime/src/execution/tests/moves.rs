//! Queues that move: sealed, captured, held, merged, and from gate to gate.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use super::objects::{Answer, Object, ObjectJob, World, ask, rest};
use super::{settle, until};
use crate::error::ErrorKind;
use crate::execution::Rejected;
use crate::execution::mode::{Mode, Unit};
use crate::execution::seal::{Arrival, First, Member, Seal};
use crate::execution::turn::Ended;
use crate::permit::HostPermits;

async fn first(permits: &HostPermits) -> First {
    First::of(permits.backlog()).await.unwrap()
}

fn sealed(owners: &[&Object]) -> Seal<ObjectJob> {
    Seal::new(owners.iter().map(|object| object.owner.clone()).collect()).unwrap_or_else(|kind| panic!("{kind}"))
}

/// REQ: EX-29
#[tokio::test]
async fn from_a_seal_on_only_resumes_run_and_an_unseal_goes_on() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let member = room.member();
    let (call, answer) = ask();
    let note = world.noting();
    room.tell(&world, "yields", move |turn| {
        Box::pin(async move {
            drop(turn.yield_for(call).await);
            note("resumed");
            Ended::Well
        })
    });
    settle().await;
    room.probe(&world, "a");
    let seal = sealed(&[&room, &member]);
    room.probe(&world, "b");
    member.probe(&world, "m");
    assert!(
        room.lifecycle(&world, "join")
            .is_err_and(|rejected| rejected.kind == ErrorKind::Unavailable)
    );
    let log = rest(&world).await;
    assert!(log.is_empty(), "{log:?}");
    assert!(seal.capture().is_none(), "a turn is under way");
    answer.give(0);
    seal.boundary().await;
    assert_eq!(world.log(), ["resumed"]);
    drop(seal);
    let log = rest(&world).await;
    assert_eq!(log.len(), 4);
    assert_eq!(room.owner.status().queued, 0);
}

/// REQ: EX-01, EX-57
#[tokio::test]
async fn a_captured_queue_comes_out_in_order_and_goes_on_where_it_arrives() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let member = room.member();
    let (call, answer) = ask();
    room.hold(&world, async move { drop(call.await) });
    settle().await;
    for number in 1..=2 {
        room.probe(&world, &format!("Q{number}"));
        member.probe(&world, &format!("M{number}"));
    }
    let seal = sealed(&[&room, &member]);
    answer.give(0);
    seal.boundary().await;
    assert_eq!(world.permits.in_use(), 4);
    let saved = seal.capture().unwrap();
    assert_eq!(world.permits.in_use(), 0, "what is held hands its permits over");
    let names: Vec<Vec<_>> = saved
        .iter()
        .map(|jobs| jobs.iter().map(|job| job.name.as_str()).collect())
        .collect();
    assert_eq!(names, [["Q1", "Q2"], ["M1", "M2"]]);
    // Where it arrives, everything waits, whichever way it comes.
    let there = world.unit_of(Unit::arriving(&world.workers.handle(), Mode::SpotWide));
    let there_member = there.member();
    let arrival = Arrival::new(vec![there.owner.clone(), there_member.owner.clone()]);
    there.probe(&world, "direct");
    room.probe(&world, "H1");
    let held = seal.take_held().remove(0);
    room.probe(&world, "H2");
    for job in held.into_iter().chain(seal.depart(ErrorKind::Unavailable).remove(0)) {
        assert!(arrival.relay(0, job).is_ok());
    }
    there_member.probe(&world, "direct to the member");
    assert!(rest(&world).await.is_empty() && there.owner.status().active == 0);
    let late = room.owner.admit(room.noted(&world, "late"), world.permit());
    assert!(late.is_err_and(|rejected| rejected.kind == ErrorKind::Unavailable));
    arrival.open(saved, vec![first(&world.permits).await, first(&world.permits).await]);
    there.probe(&world, "new");
    there.member().probe(&world, "a later member");
    let log = rest(&world).await;
    let of = |letters: &[char]| {
        log.iter()
            .filter(|text| text.starts_with(letters))
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&['Q', 'H', 'n']), ["Q1", "Q2", "H1", "H2", "new"]);
    let place = |name: &str| log.iter().position(|text| text == name).unwrap();
    assert!(place("H2") < place("direct") && place("direct") < place("new"));
    assert!(place("M2") < place("direct to the member"));
    assert_eq!((log.len(), world.permits.in_use()), (10, 0));
}

/// With one permit, a backlog of three goes through before what came after it.
///
/// REQ: EX-57, PM-39
#[tokio::test]
async fn a_backlog_hands_its_one_permit_on() {
    let world = World::new(1);
    let room = world.unit_of(Unit::arriving(&world.workers.handle(), Mode::SpotWide));
    let arrival = Arrival::new(vec![room.owner.clone()]);
    let saved = (1..=3)
        .map(|number| room.noted(&world, &format!("backlog {number}")))
        .collect();
    // What is held on arrival has no permit either.
    room.probe(&world, "direct");
    arrival.open(vec![saved], vec![]);
    assert!(rest(&world).await.is_empty(), "nothing starts without a permit");
    assert!(room.owner.wants_permit());
    room.owner.give(first(&world.permits).await);
    room.probe(&world, "new");
    assert_eq!(world.permits.in_use(), 2);
    assert_eq!(
        rest(&world).await,
        ["backlog 1", "backlog 2", "backlog 3", "direct", "new"]
    );
    assert!(!room.owner.wants_permit());
    room.owner.give(first(&world.permits).await);
    assert_eq!(world.permits.in_use(), 0, "nobody waits for it");
}

/// Jobs that note their number and wait for an answer.
fn backlog_of(room: &Object, world: &World, count: usize) -> (Vec<ObjectJob>, Vec<Answer>) {
    let job = |number: usize| {
        let ((call, answer), note) = (ask(), world.noting());
        let job = room.job(world, "backlog", move |_| {
            Box::pin(async move {
                note(&number.to_string());
                drop(call.await);
                Ended::Well
            })
        });
        (job, answer)
    };
    (1..=count).map(job).unzip()
}

/// Others wait for the right to hand a permit on, though one is free, until the last job of the backlog has it.
///
/// REQ: PM-39
#[tokio::test]
async fn the_right_to_hand_on_ends_with_the_backlog() {
    let (world, permits) = (World::new(1), HostPermits::new(3));
    let room = world.unit_of(Unit::arriving(&world.workers.handle(), Mode::SpotWide));
    let arrival = Arrival::new(vec![room.owner.clone()]);
    let (jobs, answers) = backlog_of(&room, &world, 3);
    let mut next = permits.backlog();
    let mut asks = || next.poll_first(&mut Context::from_waker(Waker::noop())).is_ready();
    arrival.open(vec![jobs], vec![first(&permits).await]);
    let expected = [(1, 1, false), (2, 1, true), (3, 0, true)];
    for (answer, (started, in_use, may_begin)) in answers.into_iter().zip(expected) {
        assert_eq!(rest(&world).await.len(), started);
        assert_eq!(permits.in_use(), in_use, "while {started} runs");
        assert!(!room.owner.wants_permit());
        assert_eq!(asks(), may_begin, "while {started} runs");
        answer.give(0);
    }
    assert_eq!(rest(&world).await.len(), 3);
}

/// REQ: PM-39, OB-24
#[tokio::test(start_paused = true)]
async fn a_permit_that_is_handed_on_is_no_stall() {
    let (world, permits) = (World::new(1), HostPermits::new(1));
    let room = world.unit_of(Unit::arriving(&world.workers.handle(), Mode::SpotWide));
    let arrival = Arrival::new(vec![room.owner.clone()]);
    let (jobs, answers) = backlog_of(&room, &world, 3);
    let begin = first(&permits).await;
    tokio::time::advance(Duration::from_secs(6)).await;
    assert_eq!(permits.status().stalled, Some(Duration::from_secs(6)));
    arrival.open(vec![jobs], vec![begin]);
    assert_eq!(rest(&world).await, ["1"]);
    let status = permits.status();
    assert_eq!((status.stalled, status.queued), (Some(Duration::ZERO), 1));
    room.owner.stop(ErrorKind::ShuttingDown);
    settle().await;
    assert_eq!(permits.in_use(), 0);
    assert!(answers.iter().all(Answer::lost));
    assert!(
        permits
            .backlog()
            .poll_first(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    );
}

/// A barrier before the next job does not cost it the permit that is handed on.
///
/// REQ: PM-39, EX-56
#[tokio::test]
async fn a_permit_is_handed_on_past_a_barrier() {
    let (world, permits) = (World::new(1), HostPermits::new(1));
    let room = world.unit_of(Unit::arriving(&world.workers.handle(), Mode::SpotWide));
    let arrival = Arrival::new(vec![room.owner.clone()]);
    let (own, completes) = (room.owner.clone(), room.noted(&world, "continued"));
    let (call, answer) = ask();
    let signals = room.job(&world, "signals", move |_| {
        Box::pin(async move {
            own.defer_ready(move |barrier| completes.with(barrier)).unwrap();
            drop(call.await);
            Ended::Well
        })
    });
    let saved = vec![signals, room.noted(&world, "next"), room.noted(&world, "last")];
    arrival.open(vec![saved], vec![first(&permits).await]);
    assert!(rest(&world).await.is_empty());
    answer.give(0);
    assert_eq!(rest(&world).await, ["continued", "next", "last"]);
    assert_eq!(permits.in_use(), 0);
}

/// The job that has its permit keeps it; those behind it get theirs anew.
///
/// REQ: PM-39, EX-57
#[tokio::test]
async fn a_seal_ends_the_handing_on_and_its_end_asks_for_a_permit_again() {
    let (world, permits) = (World::new(1), HostPermits::new(1));
    let room = world.unit_of(Unit::arriving(&world.workers.handle(), Mode::SpotWide));
    let arrival = Arrival::new(vec![room.owner.clone()]);
    let (jobs, answers) = backlog_of(&room, &world, 3);
    arrival.open(vec![jobs], vec![first(&permits).await]);
    assert_eq!((rest(&world).await.len(), permits.in_use()), (1, 1));
    let seal = sealed(&[&room]);
    let mut answers = answers.into_iter();
    answers.next().unwrap().give(0);
    seal.boundary().await;
    drop(seal);
    assert_eq!(rest(&world).await.len(), 2, "the second had its permit");
    answers.next().unwrap().give(0);
    assert_eq!(rest(&world).await.len(), 2);
    assert!(room.owner.wants_permit() && permits.in_use() == 0);
    room.owner.give(first(&permits).await);
    assert_eq!((rest(&world).await.len(), permits.in_use()), (3, 0));
    answers.next().unwrap().give(0);
}

/// REQ: EX-57
#[tokio::test]
async fn an_aborted_move_goes_on_in_the_old_order() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let seal = sealed(&[&room]);
    room.probe(&world, "1");
    room.probe(&world, "2");
    let captured = seal.capture().unwrap();
    room.probe(&world, "3");
    assert_eq!(captured[0].len(), 2);
    seal.reopen(captured);
    room.probe(&world, "4");
    room.owner.give(first(&world.permits).await);
    let log = rest(&world).await;
    assert_eq!(log, ["1", "2", "3", "4"]);
    assert_eq!(world.permits.in_use(), 0);
}

/// What a unit holds while it moves is bounded, whoever sends it.
///
/// REQ: EX-57
#[tokio::test]
async fn a_hold_is_bounded_in_records_and_bytes() {
    let world = World::new(1);
    let room = world.unit_of(Unit::arriving(&world.workers.handle(), Mode::SpotWide));
    let member = room.member();
    let arrival = Arrival::new(vec![room.owner.clone(), member.owner.clone()]);
    let full =
        |rejected: Rejected<ObjectJob>| rejected.kind == ErrorKind::CapacityExceeded && rejected.permit.is_some();
    for number in 0..512 {
        room.probe(&world, "held");
        let relayed = arrival.relay(1, member.noted(&world, &number.to_string()));
        assert!(relayed.is_ok());
    }
    assert!(
        room.owner
            .admit(room.noted(&world, "one too many"), world.permit())
            .is_err_and(full)
    );
    assert!(arrival.relay(1, member.noted(&world, "one too many")).is_err());
    let other = world.unit_of(Unit::arriving(&world.workers.handle(), Mode::SpotWide));
    let large = "x".repeat(4 << 20);
    for _ in 0..4 {
        other.probe(&world, &large);
    }
    assert!(
        other
            .owner
            .admit(other.noted(&world, "x"), world.permit())
            .is_err_and(full)
    );
}

/// Whatever races the merge stands in one queue, once, and behind what was saved.
///
/// REQ: EX-57
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_merge_is_atomic_with_dispatch() {
    for _ in 0..50 {
        let world = Arc::new(World::new(2));
        let room = world.unit_of(Unit::arriving(&world.workers.handle(), Mode::SpotWide));
        let arrival = Arrival::new(vec![room.owner.clone()]);
        let racing = (0..2).map(|_| {
            let (world, room) = (world.clone(), room.clone());
            tokio::spawn(async move {
                for number in 0..100 {
                    room.probe(&world, &format!("new {number:03}"));
                    tokio::task::yield_now().await;
                }
            })
        });
        let racing: Vec<_> = racing.collect();
        tokio::task::yield_now().await;
        let saved = vec![vec![room.noted(&world, "saved 1"), room.noted(&world, "saved 2")]];
        arrival.open(saved, vec![first(&world.permits).await]);
        for task in racing {
            task.await.unwrap();
        }
        until(|| world.log().len() == 202).await;
        assert_eq!(world.log()[..2], ["saved 1", "saved 2"]);
        assert_eq!(world.permits.in_use(), 0);
    }
}

/// What an object is made of stays with it where it moves on its host, and is no other's.
///
/// REQ: EX-71
#[tokio::test]
async fn a_member_that_moves_keeps_its_state_to_itself() {
    let world = World::new(1);
    let (entry, room) = (world.unit(Mode::Entry), world.unit(Mode::SpotWide));
    let mover = Member::of(&entry.unit).unwrap();
    let object = |owner| Object {
        cell: crate::execution::turn::StateCell::new(&owner, super::objects::Room::default()),
        owner,
        ..entry.clone()
    };
    let (member, other) = (object(mover.owner()), entry.member());
    let counts = |object: &Object| {
        let note = world.noting();
        object.tell(&world, "counts", move |turn| {
            Box::pin(async move {
                turn.state().value += 1;
                note(&turn.state().value.to_string());
                Ended::Well
            })
        });
    };
    counts(&member);
    assert_eq!(rest(&world).await, ["1"]);
    assert_eq!(mover.join(sealed(&[&member]), &room.unit, |_| None), Ok(()));
    let member = Object {
        owner: mover.owner(),
        ..member
    };
    member.cell.moved_to(&member.owner);
    counts(&member);
    counts(&other);
    assert_eq!(rest(&world).await, ["1", "2", "1"]);
    let (own, note) = (member.cell.clone(), world.noting());
    room.tell(&world, "looks", move |turn| {
        Box::pin(async move {
            note(&turn.state_of(&own).unwrap().value.to_string());
            Ended::Well
        })
    });
    assert_eq!(
        rest(&world).await.last().unwrap(),
        "2",
        "it is under the gate of the room"
    );
}

/// REQ: EX-01
#[tokio::test]
async fn a_member_moves_with_its_own_jobs_and_nobody_elses() {
    let world = World::new(1);
    let (entry, room) = (world.unit(Mode::Entry), world.unit(Mode::SpotWide));
    let mover = Member::of(&entry.unit).unwrap();
    let place = |owner| Object {
        owner,
        cell: entry.cell.clone(),
        ..entry.clone()
    };
    let other = entry.member();
    let member = place(mover.owner());
    let (call, answer) = ask();
    room.tell(&world, "holds the room", |_| {
        Box::pin(async move {
            drop(call.await);
            Ended::Well
        })
    });
    settle().await;
    let seal = sealed(&[&member]);
    for number in 1..=3 {
        assert!(
            mover
                .admit(member.noted(&world, &format!("m{number}")), world.permit())
                .is_ok()
        );
    }
    other.probe(&world, "other");
    seal.boundary().await;
    assert_eq!(mover.join(seal, &room.unit, |_| None), Ok(()));
    assert!(
        mover
            .admit(place(mover.owner()).noted(&world, "m4"), world.permit())
            .is_ok()
    );
    assert_eq!(rest(&world).await, ["other"], "it is under the gate of the room now");
    assert_eq!(mover.owner().status().admitted, 4);
    let old = member.owner.admit(member.noted(&world, "old"), world.permit());
    assert!(old.is_err_and(|rejected| rejected.kind == ErrorKind::Unavailable));
    answer.give(0);
    assert_eq!(rest(&world).await, ["other", "m1", "m2", "m3", "m4"]);
    // And on, out of the shared gate.
    let seal = sealed(&[&place(mover.owner())]);
    assert_eq!(mover.join(seal, &entry.unit, |_| None), Ok(()));
    assert!(
        mover
            .admit(place(mover.owner()).noted(&world, "m5"), world.permit())
            .is_ok()
    );
    assert_eq!(rest(&world).await.last().unwrap(), "m5");
    assert_eq!(world.permits.in_use(), 0);
}

/// REQ: EX-54
#[tokio::test]
async fn one_seal_at_a_time_and_none_of_what_ends() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let (member, far) = (room.member(), world.unit(Mode::SpotWide));
    let seal = sealed(&[&room]);
    let again = Seal::new(vec![member.owner.clone(), room.owner.clone()]);
    assert_eq!(again.err(), Some(ErrorKind::Unavailable));
    member.probe(&world, "nothing has changed for it");
    assert_eq!(rest(&world).await.len(), 1);
    drop(seal);
    far.owner.close(ErrorKind::ShuttingDown);
    assert_eq!(Seal::new(vec![far.owner.clone()]).err(), Some(ErrorKind::ShuttingDown));
}

/// Whoever closes what moves waits for the move: what was taken out may come back, and runs then; or it has gone, and that is
/// the end.
///
/// REQ: EX-54, EX-104
#[tokio::test]
async fn the_end_of_what_moves_comes_after_the_move() {
    for (holds, departs) in [(true, true), (true, false), (false, true), (false, false)] {
        let world = World::new(1);
        let room = world.unit(Mode::SpotWide);
        let seal = sealed(&[&room]);
        room.probe(&world, "taken");
        let captured = seal.capture().unwrap();
        if holds {
            room.probe(&world, "held");
        }
        room.owner.close(ErrorKind::ShuttingDown);
        let owner = room.owner.clone();
        let end = tokio::spawn(async move { owner.drained().await });
        settle().await;
        assert!(!end.is_finished(), "holds {holds}: its work is on its way");
        if departs {
            let left = seal.depart(ErrorKind::Unavailable).remove(0);
            assert_eq!(left.len(), usize::from(holds));
        } else {
            seal.reopen(captured);
            settle().await;
            assert!(!end.is_finished());
            room.owner.give(first(&world.permits).await);
        }
        until(|| end.is_finished()).await;
        let ran: &[&str] = match (departs, holds) {
            (true, _) => &[],
            (false, true) => &["taken", "held"],
            (false, false) => &["taken"],
        };
        assert_eq!(world.log(), ran);
    }
}
