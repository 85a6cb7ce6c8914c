//! What one link receives: first its handshake, then service records, which end here, and all else, which goes up.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::clock;
use crate::id::{Generation, Rid};
use crate::message::codec;
use crate::permit::Permit;
use crate::transport::{CloseReason, Lane, Link, Sink};
use crate::wire::{self, Incoming, RecordKind, RejectReason};

use super::admission::{Verdict, judge};
use super::info::{NodeInfo, Refusal};
use super::intent::Intent;
use super::links::Inner;
use super::peer::PeerLink;
use super::table::Placed;

/// How an attempt to link ended, for the intent behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The link to that run of a peer was ready, and has ended.
    AfterReady(Rid, Generation, CloseReason),
    /// It ended before it was ready.
    BeforeReady(CloseReason),
    /// One side refused it.
    Refused {
        refusal: Refusal,
        by_peer: bool,
        /// The run of the peer that was refused.
        run: Option<(Rid, Generation)>,
    },
    /// Neither side needs it.
    NotRequired,
}

/// Where the handshake stands.
enum Phase {
    /// This side was dialled.
    AwaitHello,
    /// This side dialled and said hello.
    AwaitAdmit {
        expected: Option<Rid>,
    },
    /// This side was dialled and has admitted; RouteMesh only.
    AwaitReady(Box<NodeInfo>),
    Done,
}

/// The receiving end of one link.
pub(super) struct LinkSink {
    links: Arc<Inner>,
    link: Arc<dyn Link>,
    phase: Mutex<Phase>,
    peer: OnceLock<Arc<PeerLink>>,
    intent: Option<Arc<Intent>>,
    /// The peer is told at least this revision of this side in the handshake.
    told: u64,
    ended: Mutex<Option<oneshot::Sender<Ended>>>,
}

impl LinkSink {
    /// For a link that was accepted.
    pub(super) fn accepted(links: Arc<Inner>, link: Arc<dyn Link>) -> Arc<Self> {
        Arc::new(Self {
            told: links.local().revision,
            links,
            link,
            phase: Mutex::new(Phase::AwaitHello),
            peer: OnceLock::new(),
            intent: None,
            ended: Mutex::new(None),
        })
    }

    /// For a link that was dialled; how it ends is told to `ended`.
    pub(super) fn dialled(
        links: Arc<Inner>,
        link: Arc<dyn Link>,
        intent: Arc<Intent>,
        ended: oneshot::Sender<Ended>,
    ) -> Arc<Self> {
        Arc::new(Self {
            told: links.local().revision,
            links,
            link,
            phase: Mutex::new(Phase::AwaitAdmit {
                expected: intent.expected.clone(),
            }),
            peer: OnceLock::new(),
            intent: Some(intent),
            ended: Mutex::new(Some(ended)),
        })
    }

    fn end(&self, how: Ended) {
        if let Some(ended) = self.ended.lock().take() {
            // The intent may have been released meanwhile; then nobody listens.
            let _ = ended.send(how);
        }
    }

    fn handshake(&self, record: &Bytes) {
        let mut phase = self.phase.lock();
        let incoming = match wire::parse(record) {
            Ok(incoming) => incoming,
            Err(malformed) => {
                drop(phase);
                return self.protocol_error(malformed.what);
            }
        };
        match (std::mem::replace(&mut *phase, Phase::Done), incoming) {
            (Phase::AwaitHello, Incoming::Service(RecordKind::Hello, body)) => {
                *phase = self.hello(body.of(record));
            }
            (Phase::AwaitAdmit { expected }, Incoming::Service(RecordKind::Admit, body)) => {
                drop(phase);
                self.admit(body.of(record), expected.as_ref());
            }
            (Phase::AwaitAdmit { .. } | Phase::AwaitReady(_), Incoming::Service(RecordKind::Reject, body)) => {
                drop(phase);
                self.rejected(body.of(record));
            }
            (Phase::AwaitAdmit { .. } | Phase::AwaitReady(_), Incoming::Service(RecordKind::NotRequired, _)) => {
                drop(phase);
                self.end(Ended::NotRequired);
                self.link.close(CloseReason::Local("not required"), Duration::ZERO);
            }
            (Phase::AwaitReady(info), Incoming::Service(RecordKind::Ready, _)) => {
                drop(phase);
                self.place(*info);
            }
            // Receive flow may come at any time; the link has applied it.
            (before, Incoming::Flow { .. }) => *phase = before,
            _ => {
                drop(phase);
                self.protocol_error("a record came out of turn in the handshake");
            }
        }
    }

    /// This side was dialled: judge, and answer.
    fn hello(&self, body: &[u8]) -> Phase {
        let local = self.links.local();
        let info = match self.describe(body, false) {
            Ok(info) => info,
            Err(refusal) => {
                self.refuse(refusal, None);
                return Phase::Done;
            }
        };
        match self.judge(&local, &info, None) {
            Verdict::Refuse(refusal) => {
                self.refuse(refusal, Some((info.rid, info.generation)));
                Phase::Done
            }
            Verdict::NotRequired => {
                self.not_required();
                Phase::Done
            }
            Verdict::Admit if local.scope.is_mesh() => {
                self.tell(RecordKind::Admit, &local.to_wire());
                Phase::AwaitReady(Box::new(info))
            }
            Verdict::Admit => {
                // A client dials one server, and never the other way: nothing more can be decided.
                self.tell(RecordKind::Admit, &local.to_wire());
                self.place(info);
                Phase::Done
            }
        }
    }

    /// This side dialled: judge the answer.
    fn admit(&self, body: &[u8], expected: Option<&Rid>) {
        let local = self.links.local();
        let info = match self.describe(body, true) {
            Ok(info) => info,
            Err(refusal) => return self.refuse(refusal, None),
        };
        match self.judge(&local, &info, expected) {
            Verdict::Refuse(refusal) => self.refuse(refusal, Some((info.rid, info.generation))),
            Verdict::NotRequired => self.not_required(),
            Verdict::Admit => self.place(info),
        }
    }

    /// Judges by what both sides are, and by what the Location Store says of the peer.
    fn judge(&self, local: &NodeInfo, info: &NodeInfo, expected: Option<&Rid>) -> Verdict {
        let dialled = self.intent.as_ref().map(|intent| &intent.endpoint);
        match judge(local, info, self.link.peer(), expected) {
            Verdict::Admit => match self.links.discovered.contradicts(info, dialled) {
                Some(refusal) => Verdict::Refuse(refusal),
                None => Verdict::Admit,
            },
            verdict => verdict,
        }
    }

    fn describe(&self, body: &[u8], peer_is_server: bool) -> Result<NodeInfo, Refusal> {
        let hello = codec::decode::<wire::Hello>(body)
            .map_err(|error| Refusal::new(RejectReason::InvalidDescriptor, error.to_string()))?;
        NodeInfo::from_wire(hello, peer_is_server)
    }

    /// Both sides agree: the link is ready, unless another link to that peer is preferred.
    fn place(&self, mut info: NodeInfo) {
        let (rid, run) = (info.rid.clone(), info.generation);
        let local = self.links.local();
        let max_record = local.max_message.min(info.max_message);
        let (link, now) = (self.link.clone(), clock::now());
        let peer = Arc::new(PeerLink::new(link, &mut info, max_record, self.told, now));
        let placed = self.links.place(&peer, info, || {
            // From its admission on the other lane is read, too, and may bring what comes after the handshake.
            let _ = self.peer.set(peer.clone());
            self.link.admit(max_record);
            // While a handshake is under way, changes go past it: they follow now.
            let ready = local.scope.is_mesh() && self.link.peer().dialled;
            self.links.owe(&peer, |owed| owed.ready = ready);
        });
        if let Placed::Refused(refusal) = placed {
            return self.refuse(refusal, Some((rid, run)));
        }
        match placed {
            Placed::Used { replaces: None } => {}
            Placed::Used { replaces: Some(old) } => {
                old.close(CloseReason::Local("replaced by a newer link"), Duration::ZERO);
            }
            Placed::Preferred { over } => over.retire(),
            Placed::Spare | Placed::Refused(_) => peer.retire(),
        }
        self.links.close_outlived(&peer);
        tracing::info!(
            target: "zlink::runtime", scope = %local.scope, peer = %rid, dialled = self.link.peer().dialled,
            event_id = "zlink.runtime.mesh_node.peer_changed", state = "ready"
        );
        if let Some(intent) = &self.intent {
            let former = intent.is_ready(&rid);
            if let Some(former) = former.filter(|former| *former != rid) {
                self.links.forget_former(&former);
            }
        }
        self.links.publish();
    }

    fn rejected(&self, body: &[u8]) {
        let refusal = match codec::decode::<wire::Reject>(body) {
            Ok(wire::Reject {
                reason: RejectReason::Unspecified | RejectReason::Unknown(_),
                ..
            }) => {
                return self.protocol_error("a link was rejected for an unknown reason");
            }
            Ok(reject) => Refusal::new(reject.reason, reject.text),
            Err(_) => return self.protocol_error("a reject cannot be decoded"),
        };
        tracing::warn!(
            target: "zlink::runtime", scope = %self.links.local().scope, reason = ?refusal.reason, text = refusal.text,
            "the peer refused the link"
        );
        self.end(Ended::Refused {
            refusal,
            by_peer: true,
            run: None,
        });
        self.link
            .close(CloseReason::Local("refused by the peer"), Duration::ZERO);
    }

    fn refuse(&self, refusal: Refusal, run: Option<(Rid, Generation)>) {
        let mut text = refusal.text.clone();
        text.truncate(text.floor_char_boundary(crate::error::MAX_ERROR_TEXT));
        self.tell(
            RecordKind::Reject,
            &wire::Reject {
                reason: refusal.reason,
                text,
            },
        );
        if refusal.reason != RejectReason::Duplicate {
            tracing::warn!(
                target: "zlink::runtime", scope = %self.links.local().scope, reason = ?refusal.reason, text = refusal.text,
                "a link is refused"
            );
        }
        self.end(Ended::Refused {
            refusal,
            by_peer: false,
            run,
        });
        self.link
            .close(CloseReason::Local("refused"), crate::limit::HANDSHAKE_TIME);
    }

    fn not_required(&self) {
        let _ = self.link.try_send(
            Lane::Data,
            crate::transport::Record {
                head: &wire::service(RecordKind::NotRequired, &[]),
                payload: &[],
            },
        );
        self.end(Ended::NotRequired);
        self.link
            .close(CloseReason::Local("not required"), crate::limit::HANDSHAKE_TIME);
    }

    fn tell<M: codec::Message>(&self, kind: RecordKind, message: &M) {
        self.links.say(&self.link, kind, message);
    }

    fn protocol_error(&self, what: &'static str) {
        tracing::warn!(
            target: "zlink::dispatch", event_id = "zlink.dispatch_error", scope = %self.links.local().scope,
            peer = self.peer.get().map(|peer| tracing::field::display(peer.rid().clone())),
            reason = "invalid_frame", outcome = "failed", action = "drop", what
        );
        self.link.close(CloseReason::Protocol(what.to_owned()), Duration::ZERO);
    }

    /// A record of the mesh itself, on a ready link.
    fn service(&self, peer: &Arc<PeerLink>, record: &Bytes) {
        match wire::parse(record) {
            Ok(Incoming::Probe(id)) => self.links.owe(peer, |owed| owed.answer = (!owed.answers).then_some(id)),
            Ok(Incoming::ProbeAck(id)) => peer.liveness().lock().answered(clock::now(), id),
            Ok(Incoming::Service(RecordKind::Update, body)) => match codec::decode::<wire::Update>(body.of(record)) {
                Ok(update) => match self.links.update(peer, update) {
                    Ok(()) => {}
                    Err(what) => {
                        tracing::warn!(target: "zlink::runtime", peer = %peer.rid(), what, "an update is refused");
                        self.link.close(CloseReason::Protocol(what), Duration::ZERO);
                    }
                },
                Err(_) => self.protocol_error("an update cannot be decoded"),
            },
            Ok(Incoming::Service(RecordKind::Retire, _)) => {
                peer.retire();
                peer.mark_retire_received();
                self.links.settle(peer);
            }
            Ok(Incoming::Flow { .. }) => {}
            // The peer changed its mind between our admit and its ready.
            Ok(Incoming::Service(RecordKind::Reject | RecordKind::NotRequired, _)) => {
                self.link.close(CloseReason::PeerClosed, Duration::ZERO);
            }
            Ok(_) => self.protocol_error("a service record came that has no place on a ready link"),
            Err(malformed) => self.protocol_error(malformed.what),
        }
    }
}

impl Sink for LinkSink {
    fn record(&self, _lane: Lane, record: Bytes, permit: Option<Permit>, at: Instant) {
        match self.peer.get() {
            None => self.handshake(&record),
            Some(peer) => match record.get(1) {
                Some(kind) if *kind >= wire::FIRST_CALL_KIND => self.links.upcall().record(peer, record, permit, at),
                // The permit returns when this bounded work is done.
                _ => self.service(peer, &record),
            },
        }
    }

    fn ending(&self) {
        if let Some(peer) = self.peer.get() {
            self.links.ending(peer);
        }
    }

    fn closed(&self, reason: &CloseReason) {
        match self.peer.get() {
            Some(peer) => {
                self.links.lost(peer, reason);
                self.end(Ended::AfterReady(peer.rid().clone(), peer.generation(), reason.clone()));
            }
            None => self.end(Ended::BeforeReady(reason.clone())),
        }
        self.links.forget_sink(self.link.id());
    }
}
