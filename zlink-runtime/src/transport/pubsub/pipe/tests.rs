//! Who gets a message, who waits, and that nothing goes to some of those that want it where it must go to all.

use std::task::Waker;

use super::*;

fn message(topic: &str) -> Message {
    Message::new(topic.as_bytes(), b"head", b"payload")
}

fn pipes<const N: usize>(topics: [&str; N]) -> (Pipes, [Id; N]) {
    let mut pipes = Pipes::default();
    let ids = topics.map(|topic| {
        let id = pipes.enter();
        assert!(pipes.subscribe(id, topic.as_bytes()));
        id
    });
    (pipes, ids)
}

fn records(pipes: &Pipes, id: Id) -> usize {
    pipes.pipes[&id].records
}

fn fill(pipes: &mut Pipes, topic: &str) {
    (0..PIPE_RECORDS).for_each(|_| pipes.offer(&message(topic)));
}

/// Takes what a writer takes, and writes it.
fn write(pipes: &mut Pipes, id: Id) {
    let mut batch = Batch::default();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(pipes.poll_take(id, &mut batch, &mut cx).is_ready());
    let _ = pipes.poll_take(id, &mut batch, &mut cx);
}

/// REQ: CH-807, CH-904
#[test]
fn who_has_no_room_does_without() {
    let (mut pipes, [slow, other]) = pipes(["a", "b"]);
    fill(&mut pipes, "a");
    assert!(pipes.subscribe(other, b"a") && pipes.subscribe(other, b"ab"));
    pipes.offer(&message("abc"));
    assert_eq!((records(&pipes, slow), records(&pipes, other)), (PIPE_RECORDS, 1));
}

/// REQ: CH-808
#[test]
fn all_that_want_it_get_it_or_none() {
    let (mut pipes, [slow, quick, apart]) = pipes(["a", "a", "b"]);
    fill(&mut pipes, "a");
    write(&mut pipes, quick);
    let room = PIPE_RECORDS - records(&pipes, quick);
    assert!(room > 0);
    assert_eq!(pipes.offer_to_all(&message("a")), Err(slow));
    assert_eq!(PIPE_RECORDS - records(&pipes, quick), room, "and so it gets nothing");
    assert_eq!(
        pipes.offer_to_all(&message("b")),
        Ok(()),
        "who does not want it does not count"
    );
    assert_eq!(records(&pipes, apart), 1);

    let (_, mut told) = pipes.wait(message("a"), slow);
    assert!(told.try_recv().is_err());
    write(&mut pipes, slow);
    assert!(told.try_recv().is_ok());
    assert_eq!(PIPE_RECORDS - records(&pipes, quick), room - 1);
}

#[test]
fn what_waits_goes_on_with_the_end_of_what_it_waits_for() {
    let (mut pipes, [slow]) = pipes(["a"]);
    fill(&mut pipes, "a");
    let (_, mut gone) = pipes.wait(message("a"), slow);
    pipes.leave(slow);
    assert!(gone.try_recv().is_ok());

    let (mut pipes, [slow]) = super::tests::pipes(["a"]);
    fill(&mut pipes, "a");
    let (id, mut withdrawn) = pipes.wait(message("a"), slow);
    let (_, mut cancelled) = pipes.wait(message("a"), slow);
    assert!(pipes.withdraw(id) && !pipes.withdraw(id));
    pipes.cancel(slow, b"a");
    assert!(cancelled.try_recv().is_ok());
    assert!(withdrawn.try_recv().is_err());
    let (_, mut closed) = pipes.wait(message("a"), slow);
    pipes.close();
    assert!(closed.try_recv().is_err());
}

#[test]
fn what_is_held_is_bounded_in_bytes_too() {
    let (mut pipes, [slow]) = pipes([""]);
    let large = Message::new(b"", &[], &vec![0; LINK_BUDGET_BYTES + 1]);
    pipes.offer(&large);
    assert_eq!(records(&pipes, slow), 1, "one alone goes, however large");
    pipes.offer(&message("a"));
    assert_eq!(records(&pipes, slow), 1);
    write(&mut pipes, slow);
    assert_eq!((records(&pipes, slow), pipes.pipes[&slow].bytes), (0, 0));
}

#[test]
fn a_message_is_two_frames() {
    let topic = message("ab");
    assert_eq!(&topic.bytes[..], b"\x01\x02ab\x00\x0bheadpayload");
    assert_eq!(topic.topic(), b"ab");
}

/// REQ: CH-808
#[test]
fn what_waits_is_not_overtaken_by_what_is_smaller() {
    let (mut pipes, [slow, other]) = pipes(["a", "b"]);
    let large = |topic: &str| Message::new(topic.as_bytes(), &[], &vec![0; LINK_BUDGET_BYTES - 5000]);
    (0..400).for_each(|_| pipes.offer(&message("a")));
    assert_eq!(pipes.offer_to_all(&large("a")), Err(slow));
    let (id, mut first) = pipes.wait(large("a"), slow);
    assert_eq!(
        pipes.offer_to_all(&message("a")),
        Err(slow),
        "there is room, and somebody before"
    );
    let (_, mut second) = pipes.wait(message("a"), slow);
    assert_eq!(pipes.offer_to_all(&message("b")), Ok(()));
    write(&mut pipes, slow);
    assert!(first.try_recv().is_ok() && second.try_recv().is_ok());
    assert_eq!(records(&pipes, other), 1);
    assert!(!pipes.withdraw(id));

    // And goes on where that one is withdrawn.
    (0..200).for_each(|_| pipes.offer(&message("a")));
    let (id, _withdrawn) = pipes.wait(large("a"), slow);
    let (_, mut behind) = pipes.wait(message("a"), slow);
    assert!(behind.try_recv().is_err());
    assert!(pipes.withdraw(id));
    assert!(behind.try_recv().is_ok());
    assert_eq!(pipes.offer_to_all(&message("a")), Ok(()), "nobody waits");
}

/// REQ: CH-808
#[test]
fn what_is_not_wanted_any_more_is_not_waited_for_in_the_middle_of_a_line_either() {
    let (mut pipes, [slow]) = pipes(["a"]);
    assert!(pipes.subscribe(slow, b"b"));
    fill(&mut pipes, "a");
    let (_, mut first) = pipes.wait(message("a"), slow);
    let (_, mut second) = pipes.wait(message("b"), slow);
    pipes.cancel(slow, b"b");
    assert!(first.try_recv().is_err() && second.try_recv().is_ok());
    assert_eq!(pipes.offer_to_all(&message("a")), Err(slow));
    pipes.leave(slow);
    assert!(first.try_recv().is_ok());
}

/// Where one that had waited longer comes into a line, it does not come last.
///
/// REQ: CH-808
#[test]
fn who_waits_for_another_keeps_its_place() {
    let (mut pipes, [one, other]) = pipes(["a", "a"]);
    assert!(pipes.subscribe(other, b"b"));
    fill(&mut pipes, "a");
    let large = Message::new(b"a", &[], &vec![0; LINK_BUDGET_BYTES - 5000]);
    let (_, mut first) = pipes.wait(large, one);
    let (_, mut second) = pipes.wait(message("b"), other);
    write(&mut pipes, one);
    assert!(first.try_recv().is_err(), "the other one is full");
    assert_eq!(pipes.offer_to_all(&message("a")), Err(other));
    write(&mut pipes, other);
    assert!(first.try_recv().is_ok() && second.try_recv().is_ok());
    // The large one is with the writer already.
    let held: Vec<_> = pipes.pipes[&other].queue.iter().map(Bytes::len).collect();
    assert_eq!(held, [message("b").bytes.len()]);
}

/// Neither of two pipes that are always full keeps a message for both waiting for ever, though each has room while the other
/// has none, and others want it.
///
/// REQ: CH-808
#[test]
fn what_wants_two_full_pipes_goes_in_its_turn() {
    let (mut pipes, [one, two]) = pipes(["a", "b"]);
    for pipe in [one, two] {
        assert!(pipes.subscribe(pipe, b"x"));
    }
    let refill = |pipes: &mut Pipes, topic: &str| while pipes.offer_to_all(&message(topic)).is_ok() {};
    let room = |pipes: &mut Pipes, pipe: Id, topic: &str| {
        write(pipes, pipe);
        refill(pipes, topic);
    };
    refill(&mut pipes, "a");
    refill(&mut pipes, "b");
    let on = pipes.offer_to_all(&message("x")).unwrap_err();
    let (_, mut both) = pipes.wait(message("x"), on);
    let mut rounds = 0;
    while both.try_recv().is_err() {
        rounds += 1;
        assert!(rounds <= 3, "others go before it again and again");
        room(&mut pipes, one, "a");
        room(&mut pipes, two, "b");
    }
    assert_eq!(pipes.waiting.len(), 0);
    assert!(pipes.pipes.values().all(|pipe| pipe.line.is_empty()));
}

/// Random use: who waits goes on as soon as it can, nobody stands where it does not wait, and whoever has waited longer for
/// the same pipes goes first.
///
/// REQ: CH-808
#[test]
fn whoever_waits_can_not_go_yet() {
    const TOPICS: [&str; 5] = ["a", "b", "c", "x", "y"];
    for seed in 0..200 {
        let random = crate::random::Random::seeded(seed);
        let below = |bound: u64| random.bits() % bound;
        let (mut pipes, ids) = pipes(["a", "b", "c"]);
        for (pipe, topics) in ids.into_iter().zip([["x", "y"], ["x", "z"], ["y", "z"]]) {
            topics
                .iter()
                .for_each(|topic| assert!(pipes.subscribe(pipe, topic.as_bytes())));
        }
        let mut waits = Vec::new();
        for _ in 0..400 {
            let topic = TOPICS[usize::try_from(below(5)).unwrap()];
            let pipe = ids[usize::try_from(below(3)).unwrap()];
            match below(12) {
                0..7 => {
                    // Nobody may want it any more.
                    let full = (0..=PIPE_RECORDS).find_map(|_| pipes.offer_to_all(&message(topic)).err());
                    waits.extend(full.map(|on| pipes.wait(message(topic), on)));
                }
                7..10 if !pipes.pipes[&pipe].queue.is_empty() => write(&mut pipes, pipe),
                10 if !waits.is_empty() => {
                    let at = usize::try_from(below(waits.len() as u64)).unwrap();
                    pipes.withdraw(waits.swap_remove(at).0);
                }
                11 if below(6) == 0 => {
                    pipes.cancel(pipe, ["x", "y", "z"][usize::try_from(below(3)).unwrap()].as_bytes())
                }
                _ => {}
            }
            waits.retain_mut(|(id, told)| {
                let waits = pipes.waiting.contains_key(id);
                assert_eq!(told.try_recv().is_ok(), !waits, "seed {seed}");
                waits
            });
            assert_eq!(pipes.waiting.len(), waits.len(), "seed {seed}");
            for (id, waiting) in &pipes.waiting {
                assert!(!waiting.on.is_empty(), "seed {seed}: it waits for nothing");
                let lines = pipes.pipes.iter().filter(|(_, pipe)| pipe.line.contains(id));
                assert!(lines.map(|(on, _)| on).eq(&waiting.on), "seed {seed}");
                let can_go = pipes.pipes.values().all(|pipe| {
                    let is_behind = pipe.line.first().is_some_and(|first| first < id);
                    !pipe.topics.matches(waiting.message.topic()) || (!is_behind && pipe.has_room(&waiting.message))
                });
                assert!(!can_go, "seed {seed}: {id} could go");
            }
        }
        ids.into_iter().for_each(|pipe| pipes.leave(pipe));
        assert!(pipes.waiting.is_empty(), "seed {seed}");
    }
}
