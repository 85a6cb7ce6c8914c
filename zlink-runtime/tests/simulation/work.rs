//! What the nodes of a scenario ask of each other, and the ledger of how each operation ended and who ran it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use zlink_generated::contract::{Note, desk_client, orders_client, stock_client};
use zlink_runtime::error::{CallError, ErrorKind, Execution};
use zlink_runtime::prelude::*;

use crate::world::{NODES, SHOP, STOCKISTS, World};

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Orders,
    Stock,
    Desk(&'static str),
    TellOrders,
    TellDesk(&'static str),
}

impl Kind {
    pub(crate) const fn is_request(self) -> bool {
        matches!(self, Kind::Orders | Kind::Stock | Kind::Desk(_))
    }
}

/// How it ended, as its caller was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A reply, with what it says of the request's number and of who ran it.
    Reply(u64, String),
    /// A one-way was accepted.
    Accepted,
    Failed(ErrorKind, Execution, String),
    /// Its caller dropped it.
    Cancelled,
}

/// One operation.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    #[allow(dead_code, reason = "failures show it")]
    pub(crate) from: &'static str,
    pub(crate) kind: Kind,
    pub(crate) begun: Instant,
    pub(crate) timeout: Duration,
    pub(crate) ended: Vec<(Instant, Outcome)>,
    /// At which nodes its handler ran.
    pub(crate) ran: Vec<&'static str>,
}

/// Every operation of a scenario, by its number.
#[derive(Default)]
pub(crate) struct Ledger(Mutex<BTreeMap<u64, Entry>>);

impl Ledger {
    fn begin(&self, from: &'static str, kind: Kind, timeout: Duration) -> u64 {
        let mut entries = self.0.lock();
        let number = entries.len() as u64 + 1;
        let entry = Entry {
            from,
            kind,
            begun: Instant::now(),
            timeout,
            ended: Vec::new(),
            ran: Vec::new(),
        };
        entries.insert(number, entry);
        number
    }

    fn end(&self, number: u64, outcome: Outcome) {
        self.0
            .lock()
            .get_mut(&number)
            .unwrap()
            .ended
            .push((Instant::now(), outcome));
    }

    pub(crate) fn ran(&self, number: u64, at: &'static str) {
        self.0
            .lock()
            .get_mut(&number)
            .expect("a handler runs what somebody asked")
            .ran
            .push(at);
    }

    pub(crate) fn entries(&self) -> Vec<(u64, Entry)> {
        self.0
            .lock()
            .iter()
            .map(|(number, entry)| (*number, entry.clone()))
            .collect()
    }
}

/// Runs one operation to its end.
pub(crate) async fn operate(world: &World, from: &'static str, host: &Host, kind: Kind, timeout: Duration) -> Outcome {
    operate_for(world, from, host, kind, timeout, None).await
}

/// The same, dropped after `patience` where there is one.
async fn operate_for(
    world: &World,
    from: &'static str,
    host: &Host,
    kind: Kind,
    timeout: Duration,
    patience: Option<Duration>,
) -> Outcome {
    let number = world.ledger.begin(from, kind, timeout);
    let note = Note {
        text: String::new(),
        number,
        body: if world.dice.percent(4) {
            vec![1; 30_000]
        } else {
            Vec::new()
        },
    };
    let reply = |reply: Result<Note, CallError>| reply.map(|note| Outcome::Reply(note.number, note.text));
    let accepted = |sent: Result<(), CallError>| sent.map(|()| Outcome::Accepted);
    let call = async {
        let ended = match kind {
            Kind::Orders => reply(orders_client(host).ask(note).timeout(timeout).await),
            Kind::Stock => reply(stock_client(host).ask(note).timeout(timeout).await),
            Kind::Desk(to) => reply(desk_client(host, &SHOP, rid(to)).ask(note).timeout(timeout).await),
            Kind::TellOrders => accepted(orders_client(host).tell(note).await),
            Kind::TellDesk(to) => accepted(desk_client(host, &SHOP, rid(to)).tell(note).await),
        };
        match ended {
            Ok(outcome) => outcome,
            Err(CallError::Failed(error)) => {
                Outcome::Failed(error.kind(), error.execution(), error.message().to_owned())
            }
            Err(error) => panic!("{kind:?} was made wrongly: {error}"),
        }
    };
    let outcome = match patience {
        None => call.await,
        Some(patience) => tokio::time::timeout(patience, call).await.unwrap_or(Outcome::Cancelled),
    };
    world
        .cluster
        .network()
        .note(format!("{from} {number} {kind:?}: {outcome:?}"));
    world.ledger.end(number, outcome.clone());
    outcome
}

pub(crate) fn rid(name: &str) -> Rid {
    Rid::new(name.as_bytes()).unwrap()
}

/// One driver per node, until it is told to stop.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    slow: Arc<AtomicBool>,
    drivers: Vec<JoinHandle<Vec<JoinHandle<Outcome>>>>,
}

impl Load {
    pub(crate) fn start(world: &Arc<World>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let slow = Arc::new(AtomicBool::new(false));
        let drive = |at| tokio::spawn(drive(world.clone(), at, stop.clone(), slow.clone()));
        let drivers = (0..NODES.len()).map(drive);
        Self {
            drivers: drivers.collect(),
            stop,
            slow,
        }
    }

    /// From here on much less is asked.
    pub(crate) fn slow_down(&self) {
        self.slow.store(true, Ordering::Relaxed);
    }

    /// Begins nothing more, and waits until all that was begun has ended. Whatever never ends hangs here, and is found.
    pub(crate) async fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for driver in self.drivers {
            for operation in driver.await.unwrap() {
                operation.await.unwrap();
            }
        }
    }
}

async fn drive(world: Arc<World>, at: usize, stop: Arc<AtomicBool>, slow: Arc<AtomicBool>) -> Vec<JoinHandle<Outcome>> {
    let (from, dice) = (NODES[at], world.dice.clone());
    let mut begun = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let pause = if slow.load(Ordering::Relaxed) { 4_000 } else { 180 };
        tokio::time::sleep(dice.millis(5, pause)).await;
        if !world.cluster.is_running(from) {
            continue;
        }
        let host = world.cluster.host(from);
        // Sometimes many at once: then permits and budgets are short.
        let count = if dice.percent(4) { 30 } else { 1 };
        let to = NODES[(at + 1 + dice.below(NODES.len() - 1)) % NODES.len()];
        let kind = match dice.below(10) {
            0..=3 => Kind::Orders,
            4 | 5 => Kind::Desk(to),
            6 if at >= STOCKISTS => Kind::Stock,
            6..=8 => Kind::TellOrders,
            _ => Kind::TellDesk(to),
        };
        for _ in 0..count {
            let (world, host) = (world.clone(), host.clone());
            let timeout = dice.millis(30, 2_000);
            let patience = dice.percent(8).then(|| dice.millis(1, 60));
            begun.push(tokio::spawn(async move {
                operate_for(&world, from, &host, kind, timeout, patience).await
            }));
        }
    }
    begun
}
