//! Whom this side links with, of those that a complete list names. Pure: descriptions in, needs out.

use std::collections::BTreeMap;

use crate::id::Rid;

use super::admission::needs_no_link;
use super::info::{NodeInfo, Scope};

/// What this side does about a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// It dials.
    Dial,
    /// The other side dials: it has the smaller RID.
    Wait,
    /// It takes no new work; a link that is there stays.
    Leave,
    /// The pair needs no link.
    NotRequired,
}

/// The peers of `local` in `list`, each with what to do about it. Of several runs at one endpoint only the one that was
/// published last is there: the others have ended, even where their leases stand.
pub(crate) fn plan(local: &NodeInfo, list: Vec<(u64, NodeInfo)>) -> BTreeMap<Rid, (NodeInfo, Need)> {
    let mut latest: BTreeMap<String, (u64, Rid)> = BTreeMap::new();
    for (published, info) in &list {
        let newest = latest
            .entry(info.endpoint.clone())
            .or_insert_with(|| (*published, info.rid.clone()));
        if newest.0 < *published {
            *newest = (*published, info.rid.clone());
        }
    }
    let is_latest = |info: &NodeInfo| latest.get(&info.endpoint).is_some_and(|(_, rid)| *rid == info.rid);
    list.into_iter()
        .filter(|(_, info)| info.rid != local.rid && is_latest(info))
        .map(|(_, info)| (info.rid.clone(), (info.clone(), need(local, &info))))
        .collect()
}

fn need(local: &NodeInfo, peer: &NodeInfo) -> Need {
    let dials = matches!(local.scope, Scope::ChannelClient(_) | Scope::Subscriber(_)) || local.rid < peer.rid;
    match () {
        () if needs_no_link(local, peer) => Need::NotRequired,
        () if peer.is_draining() => Need::Leave,
        () if dials => Need::Dial,
        () => Need::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{ChannelName, Generation, MeshName};
    use crate::mesh::info::{NodeState, Operations};
    use crate::mesh::{ObjectRole, ObjectServer};

    fn node(rid: &str, port: u16) -> NodeInfo {
        NodeInfo {
            scope: Scope::Mesh(MeshName::from_static("shop")),
            rid: Rid::new(rid).unwrap(),
            generation: Generation::from_wire(7).unwrap(),
            revision: 1,
            role: ObjectRole::None,
            channels: Vec::new(),
            endpoint: format!("tcp://127.0.0.1:{port}"),
            security_identity: String::new(),
            max_message: 1 << 20,
            state: NodeState::Serving,
            operations: Operations::default(),
            objects: ObjectServer::default(),
        }
    }

    fn needs(local: &NodeInfo, list: Vec<NodeInfo>) -> Vec<(String, Need)> {
        let plan = plan(local, (1..).zip(list).collect());
        plan.into_iter()
            .map(|(rid, (_, need))| (rid.to_string(), need))
            .collect()
    }

    /// REQ: NET-502
    #[test]
    fn of_each_pair_the_smaller_rid_dials() {
        let all = || vec![node("b", 2), node("a", 1), node("ab", 3)];
        let text = |rid: &str| Rid::new(rid).unwrap().to_string();
        assert_eq!(
            needs(&node("a", 1), all()),
            [(text("ab"), Need::Dial), (text("b"), Need::Dial)]
        );
        assert_eq!(
            needs(&node("ab", 3), all()),
            [(text("a"), Need::Wait), (text("b"), Need::Dial)]
        );
        assert_eq!(
            needs(&node("b", 2), all()),
            [(text("a"), Need::Wait), (text("ab"), Need::Wait)]
        );
    }

    /// REQ: NET-408, LS-056
    #[test]
    fn two_object_clients_need_a_link_only_where_one_serves() {
        let client = |rid, port, weight: Option<u16>| NodeInfo {
            role: ObjectRole::Client,
            channels: weight
                .map(|weight| (ChannelName::from_static("c"), weight))
                .into_iter()
                .collect(),
            ..node(rid, port)
        };
        let need = |weight| needs(&client("a", 1, None), vec![client("b", 2, weight)])[0].1;
        assert_eq!(need(None), Need::NotRequired);
        assert_eq!(need(Some(0)), Need::Dial);
        assert_eq!(need(Some(100)), Need::Dial);
        let server = needs(&client("a", 1, None), vec![node("b", 2)]);
        assert_eq!(server[0].1, Need::Dial, "one of the two is no Object Client");
    }

    #[test]
    fn a_draining_peer_is_not_dialled() {
        let draining = NodeInfo {
            state: NodeState::Draining,
            ..node("b", 2)
        };
        assert_eq!(needs(&node("a", 1), vec![draining])[0].1, Need::Leave);
    }

    #[test]
    fn at_one_endpoint_the_run_that_was_published_last_counts() {
        let runs = vec![node("x", 2), node("c", 2), node("b", 3)];
        let rids: Vec<_> = plan(&node("a", 1), (1..).zip(runs).collect()).into_keys().collect();
        assert_eq!(rids, ["b", "c"].map(|rid| Rid::new(rid).unwrap()));
    }
}
