//! What comes in for Spots of this host: a call finds its Spot's queue, a control its task, a publish those that subscribe.
//!
//! It must not know how a Spot is made.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use crate::channel::{Arrival, Arrived, Found, Objects, Refusal, ReplyTo, SpotTo, deadline, refuse};
use crate::error::{Error, ErrorKind};
use crate::execution::{Rejected, may_wait_for};
use crate::id::{MeshName, SpotId};
use crate::permit::Permit;
use crate::transport::BoxFuture;
use crate::wire::{OperationName, SpotCall};

use super::job::{Call, SpotJob, Work};
use super::object::{Object, Phase};
use super::spots::Inner;

impl Objects for Inner {
    fn known(&self, spot: &SpotTo) -> Option<Found> {
        self.known_route(spot)
    }

    fn find(self: Arc<Self>, spot: Arc<SpotTo>) -> BoxFuture<'static, Result<Found, Error>> {
        Box::pin(async move { self.find_route(&spot).await })
    }

    fn misled(&self, id: &SpotId, version: u64) {
        self.is_misled(id, version);
    }

    fn may_wait_for(&self, id: &SpotId) -> Result<(), Error> {
        match self.object(id) {
            Some(object) => may_wait_for(object.lane()),
            None => Ok(()),
        }
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }

    fn arrived(self: Arc<Self>, arrival: Arrival) {
        let Arrival {
            mesh,
            source,
            record,
            what,
            reply,
            permit,
            at,
        } = arrival;
        match what {
            Arrived::Call(spot) => self.call(mesh, record, spot, reply, permit, at),
            Arrived::Control(control) => {
                // It is finished in work of its own, which needs no permit.
                drop(permit);
                self.control(mesh, record, control, reply, at);
            }
            Arrived::Publish(publish) => self.fanout.take(mesh, source, record, publish, permit),
        }
    }
}

/// A call that was looked at.
pub(super) struct Incoming {
    pub(super) mesh: MeshName,
    pub(super) id: SpotId,
    pub(super) packet: String,
    pub(super) record: Bytes,
    pub(super) spot: SpotCall,
    pub(super) reply: Option<ReplyTo>,
    pub(super) permit: Permit,
    pub(super) deadline: Option<Instant>,
}

fn text<'a>(bytes: &'a [u8], what: &'static str) -> Result<&'a str, Error> {
    std::str::from_utf8(bytes)
        .map_err(|_| Error::not_executed(ErrorKind::ProtocolError, format!("{what} is not UTF-8")))
}

impl Inner {
    pub(super) fn refuse(&self, reason: &'static str, error: Error, reply: Option<ReplyTo>) {
        refuse(&self.drops, reason, "spot", Refusal { error, reply });
    }

    fn call(
        self: &Arc<Self>,
        mesh: MeshName,
        record: Bytes,
        spot: SpotCall,
        reply: Option<ReplyTo>,
        permit: Permit,
        at: Instant,
    ) {
        let packet = match spot.call.operation {
            OperationName::Named { packet, .. } => packet,
            // The record's form rules it out.
            OperationName::Number(_) => return,
        };
        let names = text(spot.id.of(&record), "a Spot ID").and_then(|id| {
            let id =
                SpotId::new(id).map_err(|error| Error::not_executed(ErrorKind::ProtocolError, error.to_string()))?;
            Ok((id, text(packet.of(&record), "a packet name")?.to_owned()))
        });
        let (id, packet) = match names {
            Ok(names) => names,
            Err(error) => return self.refuse("invalid_frame", error, reply),
        };
        let deadline = deadline(at, spot.call.timeout_ms);
        let incoming = Incoming {
            mesh,
            id,
            packet,
            record,
            spot,
            reply,
            permit,
            deadline,
        };
        if !self.fence.is_open() {
            let error = Error::not_executed(
                ErrorKind::Unavailable,
                "the host of the Spot cannot prove that it has it now",
            );
            return self.refuse("fenced", error, incoming.reply);
        }
        match self.object(&incoming.id) {
            Some(object) => self.enqueue(&object, incoming),
            None if !incoming.spot.activation.is_empty() => self.activate(incoming),
            None => {
                let error = self.absent(&incoming);
                self.refuse("no_spot", error, incoming.reply);
            }
        }
    }

    /// Why a Spot that was meant to be here is not.
    fn absent(&self, incoming: &Incoming) -> Error {
        let own = self.fence.lease().generation().map_or(0, |generation| generation.get());
        let id = incoming.id.as_str();
        if incoming.spot.lease == own {
            Error::not_executed(ErrorKind::NotFound, format!("there is no Spot {id:?} any more"))
        } else {
            Error::not_executed(
                ErrorKind::Unavailable,
                format!("this host does not have the Spot {id:?}"),
            )
        }
    }

    /// Puts a call in the Spot's queue, or answers why not.
    pub(super) fn enqueue(self: &Arc<Self>, object: &Arc<Object>, incoming: Incoming) {
        let activates = !incoming.spot.activation.is_empty();
        let error = match object.phase() {
            Phase::Ready if !activates => object.refusal(&incoming.spot),
            Phase::Ready | Phase::Forwarding => None,
            Phase::Creating if activates => None,
            Phase::Creating => Some((ErrorKind::NotFound, "the Spot is being made")),
            Phase::Closing => Some((ErrorKind::Unavailable, "the Spot closes")),
            Phase::Ended => Some((ErrorKind::NotFound, "the Spot is gone")),
        };
        if let Some((kind, text)) = error {
            return self.refuse("no_spot", Error::not_executed(kind, text), incoming.reply);
        }
        self.admit(object, incoming, false);
    }

    /// Puts a call in the Spot's queue if something handles it.
    pub(super) fn admit(self: &Arc<Self>, object: &Arc<Object>, incoming: Incoming, is_first: bool) {
        let Incoming {
            packet,
            record,
            spot,
            reply,
            permit,
            deadline,
            ..
        } = incoming;
        let Some((packet, handler)) = object.factory.parts().handler(&packet, spot.call.correlation.is_some()) else {
            let stable_type = &object.factory.parts().stable_type;
            let text = format!("the Spot is of the type {stable_type}, which does not handle {packet}");
            if is_first {
                object.first_is_done();
            }
            return self.refuse("no_handler", Error::not_executed(ErrorKind::NotFound, text), reply);
        };
        let call = Call {
            handler: handler.clone(),
            packet,
            record,
            metadata: spot.call.metadata,
            content_type: spot.call.content_type,
            payload: spot.call.payload,
            deadline,
            reply,
            is_first,
        };
        let job = SpotJob::new(object.clone(), object.lane().clone(), Work::Call(Box::new(call)));
        if let Err(Rejected { kind, job, permit }) = object.lane().admit(job, permit) {
            drop(permit);
            let error = Error::not_executed(kind, "the Spot takes no new work");
            self.refuse("shutdown", error, job.into_reply());
        }
    }
}
