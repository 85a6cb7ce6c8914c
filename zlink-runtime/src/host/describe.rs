//! What each node, server and client of a host will tell its peers of itself, checked before any socket opens: what no
//! peer could ever admit is a mistake like others.

use crate::channel::{ChannelServer, operations};
use crate::id::{ChannelName, Generation, MAX_ID_BYTES, MeshName, Rid};
use crate::limit::{DESCRIPTOR_BYTES, LEAST_MESSAGE_BYTES, MAX_WEIGHT, PAYLOAD_BYTES};
use crate::mesh::{NodeInfo, Scope};
use crate::message::codec;
use crate::random::Random;

use super::socket::SocketOptions;
use super::validate::Mistakes;
use super::{ClientServerBuilder, MeshBuilder};

/// More than the head of a service record has.
const HEAD_BYTES: usize = 64;

/// Stands in where the name of a mesh is wrong, so that the rest of it is checked all the same.
const NAMELESS: MeshName = MeshName::from_static("mesh");

/// A MeshNode's, where its name and RID are right.
pub(super) fn mesh(
    place: &str,
    (name, rid): (Option<MeshName>, Option<Rid>),
    mesh: &MeshBuilder,
    random: &Random,
    mistakes: &mut Mistakes,
) -> Option<NodeInfo> {
    let identified = name.is_some() && rid.is_some();
    let scope = Scope::Mesh(name.unwrap_or(NAMELESS));
    let rid = rid.or_else(|| Rid::drawn("node", random).ok())?;
    let info = NodeInfo {
        role: mesh.role,
        channels: weights(&mesh.servers),
        security_identity: identity(&mesh.socket),
        max_message: mesh.socket.max_message.max(LEAST_MESSAGE_BYTES),
        operations: mistakes
            .check(place, operations(&mesh.servers, &mesh.node))
            .unwrap_or_default(),
        objects: mesh.objects.published(),
        ..NodeInfo::begun(scope, rid, Generation::drawn(random))
    };
    check(place, &info, mistakes);
    identified.then_some(info)
}

/// Those of the two sides of a ClientServer channel.
pub(super) fn channel(
    place: &str,
    name: &ChannelName,
    channel: &ClientServerBuilder,
    random: &Random,
    mistakes: &mut Mistakes,
) -> (Option<NodeInfo>, Option<NodeInfo>) {
    let mut side = |scope: Scope, prefix: &str, servers: &[ChannelServer]| {
        let rid = mistakes.check(place, Rid::drawn(prefix, random))?;
        let info = NodeInfo {
            channels: weights(servers),
            security_identity: identity(&channel.socket),
            max_message: match channel.socket.max_message {
                0 => PAYLOAD_BYTES,
                set => set.max(LEAST_MESSAGE_BYTES),
            },
            operations: mistakes.check(place, operations(servers, &[])).unwrap_or_default(),
            ..NodeInfo::begun(scope, rid, Generation::drawn(random))
        };
        check(place, &info, mistakes);
        Some(info)
    };
    let served = channel.servers.get(..1);
    let server = served.and_then(|server| side(Scope::ChannelServer(name.clone()), "server", server));
    let calls = !channel.clients.is_empty();
    let client = calls.then(|| side(Scope::ChannelClient(name.clone()), "client", &[]));
    (server, client.flatten())
}

/// Peers read no greater first record, so a node that describes itself in more would never be linked.
fn check(place: &str, info: &NodeInfo, mistakes: &mut Mistakes) {
    if let Some(problem) = info.is_too_much() {
        return mistakes.add(place, problem);
    }
    match codec::encode(&info.to_wire(), <[u8]>::len) {
        Ok(bytes) if bytes + HEAD_BYTES <= DESCRIPTOR_BYTES => {}
        Ok(bytes) => mistakes.add(
            place,
            format!(
                "needs {bytes} bytes to tell peers its channels and handlers; at most {DESCRIPTOR_BYTES} are allowed"
            ),
        ),
        Err(error) => mistakes.add(place, format!("cannot be described to peers: {error}")),
    }
}

/// What is too long is told elsewhere.
fn identity(socket: &SocketOptions) -> String {
    let identity = Some(&socket.security_identity).filter(|identity| identity.len() <= MAX_ID_BYTES);
    identity.cloned().unwrap_or_default()
}

/// Each channel once, by name. What is wrong with a weight is told elsewhere.
fn weights(servers: &[ChannelServer]) -> Vec<(ChannelName, u16)> {
    let mut weights: Vec<_> = servers
        .iter()
        .map(|server| {
            (
                server.channel.clone(),
                u16::try_from(server.weight).unwrap_or(MAX_WEIGHT),
            )
        })
        .collect();
    weights.sort_unstable();
    weights.dedup_by(|one, other| one.0 == other.0);
    weights
}
