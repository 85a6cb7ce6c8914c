//! The network as a test holds it: its nodes, its faults, and what happened on it.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::state::{NodeId, State, Wakes};
use super::stream::NodeSockets;
use super::trace::{Happened, TraceEvent};
use super::{Conditions, SimulatedTransport};
use crate::clock;
use crate::random::Random;

/// The network of one test. Clones are handles to the same one.
///
/// Nodes have names; endpoints are as they are anywhere, in one namespace for all nodes, as for the processes of one
/// machine. Everything follows from its seed and from what the test does, as long as all runs in one thread.
///
/// # Panics
/// Where a method is given the name of a node that it was never [told of](Self::transport).
#[derive(Clone)]
pub struct Network(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) state: Mutex<State>,
    pub(super) places: Mutex<Places>,
    /// Something is scheduled before what was next, or the network is gone.
    earlier: Arc<Notify>,
    /// A cut was healed.
    pub(super) healed: Notify,
}

/// Who is there and who listens.
#[derive(Default)]
pub(super) struct Places {
    nodes: Vec<Node>,
    pub(super) listeners: BTreeMap<String, Listening>,
    pub(super) next_port: u16,
    pub(super) next_listener: u64,
    drives: bool,
}

struct Node {
    name: String,
    /// Counts its runs; what an earlier one does has no effect.
    run: u64,
}

/// A bound endpoint.
pub(super) struct Listening {
    pub(super) id: u64,
    pub(super) node: NodeId,
    /// Connections that wait to be accepted.
    pub(super) backlog: VecDeque<u64>,
    pub(super) waiting: Vec<std::task::Waker>,
}

impl Network {
    /// A network that draws everything from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Inner {
            state: Mutex::new(State::new(Random::seeded(seed), clock::now())),
            places: Mutex::default(),
            earlier: Arc::default(),
            healed: Notify::new(),
        }))
    }

    /// Begins a run of the node `name`, whether it is new or was there before, and gives it its transport. Endpoints
    /// and connections of an earlier run are as if its process had been killed.
    pub fn transport(&self, name: &str) -> SimulatedTransport {
        let found = self.0.places.lock().position(name);
        let node = match found {
            Some(node) => {
                self.end_run(node);
                node
            }
            None => {
                let mut places = self.0.places.lock();
                places.nodes.push(Node {
                    name: name.to_owned(),
                    run: 1,
                });
                places.nodes.len() - 1
            }
        };
        let run = self.0.places.lock().run(node);
        self.0
            .state
            .lock()
            .note(clock::now(), Happened::Started(name.to_owned()));
        SimulatedTransport::new(NodeSockets {
            network: self.0.clone(),
            node,
            run,
        })
    }

    /// Ends the run of a node as the kill of its process does: its listeners are gone, and its connections end or
    /// break, for its peers after the time of the way. To let it fall silent instead, [isolate](Self::isolate) it before.
    #[track_caller]
    pub fn kill(&self, node: &str) {
        let id = self.node(node);
        self.0
            .state
            .lock()
            .note(clock::now(), Happened::Killed(node.to_owned()));
        self.end_run(id);
    }

    fn end_run(&self, node: NodeId) {
        let mut wakes = Wakes::new();
        {
            let mut places = self.0.places.lock();
            if let Some(node) = places.nodes.get_mut(node) {
                node.run += 1;
            }
            places.listeners.retain(|_, listening| {
                if listening.node == node {
                    wakes.append(&mut listening.waiting);
                }
                listening.node != node
            });
        }
        self.0.change(|state, wakes| state.kill(node, clock::now(), wakes));
        wakes.into_iter().for_each(std::task::Waker::wake);
    }

    /// How it is between nodes where nothing else was said.
    pub fn set_usual(&self, conditions: Conditions) {
        self.0.state.lock().usual = conditions;
    }

    /// How it is on the way from one node to another; the way back may be another.
    #[track_caller]
    pub fn set_path(&self, from: &str, to: &str, conditions: Conditions) {
        let path = (self.node(from), self.node(to));
        self.0.state.lock().paths.insert(path, conditions);
    }

    /// Makes both ways between two nodes take that long.
    #[track_caller]
    pub fn delay(&self, one: &str, other: &str, latency: Duration) {
        let (one, other) = (self.node(one), self.node(other));
        let mut state = self.0.state.lock();
        for path in [(one, other), (other, one)] {
            let conditions = state.conditions(path.0, path.1).clone();
            state.paths.insert(path, Conditions { latency, ..conditions });
        }
    }

    /// Lets nothing get from one node to another, until it is healed. What was on the way is held.
    #[track_caller]
    pub fn cut(&self, from: &str, to: &str) {
        let (from, to) = (self.node(from), self.node(to));
        self.0.state.lock().cut(from, to, clock::now());
    }

    /// Lets nothing get from any of these nodes to any of those, nor back.
    #[track_caller]
    pub fn partition(&self, these: &[&str], those: &[&str]) {
        for one in these {
            for other in those {
                self.cut(one, other);
                self.cut(other, one);
            }
        }
    }

    /// Cuts a node off from all others.
    #[track_caller]
    pub fn isolate(&self, node: &str) {
        self.node(node);
        let others: Vec<_> = self.names().into_iter().filter(|name| name != node).collect();
        let others: Vec<_> = others.iter().map(String::as_str).collect();
        self.partition(&[node], &others);
    }

    /// Heals every cut. What was held arrives after the time of its way.
    pub fn heal(&self) {
        self.0.change(|state, _| {
            for (from, to) in state.cuts() {
                state.heal(from, to, clock::now());
            }
        });
        self.0.healed.notify_waiters();
    }

    /// Makes the network a good one from here on: heals every cut, takes back whatever was
    /// said of its ways, and lets what is under way arrive as if it had set out now.
    pub fn calm(&self) {
        self.0.change(|state, _| state.calm(clock::now()));
        self.heal();
    }

    /// Heals the way from one node to another.
    #[track_caller]
    pub fn heal_path(&self, from: &str, to: &str) {
        let (from, to) = (self.node(from), self.node(to));
        self.0.change(|state, _| state.heal(from, to, clock::now()));
        self.0.healed.notify_waiters();
    }

    /// Breaks every connection between two nodes, or one of them where `one` is set: which, is drawn. What is under way
    /// is lost. Returns how many there were.
    #[track_caller]
    pub fn break_connections(&self, one: &str, other: &str, only_one: bool) -> usize {
        let (one, other) = (self.node(one), self.node(other));
        let mut broken = 0;
        self.0.change(|state, _| {
            let mut all = state.between(|from, to| (from, to) == (one, other));
            if only_one && !all.is_empty() {
                let drawn = usize::try_from(state.random.bits() % all.len() as u64).unwrap_or_default();
                all = vec![all[drawn]];
            }
            broken = all.len();
            all.into_iter()
                .for_each(|connection| state.break_connection(connection, clock::now()));
        });
        broken
    }

    /// How many connections there are.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.0.state.lock().len()
    }

    /// What happened, in order: the last 100,000 events.
    #[must_use]
    pub fn trace(&self) -> Vec<TraceEvent> {
        self.0.state.lock().trace.events()
    }

    /// A number that two networks share whose events were all the same.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.0.state.lock().trace.fingerprint()
    }

    /// Adds a test's own word to what happened.
    pub fn note(&self, text: impl Into<String>) {
        self.0.state.lock().note(clock::now(), Happened::Note(text.into()));
    }

    /// The nodes, in the order they came: the numbers in events.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0
            .places
            .lock()
            .nodes
            .iter()
            .map(|node| node.name.clone())
            .collect()
    }

    #[track_caller]
    #[allow(
        clippy::panic,
        reason = "a test that misnames a node must not go on as if it had none"
    )]
    fn node(&self, name: &str) -> NodeId {
        let found = self.0.places.lock().position(name);
        match found {
            Some(node) => node,
            None => panic!("the network has no node {name:?}; it has {:?}", self.names()),
        }
    }
}

impl Places {
    fn position(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|node| node.name == name)
    }

    pub(super) fn run(&self, node: NodeId) -> u64 {
        self.nodes.get(node).map_or(0, |node| node.run)
    }

    pub(super) fn name(&self, node: NodeId) -> &str {
        self.nodes.get(node).map_or("", |node| &node.name)
    }
}

impl Inner {
    /// Changes the state, wakes whoever is to be woken, and lets things arrive in time.
    pub(super) fn change<T>(self: &Arc<Self>, change: impl FnOnce(&mut State, &mut Wakes) -> T) -> T {
        let mut wakes = Wakes::new();
        let (result, earlier) = {
            let mut state = self.state.lock();
            let before = state.next();
            let result = change(&mut state, &mut wakes);
            let next = state.next();
            (result, next.is_some() && (before.is_none() || next < before))
        };
        wakes.into_iter().for_each(std::task::Waker::wake);
        if earlier {
            self.earlier.notify_one();
        }
        result
    }

    /// Sees to it that a task lets things arrive.
    pub(super) fn drive(self: &Arc<Self>) {
        if !std::mem::replace(&mut self.places.lock().drives, true) {
            tokio::spawn(drive(Arc::downgrade(self), self.earlier.clone()));
        }
    }
}

async fn drive(network: Weak<Inner>, earlier: Arc<Notify>) {
    loop {
        let changed = earlier.notified();
        let Some(inner) = network.upgrade() else { return };
        inner.change(|state, wakes| state.arrive(clock::now(), wakes));
        let next = inner.state.lock().next();
        drop(inner);
        match next {
            None => changed.await,
            Some(at) => {
                // Whether it is time or the schedule has changed: it looks again.
                let _ = tokio::time::timeout_at(at, changed).await;
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.earlier.notify_one();
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("nodes", &self.names())
            .field("connections", &self.connections())
            .finish()
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Network")
    }
}
