//! A small Actor on what this room offers: what a Join, a completion callback and a move to another host need of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::oneshot;

use super::objects::{Object, ObjectJob, Room, World, ask, over, rest};
use super::settle;
use crate::error::ErrorKind;
use crate::execution::Owner;
use crate::execution::defer::Deferred;
use crate::execution::mode::{Callback, Mode, Offers, Unit};
use crate::execution::seal::{Arrival, First, Member, Seal};
use crate::execution::turn::{Ended, Scope, StateCell, StateTurn, YieldTurn};
use crate::random::Random;

/// An Actor, which finds its place by its member.
#[derive(Clone)]
struct Actor {
    member: Arc<Member<ObjectJob>>,
    cell: StateCell<Room>,
    /// How often its membership was written.
    store: Arc<AtomicUsize>,
}

impl Actor {
    fn of(unit: &Object) -> Self {
        let member = Member::of(&unit.unit).unwrap();
        Self {
            cell: StateCell::new(&member.owner(), Room::default()),
            member: Arc::new(member),
            store: Arc::default(),
        }
    }

    /// It as it is now.
    fn object(&self, unit: &Object) -> Object {
        Object {
            owner: self.member.owner(),
            cell: self.cell.clone(),
            offers: Mode::Entry.offers(Callback::Member, false),
            unit: unit.unit.clone(),
        }
    }

    /// A handler of it that registers a Join of `to`, and ends once it has an answer.
    fn joins(&self, world: &World, from: &Object, to: &Object, wait: super::objects::Ask) {
        let (own, made, note) = (self.member.owner(), self.join(world, to), world.noting());
        self.object(from).tell(world, "joins", move |_| {
            Box::pin(async move {
                own.defer_join(&Random::seeded(1), (), 0, None, made).unwrap();
                drop(wait.await);
                note("handler ends");
                Ended::Well
            })
        });
    }

    /// Makes the lifecycle work that carries a Join of `to` out.
    fn join(
        &self,
        world: &World,
        to: &Object,
    ) -> impl FnOnce(Deferred<ObjectJob, ()>) -> ObjectJob + Send + 'static + use<> {
        let (actor, to, log) = (self.clone(), to.clone(), world.noted_by());
        let (joined, admitted) = (world.noting(), oneshot::channel());
        let (decide, decided) = admitted;
        let on_join = to.job_with(world, "on_join", Offers::default(), move |turn| {
            Box::pin(async move {
                turn.state().seats.push(1);
                joined("on_join");
                _ = decide.send(());
                Ended::Well
            })
        });
        move |deferred| {
            let owner = actor.member.owner();
            lifecycle(&log.clone(), "join", &actor.cell.clone(), &owner, move |turn| {
                Box::pin(async move {
                    let note = |text: &str| log.lock().push(text.to_owned());
                    if to.unit.mode() == Mode::Entry {
                        note("completed where it is");
                        drop(deferred.barrier);
                        return Ended::Well;
                    }
                    assert!(to.owner.admit_lifecycle(on_join).is_ok());
                    decided.await.unwrap();
                    actor.store.fetch_add(1, Ordering::SeqCst);
                    turn.state().value += 1;
                    let seal = Seal::of_join(deferred.barrier).unwrap_or_else(|kind| panic!("{kind}"));
                    tokio::spawn(async move {
                        seal.boundary().await;
                        let completes = |owner: &Owner<ObjectJob>| {
                            actor.cell.moved_to(owner);
                            Some(lifecycle(&log.clone(), "completed", &actor.cell, owner, move |turn| {
                                Box::pin(async move {
                                    let text = format!("completed as number {}", turn.state().value);
                                    log.lock().push(text);
                                    // Whatever it waits for, payload waits for it.
                                    tokio::task::yield_now().await;
                                    log.lock().push("completion ends".into());
                                    Ended::Well
                                })
                            }))
                        };
                        assert_eq!(actor.member.join(seal, &to.unit, completes), Ok(()));
                    });
                    // It waits for the end of this turn by now.
                    tokio::task::yield_now().await;
                    Ended::Well
                })
            })
        }
    }
}

/// Lifecycle work of `owner` over the state in `cell`.
fn lifecycle<F>(
    log: &Arc<parking_lot::Mutex<Vec<String>>>,
    name: &str,
    cell: &StateCell<Room>,
    owner: &Owner<ObjectJob>,
    handler: F,
) -> ObjectJob
where
    F: for<'t> FnOnce(&'t mut YieldTurn<'t, Room>) -> super::objects::Running<'t> + Send + 'static,
{
    let (cell, owner) = (cell.clone(), owner.clone());
    ObjectJob::noted_in(log.clone(), name, move |_| {
        let scope = Scope::new(&owner, Offers::default());
        Some(StateTurn::new(&cell, scope, over(handler)))
    })
}

/// The outcome of a Join comes in a callback of its Actor, before all that waits for it; where it is there already, nothing
/// is written and nobody else hears of it.
///
/// REQ: EX-55, EX-54, EX-41
#[tokio::test]
async fn the_outcome_of_a_join_is_a_callback_before_what_waits() {
    let world = World::new(1);
    let (entry, room) = (world.unit(Mode::Entry), world.unit(Mode::SpotWide));
    let actor = Actor::of(&entry);
    for (to, written) in [(&entry, 0), (&room, 1)] {
        let (wait, answer) = ask();
        actor.joins(&world, &entry, to, wait);
        settle().await;
        // What came before the registration waits for the Join too, and keeps its place.
        actor.object(&entry).probe(&world, "payload 1");
        actor.object(&entry).probe(&world, "payload 2");
        let before = world.log().len();
        answer.give(0);
        let log = rest(&world).await;
        let expected: &[&str] = match written {
            0 => &["handler ends", "completed where it is", "payload 1", "payload 2"],
            _ => &[
                "handler ends",
                "on_join",
                "completed as number 1",
                "completion ends",
                "payload 1",
                "payload 2",
            ],
        };
        assert_eq!(log[before..], *expected);
        assert_eq!(actor.store.load(Ordering::SeqCst), written);
    }
    let moved = actor.object(&room);
    let (looks, cell) = (world.noting(), actor.cell.clone());
    room.tell(&world, "looks", move |turn| {
        Box::pin(async move {
            looks(&turn.state_of(&cell).unwrap().value.to_string());
            Ended::Well
        })
    });
    assert_eq!(
        rest(&world).await.last().unwrap(),
        "1",
        "it is under the gate of the room"
    );
    assert!(moved.owner.key().shares_gate(room.owner.key()));
    assert_eq!(world.permits.in_use(), 0);
}

/// Maintenance that seals the Actor's unit after the Join was registered waits for it, and finds the Actor gone.
///
/// REQ: EX-54
#[tokio::test]
async fn a_join_that_was_first_takes_its_actor_out_of_a_move() {
    let world = World::new(1);
    let (from, room) = (world.unit(Mode::Entry), world.unit(Mode::SpotWide));
    let actor = Actor::of(&from);
    let (wait, answer) = ask();
    actor.joins(&world, &from, &room, wait);
    settle().await;
    let moves = Seal::new(vec![actor.member.owner()]).unwrap_or_else(|kind| panic!("{kind}"));
    actor.object(&from).probe(&world, "payload");
    let moves = tokio::spawn(async move {
        moves.boundary().await;
        let taken = moves.capture().map(|jobs| jobs.iter().map(Vec::len).sum::<usize>());
        drop(moves.depart(ErrorKind::Unavailable));
        taken
    });
    settle().await;
    assert!(!moves.is_finished());
    answer.give(0);
    let log = rest(&world).await;
    assert_eq!(
        log[1..],
        ["on_join", "completed as number 1", "completion ends", "payload"]
    );
    assert_eq!(moves.await.unwrap(), Some(0), "nothing of it is left there");
    actor.object(&room).probe(&world, "later");
    assert_eq!(rest(&world).await.last().unwrap(), "later");
}

/// What an Actor is given by the runtime: where it is, and how it calls from there.
struct Context {
    owner: Owner<ObjectJob>,
    spot: &'static str,
}

impl Context {
    /// What becomes of a call of it.
    fn call(&self, job: ObjectJob, world: &World) -> Option<ErrorKind> {
        self.owner
            .admit(job, world.permit())
            .err()
            .map(|rejected| rejected.kind)
    }
}

/// After a commit elsewhere, what is left here reads its context and state to the end of its leave callback, which has the
/// gate, and calls nobody any more.
///
/// REQ: EX-73
#[tokio::test]
async fn who_has_left_reads_its_context_and_calls_nobody() {
    let world = Arc::new(World::new(1));
    let room = world.unit(Mode::SpotWide);
    let (member, other) = (room.member(), room.member());
    let context = Arc::new(Context {
        owner: member.owner.clone(),
        spot: "the room",
    });
    member.tell(&world, "works", |turn| {
        Box::pin(async move {
            turn.state().value = 7;
            Ended::Well
        })
    });
    settle().await;
    let seal = Seal::new(vec![member.owner.clone()]).unwrap_or_else(|kind| panic!("{kind}"));
    let early = seal.leave(0, ErrorKind::Unavailable, member.noted(&world, "too early"));
    assert!(early.is_err(), "it has not left");
    let saved = seal.capture().unwrap();
    assert_eq!(
        context.call(member.noted(&world, "held"), &world),
        None,
        "before the commit"
    );
    let (hold, release) = ask();
    other.hold(&world, async move { drop(hold.await) });
    settle().await;
    let (note, calls) = (world.noting(), member.noted(&world, "late"));
    let (old, of) = (context.clone(), world.clone());
    let leaves = member.job_with(&world, "leave", Offers::default(), move |turn| {
        Box::pin(async move {
            let refused = old.call(calls, &of);
            note(&format!("left {} with {}: {refused:?}", old.spot, turn.state().value));
            Ended::Well
        })
    });
    assert!(seal.leave(0, ErrorKind::Unavailable, leaves).is_ok());
    assert_eq!(
        context.call(member.noted(&world, "late"), &world),
        Some(ErrorKind::Unavailable)
    );
    assert!(rest(&world).await.is_empty(), "another turn has the gate");
    release.give(0);
    settle().await;
    let held = seal.depart(ErrorKind::Unavailable);
    member.owner.drained().await;
    assert_eq!(rest(&world).await, ["left the room with 7: Some(Unavailable)"]);
    assert_eq!(context.spot, "the room");
    assert_eq!((saved[0].len(), held[0].len(), world.permits.in_use()), (0, 1, 0));
    other.probe(&world, "the others go on");
    assert_eq!(rest(&world).await.last().unwrap(), "the others go on");
}

/// An Actor that does not show the context that it was given is not published: nothing of it runs, who sent to it is told,
/// and the source goes on where it was.
///
/// REQ: EX-73
#[tokio::test]
async fn what_was_staged_and_is_not_published_runs_nothing() {
    let world = World::new(1);
    for shows_its_own in [true, false] {
        let room = world.unit(Mode::SpotWide);
        let member = room.member();
        let seal = Seal::new(vec![member.owner.clone()]).unwrap_or_else(|kind| panic!("{kind}"));
        member.probe(&world, "waits");
        let captured = seal.capture().unwrap();
        let there = world.unit_of(Unit::arriving(&world.workers.handle(), Mode::SpotWide));
        let staged = there.member();
        let context = || {
            Arc::new(Context {
                owner: staged.owner.clone(),
                spot: "there",
            })
        };
        let given = context();
        let shown = if shows_its_own { given.clone() } else { context() };
        staged.probe(&world, "direct");
        let begin = world.log().len();
        let first = || First::of(world.permits.backlog());
        if Arc::ptr_eq(&given, &shown) {
            let arrival = Arrival::new(vec![staged.owner.clone()]);
            arrival.open(captured, vec![first().await.unwrap()]);
            drop(seal.depart(ErrorKind::Unavailable));
            assert_eq!(rest(&world).await[begin..], ["waits", "direct"]);
        } else {
            staged.owner.stop(ErrorKind::Unavailable);
            seal.reopen(captured);
            member.owner.give(first().await.unwrap());
            assert_eq!(rest(&world).await[begin..], ["direct never started", "waits"]);
        }
    }
    assert_eq!(world.permits.in_use(), 0);
}
