//! Waiting until there is somebody to call. A host never waits by itself; whoever must not begin alone asks here.

use std::time::Duration;

use crate::channel::Outbound;
use crate::clock;
use crate::error::{CallError, Error, ErrorKind};
use crate::id::{ChannelName, Rid};
use crate::mesh::Links;

use super::{ChannelControl, MeshNode};

impl MeshNode<'_> {
    /// Waits until calls to `channel` have at least `servers` servers to choose from: linked, not draining, with a weight.
    /// Dropping the future is harmless.
    ///
    /// # Errors
    /// [`CallError::Argument`] where `within` is no timeout. `NotFound` where this node takes no part in the channel,
    /// `ShuttingDown` where the host stops, `DeadlineExceeded` where there are fewer servers after `within`: its text says
    /// how many there are, and what hinders the links that are wanted.
    pub async fn ready(
        &self,
        channel: impl Into<ChannelName>,
        servers: usize,
        within: Duration,
    ) -> Result<(), CallError> {
        let (channel, outbound) = (channel.into(), &self.host.0.outbound);
        let is_ours = self
            .mesh
            .links
            .local()
            .channels
            .iter()
            .any(|(name, _)| *name == channel);
        let is_ours = is_ours || self.status().channels.iter().any(|(name, _)| *name == channel);
        if !is_ours {
            let text = format!(
                "this node takes no part in channel {channel:?} of mesh {:?}; add client(…) or serve(…) to the mesh",
                self.mesh.name
            );
            return Err(Error::not_executed(ErrorKind::NotFound, text).into());
        }
        servers_of(outbound, &self.mesh.links, &channel, servers, within).await
    }

    /// Waits until there is a ready link to the node `rid`. This node needs none to itself. Dropping the future is
    /// harmless.
    ///
    /// # Errors
    /// As [`MeshNode::ready`], but for `NotFound`: a node that nobody has heard of yet may still come.
    pub async fn linked(&self, rid: &Rid, within: Duration) -> Result<(), CallError> {
        let links = &self.mesh.links;
        let linked = async {
            if *rid != self.rid() {
                links.ready(rid, &[]).await;
            }
        };
        wait(&self.host.0.outbound, within, linked, || {
            format!("there is no ready link to {rid}{}", hindrances(links))
        })
        .await
    }
}

impl ChannelControl<'_> {
    /// Waits until calls to the channel have at least `servers` servers to choose from, this host's own included.
    /// Dropping the future is harmless.
    ///
    /// # Errors
    /// As [`MeshNode::ready`]; `NotConfigured` where this host has no Client role for the channel.
    pub async fn ready(&self, servers: usize, within: Duration) -> Result<(), CallError> {
        let name = &self.channel.name;
        let Some(links) = &self.channel.client else {
            let text = format!("this host is no client of channel {name:?}");
            return Err(Error::not_executed(ErrorKind::NotConfigured, text).into());
        };
        servers_of(&self.host.0.outbound, links, name, servers, within).await
    }
}

async fn servers_of(
    outbound: &Outbound,
    links: &Links,
    channel: &ChannelName,
    servers: usize,
    within: Duration,
) -> Result<(), CallError> {
    let Some(path) = outbound.path(channel) else {
        let text = format!("no path leads to channel {channel:?}");
        return Err(Error::not_executed(ErrorKind::NotFound, text).into());
    };
    wait(outbound, within, path.until_servers(servers), || {
        let there = path.targets().len();
        format!(
            "{there} of {servers} servers of channel {channel:?} are ready{}",
            hindrances(links)
        )
    })
    .await
}

async fn wait(
    outbound: &Outbound,
    within: Duration,
    condition: impl Future<Output = ()>,
    missed: impl Fn() -> String,
) -> Result<(), CallError> {
    let within = clock::timeout("within", within)?;
    tokio::select! {
        biased;
        () = condition => Ok(()),
        () = outbound.stopping() => Err(Outbound::shutting_down().into()),
        () = tokio::time::sleep(within) => Err(Error::not_executed(ErrorKind::DeadlineExceeded, missed()).into()),
    }
}

/// Why links that are wanted are not there.
fn hindrances(links: &Links) -> String {
    let intents = links.intents();
    let failures = intents
        .iter()
        .filter_map(|intent| Some(format!("; {}: {}", intent.endpoint, intent.failure()?)));
    // Those that the Location Store names have no intent that a user has made.
    let found = links.found().into_iter();
    let found = found.filter_map(|found| {
        let (rid, failure) = (found.expected.as_ref()?, found.failure()?);
        let is_named = intents.iter().any(|intent| intent.rid().as_ref() == Some(rid));
        (!is_named).then(|| format!("; {rid} at {}: {failure}", found.endpoint))
    });
    failures.chain(found).collect()
}
