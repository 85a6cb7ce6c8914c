//! Calls of this host to a Spot of its own that is ready: they are handed to it as they are, with no record in between.
//!
//! Only what is plain comes here. Where anything is to be refused, made or waited for, there is nothing here, and the call goes
//! as a record to the desk, which says why. It must not know how a Spot is found.

use std::sync::Arc;

use crate::channel::{Asked, Here, OwnCall, OwnPeer, ReplyTo};
use crate::execution::{Rejected, may_wait_for};
use crate::location::{BootTime, SpotRecord, nanos};
use crate::permit::Permit;
use crate::sync::atomic::{AtomicU64, Ordering};

use super::job::{SpotJob, Work};
use super::object::{Object, Phase};
use super::spots::Inner;
use super::told::Told;

/// Whether the route of a Spot is known to lead to it, where it is. The same as the cache of routes says, without a look there:
/// it ends with the age of the route, with the loss of records, and with any doubt.
#[derive(Debug, Default)]
pub(super) struct Route {
    /// Until then, on the clock of the host's lease, so that one look at it does for both; 0 where it is not known.
    until: AtomicU64,
    version: AtomicU64,
    losses: AtomicU64,
}

impl Route {
    fn is_found(&self, until: u64, version: u64, losses: u64) {
        self.version.store(version, Ordering::Relaxed);
        self.losses.store(losses, Ordering::Release);
        self.until.store(until, Ordering::Release);
    }

    /// What version `version` of its record, or an older one, says is wrong.
    pub(super) fn forget(&self, version: u64) {
        if self.version.load(Ordering::Relaxed) <= version {
            self.until.store(0, Ordering::Release);
        }
    }

    fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// The version that says so, while it may be used.
    pub(super) fn version_if_held(&self, now: u64, losses: u64) -> Option<u64> {
        self.holds(now, losses).then(|| self.version())
    }

    fn holds(&self, now: u64, losses: u64) -> bool {
        now < self.until.load(Ordering::Acquire) && self.losses.load(Ordering::Acquire) == losses
    }
}

impl Inner {
    /// A record was read: where its Spot is of this host, calls of this host go there by themselves until then. Whether the
    /// Spot knows its route itself now, by this record or by a later one.
    pub(super) fn is_here(&self, object: &Object, record: &SpotRecord, losses: u64, until: BootTime) -> bool {
        let (version, lease) = (record.version.get(), self.fence.lease());
        let now = self.fence.is_open_at();
        let held = now.and_then(|now| object.route.version_if_held(now, losses));
        if held.is_some_and(|held| held > version) {
            return true;
        }
        if record.owner != lease.config().owner || lease.generation() != Some(record.lease) {
            object.route.forget(u64::MAX);
            return false;
        }
        if !object.is_of(record.generation.get()) {
            return false;
        }
        object.route.is_found(nanos(until), version, losses);
        true
    }

    /// The Spot that a call of this host may be handed to.
    pub(super) fn here_for(&self, asked: &Asked<'_>) -> Option<(Arc<dyn Here>, u32)> {
        let object = self.object(asked.id)?;
        let handler = object.is_for(asked)?;
        Some((object, handler))
    }
}

impl Here for Object {
    fn is_for(&self, asked: &Asked<'_>) -> Option<u32> {
        let spots = &*self.spots;
        let now = spots.fence.is_open_at()?;
        let is_known = self.phase() == Phase::Ready && self.route.holds(now, spots.authority.reader().losses());
        if !is_known || asked.request && may_wait_for(self.lane()).is_err() {
            return None;
        }
        self.factory.parts().place(asked.packet, asked.hash, asked.request)
    }

    fn own(&self) -> Option<&Arc<OwnPeer>> {
        self.home.own(&self.spots.outbound)
    }

    fn mesh(&self) -> &str {
        self.home.mesh.as_str()
    }

    fn version(&self) -> u64 {
        self.route.version()
    }

    fn take(self: Arc<Self>, call: Box<OwnCall>, permit: Permit) -> Result<(), Box<OwnCall>> {
        let object = self.clone();
        let told = call.flow.as_deref().map(|flow| Told {
            surface: object.surface(),
            mesh: object.home.mesh.as_str(),
            packet: call.packet,
            correlation: call.reply.as_ref().map(ReplyTo::correlation),
            flow: *flow,
        });
        match object.lane().admit(SpotJob::new(self, Work::Own(call)), permit) {
            Ok(_) => {
                if let Some(told) = told {
                    // What is refused goes as a record, which is received by itself.
                    told.received(&object.home.rid);
                    told.admitted();
                }
                Ok(())
            }
            Err(Rejected { job, permit, .. }) => {
                drop(permit);
                job.into_own().map_or(Ok(()), Err)
            }
        }
    }
}

#[cfg(test)]
#[cfg(zlink_loom)]
mod model;
