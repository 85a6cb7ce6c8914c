//! Whether a peer may be linked with this side. Pure: two descriptions in, a verdict out.

use crate::id::Rid;
use crate::transport::Peer;
use crate::wire::RejectReason;

use super::info::{NodeInfo, ObjectRole, Refusal, Scope};

/// What becomes of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Admit,
    /// Both are Object Clients and neither serves a channel of the mesh.
    NotRequired,
    Refuse(Refusal),
}

/// Judges `peer`, which describes itself over `link`, for the side `local`.
pub(super) fn judge(local: &NodeInfo, peer: &NodeInfo, link: &Peer, expected: Option<&Rid>) -> Verdict {
    match refusal(local, peer, link, expected) {
        Some(refusal) => Verdict::Refuse(refusal),
        None if needs_no_link(local, peer) => Verdict::NotRequired,
        None => Verdict::Admit,
    }
}

fn refusal(local: &NodeInfo, peer: &NodeInfo, link: &Peer, expected: Option<&Rid>) -> Option<Refusal> {
    let refuse = |reason, text: String| Some(Refusal::new(reason, text));
    match (&local.scope, &peer.scope) {
        (Scope::Mesh(here), Scope::Mesh(there)) if here == there => {}
        (Scope::ChannelServer(here), Scope::ChannelClient(there))
        | (Scope::ChannelClient(here), Scope::ChannelServer(there)) => {
            if here != there {
                return refuse(
                    RejectReason::Channel,
                    format!("this is channel {here:?}, not {there:?}"),
                );
            }
        }
        (here, there) => return refuse(RejectReason::Topology, format!("this is {here}, not {there}")),
    }
    let proven = link.identity.as_ref().is_none_or(|identity| *identity == peer.rid)
        && link.generation.is_none_or(|generation| generation == peer.generation);
    if !proven {
        return refuse(
            RejectReason::Identity,
            "it describes another identity than its connection has".into(),
        );
    }
    if let Some(expected) = expected.filter(|expected| **expected != peer.rid) {
        return refuse(
            RejectReason::Identity,
            format!("{expected} is expected there, not {}", peer.rid),
        );
    }
    if local.scope.is_mesh() && peer.rid == local.rid {
        return refuse(
            RejectReason::Identity,
            format!("{} is the RID of this node itself", peer.rid),
        );
    }
    if local.security_identity != peer.security_identity {
        return refuse(RejectReason::SecurityIdentity, "the security identities differ".into());
    }
    match &peer.scope {
        Scope::ChannelServer(name) if peer.channels.iter().map(|(name, _)| name).ne([name]) => {
            return refuse(RejectReason::Channel, format!("it does not serve channel {name:?}"));
        }
        Scope::ChannelClient(_) if !peer.channels.is_empty() => {
            return refuse(RejectReason::Channel, "a client serves no channel".into());
        }
        _ => {}
    }
    let least = local.least_message();
    if peer.max_message < least {
        let text = format!("it takes {} bytes at most; {least} are needed", peer.max_message);
        return refuse(RejectReason::ResourceLimit, text);
    }
    if local.is_draining() {
        return refuse(RejectReason::NotServing, "this side takes no new links".into());
    }
    None
}

/// NET-408: a pair needs no link when both are Object Clients and neither is a Channel Server of the mesh. A Server
/// membership of weight 0 counts.
pub(super) fn needs_no_link(local: &NodeInfo, peer: &NodeInfo) -> bool {
    let pure_client = |node: &NodeInfo| node.role == ObjectRole::Client && node.channels.is_empty();
    local.scope.is_mesh() && pure_client(local) && pure_client(peer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{ChannelName, Generation, MeshName};
    use crate::mesh::ObjectServer;
    use crate::mesh::info::{NodeState, Operations};
    use crate::transport::{Lanes, SocketType};

    fn node(rid: &str, role: ObjectRole, channels: &[(&'static str, u16)]) -> NodeInfo {
        NodeInfo {
            scope: Scope::Mesh(MeshName::from_static("shop")),
            rid: Rid::new(rid).unwrap(),
            generation: Generation::from_wire(7).unwrap(),
            revision: 1,
            role,
            channels: channels
                .iter()
                .map(|(name, weight)| (ChannelName::from_static(name), *weight))
                .collect(),
            endpoint: "tcp://127.0.0.1:1".into(),
            security_identity: String::new(),
            max_message: 1 << 20,
            state: NodeState::Serving,
            operations: Operations::default(),
            objects: ObjectServer::default(),
        }
    }

    fn link(of: &NodeInfo) -> Peer {
        Peer {
            identity: Some(of.rid.clone()),
            generation: Some(of.generation),
            socket: SocketType::Router,
            lanes: Lanes::Two,
            dialled: false,
            address: None,
        }
    }

    fn reason(local: &NodeInfo, peer: &NodeInfo, over: &Peer, expected: Option<&Rid>) -> Option<RejectReason> {
        match judge(local, peer, over, expected) {
            Verdict::Refuse(refusal) => Some(refusal.reason),
            _ => None,
        }
    }

    /// REQ: NET-408, NET-505
    #[test]
    fn only_two_clients_without_a_channel_server_need_no_link() {
        use ObjectRole::{Client, None, Server};
        let cases: [(ObjectRole, &[_], bool); 6] = [
            (Client, &[], false),
            (Client, &[("orders", 100)], true),
            (Client, &[("orders", 0)], true),
            (None, &[], true),
            (Server, &[], true),
            (Server, &[("orders", 1)], true),
        ];
        let client = node("a", Client, &[]);
        for (role, channels, needed) in cases {
            let peer = node("b", role, channels);
            let verdict = judge(&client, &peer, &link(&peer), Option::None);
            let wanted = if needed { Verdict::Admit } else { Verdict::NotRequired };
            assert_eq!(verdict, wanted, "{role:?} {channels:?}");
            assert_eq!(
                judge(&peer, &client, &link(&client), Option::None),
                wanted,
                "it does not matter who asks"
            );
        }
    }

    /// Changing one field at a time prevents readiness, and says which it was.
    ///
    /// REQ: NET-602, NET-503
    #[test]
    fn each_field_has_its_reason() {
        let local = node("a", ObjectRole::None, &[]);
        let good = node("b", ObjectRole::None, &[("orders", 100)]);
        let over = link(&good);
        assert_eq!(reason(&local, &good, &over, Some(&good.rid)), None);

        let other = NodeInfo {
            scope: Scope::Mesh(MeshName::from_static("other")),
            ..good.clone()
        };
        assert_eq!(reason(&local, &other, &over, None), Some(RejectReason::Topology));
        let other = NodeInfo {
            scope: Scope::ChannelClient(ChannelName::from_static("shop")),
            ..good.clone()
        };
        assert_eq!(reason(&local, &other, &over, None), Some(RejectReason::Topology));
        let other = NodeInfo {
            rid: Rid::new("c").unwrap(),
            ..good.clone()
        };
        assert_eq!(
            reason(&local, &other, &over, None),
            Some(RejectReason::Identity),
            "not the connection's identity"
        );
        let other = NodeInfo {
            generation: Generation::from_wire(8).unwrap(),
            ..good.clone()
        };
        assert_eq!(
            reason(&local, &other, &over, None),
            Some(RejectReason::Identity),
            "not the connection's generation"
        );
        let wrong = Rid::new("c").unwrap();
        assert_eq!(reason(&local, &good, &over, Some(&wrong)), Some(RejectReason::Identity));
        let other = NodeInfo {
            security_identity: "blue".into(),
            ..good.clone()
        };
        assert_eq!(
            reason(&local, &other, &over, None),
            Some(RejectReason::SecurityIdentity)
        );
        let myself = node("a", ObjectRole::None, &[]);
        assert_eq!(
            reason(&local, &myself, &link(&myself), None),
            Some(RejectReason::Identity)
        );
        let other = NodeInfo {
            max_message: crate::limit::LEAST_MESSAGE_BYTES - 1,
            ..good.clone()
        };
        assert_eq!(reason(&local, &other, &over, None), Some(RejectReason::ResourceLimit));
        let draining = NodeInfo {
            state: NodeState::Draining,
            ..local.clone()
        };
        assert_eq!(reason(&draining, &good, &over, None), Some(RejectReason::NotServing));
    }

    /// A peer must take the changes that this side will tell: a link over which they cannot go would go stale unseen.
    #[test]
    fn who_could_not_be_told_of_a_change_is_refused() {
        let serves = |weight| NodeInfo {
            channels: (0..200)
                .map(|at| {
                    (
                        ChannelName::new(format!("channel-with-a-name-of-its-own-{at}")).unwrap(),
                        weight,
                    )
                })
                .collect(),
            ..node("a", ObjectRole::None, &[])
        };
        let local = serves(0);
        let least = local.least_message();
        assert!(least > 200 * 32, "{least}");
        let takes = |max_message| NodeInfo {
            max_message,
            ..node("b", ObjectRole::None, &[])
        };
        let less = takes(least - 1);
        assert_eq!(
            reason(&local, &less, &link(&less), None),
            Some(RejectReason::ResourceLimit)
        );
        let enough = takes(least);
        assert_eq!(reason(&local, &enough, &link(&enough), None), None);
        assert_eq!(serves(7).least_message(), least, "weights change");
    }

    /// REQ: NET-604
    #[test]
    fn a_channel_links_only_a_client_with_a_server_of_the_same_name() {
        let name = ChannelName::from_static("orders");
        let server = NodeInfo {
            scope: Scope::ChannelServer(name.clone()),
            ..node("s", ObjectRole::None, &[("orders", 100)])
        };
        let client = NodeInfo {
            scope: Scope::ChannelClient(name),
            ..node("c", ObjectRole::None, &[])
        };
        assert_eq!(judge(&server, &client, &link(&client), None), Verdict::Admit);
        assert_eq!(judge(&client, &server, &link(&server), None), Verdict::Admit);
        let other = NodeInfo {
            scope: Scope::ChannelClient(ChannelName::from_static("audit")),
            ..client.clone()
        };
        assert_eq!(
            reason(&server, &other, &link(&other), None),
            Some(RejectReason::Channel)
        );
        assert_eq!(
            reason(&server, &server, &link(&server), None),
            Some(RejectReason::Topology)
        );
        let empty = NodeInfo {
            channels: Vec::new(),
            ..server.clone()
        };
        assert_eq!(
            reason(&client, &empty, &link(&empty), None),
            Some(RejectReason::Channel)
        );
    }
}
