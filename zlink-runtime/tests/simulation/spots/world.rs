//! Five nodes that have Spots, find each other through the store, and may lose their way to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use zlink_generated::arena::{ROOM, cart_spot, lobby_spot, room_spot};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::Rid;
use zlink_runtime::testing::Cluster;

use super::history::History;
use super::objects::{Cart, Lobby, Room, Shared};
use crate::dice::Dice;
use crate::world::NODES;

const NEWS: ChannelName = ChannelName::from_static("room-events");

/// How rough a scenario is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Climate {
    /// The store is late, forgets to answer, and shows what is old; everything else is well, and nothing ends.
    Mild,
    Rough,
}

pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) climate: Climate,
    pub(crate) dice: Dice,
    pub(crate) history: Arc<History>,
    /// How many rooms, and how many carts, are asked for by name.
    pub(crate) rooms: usize,
    pub(crate) carts: usize,
    /// Every run of a node that there was.
    pub(crate) runs: Mutex<Vec<(&'static str, Host)>>,
    rids: Mutex<BTreeMap<&'static str, Rid>>,
}

impl World {
    /// Builds the cluster of a seed, and starts it.
    pub(crate) async fn start(cluster: Cluster) -> Arc<Self> {
        let dice = Dice::new(cluster.seed());
        let climate = if cluster.seed().is_multiple_of(5) {
            Climate::Mild
        } else {
            Climate::Rough
        };
        let history = Arc::new(History::default());
        let rooms = 1 + dice.below(3);
        let shared = Shared {
            history: history.clone(),
            dice: dice.clone(),
            network: cluster.network().clone(),
            failing: if climate == Climate::Mild { 0 } else { 4 },
            rooms,
        };
        // What a loser of a race sends on waits 5 s for a full winner, and is lost then: in a mild climate nobody is full.
        let jobs = if climate == Climate::Mild {
            1_000
        } else {
            6 + dice.below(20)
        };
        let jobs = u32::try_from(jobs).unwrap();
        let capacity = if dice.percent(20) { 2 } else { 0 };
        let idle = (climate == Climate::Rough && dice.percent(40)).then(|| dice.millis(300, 9_000));
        for name in NODES {
            let (store, shared) = (cluster.store(name), shared.clone());
            cluster.node(name, move |host| {
                let host = host.max_queued_jobs(jobs).drain_timeout(Duration::from_secs(3));
                let host = host.location_store(store.clone()).shared(shared.clone());
                host.mesh("arena", |mesh| {
                    let mesh = mesh.rid_prefix(name).listen(format!("tcp://{name}:1"));
                    mesh.take_part(NEWS).object_server(|objects| {
                        let objects = objects.entry(lobby_spot::<Lobby>()).spot(room_spot::<Room>());
                        let objects = objects.spot(cart_spot::<Cart>()).capacity(ROOM, capacity);
                        match idle {
                            Some(idle) => objects.instance_idle_timeout(idle),
                            None => objects,
                        }
                    })
                })
            });
        }
        let carts = 1 + dice.below(4);
        let world = Arc::new(Self {
            cluster,
            climate,
            dice,
            history,
            rooms,
            carts,
            runs: Mutex::default(),
            rids: Mutex::default(),
        });
        for name in NODES {
            world.start_node(name).await;
        }
        world.cluster.advance(Duration::from_secs(3)).await;
        world
    }

    /// Starts a node that does not run. While the store fails, that is tried again.
    pub(crate) async fn start_node(&self, name: &'static str) {
        let host = loop {
            match self.cluster.start(name).await {
                Ok(host) => break host,
                Err(_) => self.cluster.advance(self.dice.millis(100, 2_000)).await,
            }
        };
        let rid = host.mesh("arena").unwrap().rid();
        self.rids.lock().insert(name, rid.clone());
        self.history.runs(rid, host.clone());
        self.runs.lock().push((name, host));
    }

    /// Which run of a node there is, or was last.
    pub(crate) fn rid(&self, name: &str) -> Rid {
        self.rids.lock()[name].clone()
    }

    pub(crate) fn kill(&self, name: &'static str) {
        self.cluster.kill(name);
        self.history.has_ended(&self.rid(name));
    }

    /// Stops a node in order. From here on it does not run.
    pub(crate) fn stop(&self, name: &'static str) -> impl Future<Output = ()> + use<> {
        let (rid, stopping, history) = (self.rid(name), self.cluster.stop(name), self.history.clone());
        async move {
            // Work that does not end within its drain time is ended by force; that is no fault here.
            let _ = stopping.await;
            history.has_ended(&rid);
        }
    }

    pub(crate) fn running(&self) -> Vec<&'static str> {
        let all = NODES.into_iter();
        all.filter(|name| self.cluster.is_running(name)).collect()
    }
}
