//! An owner that gets SIGKILL: what its callers are told, and what brings its Spots back.

use std::time::{Duration, Instant};

use crate::node::Timing;
use crate::stage::{Node, Shared, Stage, linked};

/// The Entry Spot of a node.
fn entry_of(node: &Node) -> String {
    let ran = node.ran();
    let start = ran.iter().find_map(|entry| entry.what.strip_prefix("start "));
    start.unwrap().to_owned()
}

fn kill_an_owner(shared: Shared) {
    let stage = Stage::new(shared, Timing::Brief);
    let mut owner = stage.start("owner");
    for room in ["room", "closed", "created"] {
        assert!(owner.insist(&format!("create {room} x")).0.starts_with("created"));
    }
    owner.insist("add cart first");
    let entry = entry_of(&owner);
    let mut nodes = [owner, stage.start("other")];
    linked(&mut nodes);
    let [mut owner, mut other] = nodes;
    let generation: u64 = other.insist("look room generation").0.parse().unwrap();
    other.insist(&format!("greet {entry}"));
    let under_way = other.begin("look room gate");
    owner.until_it_ran("turn room gate", Duration::ZERO);
    let behind = other.begin("look room behind");

    let killed = Instant::now();
    owner.process.kill();
    let under_way = other.answer(under_way);
    under_way.failed("Unavailable");
    assert!(under_way.text.starts_with("unknown"), "it had begun: {under_way:?}");
    let told = killed.elapsed();
    // Nobody knows how far this one has come.
    other.answer(behind).failed("Unavailable");
    // Nobody takes over by itself: not before it is proved dead, and not after.
    let mut longest = Duration::ZERO;
    while killed.elapsed() < stage.lease_ends_for_others() * 3 / 2 {
        for order in [
            "look room x",
            "say room x",
            "add cart x",
            "view cart x",
            &format!("greet {entry}"),
        ] {
            let answer = other.ask(order);
            answer.failed("Unavailable");
            assert!(answer.text.starts_with("not_executed"), "{answer:?}");
            longest = longest.max(answer.took);
        }
    }
    assert_eq!(other.count("activate cart"), 0);
    println!("killed: {told:?} until its caller knew; later ones at most {longest:?}");

    let mut back = |how: &str, orders: &[(&str, &str)]| {
        for (order, begin) in orders {
            let (text, _) = other.insist(order);
            assert!(text.starts_with(begin), "{order}: {text}");
        }
        println!("killed: {how} after {:?}", killed.elapsed());
    };
    back(
        "a User Spot, released and created",
        &[
            ("release room", "true"),
            ("create room y", "created"),
            ("look room lines", "y"),
        ],
    );
    back(
        "a User Spot, created",
        &[("create created y", "created"), ("look created lines", "y")],
    );
    back(
        "an Instance Spot, released and called",
        &[("release cart", "true"), ("view cart x", ""), ("view cart y", "x")],
    );
    back("an Entry Spot, released", &[(&format!("release {entry}"), "true")]);
    let again: u64 = other.insist("look room generation").0.parse().unwrap();
    assert!(again > generation, "{again} after {generation}");

    let mut owner = stage.start("owner");
    let new = entry_of_latest(&owner);
    assert_ne!(new, entry, "a new run has a new one");
    other.until_it_is("peers=1");
    other.insist(&format!("greet {new}"));
    println!("killed: an Entry Spot, with its process, after {:?}", killed.elapsed());
    other.ask(&format!("greet {entry}")).failed("NotFound");
    assert_eq!(owner.insist("look room lines").0, "y");
    for (spot, factories) in [("create room", 2), ("create created", 2), ("activate cart", 2)] {
        // The journal of the killed process goes on in that of the next.
        assert_eq!(owner.count(spot) + other.count(spot), factories, "{spot}");
    }
    owner.shut_down();
    other.shut_down();
}

/// The Entry Spot of the last run.
fn entry_of_latest(node: &Node) -> String {
    let ran = node.ran();
    let start = ran.iter().rev().find_map(|entry| entry.what.strip_prefix("start "));
    start.unwrap().to_owned()
}

/// REQ: LS-104, LS-013, SP-069, SP-005
#[test]
fn what_a_killed_owner_had_comes_back_when_it_is_asked_for_on_sqlite() {
    kill_an_owner(Shared::Sqlite);
}

/// REQ: LS-104, LS-013, SP-069, SP-005
#[test]
fn what_a_killed_owner_had_comes_back_when_it_is_asked_for_on_redis() {
    kill_an_owner(Shared::redis());
}
