//! Clocks of the day that jump, of an owner and of a caller: nobody owns anything else for it, and nobody who is dead keeps
//! anything for it. Where the store is a file, the clock of whoever writes is the store's too.

use std::time::{Duration, Instant};

use crate::journal;
use crate::node::Timing;
use crate::stage::{Node, Shared, Stage, linked};

const HOUR: i64 = 3_600;

/// For that long all is where it was, and new Spots are made.
fn all_stays(nodes: &mut [Node], round: usize, span: Duration) {
    let began = Instant::now();
    let mut looks = 0;
    while began.elapsed() < span {
        for node in &mut *nodes {
            let status = node.ask("status").ok();
            assert!(status.contains("admits=true"), "{status}");
            assert_eq!(node.ask("look room lines").ok(), "ticks");
            assert!(node.ask(&format!("view cart {looks}")).ok().starts_with("first"));
            for spot in ["room", "cart"] {
                node.ask(&format!("release {spot}")).failed("InvalidOperation");
            }
        }
        looks += 1;
    }
    nodes[0].until_it_ran("tick room", journal::now());
    for (at, node) in nodes.iter_mut().enumerate() {
        let new = format!("{round}-{at}");
        assert!(node.ask(&format!("create room-{new} x")).ok().starts_with("created"));
        assert_eq!(node.ask(&format!("view cart-{new} x")).ok(), "", "it is new");
    }
}

/// The clock of whoever counts the owner out is set to `last` as soon as that is dead.
fn jump(shared: Shared, last: i64) {
    let stage = Stage::new(shared, Timing::Calm);
    let mut owner = stage.start("owner");
    // While it is alone, all that is made is made there.
    assert!(owner.insist("create room ticks").0.starts_with("created"));
    owner.insist("add cart first");
    let mut nodes = [owner, stage.start("caller")];
    linked(&mut nodes);
    let generation = nodes[1].insist("look room generation").0;
    // Who believed a clock that is ahead would think at once that all time is over; who believed one that is behind would
    // not renew, and be counted out.
    let (ahead, behind) = (
        Duration::from_secs(2),
        stage.lease_ends_for_others() + Duration::from_millis(500),
    );
    let jumps = [
        (0, HOUR, ahead),
        (1, HOUR, ahead),
        (0, -HOUR, behind),
        (1, -HOUR, behind),
    ];
    for (round, (node, to, span)) in jumps.into_iter().enumerate() {
        nodes[node].ask(&format!("clock {to}")).ok();
        all_stays(&mut nodes, round, span);
    }
    for node in &mut nodes {
        assert_eq!(node.insist("look room generation").0, generation);
    }
    let ran: Vec<_> = nodes.iter().flat_map(Node::ran).map(|entry| entry.what).collect();
    for made in ["create room", "activate cart"] {
        assert_eq!(ran.iter().filter(|what| *what == made).count(), 1, "{made}");
    }

    // And whoever dies is counted out in its time, neither before nor never.
    let [mut owner, mut caller] = nodes;
    let killed = Instant::now();
    owner.process.kill();
    caller.ask(&format!("clock {last}")).ok();
    assert_eq!(caller.insist("release room").0, "true");
    let took = killed.elapsed();
    // It was seen to live when it last renewed.
    let least = stage.lease_ends_for_others() - 2 * Timing::Calm.times().renew_interval;
    assert!(took >= least, "after {took:?}");
    println!("clocks jumped: nobody owned anything else; a killed owner was counted out after {took:?}");
    caller.shut_down();
}

/// REQ: LS-031, LS-036, LS-001, LS-024
#[test]
fn clocks_of_the_day_of_owner_and_caller_jump_and_nothing_changes_its_owner_on_sqlite() {
    jump(Shared::Sqlite, HOUR);
}

/// REQ: LS-031, LS-036, LS-001
#[test]
fn clocks_of_the_day_of_owner_and_caller_jump_and_nothing_changes_its_owner_on_redis() {
    jump(Shared::redis(), -2 * HOUR);
}
