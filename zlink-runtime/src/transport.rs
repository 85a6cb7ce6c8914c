//! What carries records between two endpoints: links, their lanes, their budgets, their receive flow.
//!
//! A transport knows bytes, lanes and permits. It must not know packet names, channels, meshes or who is admitted:
//! the floor above decides that on the first records of a link, and calls [`Link::admit`] or [`Link::close`].

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::error::ArgumentError;
use crate::id::{Generation, LinkId, Rid};
use crate::limit::LINK_BUDGET_BYTES;
use crate::permit::{HostPermits, Permit};

mod endpoint;
mod link;
mod pubsub;
mod sending;
#[cfg(feature = "testing")]
pub(crate) mod simulated;
#[cfg(feature = "zeromq")]
mod zeromq;
pub mod zmtp;

pub use crate::permit::Flow;
pub use crate::wire::{is_completion, is_service, spend};
pub use endpoint::{Endpoint, InvalidEndpoint};
#[cfg(fuzzing)]
#[doc(hidden)]
pub use link::Receiver;
pub use link::{LinkConfig, LinkTransport};
pub use pubsub::Connections;
pub(crate) use pubsub::{Incoming, Message, Publisher, Received, Topics, Unpublished};
#[cfg(feature = "zeromq")]
pub use zeromq::ZeromqTransport;

/// A boxed future, as object-safe traits need it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A way to carry records. Every implementation passes the suite of `zlink_runtime::testing::transport`.
pub trait Transport: Send + Sync + fmt::Debug + 'static {
    /// Whether it is made so that it can carry links at all: a host asks before it starts anything.
    ///
    /// # Errors
    /// What it was made with, and why that cannot be.
    fn check(&self) -> Result<(), ArgumentError> {
        Ok(())
    }

    /// Binds `endpoint` and accepts from then on. Each link that has finished its transport handshake (both lanes,
    /// where it has two) is given to `acceptor`, once.
    ///
    /// # Errors
    /// Where the endpoint cannot be bound.
    fn bind<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        offer: Offer,
        acceptor: Arc<dyn Acceptor>,
    ) -> BoxFuture<'a, Result<Box<dyn Listener>, TransportError>>;

    /// Makes one attempt to connect, both lanes. Dropping the future abandons it.
    ///
    /// # Errors
    /// Where the peer cannot be reached, or its handshake fails or takes longer than two seconds.
    fn dial<'a>(&'a self, endpoint: &'a Endpoint, offer: Offer)
    -> BoxFuture<'a, Result<Arc<dyn Link>, TransportError>>;

    /// What classic fanout connects with, which knows no links. `None` where this transport carries none: a host with a
    /// fanout does not start then.
    fn connections(&self) -> Option<Connections> {
        None
    }
}

/// A bound endpoint. Dropping it stops accepting; its links live on.
pub trait Listener: Send + Sync + fmt::Debug {
    /// What was really bound: never port 0.
    fn endpoint(&self) -> &Endpoint;

    /// Stops accepting, as dropping it does; the endpoint is free for others once the future is ready.
    fn close(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// Takes accepted links. Called on the transport's own tasks: it must not block.
pub trait Acceptor: Send + Sync {
    /// A link has finished its transport handshake. Nothing is read from it until [`Link::start`].
    fn accepted(&self, link: Arc<dyn Link>);
}

impl Offer {
    /// What [`Offer::receive_budget`] says, or `own`.
    fn receives(&self, own: usize) -> usize {
        self.receive_budget.unwrap_or(own)
    }
}

/// What this side says in the handshake, and the bounds it keeps.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The ZeroMQ socket type this side speaks as.
    pub socket: SocketType,
    /// This side's identity.
    pub identity: Rid,
    /// This side's run.
    pub generation: Generation,
    /// Whether a dialled link has a completion lane of its own. A listener takes what the dialler brings.
    pub lanes: Lanes,
    /// The greatest record accepted or sent before the link is admitted with a bound of its own, in bytes.
    pub max_record: usize,
    /// Bytes held for sending before senders wait.
    pub budget: usize,
    /// Bytes that are read ahead of what was handed on, beside one record; the transport's own measure where it is not set.
    pub receive_budget: Option<usize>,
    /// Where a record's permit comes from.
    pub permits: HostPermits,
    /// The receive flow that new links announce at once; later values come through [`Link::announce`].
    pub flow: Flow,
}

/// How many bytes a link holds per direction before senders, or the peer, wait, chosen by what it is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LinkProfile {
    /// 1 MiB: many peers on a small machine.
    Compact,
    /// 512 KiB: little waits, so nothing waits long.
    LowLatency,
    /// 4 MiB.
    #[default]
    Balanced,
    /// 16 MiB: long bursts, large messages.
    Throughput,
}

impl LinkProfile {
    /// The budget of each link, per direction, in bytes.
    #[must_use]
    pub const fn budget(self) -> usize {
        match self {
            LinkProfile::Compact => LINK_BUDGET_BYTES / 4,
            LinkProfile::LowLatency => LINK_BUDGET_BYTES / 8,
            LinkProfile::Balanced => LINK_BUDGET_BYTES,
            LinkProfile::Throughput => 4 * LINK_BUDGET_BYTES,
        }
    }
}

/// The ZeroMQ socket types that links speak as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SocketType {
    /// A MeshNode, or a ClientServer server.
    Router,
    /// A ClientServer client.
    Dealer,
    /// A plain ZeroMQ REQ peer; never ours.
    Req,
}

/// How many connections a link has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// One for everything, in one order: ClientServer, and every plain ZeroMQ peer.
    One,
    /// Data and completions apart, so that replies pass while data stands still.
    Two,
}

/// Which connection a record travels on. On a link with one lane both mean that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Everything that needs a permit where it arrives.
    Data,
    /// Replies and error completions, and what a side that is paused must hear: that its peer drains, or has another
    /// weight.
    Completion,
}

/// Who is at the other end, as the transport handshake told.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its identity; a plain ZeroMQ peer may have none.
    pub identity: Option<Rid>,
    /// Its run; a plain ZeroMQ peer has none.
    pub generation: Option<Generation>,
    /// The socket type it speaks as.
    pub socket: SocketType,
    /// The lanes of this link.
    pub lanes: Lanes,
    /// Whether this side dialled.
    pub dialled: bool,
    /// Where it is, where the transport has addresses.
    pub address: Option<SocketAddr>,
}

/// One link: what both sides can send and receive until it closes. A new connection is a new link.
pub trait Link: Send + Sync + fmt::Debug {
    /// This link, in this process.
    fn id(&self) -> LinkId;

    /// The other end.
    fn peer(&self) -> &Peer;

    /// Begins to read, into `sink`. Until [`Link::admit`] no permit is taken, at most
    /// [`HANDSHAKE_RECORDS`] records are read, and each is bounded by [`Offer::max_record`].
    fn start(&self, sink: Arc<dyn Sink>);

    /// Ends the handshake: from here on ordinary records need a permit before they are read, and a record in either
    /// direction has at most `max_record` bytes. Without it a link is closed two seconds after it was made.
    fn admit(&self, max_record: usize);

    /// Takes a record if there is room and nobody waits; the record is then sent, in this order, or lost with the link.
    ///
    /// # Errors
    /// [`Refused::Full`]: nothing was taken; use [`Link::send`]. [`Refused::Closed`]: the link has ended.
    /// [`Refused::TooLarge`]: it exceeds the link's greatest record.
    fn try_send(&self, lane: Lane, record: Record<'_>) -> Result<(), Refused>;

    /// Waits for room, behind those that wait already, and takes the record. Dropping the future before it is ready
    /// withdraws it for good.
    fn send(&self, lane: Lane, record: Vec<u8>) -> BoxFuture<'static, Result<(), Refused>>;

    /// Tells the peer this host's receive flow, ahead of what waits, unless a newer value was already told. It must not
    /// block.
    ///
    /// # Errors
    /// [`Refused::Closed`]: the link has ended. Any other: the peer goes on as it was told before; the host reports that.
    fn announce(&self, flow: Flow) -> Result<(), Refused>;

    /// What holds this link's data still at this moment. While anything does, its probe limit is frozen, as it is while
    /// [`LinkStats::moved`] rises.
    fn held(&self) -> Held;

    /// Ends the link. With a `linger`, what was taken is sent first, for at most that long. The sink hears
    /// [`Sink::closed`] once.
    fn close(&self, reason: CloseReason, linger: Duration);

    /// Figures for status and diagnosis.
    fn stats(&self) -> LinkStats;
}

impl Peer {
    /// Whether a record that has come on the data lane of an admitted link takes a permit before it is handed on. With a
    /// lane of their own for completions, all others do: none is known before it is read. On one lane for everything a
    /// completion takes none; and nobody calls who dialled such a link, so that to him nothing comes that would take one.
    #[must_use]
    pub fn takes_permit(&self, record: &[u8]) -> bool {
        match self.lanes {
            Lanes::Two => true,
            Lanes::One => !(is_completion(record) || self.dialled && is_service(record)),
        }
    }
}

/// Records that a link reads before it is admitted.
pub const HANDSHAKE_RECORDS: usize = 4;

/// A record to send, in the parts it was made of.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The head and whatever stands before the payload.
    pub head: &'a [u8],
    /// The payload; empty where the kind has none.
    pub payload: &'a [u8],
}

impl Record<'_> {
    /// Its whole length.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.head.len() + self.payload.len()
    }

    /// Whether it has no byte at all.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Why a record was not taken.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The byte budget is used up, the peer is paused, or others wait already.
    #[error("no room in the link's send budget")]
    Full,
    /// The link has ended.
    #[error("the link is closed")]
    Closed,
    /// The record exceeds what the link carries.
    #[error("the record exceeds the link's greatest message")]
    TooLarge,
}

crate::error::shown!(Refused);

/// What holds the data of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// The peer told us to pause.
    pub by_peer: bool,
    /// We told the peer to pause.
    pub by_us: bool,
    /// Its reader waits for a permit.
    pub for_permit: bool,
}

impl Held {
    /// Whether anything does.
    #[must_use]
    pub const fn any(self) -> bool {
        self.by_peer || self.by_us || self.for_permit
    }
}

/// Figures of one link since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Bytes taken and not yet given to the kernel.
    pub queued_bytes: usize,
    /// Received bytes that wait for permits.
    pub waiting_bytes: usize,
    /// Senders that wait for room.
    pub waiting_senders: usize,
    /// Records sent.
    pub sent: u64,
    /// Records received.
    pub received: u64,
    /// Times that received records were handed on, where the transport counts it; fewer than records when they came
    /// together.
    pub batches: u64,
    /// ZeroMQ messages sent; fewer than records when they were joined.
    pub messages_sent: u64,
    /// Times the peer told us to pause.
    pub pauses: u64,
    /// Pieces of records that were read or written while more of their record was to follow. While it rises, what stands
    /// behind such a record cannot be heard yet, a probe or its answer among it.
    pub moved: u64,
}

/// Takes what a link receives. Called on the link's own tasks, in order per lane: it must not block or run handlers.
pub trait Sink: Send + Sync {
    /// A record, taken from what was read at about `at`. `permit` is there for ordinary records of an admitted link;
    /// completions have none. Dropping it returns it.
    fn record(&self, lane: Lane, record: Bytes, permit: Option<Permit>, at: Instant);

    /// The peer has ended the link, or is gone: nothing can be sent to it any more. What it sent before may still
    /// follow, as permits come; then [`Sink::closed`]. Not told where nothing follows.
    fn ending(&self) {}

    /// The link has ended; nothing follows.
    fn closed(&self, reason: &CloseReason);
}

/// Why a link ended.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// The peer closed it in order.
    #[error("the peer closed the link")]
    PeerClosed,
    /// This side closed it in order.
    #[error("closed by this host: {0}")]
    Local(&'static str),
    /// A connection broke.
    #[error("connection lost: {0}")]
    Lost(String),
    /// The peer broke the protocol.
    #[error("protocol error: {0}")]
    Protocol(String),
    /// The peer did not answer in time.
    #[error("the peer did not answer in time: {0}")]
    Timeout(&'static str),
}

crate::error::shown!(CloseReason);

/// Why an endpoint could not be bound or dialled.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The endpoint cannot be bound.
    #[error("cannot listen on {endpoint}: {cause}")]
    Bind {
        /// The endpoint.
        endpoint: String,
        /// What the system said.
        cause: String,
    },
    /// The peer cannot be reached.
    #[error("cannot reach {endpoint}: {cause}")]
    Dial {
        /// The endpoint.
        endpoint: String,
        /// What the system said.
        cause: String,
    },
    /// The peer's transport handshake failed.
    #[error("handshake with {endpoint} failed: {cause}")]
    Handshake {
        /// The endpoint.
        endpoint: String,
        /// What was wrong.
        cause: String,
    },
    /// The scheme is not one that this transport carries.
    #[error("{endpoint}: this transport carries {carries} only")]
    Scheme {
        /// The endpoint.
        endpoint: String,
        /// The schemes it carries.
        carries: &'static str,
    },
}

crate::error::shown!(TransportError);

impl TransportError {
    /// That `endpoint` cannot be bound, and what to do about it where the system's words do not say.
    pub(crate) fn bind(endpoint: &Endpoint, error: &io::Error) -> Self {
        let advice = match error.kind() {
            io::ErrorKind::AddrInUse => "; something listens there already: end it, or listen elsewhere",
            io::ErrorKind::AddrNotAvailable => "; it is no address of this machine: name one that is, or `*` for all",
            _ => "",
        };
        Self::Bind {
            endpoint: endpoint.to_string(),
            cause: format!("{error}{advice}"),
        }
    }

    /// The same for whoever is shown no endpoint.
    pub(crate) fn without_endpoint(&self) -> String {
        match self {
            Self::Bind { cause, .. } => format!("cannot listen: {cause}"),
            Self::Dial { cause, .. } => format!("cannot be reached: {cause}"),
            Self::Handshake { cause, .. } => format!("the handshake failed: {cause}"),
            Self::Scheme { carries, .. } => format!("this transport carries {carries} only"),
        }
    }
}
