//! An owner that is stopped past its lease, and comes back after others have taken what the contract lets them take.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use rustix::process::{Signal, kill_process};

use crate::journal;
use crate::node::Timing;
use crate::stage::{Node, Shared, Stage, linked};

/// A node with two rooms that tick and a cart, and turns that wait in each; and a node that has sent more there.
fn stand(stage: &Stage) -> (Node, Node) {
    let mut owner = stage.start("owner");
    // While it is alone, all that is made is made there.
    for room in ["taken", "kept"] {
        assert!(owner.insist(&format!("create {room} ticks")).0.starts_with("created"));
    }
    owner.insist("add cart first");
    let mut nodes = [owner, stage.start("other")];
    linked(&mut nodes);
    let [owner, mut other] = nodes;
    for room in ["taken", "kept"] {
        other.insist(&format!("say {room} gate"));
        owner.until_it_ran(&format!("turn {room} gate"), Duration::ZERO);
        for message in ["queued-1", "queued-2"] {
            other.insist(&format!("say {room} {message}"));
        }
    }
    other.insist("add cart gate");
    owner.until_it_ran("turn cart gate", Duration::ZERO);
    (owner, other)
}

/// What ran in `node` of that Spot after that.
fn ran_of(node: &Node, spot: &str, since: Duration) -> Vec<String> {
    let later = node.ran().into_iter().filter(|entry| entry.at > since);
    let of_spot = later.filter(|entry| entry.what.split(' ').nth(1) == Some(spot));
    of_spot.map(|entry| entry.what).collect()
}

/// The owner has come back: what was kept goes on there, once and in order; what was taken never does.
fn goes_on(owner: &mut Node, other: &mut Node, stopped: Duration, was_taken: bool) {
    let resumed = journal::now();
    owner.until_it_is("admits=true");
    owner.until_it_ran("turn kept queued-2", stopped);
    for _ in 0..20 {
        // Each a tick later than the one before, so that whatever else was to run has had its time.
        owner.until_it_ran("tick kept", journal::now());
    }
    let kept = ran_of(owner, "kept", stopped);
    let turns: Vec<_> = kept.iter().filter(|what| what.starts_with("turn")).collect();
    assert_eq!(turns, ["turn kept goes on", "turn kept queued-1", "turn kept queued-2"]);
    if was_taken {
        assert_eq!(ran_of(owner, "taken", stopped), [""; 0], "another has it");
        assert_eq!(ran_of(owner, "cart", stopped), [""; 0], "another has it");
        for node in [owner, other] {
            assert_eq!(node.insist("look taken lines").0, "ticks");
        }
    } else {
        owner.until_it_ran("turn taken queued-2", resumed);
        assert_eq!(ran_of(other, "taken", Duration::ZERO), [""; 0], "nobody took it");
        assert_eq!(ran_of(other, "cart", Duration::ZERO), [""; 0], "nobody took it");
    }
}

/// REQ: LS-033, LS-034, LS-036, SP-133
#[test]
fn an_owner_that_was_stopped_runs_nothing_before_it_has_recovered_and_nothing_that_was_taken_ever() {
    let stage = Stage::new(Shared::redis(), Timing::Brief);
    let Shared::Redis(server) = &stage.shared else {
        return;
    };
    let (mut owner, mut other) = stand(&stage);
    let pending = other.begin("look taken pending");
    let stopped = owner.stop();
    // It is told this as soon as it goes on, long before it has its lease again.
    let opened = owner.begin("open 3");
    let (mut took, mut began) = (Vec::new(), Instant::now());
    for spot in ["taken", "cart"] {
        assert_eq!(other.insist(&format!("release {spot}")).0, "true");
        took.push(began.elapsed());
        began = Instant::now();
    }
    assert!(other.insist("create taken ticks").0.starts_with("created"));
    assert_eq!(other.insist("view cart again").0, "", "it is a new one");

    // It finds a store that stands still: it cannot recover before that goes on.
    kill_process(server.process(), Signal::STOP).unwrap();
    owner.go_on();
    owner.answer(opened).ok();
    for _ in 0..100 {
        assert!(owner.ask("status").ok().contains("admits=false"));
    }
    let early = owner.ran().into_iter().filter(|entry| entry.at > stopped);
    assert_eq!(early.map(|entry| entry.what).collect::<Vec<_>>(), [""; 0]);
    kill_process(server.process(), Signal::CONT).unwrap();
    let began = Instant::now();
    goes_on(&mut owner, &mut other, stopped, true);
    let recovered = began.elapsed();
    let pending = other.answer(pending);
    let told = ["Unavailable", "DeadlineExceeded"].contains(&pending.kind.as_str());
    assert!(told, "{pending:?}");
    println!(
        "stopped: released after {took:?}; a request that had waited there ended {pending:?}; it ran its own again {recovered:?} after \
         the store"
    );
    owner.shut_down();
    other.shut_down();
}

/// REQ: LS-033, LS-036
#[test]
fn an_owner_that_was_stopped_owns_nothing_twice_on_sqlite() {
    let stage = Stage::new(Shared::Sqlite, Timing::Brief);
    let (mut owner, mut other) = stand(&stage);
    let stopped = owner.stop();
    let opened = owner.begin("open 3");
    let began = Instant::now();
    let was_taken = loop {
        let answer = other.ask("release taken");
        if answer.kind == "ok" {
            assert_eq!(answer.text, "true");
            break true;
        }
        answer.failed("Unavailable");
        if began.elapsed() > 4 * stage.lease_ends_for_others() {
            break false;
        }
    };
    let took = began.elapsed();
    if was_taken {
        assert_eq!(other.insist("release cart").0, "true");
        assert!(other.insist("create taken ticks").0.starts_with("created"));
        assert_eq!(other.insist("view cart again").0, "");
    }
    owner.go_on();
    owner.answer(opened).ok();
    goes_on(&mut owner, &mut other, stopped, was_taken);
    println!(
        "stopped: others {} after {took:?}",
        if was_taken { "took" } else { "could not take" }
    );
    owner.shut_down();
    other.shut_down();
}

/// Whether somebody has the file for longer than any transaction takes.
fn is_held(file: &Connection) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(250) {
        if file.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok() {
            return false;
        }
    }
    true
}

/// Stops `node` in the middle of a transaction. When after the order that begins is the machine's affair, so each round looks
/// for it a little later than the one before.
fn stop_while_it_writes(node: &mut Node, file: &Connection) -> Duration {
    for round in 0..2_000 {
        node.begin(&format!("create scratch-{round} x"));
        let aim = Instant::now() + Duration::from_micros(10 * (round % 200));
        while Instant::now() < aim {
            std::hint::spin_loop();
        }
        let stopped = node.stop();
        if is_held(file) {
            return stopped;
        }
        node.go_on();
    }
    panic!("it was never stopped while it held the file");
}

/// REQ: LS-036, LS-102
#[test]
fn while_a_stopped_process_holds_the_file_all_is_unavailable_and_nothing_is_owned_twice() {
    let stage = Stage::new(Shared::Sqlite, Timing::Brief);
    let (mut owner, mut other) = stand(&stage);
    owner.insist("open 3");
    let file = Connection::open(stage.file()).unwrap();
    file.busy_timeout(Duration::ZERO).unwrap();
    let stopped = stop_while_it_writes(&mut owner, &file);
    let began = Instant::now();
    other.until_it_is("admits=false");
    let closed = began.elapsed();
    // Far longer than it takes to prove that the owner is dead, could anything be written.
    while began.elapsed() < 2 * stage.lease_ends_for_others() {
        for order in ["release taken", "release cart", "create new x"] {
            let answer = other.ask(order);
            // A write whose outcome is not known is not given up before its caller does.
            let told = ["Unavailable", "DeadlineExceeded"].contains(&answer.kind.as_str());
            assert!(told, "{order}: {answer:?}");
        }
    }
    owner.go_on();
    let began = Instant::now();
    other.until_it_is("admits=true");
    owner.until_it_is("admits=true");
    owner.until_it_ran("tick taken", stopped);
    owner.until_it_ran("tick kept", stopped);
    let recovered = began.elapsed();
    // What its caller was not told of may have been asked of the owner, which has done it since.
    other.insist("create new x");
    for node in [&mut owner, &mut other] {
        assert_eq!(node.insist("look taken lines").0, "ticks,gate,queued-1,queued-2");
    }
    for spot in ["create taken", "create kept", "activate cart", "create new"] {
        assert_eq!(owner.count(spot) + other.count(spot), 1, "{spot}");
    }
    println!("stopped with the file: the other closed after {closed:?}; all went on {recovered:?} after it did");
    owner.shut_down();
    other.shut_down();
}
