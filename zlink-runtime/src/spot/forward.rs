//! What was accepted here for a Spot that another host was first to make: it goes there, once and in order.
//!
//! The queue's order is kept by holding the queue until a link has taken the one in front; replies come back by the way.

use std::sync::Arc;

use crate::channel::{Forwarded, Found, Intent, Lead, Place};
use crate::clock;
use crate::error::{CallError, Error, ErrorKind, Execution};
use crate::limit::ACTIVATION_TIME;
use crate::location::SpotRecord;
use crate::message::metadata::MetadataView;
use crate::wire::SpotTarget;

use super::job::Call;
use super::known::ANY_OWNER;
use super::object::Object;
use super::spots::Inner;

impl Inner {
    /// Sends on what waits in the queue of `object`. The future ends once the owner's link has taken it.
    pub(super) async fn forward(self: Arc<Self>, object: Arc<Object>, owner: SpotRecord, call: Call) {
        let found = match self.way_to(&object, &owner, call.activates) {
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
                (Err(CallError::Failed(error)), reply) => {
                    spots.forwards_on(&object, &owner, &error);
                    spots.refuse("not_forwarded", error, reply);
                }
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

    /// Something was not sent on. Where its owner's node is not among those of its mesh any more, the Spot is nowhere, or
    /// elsewhere: the next call that comes here asks the store anew.
    fn forwards_on(self: &Arc<Self>, object: &Arc<Object>, owner: &SpotRecord, error: &Error) {
        let is_lost = error.kind() == ErrorKind::Unavailable && error.execution() == Execution::NotExecuted;
        if is_lost && !object.home.links.expects(&owner.node) {
            self.gave_up(object, error.clone());
        }
    }

    /// The owner takes it while it makes the Spot, too: it is one that may activate, or follows one.
    fn way_to(&self, object: &Object, owner: &SpotRecord, activates: bool) -> Result<Found, Error> {
        let place = Place::new(owner.mesh.clone(), owner.node.clone(), owner.lifecycle);
        let early = Found {
            place: self.places.lock().shared(place),
            target: ANY_OWNER,
            lead: Lead::Record(owner.version.get()),
            activation: None,
        };
        if !activates {
            return Ok(early);
        }
        let intent = Intent {
            stable_type: owner.stable_type.clone(),
            mesh: None,
        };
        let activation = self.envelope(&object.home, &intent, owner.lifecycle)?;
        Ok(Found {
            target: SpotTarget {
                generation: owner.generation.get(),
                owner_generation: owner.owner_generation,
                lease: owner.lease.get(),
            },
            activation: Some(activation),
            ..early
        })
    }
}
