//! What a Spot of this host keeps of its record in the store: only what is not said by what it is made of.
//!
//! It must not know what is done with a record.

use bytes::Bytes;

use crate::id::ObjectGeneration;
use crate::location::{OperationId, Pointer, Revision, SpotRecord, SpotState};

use super::object::Object;
use super::spots::Home;

#[derive(Default)]
pub(super) enum Recorded {
    /// It is not made yet.
    #[default]
    Nothing,
    /// Its own, as it is Ready.
    Own(Own),
    /// Of another owner, or otherwise not as the Spot itself is.
    Other(Box<SpotRecord>),
}

pub(super) struct Own {
    lease: Revision,
    owner_generation: u64,
    version: Revision,
    operation: MadeBy,
    /// What it was made by, as long as that is kept.
    inbox: Option<Box<(Bytes, Option<Pointer>)>>,
}

/// The operation that made it.
enum MadeBy {
    /// Of its own node, by its number.
    Own([u8; 16]),
    Other(Box<OperationId>),
}

impl MadeBy {
    fn of(operation: &OperationId, home: &Home) -> Self {
        match operation.source == home.rid && operation.lifecycle == home.lifecycle {
            true => Self::Own(operation.id),
            false => Self::Other(Box::new(operation.clone())),
        }
    }

    fn whole(&self, home: &Home) -> OperationId {
        match self {
            Self::Own(id) => OperationId {
                source: home.rid.clone(),
                lifecycle: home.lifecycle,
                id: *id,
            },
            Self::Other(operation) => OperationId::clone(operation),
        }
    }
}

impl Recorded {
    pub(super) fn of(record: &SpotRecord, object: &Object) -> Self {
        let parts = object.factory.parts();
        let home = &object.home;
        let is_own = record.state == SpotState::Ready
            && record.id == object.id
            && record.kind == parts.kind
            && record.stable_type == parts.stable_type
            && record.mesh == home.mesh
            && record.node == home.rid
            && record.lifecycle == home.lifecycle
            && record.spot == object.seat()
            && object.is_of(record.generation.get())
            && record.owner == object.spots.fence.lease().config().owner;
        if !is_own {
            return Self::Other(Box::new(record.clone()));
        }
        let is_kept = !record.inbox.is_empty() || record.blob.is_some();
        Self::Own(Own {
            lease: record.lease,
            owner_generation: record.owner_generation,
            version: record.version,
            operation: MadeBy::of(&record.operation, home),
            inbox: is_kept.then(|| Box::new((record.inbox.clone(), record.blob.clone()))),
        })
    }

    /// The record, where there is one.
    pub(super) fn whole(&self, object: &Object) -> Option<SpotRecord> {
        let own = match self {
            Self::Nothing => return None,
            Self::Own(own) => own,
            Self::Other(record) => return Some(SpotRecord::clone(record)),
        };
        let parts = object.factory.parts();
        let (inbox, blob) = own.inbox.as_deref().cloned().unwrap_or_default();
        Some(SpotRecord {
            id: object.id.clone(),
            kind: parts.kind,
            stable_type: parts.stable_type.clone(),
            mesh: object.home.mesh.clone(),
            node: object.home.rid.clone(),
            lifecycle: object.home.lifecycle,
            owner: object.spots.fence.lease().config().owner,
            lease: own.lease,
            generation: object.generation(),
            owner_generation: own.owner_generation,
            version: own.version,
            state: SpotState::Ready,
            operation: own.operation.whole(&object.home),
            inbox,
            blob,
            spot: object.seat(),
        })
    }

    /// The lease that its owner holds it by, its generation, and that of its owner.
    pub(super) fn owner(&self, object: &Object) -> Option<(Revision, ObjectGeneration, u64)> {
        match self {
            Self::Nothing => None,
            Self::Own(own) => Some((own.lease, object.generation(), own.owner_generation)),
            Self::Other(record) => Some((record.lease, record.generation, record.owner_generation)),
        }
    }
}
