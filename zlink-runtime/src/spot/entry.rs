//! The Entry Spots of a host, one for each node that has one: made before it serves, under an ID that is the node's for its
//! life, and made anew under it where another host has taken it. Until it is there, its node takes no new Actors.
//!
//! It must not know what an Entry Spot does, nor how an Actor is admitted.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::channel::HostState;
use crate::error::{Error, ErrorKind};
use crate::id::{ObjectId, SpotId};
use crate::limit::LIFECYCLE_JOBS;
use crate::location::OperationId;
use crate::transport::BoxFuture;

use super::job::SpotJob;
use super::manage::{Cause, Outcome};
use super::object::{Object, Phase};
use super::spots::{Home, Inner, Spots};

/// The Entry Spot of a node, where its Actors begin. Empty until it is made.
#[derive(Debug)]
pub(crate) struct Lobby {
    /// The table keeps it, and it keeps its node.
    entry: Mutex<Option<(SpotId, Weak<Object>)>>,
    admissions: Arc<Semaphore>,
}

impl Default for Lobby {
    fn default() -> Self {
        // Half of what its lifecycle lane takes: the other half is for what else there is to do.
        let admissions = Arc::new(Semaphore::new(LIFECYCLE_JOBS / 2));
        let entry = Mutex::default();
        Self { entry, admissions }
    }
}

impl Lobby {
    /// Where an Actor may begin now.
    pub(super) fn get(&self) -> Option<Arc<Object>> {
        let entry = self.entry.lock().as_ref()?.1.upgrade()?;
        (entry.phase() == Phase::Ready).then_some(entry)
    }

    fn set(&self, id: SpotId, entry: &Arc<Object>) {
        *self.entry.lock() = Some((id, Arc::downgrade(entry)));
    }

    /// The ID of the one that was made, and is gone.
    fn lost(&self) -> Option<SpotId> {
        let entry = self.entry.lock();
        let (id, entry) = entry.as_ref()?;
        let is_gone = entry.upgrade().is_none_or(|entry| entry.phase() == Phase::Ended);
        is_gone.then(|| id.clone())
    }

    /// Waits until its lane has room for one more new Actor, first come, first served.
    pub(super) async fn room(&self) -> Option<OwnedSemaphorePermit> {
        // It is never closed.
        self.admissions.clone().acquire_owned().await.ok()
    }
}

impl Spots {
    /// Makes the Entry Spots of all nodes of this host, before any peer may come.
    ///
    /// # Errors
    /// The first that is not made; the text says why.
    pub(crate) async fn start_entries(&self) -> Result<(), String> {
        for home in self.0.homes.iter().filter(|home| home.entry.is_some()) {
            let text = format!("{}-entry-{}", home.rid_prefix, self.0.random.uuid().hyphenated());
            let id = SpotId::new(text).map_err(|error| error.to_string())?;
            let made = self.0.make_entry(home, &id).await;
            made.map_err(|problem| format!("the Entry Spot of mesh {:?}: {problem}", home.mesh.as_str()))?;
            home.links.set_entry(id);
        }
        Ok(())
    }
}

impl Inner {
    /// Makes that of a node anew whenever another host has taken it, as this one could not prove that it lives.
    pub(super) async fn keep_entry(spots: Weak<Self>, home: Arc<Home>) {
        loop {
            let Some(inner) = spots.upgrade() else { return };
            let timing = inner.fence.lease().config().timing;
            let mut pause = timing.poll_interval;
            let lost = home.lobby.lost().filter(|_| inner.takes_new_work());
            if let Some(id) = lost
                && let Err(problem) = inner.make_entry(&home, &id).await
            {
                tracing::warn!(
                    target: "zlink::spot", event_id = "zlink.spot.no_entry", spot = %id, problem,
                    "the Entry Spot of a node is not there again; the node takes no new Actors until it is"
                );
                pause = timing.renew_interval;
            }
            drop(inner);
            tokio::time::sleep(pause).await;
        }
    }

    async fn make_entry(self: &Arc<Self>, home: &Arc<Home>, id: &SpotId) -> Result<(), String> {
        let Some(factory) = &home.entry else { return Ok(()) };
        let object = Object::new(self.clone(), home.clone(), factory.clone(), ObjectId::Spot(id.clone()));
        let cause = Cause {
            operation: OperationId {
                source: home.rid.clone(),
                lifecycle: home.lifecycle,
                id: self.random.uuid().into_bytes(),
            },
            request: Bytes::new(),
            deadline: None,
            told: false,
        };
        let (tell, told) = tokio::sync::oneshot::channel();
        let (spots, making) = (self.clone(), object.clone());
        let build: BoxFuture<'static, ()> = Box::pin(async move {
            let ended = match spots.build(&making, cause).await {
                Outcome::Ready(record, _, losses) => {
                    spots.opened(&making, &record, losses);
                    Ok(())
                }
                Outcome::Lost(_) => Err("its ID is taken".to_owned()),
                Outcome::Rejected(_) | Outcome::Over(_) => Err("it was rejected".to_owned()),
                Outcome::Failed(error) => Err(error.to_string()),
            };
            let _ = tell.send(ended);
        });
        {
            let mut table = self.table.lock();
            // Whoever stops the host looks into the table after it has said so.
            if self.outbound.state() != HostState::Serving || !SpotJob::build(&object, build) {
                return Err("the host stops".to_owned());
            }
            table.insert(object.clone());
        }
        let ended = told.await.unwrap_or_else(|_| Err("it was ended meanwhile".to_owned()));
        match &ended {
            Ok(()) => home.lobby.set(id.clone(), &object),
            Err(problem) => self.gave_up(&object, Error::not_executed(ErrorKind::NotFound, problem.clone())),
        }
        ended
    }
}
