//! What the transport tests share: sinks that remember, ends of links, records, waits with a deadline.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use zlink_runtime::id::{Generation, Rid};
use zlink_runtime::permit::{HostPermits, Permit};
use zlink_runtime::transport::{
    Acceptor, CloseReason, Endpoint, Flow, Lane, Lanes, Link, LinkConfig, LinkTransport, Listener, Offer, Sink,
    SocketType, Transport,
};

/// The kind byte that tests use for completions.
pub(crate) const COMPLETION: u8 = 32;
/// The kind byte that tests use for everything else.
pub(crate) const ORDINARY: u8 = 16;

pub(crate) fn transport() -> LinkTransport {
    LinkTransport::new(config())
}

pub(crate) fn config() -> LinkConfig {
    LinkConfig::default()
}

pub(crate) fn offer(identity: &str, permits: &HostPermits) -> Offer {
    Offer {
        socket: SocketType::Router,
        identity: Rid::new(identity).unwrap(),
        generation: Generation::random(),
        lanes: Lanes::Two,
        max_record: 1 << 20,
        budget: 4 << 20,
        permits: permits.clone(),
        flow: Flow::default(),
    }
}

/// A record of a kind, with a number and `padding` more bytes.
pub(crate) fn record(kind: u8, number: u32, padding: usize) -> Vec<u8> {
    let mut record = vec![1, kind];
    record.extend(number.to_le_bytes());
    record.resize(6 + padding, 0x5a);
    record
}

/// The number of a record, and whether all the rest is as it was made.
pub(crate) fn number(record: &[u8]) -> u32 {
    assert!(record[6..].iter().all(|byte| *byte == 0x5a), "the padding is damaged");
    u32::from_le_bytes(record[2..6].try_into().unwrap())
}

/// What a sink has heard.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) records: Vec<(Lane, Bytes, Option<Permit>)>,
    pub(crate) endings: usize,
    pub(crate) closed: Vec<CloseReason>,
}

/// A sink that remembers; `keep` decides whether permits and records are kept.
#[derive(Clone, Default)]
pub(crate) struct Collector(Arc<Mutex<Heard>>);

impl Sink for Collector {
    fn record(&self, lane: Lane, record: Bytes, permit: Option<Permit>) {
        self.0.lock().records.push((lane, record, permit));
    }

    fn ending(&self) {
        self.0.lock().endings += 1;
    }

    fn closed(&self, reason: &CloseReason) {
        self.0.lock().closed.push(reason.clone());
    }
}

impl Collector {
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Heard) -> T) -> T {
        look(&mut self.0.lock())
    }

    pub(crate) fn len(&self) -> usize {
        self.with(|heard| heard.records.len())
    }

    pub(crate) fn numbers(&self, on: Lane) -> Vec<u32> {
        self.with(|heard| {
            heard
                .records
                .iter()
                .filter(|(lane, ..)| *lane == on)
                .map(|(_, r, _)| number(r))
                .collect()
        })
    }

    /// Gives all permits back.
    pub(crate) fn release(&self) {
        self.with(|heard| heard.records.iter_mut().for_each(|(.., permit)| *permit = None));
    }

    pub(crate) fn reason(&self) -> Option<CloseReason> {
        self.with(|heard| heard.closed.first().cloned())
    }
}

/// Hands accepted links to whoever waits.
pub(crate) struct Accepted(tokio::sync::mpsc::UnboundedSender<Arc<dyn Link>>);

impl Acceptor for Accepted {
    fn accepted(&self, link: Arc<dyn Link>) {
        let _ = self.0.send(link);
    }
}

/// A bound endpoint and what it accepts.
pub(crate) struct Server {
    pub(crate) listener: Box<dyn Listener>,
    links: tokio::sync::mpsc::UnboundedReceiver<Arc<dyn Link>>,
}

impl Server {
    pub(crate) async fn bind(transport: &dyn Transport, endpoint: &str, offer: Offer) -> Self {
        let (sender, links) = tokio::sync::mpsc::unbounded_channel();
        let endpoint: Endpoint = endpoint.parse().unwrap();
        let listener = transport
            .bind(&endpoint, offer, Arc::new(Accepted(sender)))
            .await
            .unwrap();
        Self { listener, links }
    }

    pub(crate) async fn accept(&mut self) -> Arc<dyn Link> {
        tokio::time::timeout(Duration::from_secs(10), self.links.recv())
            .await
            .expect("a link in time")
            .unwrap()
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        self.listener.endpoint()
    }
}

/// One end of an admitted link.
pub(crate) struct End {
    pub(crate) link: Arc<dyn Link>,
    pub(crate) heard: Collector,
    pub(crate) permits: HostPermits,
}

impl End {
    pub(crate) fn new(link: Arc<dyn Link>, permits: &HostPermits, max_record: usize) -> Self {
        let heard = Collector::default();
        link.start(Arc::new(heard.clone()));
        link.admit(max_record);
        Self {
            link,
            heard,
            permits: permits.clone(),
        }
    }
}

/// Two admitted ends over `endpoint`: the dialler, the listener, and what keeps it bound.
pub(crate) async fn linked(endpoint: &str, change: impl Fn(&mut Offer)) -> (End, End, Server) {
    let (ours, theirs) = (HostPermits::new(1000), HostPermits::new(1000));
    let made = |name, permits| {
        let mut offer = offer(name, permits);
        change(&mut offer);
        offer
    };
    let (client, listening) = (made("client", &ours), made("server", &theirs));
    let listening = Offer {
        socket: SocketType::Router,
        ..listening
    };
    let max = client.max_record;
    let transport = transport();
    let mut server = Server::bind(&transport, endpoint, listening).await;
    let link = transport.dial(server.endpoint(), client).await.unwrap();
    let accepted = server.accept().await;
    (End::new(link, &ours, max), End::new(accepted, &theirs, max), server)
}

/// Waits until `condition` holds; says what was missed if it does not within ten seconds.
#[track_caller]
pub(crate) fn until(what: &'static str, mut condition: impl FnMut() -> bool) -> impl Future<Output = ()> {
    let at = std::panic::Location::caller();
    async move {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !condition() {
            assert!(Instant::now() < deadline, "{at}: not in time: {what}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Polls a future once, outside any task.
pub(crate) fn futures_poll<F: Future + Unpin>(future: &mut F) -> std::task::Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
}
