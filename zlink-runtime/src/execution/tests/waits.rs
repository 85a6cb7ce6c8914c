//! Waiting on oneself: what is refused before anything is submitted, and what a deadline has to end.

use std::time::Duration;

use super::objects::{Ask, Object, World, ask, rest};
use super::settle;
use crate::error::{CallError, ErrorKind};
use crate::execution::mode::Mode;
use crate::execution::turn::{Ended, may_wait_for};
use crate::execution::{Owner, Yields};

/// A request to an object here: as every call does, it asks first whether its caller may wait for it.
pub(super) struct To {
    target: Owner<super::objects::ObjectJob>,
    call: Ask,
}

impl IntoFuture for To {
    type Output = Result<u32, CallError>;
    type IntoFuture = std::pin::Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            may_wait_for(&self.target)?;
            self.call.await
        })
    }
}

impl Yields for To {
    type Reply = u32;
}

/// What a handler of `from` is told that waits for `to`.
async fn told(world: &World, from: &Object, to: &Object, yields: bool) -> String {
    let (call, answer) = ask();
    let call = To {
        target: to.owner.clone(),
        call,
    };
    let note = world.noting();
    from.tell(world, "asks", move |turn| {
        Box::pin(async move {
            let reply = if yields { turn.yield_for(call).await } else { call.await };
            note(&reply.map_or_else(
                |error| format!("{:?}", error.kind().unwrap()),
                |reply| reply.to_string(),
            ));
            Ended::Well
        })
    });
    settle().await;
    let submitted = answer.submitted();
    if !answer.lost() {
        answer.give(7);
    }
    settle().await;
    format!("{} {submitted}", world.log().last().unwrap())
}

const REFUSED: &str = "InvalidOperation 0";
const ANSWERED: &str = "7 1";

/// REQ: EX-30
#[tokio::test]
async fn who_holds_the_gate_cannot_wait_for_who_needs_it() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let (a, b) = (room.member(), room.member());
    for (from, to) in [(&room, &room), (&room, &a), (&a, &room), (&a, &b)] {
        assert_eq!(told(&world, from, to, false).await, REFUSED);
    }
    for (from, to) in [(&room, &room), (&room, &a), (&a, &room), (&a, &b)] {
        assert_eq!(told(&world, from, to, true).await, ANSWERED, "without the gate it may");
    }
    room.probe(&world, "probe");
    assert_eq!(rest(&world).await.last().unwrap(), "probe");
}

/// REQ: EX-31
#[tokio::test]
async fn a_member_cannot_wait_for_itself_in_either_form() {
    let world = World::new(1);
    for mode in [Mode::SpotWide, Mode::PerActor, Mode::Entry] {
        let member = world.unit(mode).member();
        assert_eq!(told(&world, &member, &member, false).await, REFUSED);
    }
    let member = world.unit(Mode::SpotWide).member();
    assert_eq!(told(&world, &member, &member, true).await, REFUSED);
}

/// REQ: EX-25
#[tokio::test]
async fn both_forms_of_waiting_tell_the_same() {
    let world = World::new(1);
    let (room, other) = (world.unit(Mode::SpotWide), world.unit(Mode::SpotWide));
    for yields in [false, true] {
        assert_eq!(told(&world, &room, &other, yields).await, ANSWERED);
        let (call, answer) = ask();
        drop(answer);
        let note = world.noting();
        room.tell(&world, "asks", move |turn| {
            Box::pin(async move {
                let reply = if yields { turn.yield_for(call).await } else { call.await };
                note(&format!("{reply:?}"));
                Ended::Well
            })
        });
        settle().await;
    }
    let log = world.log();
    assert!(log[1].contains("the answer is lost"), "{log:?}");
    assert_eq!((&log[0], &log[1]), (&log[2], &log[3]));
}

/// Members with gates of their own may wait for each other; what is not a turn may wait for anybody.
///
/// REQ: EX-30
#[tokio::test]
async fn other_gates_are_nobodys_business() {
    let world = World::new(1);
    let unit = world.unit(Mode::PerActor);
    let (a, b) = (unit.member(), unit.member());
    assert_eq!(told(&world, &a, &b, false).await, ANSWERED);
    assert_eq!(told(&world, &unit, &a, false).await, ANSWERED);
    assert!(may_wait_for(&a.owner).is_ok());
}

/// REQ: EX-33
#[tokio::test]
async fn what_one_sends_to_oneself_runs_once_and_later() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let (note, marker, permit) = (world.noting(), room.noted(&world, "marker"), world.permit());
    let own = room.owner.clone();
    room.tell(&world, "sends", move |_| {
        Box::pin(async move {
            assert!(own.admit(marker, permit).is_ok());
            tokio::task::yield_now().await;
            note("sender ends");
            Ended::Well
        })
    });
    assert_eq!(rest(&world).await, ["sender ends", "marker"]);
}

/// Two that wait for each other are not noticed; the deadlines of their requests end it, once each.
///
/// REQ: EX-34
#[tokio::test(start_paused = true)]
async fn a_longer_cycle_ends_by_its_deadlines() {
    let world = World::new(1);
    let (a, b) = (world.unit(Mode::SpotWide), world.unit(Mode::SpotWide));
    let mut answers = Vec::new();
    for (name, from, to) in [("a", &a, &b), ("b", &b, &a)] {
        let (call, answer) = ask();
        let (target, note) = (to.owner.clone(), world.noting());
        from.tell(&world, "asks", move |_| {
            Box::pin(async move {
                let asked = tokio::time::timeout(Duration::from_secs(3), To { target, call }.into_future()).await;
                note(&format!("{name} {}", asked.is_err()));
                Ended::Well
            })
        });
        answers.push((to, answer));
    }
    for (to, answer) in answers {
        // It answers once it runs, and cannot.
        to.tell(&world, "answers", move |_| {
            Box::pin(async move {
                if !answer.lost() {
                    answer.give(1);
                }
                Ended::Well
            })
        });
    }
    tokio::time::sleep(Duration::from_secs(4)).await;
    a.probe(&world, "probe");
    b.probe(&world, "probe");
    let log = rest(&world).await;
    assert_eq!(
        log.iter().filter(|text| *text == "probe").count(),
        2,
        "both serve again"
    );
    for name in ["a ", "b "] {
        let ends = log.iter().filter(|text| text.starts_with(name));
        assert_eq!(ends.count(), 1, "each has one end: {log:?}");
    }
    assert!(
        log.contains(&"a true".to_owned()) || log.contains(&"b true".to_owned()),
        "the first of them is one by its deadline: {log:?}"
    );
}

/// REQ: EX-48, EX-72
#[tokio::test]
async fn an_objects_own_turn_does_not_wait_for_its_end() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let (own, note) = (room.owner.clone(), world.noting());
    room.tell(&world, "closes itself", move |_| {
        Box::pin(async move {
            own.close(ErrorKind::ShuttingDown);
            note(&format!("{:?}", own.ended().await.map_err(|error| error.kind())));
            Ended::Well
        })
    });
    assert_eq!(rest(&world).await, ["Err(InvalidOperation)"]);
    assert_eq!(room.owner.ended().await, Ok(()));
}

/// REQ: EX-70, EX-72
#[tokio::test]
async fn an_object_is_dropped_once_and_after_its_last_turn() {
    struct Counted(std::sync::Arc<std::sync::atomic::AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    }
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let drops = std::sync::Arc::<std::sync::atomic::AtomicUsize>::default();
    let cell = crate::execution::turn::StateCell::new(&room.owner, Counted(drops.clone()));
    let (call, answer) = ask();
    for call in [Some(call), None] {
        let (cell, owner, offers) = (cell.clone(), room.owner.clone(), room.offers);
        let job = super::objects::ObjectJob::new(&world, "uses", move |_| {
            let scope = crate::execution::turn::Scope::new(&owner, offers);
            let handler = super::objects::over::<Counted>(move |turn| {
                Box::pin(async move {
                    if let Some(call) = call {
                        drop(turn.yield_for(call).await);
                    }
                    Ended::Well
                })
            });
            Some(crate::execution::turn::StateTurn::new(&cell, scope, handler))
        });
        assert!(room.owner.admit(job, world.permit()).is_ok());
    }
    settle().await;
    room.owner.close(ErrorKind::Unavailable);
    let (owner, ending) = (room.owner.clone(), drops.clone());
    let end = tokio::spawn(async move {
        owner.drained().await;
        let before = ending.load(std::sync::atomic::Ordering::SeqCst);
        drop(cell.take());
        before
    });
    settle().await;
    assert_eq!(
        drops.load(std::sync::atomic::Ordering::SeqCst),
        0,
        "a turn of it is under way"
    );
    answer.give(1);
    assert_eq!(end.await.unwrap(), 0);
    assert_eq!(drops.load(std::sync::atomic::Ordering::SeqCst), 1);
}
