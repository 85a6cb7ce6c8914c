//! What objects a node can have, as it publishes it. It must not know which it has.

use crate::id::{ObjectKind, SpotId, SpotType};
use crate::limit::MAX_WEIGHT;
use crate::wire;

use super::info::Refusal;

/// What Spots and Actors an Object Server can have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectServer {
    /// The factories it has, each once.
    pub(crate) types: Vec<(ObjectKind, SpotType)>,
    /// Its share of new objects; 0 takes none.
    pub(crate) placement_weight: u16,
    /// Its Entry Spot, once there is one.
    pub(crate) entry: Option<SpotId>,
}

impl ObjectServer {
    pub(super) fn to_wire(&self) -> wire::ObjectServer {
        let types = self.types.iter().map(|(kind, stable_type)| wire::ObjectType {
            kind: match kind {
                ObjectKind::Entry => wire::SpotKind::Entry,
                ObjectKind::User => wire::SpotKind::User,
                ObjectKind::Instance => wire::SpotKind::Instance,
                ObjectKind::Actor => wire::SpotKind::Actor,
            },
            stable_type: stable_type.as_str().to_owned(),
        });
        wire::ObjectServer {
            types: types.collect(),
            placement_weight: self.placement_weight,
            entry: self.entry.as_ref().map(|id| id.as_str().to_owned()).unwrap_or_default(),
        }
    }

    /// Checks what a peer published.
    pub(super) fn from_wire(value: wire::ObjectServer) -> Result<Self, Refusal> {
        let invalid = |text: String| Refusal::new(wire::RejectReason::InvalidDescriptor, text);
        if value.placement_weight > MAX_WEIGHT {
            return Err(invalid(format!("its placement weight is over {MAX_WEIGHT}")));
        }
        let mut types = Vec::with_capacity(value.types.len());
        for one in value.types {
            let kind = match one.kind {
                wire::SpotKind::Entry => ObjectKind::Entry,
                wire::SpotKind::User => ObjectKind::User,
                wire::SpotKind::Instance => ObjectKind::Instance,
                wire::SpotKind::Actor => ObjectKind::Actor,
                // Something newer, which this side asks nobody for.
                wire::SpotKind::Unspecified | wire::SpotKind::Unknown(_) => continue,
            };
            let stable_type = SpotType::new(one.stable_type).map_err(|error| invalid(error.to_string()))?;
            types.push((kind, stable_type));
        }
        let entry = match value.entry.as_str() {
            "" => None,
            id => Some(SpotId::new(id).map_err(|error| invalid(error.to_string()))?),
        };
        Ok(Self {
            types,
            placement_weight: value.placement_weight,
            entry,
        })
    }
}
