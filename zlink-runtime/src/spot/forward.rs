//! What was accepted here for a Spot that another host was first to make: it goes there, once and in order.
//!
//! The queue's order is kept by holding the queue until a link has taken the one in front; replies come back by the way.

use std::sync::Arc;

use crate::channel::{Forwarded, Found};
use crate::clock;
use crate::error::{CallError, Error, ErrorKind};
use crate::limit::ACTIVATION_TIME;
use crate::location::SpotRecord;
use crate::message::codec;
use crate::message::metadata::MetadataView;
use crate::wire::{self, SpotTarget};

use super::job::Call;
use super::object::Object;
use super::spots::Inner;

impl Inner {
    /// Sends on what waits in the queue of `object`. The future ends once the owner's link has taken it.
    pub(super) async fn forward(self: Arc<Self>, object: Arc<Object>, owner: SpotRecord, call: Call) {
        let found = match self.way_to(&object, &owner) {
            Ok(found) => found,
            Err(error) => return self.refuse("not_forwarded", error, call.reply),
        };
        let Call {
            packet,
            record,
            metadata,
            payload,
            deadline,
            reply,
            ..
        } = call;
        let metadata = MetadataView::parse(metadata.of(&record))
            .unwrap_or_default()
            .to_metadata();
        let left = deadline.map(|deadline| deadline.saturating_duration_since(clock::now()));
        let timeout = reply.is_some().then(|| left.unwrap_or(ACTIVATION_TIME));
        let to = (object.id.clone(), found);
        let mut forwarded = Forwarded::new(&self.outbound, to, packet, metadata, payload.share(&record), timeout);
        forwarded.submitted().await;
        let spots = self.clone();
        let relay = async move {
            match (forwarded.ended().await, reply) {
                (Ok(answer), Some(reply)) => reply.relay(&answer),
                (Ok(_), None) => {}
                (Err(CallError::Failed(error)), reply) => spots.refuse("not_forwarded", error, reply),
                (Err(CallError::Argument(error)), reply) => {
                    let error = Error::not_executed(ErrorKind::InternalFailure, error.to_string());
                    spots.refuse("not_forwarded", error, reply);
                }
            }
        };
        if timeout.is_some() {
            self.runtime.spawn(relay);
        } else {
            relay.await;
        }
    }

    /// The owner takes it while it makes the Spot, too: the message is one that may activate.
    fn way_to(&self, object: &Object, owner: &SpotRecord) -> Result<Found, Error> {
        let activation = wire::SpotActivation {
            stable_type: owner.stable_type.as_str().to_owned(),
            mesh: owner.mesh.as_str().to_owned(),
            target_lifecycle: owner.lifecycle.to_wire(),
            source: object.home.rid.as_bytes().to_vec(),
            source_lifecycle: object.home.lifecycle.to_wire(),
            operation: self.random.uuid().into_bytes().to_vec(),
        };
        let activation = codec::encode(&activation, bytes::Bytes::copy_from_slice)
            .map_err(|error| Error::not_executed(ErrorKind::InternalFailure, error.to_string()))?;
        Ok(Found {
            mesh: owner.mesh.clone(),
            node: owner.node.clone(),
            target: SpotTarget {
                generation: owner.generation.get(),
                owner_generation: owner.owner_generation,
                lease: owner.lease.get(),
            },
            version: owner.version.get(),
            activation: Some(activation),
        })
    }
}
