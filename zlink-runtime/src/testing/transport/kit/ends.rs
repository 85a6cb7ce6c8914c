//! Ends of links: servers that hand them on or echo, admitted pairs, round trips.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

use super::super::Rig;
use super::{COMPLETION, Collector, ORDINARY, number, offer, record};
use crate::permit::{HostPermits, Permit};
use crate::transport::{
    Acceptor, CloseReason, Endpoint, Lane, Lanes, Link, Listener, Offer, Peer, Record, Sink, SocketType,
};

/// Hands accepted links to whoever waits.
struct Accepted(tokio::sync::mpsc::UnboundedSender<Arc<dyn Link>>);

impl Acceptor for Accepted {
    fn accepted(&self, link: Arc<dyn Link>) {
        let _ = self.0.send(link);
    }
}

/// A bound endpoint and what it accepts.
pub struct Server {
    pub listener: Box<dyn Listener>,
    links: tokio::sync::mpsc::UnboundedReceiver<Arc<dyn Link>>,
}

impl Server {
    pub async fn bind(rig: &Rig, endpoint: &str, offer: Offer) -> Self {
        let (sender, links) = tokio::sync::mpsc::unbounded_channel();
        let endpoint: Endpoint = endpoint.parse().unwrap();
        let listener = rig
            .listening()
            .bind(&endpoint, offer, Arc::new(Accepted(sender)))
            .await
            .unwrap();
        Self { listener, links }
    }

    pub async fn accept(&mut self) -> Arc<dyn Link> {
        tokio::time::timeout(Duration::from_secs(10), self.links.recv())
            .await
            .expect("a link in time")
            .unwrap()
    }

    pub fn endpoint(&self) -> &Endpoint {
        self.listener.endpoint()
    }

    /// Dials it with that offer, and admits it with records of at most 1,000 bytes.
    pub async fn dialled(&self, rig: &Rig, offer: Offer) -> End {
        let permits = offer.permits.clone();
        let link = rig.transport().dial(self.endpoint(), offer).await.unwrap();
        End::new(link, &permits, 1000)
    }
}

/// One end of an admitted link.
pub struct End {
    pub link: Arc<dyn Link>,
    pub heard: Collector,
    pub permits: HostPermits,
}

impl End {
    pub fn new(link: Arc<dyn Link>, permits: &HostPermits, max_record: usize) -> Self {
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
pub async fn linked(rig: &Rig, endpoint: &str, change: impl Fn(&mut Offer)) -> (End, End, Server) {
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
    let mut server = Server::bind(rig, endpoint, listening).await;
    let link = rig.transport().dial(server.endpoint(), client).await.unwrap();
    let accepted = server.accept().await;
    (End::new(link, &ours, max), End::new(accepted, &theirs, max), server)
}

impl End {
    /// Sends numbered records, and waits for each to come back as a completion.
    pub async fn round_trips(&self, count: u32) {
        for n in 0..count {
            let before = self.heard.len();
            self.link
                .send(Lane::Data, record(ORDINARY, n, 100))
                .await
                .expect("an open link");
            self.heard.more_than(before).await;
            assert_eq!(self.heard.with(|heard| number(&heard.records[before].1)), n);
        }
    }
}

/// Sends each record back as a completion, and gives its permit back.
pub struct EchoSink(Arc<dyn Link>, Arc<Mutex<Numbers>>);

#[derive(Default)]
struct Numbers {
    links: Vec<Arc<dyn Link>>,
    peer: Option<Peer>,
    accepted: usize,
    closed: usize,
}

impl EchoSink {
    pub fn new(link: Arc<dyn Link>) -> Arc<Self> {
        Arc::new(Self(link, Arc::default()))
    }
}

impl Sink for EchoSink {
    fn record(&self, _: Lane, record: Bytes, _: Option<Permit>, _: tokio::time::Instant) {
        let mut reply = record.to_vec();
        if let Some(kind) = reply.get_mut(1) {
            *kind = COMPLETION;
        }
        // A peer that floods without reading gets no echo: a sink must not wait.
        let _ = self.0.try_send(
            Lane::Completion,
            Record {
                head: &reply,
                payload: &[],
            },
        );
    }

    fn closed(&self, _: &CloseReason) {
        let mut numbers = self.1.lock();
        numbers.closed += 1;
        numbers.links.retain(|link| link.id() != self.0.id());
    }
}

struct EchoAcceptor(Arc<Mutex<Numbers>>);

impl Acceptor for EchoAcceptor {
    fn accepted(&self, link: Arc<dyn Link>) {
        let mut numbers = self.0.lock();
        numbers.accepted += 1;
        numbers.links.push(link.clone());
        numbers.peer = Some(link.peer().clone());
        drop(numbers);
        link.start(Arc::new(EchoSink(link.clone(), self.0.clone())));
        link.admit(1 << 20);
    }
}

/// A listener that admits everybody and echoes.
pub struct Echo {
    rig: Rig,
    listener: Box<dyn Listener>,
    numbers: Arc<Mutex<Numbers>>,
    pub permits: HostPermits,
}

impl Echo {
    pub async fn bind(rig: &Rig, endpoint: &str) -> Self {
        let (numbers, permits) = (Arc::default(), HostPermits::new(1000));
        let acceptor = Arc::new(EchoAcceptor(Arc::clone(&numbers)));
        let listener = rig
            .listening()
            .bind(&endpoint.parse().unwrap(), offer("echo", &permits), acceptor)
            .await
            .unwrap();
        Self {
            rig: rig.clone(),
            listener,
            numbers,
            permits,
        }
    }

    pub fn endpoint(&self) -> &Endpoint {
        self.listener.endpoint()
    }

    pub fn acceptor(&self) -> Arc<dyn Acceptor> {
        Arc::new(EchoAcceptor(self.numbers.clone()))
    }

    pub fn accepted(&self) -> usize {
        self.numbers.lock().accepted
    }

    pub fn closed(&self) -> usize {
        self.numbers.lock().closed
    }

    /// Who came last.
    pub fn peer(&self) -> Option<Peer> {
        self.numbers.lock().peer.clone()
    }

    pub fn links(&self) -> Vec<Arc<dyn Link>> {
        self.numbers.lock().links.clone()
    }

    pub async fn client(&self, identity: &str) -> End {
        let permits = HostPermits::new(1000);
        let link = self
            .rig
            .transport()
            .dial(self.endpoint(), offer(identity, &permits))
            .await
            .unwrap();
        End::new(link, &permits, 1 << 20)
    }
}

/// A link whose listener has `max` permits.
pub async fn with_permits(rig: &Rig, max: u32, lanes: Lanes) -> (End, End, Server) {
    let (ours, theirs) = (HostPermits::new(1000), HostPermits::new(max));
    let mut server = Server::bind(rig, "tcp://127.0.0.1:0", offer("server", &theirs)).await;
    let socket = if lanes == Lanes::One {
        SocketType::Dealer
    } else {
        SocketType::Router
    };
    let link = rig
        .transport()
        .dial(
            server.endpoint(),
            Offer {
                lanes,
                socket,
                ..offer("client", &ours)
            },
        )
        .await
        .unwrap();
    let accepted = server.accept().await;
    (
        End::new(link, &ours, 1 << 20),
        End::new(accepted, &theirs, 1 << 20),
        server,
    )
}
