//! Where a Spot is: what was found before, else the Location Store; and, for a call that may activate it, where it is made.
//!
//! It must not know what is sent there.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::channel::{Found, Intent, SpotTo};
use crate::clock;
use crate::error::{Error, ErrorKind};
use crate::id::{Generation, MeshName, Rid, SpotId, SpotKind, SpotRef, SpotType};
use crate::limit::ACTIVATION_TIME;
use crate::location::{AuthorityError, OwnerId, Removal, Resolved, Revision, SpotRecord, SpotState};
use crate::message::codec;
use crate::wire::{self, SpotTarget};

use super::spots::{Home, Inner};

/// Between two looks at a Spot that somebody makes.
const LOOK: Duration = Duration::from_millis(50);

/// How long a message may take that another host sends on.
const ON_ITS_WAY: Duration = Duration::from_secs(1);

/// A Spot that was found, as it is remembered.
#[derive(Clone, Debug)]
pub(super) struct Known {
    mesh: MeshName,
    node: Rid,
    lifecycle: Generation,
    target: SpotTarget,
    version: u64,
    /// Whose lease it holds by.
    owner: OwnerId,
    lease: Revision,
}

impl Known {
    fn of(record: &SpotRecord) -> Self {
        Self {
            mesh: record.mesh.clone(),
            node: record.node.clone(),
            lifecycle: record.lifecycle,
            target: SpotTarget {
                generation: record.generation.get(),
                owner_generation: record.owner_generation,
                lease: record.lease.get(),
            },
            version: record.version.get(),
            owner: record.owner,
            lease: record.lease,
        }
    }
}

/// What is meant where nobody knows of an owner yet.
pub(super) const ANY_OWNER: SpotTarget = SpotTarget {
    generation: 0,
    owner_generation: 0,
    lease: 0,
};

/// Where a Spot is being made by what this host has sent.
#[derive(Debug)]
pub(super) struct Activating {
    found: Found,
    until: Instant,
}

impl Activating {
    /// Whether it is made on another node than that.
    pub(super) fn leads_elsewhere(&self, home: &Home) -> bool {
        self.found.node != home.rid || self.found.mesh != home.mesh
    }

    /// The same way for another call: one without an intent makes nothing, and comes behind what does.
    fn found(&self, intent: Option<&Intent>) -> Found {
        let mut found = self.found.clone();
        if intent.is_none() {
            found.activation = None;
        }
        found
    }
}

/// A node that a new Spot can be made on.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) rid: Rid,
    pub(super) lifecycle: Generation,
}

pub(super) fn failed(error: &AuthorityError) -> Error {
    Error::not_executed(error.kind(), format!("the Location Store: {error}"))
}

/// What a call is told whose Spot's owner is dead.
pub(super) fn unavailable(record: &SpotRecord) -> Error {
    let text = format!(
        "the host of {}, which has the Spot, is not known to be alive",
        record.node
    );
    Error::not_executed(ErrorKind::Unavailable, text)
}

/// Whether an ID has the form of those that the runtime gives to Entry Spots.
pub(super) fn is_entry_form(id: &SpotId) -> bool {
    let Some((prefix, uuid)) = id.as_str().rsplit_once("-entry-") else {
        return false;
    };
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let lower = !uuid.bytes().any(|byte| byte.is_ascii_uppercase());
    let v4 = uuid::Uuid::try_parse(uuid).is_ok_and(|uuid| uuid.get_version_num() == 4);
    (1..=64).contains(&prefix.len()) && prefix.bytes().all(legal) && uuid.len() == 36 && lower && v4
}

/// Refuses an ID that only the runtime gives.
pub(super) fn check_new(id: &SpotId) -> Result<(), Error> {
    if is_entry_form(id) {
        let text = format!("{id} has the form of the ID of an Entry Spot, which only the runtime gives");
        return Err(Error::not_executed(ErrorKind::InvalidOperation, text));
    }
    Ok(())
}

impl Inner {
    /// What is known without asking anybody: where the call's first message went, or what was found before.
    pub(super) fn known_route(&self, spot: &SpotTo) -> Option<Found> {
        let now = clock::now();
        match self.activating.lock().get(&spot.id) {
            Some(place) if now < place.until => return Some(place.found(spot.intent.as_ref())),
            // What was sent there last may still be on its way on.
            Some(_) => return None,
            None => {}
        }
        let known = self.usable_route(&spot.id, now)?;
        let activation = spot.intent.as_ref().map(|intent| {
            // It may be gone by now: then it is made anew where it was.
            let home = self.home(&known.mesh)?;
            self.envelope(home, intent, known.lifecycle).ok()
        });
        Some(Found {
            mesh: known.mesh,
            node: known.node,
            target: known.target,
            version: known.version,
            activation: activation.flatten(),
        })
    }

    /// What a message carries that may activate its Spot, on that run of its node.
    pub(super) fn envelope(&self, home: &Home, intent: &Intent, target: Generation) -> Result<Bytes, Error> {
        let activation = wire::SpotActivation {
            stable_type: intent.stable_type.as_str().to_owned(),
            mesh: home.mesh.as_str().to_owned(),
            target_lifecycle: target.to_wire(),
            source: home.rid.as_bytes().to_vec(),
            source_lifecycle: home.lifecycle.to_wire(),
            operation: self.random.uuid().into_bytes().to_vec(),
        };
        codec::encode(&activation, Bytes::copy_from_slice)
            .map_err(|error| Error::not_executed(ErrorKind::InternalFailure, error.to_string()))
    }

    /// The route that is remembered, while its owner's host may be alive by all that this host has seen of it.
    fn usable_route(&self, id: &SpotId, now: Instant) -> Option<Known> {
        let reader = self.authority.reader();
        let mut routes = self.routes.lock();
        routes.begin_epoch(reader.losses());
        let known = routes.get(id, now)?;
        if reader.may_be_routed_to(known.owner, known.lease) {
            return Some(known);
        }
        routes.forget(id, known.version);
        None
    }

    pub(super) fn is_misled(&self, id: &SpotId, version: u64) {
        let object = self.object(id);
        let mut routes = self.routes.lock();
        routes.forget(id, version);
        if let Some(object) = &object {
            object.route.forget(version);
        }
        drop(routes);
        if version == 0 {
            self.activating.lock().remove(id);
        }
    }

    /// Remembers where it is, unless the store was found to have lost records since it was asked.
    pub(super) fn remember(&self, record: &SpotRecord, losses: u64) -> Found {
        let known = Known::of(record);
        let found = Found {
            mesh: record.mesh.clone(),
            node: record.node.clone(),
            target: known.target,
            version: known.version,
            activation: None,
        };
        let (now, object) = (clock::now(), self.object(&record.id));
        // One section, so that nothing is found again that is forgotten meanwhile.
        let mut routes = self.routes.lock();
        if self.losses() == losses {
            routes.begin_epoch(losses);
            let until = now + routes.max_age();
            if routes.put(record.id.clone(), known.version, known, now)
                && let Some(object) = &object
            {
                self.is_here(object, record, losses, until);
            }
        }
        drop(routes);
        found
    }

    /// How often the store was found to have lost records; to be asked before the store is, for [`remember`](Self::remember).
    pub(super) fn losses(&self) -> u64 {
        self.authority.reader().losses()
    }

    pub(super) async fn find_route(&self, spot: &SpotTo) -> Result<Found, Error> {
        if spot.intent.is_some() {
            check_new(&spot.id)?;
        }
        let until = clock::now() + ACTIVATION_TIME;
        loop {
            let losses = self.losses();
            match (self.authority.resolve(&spot.id).await, &spot.intent) {
                // It may have lost the Spot by the time a message comes there, and a send would be dropped unheard.
                (Resolved::Ready(record), _)
                    if !self.authority.reader().may_be_routed_to(record.owner, record.lease) =>
                {
                    return Err(unavailable(&record));
                }
                (Resolved::Ready(record), intent) => {
                    if let Some(found) = self.leave_activation(spot, &record).await {
                        return Ok(found);
                    }
                    let mut found = self.remember(&record, losses);
                    if let (Some(intent), Some(home)) = (intent, self.home(&record.mesh)) {
                        found.activation = Some(self.envelope(home, intent, record.lifecycle)?);
                    }
                    return Ok(found);
                }
                (Resolved::Failed(error), _) => return Err(failed(&error)),
                (Resolved::Unavailable(record), Some(_)) if record.state == SpotState::Creating => {
                    // Its host died while it made it: once that is proved, the ID is free.
                    match self.release(&record.reference()).await {
                        Ok(Removal::OwnerAlive) => return Err(unavailable(&record)),
                        Ok(_) => {}
                        Err(error) => return Err(failed(&error)),
                    }
                }
                (Resolved::Unavailable(record), _) => return Err(unavailable(&record)),
                (Resolved::Missing | Resolved::Creating(_), None) => {
                    // Another call of this host may have begun to make it while the store was asked.
                    let activating = self.activating.lock();
                    if let Some(place) = activating.get(&spot.id).filter(|place| clock::now() < place.until) {
                        return Ok(place.found(None));
                    }
                    let text = format!("there is no Spot {:?}", spot.id.as_str());
                    return Err(Error::not_executed(ErrorKind::NotFound, text));
                }
                (Resolved::Creating(_), Some(_)) => {
                    if clock::now() >= until {
                        let text = "the Spot is being made, and was not in time";
                        return Err(Error::not_executed(ErrorKind::DeadlineExceeded, text));
                    }
                    tokio::time::sleep(LOOK).await;
                }
                (Resolved::Missing, Some(intent)) => return self.begin_activation(&spot.id, intent),
            }
        }
    }

    /// The Spot is there. Where this host sends its messages elsewhere still, this one goes there too, and is returned so:
    /// another call may have begun that while the store was asked. Where it has, the last of them gets the time to arrive
    /// from there first.
    async fn leave_activation(&self, spot: &SpotTo, record: &SpotRecord) -> Option<Found> {
        let until = {
            let activating = self.activating.lock();
            match activating.get(&spot.id).filter(|place| place.found.node != record.node) {
                Some(place) if clock::now() < place.until => return Some(place.found(spot.intent.as_ref())),
                place => place.map(|place| place.until + ON_ITS_WAY),
            }
        };
        if let Some(until) = until {
            tokio::time::sleep_until(until).await;
        }
        self.activating.lock().remove(&spot.id);
        None
    }

    /// Chooses where it is made, and keeps to that for a while.
    fn begin_activation(&self, id: &SpotId, intent: &Intent) -> Result<Found, Error> {
        let home = self.home_for(intent.mesh.as_ref())?;
        let mut activating = self.activating.lock();
        let now = clock::now();
        if let Some(place) = activating.get(id).filter(|place| now < place.until) {
            return Ok(place.found.clone());
        }
        let place = self.place(home, SpotKind::Instance, &intent.stable_type, &[])?;
        let activation = self.envelope(home, intent, place.lifecycle)?;
        let found = Found {
            mesh: home.mesh.clone(),
            node: place.rid,
            target: ANY_OWNER,
            version: 0,
            activation: Some(activation),
        };
        forget_old(&mut activating, now);
        activating.insert(
            id.clone(),
            Activating {
                found: found.clone(),
                until: now + ACTIVATION_TIME,
            },
        );
        if let Some(object) = self.object(id) {
            object.route.forget(u64::MAX);
        }
        Ok(found)
    }

    /// The node of this host in the mesh that new Spots are made in.
    pub(super) fn home_for(&self, mesh: Option<&MeshName>) -> Result<&Arc<Home>, Error> {
        let problem = |kind, text: String| Err(Error::not_executed(kind, text));
        match (mesh, self.homes.as_slice()) {
            (Some(mesh), _) => match self.home(mesh) {
                Some(home) => Ok(home),
                None => problem(
                    ErrorKind::NotFound,
                    format!("this process has no object role in a mesh {:?}", mesh.as_str()),
                ),
            },
            (None, [only]) => Ok(only),
            (None, []) => problem(
                ErrorKind::NotConfigured,
                "no mesh of this process has an object role".into(),
            ),
            (None, [..]) => problem(
                ErrorKind::InvalidOperation,
                "this process has an object role in several meshes; say with in_mesh(…) in which one".into(),
            ),
        }
    }

    /// Draws a node that can have a new Spot of that type, by placement weights.
    pub(super) fn place(
        &self,
        home: &Home,
        kind: SpotKind,
        stable_type: &SpotType,
        refused: &[Rid],
    ) -> Result<Place, Error> {
        let mut known = false;
        let mut candidates: Vec<(Place, u64)> = Vec::new();
        let now = clock::now();
        let dead = self.counted_out.lock();
        let mut consider = |rid: &Rid, lifecycle, weight: u16| {
            known = true;
            let is_dead = dead.get(rid).is_some_and(|until| now < *until);
            if weight > 0 && !is_dead && !refused.contains(rid) {
                let rid = rid.clone();
                candidates.push((Place { rid, lifecycle }, u64::from(weight)));
            }
        };
        if home.serves && home.factory(kind, stable_type).is_some() {
            let takes = self.takes_new_work();
            let weight = if takes { home.links.placement_weight() } else { 0 };
            consider(&home.rid, home.lifecycle, weight);
        }
        for node in home.links.placements() {
            if node
                .objects
                .types
                .iter()
                .any(|(of, name)| *of == kind && name == stable_type)
            {
                consider(&node.rid, node.generation, node.objects.placement_weight);
            }
        }
        let total: u64 = candidates.iter().map(|(_, weight)| weight).sum();
        let mut drawn = if total == 0 { 0 } else { self.random.bits() % total };
        for (place, weight) in candidates {
            match drawn.checked_sub(weight) {
                Some(rest) => drawn = rest,
                None => return Ok(place),
            }
        }
        let mesh = home.mesh.as_str();
        let (kind, text) = if known && !self.fence.is_open() {
            let text = "this host cannot prove that it lives now, and no other takes new Spots of the type".to_owned();
            (ErrorKind::Unavailable, text)
        } else if known {
            let text = format!("no node of mesh {mesh:?} takes new Spots of the type {stable_type} now");
            (ErrorKind::CapacityExceeded, text)
        } else {
            let text = format!("no linked node of mesh {mesh:?} has a factory for the type {stable_type}");
            (ErrorKind::NotFound, text)
        };
        Err(Error::not_executed(kind, text))
    }

    /// Takes away what a dead host has. Its node gets no new Spots from here on: the list of nodes shows its death a moment
    /// later.
    pub(super) async fn release(&self, reference: &SpotRef) -> Result<Removal, AuthorityError> {
        let removal = self.authority.release(reference).await?;
        if removal == Removal::Removed {
            let now = clock::now();
            let until = now + 3 * self.fence.lease().config().timing.poll_interval;
            let mut dead = self.counted_out.lock();
            dead.retain(|_, until| now < *until);
            dead.insert(reference.node.clone(), until);
        }
        Ok(removal)
    }

    /// Whether new Spots may be made here.
    pub(super) fn takes_new_work(&self) -> bool {
        self.fence.is_open() && self.outbound.state() == crate::channel::HostState::Serving
    }
}

/// Keeps what is over from piling up.
fn forget_old(activating: &mut HashMap<SpotId, Activating>, now: Instant) {
    if activating.len() >= 1024 && activating.len().is_power_of_two() {
        activating.retain(|_, place| now < place.until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// REQ: SP-006
    #[test]
    fn only_the_runtime_gives_ids_of_that_form() {
        let is = |id: &str| is_entry_form(&SpotId::new(id).unwrap());
        let uuid = "8f14e45f-ceea-467f-9b1d-3c5b4a1d2e3f";
        assert!(is(&format!("node-entry-{uuid}")));
        assert!(is(&format!("a.b_c-d-entry-{uuid}")));
        assert!(!is(&format!("node-entry-{}", uuid.to_uppercase())));
        assert!(!is(&format!("-entry-{}x", uuid)));
        assert!(!is(&format!("{}-entry-{uuid}", "p".repeat(65))));
        assert!(!is(&format!("ü-entry-{uuid}")));
        assert!(!is(&format!("node-entry-{}", uuid.replace("467f", "167f"))));
        assert!(!is(uuid));
        assert!(!is("room-7"));
    }

    /// All that a route is remembered with, each from the place that it belongs to.
    ///
    /// REQ: RT-003
    #[test]
    fn a_route_is_remembered_with_all_that_it_may_be_wrong_in() {
        use crate::id::ObjectGeneration;
        use crate::location::OperationId;

        let number = |number| Revision::new(number).unwrap();
        let run = |number| Generation::from_wire(number).unwrap();
        let record = SpotRecord {
            id: SpotId::new("room").unwrap(),
            kind: SpotKind::User,
            stable_type: SpotType::from_static("arena.room"),
            mesh: MeshName::from_static("world"),
            node: Rid::new("owner").unwrap(),
            lifecycle: run(1),
            owner: OwnerId::new([2; 16]),
            lease: number(3),
            generation: ObjectGeneration::new(4).unwrap(),
            owner_generation: 5,
            version: number(6),
            state: SpotState::Ready,
            operation: OperationId {
                source: Rid::new("caller").unwrap(),
                lifecycle: run(7),
                id: [8; 16],
            },
            inbox: Bytes::new(),
            blob: None,
        };
        let Known {
            mesh,
            node,
            lifecycle,
            target:
                SpotTarget {
                    generation,
                    owner_generation,
                    lease: meant,
                },
            version,
            owner,
            lease,
        } = Known::of(&record);
        assert_eq!((mesh, node), (record.mesh, record.node), "the route");
        assert_eq!(lifecycle, run(1), "of its node");
        assert_eq!((generation, owner_generation, version), (4, 5, 6));
        assert_eq!(
            (owner, lease, meant),
            (OwnerId::new([2; 16]), number(3), 3),
            "whose lease it holds by"
        );
    }
}
