//! Several hosts in one test: they start, stop, crash and come back on a simulated network, in virtual time.
//!
//! It must not know what they serve or call: a test says that, as an application does.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::channel::Selection;
use crate::clock;
use crate::error::StartError;
use crate::host::{Host, HostBuilder, ShutdownError};
use crate::id::ChannelName;
use crate::location::{BootClock, Faults, MemoryStore, StoreTime};
use crate::random::Random;
use crate::transport::simulated::Network;

type Configure = Arc<dyn Fn(HostBuilder) -> HostBuilder + Send + Sync>;

/// Hosts on one network, each a node with a name. Clones are handles to the same cluster.
///
/// Everything runs in the one thread of the test, and time is virtual: it stands while anything can run, and jumps to
/// the next timer when nothing can. A timeout of a minute takes no time, a test holds on any machine, and the same seed
/// gives the same run, event for event.
///
/// What an application must bring along for that: time from `tokio::time`, no threads of its own, and no random
/// choices but those drawn from the seed. The links are the real ones; only the sockets are simulated.
///
/// # Examples
/// A billing service with two servers, one of which crashes:
/// ```
/// use std::time::Duration;
/// use zlink_generated::billing::{self, BillingHandler, Charge, Receipt};
/// use zlink_runtime::prelude::*;
/// use zlink_runtime::testing::Cluster;
///
/// struct Payments;
///
/// impl BillingHandler for Payments {
///     async fn charge(&self, _: &ChannelContext<'_>, charge: Charge) -> Result<Receipt, HandlerError> {
///         Ok(Receipt { number: format!("R-{}", charge.order) })
///     }
/// }
///
/// # async fn test() -> Result<(), Box<dyn std::error::Error>> {
/// // In a test: `#[tokio::test(start_paused = true)] async fn …`.
/// let cluster = Cluster::new(7);
/// for name in ["one", "two"] {
///     cluster.node(name, move |host| {
///         let server = billing::server(Payments);
///         host.mesh("shop", |mesh| mesh.rid(name).listen(format!("tcp://{name}:1")).serve(server))
///     });
/// }
/// cluster.node("shop", |host| {
///     host.mesh("shop", |mesh| {
///         mesh.listen("tcp://shop:1").connect("tcp://one:1").connect("tcp://two:1").client(billing::BILLING)
///     })
/// });
/// cluster.start_all().await?;
/// cluster.ready(Duration::from_secs(5)).await;
///
/// cluster.kill("one");
/// cluster.advance(Duration::from_secs(1)).await;
/// let charge = Charge { order: "42".into(), ..Charge::default() };
/// let receipt = billing::client(&cluster.host("shop")).charge(charge).await?;
/// assert_eq!(receipt.number, "R-42");
///
/// cluster.start("one").await?;
/// cluster.ready(Duration::from_secs(10)).await;
/// cluster.shutdown().await?;
/// # Ok(())
/// # }
/// # let mut runtime = tokio::runtime::Builder::new_current_thread();
/// # runtime.enable_time().start_paused(true).build().unwrap().block_on(test()).unwrap();
/// ```
///
/// # Panics
/// A method panics where it is given the name of a node that is not there, or not in the state it needs: that is a
/// mistake of the test.
#[derive(Clone)]
pub struct Cluster(Arc<Inner>);

struct Inner {
    seed: u64,
    network: Network,
    random: Random,
    nodes: Mutex<BTreeMap<String, Node>>,
    store: MemoryStore,
    /// What goes wrong with the store, by the node it goes wrong for.
    faults: Mutex<BTreeMap<String, Faults>>,
}

struct Node {
    configure: Configure,
    host: Option<Host>,
}

impl Cluster {
    /// An empty cluster on a network of its own. All that is random follows from `seed`.
    ///
    /// # Panics
    /// Outside a current-thread tokio runtime whose time was paused when it was made: `#[tokio::test(start_paused = true)]`
    /// has one, and so has [`explore`](super::explore).
    #[must_use]
    pub fn new(seed: u64) -> Self {
        assert!(
            Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread,
            "a cluster needs a current-thread runtime: on several threads no run is like another"
        );
        // Paused later, it would keep the fraction of a millisecond that had passed by then, and no two runs the same one.
        assert!(
            is_paused(),
            "a cluster needs virtual time from the start: write #[tokio::test(start_paused = true)]"
        );
        let random = Random::seeded(seed);
        // The system's clock would make each run another one.
        let began = clock::now();
        let time = move || StoreTime::from_millis(0).after(clock::now().saturating_duration_since(began));
        Self(Arc::new(Inner {
            seed,
            network: Network::new(random.bits()),
            random,
            nodes: Mutex::default(),
            store: MemoryStore::with_clock(time),
            faults: Mutex::default(),
        }))
    }

    /// Adds a node, or changes what it is from its next start on. `configure` is called at each start, with a builder
    /// that has its transport: it must leave the transport and the seed as they are.
    ///
    /// Endpoints are as usual. They need not be real: `tcp://name:1` will do.
    pub fn node(&self, name: &str, configure: impl Fn(HostBuilder) -> HostBuilder + Send + Sync + 'static) {
        let configure = Arc::new(configure);
        let mut nodes = self.0.nodes.lock();
        match nodes.get_mut(name) {
            Some(node) => node.configure = configure,
            None => {
                let node = Node { configure, host: None };
                nodes.insert(name.to_owned(), node);
            }
        }
    }

    /// Starts a node that does not run.
    ///
    /// # Errors
    /// As [`HostBuilder::start`].
    #[track_caller]
    pub fn start(&self, name: &str) -> impl Future<Output = Result<Host, StartError>> + use<> {
        let configure = self.with(name, |node| {
            assert!(node.host.is_none(), "node {name:?} runs already");
            node.configure.clone()
        });
        let (cluster, name) = (self.clone(), name.to_owned());
        async move {
            let builder = Host::builder()
                .transport(cluster.0.network.transport(&name))
                .random_seed(cluster.0.random.bits())
                .boot_clock(BootClock::of_tokio());
            let host = configure(builder).start().await?;
            cluster.with(&name, |node| node.host = Some(host.clone()));
            Ok(host)
        }
    }

    /// Starts every node that does not run, in the order of their names.
    ///
    /// # Errors
    /// The first node's that does not start; those after it are not started.
    pub async fn start_all(&self) -> Result<(), StartError> {
        for name in self.names(|node| node.host.is_none()) {
            self.start(&name).await?;
        }
        Ok(())
    }

    /// Stops a node in order, as [`Host::shutdown`] does.
    ///
    /// # Errors
    /// Where accepted work had to be ended by force. The node is stopped all the same.
    #[track_caller]
    pub fn stop(&self, name: &str) -> impl Future<Output = Result<(), ShutdownError>> + use<> {
        let host = self.take(name);
        async move { host.shutdown().await }
    }

    /// Ends a node as the kill of its process does: no drain, no goodbye. Its peers find their connections ended; its
    /// calls under way end, handlers included where they wait. Tasks that a test has spawned live on.
    #[track_caller]
    pub fn kill(&self, name: &str) {
        let host = self.take(name);
        self.0.network.kill(name);
        host.kill();
    }

    /// Kills a node if it runs, and starts it again: the same configuration, another run.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    #[track_caller]
    pub fn restart(&self, name: &str) -> impl Future<Output = Result<Host, StartError>> + use<> {
        if self.is_running(name) {
            self.kill(name);
        }
        self.start(name)
    }

    /// The host of a node that runs.
    #[must_use]
    #[track_caller]
    pub fn host(&self, name: &str) -> Host {
        self.with(name, |node| node.host.clone().ok_or(()))
            .unwrap_or_else(|()| stopped(name))
    }

    /// Whether a node runs.
    #[must_use]
    #[track_caller]
    pub fn is_running(&self, name: &str) -> bool {
        self.with(name, |node| node.host.is_some())
    }

    /// The names of all nodes, or of those that run.
    #[must_use]
    pub fn running(&self) -> Vec<String> {
        self.names(|node| node.host.is_some())
    }

    /// The seed that all of this follows from.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.0.seed
    }

    /// The network: where connections are delayed, cut, broken and healed.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.0.network
    }

    /// The way of the node `name` to the one Location Store of this cluster, for its `location_store`. What goes wrong
    /// with it is what [`Cluster::store_faults`] of that node says. Any other name is the way of somebody who looks on.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use zlink_runtime::LocationState;
    /// use zlink_runtime::testing::Cluster;
    ///
    /// # async fn test() -> Result<(), Box<dyn std::error::Error>> {
    /// let cluster = Cluster::new(7);
    /// let store = cluster.store("one");
    /// cluster.node("one", move |host| {
    ///     host.location_store(store.clone()).mesh("shop", |mesh| mesh.listen("tcp://one:1"))
    /// });
    /// cluster.start_all().await?;
    /// cluster.store_faults("one").cut();
    /// cluster.advance(Duration::from_secs(5)).await;
    /// let location = cluster.host("one").status().location;
    /// assert_eq!(location.map(|store| store.state), Some(LocationState::Degraded));
    /// # Ok(())
    /// # }
    /// # let mut runtime = tokio::runtime::Builder::new_current_thread();
    /// # runtime.enable_time().start_paused(true).build().unwrap().block_on(test()).unwrap();
    /// ```
    #[must_use]
    pub fn store(&self, name: &str) -> MemoryStore {
        self.0.store.with_faults(self.store_faults(name))
    }

    /// What goes wrong between the node `name` and the store: late, lost or missing answers, errors, stale reads, or
    /// nothing at all, as it is at first. It outlives the runs of the node.
    #[must_use]
    pub fn store_faults(&self, name: &str) -> Faults {
        let mut faults = self.0.faults.lock();
        let new = || Faults::new(self.0.random.bits());
        faults.entry(name.to_owned()).or_insert_with(new).clone()
    }

    /// Lets that much virtual time pass, with all that happens in it.
    pub async fn advance(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Lets time pass until `holds`, for at most `within`. It looks every millisecond at first, then more seldom: after
    /// at most a twentieth more of the time that has passed, or 100 ms.
    ///
    /// # Panics
    /// Where that time is over: with what was expected, and how the cluster stands.
    #[track_caller]
    pub fn until<F: FnMut() -> bool>(
        &self,
        what: &str,
        within: Duration,
        mut holds: F,
    ) -> impl Future<Output = ()> + use<F> {
        let (cluster, what, at) = (self.clone(), what.to_owned(), std::panic::Location::caller());
        async move {
            let begun = clock::now();
            let deadline = begun + within;
            while !holds() {
                assert!(
                    clock::now() < deadline,
                    "{at}: not within {within:?}: {what}\n{}",
                    cluster.report()
                );
                let pause = begun.elapsed() / 20;
                tokio::time::sleep(pause.clamp(Duration::from_millis(1), Duration::from_millis(100))).await;
            }
        }
    }

    /// Waits until every endpoint that a running node dials has led to a link, and both ends of it can use it.
    ///
    /// # Panics
    /// Where that takes longer than `within`.
    #[track_caller]
    pub fn ready(&self, within: Duration) -> impl Future<Output = ()> + use<> {
        let cluster = self.clone();
        self.until("every node linked with all it dials", within, move || {
            let hosts = cluster.hosts();
            if !hosts.iter().all(|(_, host)| host.has_linked()) {
                return false;
            }
            let nodes: Vec<_> = hosts.iter().flat_map(|(_, host)| host.linked()).collect();
            nodes.iter().all(|(mesh, rid, peers)| {
                let others = nodes
                    .iter()
                    .filter(|(other, node, _)| other == mesh && peers.contains(node));
                others.into_iter().all(|(_, _, back)| back.contains(rid))
            })
        })
    }

    /// Waits until nothing is under way: no running node holds a permit or waits for a reply.
    ///
    /// # Panics
    /// Where that takes longer than `within`.
    #[track_caller]
    pub fn at_rest(&self, within: Duration) -> impl Future<Output = ()> + use<> {
        let cluster = self.clone();
        self.until("no permit in use and no reply awaited", within, move || {
            cluster.hosts().iter().all(|(_, host)| {
                let status = host.status();
                status.jobs.in_use() == 0 && status.waiting_requests == 0
            })
        })
    }

    /// How every node stands, and the end of what happened on the network, for people to read.
    #[must_use]
    pub fn report(&self) -> String {
        let mut text = String::new();
        for (name, host) in self.hosts() {
            let status = host.status();
            let _ = writeln!(
                text,
                "{name}: {:?}, {} permits in use, {} replies awaited",
                status.phase,
                status.jobs.in_use(),
                status.waiting_requests
            );
            for topology in host.topologies() {
                let _ = writeln!(text, "  {} {:?}", topology.name, topology.phase);
                for peer in topology.peers {
                    let rid = peer.rid.map_or_else(|| "(unknown)".to_owned(), |rid| rid.to_string());
                    let _ = writeln!(text, "    {rid} {:?} {}", peer.state, peer.failure.unwrap_or_default());
                }
            }
        }
        let trace = self.0.network.trace();
        let _ = writeln!(text, "numbers: {:?}", self.0.network.names());
        for event in trace.iter().skip(trace.len().saturating_sub(30)) {
            let _ = writeln!(text, "{event}");
        }
        text
    }

    /// Stops every running node in order, one after the other.
    ///
    /// # Errors
    /// The first node's whose accepted work had to be ended by force; all are stopped.
    pub async fn shutdown(&self) -> Result<(), ShutdownError> {
        let mut result = Ok(());
        for name in self.running() {
            result = result.and(self.stop(&name).await);
        }
        result
    }

    fn hosts(&self) -> Vec<(String, Host)> {
        let nodes = self.0.nodes.lock();
        let running = nodes
            .iter()
            .filter_map(|(name, node)| Some((name.clone(), node.host.clone()?)));
        running.collect()
    }

    fn names(&self, which: impl Fn(&Node) -> bool) -> Vec<String> {
        let nodes = self.0.nodes.lock();
        let chosen = nodes.iter().filter(|(_, node)| which(node));
        chosen.map(|(name, _)| name.clone()).collect()
    }

    #[track_caller]
    fn take(&self, name: &str) -> Host {
        self.with(name, |node| node.host.take().ok_or(()))
            .unwrap_or_else(|()| stopped(name))
    }

    #[track_caller]
    #[allow(
        clippy::panic,
        reason = "a test that misnames a node must not go on as if it had none"
    )]
    fn with<T>(&self, name: &str, with: impl FnOnce(&mut Node) -> T) -> T {
        let mut nodes = self.0.nodes.lock();
        match nodes.get_mut(name) {
            Some(node) => with(node),
            None => panic!("the cluster has no node {name:?}"),
        }
    }
}

/// What a host's selection for a channel was given and what it picked, in order: the first 100,000 steps. Empty where the
/// host is no client of the channel.
#[must_use]
pub fn selections(host: &Host, channel: &ChannelName) -> Vec<Selection> {
    host.selections(channel)
}

#[track_caller]
#[allow(clippy::panic, reason = "a test must not go on with a host that is not there")]
fn stopped(name: &str) -> Host {
    panic!("node {name:?} does not run")
}

/// Whether tokio's clock stands while real time passes.
fn is_paused() -> bool {
    let (virtual_start, start) = (clock::now(), std::time::Instant::now());
    while start.elapsed() < Duration::from_micros(1) {
        std::hint::spin_loop();
    }
    clock::now() == virtual_start
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.0.nodes.lock();
        f.debug_map()
            .entries(nodes.iter().map(|(name, node)| (name, &node.host)))
            .finish()
    }
}
