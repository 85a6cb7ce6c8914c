//! What a node, server or client says of itself, checked once when it arrives. It must not decide on admission.

use std::fmt;

use crate::id::{ChannelName, Generation, MAX_ID_BYTES, MeshName, PacketName, Rid, text_hash};
use crate::limit::{
    DESCRIPTOR_CHANNELS, DESCRIPTOR_OPERATIONS, ENDPOINT_BYTES, LEAST_MESSAGE_BYTES, MAX_WEIGHT, PAYLOAD_BYTES,
};
use crate::message::codec;
use crate::wire::{self, RecordKind};

use super::objects::ObjectServer;

pub(crate) use crate::wire::NodeState;

/// What a MeshNode may do with Spots and Actors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ObjectRole {
    /// Nothing; it needs no Location Store.
    #[default]
    None,
    /// Create, find and message them.
    Client,
    /// All that, and own them.
    Server,
}

/// What a link belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    Mesh(MeshName),
    /// The side that takes requests.
    ChannelServer(ChannelName),
    /// The side that makes them.
    ChannelClient(ChannelName),
    /// Of a fanout, which has no links.
    Publisher(ChannelName),
    /// Who looks for those.
    Subscriber(ChannelName),
}

impl Scope {
    pub(crate) fn is_mesh(&self) -> bool {
        matches!(self, Scope::Mesh(_))
    }

    pub(crate) fn is_channel_client(&self) -> bool {
        matches!(self, Scope::ChannelClient(_))
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Scope::Mesh(name) => name.as_str(),
            Scope::ChannelServer(name)
            | Scope::ChannelClient(name)
            | Scope::Publisher(name)
            | Scope::Subscriber(name) => name.as_str(),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Scope::Mesh(_) => "mesh",
            Scope::ChannelServer(_) => "channel server",
            Scope::ChannelClient(_) => "channel client",
            Scope::Publisher(_) => "fanout publisher",
            Scope::Subscriber(_) => "fanout subscriber",
        };
        write!(f, "{what} {:?}", self.name())
    }
}

/// Something that can be sent or requested: a packet of a channel, or of the node itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OperationId {
    hash: u64,
    channel: Option<ChannelName>,
    packet: PacketName,
}

/// A name and its [`text_hash`].
#[derive(Clone, Debug)]
pub(crate) struct Hashed<N> {
    pub(crate) name: N,
    pub(crate) hash: u64,
}

impl Hashed<ChannelName> {
    pub(crate) fn new(name: ChannelName) -> Self {
        let hash = text_hash(name.as_str());
        Self { name, hash }
    }
}

/// Of both names. Callers know those of the names beforehand: every call looks an operation up.
fn joint_hash(channel: Option<u64>, packet: u64) -> u64 {
    channel.map_or(0, |channel| channel.rotate_left(32)) ^ packet
}

impl OperationId {
    pub(crate) fn new(channel: Option<ChannelName>, packet: PacketName) -> Self {
        let of_channel = channel.as_ref().map(|channel| text_hash(channel.as_str()));
        Self {
            hash: joint_hash(of_channel, text_hash(packet.as_str())),
            channel,
            packet,
        }
    }

    fn is(&self, channel: Option<&str>, packet: &str) -> bool {
        self.packet.as_str() == packet && self.channel.as_ref().map(ChannelName::as_str) == channel
    }
}

/// What a receiver handles, by number. The number is what travels.
///
/// Peers choose the names, so it is an ordered list and no hash table: however they are chosen, a look-up takes the same
/// few steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operations {
    /// The hash and number of each, by hash; no hash is there twice.
    numbers: Vec<(u64, u32)>,
    list: Vec<OperationId>,
}

impl Operations {
    /// # Errors
    /// Where one is listed twice, or two have the same hash, which nobody has by chance; the text says which.
    pub(crate) fn new(list: Vec<OperationId>) -> Result<Self, String> {
        let mut numbers: Vec<_> = list.iter().map(|operation| operation.hash).zip(0..).collect();
        numbers.sort_unstable();
        let clash = numbers.windows(2).find_map(|pair| match pair {
            [(hash, _), (other, number)] if hash == other => list.get(*number as usize),
            _ => None,
        });
        match clash {
            Some(operation) => Err(format!(
                "operation {:?} is listed twice, or another has its hash",
                operation.packet
            )),
            None => Ok(Self { numbers, list }),
        }
    }

    /// The number of an operation, from its names and their hashes.
    pub(crate) fn number(&self, channel: Option<&Hashed<ChannelName>>, packet: &str, packet_hash: u64) -> Option<u32> {
        let hash = joint_hash(channel.map(|channel| channel.hash), packet_hash);
        let channel = channel.map(|channel| channel.name.as_str());
        self.of_hash(hash)
            .filter(|(_, one)| one.is(channel, packet))
            .map(|(number, _)| number)
    }

    /// The same of an operation that is known as such.
    pub(crate) fn number_of(&self, operation: &OperationId) -> Option<u32> {
        self.of_hash(operation.hash)
            .filter(|(_, one)| *one == operation)
            .map(|(number, _)| number)
    }

    fn of_hash(&self, hash: u64) -> Option<(u32, &OperationId)> {
        let at = self.numbers.binary_search_by_key(&hash, |(hash, _)| *hash);
        let (_, number) = self.numbers.get(at.ok()?)?;
        Some((*number, self.list.get(*number as usize)?))
    }
}

/// Why a side with so many of each is not admitted, or does not start.
fn too_many(channels: usize, operations: usize) -> Option<String> {
    let problem = |what: &str, there: usize, most: usize| format!("lists {there} {what}; at most {most} are allowed");
    if channels > DESCRIPTOR_CHANNELS {
        return Some(problem("channels", channels, DESCRIPTOR_CHANNELS));
    }
    (operations > DESCRIPTOR_OPERATIONS).then(|| problem("operations", operations, DESCRIPTOR_OPERATIONS))
}

/// One side of a link, as it describes itself.
#[derive(Clone, Debug)]
pub(crate) struct NodeInfo {
    pub(crate) scope: Scope,
    pub(crate) rid: Rid,
    pub(crate) generation: Generation,
    pub(crate) revision: u64,
    pub(crate) role: ObjectRole,
    /// Server memberships by name, each once.
    pub(crate) channels: Vec<(ChannelName, u16)>,
    pub(crate) endpoint: String,
    pub(crate) security_identity: String,
    pub(crate) max_message: usize,
    pub(crate) state: NodeState,
    pub(crate) operations: Operations,
    /// Of an Object Server.
    pub(crate) objects: ObjectServer,
}

/// Why a description is refused: the closed reason, and a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: wire::RejectReason,
    pub(crate) text: String,
}

impl Refusal {
    pub(crate) fn new(reason: wire::RejectReason, text: impl Into<String>) -> Self {
        Self {
            reason,
            text: text.into(),
        }
    }
}

impl NodeInfo {
    /// One that a host begins with: it serves, and has nothing yet.
    pub(crate) fn begun(scope: Scope, rid: Rid, generation: Generation) -> Self {
        Self {
            scope,
            rid,
            generation,
            revision: 1,
            role: ObjectRole::None,
            channels: Vec::new(),
            endpoint: String::new(),
            security_identity: String::new(),
            max_message: PAYLOAD_BYTES,
            state: NodeState::Serving,
            operations: Operations::default(),
            objects: ObjectServer::default(),
        }
    }

    /// What this side sends as its hello or admit.
    pub(crate) fn to_wire(&self) -> wire::Hello {
        wire::Hello {
            topology: match self.scope {
                Scope::Mesh(_) => wire::Topology::RouteMesh,
                Scope::ChannelServer(_) | Scope::ChannelClient(_) => wire::Topology::ClientServer,
                Scope::Publisher(_) | Scope::Subscriber(_) => wire::Topology::Fanout,
            },
            scope: self.scope.name().to_owned(),
            rid: self.rid.as_bytes().to_vec(),
            generation: self.generation.to_wire(),
            revision: self.revision,
            role: match self.role {
                ObjectRole::None => wire::ObjectRole::None,
                ObjectRole::Client => wire::ObjectRole::Client,
                ObjectRole::Server => wire::ObjectRole::Server,
            },
            channels: channels_to_wire(&self.channels),
            endpoint: self.endpoint.clone(),
            security_identity: self.security_identity.clone(),
            capabilities: Vec::new(),
            max_message: self.max_message as u64,
            state: self.state,
            operations: self
                .operations
                .list
                .iter()
                .map(|operation| wire::Operation {
                    channel: operation
                        .channel
                        .as_ref()
                        .map(|name| name.as_str().to_owned())
                        .unwrap_or_default(),
                    packet: operation.packet.as_str().to_owned(),
                })
                .collect(),
            minor: wire::MINOR,
            objects: (self.role == ObjectRole::Server).then(|| self.objects.to_wire()),
        }
    }

    /// What of it can change while a link lives.
    pub(super) fn to_update(&self) -> wire::Update {
        wire::Update {
            revision: self.revision,
            state: self.state,
            channels: channels_to_wire(&self.channels),
            placement_weight: (self.role == ObjectRole::Server).then_some(self.objects.placement_weight),
        }
    }

    /// The least that a peer must take, in bytes, for what this side sends of itself: the channels it tells its changes
    /// of, whatever their weights.
    pub(super) fn least_message(&self) -> usize {
        let mut update = self.to_update();
        for channel in &mut update.channels {
            channel.weight = MAX_WEIGHT;
        }
        let update = codec::encode(&update, |body| wire::service(RecordKind::Update, body).len());
        // What cannot be encoded is reported where it is to be sent.
        update.unwrap_or(0).max(LEAST_MESSAGE_BYTES)
    }

    /// Checks what a peer sent. `dialled` tells which side of a ClientServer channel it must be.
    ///
    /// # Errors
    /// Where a field breaks its bound, or names something that this protocol does not have.
    pub(crate) fn from_wire(hello: wire::Hello, peer_is_server: bool) -> Result<Self, Refusal> {
        let invalid = |text: String| Refusal::new(wire::RejectReason::InvalidDescriptor, text);
        if let Some(unknown) = hello.capabilities.first() {
            let text = format!("it requires the capability {unknown:?}, which this side does not have");
            return Err(Refusal::new(wire::RejectReason::Capability, text));
        }
        if let Some(text) = too_many(hello.channels.len(), hello.operations.len()) {
            return Err(Refusal::new(wire::RejectReason::ResourceLimit, format!("it {text}")));
        }
        let scope = match hello.topology {
            wire::Topology::RouteMesh => MeshName::new(&hello.scope).map(Scope::Mesh),
            wire::Topology::ClientServer if peer_is_server => ChannelName::new(&hello.scope).map(Scope::ChannelServer),
            wire::Topology::ClientServer => ChannelName::new(&hello.scope).map(Scope::ChannelClient),
            wire::Topology::Fanout => ChannelName::new(&hello.scope).map(Scope::Publisher),
            wire::Topology::Unspecified | wire::Topology::Unknown(_) => {
                return Err(Refusal::new(wire::RejectReason::Topology, "it names no known topology"));
            }
        };
        let role = match hello.role {
            wire::ObjectRole::None => ObjectRole::None,
            wire::ObjectRole::Client => ObjectRole::Client,
            wire::ObjectRole::Server => ObjectRole::Server,
            wire::ObjectRole::Unspecified if !matches!(scope, Ok(Scope::Mesh(_))) => ObjectRole::None,
            wire::ObjectRole::Unspecified | wire::ObjectRole::Unknown(_) => {
                return Err(invalid("it names no known object role".into()));
            }
        };
        if !matches!(hello.state, NodeState::Serving | NodeState::Draining) {
            return Err(invalid("it names no known state".into()));
        }
        if hello.revision == 0 {
            return Err(invalid("its revision is 0".into()));
        }
        if hello.endpoint.len() > ENDPOINT_BYTES || hello.security_identity.len() > MAX_ID_BYTES {
            return Err(invalid("a text of it is too long".into()));
        }
        let operations = hello.operations.into_iter().map(|operation| {
            let channel = if operation.channel.is_empty() {
                None
            } else {
                Some(ChannelName::new(operation.channel)?)
            };
            Ok(OperationId::new(channel, PacketName::new(operation.packet)?))
        });
        let bad_id = |error: crate::id::InvalidId| invalid(error.to_string());
        Ok(Self {
            scope: scope.map_err(bad_id)?,
            rid: Rid::new(&hello.rid).map_err(bad_id)?,
            generation: Generation::from_wire(hello.generation).ok_or_else(|| invalid("its generation is 0".into()))?,
            revision: hello.revision,
            role,
            channels: channels_from_wire(hello.channels)?,
            endpoint: hello.endpoint,
            security_identity: hello.security_identity,
            max_message: usize::try_from(hello.max_message).unwrap_or(usize::MAX),
            state: hello.state,
            operations: Operations::new(operations.collect::<Result<_, _>>().map_err(bad_id)?).map_err(invalid)?,
            objects: hello
                .objects
                .map(ObjectServer::from_wire)
                .transpose()?
                .unwrap_or_default(),
        })
    }

    /// Why no peer would admit this side, however right its parts are.
    pub(crate) fn is_too_much(&self) -> Option<String> {
        too_many(self.channels.len(), self.operations.list.len()).or_else(|| {
            let (least, most) = (self.least_message(), self.max_message);
            (most < least).then(|| format!("has max_message {most}, and needs {least} bytes to tell of its channels"))
        })
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.state == NodeState::Draining
    }
}

fn channels_to_wire(channels: &[(ChannelName, u16)]) -> Vec<wire::ChannelServer> {
    channels
        .iter()
        .map(|(name, weight)| wire::ChannelServer {
            name: name.as_str().to_owned(),
            weight: *weight,
        })
        .collect()
}

pub(super) fn channels_from_wire(channels: Vec<wire::ChannelServer>) -> Result<Vec<(ChannelName, u16)>, Refusal> {
    let refuse = |text: String| Refusal::new(wire::RejectReason::InvalidDescriptor, text);
    let mut checked = Vec::with_capacity(channels.len());
    for channel in channels {
        if channel.weight > MAX_WEIGHT {
            return Err(refuse(format!(
                "channel {:?} has weight {}, over {MAX_WEIGHT}",
                channel.name, channel.weight
            )));
        }
        checked.push((
            ChannelName::new(channel.name).map_err(|error| refuse(error.to_string()))?,
            channel.weight,
        ));
    }
    checked.sort_unstable();
    if let Some(pair) = checked.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(refuse(format!("channel {:?} is listed twice", pair[0].0)));
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(channel: &str, packet: &str) -> OperationId {
        let channel = (!channel.is_empty()).then(|| ChannelName::new(channel).unwrap());
        OperationId::new(channel, PacketName::new(packet).unwrap())
    }

    /// Looks up an operation's channel with this packet and a hash of any text.
    fn find(operations: &Operations, like: &OperationId, packet: &str, hashed: &str) -> Option<u32> {
        let channel = like.channel.clone().map(Hashed::new);
        operations.number(channel.as_ref(), packet, text_hash(hashed))
    }

    #[test]
    fn operations_are_found_by_both_names_and_by_nothing_else() {
        let all: Vec<_> = (0..1000)
            .map(|at| operation(["", "a", "b"][at % 3], &format!("packet.{}", at / 3)))
            .collect();
        let operations = Operations::new(all.clone()).unwrap();
        for (operation, number) in all.iter().zip(0..) {
            let packet = operation.packet.as_str();
            assert_eq!(find(&operations, operation, packet, packet), Some(number));
        }
        let elsewhere = operation("c", "packet.1");
        assert_eq!(find(&operations, &elsewhere, "packet.1", "packet.1"), None);
        let same_hash = find(&operations, &all[7], "another", all[7].packet.as_str());
        assert_eq!(same_hash, None, "a hash alone is no match");
    }

    #[test]
    fn what_is_listed_twice_or_collides_is_refused() {
        let one = operation("a", "x");
        assert!(Operations::new(vec![one.clone(), operation("", "x"), one.clone()]).is_err());
        let collides = OperationId {
            packet: PacketName::from_static("y"),
            ..one.clone()
        };
        assert!(Operations::new(vec![one, collides]).is_err());
    }
}
