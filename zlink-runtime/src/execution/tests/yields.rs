//! Waiting with the gate and without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::objects::{Object, World, ask, rest};
use super::settle;
use crate::error::ErrorKind;
use crate::execution::mode::{Callback, Mode};
use crate::execution::turn::{Ended, StateTurn};
use crate::execution::{Abandoned, Turn as _};

/// A handler that notes its steps around one wait, with or without its gate.
fn waits(world: &World, object: &Object, call: super::objects::Ask, yields: bool) {
    let note = world.noting();
    object.tell(world, "waits", move |turn| {
        Box::pin(async move {
            note("held");
            let reply = if yields { turn.yield_for(call).await } else { call.await };
            note(&format!("resumed {:?}", reply.map_err(|error| error.kind())));
            turn.state().value += 1;
            note("completed");
            Ended::Well
        })
    });
}

/// REQ: EX-20
#[tokio::test]
async fn async_keeps_gate_and_claim() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let (call, answer) = ask();
    waits(&world, &room.member(), call, false);
    settle().await;
    room.probe(&world, "probe");
    room.timer().probe(&world, "tick");
    assert_eq!(rest(&world).await, ["held"]);
    answer.give(1);
    assert_eq!(
        rest(&world).await,
        ["held", "resumed Ok(1)", "completed", "probe", "tick"]
    );
}

/// REQ: EX-21
#[tokio::test]
async fn yield_lets_others_in_and_goes_on_behind_what_waits() {
    for mode in [Mode::SpotWide, Mode::Instance] {
        let world = World::new(1);
        let room = world.unit(mode);
        let (call, answer) = ask();
        waits(&world, &room, call, true);
        settle().await;
        room.timer().probe(&world, "tick while it waits");
        assert_eq!(rest(&world).await, ["held", "tick while it waits"]);
        room.probe(&world, "probe 1");
        room.probe(&world, "probe 2");
        answer.give(1);
        room.probe(&world, "probe 3");
        let log = rest(&world).await;
        assert_eq!(
            log[2..],
            ["probe 1", "probe 2", "resumed Ok(1)", "completed", "probe 3"],
            "{mode:?}"
        );
    }
}

/// REQ: EX-21, EX-23
#[tokio::test]
async fn a_member_that_yields_keeps_its_claim() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let (a, b) = (room.member(), room.member());
    let (call, answer) = ask();
    waits(&world, &a, call, true);
    a.probe(&world, "job2");
    assert!(a.lifecycle(&world, "leave").is_ok());
    b.probe(&world, "b");
    room.probe(&world, "spot");
    room.timer().probe(&world, "tick");
    let log = rest(&world).await;
    assert_eq!(
        log.iter().filter(|text| *text == "job2" || *text == "leave").count(),
        1,
        "{log:?}"
    );
    answer.give(1);
    let log = rest(&world).await;
    let place = |name: &str| log.iter().position(|text| text == name).unwrap();
    assert!(
        place("b") < place("completed") && place("spot") < place("completed") && place("tick") < place("completed")
    );
    assert!(place("completed") < place("job2"), "{log:?}");
}

/// REQ: EX-22, ERR-211
#[tokio::test]
async fn where_it_is_not_offered_nothing_is_submitted() {
    let world = World::new(1);
    let shared = world.unit(Mode::SpotWide);
    let mut lifecycle = shared.clone();
    lifecycle.offers = Mode::SpotWide.offers(Callback::Lifecycle, true);
    let (entry, separate) = (world.unit(Mode::Entry), world.unit(Mode::PerActor));
    let objects = [entry.member(), separate.member(), entry, separate, lifecycle];
    for (number, object) in objects.iter().enumerate() {
        let (call, answer) = ask();
        waits(&world, object, call, true);
        settle().await;
        assert_eq!(answer.submitted(), 0, "{number}");
        assert_eq!(world.log()[number * 3 + 1], "resumed Err(Some(InvalidOperation))");
        let (call, answer) = ask();
        object.tell(&world, "async", |_| {
            Box::pin(async move {
                assert_eq!(call.await.unwrap(), 5);
                Ended::Well
            })
        });
        answer.give(5);
        settle().await;
        assert_eq!(object.owner.status().panicked, 0);
    }
}

/// REQ: EX-24
#[tokio::test]
async fn what_is_read_after_a_yield_is_what_others_wrote() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let (call, answer) = ask();
    let note = world.noting();
    room.tell(&world, "reads", move |turn| {
        Box::pin(async move {
            turn.state().value = 10;
            turn.yield_for(call).await.unwrap();
            note(&turn.state().value.to_string());
            Ended::Well
        })
    });
    settle().await;
    room.tell(&world, "writes", |turn| {
        Box::pin(async move {
            turn.state().value += 10;
            Ended::Well
        })
    });
    settle().await;
    answer.give(0);
    assert_eq!(rest(&world).await, ["20"]);
}

/// Whether its handler looks at the state then, or at nothing of its turn.
///
/// REQ: EX-26
#[tokio::test(start_paused = true)]
async fn a_yield_that_loses_a_select_keeps_the_gate() {
    for looks in [true, false] {
        let world = World::new(1);
        let room = world.unit(Mode::SpotWide);
        let (call, answer) = ask();
        let (hold, release) = ask();
        let note = world.noting();
        let handler = world.watched(async {});
        room.tell(&world, "selects", move |turn| {
            Box::pin(async move {
                let _watched = handler;
                tokio::select! {
                    biased;
                    _ = turn.yield_for(call) => note("answered"),
                    () = tokio::time::sleep(Duration::from_secs(1)) => note("too late"),
                }
                if looks {
                    turn.state().seats.push(1);
                }
                hold.await.unwrap();
                turn.state().seats.push(2);
                Ended::Well
            })
        });
        settle().await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        room.tell(&world, "probe", |turn| {
            Box::pin(async move {
                turn.state().seats.push(3);
                Ended::Well
            })
        });
        assert_eq!(rest(&world).await, ["too late"]);
        assert!(answer.submitted() == 1);
        release.give(0);
        settle().await;
        let seats: &[u32] = if looks { &[1, 2, 3] } else { &[2, 3] };
        assert_eq!(room.cell.take().unwrap().seats, seats, "the gate was kept to the end");
    }
}

/// REQ: EX-26
#[tokio::test]
async fn a_yield_that_is_forgotten_frees_no_gate_under_a_borrow() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let (call, _answer) = ask();
    let (hold, release) = ask();
    room.tell(&world, "forgets", move |turn| {
        Box::pin(async move {
            let mut yielding = Box::pin(turn.yield_for(call));
            std::future::poll_fn(|cx| {
                assert!(yielding.as_mut().poll(cx).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
            std::mem::forget(yielding);
            let room = turn.state();
            room.seats.push(1);
            hold.await.unwrap();
            room.seats.push(2);
            Ended::Well
        })
    });
    settle().await;
    room.tell(&world, "probe", |turn| {
        Box::pin(async move {
            turn.state().seats.push(3);
            Ended::Well
        })
    });
    settle().await;
    assert_eq!(room.owner.status().active, 1);
    release.give(0);
    settle().await;
    assert_eq!(room.cell.take().unwrap().seats, [1, 2, 3]);
}

/// However often it is woken, a turn that yielded goes on once, and only with its gate.
///
/// REQ: EX-26
#[tokio::test]
async fn any_number_of_wake_ups_is_one_resume() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let polls = Arc::new(AtomicUsize::new(0));
    let waker = Arc::new(parking_lot::Mutex::new(None::<std::task::Waker>));
    let call = Noisy {
        polls: polls.clone(),
        waker: waker.clone(),
    };
    room.tell(&world, "waits", move |turn| {
        Box::pin(async move {
            drop(turn.yield_for(call).await);
            Ended::Well
        })
    });
    settle().await;
    let (hold, release) = ask();
    room.hold(&world, async move { _ = hold.await.unwrap() });
    settle().await;
    let waker = waker.lock().take().unwrap();
    (0..10).for_each(|_| waker.wake_by_ref());
    settle().await;
    assert_eq!(polls.load(Ordering::SeqCst), 1, "not without the gate");
    release.give(0);
    settle().await;
    assert_eq!(polls.load(Ordering::SeqCst), 2);
}

struct Noisy {
    polls: Arc<AtomicUsize>,
    waker: Arc<parking_lot::Mutex<Option<std::task::Waker>>>,
}

impl Future for Noisy {
    type Output = Result<(), crate::error::CallError>;

    fn poll(self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        self.polls.fetch_add(1, Ordering::SeqCst);
        *self.waker.lock() = Some(cx.waker().clone());
        std::task::Poll::Pending
    }
}

impl crate::execution::Yields for Noisy {
    type Reply = ();
}

/// REQ: EX-28
#[tokio::test]
async fn a_continuation_takes_no_permit_and_no_place_in_the_order() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let (call, answer) = ask();
    waits(&world, &room, call, true);
    settle().await;
    let before = (world.permits.status(), room.owner.status().admitted);
    assert_eq!((before.0.in_use(), before.1), (0, 1));
    answer.give(1);
    settle().await;
    assert_eq!((world.permits.status(), room.owner.status().admitted), before);
    assert_eq!(room.owner.status().active, 0);
}

/// REQ: EX-27
#[tokio::test]
async fn an_answer_to_one_life_of_an_object_does_not_reach_the_next() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let (call, answer) = ask();
    waits(&world, &room, call, true);
    settle().await;
    room.owner.stop(ErrorKind::Unavailable);
    settle().await;
    let again = world.unit(Mode::SpotWide);
    // Nobody waits for it any more, in whatever place of whichever gate.
    assert!(answer.lost());
    again.probe(&world, "again");
    assert_eq!(rest(&world).await, ["held", "again"]);
    assert_eq!(again.cell.take().unwrap().value, 0);
}

/// REQ: EX-29, EX-105
#[tokio::test]
async fn what_has_yielded_is_stopped_under_its_gate() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let (member, other) = (room.member(), room.member());
    let (call, answer) = ask();
    let watch = world.watched(async {});
    member.tell(&world, "yields", move |turn| {
        Box::pin(async move {
            let _watch = watch;
            drop(turn.yield_for(call).await);
            Ended::Well
        })
    });
    settle().await;
    let (hold, release) = ask();
    waits(&world, &other, hold, false);
    settle().await;
    member.owner.stop(ErrorKind::ShuttingDown);
    settle().await;
    assert!(!answer.lost(), "its drop waits for the gate");
    member.owner.stop(ErrorKind::ShuttingDown);
    assert_eq!(member.owner.status().active, 1);
    release.give(0);
    settle().await;
    assert!(answer.lost());
    assert_eq!(member.owner.status().active, 0);
    member.owner.drained().await;
    room.probe(&world, "the gate is free");
    assert_eq!(rest(&world).await.last().unwrap(), "the gate is free");
}

/// What a turn left behind wakes nobody in its place: its wakers name a turn that is over.
///
/// REQ: EX-10
#[tokio::test]
async fn a_late_wake_up_of_an_ended_turn_reaches_no_other() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let old = Arc::new(parking_lot::Mutex::new(None::<std::task::Waker>));
    let keep = old.clone();
    room.tell(&world, "ends", |_| {
        Box::pin(std::future::poll_fn(move |cx| {
            *keep.lock() = Some(cx.waker().clone());
            std::task::Poll::Ready(Ended::Well)
        }))
    });
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = polls.clone();
    room.tell(&world, "next", |_| {
        Box::pin(std::future::poll_fn(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            std::task::Poll::Pending
        }))
    });
    settle().await;
    old.lock().take().unwrap().wake();
    settle().await;
    assert_eq!(polls.load(Ordering::SeqCst), 1);
}

/// What follows a turn, its drops above all, is over before the gate lets the next one in.
///
/// REQ: EX-09
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_turn_leaves_is_gone_before_the_next_begins() {
    struct Note(Arc<AtomicUsize>);
    impl Drop for Note {
        fn drop(&mut self) {
            std::thread::yield_now();
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let world = World::new(4);
    let room = world.unit(Mode::SpotWide);
    let members: Vec<_> = (0..4).map(|_| room.member()).collect();
    let alive = Arc::new(AtomicUsize::new(0));
    for number in 0..400 {
        let alive = alive.clone();
        members[number % 4].tell(&world, "leaves", move |_| {
            assert_eq!(alive.fetch_add(1, Ordering::SeqCst), 0, "the one before is gone");
            let note = Note(alive);
            Box::pin(async move {
                tokio::task::yield_now().await;
                drop(note);
                Ended::Well
            })
        });
    }
    super::until(|| {
        members
            .iter()
            .all(|member| member.owner.status().active + member.owner.status().queued == 0)
    })
    .await;
    assert!(members.iter().all(|member| member.owner.status().panicked == 0));
}

/// REQ: EX-29
#[tokio::test]
async fn a_panic_after_a_yield_leaves_state_and_gate_as_they_are() {
    let world = World::new(1);
    let room = world.unit(Mode::SpotWide);
    let (call, answer) = ask();
    room.tell(&world, "panics", |turn| {
        Box::pin(async move {
            turn.state().value = 1;
            turn.yield_for(call).await.unwrap();
            turn.state().value = 2;
            panic!("a handler's own");
        })
    });
    answer.give(0);
    room.probe(&world, "probe");
    assert_eq!(rest(&world).await, ["probe"]);
    assert_eq!(room.owner.status().panicked, 1);
    assert_eq!(room.cell.take().unwrap().value, 2);
}

#[test]
fn a_turn_that_never_ran_is_abandoned_in_peace() {
    let permits = crate::execution::mode::Unit::<super::objects::ObjectJob>::in_phase(
        &Arc::new(crate::execution::gate::Ready::new()),
        Mode::SpotWide,
        crate::execution::queue::Phase::Open,
    );
    let owner = permits.lane();
    let cell = crate::execution::turn::StateCell::new(owner, 5_u32);
    let scope = crate::execution::turn::Scope::new(owner, Mode::SpotWide.offers(Callback::Unit, false));
    let handler: fn(&mut crate::execution::YieldTurn<'_, u32>) -> std::future::Ready<Ended> =
        |_| std::future::ready(Ended::Well);
    StateTurn::new(&cell, scope, handler).abandon(Abandoned::Stopped);
    assert_eq!(cell.take(), Some(Box::new(5)));
}
