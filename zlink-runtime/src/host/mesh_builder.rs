//! What a MeshNode is told before it starts.

use std::time::Duration;

use crate::channel::{ChannelServer, NodeServer};
use crate::id::ChannelName;
use crate::limit::MESH_MESSAGE_BYTES;
use crate::mesh::ObjectRole;

/// Collects what a node of one mesh is and does.
#[derive(Debug)]
#[must_use = "a mesh builder does nothing unless it is returned"]
pub struct MeshBuilder {
    pub(super) name: String,
    pub(super) role: ObjectRole,
    pub(super) rid: Option<Vec<u8>>,
    pub(super) rid_prefix: Option<String>,
    pub(super) listen: Option<String>,
    pub(super) advertise: Option<String>,
    pub(super) connect: Vec<(String, Option<Vec<u8>>)>,
    pub(super) servers: Vec<ChannelServer>,
    pub(super) clients: Vec<ChannelName>,
    pub(super) node: Vec<NodeServer>,
    pub(super) max_message: usize,
    pub(super) link_budget: usize,
    pub(super) request_timeout: Option<Duration>,
    pub(super) security_identity: String,
}

impl MeshBuilder {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            role: ObjectRole::None,
            rid: None,
            rid_prefix: None,
            listen: None,
            advertise: None,
            connect: Vec::new(),
            servers: Vec::new(),
            clients: Vec::new(),
            node: Vec::new(),
            max_message: MESH_MESSAGE_BYTES,
            link_budget: crate::limit::LINK_BUDGET_BYTES,
            request_timeout: None,
            security_identity: String::new(),
        }
    }

    /// What the node may do with Spots and Actors; `None` where it is not set.
    pub fn role(mut self, role: ObjectRole) -> Self {
        self.role = role;
        self
    }

    /// Gives the node a fixed RID, 1 to 255 bytes. Without it, each start makes a new one.
    pub fn rid(mut self, rid: impl AsRef<[u8]>) -> Self {
        self.rid = Some(rid.as_ref().to_vec());
        self
    }

    /// What a made RID begins with: 1 to 64 ASCII letters, digits, `.`, `_` or `-`. `node` where it is not set.
    pub fn rid_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.rid_prefix = Some(prefix.into());
        self
    }

    /// Where the node listens, such as `tcp://127.0.0.1:7001` or `ipc:///run/shop.sock`. Port 0 takes a free one.
    pub fn listen(mut self, endpoint: impl Into<String>) -> Self {
        self.listen = Some(endpoint.into());
        self
    }

    /// The host name or address that peers are told, where it is not the one of `listen`: `0.0.0.0` and `::` need it.
    pub fn advertise(mut self, host: impl Into<String>) -> Self {
        self.advertise = Some(host.into());
        self
    }

    /// Keeps a link to the node at that endpoint, whoever it is.
    pub fn connect(mut self, endpoint: impl Into<String>) -> Self {
        self.connect.push((endpoint.into(), None));
        self
    }

    /// Keeps a link to the node at that endpoint, and admits none but `rid` there.
    pub fn connect_to(mut self, endpoint: impl Into<String>, rid: impl AsRef<[u8]>) -> Self {
        self.connect.push((endpoint.into(), Some(rid.as_ref().to_vec())));
        self
    }

    /// Takes part in a channel as a Server: its calls may be selected to run here. A node never selects itself.
    pub fn serve(mut self, server: ChannelServer) -> Self {
        self.servers.push(server);
        self
    }

    /// Takes part in a channel as a Client: calls to it go out through this mesh.
    pub fn client(mut self, channel: impl Into<ChannelName>) -> Self {
        self.clients.push(channel.into());
        self
    }

    /// Handles what is sent to this node by its RID. Several schemas may add theirs.
    pub fn serve_node(mut self, server: NodeServer) -> Self {
        self.node.push(server);
        self
    }

    /// The greatest record this node takes, in bytes: 64 MiB where it is not set, at most 2 GiB − 1. Between two nodes
    /// the smaller of both holds.
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.max_message = bytes;
        self
    }

    /// Bytes that each link holds per direction before senders, or the peer, wait: 4 MiB where it is not set.
    pub fn link_budget(mut self, bytes: usize) -> Self {
        self.link_budget = bytes;
        self
    }

    /// How long a request through this mesh may take where neither the call nor its schema says.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = Some(timeout);
        self
    }

    /// A text that every node of the mesh must have been given alike; at most 255 bytes.
    pub fn security_identity(mut self, identity: impl Into<String>) -> Self {
        self.security_identity = identity.into();
        self
    }
}
