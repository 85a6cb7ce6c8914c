//! What a simulated cluster asks of its hosts beyond their statuses. Cargo feature `testing`.

use crate::channel::Selection;
use crate::host::Host;
use crate::id::{ChannelName, MeshName, Rid};
use crate::mesh::{Links, Lookup, PeerState};

use super::{TopologyStatus, channel, mesh};

impl Host {
    /// Every step of the selection for a channel.
    pub(crate) fn selections(&self, channel: &ChannelName) -> Vec<Selection> {
        let path = self.0.outbound.channels().find(|path| path.name == *channel);
        path.map(|path| path.history()).unwrap_or_default()
    }

    /// Whether each intent has led to a link that can be used.
    pub(crate) fn has_linked(&self) -> bool {
        let meshes = self.0.meshes.iter().map(|mesh| &mesh.links);
        let clients = self.0.channels.iter().filter_map(|channel| channel.client.as_ref());
        meshes.chain(clients).all(|links| {
            links.intents().iter().all(|intent| match intent.rid() {
                _ if intent.state() == PeerState::NotRequired => true,
                Some(rid) => is_ready(links, &rid),
                None => false,
            })
        })
    }

    /// Whose nodes this host's nodes are linked with: mesh, own RID, theirs.
    pub(crate) fn linked(&self) -> Vec<(MeshName, Rid, Vec<Rid>)> {
        let nodes = self.0.meshes.iter().map(|mesh| {
            let known = mesh.links.peers().into_iter().filter_map(|(rid, ..)| rid);
            let linked = known.filter(|rid| is_ready(&mesh.links, rid));
            (mesh.name.clone(), mesh.links.local().rid, linked.collect())
        });
        nodes.collect()
    }

    /// Every mesh and every channel of the host, as its handles tell.
    pub(crate) fn topologies(&self) -> Vec<TopologyStatus> {
        let meshes = self.0.meshes.iter().map(|one| mesh(&self.0, one));
        meshes
            .chain(self.0.channels.iter().map(|one| channel(&self.0, one)))
            .collect()
    }
}

fn is_ready(links: &Links, rid: &Rid) -> bool {
    matches!(links.find(rid), Lookup::Ready(_))
}
