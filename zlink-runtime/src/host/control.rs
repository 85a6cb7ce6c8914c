//! What can be changed and asked while a host runs: weights, intents, endpoints.

use std::collections::BTreeMap;

use crate::clock;
use crate::error::ConfigError;
use crate::id::{ChannelName, Rid, SpotId};
use crate::limit::MAX_WEIGHT;
use crate::mesh::{Links, PeerState};
use crate::transport::Endpoint;

use super::status::{self, TopologyStatus};
use super::{Channel, Host, Mesh};

/// What kind of listener an endpoint belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ListenerKind {
    /// A MeshNode.
    RouteMesh,
    /// A server of a ClientServer channel.
    ClientServer,
    /// The publisher of a fanout.
    Fanout,
}

/// A bound listener, as it was when it was asked for.
#[derive(Clone, Debug)]
pub struct ListenerInfo {
    /// Its kind.
    pub kind: ListenerKind,
    /// Its MeshName or ChannelName.
    pub name: String,
    /// Where peers reach it; never port 0.
    pub endpoint: Endpoint,
    /// When this was observed.
    pub observed: tokio::time::Instant,
}

/// A manual intent.
#[derive(Clone, Debug)]
pub struct IntentStatus {
    /// The endpoint that is dialled.
    pub endpoint: Endpoint,
    /// The only RID that is admitted there, where one is expected.
    pub expected: Option<Rid>,
    /// How it stands.
    pub state: PeerState,
    /// Why its last attempt failed, until one succeeds.
    pub failure: Option<String>,
}

/// A handle to one MeshNode of a host.
#[derive(Debug)]
pub struct MeshNode<'a> {
    pub(super) host: &'a Host,
    pub(super) mesh: &'a Mesh,
}

/// A handle to one ClientServer channel of a host.
#[derive(Debug)]
pub struct ChannelControl<'a> {
    pub(super) host: &'a Host,
    pub(super) channel: &'a Channel,
}

impl Host {
    /// The node of this host in the mesh `name`.
    ///
    /// # Errors
    /// Where it has none.
    pub fn mesh(&self, name: &str) -> Result<MeshNode<'_>, ConfigError> {
        match self.0.meshes.iter().find(|mesh| mesh.name.as_str() == name) {
            Some(mesh) => Ok(MeshNode { host: self, mesh }),
            None => Err(ConfigError::new(
                format!("mesh {name:?}"),
                "is not registered with this host",
            )),
        }
    }

    /// The ClientServer channel `name` of this host.
    ///
    /// # Errors
    /// Where it has none.
    pub fn client_server(&self, name: impl AsRef<str>) -> Result<ChannelControl<'_>, ConfigError> {
        let name = name.as_ref();
        match self.0.channels.iter().find(|channel| channel.name.as_str() == name) {
            Some(channel) => Ok(ChannelControl { host: self, channel }),
            None => Err(ConfigError::new(
                format!("client_server {name:?}"),
                "is not registered with this host",
            )),
        }
    }

    /// Changes how long the host remembers where a Spot is, of all that it finds from now on; 0 to ask the Location Store
    /// each time. What it remembers already stays as long as it was to.
    ///
    /// # Errors
    /// Where the age is neither 0 nor 1 ms to `i32::MAX` ms, or no mesh of this host has an object role.
    pub fn set_route_cache_max_age(&self, age: std::time::Duration) -> Result<(), ConfigError> {
        const PLACE: &str = "route_cache_max_age";
        let spots = self.0.spots.as_ref();
        let spots = spots.ok_or_else(|| ConfigError::new(PLACE, "no mesh of this host has an object role"))?;
        if !age.is_zero() {
            clock::timeout(PLACE, age).map_err(|error| ConfigError::new(PLACE, error.to_string()))?;
        }
        spots.set_route_age(age);
        Ok(())
    }

    /// Where the listener of that kind and name is bound.
    ///
    /// # Errors
    /// Where this host has no such listener.
    pub fn listener(&self, kind: ListenerKind, name: &str) -> Result<ListenerInfo, ConfigError> {
        let endpoint = match kind {
            ListenerKind::RouteMesh => self.mesh(name)?.mesh.endpoint.clone(),
            ListenerKind::Fanout => match self.fanout(name)?.endpoint() {
                Some(endpoint) => endpoint,
                None => {
                    let place = format!("fanout {name:?}");
                    return Err(ConfigError::new(place, "has no Publisher role here"));
                }
            },
            ListenerKind::ClientServer => match &self.client_server(name)?.channel.server {
                Some((_, endpoint)) => endpoint.clone(),
                None => {
                    return Err(ConfigError::new(
                        format!("client_server {name:?}"),
                        "has no Server role here",
                    ));
                }
            },
        };
        Ok(ListenerInfo {
            kind,
            name: name.to_owned(),
            endpoint,
            observed: clock::now(),
        })
    }
}

impl MeshNode<'_> {
    /// The node's RID.
    #[must_use]
    pub fn rid(&self) -> Rid {
        self.mesh.links.local().rid
    }

    /// Where peers reach it.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.mesh.endpoint
    }

    /// The ID of the node's own Entry Spot, the same for the life of the node; `None` where it has none.
    #[must_use]
    pub fn entry_spot(&self) -> Option<SpotId> {
        self.mesh.links.local().objects.entry
    }

    /// The Entry Spots that can be called from here, by their nodes: that of this node, and those of the nodes that it is
    /// linked with and that do not drain. What a node is told of others it says of its links; what the Location Store knows,
    /// types included, is shown by [`Host::list_spots`].
    ///
    /// # Examples
    /// With a schema `plaza` that has an Entry Spot `lobby`, `plaza::lobby_spots(&host).of(entry)` is a client of each:
    /// ```
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use zlink_runtime::prelude::*;
    ///
    /// let host = Host::builder().mesh("plaza", |mesh| mesh.listen("tcp://127.0.0.1:0")).start().await?;
    /// for (node, entry) in host.mesh("plaza")?.entry_spots() {
    ///     println!("guests of {node} arrive in {entry}");
    /// }
    /// host.shutdown().await?;
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
    /// ```
    #[must_use]
    pub fn entry_spots(&self) -> BTreeMap<Rid, SpotId> {
        self.mesh.links.entries()
    }

    /// Changes the weight of a Server membership for all later selections, here and at every peer. Links, accepted work
    /// and Node direct are not touched.
    ///
    /// # Errors
    /// Where the weight is over 10,000, or this node is no Server of that channel.
    pub fn set_weight(&self, channel: impl Into<ChannelName>, weight: u32) -> Result<(), ConfigError> {
        set_weight(&self.mesh.links, &channel.into(), weight)
    }

    /// Changes the share of new Spots that this node takes, here and at every peer; 0 takes none. Spots that it has, and
    /// those that are being made here, stay.
    ///
    /// # Errors
    /// Where the weight is over 10,000, or this node is no Object Server.
    pub fn set_placement_weight(&self, weight: u32) -> Result<(), ConfigError> {
        const PLACE: &str = "placement_weight";
        if self.mesh.links.set_placement_weight(checked_weight(PLACE, weight)?) {
            return Ok(());
        }
        Err(ConfigError::new(PLACE, "this node is no Object Server"))
    }

    /// Adds an intent, and dials. `expected` is the only RID that is admitted there: a link that led to another is closed.
    /// An intent that is there already dials now where it would have waited: after a refusal for good that is about a
    /// minute.
    ///
    /// # Errors
    /// Where the endpoint cannot be dialled by anybody: wrong, a wildcard, or port 0. Where the host has stopped.
    pub fn connect(&self, endpoint: &str, expected: Option<Rid>) -> Result<(), ConfigError> {
        connect(&self.mesh.links, endpoint, expected)
    }

    /// Releases the intent for that endpoint, and closes the link that it made. Returns whether there was one. A peer that
    /// another intent leads to, or the Location Store names, is linked with anew.
    ///
    /// # Errors
    /// Where the text is no endpoint.
    pub fn disconnect(&self, endpoint: &str) -> Result<bool, ConfigError> {
        disconnect(&self.mesh.links, endpoint)
    }

    /// The manual intents.
    #[must_use]
    pub fn intents(&self) -> Vec<IntentStatus> {
        intents(&self.mesh.links)
    }

    /// How the node stands.
    #[must_use]
    pub fn status(&self) -> TopologyStatus {
        status::mesh(&self.host.0, self.mesh)
    }
}

impl ChannelControl<'_> {
    /// Changes the weight of this host's server for all later selections of its clients.
    ///
    /// # Errors
    /// Where the weight is over 10,000, or this host has no Server role for the channel.
    pub fn set_weight(&self, weight: u32) -> Result<(), ConfigError> {
        match &self.channel.server {
            Some((links, _)) => set_weight(links, &self.channel.name, weight),
            None => Err(self.no_role("Server")),
        }
    }

    /// Adds an intent, and dials. `expected` is the only RID that is admitted there: a link that led to another is closed.
    /// An intent that is there already dials now where it would have waited: after a refusal for good that is about a
    /// minute.
    ///
    /// # Errors
    /// Where the endpoint cannot be dialled by anybody, this host has no Client role for the channel, or has stopped.
    pub fn connect(&self, endpoint: &str, expected: Option<Rid>) -> Result<(), ConfigError> {
        connect(self.client()?, endpoint, expected)
    }

    /// Releases the intent for that endpoint, and closes the link that it made. Returns whether there was one. A server
    /// that another intent leads to, or the Location Store names, is linked with anew.
    ///
    /// # Errors
    /// Where the text is no endpoint, or this host has no Client role for the channel.
    pub fn disconnect(&self, endpoint: &str) -> Result<bool, ConfigError> {
        disconnect(self.client()?, endpoint)
    }

    /// The intents of the client, that for this host's own server included.
    #[must_use]
    pub fn intents(&self) -> Vec<IntentStatus> {
        self.channel.client.as_ref().map(intents).unwrap_or_default()
    }

    /// How the channel stands.
    #[must_use]
    pub fn status(&self) -> TopologyStatus {
        status::channel(&self.host.0, self.channel)
    }

    fn client(&self) -> Result<&Links, ConfigError> {
        self.channel.client.as_ref().ok_or_else(|| self.no_role("Client"))
    }

    fn no_role(&self, role: &str) -> ConfigError {
        let place = format!("client_server {:?}", self.channel.name.as_str());
        ConfigError::new(place, format!("has no {role} role in this host"))
    }
}

fn set_weight(links: &Links, channel: &ChannelName, weight: u32) -> Result<(), ConfigError> {
    let place = format!("channel {:?}", channel.as_str());
    if links.set_weight(channel, checked_weight(&place, weight)?) {
        Ok(())
    } else {
        Err(ConfigError::new(place, "has no Server role there"))
    }
}

fn checked_weight(place: &str, weight: u32) -> Result<u16, ConfigError> {
    let weight = u16::try_from(weight).ok().filter(|weight| *weight <= MAX_WEIGHT);
    weight.ok_or_else(|| ConfigError::new(place, format!("a weight must be 0 to {MAX_WEIGHT}")))
}

/// Why a host dials nobody that is named now.
pub(super) const STOPPED: &str = "is not dialled: this host has stopped";

fn connect(links: &Links, endpoint: &str, expected: Option<Rid>) -> Result<(), ConfigError> {
    let peer = Endpoint::of_peer(endpoint).map_err(|error| ConfigError::new(endpoint, error.to_string()))?;
    match links.connect(peer, expected) {
        true => Ok(()),
        false => Err(ConfigError::new(endpoint, STOPPED)),
    }
}

fn disconnect(links: &Links, endpoint: &str) -> Result<bool, ConfigError> {
    let parsed: Result<Endpoint, _> = endpoint.parse();
    let parsed = parsed.map_err(|error| ConfigError::new(endpoint, error.to_string()))?;
    Ok(links.disconnect(&parsed))
}

fn intents(links: &Links) -> Vec<IntentStatus> {
    let status = links.intents().into_iter().map(|intent| IntentStatus {
        endpoint: intent.endpoint.clone(),
        expected: intent.expected.clone(),
        state: intent.state(),
        failure: intent.failure(),
    });
    status.collect()
}

impl std::fmt::Debug for Mesh {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mesh({:?})", self.name)
    }
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Channel({:?})", self.name)
    }
}
