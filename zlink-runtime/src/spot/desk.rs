//! What comes in for Spots of this host: a call finds its Spot's queue, a control its task, a publish those that subscribe.
//!
//! It must not know how a Spot is made.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tokio::time::Instant;

use crate::channel::{
    Arrival, Arrived, Asked, Flow, Found, Here, Intent, KnownSpot, Lead, Objects, Refusal, ReplyTo, SpotTo, deadline,
    is_traced, refuse,
};
use crate::error::{Error, ErrorKind};
use crate::execution::{Rejected, may_wait_for};
use crate::id::{MeshName, ObjectId, ObjectKind, Rid, Space};
use crate::location::Resolved;
use crate::message::codec;
use crate::permit::Permit;
use crate::transport::BoxFuture;
use crate::wire::{ObjectCall, OperationName, SpotActivation};

use super::dispatch::Dispatch;
use super::find::failed;
use super::job::{Call, SpotJob, Work};
use super::object::{Object, Phase};
use super::spots::Inner;
use super::told::Told;

/// What is told of an object of this host that is in another mesh than what came for it.
pub(super) const ELSEWHERE: &str = "this host has it in another mesh";

impl Objects for Inner {
    fn known(&self, spot: &SpotTo) -> Option<(Found, Option<Arc<KnownSpot>>)> {
        self.known_route(spot)
    }

    fn holds(&self, known: &KnownSpot) -> bool {
        self.is_so(known)
    }

    fn may_activate(&self, found: Found, intent: &Intent) -> Found {
        self.or_made_anew(found, intent)
    }

    fn find(self: Arc<Self>, spot: Arc<SpotTo>) -> BoxFuture<'static, Result<Found, Error>> {
        Box::pin(async move { self.find_route(&spot).await })
    }

    fn here(&self, asked: &Asked<'_>) -> Option<(Arc<dyn Here>, u32)> {
        self.here_for(asked)
    }

    fn misled(&self, id: &ObjectId, lead: Lead) {
        match lead {
            Lead::Record(version) => self.is_misled(id, version),
            Lead::FirstMessage(number) => self.finds.lock().activating.forget(id, number),
        }
    }

    fn may_wait_for(&self, id: &ObjectId) -> Result<(), Error> {
        match self.object(id) {
            Some(object) => may_wait_for(object.lane()),
            None => Ok(()),
        }
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }

    fn arrived(self: Arc<Self>, arrival: Arrival<'_>) {
        match arrival.what {
            Arrived::Call(spot) => match self.plain(&arrival, spot) {
                Some(plain) => self.take(plain, arrival, spot),
                None => self.call(arrival, spot),
            },
            Arrived::Control(control) => {
                // It is finished in work of its own, which needs no permit and has its own bound.
                drop(arrival.permit);
                self.control(
                    (arrival.mesh.clone(), arrival.source.clone()),
                    arrival.record,
                    *control,
                    arrival.reply,
                    arrival.at,
                );
            }
            Arrived::Publish(publish) => {
                self.fanout
                    .take(arrival.mesh.clone(), arrival.record, *publish, arrival.permit);
            }
        }
    }
}

/// What takes a call that needs no second look.
struct Plain {
    object: Arc<Object>,
    packet: &'static str,
    handler: Arc<dyn Dispatch>,
}

/// A call that was looked at.
pub(super) struct Incoming {
    pub(super) mesh: MeshName,
    /// The node that sent it.
    pub(super) source: Rid,
    pub(super) id: ObjectId,
    pub(super) packet: String,
    pub(super) record: Bytes,
    pub(super) spot: ObjectCall,
    pub(super) reply: Option<ReplyTo>,
    pub(super) permit: Permit,
    pub(super) deadline: Option<Instant>,
    /// Where somebody traces.
    pub(super) flow: Option<Flow>,
}

impl Incoming {
    /// Whether it may make the Spot where there is none.
    pub(super) fn activates(&self) -> bool {
        !self.spot.activation.is_empty()
    }

    /// Whether it may not, and comes behind one that its sender sent here to make the Spot.
    pub(super) fn follows(&self) -> bool {
        !self.activates() && self.spot.lease == 0 && self.spot.space == Space::Spots
    }

    fn is_gone(&self) -> Error {
        let text = format!("there is no {:?} any more", self.id);
        Error::not_executed(ErrorKind::NotFound, text)
    }

    fn is_elsewhere(&self) -> Error {
        let text = format!("this host does not have the {:?}", self.id);
        Error::not_executed(ErrorKind::Unavailable, text)
    }
}

fn text<'a>(bytes: &'a [u8], what: &'static str) -> Result<&'a str, Error> {
    std::str::from_utf8(bytes)
        .map_err(|_| Error::not_executed(ErrorKind::ProtocolError, format!("{what} is not UTF-8")))
}

/// The type of Spot that a call would make, where it may make one.
fn intended(spot: &ObjectCall, record: &[u8]) -> Option<String> {
    let activation = spot.activation.of(record);
    let activation = (!activation.is_empty()).then(|| codec::decode::<SpotActivation>(activation));
    Some(activation?.ok()?.stable_type)
}

impl Inner {
    pub(super) fn refuse(&self, reason: &'static str, error: Error, reply: Option<ReplyTo>) {
        refuse(&self.drops, reason, "spot", Refusal { error, reply });
    }

    fn call(self: &Arc<Self>, arrival: Arrival<'_>, spot: &ObjectCall) {
        let OperationName::Named { packet, .. } = spot.call.operation else {
            // The record's form rules it out.
            return;
        };
        let Arrival {
            mesh,
            source,
            record,
            reply,
            permit,
            at,
            ..
        } = arrival;
        let names = text(spot.id.of(&record), "the ID of an object").and_then(|id| {
            let id = spot
                .space
                .id(id)
                .map_err(|error| Error::not_executed(ErrorKind::ProtocolError, error.to_string()))?;
            Ok((id, text(packet.of(&record), "a packet name")?.to_owned()))
        });
        let (id, packet) = match names {
            Ok(names) => names,
            Err(error) => return self.refuse("invalid_frame", error, reply),
        };
        let deadline = deadline(at, spot.call.timeout_ms);
        let flow = is_traced().then(|| Flow::of_record(spot.call.flow.of(&record)));
        if let Some(flow) = flow {
            let told = Told {
                surface: spot.space.surface(),
                mesh: mesh.as_str(),
                packet: &packet,
                correlation: spot.call.correlation,
                flow,
            };
            told.received(source);
        }
        let incoming = Incoming {
            mesh: mesh.clone(),
            source: source.clone(),
            id,
            packet,
            record,
            spot: *spot,
            reply,
            permit,
            deadline,
            flow,
        };
        if !self.fence.is_open() {
            let error = Error::not_executed(
                ErrorKind::Unavailable,
                "the host cannot prove now that it has what is called",
            );
            return self.refuse("fenced", error, incoming.reply);
        }
        let anew = match self.object(&incoming.id) {
            Some(object) => self.enqueue(&object, incoming),
            None => Some(incoming),
        };
        match anew {
            None => {}
            Some(incoming) if incoming.activates() => self.activate(incoming),
            Some(incoming) => self.not_here(incoming),
        }
    }

    /// What takes a call that is as most are: for a Spot that is ready, by the owner that it names, with a handler.
    fn plain(&self, arrival: &Arrival<'_>, spot: &ObjectCall) -> Option<Plain> {
        let of_owner = spot.activation.is_empty() && spot.lease != 0;
        if !of_owner || is_traced() || !self.is_open_for(arrival.at) {
            return None;
        }
        let OperationName::Named { packet, .. } = spot.call.operation else {
            return None;
        };
        let object = self
            .table
            .lock()
            .named(spot.space, spot.id.of(&arrival.record))
            .cloned()?;
        let is_its = object.phase() == Phase::Ready && object.home.mesh == *arrival.mesh;
        if !is_its || object.refusal(spot).is_some() {
            return None;
        }
        let packet = packet.of(&arrival.record);
        let (packet, handler) = object.factory.parts().handler(packet, arrival.reply.is_some())?;
        let handler = handler.clone();
        Some(Plain {
            object,
            packet,
            handler,
        })
    }

    /// Puts such a call in its queue. Nothing of it was copied, but for what it holds.
    fn take(&self, plain: Plain, arrival: Arrival<'_>, spot: &ObjectCall) {
        let call = Box::new(Call {
            handler: plain.handler,
            packet: plain.packet,
            record: arrival.record,
            metadata: spot.call.metadata,
            content_type: spot.call.content_type,
            payload: spot.call.payload,
            deadline: deadline(arrival.at, spot.call.timeout_ms),
            reply: arrival.reply,
            activates: false,
            is_first: false,
            flow: None,
        });
        let job = SpotJob::new(plain.object.clone(), Work::Call(call));
        if let Err(Rejected { kind, job, permit }) = plain.object.lane().admit(job, arrival.permit) {
            drop(permit);
            self.takes_nothing(kind, job.into_reply());
        }
    }

    fn takes_nothing(&self, kind: ErrorKind, reply: Option<ReplyTo>) {
        let error = Error::not_executed(kind, "it takes no new work");
        self.refuse("shutdown", error, reply);
    }

    /// Whether this host can prove that it lives, as it is asked for what was read at that moment: once for all of it. Each
    /// turn asks for itself before it starts.
    fn is_open_for(&self, at: Instant) -> bool {
        let at = self.moment(at);
        if self.open_at.load(Ordering::Relaxed) == at {
            return true;
        }
        let is_open = self.fence.is_open();
        if is_open {
            self.open_at.store(at, Ordering::Relaxed);
        }
        is_open
    }

    /// Answers that a Spot that was meant to be here is not.
    fn not_here(self: &Arc<Self>, incoming: Incoming) {
        let own = self.fence.lease().generation().map_or(0, |generation| generation.get());
        let (gone, elsewhere) = (incoming.is_gone(), incoming.is_elsewhere());
        let was_here = incoming.follows() || incoming.spot.lease == own;
        if !was_here || incoming.reply.is_none() {
            return self.refuse("no_spot", elsewhere, incoming.reply);
        }
        // It was here, or what it follows was sent here. Whether there is one elsewhere by now, the store knows.
        let spots = self.clone();
        self.runtime.spawn(async move {
            let error = match spots.authority.resolve(&incoming.id).await {
                Resolved::Missing | Resolved::Creating(_) => gone,
                Resolved::Ready(_) | Resolved::Unavailable(_) => elsewhere,
                Resolved::Failed(error) => failed(&error),
            };
            spots.refuse("no_spot", error, incoming.reply);
        });
    }

    /// Puts a call in the Spot's queue, lets it wait for the Spot's end, or answers why not. Handed back where the Spot is
    /// gone.
    pub(super) fn enqueue(self: &Arc<Self>, object: &Arc<Object>, incoming: Incoming) -> Option<Incoming> {
        let activates = incoming.activates();
        // Its sender knows of no owner yet: it sent the first message here, or this one is it.
        let is_early = activates || incoming.follows();
        let error = match object.phase() {
            Phase::Creating | Phase::Ready | Phase::Forwarding if object.home.mesh != incoming.mesh => {
                Some((ErrorKind::Unavailable, ELSEWHERE))
            }
            Phase::Ready if !is_early => object.refusal(&incoming.spot),
            Phase::Ready | Phase::Forwarding => None,
            // Whoever names its generation has read in the store that it is made, before this host's own answer came.
            Phase::Creating if is_early || object.is_of(incoming.spot.generation) => None,
            // What was here before led it here: it may come behind a call of its own sender that makes it anew.
            Phase::Creating if self.is_made_anew(object, &incoming) => None,
            Phase::Creating => Some((ErrorKind::NotFound, "it is being made")),
            Phase::Closing if activates && self.takes_new_work() => return self.wait_for_end(object, incoming),
            Phase::Closing => Some((ErrorKind::Unavailable, "it closes")),
            Phase::Ended => return Some(incoming),
        };
        if let Some((kind, text)) = error {
            self.refuse("no_spot", Error::not_executed(kind, text), incoming.reply);
            return None;
        }
        match self.admit(object, incoming, false) {
            Some(incoming) if matches!(object.phase(), Phase::Closing | Phase::Ended) => self.enqueue(object, incoming),
            Some(incoming) => {
                let error = Error::not_executed(ErrorKind::Unavailable, "it takes no new work");
                self.refuse("no_spot", error, incoming.reply);
                None
            }
            None => None,
        }
    }

    /// Whether a call comes by a route to a former incarnation, which was of this host, too.
    fn is_made_anew(&self, object: &Object, incoming: &Incoming) -> bool {
        let own = self.fence.lease().generation();
        object.factory.parts().kind == ObjectKind::Instance && own.is_some_and(|own| own.get() == incoming.spot.lease)
    }

    /// Puts a call in the Spot's queue if something handles it. Handed back where the Spot closes at this moment, and the
    /// call may make it anew.
    pub(super) fn admit(
        self: &Arc<Self>,
        object: &Arc<Object>,
        incoming: Incoming,
        is_first: bool,
    ) -> Option<Incoming> {
        let activates = incoming.activates();
        let Incoming {
            mesh,
            source,
            id,
            packet: name,
            record,
            spot,
            reply,
            permit,
            deadline,
            flow,
        } = incoming;
        let Some((packet, handler)) = object
            .factory
            .parts()
            .handler(name.as_bytes(), spot.call.correlation.is_some())
        else {
            let stable_type = &object.factory.parts().stable_type;
            let mut text = format!(
                "the {} is of the type {stable_type}, which does not handle {name}",
                object.noun()
            );
            if let Some(other) = intended(&spot, &record).filter(|other| other != stable_type.as_str()) {
                text = format!("{text}; the call would have made one of the type {other}");
            }
            self.refuse("no_handler", Error::not_executed(ErrorKind::NotFound, text), reply);
            return None;
        };
        let call = Call {
            handler: handler.clone(),
            packet,
            record: record.clone(),
            metadata: spot.call.metadata,
            content_type: spot.call.content_type,
            payload: spot.call.payload,
            deadline,
            reply,
            activates,
            is_first,
            flow,
        };
        let job = SpotJob::new(object.clone(), Work::Call(Box::new(call)));
        let Err(Rejected { kind, job, permit }) = object.lane().admit(job, permit) else {
            if let Some(flow) = flow {
                let told = Told {
                    surface: object.surface(),
                    mesh: mesh.as_str(),
                    packet,
                    correlation: spot.call.correlation,
                    flow,
                };
                told.admitted();
            }
            return None;
        };
        let reply = job.into_reply();
        if let (true, Some(permit)) = (activates && !is_first, permit) {
            return Some(Incoming {
                mesh,
                source,
                id,
                packet: name,
                record,
                spot,
                reply,
                permit,
                deadline,
                flow,
            });
        }
        self.takes_nothing(kind, reply);
        None
    }
}
