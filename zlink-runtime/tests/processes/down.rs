//! A store that is down for longer than any lease, and comes back with all it had.

use std::time::{Duration, Instant};

use crate::journal;
use crate::node::Timing;
use crate::stage::{Node, Shared, Stage, linked};

/// REQ: LS-032, LS-033, LS-102, LS-104, LS-105
#[test]
fn a_store_that_is_down_for_twice_the_grace_ends_what_was_accepted_and_lets_nobody_take_anything() {
    let mut stage = Stage::new(Shared::redis(), Timing::Brief);
    let grace = Timing::Brief.times().store_failure_grace;
    let mut nodes: Vec<Node> = ["one", "two"].map(|name| stage.start(name)).into();
    linked(&mut nodes);
    let spots = ["room-1", "room-2", "room-3", "room-4"];
    for room in spots {
        assert!(
            nodes[0]
                .insist(&format!("create {room} ticks"))
                .0
                .starts_with("created")
        );
    }
    nodes[0].insist("add cart first");
    let generations: Vec<_> = spots
        .map(|room| nodes[1].insist(&format!("look {room} generation")).0)
        .into();
    for message in ["gate", "accepted-1", "accepted-2"] {
        nodes[1].insist(&format!("say room-1 {message}"));
    }

    let Shared::Redis(server) = &mut stage.shared else {
        return;
    };
    server.kill();
    let began = Instant::now();
    // Whichever has the room; what was accepted ends now, or once its host may run again.
    nodes.iter_mut().for_each(|node| drop(node.ask("open 1").ok()));
    nodes.iter_mut().for_each(|node| node.until_it_is("admits=false"));
    let (closed, closed_at) = (began.elapsed(), journal::now());
    let mut refused = Duration::ZERO;
    while began.elapsed() < 2 * grace {
        for node in &mut nodes {
            for order in [
                "look room-1 x",
                "look room-2 x",
                "create room-5 x",
                "view basket x",
                "view cart x",
            ] {
                let answer = node.ask(order);
                answer.failed("Unavailable");
                refused = refused.max(answer.took);
            }
        }
    }
    let down = began.elapsed();
    for node in &nodes {
        let ran: Vec<_> = node.ran().into_iter().filter(|entry| entry.at > closed_at).collect();
        assert!(ran.is_empty(), "{ran:?}");
    }
    server.start();

    let began = Instant::now();
    nodes.iter_mut().for_each(|node| node.until_it_is("admits=true"));
    let open = began.elapsed();
    for (room, generation) in spots.iter().zip(&generations) {
        for node in &mut nodes {
            assert_eq!(node.insist(&format!("look {room} generation")).0, *generation, "{room}");
        }
    }
    assert!(nodes[1].insist("view cart x").0.starts_with("first"));
    for order in ["create room-5 x", "view basket x"] {
        nodes[0].insist(order);
    }
    let whole = began.elapsed();
    let ran: Vec<_> = nodes.iter().flat_map(Node::ran).map(|entry| entry.what).collect();
    let count = |what: &str| ran.iter().filter(|line| *line == what).count();
    for room in spots {
        assert_eq!(count(&format!("create {room}")), 1);
    }
    assert_eq!(
        (count("activate cart"), count("activate basket"), count("create room-5")),
        (1, 1, 1)
    );
    for what in ["gate", "goes on", "accepted-1", "accepted-2"] {
        assert_eq!(count(&format!("turn room-1 {what}")), 1, "{what}");
    }
    println!(
        "a store that was down for {down:?}: hosts closed after {closed:?}, calls were refused within {refused:?}; once it was up \
         again, hosts were open after {open:?}, all had answered after {whole:?}"
    );
    nodes.into_iter().for_each(Node::shut_down);
}
