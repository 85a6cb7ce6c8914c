//! Where a Spot is: what was found before, else the Location Store; and, for a call that may activate it, where it is made.
//!
//! It must not know what is sent there.

use std::sync::Arc;
use std::time::Duration;

use crate::channel::{self, Found, Intent, SpotTo};
use crate::clock;
use crate::error::{Error, ErrorKind};
use crate::id::{Generation, MeshName, ObjectId, ObjectKind, ObjectRef, Rid, Space, SpotId, SpotType};
use crate::limit::ACTIVATION_TIME;
use crate::location::{AuthorityError, Removal, Resolved, SpotRecord, SpotState};
use crate::message::codec;
use crate::wire;

use super::known::OnItsWay;
use super::spots::{Home, Inner};

/// Between two looks at a Spot that somebody makes.
const LOOK: Duration = Duration::from_millis(50);

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
        "the host of {}, which has the {}, is not known to be alive",
        record.node,
        record.id.space().noun()
    );
    Error::not_executed(ErrorKind::Unavailable, text)
}

/// What a call is told that makes nothing, and found nothing to call.
fn absent(id: &ObjectId, is_being_made: bool) -> String {
    match id.space() {
        _ if is_being_made => format!("{id:?} is still being made, and takes no messages yet"),
        Space::Spots => format!(
            "there is no {id:?}; an Instance Spot is made by a call with .activating(), a User Spot by get_or_create"
        ),
        Space::Actors => format!("there is no {id:?}; an Actor is made by create or get_or_create"),
    }
}

/// Whether an ID has the form of those that the runtime gives to Entry Spots.
pub(super) fn is_entry_form(id: &ObjectId) -> bool {
    // Most IDs are shorter.
    let text = id.spot().map_or("", SpotId::as_str);
    let at = text.len().checked_sub(uuid::fmt::Hyphenated::LENGTH);
    let Some((begin, uuid)) = at.and_then(|at| text.split_at_checked(at)) else {
        return false;
    };
    let Some(prefix) = begin.strip_suffix("-entry-") else {
        return false;
    };
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let lower = !uuid.bytes().any(|byte| byte.is_ascii_uppercase());
    let v4 = uuid::Uuid::try_parse(uuid).is_ok_and(|uuid| uuid.get_version_num() == 4);
    (1..=64).contains(&prefix.len()) && prefix.bytes().all(legal) && lower && v4
}

/// Refuses an ID that only the runtime gives.
pub(super) fn check_new(id: &ObjectId) -> Result<(), Error> {
    if is_entry_form(id) {
        let text = format!("{id} has the form of the ID of an Entry Spot, which only the runtime gives");
        return Err(Error::not_executed(ErrorKind::InvalidOperation, text));
    }
    Ok(())
}

impl Inner {
    /// What a message carries that may activate its Spot, on that run of its node.
    pub(super) fn envelope(&self, home: &Home, intent: &Intent, target: Generation) -> Result<Arc<[u8]>, Error> {
        self.envelope_with(home, &intent.stable_type, target, self.random.uuid().into_bytes())
    }

    /// The same of an activation that has a name already.
    pub(super) fn envelope_with(
        &self,
        home: &Home,
        stable_type: &SpotType,
        target: Generation,
        operation: [u8; 16],
    ) -> Result<Arc<[u8]>, Error> {
        let activation = wire::SpotActivation {
            stable_type: stable_type.as_str().to_owned(),
            mesh: home.mesh.as_str().to_owned(),
            target_lifecycle: target.to_wire(),
            source: home.rid.as_bytes().to_vec(),
            source_lifecycle: home.lifecycle.to_wire(),
            operation: operation.to_vec(),
        };
        codec::encode(&activation, |bytes| Arc::from(bytes))
            .map_err(|error| Error::not_executed(ErrorKind::InternalFailure, error.to_string()))
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
                (standing @ (Resolved::Missing | Resolved::Creating(_)), None) => {
                    // Another call of this host may have begun to make it while the store was asked.
                    if let Some(OnItsWay::Behind(found)) = self.first_message(spot) {
                        return Ok(found);
                    }
                    let text = absent(&spot.id, matches!(standing, Resolved::Creating(_)));
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
    /// from there first. What was sent into another mesh does not arrive, and nothing more is sent there.
    async fn leave_activation(&self, spot: &SpotTo, record: &SpotRecord) -> Option<Found> {
        let now = self.authority.reader().now();
        let over = self.finds.lock().activating.get(&spot.id, now).cloned();
        let arrives = |from: &channel::Place| from.mesh == record.mesh && from.node != record.node;
        match self.first_message(spot) {
            Some(OnItsWay::Behind(found)) if arrives(&found.place) => return Some(found),
            Some(OnItsWay::Over(place, left)) if arrives(&place) => tokio::time::sleep(left).await,
            _ => {}
        }
        if let Some(over) = over {
            // Not one that was begun meanwhile.
            self.finds.lock().activating.remove(&over);
        }
        None
    }

    fn first_message(&self, spot: &SpotTo) -> Option<OnItsWay> {
        let now = self.authority.reader().now();
        self.on_its_way(&mut self.finds.lock().activating, &spot.id, spot.intent.as_ref(), now)
    }

    /// Chooses where it is made, and keeps to that for a while.
    fn begin_activation(&self, id: &ObjectId, intent: &Intent) -> Result<Found, Error> {
        let home = self.home_for(intent.mesh.as_ref())?;
        let mut finds = self.finds.lock();
        let now = self.authority.reader().now();
        if let Some(OnItsWay::Behind(found)) = self.on_its_way(&mut finds.activating, id, Some(intent), now) {
            return Ok(found);
        }
        let place = self.place(home, ObjectKind::Instance, &intent.stable_type, &[])?;
        let place = channel::Place::new(home.mesh.clone(), place.rid, place.lifecycle);
        self.begins_to_make(&mut finds, id, intent.stable_type.clone(), place)
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
        kind: ObjectKind,
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
        let (mesh, noun) = (home.mesh.as_str(), kind.space().noun());
        let (error, text) = if known && !self.fence.is_open() {
            let text = format!("this host cannot prove that it lives now, and no other takes new {noun}s of the type");
            (ErrorKind::Unavailable, text)
        } else if known {
            let text = format!("no node of mesh {mesh:?} takes new {noun}s of the type {stable_type} now");
            (ErrorKind::CapacityExceeded, text)
        } else {
            let registers = match kind {
                ObjectKind::Actor => "actor",
                ObjectKind::Entry | ObjectKind::User | ObjectKind::Instance => "spot",
            };
            let text = format!(
                "no linked node of mesh {mesh:?} has a factory for {noun}s of the type {stable_type}; {registers}(…) of its \
                 object_server registers one"
            );
            (ErrorKind::NotFound, text)
        };
        Err(Error::not_executed(error, text))
    }

    /// Takes away what a dead host has. Its node gets no new Spots from here on: the list of nodes shows its death a moment
    /// later.
    pub(super) async fn release(&self, reference: &ObjectRef) -> Result<Removal, AuthorityError> {
        let removal = self.authority.release(reference).await?;
        if removal == Removal::Removed {
            let now = clock::now();
            let until = now + 3 * self.fence.lease().config().timing.poll_interval;
            let mut dead = self.counted_out.lock();
            dead.retain(|_, until| now < *until);
            dead.insert(reference.node().clone(), until);
        }
        Ok(removal)
    }

    /// Whether new Spots may be made here.
    pub(super) fn takes_new_work(&self) -> bool {
        self.fence.is_open() && self.outbound.state() == crate::channel::HostState::Serving
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Spot that this host has begun to make in one mesh is there in another: nothing of what is sent to where it began
    /// comes to it, so nothing more is sent there.
    ///
    /// REQ: NET-402, SP-068
    #[cfg(feature = "testing")]
    #[tokio::test(start_paused = true)]
    async fn an_activation_in_another_mesh_is_left_at_once() {
        use crate::channel::caller::Caller;
        use crate::location::MemoryStore;
        use crate::testing::Cluster;

        let cluster = Cluster::new(6);
        cluster.node("caller", |host| {
            let host = host.location_store(MemoryStore::new());
            let host = host.mesh("world", |mesh| mesh.listen("tcp://caller:1").object_client());
            host.mesh("far", |mesh| mesh.listen("tcp://caller:2").object_client())
        });
        let host = cluster.start("caller").await.unwrap();
        let spots = host.outbound().objects_as::<Inner>().unwrap();
        let record = super::super::known::tests::record("cart", 3);
        for node in ["owner", "other"] {
            for mesh in ["world", "far"] {
                let place = channel::Place::new(
                    MeshName::new(mesh).unwrap(),
                    Rid::new(node).unwrap(),
                    Generation::from_wire(1).unwrap(),
                );
                let begun = spots.begins_to_make(
                    &mut spots.finds.lock(),
                    &record.id,
                    SpotType::from_static("arena.cart"),
                    place,
                );
                drop(begun.unwrap());
                let there = spots
                    .leave_activation(&SpotTo::new(record.id.clone(), None), &record)
                    .await;
                let goes_there = (node, mesh) == ("other", "world");
                assert_eq!(there.is_some(), goes_there, "{node} in {mesh}");
                assert_eq!(spots.finds.lock().activating.len(), usize::from(goes_there));
            }
        }
        cluster.shutdown().await.unwrap();
    }

    /// REQ: SP-006
    #[test]
    fn only_the_runtime_gives_ids_of_that_form() {
        let is = |id: &str| is_entry_form(&ObjectId::Spot(SpotId::new(id).unwrap()));
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
}
