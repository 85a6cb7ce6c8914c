//! Intents over a transport that answers every hello alike, on paused time.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use bytes::Bytes;

use super::*;
use crate::id::{Generation, LinkId, MeshName};
use crate::mesh::info::{NodeState, Operations, Scope};
use crate::mesh::links::{Links, LinksConfig};
use crate::mesh::{NodeInfo, ObjectRole, ObjectServer, PeerLink, PeerView, Upcall};
use crate::message::codec;
use crate::permit::{Flow, HostPermits, Permit};
use crate::random::Random;
use crate::transport::{
    Acceptor, BoxFuture, Held, Lane, Lanes, Link, LinkStats, Listener, Offer, Peer, Record, Refused, Sink, SocketType,
    Transport,
};
use crate::wire;

/// Dials succeed, and every link is answered with the record that is set.
#[derive(Clone, Debug, Default)]
struct Answering(Arc<State>);

#[derive(Debug, Default)]
struct State {
    dials: Mutex<Vec<tokio::time::Instant>>,
    answer: Mutex<Vec<u8>>,
}

impl Answering {
    fn answer(&self, record: Vec<u8>) {
        *self.0.answer.lock() = record;
    }

    fn dials(&self) -> usize {
        self.0.dials.lock().len()
    }
}

impl Transport for Answering {
    fn bind<'a>(
        &'a self,
        _: &'a Endpoint,
        _: Offer,
        _: Arc<dyn Acceptor>,
    ) -> BoxFuture<'a, Result<Box<dyn Listener>, TransportError>> {
        Box::pin(std::future::pending())
    }

    fn dial<'a>(&'a self, _: &'a Endpoint, _: Offer) -> BoxFuture<'a, Result<Arc<dyn Link>, TransportError>> {
        Box::pin(async {
            let mut dials = self.0.dials.lock();
            dials.push(clock::now());
            let link: Arc<dyn Link> = Arc::new(Answered {
                id: LinkId(dials.len() as u64),
                peer: Peer {
                    identity: None,
                    generation: None,
                    socket: SocketType::Router,
                    lanes: Lanes::Two,
                    dialled: true,
                    address: None,
                },
                answer: self.0.answer.lock().clone(),
                sink: OnceLock::new(),
                closed: Mutex::new(false),
            });
            Ok(link)
        })
    }
}

struct Answered {
    id: LinkId,
    peer: Peer,
    answer: Vec<u8>,
    sink: OnceLock<Arc<dyn Sink>>,
    closed: Mutex<bool>,
}

impl std::fmt::Debug for Answered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.id.fmt(f)
    }
}

impl Link for Answered {
    fn id(&self) -> LinkId {
        self.id
    }

    fn peer(&self) -> &Peer {
        &self.peer
    }

    fn start(&self, sink: Arc<dyn Sink>) {
        let _ = self.sink.set(sink);
    }

    fn admit(&self, _: usize) {}

    fn try_send(&self, _: Lane, record: Record<'_>) -> Result<(), Refused> {
        if record.head.get(1) == Some(&RecordKind::Hello.to_wire())
            && let Some(sink) = self.sink.get()
        {
            sink.record(
                Lane::Data,
                Bytes::from(self.answer.clone()),
                None,
                tokio::time::Instant::now(),
            );
        }
        Ok(())
    }

    fn send(&self, _: Lane, _: Vec<u8>) -> BoxFuture<'static, Result<(), Refused>> {
        Box::pin(async { Ok(()) })
    }

    fn announce(&self, _: Flow) -> Result<(), Refused> {
        Ok(())
    }

    fn held(&self) -> Held {
        Held::default()
    }

    fn close(&self, reason: CloseReason, _: Duration) {
        if !std::mem::replace(&mut *self.closed.lock(), true)
            && let Some(sink) = self.sink.get()
        {
            sink.closed(&reason);
        }
    }

    fn stats(&self) -> LinkStats {
        LinkStats::default()
    }
}

struct Nobody;

impl Upcall for Nobody {
    fn record(&self, _: &Arc<PeerLink>, _: Bytes, _: Option<Permit>, _: tokio::time::Instant) {}
    fn peers_changed(&self, _: u64, _: &[PeerView], _: Option<&str>) {}
    fn link_closed(&self, _: &Arc<PeerLink>, _: &CloseReason) {}
    fn waits_on(&self, _: LinkId) -> bool {
        false
    }
}

fn about(rid: &str) -> NodeInfo {
    NodeInfo {
        scope: Scope::Mesh(MeshName::from_static("shop")),
        rid: Rid::new(rid).unwrap(),
        generation: Generation::from_wire(7).unwrap(),
        revision: 1,
        role: ObjectRole::None,
        channels: Vec::new(),
        endpoint: String::new(),
        security_identity: String::new(),
        max_message: 1 << 20,
        state: NodeState::Serving,
        operations: Operations::default(),
        objects: ObjectServer::default(),
    }
}

fn links(transport: &Answering) -> Links {
    Links::new(LinksConfig {
        info: about("local"),
        transport: Arc::new(transport.clone()),
        permits: HostPermits::new(10),
        flow: None,
        budget: 1000,
        receive_budget: None,
        upcall: Arc::new(Nobody),
        runtime: tokio::runtime::Handle::current(),
        random: Random::seeded(7),
    })
}

fn admit(rid: &str) -> Vec<u8> {
    codec::encode(&about(rid).to_wire(), |body| wire::service(RecordKind::Admit, body)).unwrap()
}

async fn seconds(count: u64) {
    for _ in 0..count {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Neither a side that is not needed nor one that is somebody else is dialled on and on; once it has become another,
/// a minute is the longest that it takes to be found.
///
/// REQ: NET-503, NET-505
#[tokio::test(start_paused = true)]
async fn what_is_refused_for_good_is_asked_about_once_a_minute() {
    let not_required = wire::service(RecordKind::NotRequired, &[]);
    for (answer, state) in [
        (not_required, PeerState::NotRequired),
        (admit("somebody else"), PeerState::NotConnected),
    ] {
        let transport = Answering::default();
        transport.answer(answer);
        let links = links(&transport);
        let (endpoint, wanted) = (
            "tcp://127.0.0.1:1".parse::<Endpoint>().unwrap(),
            Rid::new("wanted").unwrap(),
        );
        links.connect(endpoint.clone(), Some(wanted.clone()));
        seconds(40).await;
        assert_eq!(transport.dials(), 1);
        seconds(560).await;
        let dials = transport.dials();
        assert!((8..=14).contains(&dials), "{dials} dials in ten minutes");
        assert_eq!(links.intents()[0].state(), state);

        // Somebody who asks need not wait.
        for _ in 0..5 {
            links.connect(endpoint.clone(), Some(wanted.clone()));
            seconds(1).await;
        }
        assert!(transport.dials() >= dials + 5);

        // And without anybody asking, a peer that has changed is found.
        transport.answer(admit("wanted"));
        let mut waited = 0;
        while links.intents()[0].state() != PeerState::Ready {
            waited += 1;
            assert!(waited <= 76, "it is not found in 76 s");
            seconds(1).await;
        }
        links.abandon();
    }
}

/// Nothing goes onto a link once this side has said that it needs it no more, nor by way of waiting for room there.
#[tokio::test(start_paused = true)]
async fn a_link_that_was_given_up_takes_no_calls() {
    let transport = Answering::default();
    transport.answer(admit("peer"));
    let links = links(&transport);
    links.connect("tcp://127.0.0.1:1".parse().unwrap(), None);
    seconds(1).await;
    let crate::mesh::Lookup::Ready(peer) = links.find(&Rid::new("peer").unwrap()) else {
        panic!("no link");
    };
    let record = Record {
        head: &[1, 20, 0, 0],
        payload: &[],
    };
    assert_eq!(peer.try_send(Lane::Data, record), Ok(()));
    assert_eq!(peer.send(Lane::Data, record.head.to_vec()).await, Ok(()));
    assert!(peer.mark_retire_sent());
    assert_eq!(peer.try_send(Lane::Data, record), Err(Refused::Closed));
    assert_eq!(peer.send(Lane::Data, record.head.to_vec()).await, Err(Refused::Closed));
    assert_eq!(peer.try_send(Lane::Completion, record), Ok(()), "replies still go");
    links.abandon();
}

/// Every other refusal is one that the next attempt may not meet: attempts slow down to one in five seconds.
///
/// REQ: NET-603
#[tokio::test(start_paused = true)]
async fn other_refusals_are_asked_about_again_soon() {
    let transport = Answering::default();
    let reject = wire::Reject {
        reason: RejectReason::NotServing,
        text: "later".into(),
    };
    transport.answer(codec::encode(&reject, |body| wire::service(RecordKind::Reject, body)).unwrap());
    let links = links(&transport);
    links.connect("tcp://127.0.0.1:1".parse().unwrap(), None);
    seconds(60).await;
    let per_gap: BTreeMap<bool, usize> =
        transport
            .0
            .dials
            .lock()
            .windows(2)
            .fold(BTreeMap::new(), |mut count, pair| {
                *count.entry(pair[1] - pair[0] <= Duration::from_secs(5)).or_default() += 1;
                count
            });
    assert_eq!(per_gap.get(&false), None, "never more than five seconds apart");
    assert!(transport.dials() >= 12, "{} dials", transport.dials());
    links.abandon();
}
