//! What a node or a channel's server leaves in the Location Store to be found by, as a value. It must not know leases
//! beyond the name of their owner, nor who is dialled.

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::id::Rid;
use crate::limit::DESCRIPTOR_BYTES;
use crate::location::{ListName, OwnerId, Record, Revision, Stored};
use crate::message::codec;
use crate::wire;

use super::info::{NodeInfo, NodeState, Scope};
use super::links::Links;

/// A descriptor, as it was found.
#[derive(Clone, Debug)]
pub(crate) struct Descriptor {
    pub(crate) owner: OwnerId,
    /// The generation of its owner's lease; `None` where both were written at once.
    pub(crate) lease: Option<Revision>,
    /// Without operations: those are told on a link. `None` where it does not serve yet, and maybe never will.
    pub(crate) info: Option<NodeInfo>,
}

/// A side that is published, and whatever changes of it.
pub(crate) trait Publishes: Send + Sync + 'static {
    /// What it says of itself now.
    fn local(&self) -> NodeInfo;

    /// Follows the revision of that.
    fn revisions(&self) -> watch::Receiver<u64>;
}

impl Publishes for Links {
    fn local(&self) -> NodeInfo {
        Links::local(self)
    }

    fn revisions(&self) -> watch::Receiver<u64> {
        Links::revisions(self)
    }
}

/// A side that has no links, as it says of itself.
pub(crate) struct Announced {
    info: Mutex<NodeInfo>,
    revision: watch::Sender<u64>,
}

impl Announced {
    pub(crate) fn new(info: NodeInfo) -> Self {
        Self {
            revision: watch::Sender::new(info.revision),
            info: Mutex::new(info),
        }
    }

    /// Says that it takes no new work.
    pub(crate) fn drain(&self) {
        let mut info = self.info.lock();
        info.state = NodeState::Draining;
        info.revision += 1;
        self.revision.send_replace(info.revision);
    }
}

impl Publishes for Announced {
    fn local(&self) -> NodeInfo {
        self.info.lock().clone()
    }

    fn revisions(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }
}

impl Scope {
    /// The list in which this side is published, or would be; a client is in none.
    pub(crate) fn published(&self) -> Option<ListName> {
        match self {
            Scope::Mesh(name) => Some(ListName::nodes(name.as_str())),
            Scope::ChannelServer(name) => Some(ListName::servers(name.as_str())),
            Scope::Publisher(name) => Some(ListName::publishers(name.as_str())),
            Scope::ChannelClient(_) | Scope::Subscriber(_) => None,
        }
    }

    /// The list in which this side finds whom to dial, and what they are; a server dials nobody.
    pub(crate) fn searched(&self) -> Option<(ListName, Scope)> {
        match self {
            Scope::Mesh(name) => Some((ListName::nodes(name.as_str()), self.clone())),
            Scope::ChannelServer(_) | Scope::Publisher(_) => None,
            Scope::Subscriber(name) => Some((ListName::publishers(name.as_str()), Scope::Publisher(name.clone()))),
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
