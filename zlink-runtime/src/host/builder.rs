//! What a host is told before it starts. Nothing is checked here: start reports every mistake at once.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::channel::{AnyFilter, Filter};
use crate::error::StartError;
use crate::limit::{DRAIN_TIME, REQUEST_TIMEOUT, ROUTE_CACHE_AGE};
use crate::location::{BlobSource, BootClock, LocationTiming, StoreSource};
use crate::random::Random;
use crate::transport::{LinkConfig, LinkProfile, LinkTransport, Transport};

use super::location::LocationOptions;
use super::{ClientServerBuilder, FanoutBuilder, Host, MeshBuilder, start};

/// How many jobs a host lets wait, chosen by what it is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobProfile {
    /// 1,024.
    Compact,
    /// 2,048.
    LowLatency,
    /// 4,096.
    #[default]
    Balanced,
    /// 16,384.
    Throughput,
}

impl JobProfile {
    pub(super) const fn jobs(self) -> u32 {
        match self {
            JobProfile::Compact => 1_024,
            JobProfile::LowLatency => 2_048,
            JobProfile::Balanced => 4_096,
            JobProfile::Throughput => 16_384,
        }
    }
}

/// Collects the registrations of a host.
#[must_use = "a host does nothing until it is started"]
pub struct HostBuilder {
    pub(super) meshes: Vec<MeshBuilder>,
    pub(super) channels: Vec<ClientServerBuilder>,
    pub(super) fanouts: Vec<FanoutBuilder>,
    pub(super) filters: Vec<Arc<dyn AnyFilter>>,
    pub(super) max_queued_jobs: u32,
    /// Where the number was chosen by name.
    pub(super) job_profile: Option<JobProfile>,
    pub(super) link_profile: LinkProfile,
    pub(super) pause_percent: u8,
    pub(super) resume_percent: u8,
    pub(super) request_timeout: Duration,
    pub(super) send_timeout: Option<Duration>,
    pub(super) drain_timeout: Duration,
    pub(super) workers: Option<usize>,
    pub(super) watchdog: Option<Duration>,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) location: LocationOptions,
    pub(super) random: Random,
    pub(super) shared: Vec<Box<dyn Any + Send + Sync>>,
    pub(super) route_cache_max_age: Duration,
}

impl Default for HostBuilder {
    fn default() -> Self {
        Self {
            meshes: Vec::new(),
            channels: Vec::new(),
            fanouts: Vec::new(),
            filters: Vec::new(),
            max_queued_jobs: JobProfile::default().jobs(),
            job_profile: Some(JobProfile::default()),
            link_profile: LinkProfile::default(),
            pause_percent: 80,
            resume_percent: 60,
            request_timeout: REQUEST_TIMEOUT,
            send_timeout: None,
            drain_timeout: DRAIN_TIME,
            workers: None,
            watchdog: None,
            transport: Arc::new(LinkTransport::new(LinkConfig::default())),
            location: LocationOptions::default(),
            random: Random::default(),
            shared: Vec::new(),
            route_cache_max_age: ROUTE_CACHE_AGE,
        }
    }
}

impl HostBuilder {
    /// Makes the host a node of the mesh `name`. Each mesh once.
    pub fn mesh(mut self, name: impl Into<String>, configure: impl FnOnce(MeshBuilder) -> MeshBuilder) -> Self {
        self.meshes.push(configure(MeshBuilder::new(name.into())));
        self
    }

    /// Registers one ClientServer channel: its Server role, its Client role, or both.
    pub fn client_server(mut self, configure: impl FnOnce(ClientServerBuilder) -> ClientServerBuilder) -> Self {
        self.channels.push(configure(ClientServerBuilder::default()));
        self
    }

    /// Registers one fanout: its Publisher role, its Subscriber role, or both. Each fanout once.
    pub fn fanout(mut self, configure: impl FnOnce(FanoutBuilder) -> FanoutBuilder) -> Self {
        self.fanouts.push(configure(FanoutBuilder::default()));
        self
    }

    /// Puts `filter` around every handler of the host's channels, nodes and fanouts, within those that were registered before it.
    /// Without filters, none is looked for.
    pub fn filter(mut self, filter: impl Filter) -> Self {
        self.filters.push(Arc::new(filter));
        self
    }

    /// How many jobs the whole host lets wait before their handlers start, by profile. `Balanced` where it is not set.
    pub fn job_profile(mut self, profile: JobProfile) -> Self {
        (self.max_queued_jobs, self.job_profile) = (profile.jobs(), Some(profile));
        self
    }

    /// The same as an exact number, at least 1. What exceeds it stays in the links, and at the senders.
    pub fn max_queued_jobs(mut self, jobs: u32) -> Self {
        (self.max_queued_jobs, self.job_profile) = (jobs, None);
        self
    }

    /// How many bytes the links of the host hold, by profile. `Balanced` where it is not set. It has nothing to do with
    /// how many jobs may wait: a link counts what it still holds, a host what it has taken and not begun.
    pub fn link_profile(mut self, profile: LinkProfile) -> Self {
        self.link_profile = profile;
        self
    }

    /// At how many percent of its jobs the host asks its peers to pause (1 to 100), and at how many to go on (below).
    /// 80 and 60 where it is not set.
    pub fn pressure(mut self, pause_percent: u8, resume_percent: u8) -> Self {
        (self.pause_percent, self.resume_percent) = (pause_percent, resume_percent);
        self
    }

    /// How long a request may take where neither the call nor its schema says: 30 s where it is not set.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout;
        self
    }

    /// Ends sends that find no room in time with `DeadlineExceeded`. Without it they wait as long as it takes.
    pub fn send_timeout(mut self, timeout: Duration) -> Self {
        self.send_timeout = Some(timeout);
        self
    }

    /// How long [`Host::shutdown`] lets accepted work finish: 30 s where it is not set.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain_timeout = timeout;
        self
    }

    /// How many tasks run handlers, 1 to 4,096; one per thread of the tokio runtime where it is not set.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Warns, in an event that names the operation, of every handler that blocks its thread for longer than `limit`: it
    /// holds up what else that thread has to do, links included. A thread of its own looks every `limit / 2`; it ends with
    /// the host. Off where it is not set.
    pub fn watchdog(mut self, limit: Duration) -> Self {
        self.watchdog = Some(limit);
        self
    }

    /// Carries all links over another transport than TCP and IPC sockets.
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.transport = Arc::new(transport);
        self
    }

    /// Finds other hosts, and is found, through this store: every mesh and channel of the host is published there and looked
    /// for there, beside those that it connects to by hand, unless it is `manual`. At most one store, by its address
    /// (`memory://`, `sqlite://path`, `redis://host`; see [`StoreSource`]) or as a provider. It is opened and [probed](crate::location::probe) before any
    /// socket is.
    ///
    /// ```
    /// # use zlink_runtime::{Host, location::MemoryStore};
    /// let store = MemoryStore::new();
    /// let one = Host::builder().location_store(store.clone()).mesh("shop", |mesh| mesh);
    /// let other = Host::builder().location_store(store).mesh("shop", |mesh| mesh);
    /// // Between the processes of one machine, with the cargo feature `sqlite`:
    /// let another = Host::builder().location_store("sqlite:///var/lib/shop.db").mesh("shop", |mesh| mesh);
    /// ```
    pub fn location_store(mut self, store: impl Into<StoreSource>) -> Self {
        self.location.stores.push(store.into());
        self
    }

    /// Keeps what is too large for the Location Store (first messages and requests to create of more than 64 KiB) in this
    /// store: an address in the form of the Location Store's, or a provider. All hosts of a namespace need the same one.
    /// At most one; where it is not set, what comes with the Location Store: of an address the same place, of SQLite the
    /// file beside it whose name ends in `-blobs`, of a `MemoryStore` itself. It is opened once it is needed.
    pub fn relocation_store(mut self, store: impl Into<BlobSource>) -> Self {
        self.location.blobs.push(store.into());
        self
    }

    /// How often the host proves to others that it is alive, and how long they believe it.
    pub fn location_timing(mut self, timing: LocationTiming) -> Self {
        self.location.timing = timing;
        self
    }

    /// Judges leases by another clock than the machine's. For tests and simulations.
    pub fn boot_clock(mut self, clock: BootClock) -> Self {
        self.location.clock = clock;
        self
    }

    /// Hands `value` to every Spot of this host: what its contexts and turns give out as `shared::<T>()`. One of a type; of
    /// two, the later one.
    pub fn shared<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.shared.push(Box::new(value));
        self
    }

    /// How long the host remembers where a Spot is before it asks the Location Store anew: 15 s where it is not set, 0 to ask
    /// each time. It forgets sooner what turns out to be wrong, and what a host had that may be dead.
    /// [`Host::set_route_cache_max_age`] changes it later.
    pub fn route_cache_max_age(mut self, age: Duration) -> Self {
        self.route_cache_max_age = age;
        self
    }

    /// Draws all that is random (made RIDs, the token of each run, the pauses between attempts to connect) from this seed
    /// and not from the system, so that a run on a paused clock can be repeated. For tests: two hosts with one seed make
    /// the same RIDs.
    pub fn random_seed(mut self, seed: u64) -> Self {
        self.random = Random::seeded(seed);
        self
    }

    /// Checks everything, binds, and begins to serve. It waits for no peer.
    ///
    /// # Errors
    /// Every mistake of the configuration at once, before a socket is bound; or that the Location Store cannot be used; or
    /// the endpoints that cannot be bound. Nothing is left running then.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn start(self) -> Result<Host, StartError> {
        start::start(self).await
    }
}

impl fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBuilder")
            .field("meshes", &self.meshes)
            .field("channels", &self.channels)
            .field("fanouts", &self.fanouts)
            .field("filters", &self.filters.len())
            .finish_non_exhaustive()
    }
}
