//! What handlers register for their ends.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::objects::{Object, ObjectJob, World, ask, rest};
use super::settle;
use crate::clock;
use crate::error::{CallError, ErrorKind};
use crate::execution::defer::Deferred;
use crate::execution::mode::{Callback, Mode, Offers};
use crate::execution::seal::Seal;
use crate::execution::turn::{Ended, may_begin, may_wait_for};
use crate::random::Random;

/// Registers a Join of `target` that notes its name, from whatever runs here.
fn join(
    world: &World,
    target: &Object,
    name: &str,
    size: usize,
) -> impl FnOnce() -> Result<(), CallError> + Send + use<> {
    let (target, note) = (target.clone(), world.noting());
    let (name, made) = (name.to_owned(), joined(world, &target));
    move || {
        let own = target.owner.clone();
        own.defer_join(&Random::seeded(1), name, size, None, made)
            .map(|operation| {
                assert!(operation.get() > 0);
                note("registered");
            })
    }
}

/// Makes the lifecycle work of a Join.
fn joined(
    world: &World,
    target: &Object,
) -> impl FnOnce(Deferred<ObjectJob, String>) -> ObjectJob + Send + 'static + use<> {
    let (target, note) = (target.clone(), world.noting());
    let log = world.noted_by();
    move |deferred| {
        let cell = target.cell.clone();
        let owner = target.owner.clone();
        ObjectJob::noted_in(log, &deferred.request.clone(), move |_| {
            let scope = crate::execution::turn::Scope::new(&owner, Offers::default());
            let handler = super::objects::over(move |_| {
                Box::pin(async move {
                    note(&deferred.request);
                    tokio::task::yield_now().await;
                    drop(deferred.barrier);
                    Ended::Well
                })
            });
            Some(crate::execution::turn::StateTurn::new(&cell, scope, handler))
        })
    }
}

/// A handler of `from` that registers Joins and then waits; it ends as told.
fn registers(
    world: &World,
    from: &Object,
    joins: Vec<Box<dyn FnOnce() -> Result<(), CallError> + Send>>,
    wait: super::objects::Ask,
    ended: Ended,
) {
    let note = world.noting();
    from.tell(world, "registers", move |turn| {
        Box::pin(async move {
            for join in joins {
                if let Err(error) = join() {
                    note(&format!("{:?}", error.kind()));
                }
            }
            drop(turn.yield_for(wait).await);
            note("handler ends");
            ended
        })
    });
}

/// REQ: EX-50, EX-51, EX-54
#[tokio::test]
async fn a_join_waits_for_the_end_of_its_handler_and_payload_for_the_join() {
    let world = World::new(1);
    let unit = world.unit(Mode::PerActor);
    let (member, other) = (unit.member(), unit.member());
    member.probe(&world, "before");
    let (call, answer) = ask();
    let mut spot = unit.clone();
    spot.offers.yields = true;
    registers(
        &world,
        &spot,
        vec![Box::new(join(&world, &member, "join", 10))],
        call,
        Ended::Well,
    );
    settle().await;
    member.probe(&world, "after");
    other.probe(&world, "other");
    assert_eq!(rest(&world).await, ["before", "registered", "other"]);
    answer.give(0);
    assert_eq!(rest(&world).await[3..], ["handler ends", "join", "after"]);
}

/// REQ: EX-51
#[tokio::test]
async fn a_handler_that_fails_leaves_nothing_of_its_joins() {
    let world = World::new(1);
    let room = world.unit(Mode::Entry);
    let (a, b) = (room.member(), room.member());
    for ended in ["badly", "in a panic", "stopped"] {
        let joins: Vec<Box<dyn FnOnce() -> _ + Send>> = vec![
            Box::new(join(&world, &a, "join a", 1)),
            Box::new(join(&world, &b, "join b", 1)),
        ];
        let from = room.member();
        from.tell(&world, "fails", move |_| {
            Box::pin(async move {
                for join in joins {
                    join().unwrap();
                }
                match ended {
                    "badly" => Ended::Badly,
                    "stopped" => std::future::pending().await,
                    _ => panic!("a handler's own"),
                }
            })
        });
        settle().await;
        from.owner.stop(ErrorKind::Unavailable);
        a.probe(&world, ended);
        let log = rest(&world).await;
        assert_eq!(log.last().unwrap(), ended, "nothing stands before it");
        assert!(!log.iter().any(|text| text.starts_with("join")), "{log:?}");
    }
}

/// REQ: EX-52
#[tokio::test(start_paused = true)]
async fn registrations_have_bounds_and_leave_nothing_beyond_them() {
    let world = World::new(1);
    let room = world.unit(Mode::Entry);
    let targets: Vec<_> = (0..68).map(|_| room.member()).collect();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (all, told, made) = (
        targets.clone(),
        seen.clone(),
        targets.iter().map(|to| joined(&world, to)).collect::<Vec<_>>(),
    );
    room.tell(&world, "registers", move |_| {
        Box::pin(async move {
            let random = Random::default();
            let mib = 1 << 20;
            let mut made = made.into_iter();
            let mut to = all.iter();
            let mut defer = |size: usize, timeout: Option<Duration>| {
                let request = "join".to_owned();
                let failed = to
                    .next()
                    .unwrap()
                    .owner
                    .defer_join(&random, request, size, timeout, made.next().unwrap());
                told.lock().push(match failed {
                    Ok(_) => "ok",
                    Err(CallError::Argument(_)) => "argument",
                    Err(CallError::Failed(_)) => "failed",
                });
            };
            defer(mib + 1, None);
            defer(1, Some(Duration::ZERO));
            defer(1, Some(Duration::from_millis(1 << 31)));
            defer(1, Some(Duration::from_millis((1 << 31) - 1)));
            (0..7).for_each(|_| defer(mib, None));
            defer(mib, None);
            defer(mib - 1, None);
            (9..64).for_each(|_| defer(0, Some(Duration::from_nanos(1))));
            Ended::Badly
        })
    });
    settle().await;
    let seen = seen.lock().clone();
    assert_eq!(seen[..4], ["argument", "argument", "argument", "ok"]);
    assert!(seen[4..11].iter().all(|told| *told == "ok"));
    assert_eq!(seen[11..13], ["argument", "ok"], "8 MiB all together");
    assert!(
        seen[13..].iter().all(|told| *told == "ok") && seen.len() == 68,
        "{}",
        seen.len()
    );
    for target in &targets {
        target.probe(&world, "free");
    }
    assert_eq!(rest(&world).await.len(), 68, "no barrier is left");
}

/// REQ: EX-52
#[tokio::test(start_paused = true)]
async fn a_handler_registers_64_joins_with_their_deadlines_fixed() {
    let world = World::new(1);
    let room = world.unit(Mode::Entry);
    let targets: Vec<_> = (0..65).map(|_| room.member()).collect();
    let deadlines = Arc::new(Mutex::new(Vec::new()));
    let (all, seen, note) = (targets.clone(), deadlines.clone(), world.noting());
    let made: Vec<_> = targets.iter().map(|to| joined(&world, to)).collect();
    let begin = clock::now();
    room.tell(&world, "registers", move |_| {
        Box::pin(async move {
            for (to, made) in all.iter().zip(made) {
                let seen = seen.clone();
                let registered = to
                    .owner
                    .defer_join(&Random::default(), "join".into(), 0, None, move |deferred| {
                        seen.lock().push((deferred.deadline, deferred.operation));
                        made(deferred)
                    });
                if let Err(error) = registered {
                    note(&format!("{error}"));
                }
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
            Ended::Well
        })
    });
    tokio::time::sleep(Duration::from_secs(3)).await;
    settle().await;
    let log = world.log();
    assert!(log[0].contains("at most 64"), "{}", log[0]);
    assert_eq!(log.len(), 65);
    let mut seen = deadlines.lock().clone();
    assert!(
        seen.iter()
            .all(|(deadline, _)| *deadline == begin + Duration::from_secs(5)),
        "from the registration on"
    );
    seen.sort_by_key(|(_, operation)| *operation);
    seen.dedup_by_key(|(_, operation)| *operation);
    assert_eq!(seen.len(), 64, "each operation has a name of its own");
}

/// REQ: EX-53
#[tokio::test]
async fn only_handlers_register_and_one_transition_at_a_time() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let target = room.member();
    let kind = |result: Result<(), CallError>| result.unwrap_err().kind().unwrap();
    assert_eq!(kind(join(&world, &target, "outside", 1)()), ErrorKind::InvalidOperation);
    let contexts = [
        (Mode::SpotWide, Callback::Lifecycle),
        (Mode::Entry, Callback::Build),
        (Mode::Instance, Callback::Unit),
        (Mode::PerActor, Callback::MemberTimer),
    ];
    for (mode, callback) in contexts {
        let join = join(&world, &target, "join", 1);
        let (note, unit) = (world.noting(), world.unit(mode));
        let job = unit.job_with(&world, "registers", mode.offers(callback, true), move |_| {
            Box::pin(async move {
                note(&format!("{:?}", join().unwrap_err().kind().unwrap()));
                Ended::Well
            })
        });
        assert!(unit.owner.admit(job, world.permit()).is_ok());
        assert_eq!(
            rest(&world).await.last().unwrap(),
            "InvalidOperation",
            "{mode:?} {callback:?}"
        );
    }
    let (call, answer) = ask();
    let joins: Vec<Box<dyn FnOnce() -> _ + Send>> = vec![
        Box::new(join(&world, &target, "join", 1)),
        Box::new(join(&world, &target, "twice", 1)),
    ];
    registers(&world, &room, joins, call, Ended::Well);
    settle().await;
    // A task is no handler, whoever began it.
    let late = join(&world, &target, "detached", 1);
    assert_eq!(
        tokio::spawn(async move { kind(late()) }).await.unwrap(),
        ErrorKind::InvalidOperation
    );
    answer.give(0);
    let log = rest(&world).await;
    assert_eq!(log[4..], ["registered", "Some(Unavailable)", "handler ends", "join"]);
}

/// REQ: EX-54
#[tokio::test]
async fn what_was_fixed_first_wins_between_join_and_seal() {
    let world = World::new(1);
    let room = world.unit(Mode::Entry);
    let (first, second, third) = (room.member(), room.member(), room.member());
    let (call, answer) = ask();
    let mut spot = room.clone();
    spot.offers.yields = true;
    let _seal = Seal::new(vec![second.owner.clone()]).unwrap_or_else(|_| panic!("sealed"));
    third.owner.close(ErrorKind::ShuttingDown);
    let joins: Vec<Box<dyn FnOnce() -> _ + Send>> = vec![
        Box::new(join(&world, &first, "join", 1)),
        Box::new(join(&world, &second, "moves", 1)),
        Box::new(join(&world, &third, "ends", 1)),
    ];
    registers(&world, &spot, joins, call, Ended::Well);
    let log = rest(&world).await;
    assert_eq!(log, ["registered", "Some(Unavailable)", "Some(ShuttingDown)"]);
    let seal = Seal::new(vec![first.owner.clone()]).unwrap_or_else(|_| panic!("sealed"));
    let waits = tokio::spawn(async move {
        seal.boundary().await;
        seal
    });
    settle().await;
    assert!(!waits.is_finished(), "the Join was first: the move waits for it");
    first.probe(&world, "payload");
    answer.give(0);
    assert_eq!(rest(&world).await[3..], ["handler ends", "join"]);
    assert!(waits.is_finished(), "the Join has ended");
    drop(waits.await);
    assert_eq!(rest(&world).await.last().unwrap(), "payload", "and the move is off");
}

/// What was registered before the end of its target is carried out within that end, unless it is one by force.
///
/// REQ: EX-54, EX-104
#[tokio::test]
async fn a_join_that_was_first_is_a_part_of_what_a_close_waits_for() {
    for stopped in [false, true] {
        let world = World::new(1);
        let room = world.unit(Mode::SpotWide);
        let member = room.member();
        let (call, answer) = ask();
        let joins: Vec<Box<dyn FnOnce() -> _ + Send>> = vec![Box::new(join(&world, &member, "join", 1))];
        registers(&world, &room, joins, call, Ended::Well);
        settle().await;
        if stopped {
            member.owner.stop(ErrorKind::ShuttingDown);
        } else {
            member.owner.close(ErrorKind::ShuttingDown);
        }
        let owner = member.owner.clone();
        let ends = tokio::spawn(async move { owner.drained().await });
        settle().await;
        assert_eq!(ends.is_finished(), stopped);
        answer.give(0);
        let expected = if stopped { "join never started" } else { "join" };
        assert_eq!(rest(&world).await, ["registered", "handler ends", expected]);
        assert!(ends.is_finished());
    }
}

/// REQ: EX-32
#[tokio::test]
async fn who_registered_a_join_cannot_wait_for_its_member() {
    let world = World::new(1);
    let room = world.unit(Mode::Entry);
    let (member, other) = (room.member(), room.member());
    let (join, note) = (join(&world, &member, "join", 1), world.noting());
    room.tell(&world, "registers", move |_| {
        Box::pin(async move {
            assert!(may_wait_for(&member.owner).is_ok());
            join().unwrap();
            note(&format!(
                "{:?}",
                may_wait_for(&member.owner).map_err(|error| error.kind())
            ));
            assert!(may_wait_for(&other.owner).is_ok());
            Ended::Badly
        })
    });
    assert_eq!(rest(&world).await, ["registered", "Err(InvalidOperation)"]);
}

/// REQ: EX-56
#[tokio::test]
async fn readiness_to_move_comes_before_the_next_job_and_ends_what_may_begin() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let (own, note) = (room.owner.clone(), world.noting());
    let completes = room.noted(&world, "continued");
    room.tell(&world, "signals", move |_| {
        Box::pin(async move {
            own.defer_ready(move |barrier| completes.with(barrier)).unwrap();
            assert_eq!(may_begin().unwrap_err().kind(), ErrorKind::InvalidOperation);
            let again = own.defer_ready(|_| unreachable!("it was refused")).unwrap_err();
            note(&format!("{:?}", again.kind()));
            Ended::Well
        })
    });
    room.probe(&world, "next job");
    assert_eq!(rest(&world).await, ["Some(InvalidOperation)", "continued", "next job"]);
    for (mode, signaled) in [(Mode::SpotWide, false), (Mode::PerActor, true), (Mode::Instance, true)] {
        let unit = world.unit(mode);
        let (own, note) = (unit.owner.clone(), world.noting());
        let job = unit.job_with(&world, "signals", mode.offers(Callback::Unit, signaled), move |_| {
            Box::pin(async move {
                let refused = own.defer_ready(|_| unreachable!("it was refused")).unwrap_err();
                note(&format!("{:?}", refused.kind()));
                Ended::Well
            })
        });
        assert!(unit.owner.admit(job, world.permit()).is_ok());
        unit.probe(&world, "unchanged");
        let log = rest(&world).await;
        assert_eq!(log[log.len() - 2..], ["Some(InvalidOperation)", "unchanged"]);
    }
}
