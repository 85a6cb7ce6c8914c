//! A peer that says whatever a test wants: a link of the public transport without a host above it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;
use zlink_generated::zlink_wire::{self as wire, Hello, NodeState, ObjectRole, RecordKind, Reject, Topology};
use zlink_runtime::error::{ErrorKind, Execution};
use zlink_runtime::id::{Generation, Rid};
use zlink_runtime::permit::{Flow, HostPermits, Permit};
use zlink_runtime::rt::{self, Message};
use zlink_runtime::transport::{
    Acceptor, CloseReason, Endpoint, Lane, Lanes, Link, LinkConfig, LinkTransport, Listener, Offer, Record, Refused,
    Sink, SocketType, Transport,
};

use super::until;

/// A record without a payload of its own: major 1, the kind, no flags, `rest`.
pub(crate) fn record(kind: RecordKind, rest: &[u8]) -> Vec<u8> {
    let mut record = vec![1, kind.to_wire(), 0, 0];
    record.extend_from_slice(rest);
    record
}

/// A service record with its message.
pub(crate) fn hello(kind: RecordKind, message: &impl Message) -> Vec<u8> {
    let mut whole = Vec::new();
    rt::encode(message, |body| whole = record(kind, body)).unwrap();
    whole
}

fn named(channel: &str, packet: &str) -> Vec<u8> {
    let mut names = Vec::new();
    for name in [channel, packet] {
        names.push(name.len() as u8);
        names.extend_from_slice(name.as_bytes());
    }
    names
}

/// A request to a channel, or to the node where it is empty, by name, with 10 s to go.
pub(crate) fn request(correlation: u64, channel: &str, packet: &str, message: &impl Message) -> Vec<u8> {
    let kind = if channel.is_empty() {
        RecordKind::NodeRequest
    } else {
        RecordKind::ChannelRequest
    };
    let mut whole = record(kind, &u32::MAX.to_le_bytes());
    whole.extend_from_slice(&correlation.to_le_bytes());
    whole.extend_from_slice(&10_000_u32.to_le_bytes());
    whole.extend_from_slice(&[0; 4]);
    whole.extend(named(channel, packet));
    rt::encode(message, |body| whole.extend_from_slice(body)).unwrap();
    whole
}

/// A one-way message to a channel, or to the node where it is empty, by name.
pub(crate) fn send(channel: &str, packet: &str, message: &impl Message) -> Vec<u8> {
    let kind = if channel.is_empty() {
        RecordKind::NodeSend
    } else {
        RecordKind::ChannelSend
    };
    let mut whole = record(kind, &u32::MAX.to_le_bytes());
    whole.extend(named(channel, packet));
    rt::encode(message, |body| whole.extend_from_slice(body)).unwrap();
    whole
}

/// What a node of the mesh `shop` that handles nothing would say of itself.
pub(crate) fn hello_of(rid: &str) -> Hello {
    Hello {
        topology: Topology::RouteMesh,
        scope: "shop".into(),
        rid: rid.into(),
        generation: 7,
        revision: 1,
        role: ObjectRole::None,
        endpoint: "tcp://127.0.0.1:1".into(),
        max_message: 64 << 20,
        state: NodeState::Serving,
        ..Hello::default()
    }
}

#[derive(Default)]
struct Heard {
    records: Vec<Bytes>,
    closed: Option<CloseReason>,
}

#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Heard>>);

impl Sink for Ear {
    fn record(&self, _: Lane, record: Bytes, _: Option<Permit>, _: Instant) {
        self.0.lock().records.push(record);
    }

    fn closed(&self, reason: &CloseReason) {
        self.0.lock().closed = Some(reason.clone());
    }
}

struct Accepting(mpsc::UnboundedSender<Arc<dyn Link>>);

impl Acceptor for Accepting {
    fn accepted(&self, link: Arc<dyn Link>) {
        let _ = self.0.send(link);
    }
}

/// Accepts links and says nothing by itself.
pub(crate) struct RawListener {
    listener: Box<dyn Listener>,
    links: mpsc::UnboundedReceiver<Arc<dyn Link>>,
    permits: HostPermits,
}

/// One end of a link with no host behind it.
pub(crate) struct Raw {
    pub(crate) generation: u64,
    link: Arc<dyn Link>,
    ear: Ear,
    permits: HostPermits,
    probes: AtomicU64,
}

/// A reply as it came.
pub(crate) struct Reply {
    pub(crate) correlation: u64,
    pub(crate) failed: Option<(ErrorKind, Execution)>,
}

fn transport() -> LinkTransport {
    LinkTransport::new(LinkConfig::default())
}

fn offer(rid: &str, generation: u64, socket: SocketType, permits: &HostPermits) -> Offer {
    Offer {
        socket,
        identity: Rid::new(rid).unwrap(),
        generation: Generation::from_wire(generation).unwrap(),
        lanes: if socket == SocketType::Router {
            Lanes::Two
        } else {
            Lanes::One
        },
        max_record: 1 << 20,
        budget: 4 << 20,
        receive_budget: None,
        permits: permits.clone(),
        flow: Flow::default(),
    }
}

impl RawListener {
    pub(crate) fn endpoint(&self) -> String {
        self.listener.endpoint().to_string()
    }

    /// The next link.
    pub(crate) async fn accept(&mut self) -> Raw {
        let link = super::soon("a link", self.links.recv()).await.unwrap();
        Raw::over(link, 7, &self.permits)
    }

    /// How many links came that nobody took.
    pub(crate) fn waiting(&self) -> usize {
        self.links.len()
    }
}

impl Raw {
    fn over(link: Arc<dyn Link>, generation: u64, permits: &HostPermits) -> Self {
        let ear = Ear::default();
        link.start(Arc::new(ear.clone()));
        Self {
            generation,
            link,
            ear,
            permits: permits.clone(),
            probes: AtomicU64::new(1 << 40),
        }
    }

    /// Listens as a MeshNode or a ClientServer server would.
    pub(crate) async fn listen(rid: &str) -> RawListener {
        let permits = HostPermits::new(1000);
        let (sender, links) = mpsc::unbounded_channel();
        let endpoint: Endpoint = super::ANY.parse().unwrap();
        let offer = offer(rid, 7, SocketType::Router, &permits);
        let listener = transport()
            .bind(&endpoint, offer, Arc::new(Accepting(sender)))
            .await
            .unwrap();
        RawListener {
            listener,
            links,
            permits,
        }
    }

    /// Dials, and says nothing yet. The connection proves what `hello` claims.
    pub(crate) async fn dial(endpoint: &str, hello: &Hello) -> Self {
        let permits = HostPermits::new(1000);
        let socket = match hello.topology {
            Topology::ClientServer => SocketType::Dealer,
            _ => SocketType::Router,
        };
        let rid = String::from_utf8(hello.rid.clone()).unwrap();
        let offer = offer(&rid, hello.generation.max(1), socket, &permits);
        let link = transport().dial(&endpoint.parse().unwrap(), offer).await.unwrap();
        Self::over(link, hello.generation, &permits)
    }

    /// Dials, says `hello`, and completes the handshake: an admitted peer.
    pub(crate) async fn join(endpoint: &str, hello: &Hello) -> Self {
        let raw = Self::dial(endpoint, hello).await;
        raw.say(&self::hello(RecordKind::Hello, hello));
        raw.heard(RecordKind::Admit).await;
        raw.link.admit(64 << 20);
        if hello.topology == Topology::RouteMesh {
            raw.say(&record(RecordKind::Ready, &[]));
        }
        raw
    }

    /// Answers the hello that comes with an admit of `hello`: an admitted peer.
    pub(crate) async fn admit(&self, hello: &Hello) {
        self.heard(RecordKind::Hello).await;
        self.say(&self::hello(RecordKind::Admit, hello));
        self.link.admit(64 << 20);
        if hello.topology == Topology::RouteMesh {
            self.heard(RecordKind::Ready).await;
        }
    }

    pub(crate) fn say(&self, record: &[u8]) {
        self.say_on(Lane::Data, record).unwrap();
    }

    pub(crate) fn say_on(&self, lane: Lane, record: &[u8]) -> Result<(), Refused> {
        self.link.try_send(
            lane,
            Record {
                head: record,
                payload: &[],
            },
        )
    }

    /// Waits until the other side has taken all that was said before, and all that it said before has come: a probe goes
    /// and comes in the order of the data.
    pub(crate) async fn round_trip(&self) {
        let id = self.probes.fetch_add(1, Ordering::Relaxed);
        let probe = |kind| {
            let mut rest = vec![0; 4];
            rest.extend_from_slice(&id.to_le_bytes());
            record(kind, &rest)
        };
        let (asked, ack) = (probe(RecordKind::Probe), probe(RecordKind::ProbeAck));
        self.push(asked).await;
        let ear = self.ear.clone();
        until("the answer to a probe", move || {
            let records = &mut ear.0.lock().records;
            let at = records.iter().position(|record| *record == ack);
            at.map(|at| records.remove(at)).is_some()
        })
        .await;
    }

    /// Says hello in these bytes, and is admitted.
    pub(crate) async fn expect_admit(&self, hello: &[u8]) {
        self.say(hello);
        self.heard(RecordKind::Admit).await;
    }

    /// Asks a channel, or the node where it is empty, by name.
    pub(crate) fn ask(&self, correlation: u64, channel: &str, packet: &str, message: &impl Message) {
        self.say(&request(correlation, channel, packet, message));
    }

    /// The next reply.
    pub(crate) async fn reply(&self) -> Reply {
        let record = self.heard(RecordKind::Reply).await;
        let execution = if record[6] == 0 {
            Execution::NotExecuted
        } else {
            Execution::Unknown
        };
        let failed = ErrorKind::from_number(record[5]).unwrap();
        Reply {
            correlation: u64::from_le_bytes(record[8..16].try_into().unwrap()),
            failed: (record[4] == 1).then_some((failed, execution)),
        }
    }

    /// Says it, behind all that waits, when there is room.
    pub(crate) async fn push(&self, record: Vec<u8>) {
        self.link.send(Lane::Data, record).await.unwrap();
    }

    /// The first record of that kind that was not taken yet; waits for it.
    pub(crate) async fn heard(&self, kind: RecordKind) -> Bytes {
        let is_kind = |record: &Bytes| record.get(1) == Some(&kind.to_wire());
        until(&format!("a {kind:?}"), || self.ear.0.lock().records.iter().any(is_kind)).await;
        let records = &mut self.ear.0.lock().records;
        let at = records.iter().position(is_kind).unwrap();
        records.remove(at)
    }

    /// How many records of that kind came and were not taken.
    pub(crate) fn count(&self, kind: RecordKind) -> usize {
        let heard = self.ear.0.lock();
        heard
            .records
            .iter()
            .filter(|record| record.get(1) == Some(&kind.to_wire()))
            .count()
    }

    /// The reason of the reject that comes.
    pub(crate) async fn rejected(&self) -> wire::RejectReason {
        let record = self.heard(RecordKind::Reject).await;
        rt::decode::<Reject>(&record[4..]).unwrap().reason
    }

    /// Waits for the end of the link.
    #[track_caller]
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + use<> {
        let ear = self.ear.clone();
        until("the end of the link", move || ear.0.lock().closed.is_some())
    }

    pub(crate) fn is_open(&self) -> bool {
        self.ear.0.lock().closed.is_none()
    }

    /// Ends the link at once.
    pub(crate) fn leave(&self) {
        self.link.close(CloseReason::Local("the test ends it"), Duration::ZERO);
    }

    /// Tells the peer to hold requests back, or to go on.
    pub(crate) fn announce(&self, version: u64, paused: bool) {
        self.link.announce(Flow { version, paused }).unwrap();
    }

    /// The link itself.
    pub(crate) fn link(&self) -> &Arc<dyn Link> {
        &self.link
    }

    pub(crate) fn permits(&self) -> &HostPermits {
        &self.permits
    }
}
