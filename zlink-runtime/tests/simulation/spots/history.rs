//! What was asked of Spots and how it ended, and what their handlers did: each event is checked as it happens.
//!
//! A handler's panic would end with its turn, so what is wrong is kept, and told at the end.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use tokio::time::{Duration, Instant};
use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{Rid, SpotRef};

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    GetOrCreate,
    Create,
    Find,
    Close,
    Release,
    Say,
    Look,
    Settle,
    Disband,
    /// These two make their cart where there is none.
    Add,
    Peek,
    View,
    Checkout,
    Drop,
    Greet,
    Lookup,
    Publish,
}

impl Kind {
    /// Whether its end says only that it is on its way.
    pub(crate) const fn is_one_way(self) -> bool {
        matches!(self, Kind::Say | Kind::Add | Kind::Drop | Kind::Greet | Kind::Publish)
    }
}

/// How it ended, as its caller was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Of a request: the number that the handler saw.
    Reply(String),
    Accepted,
    Created(SpotRef, String),
    Existing(SpotRef),
    Rejected(String),
    Found(Option<SpotRef>),
    Did(bool),
    Failed(ErrorKind, Execution, String),
    /// Its caller dropped it.
    Cancelled,
}

impl Outcome {
    pub(crate) const fn is_failure(&self) -> bool {
        matches!(self, Outcome::Failed(..) | Outcome::Cancelled)
    }
}

/// Who asks: a run of a node, and one of those on it that ask one thing after the other; `None` where many ask at once.
pub(crate) type Caller = (Rid, Option<usize>);

/// One operation.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) from: Caller,
    pub(crate) kind: Kind,
    #[allow(dead_code, reason = "failures show it")]
    pub(crate) spot: String,
    pub(crate) begun: Instant,
    pub(crate) timeout: Duration,
    pub(crate) ended: Vec<(Instant, Outcome)>,
    /// The incarnations that its handler, or its factory, began in.
    pub(crate) ran: Vec<Incarnation>,
}

/// One of a Spot: its ID and generation.
pub(crate) type Incarnation = (String, u64);

/// What one incarnation has done.
#[derive(Debug)]
pub(crate) struct Past {
    pub(crate) node: Rid,
    pub(crate) made: Instant,
    /// The operations whose turns began, in that order; those of timers and publishes are not among them.
    pub(crate) turns: Vec<u64>,
    /// Whether a turn has its state now.
    busy: bool,
    /// Whether its end has begun: nothing comes after `on_closing`.
    closing: bool,
}

#[derive(Default)]
struct State {
    asked: BTreeMap<u64, Asked>,
    pasts: BTreeMap<Incarnation, Past>,
    /// The generation that something ran of last, by ID.
    newest: BTreeMap<String, u64>,
    /// What each incarnation has heard.
    heard: BTreeSet<(Incarnation, u64)>,
    /// The last reference that anybody saw, by ID.
    references: BTreeMap<String, SpotRef>,
    lobbies: Vec<String>,
    hosts: BTreeMap<Rid, Host>,
    /// The runs of nodes that have ended.
    over: BTreeSet<Rid>,
    wrong: Vec<String>,
    ticks: usize,
}

/// Everything that happens to the Spots of a scenario.
#[derive(Default)]
pub(crate) struct History(Mutex<State>);

impl History {
    pub(crate) fn begin(&self, from: Caller, kind: Kind, spot: &str, timeout: Duration) -> u64 {
        let asked = &mut self.0.lock().asked;
        let number = asked.len() as u64 + 1;
        let entry = Asked {
            from,
            kind,
            spot: spot.to_owned(),
            begun: Instant::now(),
            timeout,
            ended: Vec::new(),
            ran: Vec::new(),
        };
        asked.insert(number, entry);
        number
    }

    pub(crate) fn end(&self, number: u64, outcome: Outcome) {
        let mut state = self.0.lock();
        if let Outcome::Created(spot, _) | Outcome::Existing(spot) | Outcome::Found(Some(spot)) = &outcome {
            state.references.insert(spot.id.to_string(), spot.clone());
        }
        let asked = state.asked.get_mut(&number).unwrap();
        asked.ended.push((Instant::now(), outcome));
    }

    pub(crate) fn reference(&self, spot: &str) -> Option<SpotRef> {
        self.0.lock().references.get(spot).cloned()
    }

    pub(crate) fn lobbies(&self) -> Vec<String> {
        self.0.lock().lobbies.clone()
    }

    pub(crate) fn lobby(&self, id: String) {
        self.0.lock().lobbies.push(id);
    }

    pub(crate) fn asked(&self) -> BTreeMap<u64, Asked> {
        self.0.lock().asked.clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().asked.len()
    }

    pub(crate) fn ticks(&self) -> usize {
        self.0.lock().ticks
    }

    /// How many incarnations something ran of.
    pub(crate) fn incarnations(&self) -> usize {
        self.0.lock().pasts.len()
    }

    /// Looks at every incarnation.
    pub(crate) fn pasts(&self, mut look: impl FnMut(&Incarnation, &Past)) {
        self.0.lock().pasts.iter().for_each(|(one, past)| look(one, past));
    }

    /// A run of a node has begun.
    pub(crate) fn runs(&self, rid: Rid, host: Host) {
        self.0.lock().hosts.insert(rid, host);
    }

    /// It has ended: nothing of it may run any more.
    pub(crate) fn has_ended(&self, rid: &Rid) {
        let mut state = self.0.lock();
        state.hosts.remove(rid);
        state.over.insert(rid.clone());
    }

    /// What is wrong, as far as it has come.
    pub(crate) fn check(&self) {
        let wrong = &self.0.lock().wrong;
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// A factory makes that incarnation, because of `cause` where one operation has said so.
    pub(crate) fn made(&self, one: &Incarnation, node: &Rid, cause: Option<u64>) {
        let mut state = self.0.lock();
        let past = Past {
            node: node.clone(),
            made: Instant::now(),
            turns: Vec::new(),
            busy: false,
            closing: false,
        };
        if state.pasts.insert(one.clone(), past).is_some() {
            state.wrong.push(format!("I-1: {one:?} was made twice"));
        }
        if let Some(asked) = cause.and_then(|cause| state.asked.get_mut(&cause)) {
            asked.ran.push(one.clone());
        }
    }

    /// Something of an incarnation is polled: by its owner, while nobody else has had the ID since, and with a lease.
    pub(crate) fn polled(&self, one: &Incarnation, node: &Rid) {
        let mut state = self.0.lock();
        let mut wrong = Vec::new();
        let newest = state.newest.entry(one.0.clone()).or_default();
        if *newest > one.1 {
            wrong.push(format!("I-1: {one:?} on {node} runs after generation {newest}"));
        }
        *newest = one.1.max(*newest);
        match state.pasts.get(one) {
            Some(past) if past.node == *node => {}
            other => wrong.push(format!("I-1: {one:?} runs on {node}: {other:?}")),
        }
        if state.over.contains(node) {
            wrong.push(format!("{one:?} runs on {node}, which has ended"));
        }
        state.wrong.extend(wrong);
        let host = state.hosts.get(node).cloned();
        drop(state);
        // While its host starts, nobody has it yet.
        let admits = host.is_none_or(|host| host.status().location.unwrap().admits_owned_work);
        if !admits {
            let text = format!("{one:?} runs on {node}, which is fenced off, at {:?}", Instant::now());
            self.0.lock().wrong.push(text);
        }
    }

    /// A turn has the state of an incarnation from here on.
    pub(crate) fn enter(&self, one: &Incarnation) {
        let mut state = self.0.lock();
        let Some(past) = state.pasts.get_mut(one) else { return };
        let (twice, late) = (std::mem::replace(&mut past.busy, true), past.closing);
        if twice || late {
            let text = format!("I-2: a turn of {one:?} beside another: {twice}, after its end: {late}");
            state.wrong.push(text);
        }
    }

    /// Its end begins, with a turn that is the last.
    pub(crate) fn closes(&self, one: &Incarnation) {
        self.enter(one);
        if let Some(past) = self.0.lock().pasts.get_mut(one) {
            past.closing = true;
        }
    }

    /// It gives it back, or was ended.
    pub(crate) fn leave(&self, one: &Incarnation) {
        if let Some(past) = self.0.lock().pasts.get_mut(one) {
            past.busy = false;
        }
    }

    /// The turn is of an operation.
    pub(crate) fn ran(&self, one: &Incarnation, number: u64) {
        let mut state = self.0.lock();
        match state.asked.get_mut(&number) {
            Some(asked) => asked.ran.push(one.clone()),
            None => state
                .wrong
                .push(format!("{one:?} ran {number}, which nobody asked for")),
        }
        if let Some(past) = state.pasts.get_mut(one) {
            past.turns.push(number);
        }
    }

    /// The turn is of a publish.
    pub(crate) fn heard(&self, one: &Incarnation, number: u64) {
        let mut state = self.0.lock();
        if !state.heard.insert((one.clone(), number)) {
            state.wrong.push(format!("{one:?} heard {number} twice"));
        }
    }

    pub(crate) fn ticked(&self) {
        self.0.lock().ticks += 1;
    }
}
