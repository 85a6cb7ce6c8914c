//! Storms over the Location Store: nodes that find each other through a store which is late, forgets to answer, fails,
//! shows what is old, and is gone for longer than a lease holds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use zlink_generated::contract::{Note, STOCK, StockHandler, stock_client, stock_server};
use zlink_runtime::HostPhase;
use zlink_runtime::error::Execution;
use zlink_runtime::location::{Fault, Faults, LocationStore, MemoryStore, Operation, Scan, Scanned};
use zlink_runtime::prelude::*;
use zlink_runtime::testing::{Cluster, explore};

use crate::dice::Dice;

const NODES: [&str; 4] = ["n0", "n1", "n2", "n3"];
/// Those that serve; the others call.
const SERVERS: usize = 2;
/// The longest pause between two attempts to dial, a poll, and a renewal that had been given up.
const BACK: Duration = Duration::from_secs(20);
/// The latest that a write is applied after it was asked for.
const LATE: Duration = Duration::from_secs(6);
/// Until a host that ended without a word is counted out: twice, since a late write of its own may come in between.
const SWEPT: Duration = Duration::from_secs(60);

/// Which requests ran, and how often.
#[derive(Clone, Default)]
struct Runs(Arc<Mutex<BTreeMap<u64, usize>>>);

impl StockHandler for Runs {
    async fn ask(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        *self.0.lock().entry(request.number).or_default() += 1;
        Ok(request)
    }

    async fn tell(&self, _: &ChannelContext<'_>, _: Note) -> Result<(), HandlerError> {
        Ok(())
    }
}

/// Asks once, and checks that what the caller is told is what was done.
async fn ask(host: Host, runs: Runs, number: u64) -> bool {
    let note = Note {
        number,
        ..Note::default()
    };
    let reply = stock_client(&host).ask(note).timeout(Duration::from_secs(1)).await;
    // What was under way when its caller gave up may run yet, but not twice.
    let ran = || runs.0.lock().get(&number).copied().unwrap_or(0);
    match &reply {
        Ok(reply) => assert_eq!((reply.number, ran()), (number, 1)),
        Err(CallError::Failed(error)) if error.execution() == Execution::NotExecuted => assert_eq!(ran(), 0, "{error}"),
        Err(_) => assert!(ran() <= 1, "{number}: {reply:?}"),
    }
    reply.is_ok()
}

fn trouble(faults: &Faults, dice: &Dice) {
    let second = Duration::from_secs(1);
    let chance = u32::try_from(100 + dice.below(500)).unwrap();
    match dice.below(8) {
        0 => faults.cut(),
        1 => faults.every(Operation::Write, Fault::LateWrite(LATE)),
        2 => faults.sometimes(Operation::Write, Fault::LostAnswer, chance),
        3 => faults.sometimes(Operation::Write, Fault::Delay(5 * second), chance),
        4 => faults.sometimes(Operation::Write, Fault::DelayAnswer(5 * second), chance),
        5 => {
            faults.every(Operation::Read, Fault::Stale);
            faults.every(Operation::Scan, Fault::Stale);
        }
        6 => {
            for operation in [Operation::Read, Operation::Scan, Operation::Write] {
                faults.sometimes(operation, Fault::Error, chance);
            }
        }
        _ => faults.heal(),
    }
}

/// Everything in the store that hosts keep there while they live.
async fn records(store: &MemoryStore) -> Vec<String> {
    let mut records = Vec::new();
    for prefix in ["lease/", "node/"] {
        let Scanned::Page(page) = store.scan(&Scan::new(prefix, 100).unwrap()).await.unwrap() else {
            panic!("a first page is never expired");
        };
        records.extend(page.entries.iter().map(|(key, _)| key.as_str().to_owned()));
    }
    records
}

async fn until_records(store: &MemoryStore, count: usize) {
    let begun = Instant::now();
    while records(store).await.len() != count {
        assert!(
            begun.elapsed() < SWEPT,
            "not {count} records: {:?}",
            records(store).await
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

fn add_nodes(cluster: &Cluster, runs: &Runs) {
    for (at, name) in NODES.into_iter().enumerate() {
        let (store, runs) = (cluster.store(name), runs.clone());
        cluster.node(name, move |host| {
            host.location_store(store.clone()).mesh("shop", |mesh| {
                let mesh = mesh.rid_prefix(name).listen(format!("tcp://{name}:1"));
                match at < SERVERS {
                    true => mesh.serve(stock_server(runs.clone())),
                    false => mesh.client(STOCK),
                }
            })
        });
    }
}

/// Starts what does not run. Where the store fails, that is for later.
async fn start_all(cluster: &Cluster) -> bool {
    let mut all = true;
    for name in NODES {
        all &= cluster.is_running(name) || cluster.start(name).await.is_ok();
    }
    all
}

async fn weather(cluster: Cluster, answered: &Mutex<(usize, usize)>) {
    let (dice, runs) = (Dice::new(cluster.seed()), Runs::default());
    let looking_on = cluster.store("nobody");
    add_nodes(&cluster, &runs);
    cluster.start_all().await.unwrap();
    let mut asked = Vec::new();
    for _ in 0..6 {
        let name = dice.one_of(&NODES);
        match dice.below(6) {
            0 if cluster.is_running(name) => cluster.kill(name),
            1 if cluster.is_running(name) => drop(cluster.stop(name).await),
            2 if dice.percent(30) => NODES.iter().for_each(|name| cluster.store_faults(name).cut()),
            _ => trouble(&cluster.store_faults(name), &dice),
        }
        // Now and then for longer than a lease holds and is missed.
        let span = if dice.percent(15) { 45_000 } else { 4_000 };
        cluster.advance(dice.millis(200, span)).await;
        start_all(&cluster).await;
        for name in &NODES[SERVERS..] {
            if cluster.is_running(name) {
                let number = asked.len() as u64;
                asked.push(tokio::spawn(ask(cluster.host(name), runs.clone(), number)));
            }
        }
    }

    NODES.iter().for_each(|name| cluster.store_faults(name).heal());
    assert!(start_all(&cluster).await, "a store that is well lets everybody start");
    let servers: Vec<_> = NODES[..SERVERS]
        .iter()
        .map(|name| cluster.host(name).mesh("shop").unwrap().rid())
        .collect();
    cluster
        // A start that was given up may land late, and stands at the endpoint of the one that followed until it is counted out.
        .until("every caller to have the servers that run, and no other", SWEPT, || {
            NODES[SERVERS..].iter().all(|name| {
                let status = cluster.host(name).mesh("shop").unwrap().status();
                let targets: Vec<_> = status.channels[0].1.iter().map(|target| target.rid.clone()).collect();
                targets.len() == SERVERS && servers.iter().all(|server| targets.contains(server))
            })
        })
        .await;
    cluster
        .until("owned work to be admitted again", BACK, || {
            NODES.iter().all(|name| {
                let status = cluster.host(name).status();
                assert_eq!(status.phase, HostPhase::Serving, "nobody took {name}'s place");
                status.location.unwrap().admits_owned_work
            })
        })
        .await;
    let (mut replies, count) = (0, asked.len());
    for reply in asked {
        replies += usize::from(reply.await.unwrap());
    }
    for (number, name) in (count as u64..).zip(&NODES[SERVERS..]) {
        assert!(ask(cluster.host(name), runs.clone(), number).await, "{name}");
    }
    // A first write that was thought lost may come after the last, and make again what that removed, or what was never told to be
    // there: then it has to expire.
    cluster.advance(LATE).await;
    // A lease and a node each, and nothing of those that were.
    until_records(&looking_on, 2 * NODES.len()).await;
    cluster.shutdown().await.unwrap();
    assert_eq!(records(&looking_on).await, [""; 0]);
    let mut answered = answered.lock();
    *answered = (answered.0 + replies, answered.1 + count);
}

/// REQ: LS-066, LS-100, LS-101, LS-105, LS-057, LS-022
#[test]
fn a_hundred_storms_over_the_store() {
    let answered = Mutex::new((0, 0));
    explore(100, async |cluster| weather(cluster, &answered).await);
    let (replies, calls) = answered.into_inner();
    println!("{replies} of {calls} calls were answered during the storms");
    assert!(replies * 2 > calls, "links outlive most troubles of the store");
}

/// Faults of the store are drawn from the seed like everything else.
#[test]
fn a_storm_over_the_store_repeats_itself() {
    let runs = [(); 2].map(|()| {
        let fingerprints = Mutex::new(BTreeMap::new());
        explore(5, async |cluster| {
            weather(cluster.clone(), &Mutex::default()).await;
            let print = cluster.network().fingerprint();
            fingerprints.lock().insert(cluster.seed(), print);
        });
        fingerprints.into_inner()
    });
    assert_eq!(runs[0], runs[1]);
}
