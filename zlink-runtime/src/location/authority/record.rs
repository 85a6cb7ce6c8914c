//! What the store says of one Spot or Actor, as a value: who owns it, how far it has come, what it was created by. Pure.
//! It must not know batches.

use std::cell::Cell;
use std::fmt;

use bytes::Bytes;

use crate::error::{ArgumentError, ErrorKind};
use crate::id::{Generation, MeshName, ObjectGeneration, ObjectId, ObjectKind, ObjectRef, Rid, SpotId, SpotType};
use crate::limit::INBOX_BYTES;
use crate::location::name::{self, OwnerId};
use crate::location::{BlobRef, Key, Pointer, Revision, Stored};
use crate::message::codec;
use crate::wire;

/// Tells the values of one attempt from all others.
pub(super) type Nonce = u64;

/// Names one operation, for ever: the node that began it, the run of that node, and a number drawn there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OperationId {
    pub(crate) source: Rid,
    pub(crate) lifecycle: Generation,
    pub(crate) id: [u8; 16],
}

impl OperationId {
    /// Where it is told how the operation ended.
    pub(super) fn terminal_key(&self) -> Key {
        name::terminal_key(&self.source, self.lifecycle.to_wire(), self.id)
    }

    fn from_wire(value: &wire::OperationId) -> Option<Self> {
        Some(Self {
            source: Rid::new(&value.source).ok()?,
            lifecycle: Generation::from_wire(value.lifecycle)?,
            id: value.id.as_slice().try_into().ok()?,
        })
    }
}

/// How far a Spot has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SpotState {
    /// Its ID is taken, and its factory may run. Nobody may send to it.
    Creating,
    /// It takes messages.
    Ready,
}

/// The authority of one Spot or Actor, as it was read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpotRecord {
    pub(crate) id: ObjectId,
    pub(crate) kind: ObjectKind,
    pub(crate) stable_type: SpotType,
    pub(crate) mesh: MeshName,
    pub(crate) node: Rid,
    /// The run of that node.
    pub(crate) lifecycle: Generation,
    pub(crate) owner: OwnerId,
    /// The generation of the owner's lease.
    pub(crate) lease: Revision,
    pub(crate) generation: ObjectGeneration,
    /// From 1; rises whenever another host becomes the owner.
    pub(crate) owner_generation: u64,
    /// Of this value: what a change of it is conditioned on, and what is newer.
    pub(crate) version: Revision,
    pub(crate) state: SpotState,
    /// What it was created by.
    pub(crate) operation: OperationId,
    /// The request that it is created by; of a Ready Instance Spot, the first message while it is not done with.
    pub(crate) inbox: Bytes,
    /// Where that is, if it is too large to be here.
    pub(crate) blob: Option<Pointer>,
    /// Of an Actor: the Spot that it is a member of.
    pub(crate) spot: Option<SpotId>,
}

/// What a Spot or Actor is reserved with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reserve {
    pub(crate) id: ObjectId,
    pub(crate) kind: ObjectKind,
    pub(crate) stable_type: SpotType,
    pub(crate) mesh: MeshName,
    /// A node of this host.
    pub(crate) node: Rid,
    pub(crate) lifecycle: Generation,
    pub(crate) operation: OperationId,
    /// The request or first message, at most 64 KiB.
    pub(crate) inbox: Bytes,
    /// Where that is, if it is too large to be here.
    pub(crate) blob: Option<Pointer>,
    /// Of an Actor: the Spot that it begins in.
    pub(crate) spot: Option<SpotId>,
    pub(crate) limits: super::Limits,
}

/// A value that is no record of a Spot, or not of the one under whose key it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotARecord(String);

impl fmt::Display for NotARecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the value is no record of a Spot: {}", self.0)
    }
}

impl SpotRecord {
    /// One exact incarnation, as applications name it.
    pub(crate) fn reference(&self) -> ObjectRef {
        ObjectRef::new(self.id.clone(), self.generation, self.mesh.clone(), self.node.clone())
    }

    /// Where it is kept.
    pub(super) fn key(&self) -> Key {
        name::object_key(&self.id)
    }

    pub(super) fn read(stored: &Stored) -> Result<Self, NotARecord> {
        let value = codec::decode::<wire::SpotRecord>(&stored.value).map_err(|error| NotARecord(error.to_string()))?;
        Self::from_wire(value, stored.revision).ok_or_else(|| NotARecord("a field is out of its bounds".into()))
    }

    /// What stands under the key of `id`.
    pub(super) fn read_as(id: &ObjectId, stored: &Stored) -> Result<Self, NotARecord> {
        let record = Self::read(stored)?;
        if record.id == *id {
            Ok(record)
        } else {
            Err(NotARecord(format!("it is of {}", record.id)))
        }
    }

    fn from_wire(value: wire::SpotRecord, version: Revision) -> Option<Self> {
        let generation = match value.generation {
            0 => version.get(),
            number => number,
        };
        let kind = match value.kind {
            wire::SpotKind::Entry => ObjectKind::Entry,
            wire::SpotKind::User => ObjectKind::User,
            wire::SpotKind::Instance => ObjectKind::Instance,
            wire::SpotKind::Actor => ObjectKind::Actor,
            wire::SpotKind::Unspecified | wire::SpotKind::Unknown(_) => return None,
        };
        let spot = match value.spot.as_str() {
            "" => None,
            id => Some(SpotId::new(id).ok()?),
        };
        // Every Actor is a member of a Spot, and no Spot is.
        if spot.is_some() != (kind == ObjectKind::Actor) {
            return None;
        }
        Some(Self {
            id: kind.space().id(value.id).ok()?,
            kind,
            spot,
            stable_type: SpotType::new(value.stable_type).ok()?,
            mesh: MeshName::new(value.mesh).ok()?,
            node: Rid::new(&value.node).ok()?,
            lifecycle: Generation::from_wire(value.lifecycle)?,
            owner: OwnerId::from_wire(&value.owner)?,
            lease: Revision::new(value.lease)?,
            generation: ObjectGeneration::new(generation)?,
            owner_generation: value.owner_generation,
            version,
            state: match value.state {
                wire::ObjectState::Creating => SpotState::Creating,
                wire::ObjectState::Ready => SpotState::Ready,
                wire::ObjectState::Unspecified | wire::ObjectState::Unknown(_) => return None,
            },
            operation: OperationId::from_wire(&value.operation)?,
            inbox: value.inbox.into(),
            blob: match value.blob {
                Some(blob) => Some(pointer(&blob)?),
                None => None,
            },
        })
    }

    /// The value that says this. The version is the store's to say, and the generation where `issued` is not set.
    pub(super) fn to_value(&self, issued: bool, nonce: Nonce) -> Result<Bytes, ArgumentError> {
        let mut value = SCRATCH.take();
        self.write(&mut value, issued, nonce);
        let encoded = codec::encode(&value, Bytes::copy_from_slice);
        if value.inbox.capacity() <= SCRATCH_INBOX {
            SCRATCH.set(value);
        }
        encoded.map_err(|error| ArgumentError::new("record of a Spot", error.to_string()))
    }

    /// Says this in `value`, whatever it said before.
    fn write(&self, value: &mut wire::SpotRecord, issued: bool, nonce: Nonce) {
        fn text(into: &mut String, text: &str) {
            into.clear();
            into.push_str(text);
        }
        fn bytes(into: &mut Vec<u8>, bytes: &[u8]) {
            into.clear();
            into.extend_from_slice(bytes);
        }
        // All of them by name: one that is new is not forgotten.
        let wire::SpotRecord {
            nonce: of_attempt,
            id,
            kind,
            state,
            stable_type,
            mesh,
            node,
            lifecycle,
            owner,
            lease,
            generation,
            owner_generation,
            operation,
            inbox,
            blob,
            spot,
        } = value;
        bytes(of_attempt, &nonce.to_le_bytes());
        text(id, self.id.as_str());
        *kind = match self.kind {
            ObjectKind::Entry => wire::SpotKind::Entry,
            ObjectKind::User => wire::SpotKind::User,
            ObjectKind::Instance => wire::SpotKind::Instance,
            ObjectKind::Actor => wire::SpotKind::Actor,
        };
        *state = match self.state {
            SpotState::Creating => wire::ObjectState::Creating,
            SpotState::Ready => wire::ObjectState::Ready,
        };
        text(stable_type, self.stable_type.as_str());
        text(mesh, self.mesh.as_str());
        bytes(node, self.node.as_bytes());
        *lifecycle = self.lifecycle.to_wire();
        bytes(owner, self.owner.as_bytes());
        *lease = self.lease.get();
        *generation = if issued { self.generation.get() } else { 0 };
        *owner_generation = self.owner_generation;
        bytes(&mut operation.source, self.operation.source.as_bytes());
        operation.lifecycle = self.operation.lifecycle.to_wire();
        bytes(&mut operation.id, &self.operation.id);
        bytes(inbox, &self.inbox);
        text(spot, self.spot.as_ref().map_or("", SpotId::as_str));
        *blob = self.blob.as_ref().map(|blob| wire::Blob {
            reference: blob.reference.as_str().to_owned(),
            sha256: blob.sha256.to_vec(),
            size: blob.size,
        });
    }
}

thread_local! {
    /// The value that records are written from, for its fields' memory. Taken while in use.
    static SCRATCH: Cell<wire::SpotRecord> = Cell::default();
}

/// A thread keeps no room for inboxes that are larger.
const SCRATCH_INBOX: usize = 4096;

fn pointer(blob: &wire::Blob) -> Option<Pointer> {
    Some(Pointer {
        reference: BlobRef::new(&blob.reference).ok()?,
        sha256: blob.sha256.as_slice().try_into().ok()?,
        size: blob.size,
    })
}

impl Reserve {
    /// # Errors
    /// Where the inbox has more than 64 KiB.
    pub(super) fn check(&self) -> Result<(), ArgumentError> {
        match self.inbox.len() {
            0..=INBOX_BYTES => Ok(()),
            len => Err(ArgumentError::new(
                "inbox",
                format!("has {len} bytes; at most {INBOX_BYTES}"),
            )),
        }
    }

    /// What stands there once it is applied.
    pub(super) fn record(&self, owner: OwnerId, lease: Revision, applied: Revision) -> SpotRecord {
        SpotRecord {
            id: self.id.clone(),
            kind: self.kind,
            stable_type: self.stable_type.clone(),
            mesh: self.mesh.clone(),
            node: self.node.clone(),
            lifecycle: self.lifecycle,
            owner,
            lease,
            generation: generation_of(applied),
            owner_generation: 1,
            version: applied,
            state: SpotState::Creating,
            operation: self.operation.clone(),
            inbox: self.inbox.clone(),
            blob: self.blob.clone(),
            spot: self.spot.clone(),
        }
    }

    /// Whether that record is what this would have made.
    pub(super) fn made(&self, record: &SpotRecord) -> bool {
        let mut made = self.record(record.owner, record.lease, record.version);
        // The same bytes, under whatever name they are kept.
        let sum = |blob: &Option<Pointer>| blob.as_ref().map(|blob| (blob.sha256, blob.size));
        if sum(&made.blob) == sum(&record.blob) {
            made.blob.clone_from(&record.blob);
        }
        *record == made
    }
}

/// How a creation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CreationOutcome {
    Created,
    /// The application refused it.
    Rejected,
    Failed(ErrorKind),
}

/// How a creation ended, and what its caller is answered, kept for five minutes after the caller's deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Terminal {
    pub(crate) outcome: CreationOutcome,
    /// At most 64 KiB.
    pub(crate) body: Bytes,
    /// Of the caller.
    pub(crate) deadline: tokio::time::Instant,
}

/// The generation of what a batch with that revision reserved: both count from 1 to 2⁶³ − 1.
pub(super) fn generation_of(revision: Revision) -> ObjectGeneration {
    ObjectGeneration::new(revision.get()).unwrap_or_else(|| unreachable!("{revision} is a generation"))
}

/// A terminal, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) outcome: CreationOutcome,
    pub(crate) generation: ObjectGeneration,
    /// Of the node that made it.
    pub(crate) mesh: MeshName,
    pub(crate) node: Rid,
    pub(crate) body: Bytes,
}

impl Terminal {
    /// How the creation of `record` ended.
    pub(super) fn to_value(&self, record: &SpotRecord, nonce: Nonce) -> Result<Bytes, ArgumentError> {
        let (outcome, error) = match self.outcome {
            CreationOutcome::Created => (wire::CreationOutcome::Created, 0),
            CreationOutcome::Rejected => (wire::CreationOutcome::Rejected, 0),
            CreationOutcome::Failed(kind) => (wire::CreationOutcome::Failed, kind.number()),
        };
        let value = wire::CreationTerminal {
            nonce: nonce.to_le_bytes().to_vec(),
            outcome,
            generation: record.generation.get(),
            body: self.body.to_vec(),
            mesh: record.mesh.as_str().to_owned(),
            node: record.node.as_bytes().to_vec(),
            error,
        };
        codec::encode(&value, Bytes::copy_from_slice).map_err(|error| ArgumentError::new("terminal", error.to_string()))
    }
}

impl Ended {
    pub(super) fn read(stored: &Stored) -> Result<Self, NotARecord> {
        let value =
            codec::decode::<wire::CreationTerminal>(&stored.value).map_err(|error| NotARecord(error.to_string()))?;
        let outcome = match value.outcome {
            wire::CreationOutcome::Created => CreationOutcome::Created,
            wire::CreationOutcome::Rejected => CreationOutcome::Rejected,
            wire::CreationOutcome::Failed => {
                CreationOutcome::Failed(ErrorKind::from_number(value.error).unwrap_or(ErrorKind::InternalFailure))
            }
            wire::CreationOutcome::Unspecified | wire::CreationOutcome::Unknown(_) => {
                return Err(NotARecord("a terminal without an outcome".into()));
            }
        };
        let generation = ObjectGeneration::new(value.generation)
            .ok_or_else(|| NotARecord("a terminal without a generation".into()))?;
        let (Ok(mesh), Ok(node)) = (MeshName::new(&value.mesh), Rid::new(value.node)) else {
            return Err(NotARecord("a terminal without a node".into()));
        };
        Ok(Self {
            outcome,
            generation,
            mesh,
            node,
            body: value.body.into(),
        })
    }
}
