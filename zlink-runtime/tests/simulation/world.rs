//! The cluster of a scenario: five nodes, each linked with every other, that serve and call each other in every way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use zlink_generated::contract::{
    self, Brief, DeskHandler, Note, ORDERS, OrdersHandler, STOCK, StockHandler, desk_server, orders_server,
    stock_server,
};
use zlink_runtime::error::HandlerError;
use zlink_runtime::id::MeshName;
use zlink_runtime::prelude::*;
use zlink_runtime::testing::Cluster;

use crate::dice::Dice;
use crate::work::Ledger;

pub(crate) const SHOP: MeshName = MeshName::from_static("shop");
pub(crate) const NODES: [&str; 5] = ["n0", "n1", "n2", "n3", "n4"];
/// Those that serve `stock`; the others are its clients.
pub(crate) const STOCKISTS: usize = 2;
const WEIGHTS: [u32; 6] = [100, 300, 50, 7, 100, 1000];

pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) dice: Dice,
    pub(crate) ledger: Arc<Ledger>,
    /// Who serves `orders`, and with which weight at a start.
    at_start: BTreeMap<&'static str, u32>,
    /// The weights as they are now.
    pub(crate) weights: Mutex<BTreeMap<&'static str, u32>>,
    /// Every run of a node that there was.
    pub(crate) runs: Mutex<Vec<(&'static str, Host)>>,
}

impl World {
    /// Builds the cluster of a seed, and starts it.
    pub(crate) async fn start(cluster: Cluster, seed: u64) -> Arc<Self> {
        let dice = Dice::new(seed);
        let ledger = Arc::new(Ledger::default());
        let mut weights = BTreeMap::new();
        let mut dials = vec![Vec::new(); NODES.len()];
        for one in 0..NODES.len() {
            if one < 2 || dice.percent(60) {
                weights.insert(NODES[one], dice.one_of(&WEIGHTS));
            }
            for other in one + 1..NODES.len() {
                let way = dice.below(3);
                if way != 1 {
                    dials[one].push(NODES[other]);
                }
                if way != 0 {
                    dials[other].push(NODES[one]);
                }
            }
        }
        let jobs = 4 + u32::try_from(dice.below(12)).unwrap();
        for (at, name) in NODES.into_iter().enumerate() {
            let (ledger, dice, dials) = (ledger.clone(), dice.clone(), dials[at].clone());
            let weight = weights.get(name).copied();
            cluster.node(name, move |host| {
                let worker = Worker {
                    name,
                    ledger: ledger.clone(),
                    dice: dice.clone(),
                };
                let host = host.max_queued_jobs(jobs).drain_timeout(Duration::from_secs(3));
                let host = host.mesh("shop", |mesh| {
                    let mesh = mesh.rid(name).listen(format!("tcp://{name}:1")).link_budget(128 * 1024);
                    let mesh = mesh.serve_node(desk_server(worker.clone()));
                    let mesh = dials
                        .iter()
                        .fold(mesh, |mesh, peer| mesh.connect(format!("tcp://{peer}:1")));
                    match weight {
                        Some(weight) => mesh.serve(orders_server(worker.clone()).weight(weight)),
                        None => mesh.client(ORDERS),
                    }
                });
                host.client_server(|channel| {
                    if at < STOCKISTS {
                        channel
                            .serve(stock_server(worker.clone()))
                            .listen(format!("tcp://{name}:2"))
                    } else {
                        let servers = NODES[..STOCKISTS].iter();
                        servers.fold(channel.client(STOCK), |channel, server| {
                            channel.connect(format!("tcp://{server}:2"))
                        })
                    }
                })
            });
        }
        let world = Arc::new(Self {
            cluster,
            dice,
            ledger,
            weights: Mutex::new(weights.clone()),
            at_start: weights,
            runs: Mutex::default(),
        });
        for name in NODES {
            world.start_node(name).await;
        }
        world
    }

    /// Starts a node that does not run.
    pub(crate) async fn start_node(&self, name: &'static str) {
        let host = self.cluster.start(name).await.unwrap();
        if let Some(weight) = self.at_start.get(name) {
            self.weights.lock().insert(name, *weight);
        }
        self.runs.lock().push((name, host));
    }

    /// The hosts that run, by name.
    pub(crate) fn hosts(&self) -> Vec<(&'static str, Host)> {
        let running = NODES.into_iter().filter(|name| self.cluster.is_running(name));
        running.map(|name| (name, self.cluster.host(name))).collect()
    }

    pub(crate) fn serves(&self, name: &str) -> bool {
        self.at_start.contains_key(name)
    }
}

/// Does every service of the cluster: notes that it ran, takes its time, and says who it is.
#[derive(Clone)]
struct Worker {
    name: &'static str,
    ledger: Arc<Ledger>,
    dice: Dice,
}

impl Worker {
    async fn run(&self, note: Note) -> Result<Note, HandlerError> {
        self.ledger.ran(note.number, self.name);
        match self.dice.below(20) {
            0 => tokio::time::sleep(self.dice.millis(1, 400)).await,
            1..=6 => tokio::time::sleep(self.dice.millis(1, 20)).await,
            _ => {}
        }
        Ok(Note {
            text: self.name.into(),
            number: note.number,
            body: if self.dice.percent(3) {
                vec![7; 40_000]
            } else {
                Vec::new()
            },
        })
    }
}

impl OrdersHandler for Worker {
    async fn ask(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        self.run(request).await
    }
    async fn hurry(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        self.run(request).await
    }
    async fn brief(&self, _: &ChannelContext<'_>, request: Brief) -> Result<Brief, HandlerError> {
        Ok(request)
    }
    async fn tell(&self, _: &ChannelContext<'_>, message: Note) -> Result<(), HandlerError> {
        self.run(message).await.map(drop)
    }
}

impl StockHandler for Worker {
    async fn ask(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        self.run(request).await
    }
    async fn tell(&self, _: &ChannelContext<'_>, message: Note) -> Result<(), HandlerError> {
        self.run(message).await.map(drop)
    }
}

impl DeskHandler for Worker {
    async fn ask(&self, _: &NodeContext<'_>, request: contract::Note) -> Result<Note, HandlerError> {
        self.run(request).await
    }
    async fn tell(&self, _: &NodeContext<'_>, message: Note) -> Result<(), HandlerError> {
        self.run(message).await.map(drop)
    }
}
