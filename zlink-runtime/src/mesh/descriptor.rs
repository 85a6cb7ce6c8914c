//! What a node or a channel's server leaves in the Location Store to be found by, as a value. It must not know leases
//! beyond the name of their owner, nor who is dialled.

use bytes::Bytes;

use crate::id::Rid;
use crate::limit::DESCRIPTOR_BYTES;
use crate::location::{ListName, OwnerId, Record, Revision, Stored};
use crate::message::codec;
use crate::wire;

use super::info::{NodeInfo, NodeState, Scope};

/// A descriptor, as it was found.
#[derive(Clone, Debug)]
pub(crate) struct Descriptor {
    pub(crate) owner: OwnerId,
    /// The generation of its owner's lease; `None` where both were written at once.
    pub(crate) lease: Option<Revision>,
    /// Without operations: those are told on a link. `None` where it does not serve yet, and maybe never will.
    pub(crate) info: Option<NodeInfo>,
}

impl Scope {
    /// The list in which this side is published, or would be; a client is in none.
    pub(crate) fn published(&self) -> Option<ListName> {
        match self {
            Scope::Mesh(name) => Some(ListName::nodes(name.as_str())),
            Scope::ChannelServer(name) => Some(ListName::servers(name.as_str())),
            Scope::ChannelClient(_) => None,
        }
    }

    /// The list in which this side finds whom to dial, and what they are; a server dials nobody.
    pub(crate) fn searched(&self) -> Option<(ListName, Scope)> {
        match self {
            Scope::Mesh(name) => Some((ListName::nodes(name.as_str()), self.clone())),
            Scope::ChannelServer(_) => None,
            Scope::ChannelClient(name) => Some((ListName::servers(name.as_str()), Scope::ChannelServer(name.clone()))),
        }
    }
}

/// The record that publishes `info`.
///
/// # Errors
/// Where it is too large, or its names are; the text says which.
pub(crate) fn record(info: &NodeInfo, owner: OwnerId, lease: Option<Revision>) -> Result<Record, String> {
    let mut node = info.to_wire();
    node.operations = Vec::new();
    made(&info.scope, &info.rid, owner, lease, node)
}

/// The record that keeps a place until its side serves: nobody reads it as a node.
///
/// # Errors
/// As [`record`].
pub(crate) fn claim(scope: &Scope, rid: &Rid, owner: OwnerId) -> Result<Record, String> {
    let node = wire::Hello {
        scope: scope.name().to_owned(),
        rid: rid.as_bytes().to_vec(),
        ..wire::Hello::default()
    };
    made(scope, rid, owner, None, node)
}

fn made(
    scope: &Scope,
    rid: &Rid,
    owner: OwnerId,
    lease: Option<Revision>,
    node: wire::Hello,
) -> Result<Record, String> {
    let list = scope.published().ok_or("a client is not published")?;
    let key = list.record(rid.as_bytes()).map_err(|error| error.to_string())?;
    let descriptor = wire::Descriptor {
        owner: owner.to_wire(),
        lease: lease.map_or(0, Revision::get),
        node,
    };
    let value = codec::encode(&descriptor, Bytes::copy_from_slice).map_err(|error| error.to_string())?;
    match value.len() {
        0..=DESCRIPTOR_BYTES => Ok(Record { list, key, value }),
        bytes => Err(format!(
            "needs {bytes} bytes in the Location Store; at most {DESCRIPTOR_BYTES} are allowed"
        )),
    }
}

/// Reads what was found in the list of `scope`.
///
/// # Errors
/// Where it is no descriptor, or one of something else; the text says why.
pub(crate) fn read(stored: &Stored, scope: &Scope) -> Result<Descriptor, String> {
    let descriptor = codec::decode::<wire::Descriptor>(&stored.value).map_err(|error| error.to_string())?;
    let owner = OwnerId::from_wire(&descriptor.owner).ok_or("its owner is not 16 bytes")?;
    let info = match descriptor.node.state {
        NodeState::Unspecified => None,
        _ => Some(NodeInfo::from_wire(descriptor.node, true).map_err(|refusal| refusal.text)?),
    };
    if let Some(info) = info.as_ref().filter(|info| info.scope != *scope) {
        return Err(format!("it is of {}, not of {scope}", info.scope));
    }
    Ok(Descriptor {
        owner,
        lease: Revision::new(descriptor.lease),
        info,
    })
}
