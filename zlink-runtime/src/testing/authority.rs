//! The authority of Spots without a host around it: a lease and the machine above a store, to be driven step by step.
//!
//! It shows what the store says and what became of each step, as values; it decides nothing.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::error::ArgumentError;
use crate::id::{
    Generation, MeshName, ObjectGeneration, ObjectId, ObjectRef, Rid, Space, SpotId, SpotKind, SpotRef, SpotType,
};
use crate::location::{
    self, AuthorityError, BootClock, CreationOutcome, HostLease, LeaseConfig, LocationStore, LocationTiming, OwnerId,
    Removal, Reserving, Resolved, SpotRecord, SpotState, Taken, Terminal,
};
use crate::random::Random;

/// A host, as far as authority knows one: a lease, and a node of its name.
#[derive(Debug)]
pub struct Owner {
    lease: Arc<HostLease>,
    authority: location::Authority,
    node: Rid,
    lifecycle: Generation,
    taken: Arc<Mutex<Vec<Spot>>>,
}

/// What a Spot is asked for with.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Its ID.
    pub id: SpotId,
    /// Its kind.
    pub kind: SpotKind,
    /// Its type.
    pub stable_type: SpotType,
    /// The number of the operation, which tells it from all others.
    pub operation: u128,
    /// The request or first message.
    pub inbox: Bytes,
    /// How many Spots the node may have; 0 for any number.
    pub spots: u32,
    /// How many of the type; 0 for any number.
    pub of_type: u32,
}

impl Ask {
    /// For a User Spot with an empty request, on a node without limits.
    #[must_use]
    pub fn new(id: &SpotId, operation: u128) -> Self {
        Self {
            id: id.clone(),
            kind: SpotKind::User,
            stable_type: SpotType::from_static("test"),
            operation,
            inbox: Bytes::new(),
            spots: 0,
            of_type: 0,
        }
    }
}

/// What the store says of a Spot.
#[derive(Clone, PartialEq, Eq)]
pub struct Spot(SpotRecord);

impl fmt::Debug for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = &self.0;
        write!(
            f,
            "Spot({} {:?} at {} version {})",
            record.id, record.generation, record.node, record.version
        )
    }
}

impl Spot {
    /// This incarnation, where it was.
    #[must_use]
    pub fn reference(&self) -> SpotRef {
        match self.0.reference() {
            ObjectRef::Spot(spot) => spot,
            ObjectRef::Actor(actor) => unreachable!("{actor:?} was not asked for"),
        }
    }

    /// Which incarnation it is.
    #[must_use]
    pub fn generation(&self) -> ObjectGeneration {
        self.0.generation
    }

    /// How often its owner changed, from 1.
    #[must_use]
    pub fn owner_generation(&self) -> u64 {
        self.0.owner_generation
    }

    /// The store's revision of what it says.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.0.version.get()
    }

    /// Whether it takes messages.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.0.state == SpotState::Ready
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> SpotKind {
        self.0
            .kind
            .spot()
            .unwrap_or_else(|| unreachable!("only Spots are asked for"))
    }

    /// The name of the blob with the request or first message that is not done with, where it is not in the record.
    #[must_use]
    pub fn blob(&self) -> Option<location::BlobRef> {
        self.0.blob.as_ref().map(|blob| blob.reference.clone())
    }

    /// The request or first message that is not done with.
    #[must_use]
    pub fn inbox(&self) -> Bytes {
        self.0.inbox.clone()
    }
}

/// An ID that is reserved. Dropped, it is taken back by and by.
#[derive(Debug)]
pub struct Reservation(location::Reservation);

impl Reservation {
    /// What it is to become.
    #[must_use]
    pub fn spot(&self) -> Option<Spot> {
        self.0.record().cloned().map(Spot)
    }
}

/// What a step has come to.
#[derive(Debug)]
pub enum Seen {
    /// The ID was reserved.
    Reserved(Reservation),
    /// The same operation has it already.
    Issued(Spot),
    /// The same operation has ended.
    Over,
    /// The node has no room.
    NoCapacity,
    /// It takes messages, or does now.
    Ready(Spot),
    /// Somebody makes it.
    Creating(Spot),
    /// Its owner is dead.
    Unavailable(Spot),
    /// There is none.
    Missing,
    /// It was taken away.
    Removed,
    /// There is another, or it has changed.
    Other(Spot),
    /// Its owner is alive.
    OwnerAlive,
    /// What was held is not so any more.
    Conflict,
    /// The lease does not admit it.
    Closed,
    /// The store failed; nothing was changed.
    Failed(String),
}

impl From<AuthorityError> for Seen {
    fn from(error: AuthorityError) -> Self {
        match error {
            AuthorityError::Conflict => Seen::Conflict,
            AuthorityError::Closed => Seen::Closed,
            AuthorityError::Store(_) | AuthorityError::Unreadable(_) | AuthorityError::Lost => {
                Seen::Failed(error.to_string())
            }
        }
    }
}

impl From<Removal> for Seen {
    fn from(removal: Removal) -> Self {
        match removal {
            Removal::Removed => Seen::Removed,
            Removal::Missing => Seen::Missing,
            Removal::Other(record) => Seen::Other(Spot(*record)),
            Removal::OwnerAlive => Seen::OwnerAlive,
        }
    }
}

impl Owner {
    /// Takes a lease in `store` for a host whose one node has this name. Everything random follows from `seed`.
    ///
    /// # Errors
    /// Where there is no lease to be had, or the name is no RID.
    pub async fn start(
        store: Arc<dyn LocationStore>,
        timing: LocationTiming,
        clock: BootClock,
        node: &str,
        seed: u64,
    ) -> Result<Self, String> {
        let random = Random::seeded(seed);
        let config = LeaseConfig {
            store,
            timing,
            clock,
            owner: OwnerId::new(random.uuid().into_bytes()),
            runtime: Handle::current(),
        };
        let lease = HostLease::take(config, Vec::new())
            .await
            .map_err(|error| error.to_string())?;
        let lease = Arc::new(lease);
        let taken = Arc::<Mutex<Vec<_>>>::default();
        let told = taken.clone();
        let lifecycle = Generation::drawn(&random);
        let authority = location::Authority::new(lease.clone(), random, move |taken| {
            if let Taken::One(record) = taken {
                told.lock().push(Spot(*record));
            }
        });
        Ok(Self {
            lease,
            authority,
            node: Rid::new(node).map_err(|error| error.to_string())?,
            lifecycle,
            taken,
        })
    }

    /// Whether its lease admits owned work.
    #[must_use]
    pub fn admits(&self) -> bool {
        self.lease.admits()
    }

    /// Writes nothing more, as the end of its process would.
    pub fn kill(&self) {
        self.lease.kill();
    }

    /// What was taken from it, as it was told.
    #[must_use]
    pub fn taken(&self) -> Vec<Spot> {
        self.taken.lock().clone()
    }

    fn operation(&self, number: u128) -> location::OperationId {
        location::OperationId {
            source: self.node.clone(),
            lifecycle: self.lifecycle,
            id: number.to_be_bytes(),
        }
    }

    /// What the ID leads to.
    pub async fn resolve(&self, id: &SpotId) -> Seen {
        match self.authority.resolve(&ObjectId::Spot(id.clone())).await {
            Resolved::Ready(record) => Seen::Ready(Spot(record)),
            Resolved::Creating(record) => Seen::Creating(Spot(record)),
            Resolved::Missing => Seen::Missing,
            Resolved::Unavailable(record) => Seen::Unavailable(Spot(record)),
            Resolved::Failed(error) => error.into(),
        }
    }

    /// Reserves the ID.
    pub async fn reserve(&self, ask: Ask) -> Seen {
        let reserve = location::Reserve {
            id: ObjectId::Spot(ask.id),
            kind: ask.kind.into(),
            stable_type: ask.stable_type,
            mesh: MeshName::from_static("test"),
            node: self.node.clone(),
            lifecycle: self.lifecycle,
            operation: self.operation(ask.operation),
            inbox: ask.inbox,
            blob: None,
            spot: None,
            limits: location::Limits {
                all: NonZeroU32::new(ask.spots),
                of_type: NonZeroU32::new(ask.of_type),
            },
        };
        match self.authority.reserve(reserve).await {
            Ok(Reserving::Won(reservation)) => Seen::Reserved(Reservation(reservation)),
            Ok(Reserving::Issued(record)) => Seen::Issued(Spot(record)),
            Ok(Reserving::Over(_)) => Seen::Over,
            Ok(Reserving::Lost(record)) => Seen::Other(Spot(record)),
            Ok(Reserving::NoCapacity) => Seen::NoCapacity,
            Err(error) => error.into(),
        }
    }

    /// Makes what was reserved Ready, and answers its operation with `answer`.
    pub async fn commit(&self, reservation: Reservation, answer: &[u8]) -> Seen {
        let terminal = terminal(CreationOutcome::Created, answer);
        match self.authority.commit(reservation.0, Some(terminal)).await {
            Ok(record) => Seen::Ready(Spot(*record)),
            Err(error) => error.into(),
        }
    }

    /// Takes a reservation back, and answers its operation with `answer`.
    pub async fn abort(&self, reservation: Reservation, answer: &[u8]) -> Seen {
        let terminal = terminal(CreationOutcome::Rejected, answer);
        match self.authority.abort(reservation.0, Some(terminal)).await {
            Ok(()) => Seen::Removed,
            Err(error) => error.into(),
        }
    }

    /// Gives a Ready Spot another inbox.
    pub async fn preserve(&self, spot: &Spot, inbox: Bytes) -> Seen {
        match self.authority.preserve(&spot.0, inbox).await {
            Ok(record) => Seen::Ready(Spot(*record)),
            Err(error) => error.into(),
        }
    }

    /// Takes a Ready Spot away.
    pub async fn delete(&self, spot: &Spot) -> Seen {
        match self.authority.delete(&spot.0).await {
            Ok(removal) => removal.into(),
            Err(error) => error.into(),
        }
    }

    /// Takes away what a dead host owns.
    pub async fn release(&self, reference: &SpotRef) -> Seen {
        match self.authority.release(&reference.clone().into()).await {
            Ok(removal) => removal.into(),
            Err(error) => error.into(),
        }
    }

    /// The answer to one of this owner's own operations, while it can be read: whether it created something, and what was
    /// said.
    ///
    /// # Errors
    /// The store failed.
    pub async fn answer(&self, operation: u128) -> Result<Option<(bool, Bytes)>, String> {
        match self.authority.ended(&self.operation(operation)).await {
            Ok(ended) => Ok(ended.map(|ended| (ended.outcome == CreationOutcome::Created, ended.body))),
            Err(error) => Err(error.to_string()),
        }
    }

    /// What it owns by the index, at most the first 1,000.
    ///
    /// # Errors
    /// The store failed.
    pub async fn owned(&self) -> Result<Vec<Spot>, String> {
        match self.authority.reader().owned_by(self.lease.config().owner, None).await {
            Ok((records, _)) => Ok(records.into_iter().map(Spot).collect()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// How many Spots its node has Ready and reserved, by the counters in the store: of all types, or of one.
    ///
    /// # Errors
    /// The store failed, or there is no such key.
    pub async fn counted(&self, of_type: Option<(SpotKind, &SpotType)>) -> Result<(u32, u32), String> {
        self.authority
            .reader()
            .counted(&self.node, of_type.map(|(kind, name)| (kind.into(), name)))
            .await
            .map(|counts| (counts.active, counts.reserved))
            .map_err(|error| error.to_string())
    }

    /// Gives the lease back. What it owns stays.
    pub async fn stop(&self) {
        self.lease.release(Duration::from_secs(10)).await;
    }
}

fn terminal(outcome: CreationOutcome, body: &[u8]) -> Terminal {
    Terminal {
        outcome,
        body: Bytes::copy_from_slice(body),
        deadline: Instant::now(),
    }
}

/// The key under which the authority of a Spot stands, for tests that look for two that are the same.
///
/// # Errors
/// Where the text is no ID.
pub fn authority_key(id: &str) -> Result<String, ArgumentError> {
    let id = Space::Spots.id(id);
    let id = id.map_err(|error| ArgumentError::new("Spot ID", error.to_string()))?;
    Ok(location::object_key(&id).as_str().to_owned())
}
