//! Model checks: a record that waits is delivered or withdrawn, and what one caller sends keeps its order.
//!
//! `scripts/model loom loom_`

use std::sync::Arc;

use loom::sync::{Mutex, Notify};
use loom::thread;

use super::{Claim, Line};

/// A line of numbers, where they are delivered, and who hears of each.
struct World {
    line: Line<u32>,
    delivered: Mutex<Vec<u32>>,
    first: Notify,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            line: Line::new(),
            delivered: Mutex::new(Vec::new()),
            first: Notify::new(),
        })
    }

    fn delivered(&self) -> Vec<u32> {
        self.delivered.lock().unwrap().clone()
    }

    fn deliver(&self, number: u32) {
        self.delivered.lock().unwrap().push(number);
        if number == 1 {
            self.first.notify();
        }
    }

    /// As the task of a line does, where permits are free.
    fn serve(&self) {
        while !self.line.is_served() {
            self.line.hand_on(|number| self.deliver(number));
        }
    }

    /// Waits in line. Whoever has to serve it for that.
    fn wait(self: &Arc<Self>, number: u32, claim: &Claim) -> Option<thread::JoinHandle<()>> {
        let (_, is_first) = self.line.join(number, claim.clone());
        let world = self.clone();
        is_first.then(|| thread::spawn(move || world.serve()))
    }

    /// Goes at once, where nobody waits.
    fn send(self: &Arc<Self>, number: u32) -> Option<thread::JoinHandle<()>> {
        if self.line.is_crowded() {
            return self.wait(number, &Claim::default());
        }
        self.deliver(number);
        None
    }
}

fn end(servers: impl IntoIterator<Item = Option<thread::JoinHandle<()>>>) {
    for server in servers.into_iter().flatten() {
        server.join().unwrap();
    }
}

/// A bounded search: all interleavings with at most three switches that the code did not ask for.
fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn loom_what_waits_is_delivered_or_withdrawn() {
    check(|| {
        let (world, claim) = (World::new(), Claim::default());
        let (number, _) = world.line.join(1, claim.clone());
        let server = {
            let world = world.clone();
            thread::spawn(move || world.serve())
        };
        let withdrawn = claim.withdraw();
        world.line.leave(number);
        server.join().unwrap();
        assert_eq!(world.delivered().is_empty(), withdrawn);
        assert_eq!(claim.withdraw(), withdrawn, "and that stays");
    });
}

/// Another comes at the same time, and the first caller sends again once it has heard.
#[test]
fn loom_whoever_has_heard_comes_behind() {
    check(|| {
        let world = World::new();
        let first = world.wait(1, &Claim::default());
        let other = {
            let world = world.clone();
            thread::spawn(move || end([world.send(2)]))
        };
        world.first.wait();
        let next = world.send(3);
        end([first, next, Some(other)]);
        let mut delivered = world.delivered();
        let own: Vec<_> = delivered.iter().copied().filter(|number| *number != 2).collect();
        assert_eq!(own, [1, 3]);
        delivered.sort_unstable();
        assert_eq!(delivered, [1, 2, 3], "each once");
        assert!(!world.line.is_crowded());
    });
}

/// A caller that has begun to wait and does not look is not overtaken by what it sends next.
#[test]
fn loom_what_waits_is_not_overtaken_by_its_own_caller() {
    check(|| {
        let world = World::new();
        let first = world.wait(1, &Claim::default());
        let next = world.send(2);
        end([first, next]);
        assert_eq!(world.delivered(), [1, 2]);
    });
}
