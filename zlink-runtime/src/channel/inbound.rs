//! What comes in over the links of one scope: calls find their handler's queue, replies find their request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::call::{Key, Pending};
use crate::error::{Error, ErrorKind};
use crate::execution::{Owner, Rejected};
use crate::id::{ChannelName, LinkId, MeshName, PacketName, Rid};
use crate::mesh::{OperationId, Operations, PeerLink, PeerView, Upcall};
use crate::permit::Permit;
use crate::transport::CloseReason;
use crate::wire::{self, Incoming, OperationName};

use super::context::{ChannelTurn, CorrelationId, MessageKind, NodeTurn};
use super::dispatch::{Dispatch, Refusal};
use super::drops::Drops;
use super::filter::{AnyFilter, Filters};
use super::flow::{self, Flow};
use super::objects::{Arrival, Arrived};
use super::outbound::Outbound;
use super::own::OwnPeer;
use super::path::ChannelPath;
use super::reply::{ReplyRoute, ReplyTo};
use super::server::Handler;

mod job;

/// When the time of what came `at` that moment is up, where it is bounded.
pub(crate) fn deadline(at: Instant, timeout_ms: Option<u32>) -> Option<Instant> {
    timeout_ms.map(|millis| at + Duration::from_millis(u64::from(millis)))
}

use job::CalledBy;
pub(crate) use job::{CallJob, problem};

/// The queue of one channel, or of a node.
pub(crate) type Queue = Owner<CallJob>;

/// What an [`Inbound`] is made of.
pub(crate) struct InboundConfig {
    pub(crate) outbound: Outbound,
    /// What stands around every handler.
    pub(crate) filters: Filters,
    /// The mesh that it comes over; none for ClientServer.
    pub(crate) mesh: Option<MeshName>,
    /// The channels served, each with its handlers and queue.
    pub(crate) channels: Vec<(ChannelName, Vec<Handler<ChannelTurn>>, Queue)>,
    /// The handlers of the node itself.
    pub(crate) node: Option<(MeshName, Vec<Handler<NodeTurn>>, Queue)>,
    /// What both of them handle, numbered.
    pub(crate) operations: Operations,
    /// The paths whose candidates are peers of this scope.
    pub(crate) paths: Vec<Arc<ChannelPath>>,
    /// Whether this side only calls, as a ClientServer client does: then no peer may call it.
    pub(crate) only_calls: bool,
}

/// Takes what the links of one scope receive.
pub(crate) struct Inbound {
    outbound: Outbound,
    /// None for ClientServer.
    mesh: Option<MeshName>,
    /// By their numbers in `operations`.
    entries: Vec<Arc<Entry>>,
    operations: Operations,
    paths: Vec<Arc<ChannelPath>>,
    only_calls: bool,
    drops: Arc<Drops>,
}

/// One operation and its handlers.
pub(super) struct Entry {
    /// The calling side of its host, for what its handlers call.
    pub(super) outbound: Outbound,
    pub(super) packet: PacketName,
    handlers: Handlers,
    filters: Filters,
    /// The mesh that its calls come over.
    mesh: Option<MeshName>,
    queue: Queue,
    drops: Arc<Drops>,
}

enum Handlers {
    Channel(ChannelName, ByKind<ChannelTurn>),
    Node(MeshName, ByKind<NodeTurn>),
}

struct ByKind<T> {
    send: Option<Arc<dyn Dispatch<T>>>,
    request: Option<Arc<dyn Dispatch<T>>>,
}

impl<T> ByKind<T> {
    fn get(&self, request: bool) -> Option<&Arc<dyn Dispatch<T>>> {
        if request {
            self.request.as_ref()
        } else {
            self.send.as_ref()
        }
    }
}

impl Handlers {
    fn has(&self, request: bool) -> bool {
        match self {
            Handlers::Channel(_, handlers) => handlers.get(request).is_some(),
            Handlers::Node(_, handlers) => handlers.get(request).is_some(),
        }
    }

    fn surface(&self) -> &'static str {
        match self {
            Handlers::Channel(..) => "channel",
            Handlers::Node(..) => "node",
        }
    }
}

fn by_packet<T>(handlers: Vec<Handler<T>>) -> Vec<(PacketName, ByKind<T>)> {
    let mut packets: Vec<(PacketName, ByKind<T>)> = Vec::new();
    for handler in handlers {
        let at = packets
            .iter()
            .position(|(packet, _)| *packet == handler.packet)
            .unwrap_or_else(|| {
                packets.push((
                    handler.packet.clone(),
                    ByKind {
                        send: None,
                        request: None,
                    },
                ));
                packets.len() - 1
            });
        let Some((_, kinds)) = packets.get_mut(at) else {
            continue;
        };
        match handler.kind {
            MessageKind::Send => kinds.send = Some(handler.dispatch),
            MessageKind::Request => kinds.request = Some(handler.dispatch),
        }
    }
    packets
}

impl Inbound {
    pub(crate) fn new(config: InboundConfig) -> Self {
        let drops = Arc::<Drops>::default();
        let mut numbered = Vec::new();
        let mut add = |channel, packet: PacketName, handlers, queue: &Queue| {
            let number = config.operations.number_of(&OperationId::new(channel, packet.clone()));
            let entry = Entry {
                outbound: config.outbound.clone(),
                packet,
                handlers,
                filters: config.filters.clone(),
                mesh: config.mesh.clone(),
                queue: queue.clone(),
                drops: drops.clone(),
            };
            numbered.push((number, Arc::new(entry)));
        };
        for (channel, handlers, queue) in config.channels {
            for (packet, kinds) in by_packet(handlers) {
                add(
                    Some(channel.clone()),
                    packet,
                    Handlers::Channel(channel.clone(), kinds),
                    &queue,
                );
            }
        }
        if let Some((mesh, handlers, queue)) = config.node {
            for (packet, kinds) in by_packet(handlers) {
                add(None, packet, Handlers::Node(mesh.clone(), kinds), &queue);
            }
        }
        numbered.sort_unstable_by_key(|(number, _)| *number);
        debug_assert!(
            numbered
                .iter()
                .map(|(number, _)| *number)
                .eq((0..).take(numbered.len()).map(Some)),
            "what is handled and what is told of it come from one registration"
        );
        Self {
            outbound: config.outbound,
            mesh: config.mesh,
            entries: numbered.into_iter().map(|(_, entry)| entry).collect(),
            operations: config.operations,
            paths: config.paths,
            only_calls: config.only_calls,
            drops,
        }
    }

    pub(crate) fn drops(&self) -> &Drops {
        &self.drops
    }

    fn entry(&self, record: &[u8], call: &wire::Call) -> Option<&Arc<Entry>> {
        match call.operation {
            OperationName::Number(number) => self.entries.get(number as usize),
            OperationName::Named { channel, packet } => {
                let channel = match std::str::from_utf8(channel.of(record)).ok()? {
                    "" => None,
                    name => Some(ChannelName::new(name).ok()?),
                };
                let packet = PacketName::new(std::str::from_utf8(packet.of(record)).ok()?).ok()?;
                let number = self.operations.number_of(&OperationId::new(channel, packet))?;
                self.entries.get(number as usize)
            }
        }
        .filter(|entry| matches!(entry.handlers, Handlers::Channel(..)) == call.to_channel)
    }

    /// Puts a call in its handler's queue, or answers why not.
    fn call(&self, from: Origin<'_>, record: Bytes, call: wire::Call, permit: Permit, at: Instant) {
        let request = call.correlation.is_some();
        let Some(entry) = self.entry(&record, &call).filter(|entry| entry.handlers.has(request)) else {
            let what = if request { "request" } else { "message" };
            let error = Error::not_executed(
                ErrorKind::NotFound,
                format!("the target has no handler for that {what}"),
            );
            let reply = call.correlation.map(|correlation| from.reply(correlation));
            return refuse(
                &self.drops,
                "no_handler",
                if call.to_channel { "channel" } else { "node" },
                Refusal { error, reply },
            );
        };
        let deadline = deadline(at, call.timeout_ms);
        let flow = flow::is_traced().then(|| Box::new(Flow::of_record(call.flow.of(&record))));
        if let Some(flow) = &flow {
            tracing::debug!(
                target: "zlink::flow", phase = "received", surface = entry.handlers.surface(),
                channel_name = entry.channel_name(), mesh_name = entry.mesh_name(), packet_name = %entry.packet,
                source_rid = %from.rid(), correlation_id = call.correlation.map(CorrelationId::shown), flow_id = %flow.id,
                flow_origin = %flow.origin
            );
        }
        let flow_id = flow.as_ref().map(|flow| flow.id);
        let caller = match (call.correlation, &entry.handlers) {
            (Some(correlation), _) => CalledBy::Waiting(from.reply(correlation)),
            (None, Handlers::Node(..)) => CalledBy::Node(from.route()),
            (None, Handlers::Channel(..)) => CalledBy::Anyone,
        };
        let job = CallJob {
            entry: entry.clone(),
            record,
            metadata: call.metadata,
            content_type: call.content_type,
            payload: call.payload,
            deadline,
            caller,
            flow,
        };
        if let Err(Rejected { kind, job, permit }) = entry.queue.admit(job, permit) {
            drop(permit);
            let error = Error::not_executed(kind, "the target takes no new work");
            refuse(
                &self.drops,
                "shutdown",
                entry.handlers.surface(),
                Refusal {
                    error,
                    reply: job.caller.reply(),
                },
            );
        } else if let Some(flow_id) = flow_id {
            tracing::debug!(
                target: "zlink::flow", phase = "admitted", surface = entry.handlers.surface(),
                packet_name = %entry.packet, correlation_id = call.correlation.map(CorrelationId::shown), %flow_id
            );
        }
    }

    /// Takes a call of this host to its own node: it has a permit, and gets the queue like any other.
    pub(super) fn own_call(&self, own: &Arc<OwnPeer>, record: Bytes, call: wire::Call, permit: Permit, at: Instant) {
        self.call(Origin::Own(own), record, call, permit, at);
    }

    /// Hands on what is for Spots, or answers that there are none here.
    fn for_objects(&self, from: Origin<'_>, record: Bytes, what: Arrived<'_>, permit: Permit, at: Instant) {
        let correlation = match what {
            Arrived::Call(spot) => spot.call.correlation,
            Arrived::Control(control) => Some(control.correlation),
            Arrived::Publish(_) => None,
        };
        let reply = correlation.map(|correlation| from.reply(correlation));
        match (self.outbound.objects(), &self.mesh) {
            (Some(objects), Some(mesh)) => objects.arrived(Arrival {
                mesh,
                source: from.rid(),
                record,
                what,
                reply,
                permit,
                at,
            }),
            _ => {
                let error = Error::not_executed(ErrorKind::NotFound, "this node has no Spots");
                refuse(&self.drops, "no_handler", "spot", Refusal { error, reply });
            }
        }
    }

    pub(super) fn own_objects(
        &self,
        own: &Arc<OwnPeer>,
        record: Bytes,
        what: Arrived<'_>,
        permit: Permit,
        at: Instant,
    ) {
        self.for_objects(Origin::Own(own), record, what, permit, at);
    }

    pub(super) fn pending(&self) -> &Pending {
        self.outbound.pending()
    }

    fn reply(&self, peer: &PeerLink, record: &Bytes, reply: wire::Reply) {
        let key = Key::from_wire(reply.correlation);
        let pending = self.outbound.pending();
        let matched = match reply.result {
            Ok(payload) => pending.reply(key, peer.id(), payload.share(record)),
            Err(error) => pending.fail(key, peer.id(), error),
        };
        if !matched {
            // Most often the request has ended at its deadline. Nothing runs for it, and nobody gets a second result.
            tracing::debug!(
                target: "zlink::dispatch", event_id = "zlink.dispatch_error", peer = %peer.rid(),
                reason = "unexpected_reply", outcome = "failed", action = "drop", kind = "ProtocolError"
            );
        }
    }

    fn malformed(&self, peer: &Arc<PeerLink>, record: &[u8], malformed: wire::Malformed) {
        let (is_reply, one_way) = (wire::is_completion(record), wire::is_one_way(record));
        let error = Error::not_executed(ErrorKind::ProtocolError, malformed.what);
        match malformed.correlation {
            // What a caller of ours waits for is unusable; whether it ran is not known.
            Some(correlation) if is_reply => {
                let error = Error::unknown(ErrorKind::ProtocolError, malformed.what);
                self.outbound
                    .pending()
                    .fail(Key::from_wire(correlation), peer.id(), error);
            }
            Some(correlation) => {
                let route = ReplyRoute::Link(peer.clone());
                let reply = ReplyTo::new(route, correlation);
                refuse(
                    &self.drops,
                    "invalid_frame",
                    "channel",
                    Refusal {
                        error,
                        reply: Some(reply),
                    },
                );
            }
            None => {
                refuse(&self.drops, "invalid_frame", "channel", Refusal { error, reply: None });
                if !one_way {
                    // Not even what it is can be told: the two sides do not speak the same protocol.
                    peer.close(CloseReason::Protocol(malformed.what.to_owned()), Duration::ZERO);
                }
            }
        }
    }
}

/// Where a call comes from.
#[derive(Clone, Copy)]
enum Origin<'a> {
    Link(&'a Arc<PeerLink>),
    Own(&'a Arc<OwnPeer>),
}

impl Origin<'_> {
    fn rid(&self) -> &Rid {
        match self {
            Origin::Link(peer) => peer.rid(),
            Origin::Own(own) => own.rid(),
        }
    }

    fn route(&self) -> ReplyRoute {
        match self {
            Origin::Link(peer) => ReplyRoute::Link((*peer).clone()),
            Origin::Own(own) => ReplyRoute::Local((*own).clone()),
        }
    }

    fn reply(&self, correlation: u64) -> ReplyTo {
        ReplyTo::new(self.route(), correlation)
    }
}

impl Upcall for Inbound {
    fn record(&self, peer: &Arc<PeerLink>, record: Bytes, permit: Option<Permit>, at: Instant) {
        match wire::parse(&record) {
            Ok(Incoming::Call(_)) if self.only_calls => {
                let error = Error::not_executed(ErrorKind::ProtocolError, "a server called its client");
                refuse(&self.drops, "invalid_frame", "channel", Refusal { error, reply: None });
                peer.close(
                    CloseReason::Protocol("a server called its client".into()),
                    Duration::ZERO,
                );
            }
            Ok(Incoming::Call(call)) => match permit {
                Some(permit) => self.call(Origin::Link(peer), record, call, permit, at),
                // Ordinary records of an admitted link have one; this came where only completions may.
                None => peer.close(
                    CloseReason::Protocol("a call came on the completion lane".into()),
                    Duration::ZERO,
                ),
            },
            Ok(Incoming::Reply(reply)) => self.reply(peer, &record, reply),
            Ok(incoming) => match (Arrived::of(&incoming), &self.mesh, permit) {
                (Some(what), Some(_), Some(permit)) => {
                    self.for_objects(Origin::Link(peer), record, what, permit, at);
                }
                _ => peer.close(
                    CloseReason::Protocol("a record of an unknown kind".into()),
                    Duration::ZERO,
                ),
            },
            Err(malformed) => {
                if !wire::is_completion(&record) && (self.only_calls || permit.is_none()) {
                    // Nothing bounds how many come there, so none is answered.
                    refuse(
                        &self.drops,
                        "invalid_frame",
                        "channel",
                        Refusal {
                            error: Error::not_executed(ErrorKind::ProtocolError, malformed.what),
                            reply: None,
                        },
                    );
                    return peer.close(CloseReason::Protocol(malformed.what.to_owned()), Duration::ZERO);
                }
                self.malformed(peer, &record, malformed);
            }
        }
    }

    fn peers_changed(&self, version: u64, peers: &[PeerView], elsewhere: Option<&str>) {
        for path in &self.paths {
            path.peers_changed(version, peers, elsewhere);
        }
    }

    fn link_closed(&self, peer: &Arc<PeerLink>, reason: &CloseReason) {
        self.outbound.pending().link_lost(peer.id(), reason);
    }

    fn waits_on(&self, link: LinkId) -> bool {
        self.outbound.pending().waits_on(link)
    }
}

impl Entry {
    pub(super) fn filters(&self) -> &[Arc<dyn AnyFilter>] {
        &self.filters
    }

    fn channel_name(&self) -> Option<&str> {
        match &self.handlers {
            Handlers::Channel(channel, _) => Some(channel.as_str()),
            Handlers::Node(..) => None,
        }
    }

    fn mesh_name(&self) -> Option<&str> {
        self.mesh.as_ref().map(MeshName::as_str)
    }

    /// What people call it.
    fn name(&self, is_request: bool) -> String {
        let kind = if is_request { "request" } else { "send" };
        let packet = &self.packet;
        match &self.handlers {
            Handlers::Channel(channel, _) => format!("{kind} {packet} of channel {channel}"),
            Handlers::Node(mesh, _) => format!("{kind} {packet} of the node in mesh {mesh}"),
        }
    }

    /// What a handler's run is seen as, where somebody looks.
    fn span(&self, flow: Flow) -> tracing::Span {
        tracing::debug_span!(
            target: "zlink::flow", "handle", surface = self.handlers.surface(), packet_name = %self.packet,
            flow_id = %flow.id, flow_origin = %flow.origin
        )
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entry({})", self.packet)
    }
}

impl fmt::Debug for Inbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbound")
            .field("operations", &self.entries.len())
            .finish_non_exhaustive()
    }
}

/// Tells whoever waits, and leaves a record.
pub(crate) fn refuse(drops: &Drops, reason: &'static str, surface: &'static str, refusal: Refusal) {
    let Refusal { error, reply } = refusal;
    if reply.is_none() {
        drops.count(surface, reason);
    }
    let (action, kind) = if reply.is_some() {
        ("reply_error", "request")
    } else {
        ("drop", "send")
    };
    tracing::warn!(
        target: "zlink::dispatch", event_id = "zlink.dispatch_error", surface, kind, outcome = "failed", reason, action,
        error = %error
    );
    if let Some(reply) = reply {
        reply.fail(&error);
    }
}
