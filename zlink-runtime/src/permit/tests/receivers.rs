//! Which receivers are told a flow, when, and how often.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::permit::{Flow, Receiver, Receivers};

/// Remembers what it was told, and keeps the newest; may do something in the middle of it.
#[derive(Clone, Default)]
struct Link {
    told: Arc<Mutex<Vec<Flow>>>,
    then: Arc<Mutex<Option<Then>>>,
}

type Then = Box<dyn FnOnce() + Send>;

impl Receiver for Link {
    fn apply(&self, flow: Flow) {
        let mut told = self.told.lock();
        if told.last().is_none_or(|last| last.version < flow.version) {
            told.push(flow);
        }
        drop(told);
        let then = self.then.lock().take();
        if let Some(then) = then {
            then();
        }
    }
}

impl Link {
    fn versions(&self) -> Vec<u64> {
        self.told.lock().iter().map(|flow| flow.version).collect()
    }
}

fn flow(version: u64) -> Flow {
    Flow {
        version,
        paused: version % 2 == 1,
    }
}

/// REQ: PM-86, PM-85
#[test]
fn each_is_told_each_change_once_and_no_older_one_after_it() {
    let receivers = Receivers::new();
    let (one, two) = (Link::default(), Link::default());
    receivers.enter(1, one.clone());
    receivers.apply(flow(1));
    receivers.apply(flow(1));
    receivers.enter(2, two.clone());
    receivers.apply(flow(3));
    receivers.apply(flow(2));
    assert_eq!(receivers.flow(), flow(3));
    assert_eq!(one.versions(), [0, 1, 3]);
    assert_eq!(two.versions(), [1, 3], "a new one is told what holds when it comes");
    receivers.leave(1);
    receivers.leave(1);
    receivers.apply(flow(4));
    assert_eq!(one.versions(), [0, 1, 3]);
    assert_eq!(two.versions(), [1, 3, 4]);
}

/// REQ: PM-87, PM-88
#[test]
fn a_change_while_a_receiver_is_new_reaches_it() {
    let receivers = Arc::new(Receivers::new());
    let link = Link::default();
    // It changes after the link was told, and before it is entered: under no lock, so that this does not hang.
    let during = receivers.clone();
    *link.then.lock() = Some(Box::new(move || during.apply(flow(1))));
    receivers.enter(1, link.clone());
    assert_eq!(link.versions(), [0, 1]);

    // One that leaves, and another that comes, in the middle of a change.
    let other = Link::default();
    let (during, late) = (receivers.clone(), other.clone());
    *link.then.lock() = Some(Box::new(move || {
        during.leave(1);
        during.enter(2, late);
    }));
    receivers.apply(flow(2));
    assert_eq!(other.versions(), [2]);
    receivers.apply(flow(3));
    assert_eq!((link.versions(), other.versions()), (vec![0, 1, 2], vec![2, 3]));
}
