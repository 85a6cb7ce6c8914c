//! The Spots of one host, and all that they stand on. It must not know how one is made or found.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::num::NonZeroU32;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::channel::{DropCounts, Drops, Filters, Objects, Outbound, OwnPeer, Place};
use crate::clock;
use crate::error::{Error, ErrorKind};
use crate::execution::{CpuPool, IoPool, Timers, WorkersHandle};
use crate::id::{Generation, MeshName, ObjectId, ObjectKind, Rid, SpotType};
use crate::location::{Authority, Blobs, HostLease, Reader, Taken, nanos};
use crate::mesh::Links;
use crate::permit::HostPermits;
use crate::random::Random;

use super::controls::Controls;
use super::entry::Lobby;
use super::factory::SpotFactory;
use super::known::{Finds, Places};
use super::object::Object;
use super::publish::{Fanout, Subscribers};
use super::shared::Shared;
use super::table::Table;

/// What the Spots of a host are made with.
pub(crate) struct SpotsConfig {
    pub(crate) outbound: Outbound,
    pub(crate) permits: HostPermits,
    pub(crate) workers: WorkersHandle,
    pub(crate) runtime: Handle,
    pub(crate) random: Random,
    pub(crate) lease: Arc<HostLease>,
    pub(crate) blobs: Blobs,
    pub(crate) shared: Shared,
    pub(crate) homes: Vec<Home>,
    /// How long a Spot that was found is looked up no more.
    pub(crate) route_age: Duration,
}

/// What one node of this host can do with Spots.
pub(crate) struct Home {
    pub(crate) mesh: MeshName,
    pub(crate) rid: Rid,
    /// The run of the node.
    pub(crate) lifecycle: Generation,
    pub(crate) links: Links,
    /// Whether it can have any, or only call them.
    pub(crate) serves: bool,
    pub(crate) factories: HashMap<SpotType, SpotFactory>,
    /// Those of Actors.
    pub(crate) actors: HashMap<SpotType, SpotFactory>,
    pub(crate) entry: Option<SpotFactory>,
    pub(crate) rid_prefix: String,
    /// Of one type.
    pub(crate) capacities: HashMap<SpotType, NonZeroU32>,
    /// Of all types.
    pub(crate) capacity: Option<NonZeroU32>,
    /// The same of Actors.
    pub(crate) actor_capacities: HashMap<SpotType, NonZeroU32>,
    pub(crate) actor_capacity: Option<NonZeroU32>,
    /// How long an Instance Spot may have nothing to do.
    pub(crate) idle_timeout: Option<Duration>,
    /// What stands around the handlers of its Spots.
    pub(crate) filters: Filters,
    /// Itself, for calls of its own host; found with the first.
    pub(crate) own: OnceLock<Arc<OwnPeer>>,
    /// And as a place of Spots.
    pub(crate) place: OnceLock<Arc<Place>>,
    /// Its Entry Spot, once there is one.
    pub(crate) lobby: Lobby,
}

impl Home {
    /// Itself; `None` while its host starts.
    pub(super) fn own(&self, outbound: &Outbound) -> Option<&Arc<OwnPeer>> {
        if let Some(own) = self.own.get() {
            return Some(own);
        }
        let own = outbound.own_node(&self.mesh)?;
        Some(self.own.get_or_init(|| own.clone()))
    }

    /// The same as a place of Spots; `None` before its host has a lease.
    pub(super) fn place(&self, lease: &HostLease) -> Option<&Arc<Place>> {
        if let Some(place) = self.place.get() {
            return Some(place);
        }
        let run = lease.generation()?;
        let place = Place::new(self.mesh.clone(), self.rid.clone(), self.lifecycle);
        let place = Arc::new(place.owned_by(lease.config().owner, run, None));
        Some(self.place.get_or_init(|| place))
    }

    /// The factory of that type, if it is of that kind.
    pub(super) fn factory(&self, kind: ObjectKind, stable_type: &SpotType) -> Option<&SpotFactory> {
        let of_kind = match kind {
            ObjectKind::Actor => &self.actors,
            ObjectKind::Entry | ObjectKind::User | ObjectKind::Instance => &self.factories,
        };
        of_kind.get(stable_type).filter(|factory| factory.parts().kind == kind)
    }
}

/// The Spots of one host. Clones are the same.
#[derive(Clone)]
pub(crate) struct Spots(pub(super) Arc<Inner>);

/// Of its locks, whoever has `finds` may take `places`, `counted_out` or `table`; whoever has `table`, the state of an object,
/// and with that its timers; never the other way. Queues, permits and links may be used under each, and take none of these.
/// No handler, factory or state is called or dropped under one: whoever ends an object still has it as it leaves the table.
pub(super) struct Inner {
    pub(super) start: Instant,
    pub(super) outbound: Outbound,
    pub(super) permits: HostPermits,
    pub(super) workers: WorkersHandle,
    pub(super) runtime: Handle,
    pub(super) random: Random,
    pub(super) timers: Timers,
    pub(super) cpu: CpuPool,
    pub(super) io: IoPool,
    pub(super) shared: Shared,
    pub(super) authority: Authority,
    pub(super) blobs: Arc<Blobs>,
    pub(super) fence: Fence,
    /// The moment at which the last records were read for which this host could prove that it lives.
    pub(super) open_at: AtomicU64,
    pub(super) homes: Vec<Arc<Home>>,
    /// Those that are here, or are being made here.
    pub(super) table: Mutex<Table>,
    /// Those that were found, and those that this host has sent a first message to.
    pub(super) finds: Mutex<Finds>,
    /// Where that is.
    pub(super) places: Mutex<Places>,
    /// Nodes whose hosts were just proved dead, and until when the list of nodes may not show it.
    pub(super) counted_out: Mutex<HashMap<Rid, Instant>>,
    /// Instance Spots that end once they have had nothing to do for long, in the order in which they are looked at.
    pub(super) evictable: Mutex<VecDeque<Weak<Object>>>,
    pub(super) subscribers: Subscribers,
    pub(super) fanout: Fanout,
    pub(super) drops: Drops,
    pub(super) controls: Controls,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Spots {
    /// Must be called on the host's runtime.
    pub(crate) fn new(config: SpotsConfig) -> Self {
        let fence = Fence::new(config.lease.clone());
        let (fanout, publishes) = Fanout::new();
        let inner = Arc::new_cyclic(|this: &Weak<Inner>| Inner {
            start: clock::now(),
            authority: Authority::new(config.lease, config.random.clone(), {
                let this = this.clone();
                move |taken| this.upgrade().into_iter().for_each(|spots| spots.was_taken(&taken))
            }),
            blobs: Arc::new(config.blobs),
            fence,
            open_at: AtomicU64::new(u64::MAX),
            timers: Timers::new(),
            cpu: CpuPool::new(),
            io: IoPool::new(config.runtime.clone()),
            shared: config.shared,
            homes: config.homes.into_iter().map(Arc::new).collect(),
            table: Mutex::default(),
            finds: Mutex::new(Finds::new(config.route_age)),
            places: Mutex::default(),
            counted_out: Mutex::default(),
            evictable: Mutex::default(),
            subscribers: Subscribers::default(),
            fanout,
            drops: Drops::default(),
            controls: Controls::default(),
            outbound: config.outbound,
            permits: config.permits,
            workers: config.workers,
            runtime: config.runtime,
            random: config.random,
            tasks: Mutex::default(),
        });
        let tasks = [
            inner.runtime.spawn(inner.timers.clone().run(inner.permits.clone())),
            inner.runtime.spawn(inner.fence.clone().run()),
            inner.runtime.spawn(publishes.run(Arc::downgrade(&inner))),
            inner.runtime.spawn(Inner::evict(Arc::downgrade(&inner))),
            inner.runtime.spawn(Inner::take_up(Arc::downgrade(&inner))),
            inner.runtime.spawn(Inner::sweep(Arc::downgrade(&inner))),
        ];
        let with_entry = inner.homes.iter().filter(|home| home.entry.is_some());
        let entries = with_entry.map(|home| {
            let keeping = Inner::keep_entry(Arc::downgrade(&inner), home.clone());
            inner.runtime.spawn(keeping)
        });
        inner.tasks.lock().extend(tasks.into_iter().chain(entries));
        let objects: Arc<dyn Objects> = inner.clone();
        inner.outbound.set_objects(Arc::downgrade(&objects));
        Self(inner)
    }

    /// What says where Spots are.
    pub(crate) fn reader(&self) -> &Reader {
        self.0.authority.reader()
    }

    /// What was dropped of what its Spots were sent.
    pub(crate) fn drops(&self) -> DropCounts {
        self.0.drops.of_spots()
    }

    /// Changes how long what is found from here on is looked up no more.
    pub(crate) fn set_route_age(&self, age: Duration) {
        self.0.finds.lock().routes.set_max_age(age);
    }

    /// Stops everything at once, and waits for nothing.
    pub(crate) fn abandon(&self) {
        let objects: Vec<_> = self.0.table.lock().drain().collect();
        for object in objects {
            // What waits for its end is answered as it is dropped.
            drop(object.end());
            object.stop(ErrorKind::ShuttingDown);
            object.forget();
            self.0.subscribers.remove(&object);
        }
        self.0.end_tasks();
    }
}

impl Inner {
    pub(super) fn home(&self, mesh: &MeshName) -> Option<&Arc<Home>> {
        self.homes.iter().find(|home| home.mesh == *mesh)
    }

    /// A moment as objects keep it.
    pub(super) fn moment(&self, at: Instant) -> u64 {
        nanos(at.saturating_duration_since(self.start))
    }

    pub(super) fn object(&self, id: &ObjectId) -> Option<Arc<Object>> {
        self.table.lock().get(id).cloned()
    }

    /// Another host has released that: nothing of it runs here any more.
    fn was_taken(self: &Arc<Self>, taken: &Taken) {
        let (mut objects, upto) = match taken {
            Taken::One(record) => (self.object(&record.id).into_iter().collect(), record.generation),
            Taken::All(upto) => (self.table.lock().iter().cloned().collect::<Vec<_>>(), *upto),
        };
        // In the order in which they would be listed, whatever that of the table.
        objects.sort_unstable_by(|one, other| other.id.cmp(&one.id));
        for object in objects.into_iter().filter(|object| object.is_taken(upto)) {
            tracing::warn!(target: "zlink::spot", event_id = "zlink.spot.taken", spot = %object.id, "another host has taken a Spot or Actor of this one");
            self.remove(&object);
            let noun = object.id.space().noun();
            let text = format!("the {noun} was taken from its host, which could not prove that it lives");
            // This may be the thread that renews the lease.
            object.stop_apart(Error::not_executed(ErrorKind::Unavailable, text));
        }
    }

    pub(super) fn end_tasks(&self) {
        self.tasks.lock().drain(..).for_each(|task| task.abort());
    }
}

impl fmt::Debug for Spots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spots({})", self.0.table.lock().len())
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spots")
    }
}

/// Asks, before anything of a Spot runs, whether this host may run it. Clones are the same.
#[derive(Clone)]
pub(super) struct Fence(Arc<Waits>);

struct Waits {
    lease: Arc<HostLease>,
    /// Turns that wait for the lease.
    turns: Mutex<Vec<Waker>>,
    wake: Notify,
}

impl Fence {
    fn new(lease: Arc<HostLease>) -> Self {
        Self(Arc::new(Waits {
            lease,
            turns: Mutex::default(),
            wake: Notify::new(),
        }))
    }

    pub(super) fn lease(&self) -> &HostLease {
        &self.0.lease
    }

    /// Whether this host may begin, and go on with, work of the Spots that it owns.
    pub(super) fn is_open(&self) -> bool {
        self.0.lease.admits()
    }

    /// The same, with the moment of the lease's clock at which it was asked.
    pub(super) fn is_open_at(&self) -> Option<u64> {
        self.0.lease.admits_at()
    }

    /// The same; where it may not, the turn is woken once it may again.
    pub(super) fn may_run(&self, cx: &Context<'_>) -> bool {
        if self.is_open() {
            return true;
        }
        self.0.turns.lock().push(cx.waker().clone());
        self.0.wake.notify_one();
        false
    }

    /// Wakes those that wait, once they may run.
    async fn run(self) {
        let interval = self.0.lease.config().timing.poll_interval / 10;
        loop {
            self.0.wake.notified().await;
            while !self.is_open() {
                tokio::time::sleep(interval.max(Duration::from_millis(1))).await;
            }
            let turns = std::mem::take(&mut *self.0.turns.lock());
            turns.into_iter().for_each(Waker::wake);
        }
    }
}
