//! How Instance Spots of this host begin: with the first message that may activate one.
//!
//! What comes meanwhile waits behind it; where another host was first, all of it goes there. It must not know how a Spot is
//! made, nor what it does.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::id::{ObjectKind, SpotType};
use crate::limit::{ACTIVATION_TIME, BLOB_BYTES};
use crate::location::{OperationId, SpotRecord};
use crate::message::codec;
use crate::transport::BoxFuture;
use crate::wire;

use super::desk::Incoming;
use super::factory::SpotFactory;
use super::find::check_new;
use super::job::SpotJob;
use super::manage::{Cause, Outcome, operation};
use super::object::Object;
use super::spots::{Home, Inner};
use super::table::Table;

impl Inner {
    /// Begins to make the Spot that an incoming call may activate; the call is its first.
    pub(super) fn activate(self: &Arc<Self>, incoming: Incoming) {
        self.activate_in(&mut self.table.lock(), incoming);
    }

    /// The same, with the table in hand: nothing comes between this and what else is done to it.
    pub(super) fn activate_in(self: &Arc<Self>, table: &mut Table, incoming: Incoming) {
        let there = table.get(&incoming.id).cloned();
        let anew = match &there {
            Some(there) => self.enqueue(there, incoming),
            None => Some(incoming),
        };
        let Some(incoming) = anew else { return };
        let begun = self.activation(&incoming).and_then(|(home, factory, operation)| {
            if incoming.record.len() > BLOB_BYTES {
                let (bytes, most) = (incoming.record.len(), BLOB_BYTES);
                let text = format!("the first message of a Spot has {bytes} bytes on the wire; at most {most}");
                return Err(Error::not_executed(ErrorKind::InvalidOperation, text));
            }
            Ok((home, factory, operation))
        });
        let (home, factory, operation) = match begun {
            Ok(begun) => begun,
            Err(error) => return self.refuse("no_spot", error, incoming.reply),
        };
        let cause = Cause {
            operation,
            request: incoming.record.clone(),
            deadline: incoming.deadline,
            told: false,
        };
        let is_request = incoming.spot.call.correlation.is_some();
        let is_handled = factory
            .parts()
            .handler(incoming.packet.as_bytes(), is_request)
            .is_some();
        let object = Object::new(self.clone(), home, factory, incoming.id.clone());
        let (spots, making) = (self.clone(), object.clone());
        let build: BoxFuture<'static, ()> = Box::pin(async move {
            match spots.build(&making, cause).await {
                Outcome::Ready(record, _, losses) => {
                    spots.opened(&making, &record, losses);
                    if !is_handled {
                        making.first_is_done();
                    }
                }
                Outcome::Lost(record) => spots.lost(&making, *record),
                Outcome::Rejected(_) | Outcome::Over(_) => {
                    let text = "an Instance Spot is neither rejected nor asked for";
                    spots.gave_up(&making, Error::not_executed(ErrorKind::InternalFailure, text));
                }
                Outcome::Failed(error) => spots.gave_up(&making, error),
            }
        });
        if SpotJob::build(&object, build) {
            table.insert(object.clone());
            // A new queue takes what comes; where the host stops at this moment, it has refused it.
            let _ = self.admit(&object, incoming, true);
        }
    }

    fn activation(&self, incoming: &Incoming) -> Result<(Arc<Home>, SpotFactory, OperationId), Error> {
        let refuse = |kind, text: &str| Err(Error::not_executed(kind, text));
        let bytes = incoming.spot.activation.of(&incoming.record);
        let Ok(activation) = codec::decode::<wire::SpotActivation>(bytes) else {
            return refuse(ErrorKind::ProtocolError, "an activation cannot be read");
        };
        let operation = operation(&activation.source, activation.source_lifecycle, &activation.operation);
        let (Some(operation), Ok(stable_type)) = (operation, SpotType::new(&activation.stable_type)) else {
            return refuse(
                ErrorKind::ProtocolError,
                "a field of an activation is out of its bounds",
            );
        };
        if activation.mesh != incoming.mesh.as_str() {
            return refuse(
                ErrorKind::ProtocolError,
                "an activation names another mesh than it came over",
            );
        }
        if activation.source != incoming.source.as_bytes() {
            return refuse(
                ErrorKind::ProtocolError,
                "an activation names another sender than it came from",
            );
        }
        let home = self.home(&incoming.mesh).filter(|home| home.serves);
        let Some(home) = home.filter(|home| home.lifecycle.to_wire() == activation.target_lifecycle) else {
            return refuse(
                ErrorKind::Unavailable,
                "an activation was meant for another run of this node",
            );
        };
        check_new(&incoming.id)?;
        match home.factory(ObjectKind::Instance, &stable_type) {
            Some(_) if !self.takes_new_work() => refuse(ErrorKind::Unavailable, "this node takes no new Spots now"),
            Some(factory) => Ok((home.clone(), factory.clone(), operation)),
            None => {
                let text = format!("this node has no factory for Instance Spots of the type {stable_type}");
                refuse(ErrorKind::NotFound, &text)
            }
        }
    }

    /// Somebody else was first: what was accepted here goes there, in order, and what comes behind it too. Not into another
    /// mesh (decision 0069).
    fn lost(self: &Arc<Self>, object: &Arc<Object>, owner: SpotRecord) {
        if owner.mesh != object.home.mesh {
            let text = format!("the Spot is made in mesh {:?}", owner.mesh.as_str());
            return self.gave_up(object, Error::not_executed(ErrorKind::Unavailable, text));
        }
        if owner.owner == self.fence.lease().config().owner && owner.node == object.home.rid {
            // It is of this very host, and on its way out or in.
            let text = "the Spot is being closed or made";
            return self.gave_up(object, Error::not_executed(ErrorKind::Unavailable, text));
        }
        object.forwards(owner);
        let object = Arc::downgrade(object);
        self.runtime.spawn(async move {
            // As long as those that had sent here still send here.
            tokio::time::sleep(ACTIVATION_TIME + Duration::from_secs(2)).await;
            let Some(object) = object.upgrade() else { return };
            object.spots.remove(&object);
            object.lane().close(ErrorKind::Unavailable);
        });
    }
}
