//! What calls need of whoever knows the Spots and Actors, and what they hand over to it: the room above implements it.
//!
//! Where a name here says Spot, it means either. It must not know what they are, where they live or how they are found.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use parking_lot::RwLock;
use tokio::time::Instant;

use crate::error::Error;
use crate::id::{MeshName, ObjectId, Rid, SpotType};
use crate::limit::WORKER_JOBS;
use crate::mesh::PeerLink;
use crate::message::codec::{Carried, Message};
use crate::message::metadata::Metadata;
use crate::permit::Permit;
use crate::transport::BoxFuture;
use crate::wire::{Control, Incoming, ObjectCall, Publish};

use super::flow::Flow;
use super::found::{Found, KnownSpot, Lead};
use super::outbound::Outbound;
use super::own::OwnPeer;
use super::reply::ReplyTo;
use super::way::Way;

/// Who knows the Spots of this process, and those that it has found elsewhere.
pub(crate) trait Objects: Send + Sync {
    /// Where that Spot is, as far as it is known without asking anybody; and what says so, where that can be asked again.
    fn known(&self, spot: &SpotTo) -> Option<(Found, Option<Arc<KnownSpot>>)>;

    /// Whether what was known then is so still.
    fn holds(&self, known: &KnownSpot) -> bool;

    /// The same way for a call that may activate its Spot.
    fn may_activate(&self, found: Found, intent: &Intent) -> Found;

    /// Finds it.
    fn find(self: Arc<Self>, spot: Arc<SpotTo>) -> BoxFuture<'static, Result<Found, Error>>;

    /// A call was refused where `lead` led it, or met nobody there.
    fn misled(&self, id: &ObjectId, lead: Lead);

    /// A Spot of this host that [is for](Here::is_for) such a call. Whatever is not so plain goes as a record.
    fn here(&self, asked: &Asked<'_>) -> Option<(Arc<dyn Here>, u32)>;

    /// Whether the turn that runs here may wait for an answer of that Spot, which is to be on this host.
    fn may_wait_for(&self, id: &ObjectId) -> Result<(), Error>;

    /// Itself, as what it is.
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;

    /// Takes what came for a Spot. It must not block.
    fn arrived(self: Arc<Self>, arrival: Arrival<'_>);
}

/// A call that may stay within this host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) id: &'a ObjectId,
    pub(crate) packet: &'static str,
    /// The name's hash.
    pub(crate) hash: u64,
    /// Whether it waits for an answer.
    pub(crate) request: bool,
}

/// A Spot of this host, for its calls.
pub(crate) trait Here: Send + Sync {
    /// Whether a call can be handed to it: known to be here without asking anybody, ready, and with a handler for it. It is
    /// told which.
    fn is_for(&self, asked: &Asked<'_>) -> Option<u32>;

    /// The node that has it; `None` while its host starts.
    fn own(&self) -> Option<&Arc<OwnPeer>>;

    /// Its mesh.
    fn mesh(&self) -> &str;

    /// The version of the record that says so.
    fn version(&self) -> u64;

    /// Puts a call in its queue. Handed back where it takes nothing any more.
    fn take(self: Arc<Self>, call: Box<OwnCall>, permit: Permit) -> Result<(), Box<OwnCall>>;
}

/// A call that stays within its host. `C` is an `Option` of the message: it is moved into the handler.
pub(crate) struct OwnCall<C: ?Sized = dyn Carried> {
    pub(crate) packet: &'static str,
    /// Which handler it is for, as [`Here::is_for`] said.
    pub(crate) handler: u32,
    pub(crate) metadata: Metadata,
    pub(crate) deadline: Option<Instant>,
    /// Of a request.
    pub(crate) reply: Option<ReplyTo>,
    /// Where somebody traces.
    pub(crate) flow: Option<Box<Flow>>,
    /// The most bytes that it has, encoded.
    pub(crate) size: usize,
    pub(crate) message: C,
}

thread_local! {
    /// Calls that have started on this thread, for the next that begin here.
    static SPARES: RefCell<Vec<Box<OwnCall>>> = const { RefCell::new(Vec::new()) };
}

/// At most so many are kept by a thread, as a worker runs at most before it lets those on who call;
const SPARES_KEPT: usize = WORKER_JOBS as usize;
/// each of at most so many bytes.
const SPARE_BYTES: usize = 256;

impl OwnCall {
    /// A call, in the memory of one that has started on this thread, where that had the same kind of message.
    #[inline]
    pub(crate) fn boxed<M: Message>(call: OwnCall<Option<M>>) -> Box<Self> {
        let spare = SPARES.try_with(|spares| spares.borrow_mut().pop()).ok().flatten();
        if let Some(mut spare) = spare
            && let Some(place) = spare.message.slot().downcast_mut::<Option<M>>()
        {
            *place = call.message;
            spare.packet = call.packet;
            spare.handler = call.handler;
            spare.metadata = call.metadata;
            spare.deadline = call.deadline;
            spare.reply = call.reply;
            spare.flow = call.flow;
            spare.size = call.size;
            return spare;
        }
        Box::new(call)
    }

    /// It has started: what it still holds is dropped, and its memory is for another.
    #[inline]
    pub(crate) fn recycle(mut self: Box<Self>) {
        if self.message.is_taken() && size_of_val(&*self) <= SPARE_BYTES {
            self.metadata = Metadata::new();
            (self.reply, self.flow) = (None, None);
            // Where the thread ends, it just goes.
            let _ = SPARES.try_with(|spares| {
                let mut spares = spares.borrow_mut();
                if spares.len() < SPARES_KEPT {
                    spares.push(self);
                }
            });
        }
    }
}

impl<C: ?Sized> fmt::Debug for OwnCall<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnCall({})", self.packet)
    }
}

impl fmt::Debug for dyn Here {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Here")
    }
}

/// A Spot that is called.
#[derive(Debug)]
pub(crate) struct SpotTo {
    pub(crate) id: ObjectId,
    /// Whether the call may activate it, and how.
    pub(crate) intent: Option<Intent>,
    /// Where it is, where that is not to be asked.
    pub(crate) fixed: Option<Found>,
    /// The first of this ID that was found to be of this host; asked without a lock.
    first: OnceLock<Weak<dyn Here>>,
    /// The last one, where that is another.
    last: RwLock<Option<Weak<dyn Here>>>,
    /// Whether the last call found it to be another host's.
    is_elsewhere: AtomicBool,
    /// And where.
    elsewhere: RwLock<Option<Elsewhere>>,
    /// The same way for calls that may activate it, in whatever mesh, once there was one.
    pub(super) activating: OnceLock<Arc<Way>>,
}

/// A Spot of another host, and the link that leads there.
#[derive(Debug)]
struct Elsewhere {
    known: Arc<KnownSpot>,
    link: Weak<PeerLink>,
}

/// How a Spot comes to be if it is not there.
#[derive(Clone, Debug)]
pub(crate) struct Intent {
    pub(crate) stable_type: SpotType,
    /// In this mesh; else in the only one with objects.
    pub(crate) mesh: Option<MeshName>,
}

impl SpotTo {
    pub(crate) fn new(id: ObjectId, intent: Option<Intent>) -> Self {
        Self {
            id,
            intent,
            fixed: None,
            first: OnceLock::new(),
            last: RwLock::default(),
            is_elsewhere: AtomicBool::new(false),
            elsewhere: RwLock::default(),
            activating: OnceLock::new(),
        }
    }

    /// Where it is of this host, and plain to be called.
    #[inline]
    pub(super) fn here(&self, outbound: &Outbound, asked: &Asked<'_>) -> Option<(Arc<dyn Here>, u32)> {
        self.known_here(asked).or_else(|| self.look_here(outbound, asked))
    }

    #[inline]
    fn known_here(&self, asked: &Asked<'_>) -> Option<(Arc<dyn Here>, u32)> {
        let known = |here: &Weak<dyn Here>| {
            let here = here.upgrade()?;
            let handler = here.is_for(asked)?;
            Some((here, handler))
        };
        let first = self.first.get()?;
        known(first).or_else(|| self.last.read().as_ref().and_then(known))
    }

    /// The same, after a look at what this host has.
    #[cold]
    fn look_here(&self, outbound: &Outbound, asked: &Asked<'_>) -> Option<(Arc<dyn Here>, u32)> {
        let found = outbound.objects()?.here(asked)?;
        let here = Arc::downgrade(&found.0);
        if let Err(here) = self.first.set(here) {
            *self.last.write() = Some(here);
        }
        Some(found)
    }

    /// One that is there, and not to be looked for.
    pub(super) fn fixed(id: ObjectId, found: Found) -> Self {
        Self {
            fixed: Some(found),
            ..Self::new(id, None)
        }
    }

    /// Whether the last call found it to be another host's. Whether that is so still, the next one asks.
    #[inline]
    pub(super) fn is_elsewhere(&self) -> bool {
        self.is_elsewhere.load(Ordering::Relaxed)
    }

    /// The way that the last call took to another host, if that is the way still.
    #[inline]
    pub(super) fn elsewhere(&self, objects: &dyn Objects) -> Option<(Arc<PeerLink>, Found)> {
        if !self.is_elsewhere() {
            return None;
        }
        let elsewhere = self.elsewhere.read();
        let Elsewhere { known, link } = elsewhere.as_ref()?;
        let link = link.upgrade().filter(|link| link.is_used())?;
        objects.holds(known).then(|| (link, Found::known(known)))
    }

    /// It was found there, or not elsewhere.
    pub(super) fn is_found(&self, elsewhere: Option<(Arc<KnownSpot>, &Arc<PeerLink>)>) {
        let is_elsewhere = elsewhere.is_some();
        if let Some((known, link)) = elsewhere {
            let link = Arc::downgrade(link);
            *self.elsewhere.write() = Some(Elsewhere { known, link });
        }
        if self.is_elsewhere() != is_elsewhere {
            self.is_elsewhere.store(is_elsewhere, Ordering::Relaxed);
        }
    }
}

/// Something for Spots, as it came in.
pub(crate) struct Arrival<'a> {
    /// Over which mesh.
    pub(crate) mesh: &'a MeshName,
    pub(crate) source: &'a Rid,
    pub(crate) record: Bytes,
    pub(crate) what: Arrived<'a>,
    /// Of a request.
    pub(crate) reply: Option<ReplyTo>,
    pub(crate) permit: Permit,
    /// When it was read.
    pub(crate) at: Instant,
}

/// What came in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arrived<'a> {
    Call(&'a ObjectCall),
    Control(&'a Control),
    Publish(&'a Publish),
}

impl<'a> Arrived<'a> {
    /// What of a record is for Spots.
    pub(super) fn of(incoming: &'a Incoming) -> Option<Self> {
        match incoming {
            Incoming::Object(call) => Some(Self::Call(call)),
            Incoming::Control(control) => Some(Self::Control(control)),
            Incoming::Publish(publish) => Some(Self::Publish(publish)),
            _ => None,
        }
    }
}

impl fmt::Debug for Arrival<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arrival")
            .field("what", &self.what)
            .finish_non_exhaustive()
    }
}
