//! What is known of Spots without asking anybody: who owns those that were found, and where those are made that this host
//! has sent a first message to.
//!
//! It must not know how a Spot is found.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::channel::{Found, Intent, KnownSpot, Lead, Owned, Place, SpotTo};
use crate::error::Error;
use crate::id::{MeshName, ObjectId, Rid, SpotType};
use crate::limit::{ACTIVATION_TIME, ROUTE_CACHE_ROUTES};
use crate::location::{BootTime, SpotRecord};
use crate::routing::cache::RouteCache;
use crate::wire::SpotTarget;

use super::spots::Inner;

/// How long a message may take that another host sends on.
const ON_ITS_WAY: Duration = Duration::from_secs(1);

/// Between two looks for what has become too old.
const SWEEP: Duration = Duration::from_secs(5);

/// What is meant where nobody knows of an owner yet.
pub(super) const ANY_OWNER: SpotTarget = SpotTarget {
    generation: 0,
    owner_generation: 0,
    lease: 0,
};

/// Spots that this host has sent a first message to: their calls go the same way for a while, and are remembered for as long
/// as the last of them may be on its way on.
pub(super) type Activations = RouteCache<ObjectId, Activation>;

/// What was found, and what is being made by what this host has sent. Both are looked at, and changed, as one: what is
/// activated later finds a route that was remembered before, and takes it back.
#[derive(Debug)]
pub(super) struct Finds {
    /// Those that were found elsewhere.
    pub(super) routes: RouteCache<ObjectId, Owned>,
    pub(super) activating: Activations,
    /// How many first messages there were.
    first_messages: u64,
}

impl Finds {
    pub(super) fn new(route_age: Duration) -> Self {
        Self {
            routes: RouteCache::new(route_age, ROUTE_CACHE_ROUTES),
            // Each is a message that this host has sent within their age.
            activating: RouteCache::new(ACTIVATION_TIME + ON_ITS_WAY, usize::MAX),
            first_messages: 0,
        }
    }
}

/// Where a Spot is being made by what this host has sent.
#[derive(Debug)]
pub(super) struct Activation {
    place: Arc<Place>,
    stable_type: SpotType,
    operation: [u8; 16],
}

impl Activation {
    /// Whether it is made on the node of that place.
    fn leads_to(&self, place: &Place) -> bool {
        self.place.node == place.node && self.place.mesh == place.mesh
    }
}

/// How the calls to a Spot go that this host has sent a first message to.
pub(super) enum OnItsWay {
    /// The same way.
    Behind(Found),
    /// By what the store says, but not before so much time has passed where that is elsewhere.
    Over(Arc<Place>, Duration),
}

/// The nodes that Spots were found on, each once.
#[derive(Debug, Default)]
pub(super) struct Places(HashMap<(MeshName, Rid), Arc<Place>>);

impl Places {
    /// The one for all that says what `place` does.
    pub(super) fn shared(&mut self, place: Place) -> Arc<Place> {
        let node = (place.mesh.clone(), place.node.clone());
        if let Some(known) = self.0.get(&node)
            && known.covers(&place)
        {
            return known.clone();
        }
        let place = Arc::new(place);
        self.0.insert(node, place.clone());
        place
    }

    /// Forgets those that nothing leads to.
    fn drop_unused(&mut self) {
        self.0.retain(|_, place| Arc::strong_count(place) > 1);
    }
}

impl Inner {
    /// What is known without asking anybody: where the call's first message went, or what was found before. And what says
    /// so, where that is of another host.
    pub(super) fn known_route(&self, spot: &SpotTo) -> Option<(Found, Option<Arc<KnownSpot>>)> {
        let reader = self.authority.reader();
        let (now, losses) = (reader.now(), reader.losses());
        let mut finds = self.finds.lock();
        match self.on_its_way(&mut finds.activating, &spot.id, spot.intent.as_ref(), now) {
            Some(OnItsWay::Behind(found)) => return Some((found, None)),
            // What was sent there last may still be on its way on.
            Some(OnItsWay::Over(..)) => return None,
            None => {}
        }
        finds.routes.begin_epoch(losses);
        let known = finds.routes.get(&spot.id, now).cloned();
        drop(finds);
        let found = match &known {
            Some(known) if !self.lives(&known.route().place, now) => {
                self.finds.lock().routes.forget(&spot.id, known.version());
                return None;
            }
            Some(known) => Found::known(known),
            None => self.found_here(&spot.id, now, losses)?,
        };
        let found = match &spot.intent {
            None => found,
            Some(intent) => self.or_made_anew(found, intent),
        };
        Some((found, known.filter(|known| known.route().place.admission.is_some())))
    }

    /// Whether what is known of a Spot of another host is so still.
    #[inline]
    pub(super) fn is_so(&self, known: &KnownSpot) -> bool {
        let reader = self.authority.reader();
        let now = reader.now();
        known.holds(now, reader.losses()) && self.lives(&known.route().place, now)
    }

    /// It may be gone by now: then it is made anew where it was.
    pub(super) fn or_made_anew(&self, found: Found, intent: &Intent) -> Found {
        let home = self.home(&found.place.mesh);
        let activation = home.and_then(|home| self.envelope(home, intent, found.place.lifecycle).ok());
        Found { activation, ..found }
    }

    /// Whether the owner there may be alive by all that this host has seen of it.
    #[inline]
    fn lives(&self, place: &Place, now: BootTime) -> bool {
        match (&place.admission, place.owner) {
            (Some(admission), _) => admission.holds(now),
            (None, Some((owner, lease))) => self.authority.reader().may_be_routed_to(owner, lease),
            (None, None) => false,
        }
    }

    /// A Spot of this host that knows its route itself.
    fn found_here(&self, id: &ObjectId, now: BootTime, losses: u64) -> Option<Found> {
        let lease = self.fence.lease();
        let now = lease.admits_by(now)?;
        let object = self.object(id)?;
        let version = object.route.version_if_held(now, losses)?;
        Some(Found {
            place: object.home.place(lease)?.clone(),
            target: object.target()?,
            lead: Lead::Record(version),
            activation: None,
        })
    }

    /// Where a record says that its Spot is.
    fn found_by(&self, record: &SpotRecord) -> Found {
        let place = Place::new(record.mesh.clone(), record.node.clone(), record.lifecycle);
        let admission = self.authority.reader().admission(record.owner, record.lease);
        Found {
            place: self
                .places
                .lock()
                .shared(place.owned_by(record.owner, record.lease, admission)),
            target: SpotTarget {
                generation: record.generation.get(),
                owner_generation: record.owner_generation,
                lease: record.lease.get(),
            },
            lead: Lead::Record(record.version.get()),
            activation: None,
        }
    }

    /// What version `version` of its record, or an older one, says of it is wrong.
    pub(super) fn is_misled(&self, id: &ObjectId, version: u64) {
        let object = self.object(id);
        let mut finds = self.finds.lock();
        finds.routes.forget(id, version);
        if let Some(object) = &object {
            object.route.forget(version);
        }
    }

    /// Remembers where it is, unless the store was found to have lost records since it was asked.
    pub(super) fn remember(&self, record: &SpotRecord, losses: u64) -> Found {
        let found = self.found_by(record);
        let (id, version, object) = (&record.id, record.version.get(), self.object(&record.id));
        let now = self.authority.reader().now();
        // One section, so that nothing is found again that is forgotten meanwhile.
        let mut finds = self.finds.lock();
        let Finds { routes, activating, .. } = &mut *finds;
        let elsewhere = activating
            .get(id, now)
            .is_some_and(|known| !known.route().leads_to(&found.place));
        // What is on its way elsewhere comes first.
        if elsewhere || self.losses() != losses {
            return found;
        }
        routes.begin_epoch(losses);
        if !routes.takes(id, version) {
            return found;
        }
        let until = now.saturating_add(routes.max_age());
        if let Some(object) = &object
            && self.is_here(object, record, losses, until)
        {
            // It needs no room here; and what is called by its first message's way comes to the same Spot, in the same line.
            routes.forget(id, version);
            activating.forget(id, u64::MAX);
            return found;
        }
        let owned = Owned {
            place: found.place.clone(),
            generation: found.target.generation,
            owner_generation: found.target.owner_generation,
        };
        routes.put(id.clone(), version, owned, now);
        found
    }

    /// How often the store was found to have lost records; to be asked before the store is, for [`remember`](Self::remember).
    pub(super) fn losses(&self) -> u64 {
        self.authority.reader().losses()
    }

    /// Whether, and how, this host has sent a first message to that Spot.
    pub(super) fn on_its_way(
        &self,
        activating: &mut Activations,
        id: &ObjectId,
        intent: Option<&Intent>,
        now: BootTime,
    ) -> Option<OnItsWay> {
        let known = activating.get(id, now)?;
        let (activation, left) = (known.route(), known.left(now));
        if left <= ON_ITS_WAY {
            return Some(OnItsWay::Over(activation.place.clone(), left));
        }
        // One without an intent makes nothing, and comes behind what does.
        let made = intent.and_then(|_| self.envelope_of(activation).ok());
        Some(OnItsWay::Behind(self.found_where_made(
            activation,
            known.version(),
            made,
        )))
    }

    /// From here on its calls go the way of the first message, which makes it there.
    ///
    /// # Errors
    /// Where the message cannot say so.
    pub(super) fn begins_to_make(
        &self,
        finds: &mut Finds,
        id: &ObjectId,
        stable_type: SpotType,
        place: Place,
    ) -> Result<Found, Error> {
        let activation = Activation {
            place: self.places.lock().shared(place),
            stable_type,
            operation: self.random.uuid().into_bytes(),
        };
        let made = self.envelope_of(&activation)?;
        // Each has a number of its own, so that what is heard of one says nothing of the next.
        finds.first_messages += 1;
        let number = finds.first_messages;
        let found = self.found_where_made(&activation, number, Some(made));
        let now = self.authority.reader().now();
        finds.activating.put(id.clone(), number, activation, now);
        finds.routes.forget(id, u64::MAX);
        if let Some(object) = self.object(id) {
            object.route.forget(u64::MAX);
        }
        Ok(found)
    }

    fn envelope_of(&self, activation: &Activation) -> Result<Arc<[u8]>, Error> {
        let place = &activation.place;
        let home = self.home_for(Some(&place.mesh))?;
        self.envelope_with(home, &activation.stable_type, place.lifecycle, activation.operation)
    }

    fn found_where_made(&self, activation: &Activation, number: u64, made: Option<Arc<[u8]>>) -> Found {
        Found {
            place: activation.place.clone(),
            target: ANY_OWNER,
            lead: Lead::FirstMessage(number),
            activation: made,
        }
    }

    /// Forgets what has become too old, for ever.
    pub(super) async fn sweep(this: Weak<Self>) {
        loop {
            tokio::time::sleep(SWEEP).await;
            let Some(spots) = this.upgrade() else { return };
            let now = spots.authority.reader().now();
            let mut finds = spots.finds.lock();
            finds.activating.drop_old(now);
            finds.routes.drop_old(now);
            drop(finds);
            spots.places.lock().drop_unused();
        }
    }
}

#[cfg(test)]
#[cfg(feature = "testing")]
pub(super) mod tests;
